"""Figures of the house: size by folder, long functions, arrows up, circles, modules a line passes.

    python scripts/house.py [FOLDER OF A CHECKOUT]

Size is counted in nodes of the syntax tree, which no layout changes. Imports for the type checker
alone, and those inside functions, count too. The modules that a heard line, a compaction and a
search pass are those of whose functions one is called (`modules_passed`); they are printed in the
order of their first calls, each with the function that was called first.
"""

import ast
import configparser
import contextlib
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from twisted.internet.defer import maybeDeferred

HERE = Path(__file__).parents[1]
LONG_LINES = 60  # of a function without its docstring
# Fakes for tests, which no game calls.
FAKES = "testing.py"
LINES = 40  # of the history that is compacted


def imports(tree: ast.AST) -> Iterator[str]:
    """What a module imports: modules, and names that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def reach(graph: dict[str, set[str]], start: str) -> set[str]:
    """All modules that one imports, or whose imports do."""
    reached, todo = set[str](), [start]
    while todo:
        new = graph[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function has below its docstring."""
    first = function.body[0]
    begin = first.lineno - 1
    if ast.get_docstring(function) is not None:
        begin = first.end_lineno or begin
    return (function.end_lineno or begin) - begin


class AtOnce:
    """A worker that has no thread: what is submitted is done at once, so that it is profiled."""

    submit = submit_later = staticmethod(maybeDeferred)


def modules_passed(work: Callable[[], Any]) -> dict[str, str]:
    """The package's modules of whose functions one is called on this thread while work runs.

    They are in the order of their first calls, each with the function that was called first.
    """
    folder = str(HERE / "evennia_ai")
    first: dict[str, str] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_named = not code.co_name.startswith("<")  # as "<module>" and "<lambda>" do
        if event == "call" and is_named and code.co_filename.startswith(folder):
            file = str(Path(code.co_filename).relative_to(folder))
            first.setdefault(file, code.co_qualname.partition(".<locals>")[0])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    first.pop(FAKES, None)
    return first


def shown_way(passed: dict[str, str]) -> str:
    """The modules that `modules_passed` gives, as text; `read_way` reads it."""
    steps = " > ".join(f"{module}:{function}" for module, function in passed.items())
    return textwrap.fill(steps, 100, break_long_words=False, break_on_hyphens=False)


def read_way(text: str) -> dict[str, str]:
    """What `shown_way` wrote."""
    return dict(re.findall(r"([\w/]+\.py):([\w.]+)", text))


def print_size(texts: dict[Path, str], trees: dict[Path, ast.AST], package: Path) -> None:
    """Nodes and lines by folder, conditional expressions and long functions."""
    nodes, lines, files = Counter[str](), Counter[str](), Counter[str]()
    conditionals, takers, long_functions = 0, 0, []
    for path, tree in trees.items():
        parts = path.relative_to(package).parts
        folder = parts[0] if len(parts) > 1 else "(top)"
        lines[folder] += texts[path].count("\n")
        files[folder] += 1
        for node in ast.walk(tree):
            nodes[folder] += 1
            conditionals += isinstance(node, ast.IfExp)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                takers += "script" in {each.arg for each in node.args.args}
                if (length := body_lines(node)) > LONG_LINES:
                    place = f"{path.relative_to(package.parent)}:{node.lineno} {node.name}"
                    long_functions.append((length, place))
    print(f"package: {nodes.total():,} nodes, {lines.total():,} lines in {files.total()} files")
    for name, count in nodes.most_common():
        print(f"  {name}: {count:,} nodes, {lines[name]:,} lines in {files[name]} files")
    print(f"conditional expressions: {conditionals}; functions that take `script`: {takers}")
    print(f"functions over {LONG_LINES} lines: {len(long_functions)}")
    for length, place in sorted(long_functions, reverse=True):
        print(f"  {length} {place}")


