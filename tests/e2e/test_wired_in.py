"""A game of Evennia's own template, wired in by `evennia-ai install`: its own tests pass."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pytest

from tests.e2e.game import REPOSITORY

EVENNIA = "from evennia.server.evennia_launcher import main; main()"
PACKAGE = "from evennia_ai.cli.main import main; main()"
# Evennia's template comes without tests: what an owner may have in `world/tests.py`.
TESTS = """
from evennia import create_object
from evennia.utils.test_resources import EvenniaTest


CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"


class TestWorld(EvenniaTest):
    def test_look(self):
        create_object(CHARACTER, key="Aria", location=self.room1)
        self.assertIn("Aria", self.char1.at_look(self.room1))
"""


@pytest.mark.e2e
class TestWiredIn(unittest.TestCase):
    """What an owner types in an existing game."""

    def run_in(self, folder, program, *arguments):
        """What a program prints; it must succeed."""
        command = [sys.executable, "-c", program, *arguments]
        # Evennia's launcher replaces the first entry with its own folder.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(REPOSITORY)))}
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_its_own_tests(self):
        """`evennia test --settings settings.py .` finds nothing wrong after the wiring."""
        base = Path(tempfile.mkdtemp(prefix="evennia-ai-wired-"))
        self.addCleanup(shutil.rmtree, base)
        self.run_in(base, EVENNIA, "--init", "mygame")
        game = base / "mygame"
        self.run_in(game, PACKAGE, "install", "--apply")
        self.run_in(game, EVENNIA, "migrate")
        (game / "world" / "tests.py").write_text(TESTS)
        shown = self.run_in(game, EVENNIA, "test", "--settings", "settings.py", ".")
        self.assertIn("Ran 1 test", shown)
