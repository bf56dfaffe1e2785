"""`evennia ai remove`: what is shown and asked before any assistant is deleted."""

import contextlib
import io
import subprocess
import tempfile
from pathlib import Path
from unittest.mock import patch

from django.test import override_settings

from evennia_ai.assistant_script import all_assistants
from evennia_ai.cards.books import Book, Fact
from evennia_ai.cli import launcher
from evennia_ai.cli.install import lines_left
from evennia_ai.game.lore import lore
from tests.base import AssistantTest


class TestRemoval(AssistantTest):
    """Aria stays unless somebody says yes, and while the game runs."""

    def setUp(self):
        super().setUp()
        self.game = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.game / "server").mkdir()
        self.enterContext(override_settings(GAME_DIR=str(self.game)))

    def run_main(self, *words, typed=""):
        """Exit code of ``evennia ai ...``, and what it printed."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), patch("sys.stdin", io.StringIO(typed)):
            try:
                launcher.main(*words)
            except SystemExit as ended:
                return ended.code, out.getvalue()
        raise AssertionError("it does not end the process")

    def assert_stays(self):
        self.assertEqual([script.obj.key for script in all_assistants()], ["Aria"])
        self.assertFalse((self.game / "server" / "ai_exports").exists())

    def test_it_asks(self):
        """Anything but a yes leaves all as it was, also where nobody can type."""
        for typed in ("", "\n", "no\n", "y\n", "yes please\n"):
            with self.subTest(typed):
                code, shown = self.run_main("remove", typed=typed)
                self.assertEqual(code, 1)
                self.assertIn("Assistants, with talk, memories and options: Aria.", shown)
                self.assertIn(str(self.game / "server" / "ai_exports"), shown)
                self.assertIn("Nothing was deleted", shown)
                self.assert_stays()

    def test_a_running_game_is_refused(self):
        """While Portal or Server runs nothing is deleted, asked or unasked."""
        for name in ("portal", "server"):
            with subprocess.Popen(["twistd", "60"], executable="/bin/sleep") as process:
                pid_file = self.game / "server" / f"{name}.pid"
                pid_file.write_text(str(process.pid))
                command = Path(f"/proc/{process.pid}/cmdline")
                while not command.read_bytes():  # empty for a moment, in the midst of its exec
                    self.assertIsNone(process.poll())
                try:
                    for words in (("remove",), ("remove", "--yes")):
                        with self.subTest(name, words=words):
                            code, shown = self.run_main(*words, typed="yes\n")
                            self.assertEqual(code, 1)
                            self.assertIn("The game is running", shown)
                            self.assert_stays()
                finally:
                    process.kill()
                    pid_file.unlink()

    def test_an_unknown_word_is_refused(self):
        """What is misspelt deletes nothing."""
        code, shown = self.run_main("remove", "--yess")
        self.assertEqual(code, 2)
        self.assertIn("evennia ai remove", shown)
        self.assert_stays()

    def test_what_is_shown(self):
        """All that would go is named, and where it is written."""
        lore().save(Book("town", (Fact(("fish",), "It is fresh.", id="w1"),)))
        self.aria.journal.add("Bob owns a boat.")
        _, shown = self.run_main("remove", typed="no\n")
        server = self.game / "server"
        for word in map(str, ("Aria", "town", server / "ai_exports", server / "ai_cards", "cost")):
            self.assertIn(word, shown)
        self.assert_stays()

    def test_the_lines_that_stay(self):
        """They are named with file and number; those of a virtual environment are not."""
        for name, text in (
            (
                "server/conf/settings.py",
                "A = 1\nINSTALLED_APPS = [*INSTALLED_APPS, 'evennia_ai']\n",
            ),
            ("world/tests.py", "    from evennia_ai import tests\n"),
            ("env/site-packages/x.py", "import evennia_ai\n"),
        ):
            path = self.game / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.assertEqual(
            [*lines_left(self.game)],
            [
                "server/conf/settings.py, line 2: INSTALLED_APPS = [*INSTALLED_APPS, 'evennia_ai']",
                "world/tests.py, line 1: from evennia_ai import tests",
            ],
        )
