"""README and docs name only modules, files and names that exist."""

import argparse
import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import yaml
from django.test import TestCase

from benchmarks.bench import LINES
from evennia_ai.cli.launcher import USAGE
from evennia_ai.cli.main import _parser
from evennia_ai.commands import all_commands
from evennia_ai.feature import listed_features, usable_tools
from scripts.write_config_docs import page
from tests import postgres

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evennia_ai"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FOLDERS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
TOP = ("evennia_ai/", "tests/", "scripts/", "benchmarks/", "docs/")
# Files that a page asks the reader to write in a game.
OF_A_READER = (
    "world/tools.py",
    "world/memory.py",
    "world/moderation.py",
    "typeclasses/assistants.py",
    "server/conf/secret_settings.py",
)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\w[\w/-]*/(?:[\w-]+\.\w+)?")
_MODULE = re.compile(r"\w[\w/.-]*/[\w-]+\.py")
_DOTTED = re.compile(r"evennia_ai(\.\w+)+")
_IMPORTED = re.compile(r"^from (evennia_ai[\w.]*) import (.+)$", re.MULTILINE)
_NAMES_IN_FILE = re.compile(r"`([\w/]+\.py)` \(((?:`\w+`(?:, )?)+)\)")
_HEADING = re.compile(r"^#+ (.*)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def quoted() -> list[tuple[str, str]]:
    """Every text between backticks outside code blocks, after the name of its page."""
    texts = [(page.name, _FENCED.sub("", page.read_text(encoding="utf-8"))) for page in PAGES]
    return [(name, found) for name, text in texts for found in _QUOTED.findall(text)]


def file_of(path: str) -> Path:
    """The file of a path from the root, or from the package."""
    return (ROOT if path.startswith(TOP) else PACKAGE) / path


def table_rows(text: str) -> list[str]:
    """The rows of a text's tables, without their heads and rules."""
    lines = text.splitlines()
    return [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("|") and not line.startswith("|--") and not after.startswith("|--")
    ]


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\- ]", "", heading).strip().lower())


def section(page: str, title: str) -> str:
    """The part of a page of the documentation under a heading of the second level."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    part = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert part is not None, title
    return part[1]


def exists_as_name(dotted: str) -> bool:
    """Whether a dotted name is a module or an attribute in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


