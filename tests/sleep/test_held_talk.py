"""Private talk too short for a summary: what it means for the room that compaction has."""

import unittest

from evennia_ai.assistant.tick import check_emergency
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message
from evennia_ai.sleep.compaction.triggers import check_feasible, feasibility, kept_capacity
from evennia_ai.testing import ScriptedModel
from tests.memory_assistant import MemoryWorld
from tests.strategies import marker
from tests.waiting import wait_for

SUMMARY = "They talked of ale."


class HeldTest(unittest.TestCase):
    """One player, Alice, who spoke in confidence in many circles."""

    def world(self, **config):
        config = {"max_context_tokens": 8000, "pre_compact_extraction_enabled": False, **config}
        world = MemoryWorld(ScriptedModel(default=SUMMARY), **config)
        self.script, self.body, self.model = world.script, world.body, world.model
        check_feasible(self.script)

    def said(self, lines, words=60, audience=PUBLIC):
        line = Message("user", "word " * words, audience=audience)
        self.script.history.append([line] * lines)

    def circles(self, number, words):
        """Alice's own, and so many of hers with one other each, a line in each."""
        self.said(1, 2, private(["o1.a"]))
        for circle in range(number):
            self.said(1, words, private(["o1.a", f"o{circle}.z"]))

    def check(self):
        return wait_for(check_emergency(self.script, self.body))

    def alerts(self):
        return [s for kind, s in self.script.audits if kind == "log" and "can help" in s]


class TestSummariesSeen(HeldTest):
    """Room is kept for summaries that can come to be, and for no others."""

    def test_small_circles_need_no_room(self):
        """However many circles said a word, the room is that of the talk aloud alone."""
        self.world(max_context_tokens=16_000)
        self.said(1)
        alone = kept_capacity(self.script, 0.8)
        self.circles(40, words=2)
        self.assertEqual(kept_capacity(self.script, 0.8), alone)
        self.assertIsNone(feasibility(self.script))

    def test_a_circle_that_has_said_enough_does(self):
        """So does one with a summary, however little else it said."""
        self.world(max_context_tokens=16_000)
        self.said(1)
        alone = kept_capacity(self.script, 0.8)
        self.said(9, 10, private(["o1.a"]))
        enough = kept_capacity(self.script, 0.8)
        self.assertLess(enough, alone)
        summary = marker(private(["o1.a"]))
        self.script.history.replace([])
        self.script.history.append([summary])
        self.said(1)
        self.assertEqual(kept_capacity(self.script, 0.8), enough)


class TestHeldUp(HeldTest):
    """Where what is held back fills the context, no compaction follows at every message."""

    def test_no_loop_and_a_true_word(self):
        """It is tried once, then when the history has grown; staff hear what fills it."""
        self.world(compact_preserve_window=6)
        self.circles(70, words=60)
        self.said(8)
        self.assertTrue(self.check())
        self.model.requests.clear()
        for _ in range(6):
            self.said(1)
            self.assertFalse(self.check())
        self.assertEqual(self.model.requests, [])
        (alert,) = self.alerts()
        self.assertIn("71 older ones of private talk", alert)
        self.said(40, words=80)
        self.assertTrue(self.check())

    def test_nothing_held_nothing_said_of_it(self):
        """Where all is of the newest messages, the alert speaks of those."""
        self.world(compact_preserve_window=6)
        self.said(1, words=7000)
        self.assertFalse(self.check())
        (alert,) = self.alerts()
        self.assertNotIn("private", alert)
