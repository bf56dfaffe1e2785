"""Compaction by count, through the tick: when it comes, what it takes, what it costs."""

import unittest

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.testing import ScriptedModel, call
from evennia_ai.turns.tick import Tick
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

ALICE = Speaker("Alice", "o1.a")
LINE = "line %s of ale and barrels and more talk about it all"


class CountTest(unittest.TestCase):
    """An assistant with two windows, and a model that says and notes what it is told to."""

    facts = 0

    def world(self, **config):
        self.noted = 0
        config = {"compact_background": False, **config}
        model = ScriptedModel(default=self.answer)
        world = MemoryWorld(model, reply_cooldown_s=0, sleep_after_idle_s=None, **config)
        self.script, self.body, self.model, self.later = (
            world.script,
            world.body,
            world.model,
            world.later,
        )
        return world

    def answer(self, request):
        """So many facts in each extraction, and a word for all else."""
        if request.purpose == "pre_compaction":
            self.noted += 1
            if self.noted % (self.facts + 1):
                return call("add_journal_entry", content=f"Town {self.noted} sells barrels.")
            return call("noop")
        return "Aye." if request.purpose == "awake" else "They talked of ale."

    def tick(self):
        self.later(60)
        return wait_for(Tick(self.script).run())

    def hear(self, lines, text=LINE):
        """So many lines, a tick after each."""
        for number in range(lines):
            event = Message(
                "user",
                text % number,
                id=f"line{len(self.script.history.messages())}.{self.noted}.{number}",
                channel="say",
                speaker=ALICE,
            )
            self.script.runtime.hear(event, self.script.now())
            self.tick()

    def calls(self, purpose):
        return sum(request.purpose == purpose for request in self.model.requests)

    def live(self):
        """The live messages that were said."""
        return [m for m in self.script.history.messages() if not m.is_summary]

    def compactions(self):
        return self.script.history.compactions()


class TestExtraction(CountTest):
    """What an extraction notes fires nothing."""

    facts = 4

    def test_it_does_not_feed_on_itself(self):
        """However much is noted before each, so many come as the talk calls for, and no more."""
        self.world(immediate_window=8, recent_window=8)
        self.hear(60)
        self.assertEqual(len(self.compactions()), (60 * 2 - 9) // 8)
        self.assertEqual(self.calls("pre_compaction"), 5 * len(self.compactions()))
        first, *others = [r.report.compacted_messages for r in self.compactions()]
        self.assertEqual((first, set(others)), (9, {8}))
        self.assertLessEqual(len(self.live()), 17)
        self.assertEqual({m.role for m in self.live()}, {"user", "assistant"})
        self.model.requests.clear()
        for _ in range(20):
            self.tick()
        self.assertEqual(self.model.requests, [])


class TestAsleep(CountTest):
    """A night in which only the count fires."""

    def test_its_own_windows(self):
        """Just those lines leave for which there is a window."""
        self.world(immediate_window=30, recent_window=20, compact_preserve_window=4)
        self.script.history.append(Message("user", LINE % n, speaker=ALICE) for n in range(51))
        report = wait_for(run_sleep_tick(self.script, self.body))
        self.assertEqual(report["context_compaction"]["compacted_messages"], 20)
        (record,) = self.compactions()
        self.assertEqual(record.trigger, "count")
