"""A real game whose Server, and at last whose machine, dies in the middle of what it does."""

import unittest

import pytest

from tests.e2e import kill_steps
from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.kill_game import SETTINGS, Tavern
from tests.e2e.kill_look import FAULTS
from tests.thoroughness import SHARE

pytestmark = pytest.mark.e2e

# With every example, every step: of the compaction, and of what takes back or turns pages.
COMPACTION = [*kill_steps.MASK, *kill_steps.EMERGENCY, *kill_steps.COMMITS]
OTHERS = [*kill_steps.ROLLBACK, *kill_steps.OTHERS]
if SHARE < 1:
    COMPACTION = ["draft summary", "emergency history", "commit history", "commit done"]
    OTHERS = [kill_steps.WITHDRAW, kill_steps.BEFORE_MARK, kill_steps.SECOND_WRITE]


class Killed(unittest.TestCase):
    """The Server dies before each step; at last Portal and Server die together."""

    def killed_at(self, tavern, step):
        """Live until the Server dies before a step, start it again, and look."""
        tavern.plan(step)
        self.assertTrue(tavern.live(step), "the Server was not killed")
        tavern.game.wait_for_death()
        found = tavern.start()
        self.assertNotIn("failed", found)
        self.assertEqual(found["notes"], [])
        self.assertEqual({name: found[name] for name in FAULTS}, dict.fromkeys(FAULTS, 0))
        self.assertEqual(tavern.faults_of_lines(found["lines"]), {"lost": [], "doubled": []})

    def look_from_outside(self, tavern):
        """Every line that was told is in the database once, and the proof is clean."""
        found = kept(tavern.game)
        self.assertEqual(found["violations"], [])
        self.assertEqual(found["doubled"], [])
        self.assertGreater(len(tavern.told), 8)
        self.assertEqual(
            {line: found["times"].get(line, 0) for line in tavern.told},
            dict.fromkeys(tavern.told, 1),
        )

    def killed_before(self, steps):
        """One game: killed before each step, then killed whole, started and looked at."""
        with Game(settings=SETTINGS, start=False) as game:
            (game.folder / "kill").mkdir()
            game.start()
            tavern = Tavern(game, seed=1)
            for step in steps:
                with self.subTest(step=step):
                    self.killed_at(tavern, step)
            tavern.talk()
            game.kill_hard()
            game.start()
            self.look_from_outside(tavern)
            player = game.admin()
            player.ask("compact/verify Aria", r"proven", 30)
            player.ask("say Aria, are you there?", r"Aria \w+", 60)
            player.ask("compact Aria", r"Aria compacted [1-9]", 60)
            player.close()


# Each in a class of its own: the games of a class run one after the other.


class TestCompaction(Killed):
    def test_killed(self):
        """Every line is kept once, and she goes on."""
        self.killed_before(COMPACTION)


class TestRollbackOrDream(Killed):
    def test_killed(self):
        """The same in a consolidation, and where the journal turns a page."""
        self.killed_before(OTHERS)
