"""Compaction by count, through the tick: when it comes, what it takes, what it costs."""

import sys
import unittest

from evennia_ai.core.compaction import is_extraction
from evennia_ai.core.messages import is_summary
from evennia_ai.testing import ScriptedModel, call
from evennia_ai.tick import run_tick
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

ALICE = {"key": "Alice", "id": "o1.a"}
LINE = "line %s of ale and barrels and more talk about it all"


class CountTest(unittest.TestCase):
    """An assistant with two windows, and a model that says and notes what it is told to."""

    facts = 0

    def world(self, **config):
        self.noted = 0
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
        return wait_for(run_tick(self.script, self.body))

    def hear(self, lines, text=LINE):
        """So many lines, a tick after each."""
        for number in range(lines):
            event = {
                "id": f"line{len(self.script.history.messages())}.{self.noted}.{number}",
                "channel": "say",
                "content": text % number,
                "speaker": ALICE,
            }
            self.script.runtime.hear(event, self.script.now())
            self.tick()

    def calls(self, purpose):
        return sum(request.purpose == purpose for request in self.model.requests)

    def live(self):
        """The live messages that were said: neither markers nor of an extraction."""
        messages = self.script.history.messages()
        return [m for m in messages if not is_summary(m) and not is_extraction(m)]

    def compactions(self):
        return self.script.history.compactions()


class TestExtraction(CountTest):
    """What an extraction adds to the history fires nothing."""

    facts = 4

    def test_it_does_not_feed_on_itself(self):
        """However much is noted before each, so many come as the talk calls for, and no more."""
        self.world(immediate_window=8, recent_window=8)
        self.hear(60)
        self.assertEqual(len(self.compactions()), (60 * 2 - 9) // 8)
        self.assertEqual(self.calls("pre_compaction"), 5 * len(self.compactions()))
        self.assertLessEqual(len(self.live()), 17)
        self.assertFalse(self.script.state.stalled_out)
        self.model.requests.clear()
        for _ in range(20):
            self.tick()
        self.assertEqual(self.model.requests, [])

    def test_it_leaves_with_the_talk(self):
        """Its calls and results do not pile up: they leave with what was said around them."""
        self.world(immediate_window=8, recent_window=8)
        self.hear(60)
        saved = [m for m in self.script.history.messages() if is_extraction(m)]
        self.assertLessEqual(len(saved), 3 * 10)
        noted = [record["result"]["compacted_messages"] for record in self.compactions()]
        self.assertEqual(sorted(set(noted)), [8, 18])


class TestIdle(CountTest):
    """What the count costs where nothing happens."""

    def steps(self, messages):
        """Function calls of an idle tick with so many live messages."""
        world = self.world(immediate_window=400, recent_window=400)
        world.script.history.append([{"role": "user", "content": LINE}] * messages)
        self.tick()
        calls = []
        sys.setprofile(lambda frame, event, argument: calls.append(event))
        try:
            self.tick()
        finally:
            sys.setprofile(None)
        return len(calls)

    def test_the_same_at_any_length(self):
        """An idle tick goes through no message: with 600 it takes as many steps as with six."""
        self.assertLess(abs(self.steps(606) - self.steps(6)), 600)

    def test_counted_anew_when_something_changes(self):
        """A message more, or a smaller window, and it fires."""
        world = self.world(immediate_window=8, recent_window=8)
        line = {"role": "user", "content": LINE}
        world.script.history.append([line] * 16)
        self.tick()
        self.assertEqual(len(self.compactions()), 0)
        world.script.history.append([line])
        self.tick()
        self.assertEqual(len(self.compactions()), 1)
        self.tick()
        self.assertEqual(len(self.compactions()), 1)
        world.configure(immediate_window=4, recent_window=4)
        self.tick()
        self.assertEqual(len(self.compactions()), 2)
