"""Compaction of the conversation history, on a real script and character."""

from unittest.mock import patch

from twisted.internet.defer import fail

from evennia_ai.errors import StoreError
from evennia_ai.history.archive import absorbed_by
from evennia_ai.history.messages import SUMMARY_TITLE, SYNTHESIS_TITLE, Message
from evennia_ai.llm_interaction import DEFAULT_COMPACTION_PROMPT
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.testing import call
from tests.asked import model_down
from tests.base import AssistantTest, label
from tests.waiting import wait_for

SUMMARY = "They talked of the harvest."


class CompactionTest(AssistantTest):
    """Helpers for the classes below."""

    default = SUMMARY

    def compact(self, **options):
        return wait_for(compact_conversation_history(self.script, self.aria, **options))


class TestCompactConversationHistorySkips(CompactionTest):
    """When there is nothing to do it says why and asks no model."""

    def assert_skipped(self, result, reason):
        self.assertTrue(result["skipped"])
        self.assertIn(reason, result["reason"])
        self.assertEqual(self.model.requests, [])

    def test_disabled(self):
        """Switched off it does nothing, forced or not."""
        self.fill(40)
        self.configure(compact_enabled=False)
        self.assert_skipped(self.compact(), "compaction disabled")
        self.assert_skipped(self.compact(force=True), "compaction disabled")

    def test_no_history(self):
        """An empty history needs none."""
        self.assert_skipped(self.compact(force=True), "no history")

    def test_below_threshold(self):
        """Below the threshold it names both shares."""
        self.fill(40)
        result = self.compact()
        self.assert_skipped(result, "below threshold")
        self.assertRegex(result["reason"], r"below threshold \(\d+\.\d% < 70\.0%\)")

    def test_within_window(self):
        """Forcing does not touch the newest messages."""
        self.fill(20)
        self.assert_skipped(self.compact(force=True), "history within preserve window")


class TestCompactConversationHistoryExecution(CompactionTest):
    """What a compaction does to history, archive and records."""

    def test_result(self):
        """The figures it returns are those of the stored history."""
        self.fill(50)
        before = self.script.history.tokens()
        result = self.compact(force=True)
        self.assertTrue(result["success"])
        self.assertFalse(result["skipped"])
        self.assertEqual((result["compacted_messages"], result["preserved_messages"]), (30, 20))
        self.assertEqual(result["original_tokens"], before)
        self.assertEqual(result["new_tokens"], self.script.history.tokens())
        self.assertLess(result["new_tokens"], before)
        self.assertEqual(result["level"], "main")

    def test_marker_and_newest(self):
        """The history begins with the summary, behind it the newest messages as they were."""
        stored = self.fill(50)
        result = self.compact(force=True)
        marker, *rest = map(Message.from_dict, self.script.db.conversation_history)
        self.assertEqual(marker.role, "system")
        self.assertTrue(marker.content.startswith(SUMMARY_TITLE))
        self.assertEqual(marker.metadata["type"], "compaction")
        self.assertEqual(marker.metadata["compacted_count"], 30)
        self.assertEqual(marker.metadata["summary_id"], result["summary_id"])
        self.assertEqual(marker.metadata["source_ids"], [m.id for m in stored[:30]])
        self.assertEqual([m.id for m in rest], [m.id for m in stored[30:]])

    def test_request_is_prompt_and_messages(self):
        """Another model gets the prompt, and the messages that leave, and nothing else."""
        self.fill(50)
        self.configure(compact_model="scripted/other")
        self.compact(force=True, instructions="names of ships")
        (request,) = self.model.requests
        system, user = request.messages
        self.assertEqual((system["role"], user["role"]), ("system", "user"))
        self.assertIn(DEFAULT_COMPACTION_PROMPT, system["content"])
        self.assertIn("names of ships", system["content"])
        self.assertIn(f"line {label(29)}:", user["content"])
        self.assertNotIn(f"line {label(30)}:", user["content"])

    def markers(self):
        return [m.metadata for m in self.script.history.messages() if m.metadata.get("type")]

    def test_recent_waterfalls_into_long(self):
        """A second compaction makes a new recent summary; the first goes into the long-term."""
        self.fill(50)
        first = self.compact(force=True)
        self.fill(20)
        second = self.compact(force=True)
        long, recent = self.markers()
        self.assertEqual((long["tier"], long["compacted_count"]), ("long", 30))
        self.assertEqual(long["source_ids"], [first["summary_id"]])
        self.assertEqual((recent["tier"], recent["compacted_count"]), ("recent", 20))
        self.assertEqual(recent["summary_id"], second["summary_id"])
        above = absorbed_by(self.script.history.summaries())
        self.assertEqual(above, {first["summary_id"]: long["summary_id"]})

    def test_no_summary_no_change(self):
        """If no level gives a summary everything stays as it was."""
        self.fill(50)
        before = self.script.history.messages()
        self.model.default = model_down()
        result = self.compact(force=True)
        self.assertFalse(result["success"])
        self.assertEqual(result["error"], "summary generation failed")
        self.assertEqual(self.script.history.messages(), before)


