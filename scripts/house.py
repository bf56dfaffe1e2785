"""Figures of the house: lines by folder, functions that take the assistant, arrows up, circles.

    python scripts/house.py [FOLDER OF A CHECKOUT]

Imports for the type checker alone, and those inside functions, count too.
"""

import ast
import configparser
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
PACKAGE = ROOT / "evennia_ai"


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


def main() -> None:
    """Print the figures."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    lines, files, takers = Counter[str](), Counter[str](), 0
    graph: dict[str, set[str]] = {}
    for path, text in texts.items():
        parts, tree = path.relative_to(PACKAGE).with_suffix("").parts, ast.parse(text)
        folder = parts[0] if len(parts) > 1 else "(top)"
        lines[folder] += text.count("\n")
        files[folder] += 1
        graph[".".join(("evennia_ai", *parts)).removesuffix(".__init__")] = set(imports(tree))
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        takers += sum("script" in {each.arg for each in node.args.args} for node in functions)
    graph = {name: {o for o in others if o in graph} for name, others in graph.items()}
    reached = {name: reach(graph, name) for name in graph}
    groups = {frozenset(o for o in reached[m] if m in reached[o]) for m in graph if m in reached[m]}
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:folders"]["layers"].strip().split("\n")[::-1]
    floors = {
        at: floor for floor, layer in enumerate(layers) for at in re.findall(r"[\w.]+", layer)
    }

    def floor(module: str) -> int | None:
        return next((n for at, n in floors.items() if f"{module}.".startswith(f"{at}.")), None)

    pairs = [(m, o, floor(m), floor(o)) for m, others in graph.items() for o in others]
    up = [f"{m} -> {o}" for m, o, mine, its in pairs if None not in (mine, its) and its > mine]  # type: ignore
    tests = sum(p.read_text(encoding="utf-8").count("\n") for p in (ROOT / "tests").rglob("*.py"))
    print(f"package: {lines.total():,} lines in {files.total()} files; tests: {tests:,} lines")
    print(*(f"  {name}: {n:,} in {files[name]}" for name, n in lines.most_common()), sep="\n")
    print(f"functions that take `script`: {takers}; arrows that run up: {len(up)}", *up, sep="\n  ")
    print(*(f"circle: {len(g)} modules, as {min(g)}" for g in groups), sep="\n")
    for what, file, mark in (
        (
            "options",
            "turns/options.py",
            r"^    \w+: .* = (?:compaction|context|model|manners|life)\(",
        ),
        ("settings", "conf.py", r'^    "\w+": Setting\('),
        ("names in the face", "__init__.py", r'^        "\w+": "'),
    ):
        print(f"{what}: {len(re.findall(mark, texts[PACKAGE / file], re.MULTILINE))}")


if __name__ == "__main__":
    main()