class TestDocs(TestCase):
    """What the pages name is there."""

    def test_paths(self):
        """A quoted path exists, from the root, in the package or in the template."""
        paths = [
            (page, text)
            for page, text in quoted()
            if _MODULE.fullmatch(text)
            or (_PATH.fullmatch(text) and (text.startswith(TOP) or text.split("/")[0] in FOLDERS))
        ]
        self.assertGreater(len(paths), 40)
        folders = (ROOT, PACKAGE, ROOT / "game_template")
        missing = [
            (page, path)
            for page, path in paths
            if path not in OF_A_READER and not any((folder / path).exists() for folder in folders)
        ]
        self.assertEqual(missing, [])

    def test_dotted_names(self):
        """What is quoted of the package by a dotted name, or imported by a snippet, is there."""
        names = [(page, match[0]) for page, text in quoted() if (match := _DOTTED.match(text))]
        imports = [
            (page.name, f"{module}.{name.strip()}")
            for page in PAGES
            for module, names in _IMPORTED.findall(page.read_text(encoding="utf-8"))
            for name in names.split(",")
        ]
        self.assertGreater(min(len(names), len(imports)), 5)
        self.assertEqual([each for each in names + imports if not exists_as_name(each[1])], [])

    def test_names_in_files(self):
        """In `path.py` (`name`), the file holds the name."""
        wrong = [
            (page.name, path, name)
            for page in PAGES
            for path, names in _NAMES_IN_FILE.findall(page.read_text(encoding="utf-8"))
            for name in _QUOTED.findall(names)
            if not re.search(rf"\b{name}\b", file_of(path).read_text(encoding="utf-8"))
        ]
        self.assertEqual(wrong, [])

    def test_links(self):
        """A relative link leads to a file."""
        wrong = [
            (page.name, target)
            for page in PAGES
            for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
            if "://" not in target and not (page.parent / target).exists()
        ]
        self.assertEqual(wrong, [])

    def test_one_index(self):
        """The index leads to each page, and its table to the eleven on topics; headings exist."""
        pages = {path.name for path in PAGES} - {"README.md", "index.md"}
        index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"\]\((\w+\.md)\)", index)), pages)
        self.assertEqual(len(table_rows(section("index.md", "All pages"))), 11)
        headings = {page.name: set(map(slug, _HEADING.findall(prose(page)))) for page in PAGES}
        wrong = [
            (page.name, link)
            for page in PAGES
            for link in re.findall(r"\]\(((?:docs/)?\w*(?:\.md)?#[\w-]+)\)", prose(page))
            if link.partition("#")[2]
            not in headings[link.partition("#")[0].rpartition("/")[2] or page.name]
        ]
        self.assertEqual(wrong, [])

    def test_pictures(self):
        """Each picture is shown, and each that is shown is there."""
        shown = {name for page in PAGES for name in re.findall(r"\(images/(.+?)\)", prose(page))}
        self.assertEqual(shown, {path.name for path in (ROOT / "docs" / "images").iterdir()})

    def test_tools(self):
        """The page of tools lists those of the package."""
        rows = "\n".join(table_rows(section("developing.md", "Tools")))
        listed = re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)
        tools = usable_tools(listed_features())
        self.assertEqual(sorted(listed), sorted(tool.name for tool in tools))

    def test_options(self):
        """The page of options is what `python scripts/write_config_docs.py` would write now."""
        self.assertEqual((ROOT / "docs" / "config.md").read_text(encoding="utf-8"), page())

    def test_benchmarks(self):
        """Each benchmark in the table is a module, and each that has a goal stands there."""
        rows = table_rows(section("architecture.md", "Benchmarks"))
        names = [text.split()[0] for row in rows for text in _QUOTED.findall(row.split("|")[-2])]
        self.assertGreater(len(names), 10)
        missing = [name for name in names if not (ROOT / "benchmarks" / f"{name}.py").exists()]
        self.assertEqual(missing, [])
        self.assertEqual({command.split()[0] for _, command, *_ in LINES} - {*names}, set())

    def test_commands(self):
        """The tables name each command with each of its switches, and no other."""
        commands = all_commands()
        switches = {
            command.key: getattr(command, "known_switches", tuple)() for command in commands
        }
        switches |= dict.fromkeys(("say", "whisper", "page"), ())
        people = ("For players", "For builders", "For admins")
        rows = [row for title in people for row in table_rows(section("commands.md", title))]
        typed = [text for row in rows for text in _QUOTED.findall(row.split("|")[1])]
        self.assertGreater(len(typed), 40)
        last, wrong, named = "", [], set()
        for text in typed:
            name, _, switch = text.split()[0].partition("/")
            last = name or last  # `/reject` alone belongs to the command before it
            named.add(f"{last}/{switch}".rstrip("/"))
            if last not in switches or (switch and switch not in switches[last]):
                wrong.append(text)
        self.assertEqual(wrong, [])
        every = {f"{key}/{each}".rstrip("/") for key in switches for each in ("", *switches[key])}
        self.assertEqual(every - named, set())

    def test_one_name_for_one_thing(self):
        """Pages, help and the staff's pages say limit, compaction report and lost share."""
        paths = [*PAGES, *PACKAGE.glob("**/*.html")]
        texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
        texts |= {command.key: command.__doc__ for command in all_commands()}
        other = re.compile(
            r"\b(?:spend(?:ing)? caps?|receipts?|drift|retention rate|folded)\b", re.I
        )
        wrong = [(name, match[0]) for name, text in texts.items() for match in other.finditer(text)]
        self.assertEqual(wrong, [])

    def test_console_script(self):
        """The installation page names each command of `evennia-ai` and each of its options."""

        def typed(parser: argparse.ArgumentParser, name: str) -> set[str]:
            words = {name}
            for action in parser._actions:
                words |= {each for each in action.option_strings if each not in ("-h", "--help")}
                if isinstance(action, argparse._SubParsersAction):
                    for word, inner in action.choices.items():
                        words |= typed(inner, f"{name} {word}")
            return words

        every = typed(_parser(), "evennia-ai") | set(re.findall(r"^evennia ai \w+", USAGE, re.M))
        self.assertGreater(len(every), 15)
        page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
        self.assertEqual([each for each in sorted(every) if each not in page], [])

    def test_lines_to_install(self):
        """Lines to type install the clone: no package index has the package."""
        lines = [
            (page.name, line)
            for page in PAGES
            for line in page.read_text(encoding="utf-8").splitlines()
            if re.search(r"pip install '?evennia-ai(?!\[)", line)
        ]
        self.assertEqual(lines, [])

    def test_snippet_of_recall(self):
        """The snippet of the recall page runs, and finds the raven first."""
        text = section("architecture.md", "The recall index")
        snippet = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
        shown = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(shown):
            names = {}
            exec(snippet.replace("recall.sqlite", f"{folder}/recall.sqlite"), names)
            names["index"].close()
        self.assertTrue(shown.getvalue().splitlines()[0].endswith("A raven called Pepper."))

    def test_snippets_of_a_tool(self):
        """The developing page's tool passes the developing page's test."""
        text = (ROOT / "docs" / "developing.md").read_text(encoding="utf-8")
        modules = {"world": types.ModuleType("world")}
        with mock.patch.dict(sys.modules, modules):
            for name in ("tools", "tests"):
                snippet = re.search(rf"```python\n(# world/{name}.py.*?)```", text, re.DOTALL)[1]
                module = sys.modules[f"world.{name}"] = types.ModuleType(f"world.{name}")
                exec(snippet, module.__dict__)
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(module.TestRingBell).run(result)
        self.assertEqual((result.testsRun, result.errors, result.failures), (1, [], []))


