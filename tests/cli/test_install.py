"""Joining an existing game: what is edited, what is refused."""

import ast
import tempfile
import unittest
from pathlib import Path

import evennia

from evennia_ai.cli.install import (
    APP_LINE,
    CMDSET_LINE,
    URL_LINE,
    install,
    with_app,
    with_cmdset,
    with_url,
)
from evennia_ai.errors import ConfigError

TEMPLATE = Path(evennia.__file__).parent / "game_template"
FILES = ("server/conf/settings.py", "commands/default_cmdsets.py", "web/urls.py")


class TestInstall(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in FILES:
            text = (TEMPLATE / name).read_text().replace("{servername}", '"old"')
            self.write(name, text)
        self.said = []

    def write(self, name, text):
        """A file of the game."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def texts(self):
        """What the three files hold now."""
        return [(self.folder / name).read_bytes() for name in FILES]

    def run_install(self, apply=False):
        """Install, and return what was shown."""
        self.said.clear()
        install(self.folder, apply=apply, say=self.said.append)
        return "\n".join(self.said)

    def test_shown_and_applied(self):
        """Without `apply` a diff is shown; a second run changes nothing; the old text is kept."""
        before = self.texts()
        shown = self.run_install()
        for line in (APP_LINE, CMDSET_LINE, URL_LINE):
            self.assertTrue(any(row.startswith("+") and line in row for row in shown.splitlines()))
        self.assertEqual(self.texts(), before)
        self.run_install(apply=True)
        after = self.texts()
        self.assertIn("already", self.run_install(apply=True))
        self.assertEqual(self.texts(), after)
        backups = [(self.folder / f"{name}.before-evennia-ai").read_bytes() for name in FILES]
        self.assertEqual(backups, before)

    def test_line_ends_of_windows_stay(self):
        """A file with CRLF line ends has only those afterwards."""
        path = self.folder / FILES[1]
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        self.run_install(apply=True)
        raw = path.read_bytes()
        self.assertEqual(raw.count(b"\n"), raw.count(b"\r\n"))
        self.assertIn(CMDSET_LINE.encode(), raw)

    def test_one_bad_file_stops_all_three(self):
        """If one file cannot be understood, the others stay untouched as well."""
        (self.folder / "web/urls.py").write_text("def broken(:\n")
        before = self.texts()
        with self.assertRaisesRegex(ConfigError, "urls.py.*by hand"):
            self.run_install(apply=True)
        self.assertEqual(self.texts(), before)

    def split(self):
        """Settings in modules, command sets elsewhere, URLs of its own."""
        self.write("server/conf/base.py", "from evennia.settings_default import *\n")
        urls = 'ROOT_URLCONF = "web.pages.urls"\n'
        self.write(FILES[0], f"from .base import *\nfrom server.conf.titles import *\n{urls}")
        names = 'CMDSET_CHARACTER = "commands.sets.People"\nROOT_URLCONF = "web.old.urls"\n'
        self.write("server/conf/titles.py", names)
        method = "    def at_cmdset_creation(self):\n        pass\n"
        self.write("commands/sets.py", f"class People(C):\n{method}")
        self.write("web/pages/urls.py", "urlpatterns = []\n")

    def test_a_changed_layout(self):
        """Split settings, another command set and other URLs are found and edited."""
        self.split()
        self.run_install(apply=True)
        self.assertIn(APP_LINE, (self.folder / "server/conf/settings.py").read_text())
        self.assertIn(CMDSET_LINE, (self.folder / "commands/sets.py").read_text())
        self.assertIn(URL_LINE, (self.folder / "web/pages/urls.py").read_text())
        self.assertIn("already", self.run_install(apply=True))

    def test_what_was_added_elsewhere_counts(self):
        """A line that the installer asked for is not asked for again, wherever it was put."""
        self.split()
        self.write("commands/sets.py", "from commands.people import People\n")
        with self.assertRaisesRegex(ConfigError, "sets.py.*AssistantCmdSet"):
            self.run_install(apply=True)
        package = ".venv/lib/python3.13/site-packages/evennia_ai/commands.py"
        self.write(package, "class AssistantCmdSet(CmdSet):\n    pass\n")
        with self.assertRaisesRegex(ConfigError, "sets.py.*AssistantCmdSet"):
            self.run_install(apply=True)
        self.write("commands/people.py", "x.add(evennia_ai.commands.AssistantCmdSet)\n")
        for line in (
            'INSTALLED_APPS += ("evennia_ai",)',
            'INSTALLED_APPS += ["evennia_ai.apps.EvenniaAiConfig"]',
            "INSTALLED_APPS.append('evennia_ai')",
        ):
            self.write("server/conf/base.py", f"# ours: \n{line}\n")
            shown = self.run_install()
            self.assertNotIn("settings.py", shown)
            self.assertNotIn("sets.py", shown)
            self.assertIn("urls.py", shown)

    def test_what_is_evennia_s_own(self):
        """What no game may edit is named, with the line to add elsewhere."""
        settings = (self.folder / FILES[0]).read_text()
        for line, added in (
            ('ROOT_URLCONF = "evennia.web.urls"', "urlpatterns"),
            ('CMDSET_CHARACTER = "evennia.x.Y"', "AssistantCmdSet"),
        ):
            self.write(FILES[0], f"{settings}\n{line}\n")
            before = self.texts()
            with self.assertRaisesRegex(ConfigError, f"by hand: .*{added}"):
                self.run_install(apply=True)
            self.assertEqual(self.texts(), before)

    def test_a_missing_file_is_refused_in_plain_words(self):
        """The message names the file and the line it should hold."""
        (self.folder / "commands/default_cmdsets.py").unlink()
        with self.assertRaisesRegex(ConfigError, "default_cmdsets.py.*AssistantCmdSet"):
            self.run_install()


class TestEdits(unittest.TestCase):
    def test_what_is_not_understood_is_refused(self):
        """Another file's text, and a body on one line, to which nothing can be added cleanly."""
        method = "    def at_cmdset_creation(self): pass\n"
        for edit, text in (
            (with_app, "X = 1\n"),
            (with_cmdset, f"class CharacterCmdSet(C):\n{method}"),
            (with_url, "x = make()\n"),
        ):
            with self.subTest(text), self.assertRaises(ValueError):
                edit(text)

    def test_a_tuple_of_apps_stays_usable(self):
        """Apps set as a tuple are joined in a way that works for tuples."""
        names = {}
        exec(with_app('INSTALLED_APPS = ("django",)\n'), names)
        self.assertEqual(list(names["INSTALLED_APPS"]), ["django", "evennia_ai"])

    def test_the_right_class(self):
        """The line goes into the character's command set, with the indent of its method."""
        method = "(C):\n  def at_cmdset_creation(self):\n    pass\n"
        changed = with_cmdset("".join(f"class {c}{method}" for c in ("A", "CharacterCmdSet", "B")))
        start, end = changed.index("class CharacterCmdSet"), changed.index("class B")
        self.assertIn(f"\n    {CMDSET_LINE}\n", changed[start:end])

    def test_any_patterns_take_it(self):
        """Listed, computed or imported patterns all stay valid."""
        for text in (
            "from django.urls import include, path\nurlpatterns = []\n",
            "from django.urls import include, path\nurlpatterns = [path('', a)]\n",
            "from django.urls import include, path\nurlpatterns = [\n    path('', a)\n]\n",
            "urlpatterns = [ü, ä]\n",
            "urlpatterns = make()\n",
            "from mine.urls import urlpatterns\n",
            "from mine.urls import *\n",
        ):
            changed = with_url(text)
            ast.parse(changed)
            self.assertIn(URL_LINE, changed)
