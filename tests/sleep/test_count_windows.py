"""Compaction by count, through the tick: when it comes, what it takes, what it costs."""

import sys
import unittest

from evennia_ai.assistant.status import compaction_state
from evennia_ai.assistant.tick import run_tick
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.plan import is_extraction
from evennia_ai.sleep.compaction.triggers import count_fires, wants_compaction
from evennia_ai.testing import ScriptedModel, call, model_down
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

ALICE = Speaker("Alice", "o1.a")
TOLD = ("this", "much", "more", "those", "most", "other", "such", "only", "same", "own", "very")
TOLD += ("each", "both", "any", "all", "some", "no")
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
        return wait_for(run_tick(self.script, self.body))

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
        """The live messages that were said: neither markers nor of an extraction."""
        messages = self.script.history.messages()
        return [m for m in messages if not m.is_summary and not is_extraction(m)]

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
        noted = [record.result["compacted_messages"] for record in self.compactions()]
        self.assertEqual(sorted(set(noted)), [8, 18])


class TestStalls(CountTest):
    """A compaction by count is judged by what was to leave."""

    def alerts(self):
        return [said for kind, said in self.script.audits if kind == "log" and "in a row" in said]

    def compact(self, **options):
        return wait_for(compact_conversation_history(self.script, self.body, **options))

    def stopped(self):
        """An assistant whose count trigger has stopped: what circles said does not shrink."""
        world = self.world(
            immediate_window=4, recent_window=8, pre_compact_extraction_enabled=False
        )
        self.model.default = lambda request: (
            " ".join(f"They said {word} and that." for word in TOLD)
            if "secret" in str(request.messages)
            else "They talked of ale."
        )
        public = Message("user", LINE * 4)
        secrets = [
            Message("user", "a secret " * 49, audience=private([f"o{n}.x"])) for n in range(7)
        ]
        world.script.history.append([*secrets, *[public] * 6])
        for _ in range(3):
            self.assertFalse(world.script.state.stalled_by_count)
            self.assertTrue(count_fires(world.script))
            self.tick()
            world.script.history.append([public])
        return world

    def test_a_small_share_of_the_tokens_is_no_stall(self):
        """Eight of 200 are less than 5 % and all that was asked for: it goes on."""
        self.world(immediate_window=200, recent_window=8, pre_compact_extraction_enabled=False)
        self.hear(160)
        self.assertEqual(len(self.compactions()), (320 - 201) // 8)
        self.assertLess(self.compactions()[-1].result["reduction_pct"], 5)
        self.assertLessEqual(len(self.live()), 209)
        self.assertEqual(self.alerts(), [])

    def test_too_little_leaves(self):
        """Where most of what was to leave stays, three times in a row, it stops and says so."""
        world = self.stopped()
        left = [record.result["compacted_messages"] for record in self.compactions()]
        self.assertEqual(left, [1, 1, 1])
        self.assertTrue(world.script.state.stalled_by_count)
        self.assertEqual(len(self.alerts()), 1)
        self.assertIn("by count", compaction_state(world.script))
        world.restart()
        self.script = world.script
        self.model.requests.clear()
        self.tick()
        self.assertEqual(self.model.requests, [])

    def test_others_go_on(self):
        """The triggers by tokens are not stopped by that; what they free ends it."""
        world = self.stopped()
        self.assertFalse(world.script.state.stalled_out)
        world.configure(immediate_window=None, recent_window=None)
        self.assertEqual(compaction_state(world.script), "on")
        world.script.history.append([Message("user", LINE)] * 40)
        self.assertTrue(wants_compaction(world.script, 0.01))
        world.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.assertTrue(self.compact()["success"])
        self.assertEqual(world.script.state.stalls_by_count, 0)

    def test_failures_count(self):
        """Three by count that give no summary stop the count trigger, and it alone."""
        world = self.world(immediate_window=8, recent_window=8)
        world.script.history.append([Message("user", LINE)] * 40)
        self.model.default = model_down()
        for _ in range(6):
            self.tick()
        self.assertEqual(len(self.alerts()), 1)
        self.assertEqual((world.script.state.stalls_by_count, world.script.state.stalls), (3, 0))
        self.model.default = self.answer
        self.assertTrue(self.compact(force=True)["success"])
        self.assertEqual(world.script.state.stalls_by_count, 0)


class TestIdle(CountTest):
    """What the count costs where nothing happens."""

    def steps(self, messages):
        """Function calls of an idle tick with so many live messages."""
        world = self.world(immediate_window=400, recent_window=400)
        world.script.history.append([Message("user", LINE)] * messages)
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
        line = Message("user", LINE)
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
