"""Rollback, verify, masking, the off switch and hostile summarisers, on a real script."""

from evennia_ai.core.masking import PLACEHOLDER
from evennia_ai.errors import AssistantError
from evennia_ai.handlers.rollback import ROLLBACK_STEPS
from evennia_ai.handlers.verify import verify_history
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.offline.brain import respond
from evennia_ai.sleep.compaction import (
    compact_conversation_history,
    run_pre_compaction_extraction,
)
from evennia_ai.sleep.reversal import rollback_compaction
from evennia_ai.testing import call
from tests.base import AssistantTest, label
from tests.waiting import wait_for

SUMMARY = "They talked of the harvest."


class LosslessTest(AssistantTest):
    """Helpers for the classes below."""

    default = SUMMARY

    def compact(self, **options):
        options.setdefault("force", True)
        return wait_for(compact_conversation_history(self.script, self.aria, **options))

    def extract(self):
        return wait_for(run_pre_compaction_extraction(self.script, self.aria))

    def roll_back(self):
        return wait_for(rollback_compaction(self.script, self.aria))

    def prompt(self):
        """The prompt now, as it would be sent, at a fixed time."""
        self.script.now = lambda: 1_800_000_000.0
        try:
            return build_llm_messages(self.script, self.aria)
        finally:
            del self.script.now

    def assert_proven(self):
        self.assertEqual(verify_history(self.script), ())


class TestRollback(LosslessTest):
    """A compaction taken back."""

    def test_prompt_is_as_if_it_never_happened(self):
        """After extraction, compaction and rollback the prompt is byte for byte the former."""
        self.fill(50)
        before, stored = self.prompt(), self.script.history.messages()
        self.model.answers = [
            call("add_journal_entry", content="Bob owes Alice."),
            call("update_entity_observation", entity="Char", observation="Likes cider."),
            call("noop"),
        ]
        self.extract()
        self.compact()
        self.assertNotEqual(self.prompt(), before)
        self.roll_back()
        self.assertEqual(self.prompt(), before)
        self.assertEqual(self.script.history.messages(), stored)
        self.assert_proven()

    def test_what_came_since_stays(self):
        """Messages after the compaction stand behind those that came back."""
        self.fill(50)
        self.compact()
        later = self.fill(3)
        self.roll_back()
        self.assertEqual(len(self.script.history.messages()), 53)
        self.assertEqual(self.script.history.messages()[-3:], later)
        self.assert_proven()

    def test_generations_come_back_one_by_one(self):
        """Rolling back twice undoes two compactions, tiers and records included."""
        prompts = []
        for _ in range(3):
            self.fill(30)
            prompts.append(self.prompt())
            self.compact()
        for prompt in reversed(prompts):
            self.roll_back()
            live = self.prompt()
            self.assertEqual(live[: len(prompt) - 1][0], prompt[0])
            self.assert_proven()
        self.assertEqual(len(self.script.history.messages()), 90)
        with self.assertRaisesRegex(AssistantError, "no compaction"):
            self.roll_back()

    def test_synthesis_is_withdrawn(self):
        """Summary and synthesis are neither found nor remembered any more."""
        self.fill(50)
        result = self.compact()
        self.assertIn(result["summary_id"], wait_for(self.semantic.sources(self.script.scope)))
        self.roll_back()
        self.assertEqual(wait_for(self.semantic.sources(self.script.scope)), {})
        self.assertTrue(all(e["withdrawn"] for e in self.aria.journal.recent()))

    def test_automatic_triggers_hold(self):
        """After a rollback only a manual compaction or an overflow fires."""
        self.fill(50)
        self.compact()
        self.roll_back()
        self.configure(compact_sleep_threshold=0.01)
        self.script.fall_asleep()
        self.tick()
        self.assertEqual(len(self.script.history.messages()), 50)
        self.compact()
        self.assertFalse(self.script.state.hold)

    def test_refused_where_it_does_not_fit(self):
        """If the raw messages are too many for the limit it says so with the numbers."""
        self.fill(60, words=60)
        self.compact()
        self.configure(max_context_tokens=3000)
        with self.assertRaisesRegex(AssistantError, r"[\d,]+ tokens.*3,000"):
            self.roll_back()
        self.assert_proven()

    def test_exception_at_each_step(self):
        """A rollback that fails halfway leaves the compacted state."""
        self.fill(50)
        self.model.answers = [call("noop")]
        self.extract()
        self.compact()
        before = self.script.history.messages()
        for step in ROLLBACK_STEPS:
            with self.subTest(step=step):
                self.script.at_commit_step = self.failing_at(step)
                with self.assertRaises(RuntimeError):
                    self.roll_back()
                self.assertEqual(self.script.history.messages(), before)
                self.assert_proven()
        del self.script.at_commit_step
        self.roll_back()
        self.assert_proven()

    def failing_at(self, name):
        def on_step(step):
            if step == name:
                raise RuntimeError(name)

        return on_step


