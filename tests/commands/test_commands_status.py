"""`aistatus`: the last sleep, the last trouble; receipts come once."""

from evennia_ai.staff.show import ago
from tests.asked import model_down
from tests.command_line import WholePagesTest


class StatusTest(WholePagesTest):
    """Aria, an admin and a model that talks."""

    default = "They talked of many things."

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)

    def later(self, seconds):
        """Let time pass for the assistant."""
        now = self.script.now() + seconds
        self.script.now = lambda: now

    def status(self, head):
        """The line of `aistatus` that begins so."""
        lines = self.typed("aistatus Aria").split("\n")
        return next(line for line in lines if line.startswith(head))


class TestLastSleep(StatusTest):
    """The report of the dream."""

    def test_a_later_compaction_joins_it(self):
        """A compaction later in the same sleep is shown beside the steps of the dream."""
        self.aria.journal.add("Bob keeps bees.")
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        dream = self.script.state.last_sleep
        self.assertTrue(dream["steps"]["context_compaction"]["skipped"])
        self.later(600)
        self.fill(60)
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.assertEqual(self.tick(), "dreamt")
        after = self.script.state.last_sleep
        compaction = after["steps"]["context_compaction"]
        self.assertEqual(compaction["compacted_messages"], 40)
        for each in (dream, after):
            for name in ("context_compaction", "pre_compaction_extraction"):
                each["steps"].pop(name, None)
        self.assertEqual(after, dream)
        self.assertIn("memory_links", self.typed("aistatus Aria"))


class TestLastTrouble(StatusTest):
    """When it was, and when it is over."""

    def test_when(self):
        """It is shown with its age."""
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")
        self.script.trouble("the disk is full")
        self.later(12 * 60 + 5)
        told = "Last trouble: the disk is full (12 minutes ago)"
        self.assertEqual(self.status("Last trouble:"), told)

    def test_a_turn_that_succeeds_clears_it(self):
        """A trouble of the model or of a turn goes when a later turn succeeds."""
        self.configure(llm_offline_fallback=False)
        self.model.answers = [model_down(), "Sorry, I was far away."]
        self.say("Aria, are you there?")
        self.tick()
        self.assertIn("no model answers", self.status("Last trouble:"))
        self.later(6)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")
        self.script.log_error("compaction", model_down())
        self.later(60)
        self.model.answers = ["Here I am."]
        self.say("Aria, hello!")
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.status("Last trouble:"), "Last trouble: none")

    def test_ago(self):
        """The largest unit that fits, whole."""
        for seconds, words in (
            (59.9, "just now"),
            (60, "1 minute ago"),
            (7199, "1 hour ago"),
            (7200, "2 hours ago"),
            (200_000, "2 days ago"),
        ):
            self.assertEqual(ago(seconds), words)


class TestOnce(StatusTest):
    """Who follows and types the command gets each line once."""

    def test_a_compaction(self):
        """A follower gets the receipt, others the answer."""
        self.fill(60)
        self.typed("ai/follow Aria")
        shown = self.typed("compact Aria", until="Raw words")
        self.assertEqual(shown.count("compacted"), 1)
        self.typed("ai/follow Aria")
        self.fill(60)
        shown = self.typed("compact Aria", until="Raw words")
        self.assertEqual(shown.count("compacted"), 1)