class TestCompactConversationHistoryJournal(CompactionTest):
    """The synthesis entry."""

    def test_synthesis(self):
        """A compaction leaves a synthesis in the journal, important and tagged."""
        self.fill(50)
        self.compact(force=True)
        (entry,) = self.aria.journal.recent()
        self.assertTrue(entry.id.startswith("compact_"))
        self.assertTrue(entry.content.startswith(SYNTHESIS_TITLE))
        self.assertEqual(entry.source_type, "compaction")
        self.assertEqual(entry.importance, 7)
        self.assertEqual(entry.tags, ("compaction", "synthesis"))

    def test_private_is_folded_apart(self):
        """What was whispered has a summary of its own, for those it was between."""
        self.fill(30)
        self.fill(30, audience="private:o9.abc")
        self.model.answers = ["The room's summary.", "The secret summary."]
        self.compact(force=True)
        synth = {entry.audience: entry.content for entry in self.aria.journal.recent()}
        self.assertIn("room's", synth["public"])
        self.assertIn("secret", synth["private:o9.abc"])
        public, secret = self.model.requests
        self.assertEqual(len(self.script.history.messages()), 2 + 20)
        self.assertNotEqual(public.messages[1], secret.messages[1])


class TestEmergencyCompaction(CompactionTest):
    """Awake and nearly full: before any other work."""

    def test_nearly_full(self):
        """The tick extracts, compacts, then answers; the log names the usage."""
        self.configure(max_context_tokens=4000, compact_background=False)
        self.fill(60, words=30)
        self.model.answers = [call("noop"), SUMMARY, "At your service."]
        self.say("Aria, a mug please")
        lines = []
        self.script.log = lambda text, warning=False: lines.append(text)
        self.assertEqual(self.tick(), "turn")
        self.assertTrue(any("nearly full" in line and "%" in line for line in lines))
        self.assertEqual(self.contents()[-1], ("assistant", "At your service."))
        self.assertEqual(len(list(self.script.history.segments())), 1)


class TestRoom(CompactionTest):
    """Where fixed regions leave no room to talk, it is said with its numbers, once."""

    def setUp(self):
        super().setUp()
        self.troubles = []
        self.enterContext(patch.object(self.script, "trouble", self.troubles.append))

    def test_said_once_for_each_configuration(self):
        """Not again before something is changed."""
        self.fill(20, words=200)
        self.tick()
        self.assertEqual(self.troubles, [])
        self.configure(max_context_tokens=2200, persona="You keep bees. " * 120)
        for _ in range(3):
            self.tick()
        (told,) = self.troubles
        self.assertRegex(told, r"hardly room to talk: of 2,200 tokens .* which leaves [\d,]+ ")
        self.assertIn("Raise `max_context_tokens`", told)
        self.configure(compact_preserve_window=2)
        self.tick()
        self.assertEqual(len(self.troubles), 2)

    def test_counts_the_fixed_regions(self):
        """A longer persona is counted at once, before the next prompt."""
        self.fill(6)
        self.tick()
        self.assertEqual(self.troubles, [])
        self.configure(max_context_tokens=4900, persona="You keep bees. " * 530)
        self.tick()
        self.assertRegex(" ".join(self.troubles), r"tools and ledger take [3-9],\d{3}, ")


class TestRequestedCompaction(CompactionTest):
    """A trigger that fires where nothing can leave asks no model."""

    def test_no_extraction_where_nothing_would_leave(self):
        """Asked for, or by count, within what is kept: no model call at all, tick after tick."""
        self.fill(20)
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.script.runtime.summaries.is_requested = True
        self.tick()
        self.configure(immediate_window=5, recent_window=5, compact_preserve_window=20)
        made = call("look")
        chain = [Message("assistant", "", tool_calls=tuple(made))]
        chain += self.script.history.messages()
        self.script.db.conversation_history = [message.to_dict() for message in chain]
        result = Message("tool", "oak", tool_call_id=made[0]["id"], name="look")
        self.script.history.append([result])
        for _ in range(3):
            self.tick()
        self.assertEqual(self.model.requests, [])

    def test_granted_once(self):
        """A request is over with the compaction that it asked for."""
        self.configure(
            compact_sleep_threshold=0.001,
            compact_preserve_token_share=0.0,
            pre_compact_extraction_enabled=False,
            compact_background=False,
        )
        self.script.runtime.summaries.is_requested = True
        for _ in range(3):
            self.fill(40)
            self.tick()
        (record,) = self.script.history.compactions()
        self.assertEqual(record.trigger, "request")


class TestSleepPhaseIntegration(CompactionTest):
    """Compaction as a step of the sleep cycle."""

    def test_low_threshold_compacts_in_sleep(self):
        """Setting a low threshold makes the next sleep compact."""
        self.fill(60)
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.script.fall_asleep()
        self.model.answers = [call("noop"), SUMMARY]
        self.assertEqual(self.tick(), "dreamt")
        report = self.script.db.last_sleep["steps"]
        self.assertEqual(report["context_compaction"]["compacted_messages"], 40)
        self.assertEqual(self.script.db.sleep_phase, "sleeping")

    def test_every_step_is_reported(self):
        """One entry a step, each with its success."""
        self.fill(10)
        report = wait_for(run_sleep_tick(self.script, self.aria))
        steps = (
            "entities_met memory_links entity_consolidation orphaned_links episodic_prune"
            " stale_conversations pre_compaction_extraction context_compaction"
        )
        self.assertEqual(" ".join(report), steps)
        self.assertTrue(all(entry["success"] for entry in report.values()), report)

    def test_failing_step_does_not_stop_the_rest(self):
        """A broken memory store is reported, and compaction still runs."""
        self.fill(60)
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.aria.journal.add("Bob keeps bees.")
        self.semantic.add = lambda scope, items: fail(StoreError("the folder is locked"))
        report = wait_for(self.script._run_sleep_tick())
        self.assertFalse(report["memory_links"]["success"])
        self.assertEqual(report["context_compaction"]["compacted_messages"], 40)
