"""Started games on one PostgreSQL: two that share a memory."""

import unittest

import pytest

from evennia_ai import processes
from tests import postgres
from tests.e2e.game import Game

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

SETTINGS = """
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "{database}", "USER": "{user}", "HOST": "{host}",
}}}}
EVENNIA_AI_MEM0_CONFIG = {{
    "vector_store": {{"provider": "pgvector", "config": {{"connection_string": "{memory}"}}}}
}}
"""
BEES = "my brother Osric keeps bees behind the chapel"
TOLL = "the toll at the mill bridge is seven silver for a cart"
LATER = "the miller Tobias hid a ruby crown under the old well"


@unittest.skipIf(postgres.why_no_vector(), postgres.why_no_vector())
class TestSeveralServers(unittest.TestCase):
    def setUp(self):
        self.server = postgres.Server()
        self.addCleanup(self.server.stop)

    def game(self, database, start=True):
        """A game on a database of the server; all share the memory's."""
        settings = SETTINGS.format(
            database=database,
            user=postgres.USER,
            host=self.server.folder,
            memory=self.server.url(),
        )
        game = Game(settings=settings, start=start)
        self.enterContext(game)
        return game

    def found(self, player, words):
        """What a search of memory shows, without the line that repeats the words."""
        player.ask(f"aimemory Aria = {words}", r"best first \(\d+\):|knows nothing of `[^`]*`", 30)
        return player.drain(1.0)

    def assert_known(self, player, said):
        """Wait until a search finds what was said: recall adds it after a while."""
        self.assertTrue(
            processes.wait_for(lambda: said[-20:] in self.found(player, said), 60), said
        )

    def test_two_games_share_a_memory(self):
        """Neither sees what is not its own; one is killed, the other goes on."""
        games = [self.game(name) for name in self.databases("tavern", "castle")]
        players = [game.admin(60) for game in games]
        for player, said in zip(players, (BEES, TOLL), strict=True):
            player.ask(f"say Aria, {said}.", r"Aria [a-z]+", 60)
        for player, said, other in ((players[0], BEES, TOLL), (players[1], TOLL, BEES)):
            self.assert_known(player, said)
            self.assertNotIn(other[-20:], self.found(player, other))
        games[0].kill_hard()
        players[1].ask(f"say Aria, {LATER}.", r"Aria [a-z]+", 60)
        self.assert_known(players[1], LATER)
        games[0].start()
        again = games[0].admin(60)
        self.assert_known(again, BEES)
        self.assertNotIn(LATER[-20:], self.found(again, LATER))
        for game in games:
            self.assertNotIn("Traceback", game.log())

    def databases(self, *names):
        """Make empty databases; returns their names."""
        for name in names:
            self.server.new_database(name)
        return names


if __name__ == "__main__":
    unittest.main()
