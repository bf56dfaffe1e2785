"""`aistatus`, what staff are told of a rollback, and of the pause after it."""

from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.staff.show import ago
from tests.asked import model_down
from tests.command_line import WholePagesTest
from tests.waiting import alone, wait_for

HELD = "paused after a rollback, until you type compact"


class TestStatus(WholePagesTest):
    """`aistatus` of Aria, whose model talks."""

    default = "They talked of many things."

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)

    def later(self, seconds):
        """Let time pass for the assistant."""
        now = self.script.now() + seconds
        self.script.now = lambda: now

    def test_a_later_compaction_joins_it(self):
        """The last sleep is told step by step; a later compaction in it stands beside them."""
        self.aria.journal.add("Bob keeps bees.")
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        dream = self.script.state.last_sleep
        steps = ("memory_links:", "context_compaction: skipped: no history")
        self.assertTold("aistatus Aria", "Mode: sleep, sleeping", *steps)
        self.later(600)
        self.fill(60)
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.assertEqual(self.tick(), "dreamt")
        after = self.script.state.last_sleep
        compaction = after.steps["context_compaction"]
        self.assertEqual(compaction["compacted_messages"], 40)
        for each in (dream, after):
            for name in ("context_compaction", "pre_compaction_extraction"):
                each.steps.pop(name, None)
        self.assertEqual(after, dream)

    def test_last_trouble(self):
        """It is shown with its age."""
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")
        self.script.trouble("the disk is full")
        self.later(12 * 60 + 5)
        told = "Last trouble: the disk is full (12 minutes ago)"
        self.assertEqual(self.status("Last trouble:"), told)
        for seconds, words in ((59.9, "just now"), (7199, "1 hour ago"), (200_000, "2 days ago")):
            self.assertEqual(ago(seconds), words)

    def test_a_turn_that_succeeds_clears_it(self):
        """A trouble of the model or of a turn goes when a later turn succeeds."""
        self.configure(llm_offline_fallback=False)
        self.talk("Aria, are you there?", model_down(), "Sorry, I was far away.")
        self.assertIn("no model answers", self.status("Last trouble:"))
        self.later(6)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")
        self.script.log_error("compaction", model_down())
        self.later(60)
        self.assertEqual(self.talk("Aria, hello!", "Here I am."), "turn")
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")

    def test_what_is_stored(self):
        """Messages, archive, summaries, journal and the last compaction are counted."""
        self.configure(pre_compact_extraction_enabled=True)
        self.fill(40)
        self.aria.journal.add("Bob keeps bees.")
        self.typed("compact Aria", until="compacted")
        self.talk("Aria, good evening.", "Good evening.")
        shown = self.typed("aistatus Aria")
        self.assertRegex(
            shown, r"Messages: 2\d live \([\d,]+ tokens\), 2\d archived in 1 segment\n"
        )
        self.assertIn("Summaries: 1", shown)
        self.assertIn("Journal: 2 entries, 1 not yet consolidated", shown)
        self.assertRegex(shown, r"Last compaction: \d{4}-.* level main, .* = s")
        self.assertRegex(shown, r"Last prompt: System: \d+, Tools: \d+, .*\(total \d+/\d+\)")

    def test_states(self):
        """Compaction by command only, a stopped timer and a spend limit are told."""
        self.configure(compact_auto=False, spend_caps={"tokens_day": 0})
        self.assertTold(
            "aistatus Aria",
            "by command only",
            "its timer is stopped",
            "spend limit of 0 tokens a day is reached",
        )
        self.typed("ai/stop Aria")
        self.assertTold("aistatus Aria", "Enabled: no (ai/start switches it on)")

    def compacted(self):
        """Aria has talked, and compacted it."""
        self.fill(60)
        self.typed("compact Aria", until="compacted")

    def test_paused_by_a_rollback(self):
        """The answer to a rollback and the status say so."""
        self.compacted()
        self.typed("compact/rollback Aria")
        told = ("tokens again", f"Compaction of Aria: {HELD}")
        self.assertTold("compact/rollback Aria = yes", *told, until="Taken back")
        self.assertIn(HELD, self.status("Compaction:"))
        self.assertNotIn("in a lull from", self.status("Compaction:"))

    def test_other_commands_work_meanwhile(self):
        """The question captures nothing, and a yes to it does not take back a later compaction."""
        self.compacted()
        shown = "40 messages would be live again. To confirm, type within a minute: "
        self.assertTold("compact/rollback Aria", f"{shown}compact/rollback Aria = yes")
        self.assertTold("say Hello", 'You say, "Hello"')
        self.compacted()
        self.assertTold("compact/rollback Aria = yes", "would be live again")
        self.assertEqual(self.script.history.compactions()[-1].status, "committed")
        self.typed("compact/rollback Aria = yes", until="Taken back")

    def test_pause_stays_where_a_compact_fails(self):
        """Where no summary can be made, or compaction is off, nothing is changed."""
        self.fill(60)
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        wait_for(alone(rollback_compaction, self.script))
        self.typed("compact/off Aria")
        self.typed("compact Aria", until="compaction is off")
        self.assertTrue(self.script.state.hold)
        self.typed("compact/on Aria")
        self.model.default = model_down()
        self.assertTold("compact Aria", "Nothing was changed", until="did not")
        self.assertTrue(self.script.state.hold)