class TestPostgres(unittest.TestCase):
    @unittest.skipIf(postgres.why_not(), postgres.why_not())
    def test_documented_command(self):
        """The section's command runs tests of two classes on PostgreSQL, and they pass."""
        text = section("install.md", "A larger game")
        command = re.search(r"`(make [\w-]*postgres)`", text)[1].split()
        odd, queries = "game/test_hardening.py::TestOddText", "history/test_archive.py::TestQueries"
        # What is installed stays; make's and pytest's own variables are those of this run.
        command += ["-o", f"{sys.prefix}/.evennia-ai-installed", f"VENV={sys.prefix}"]
        command += ["SPREAD=", f"TESTS=tests/{odd} tests/{queries}"]
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MAKE", "MFLAGS", "PYTEST_", "TEST_", "COV_"))
        }
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        self.assertIn("TEST_DATABASE=postgresql", done.stdout)
        self.assertRegex(done.stdout, r"\b[1-9]\d* passed")
        self.assertNotRegex(done.stdout, r"\b(?:skipped|failed|errors?)\b")


class TestCompose(unittest.TestCase):
    def test_every_server_is_for_this_machine(self):
        """The compose file is one, publishes no port to others, and holds no password."""
        services = yaml.safe_load((ROOT / "docs" / "compose.yaml").read_text())["services"]
        self.assertEqual(sorted(services), ["litellm", "postgres", "qdrant"])
        for name, service in services.items():
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), name)
            for variable, value in service["environment"].items():
                if any(word in variable for word in ("PASSWORD", "KEY")):
                    self.assertTrue(value.startswith("${"), variable)
