"""A game that an older version stored is loaded by this one, and everybody talks on."""

import tarfile
import unittest

import pytest

from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.stored import PERSONA, SAID, STORED, WANTS
from tests.e2e.telnet import Telnet

pytestmark = pytest.mark.e2e


class TestUpgrade(unittest.TestCase):
    """Install, talk, upgrade, talk."""

    def test_a_game_of_each_release(self):
        """History, summaries, memories, notes and options are there, and new talk is kept."""
        archives = sorted(STORED.glob("*.tar.xz"))
        self.assertTrue(archives)
        for archive in archives:
            with self.subTest(stored_by=archive.name.removesuffix(".tar.xz")):
                self.play_on(archive)

    def play_on(self, archive):
        """Load a stored game, look for everything, talk, compact."""
        with Game(start=False) as game:
            with tarfile.open(archive) as stored:
                stored.extractall(game.folder / "server", filter="data")
            game.start()
            before = kept(game)
            self.assertEqual((before["violations"], before["doubled"]), ([], []))
            heard = [line.partition(" = ")[2] or line.removeprefix("say ") for _, line in SAID]
            self.assertEqual(
                {line: before["times"].get(line) for line in heard}, dict.fromkeys(heard, 1)
            )
            admin, alice = game.admin(60), Telnet(game.ports.telnet, timeout_s=60)
            self.addCleanup(admin.close)
            self.addCleanup(alice.close)
            alice.login("Alice", "quite-a-long-1")
            alice.ask("say Aria, what is my boat called?", r"Aria says[^\n]*Heron")
            alice.ask("ai/me Aria", WANTS)
            admin.ask("aiconfig Aria persona", PERSONA)
            admin.ask("aimemory Aria = miller", "nine sacks")
            admin.ask("compact/verify Aria", "proven")
            alice.ask("say Aria, remember that my horse is called Ash.", "Aria says")
            alice.ask("say Aria, what is my horse called?", r"Aria says[^\n]*Ash")
            admin.ask("compact Aria", r"Aria compacted [1-9]")
            admin.ask("compact/verify Aria", "proven")
            after = kept(game)
            self.assertEqual((after["violations"], after["doubled"]), ([], []))
            lost = [line for line, n in before["times"].items() if after["times"].get(line, 0) < n]
            self.assertEqual(lost, [])