class TestMasking(LosslessTest):
    """Large old tool outputs are masked before anything is summarised."""

    def look(self, words):
        made = call("look")
        self.script.history.append([{"role": "assistant", "content": "", "tool_calls": made}])
        self.script.history.append(
            [
                {
                    "role": "tool",
                    "tool_call_id": made[0]["id"],
                    "name": "look",
                    "content": "timber " * words,
                }
            ]
        )

    def test_masking_alone_may_do(self):
        """If it frees enough no model is called, and the raw text stays stored."""
        self.configure(max_context_tokens=12_000, compact_preserve_token_share=0.0)
        self.script.runtime.fixed_tokens = 1200
        for _ in range(10):
            self.look(700)
        self.fill(20)
        before = self.prompt()
        result = self.compact(force=False)
        self.assertEqual((result["level"], result["masked_messages"]), ("masked", 10))
        self.assertEqual(self.model.requests, [])
        self.assertIn(PLACEHOLDER, str(self.prompt()))
        self.assertIn("timber timber", str(self.script.history.messages()))
        self.assert_proven()
        self.roll_back()
        self.assertEqual(self.prompt(), before)


class TestOffSwitch(LosslessTest):
    """`compact_enabled` False shows the raw history, True the summaries again."""

    def test_off_and_on(self):
        """Off, the archived words are in the prompt and no summary; on, as before."""
        self.fill(50)
        before = self.prompt()
        self.compact()
        compacted = self.prompt()
        self.configure(compact_enabled=False)
        self.assertEqual(self.prompt(), before)
        self.configure(compact_enabled=True)
        self.assertEqual(self.prompt(), compacted)

    def test_off_says_what_did_not_fit(self):
        """What is too much for the limit is named in the budget."""
        self.fill(80, words=60)
        self.compact()
        self.configure(compact_enabled=False, max_context_tokens=4000)
        self.prompt()
        self.assertTrue(self.script.runtime.budgets[-1].left_out)


class TestHostileSummariser(LosslessTest):
    """Ten generations under a model that refuses, echoes, grows and drops every name."""

    def test_ten_generations(self):
        """Caps hold, first names survive in summary or journal, nothing is lost."""
        self.configure(compact_preserve_window=4, summary_max_tokens=300)
        behaviours = [
            "I'm sorry, but I can't help with that.",
            "",
            "word " * 5000,
            "They talked.",
            call("noop"),
        ]
        self.model.default = lambda request: (
            respond(request.messages).content or ""
            if request.model == OFFLINE_MODEL
            else behaviours[len(self.model.requests) % 5]
        )
        self.script.history.append(
            [{"role": "user", "content": "Captain Mirabel hid 47 crowns under the Salt Chapel."}]
        )
        self.model.answers = ["They talked.", "They talked."]  # the gate asks once more
        for generation in range(10):
            self.fill(12)
            result = self.compact()
            self.assertTrue(result["success"], (generation, result))
            for marker in self.script.history.messages():
                if marker["metadata"].get("type"):
                    self.assertLessEqual(self.script.count(marker["content"]), 310)
            self.assert_proven()
        kept = " ".join(e["content"] for e in self.aria.journal.recent(500))
        kept += str(self.script.history.messages())
        for word in ("Mirabel", "47", "Salt Chapel"):
            self.assertIn(word, kept)
        self.assertTrue(any(record["lost"] for record in self.script.history.summaries()))

    def test_every_message_was_in_a_request_that_succeeded(self):
        """What left was shown, in full, to a model whose answer was taken."""
        self.configure(max_context_tokens=3000, compact_preserve_window=2)
        self.fill(30, words=120)
        self.script.history.append([{"role": "user", "content": "x" * 9000 + " the very end"}])
        self.fill(4)
        seen = []
        self.model.default = lambda request: (seen.append(request.messages[1]["content"]), SUMMARY)[
            1
        ]
        self.compact()
        shown = "".join(seen)
        for number in range(30):
            self.assertIn(f"line {label(number)}:", shown)
        self.assertIn("the very end", shown.replace("\n", ""))


class TestStalls(LosslessTest):
    """Compactions that free nothing stop."""

    def test_three_in_a_row(self):
        """The third opens the breaker and staff are told; a good manual one closes it."""
        self.script.runtime.stalled = 2
        self.fill(21, words=2)
        self.script.history.append(
            [{"role": "user", "content": "word " * 6000}]
            + [{"role": "user", "content": "short"} for _ in range(19)]
        )
        self.configure(compact_preserve_window=20)
        self.compact()
        self.assertTrue(self.script.runtime.stalled_out)
        self.assertIn("in a row", self.script.runtime.last_error)
        self.assertFalse(self.wants())
        self.fill(60, words=60)
        self.compact()
        self.assertFalse(self.script.runtime.stalled_out)

    def wants(self):
        from evennia_ai.sleep.compaction import wants_compaction

        return wants_compaction(self.script, 0.0)
