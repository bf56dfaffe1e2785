"""The tutorial, played as a reader plays it: commands and answers come out of the page."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pytest

from evennia_ai import processes
from evennia_ai.cli import run
from tests.e2e.game import REPOSITORY, environment
from tests.e2e.telnet import Telnet

pytestmark = pytest.mark.e2e

PAGE = REPOSITORY / "docs" / "tutorial.md"
PROGRAM = "from evennia_ai.cli.main import main; raise SystemExit(main())"
# What was typed before a test can run.
INSTALLATION = (
    "git clone <this repository> evennia_ai && cd evennia_ai",
    "python3 -m venv .venv && . .venv/bin/activate",
    "pip install .",
)
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PASSWORD = re.compile(r"Password: +(\S+)")


def blocks():
    """The page's blocks up to the chapter on other models: their kind, and their lines."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## With a language model")[0]
    return [(kind, block.splitlines()) for kind, block in _BLOCK.findall(text)]


def pattern(line):
    """The expression for a line of the page, in which `…` stands for anything."""
    return "[^\n]*".join(map(re.escape, line.strip().split("…")))


class TestTutorial(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix="evennia-ai-tutorial-"))
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.environ = environment(self.base, {})
        del self.environ[run.PASSWORD_VARIABLE]
        self.addCleanup(processes.kill, self.base / "mygame")
        self.shown, self.password, self.player = "", "", None

    def test_as_a_reader_plays_it(self):
        """Each command of the page is typed, and each line that it shows is seen, in this order."""
        typed = 0
        for kind, lines in blocks():
            for line in lines:
                if kind == "sh":
                    self.type_in_shell(line)
                elif line.startswith("> "):
                    self.type_in_game(line[2:])
                    typed += 1
                elif self.player:
                    self.player.read_until(pattern(line), 60)
                else:
                    self.see_in_shell(line)
        self.assertGreater(typed, 20)
        self.assertFalse(processes.is_running(self.base / "mygame"))

    def type_in_shell(self, line):
        """Run a line of the page, unless it was run before."""
        program, *arguments = line.split()
        if program == "telnet":
            self.assertEqual(arguments, ["localhost", "4000"])
            self.player = self.enterContext(Telnet(self.environ["TELNET_PORT"], timeout_s=60))
            self.player.read_until("connect <username> <password>")
        elif program == "evennia-ai":
            command = [sys.executable, "-c", PROGRAM, *arguments]
            done = subprocess.run(
                command, cwd=self.base, env=self.environ, capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.shown = done.stdout
        else:
            self.assertIn(line, INSTALLATION)

    def type_in_game(self, line):
        """Type a line of the page in the game, with the password that the game has."""
        self.player.drain(0.2)
        self.player.send(line.replace("<password>", self.password))

    def see_in_shell(self, line):
        """Find a line of the page in what the last program printed, and read on behind it."""
        ports = (("4000", "TELNET_PORT"), ("4001", "WEBSERVER_PORT"))
        for port, variable in ports:
            line = line.replace(port, self.environ[variable])
        found = re.search(pattern(line), self.shown)
        self.assertIsNotNone(found, f"no `{line}` in: {self.shown}")
        self.shown = self.shown[found.end() :]
        if password := _PASSWORD.search(found[0]):
            self.password = password[1]