def graph_of(trees: dict[Path, ast.AST], package: Path) -> dict[str, set[str]]:
    """Which modules of the package each of them imports."""
    graph = {}
    for path, tree in trees.items():
        parts = path.relative_to(package).with_suffix("").parts
        graph[".".join(("evennia_ai", *parts)).removesuffix(".__init__")] = set(imports(tree))
    return {name: {o for o in others if o in graph} for name, others in graph.items()}


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The modules that import each other, by way of others, too."""
    reached = {name: reach(graph, name) for name in graph}
    return {frozenset(o for o in reached[m] if m in reached[o]) for m in graph if m in reached[m]}


def syntax_of(package: Path) -> tuple[dict[Path, str], dict[Path, ast.AST]]:
    """The texts of a package's modules, and their syntax trees."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    return texts, {path: ast.parse(text) for path, text in texts.items()}


def print_imports(trees: dict[Path, ast.AST], package: Path) -> None:
    """Imports that run up against the contract of layers, and circles."""
    graph = graph_of(trees, package)
    contracts = configparser.ConfigParser()
    contracts.read(package.parent / ".importlinter")
    layers = contracts["importlinter:contract:folders"]["layers"].strip().split("\n")[::-1]
    floors = {
        at: floor for floor, layer in enumerate(layers) for at in re.findall(r"[\w.]+", layer)
    }

    def floor(module: str) -> int | None:
        return next((n for at, n in floors.items() if f"{module}.".startswith(f"{at}.")), None)

    up = []
    for module, others in graph.items():
        for other in others:
            mine, its = floor(module), floor(other)
            if mine is not None and its is not None and its > mine:
                up.append(f"{module} -> {other}")
    print(f"arrows that run up: {len(up)}", *up, sep="\n  ")
    for group in circles(graph):
        print(f"circle: {len(group)} modules, as {min(group)}")


def print_faces(texts: dict[Path, str], package: Path) -> None:
    """How many options, settings and exported names there are."""
    for what, file, mark in (
        (
            "options",
            "options.py",
            r"^    .* = (?:compaction|context|model|manners|life)\(",
        ),
        ("settings", "conf.py", r"^    .* = _setting\("),
        ("names in the face", "__init__.py", r'^        "\w+": "'),
    ):
        count = len(re.findall(mark, texts[package / file], re.MULTILINE))
        print(f"{what}: {count}")


def print_passed() -> None:
    """The modules that an answered line, a compaction and a search pass, in a game's database."""
    sys.path.insert(0, str(HERE))
    with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
        from benchmarks.world import world
        from evennia_ai.history.audience import PUBLIC
        from evennia_ai.history.messages import Message
        from evennia_ai.recall.values import Query
        from evennia_ai.sleep.compaction import compact_conversation_history
        from evennia_ai.testing import ScriptedModel
        from tests.waiting import wait_for

        with world(ScriptedModel(default="They talked about the ferry.")) as make:
            from evennia import create_object

            script, body = make()
            player = create_object("tests.base.PlayedCharacter", "Mira", location=body.location)

            def answered_line() -> None:
                script.runtime.last_turn_at = 0.0
                player.at_say("Aria, what is new?")
                wait_for(script.at_tick())

            def compaction() -> None:
                wait_for(compact_conversation_history(script, body, force=True))

            def search() -> None:
                wait_for(script.seen(PUBLIC).search(Query("What about the ferry?")))

            answered_line()  # the first loads what is slow
            passed = {"a heard line": modules_passed(answered_line)}
            words = "The ferry was late again, and nobody could say why. "
            script.history.append([Message("user", words * 3)] * LINES)
            passed["a compaction"] = modules_passed(compaction)
            wait_for(script.mind.recall.worker.submit_later(int))  # all is indexed
            script.mind.recall.worker = AtOnce()
            passed["a search"] = modules_passed(search)
    for what, modules in passed.items():
        print(f"modules that {what} passes: {len(modules)}", shown_way(modules), "", sep="\n")


def main() -> None:
    """Print the figures."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    package = root / "evennia_ai"
    texts, trees = syntax_of(package)
    print_size(texts, trees, package)
    tests = sum(p.read_text(encoding="utf-8").count("\n") for p in (root / "tests").rglob("*.py"))
    print(f"tests: {tests:,} lines")
    print_imports(trees, package)
    print_faces(texts, package)
    if root.resolve() == HERE:
        print_passed()


if __name__ == "__main__":
    main()
