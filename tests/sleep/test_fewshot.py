"""The preset for base models: count triggers, short memories, completion prompts, experiences."""

from dataclasses import replace

from evennia_ai.history.archive import UNSUMMARISED
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.options import FEWSHOT_PROMPT, PRESETS
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.turns.runtime import Group
from tests import loopback
from tests.base import AssistantTest
from tests.steps import verify_history
from tests.waiting import wait_for
from tests.wire_case import WireTest

LINE = Message("user", "a line of talk " * 3)
WINDOWS = ("immediate_window", "recent_window", "compact_preserve_window")
WINDOW = 8  # here, as each line takes a tick


class TestCountTrigger(AssistantTest):
    """Two windows of as many messages, 64 in the preset."""

    default = "They talked by the fire."

    def setUp(self):
        super().setUp()
        self.assertEqual({PRESETS["fewshot"][name] for name in WINDOWS}, {64})
        small = dict.fromkeys(WINDOWS, WINDOW)
        self.configure(**{**PRESETS["fewshot"], **small}, compact_background=False)

    def fired(self, lines):
        """The numbers of the public lines at which a compaction came."""
        fired = []
        for number in range(1, lines + 1):
            self.script.history.append([LINE])
            before = self.script.history.segment_count()
            self.tick()
            if self.script.history.segment_count() > before:
                fired.append(number)
        return fired

    def test_fires_at_the_third_window(self):
        """It folds a window each time more than two are live, counting no markers."""
        fired = [2 * WINDOW + 1, 3 * WINDOW + 1, 4 * WINDOW + 1]
        self.assertEqual(self.fired(4 * WINDOW + 3), fired)
        raw = [m for m in self.script.history.messages() if not m.is_summary]
        self.assertEqual(len(raw), WINDOW + 3)
        self.assertEqual(self.model.requests[0].messages[0]["content"], FEWSHOT_PROMPT)

    def test_a_few_whispers_leave_without_a_summary(self):
        """All lines count, and those of people who whispered a few words are archived first."""
        for circle in range(8):
            whisper = Message("user", "between us", audience=private([f"o{circle}"]))
            self.script.history.append([whisper] * 3)
        self.assertEqual(
            self.fired(3 * WINDOW + 1), [1, WINDOW + 1, 2 * WINDOW + 1, 3 * WINDOW + 1]
        )
        records = self.script.history.summaries()
        alone = [r for r in records if r.tier == UNSUMMARISED]
        self.assertEqual(sum(len(r.source_ids) for r in alone), 24)
        self.assertEqual({r.audience for r in records if r not in alone}, {PUBLIC})
        self.assertNotIn("between us", str([request.messages for request in self.model.requests]))
        self.assertEqual(verify_history(self.script), ())

    def test_memories_come_back(self):
        """A summary is indexed once, and comes back when it fits."""
        self.model.default = "Bram swore to mend the mill wheel."
        self.script.history.append([LINE] * (2 * WINDOW + 1))
        self.tick()
        found = wait_for(self.script.memory.search(Query("mend the mill wheel")))
        self.assertEqual([hit.kind for hit in found], ["summary"])
        self.model.default = "They sang."
        self.script.history.append([LINE] * WINDOW)
        self.tick()
        asked = Message("user", "who swore to mend the wheel of the mill", channel="say")
        by = Speaker("Char", "o1.x")
        (event,) = self.script.history.append([replace(asked, speaker=by)])
        wait_for(self.script.think(Group("public", (event,))))
        self.assertIn("Related past experience", str(self.model.requests[-1].messages))
        self.assertIn("Bram swore", str(self.model.requests[-1].messages))


class TestCompletion(WireTest):
    """Base models over the completions interface."""

    def respond(self, body):
        return loopback.text(" Well met, traveller.\nChar: and you?")

    def test_tick_and_summary(self):
        """A tick's prompt ends with her opened line; a summary's ends with `SUMMARY:`."""
        self.configure(llm_api="completion", max_context_tokens=8000)
        self.say("Good evening, Aria")
        self.tick()
        body = self.server.bodies[-1]
        self.assertNotIn("messages", body)
        self.assertTrue(body["prompt"].endswith('\nChar says: "Good evening, Aria"\nAria says: "'))
        self.assertEqual(body["stop"], ['"', "\n"])
        self.assertNotRegex(body["prompt"], r"\[o\d")
        self.assertIn("Well met, traveller.", self.contents()[-1][1])
        self.fill(40, words=20)
        result = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(result["success"])
        self.assertTrue(self.server.bodies[-1]["prompt"].endswith("SUMMARY:"))
