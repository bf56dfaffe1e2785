"""The game of the template, started for real and played over telnet."""

import json
import unittest
import urllib.request

import pytest

from evennia_ai.cli import run
from tests.e2e.game import Game

pytestmark = pytest.mark.e2e

_OBJECTS = """
import json
from evennia.objects.models import ObjectDB
print(json.dumps([o.key for o in ObjectDB.objects.order_by("id")]))
"""


class TestDemo(unittest.TestCase):
    """One game for all: starting it takes longer than any test."""

    @classmethod
    def setUpClass(cls):
        cls.game = Game()
        cls.enterClassContext(cls.game)

    def keys(self):
        """The names of everything in the game, from its database."""
        return json.loads(self.game.python(_OBJECTS).splitlines()[-1])

    def enter(self):
        """The owner, standing in the tavern."""
        player = self.enterContext(self.game.admin())
        player.send("@teleport/quiet me = #2")
        player.drain(0.5)
        return player

    def test_a_first_visitor_stands_before_aria(self):
        """A new account's character is in the tavern, and sees Aria and the way out."""
        player = self.enterContext(self.game.player("Mira"))
        self.assertIn("The Gilded Lantern", player.transcript)
        player.ask("look", r"Aria")
        self.assertNotIn("Traceback", player.transcript)

    def test_the_second_npc_has_a_life_of_his_own(self):
        """Odo, who walks from room to room, heeds his name wherever he is, without any model."""
        player = self.enter()
        player.send("@teleport/quiet/loc me = Odo Marrek")
        player.drain(1)
        player.ask("say Good morning, Odo.", r"Odo Marrek looks up")

    def test_a_player_gets_an_ale(self):
        """A player asks at the bar, has a mug in hand, pays with a coin, and cannot order her."""
        player = self.enterContext(self.game.player("Bram"))
        for line, shown in (
            ("get ale", r"Ask for an ale"),
            ("say Aria, give me an ale please", r"Aria gives you a mug of ale"),
            ("inventory", r"mug of ale"),
            ("look mug", r"two fingers of foam"),
            ("get coin", r"You pick up a copper coin"),
            ("give coin to Aria", r"You give a copper coin to Aria"),
            ("say Aria, go up", r"I can.t do that now, Bram"),
        ):
            player.ask(line, shown, 30)

    def test_starts_of_what_runs(self):
        """Where Portal lives without a Server that comes back; else nothing changes."""
        self.game.kill_server()
        self.assertFalse(self.game.start(timeout_s=90).started)
        self.enter().ask("look", r"Gilded Lantern")
        connection = self.game.start()
        self.assertFalse(connection.started)
        self.assertEqual(connection.password, self.game.environ[run.PASSWORD_VARIABLE])

    def test_a_restart(self):
        """A changed description stays, what was thrown away is gone, nothing is there twice."""
        player, before = self.enter(), self.keys()
        self.assertEqual((before.count("Aria"), before.count("Odo Marrek")), (1, 1))
        player.ask("@desc here = Repainted in blue.", r"description was set")
        player.ask("@destroy/force pewter tankard", r"destroyed")
        self.game.environ[run.PASSWORD_VARIABLE] = "another-horse-2"
        self.game.restart()
        player = self.enter()  # with the new password
        shown = player.ask("look", r"Exits")
        self.assertIn("Repainted in blue", shown)
        before.remove("pewter tankard")
        self.assertEqual(self.keys(), before)

    def test_what_an_owner_looks_at(self):
        """The web client is at its address, the doctor has no bad line, the logs no traceback."""
        url = f"http://127.0.0.1:{self.game.ports.webserver}/webclient/"
        with urllib.request.urlopen(url, timeout=20) as page:
            self.assertEqual(page.status, 200)
        self.assertIn("All is well", self.game.evennia("ai", "doctor"))
        for name in ("server.log", "portal.log"):
            self.assertNotIn("Traceback", self.game.log(name))

    def test_a_game_that_cannot_start_says_why(self):
        """A fault in the game's code ends in an error that shows it, not in waiting."""
        with Game(start=False) as game:
            path = game.folder / "typeclasses" / "npcs.py"
            path.write_text("import no_such_module_here\n", encoding="utf-8")
            with self.assertRaisesRegex(run.GameError, "no_such_module_here"):
                game.start(timeout_s=120)
