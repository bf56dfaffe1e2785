"""Rollback, verify, masking, the off switch and hostile summarisers, on a real script."""

import json
from dataclasses import replace

from twisted.internet.defer import Deferred

from evennia_ai.errors import AssistantError
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.rag_memory.entities import new_profile
from evennia_ai.rag_memory.journal import OWN
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import MOST_WAIT_S, WAIT_S, Compaction, as_result, due
from evennia_ai.sleep.compaction.plan import COUNT, MANUAL, SLEEP
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.testing import call
from tests.asked import model_down
from tests.base import AssistantTest, label
from tests.memory_assistant import extract_and_compact
from tests.steps import COMMIT_STEPS, raising_at, verify_history
from tests.waiting import alone, pump_until, wait_for

SUMMARY = "They talked of the harvest."


class LosslessTest(AssistantTest):
    default = SUMMARY

    def compact(self, **options):
        trigger = options.pop("trigger", MANUAL if options.pop("force", True) else SLEEP)
        return as_result(wait_for(Compaction(self.script, trigger, **options).run()))

    def roll_back(self):
        """Take the latest one back, with what follows from it outside the database."""
        report = wait_for(alone(rollback_compaction, self.script))
        pump_until(lambda: not self.script.state.outbox)
        return report

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
    def test_takes_back_what_was_dreamt_of_it(self):
        """What a night made of the extraction's entries goes with them."""
        char = stable_id(self.char1)
        self.aria.entities.put({char: new_profile(char, "Char", 0.0)})
        self.fill(50)
        self.model.answers = [
            call("add_journal_entry", content="Char lives in Ford."),
            call("noop"),
        ]
        wait_for(run_pre_compaction_extraction(self.script, self.aria))
        self.compact()
        wait_for(consolidate_memories_to_semantic(self.script, self.aria))
        (dreamt,) = self.aria.entities.get(char).observations
        self.assertEqual(dreamt.text, "Char lives in Ford.")
        self.roll_back()
        self.assertEqual(self.aria.entities.get(char).observations, ())

    def test_automatic_triggers_hold(self):
        """After a rollback nothing is folded in sleep, until a manual compaction."""
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.fill(50, words=30)
        self.compact()
        self.roll_back()
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        self.assertEqual(len(self.script.history.messages()), 50)
        self.assertIn("held", self.compact(force=False)["reason"])
        self.compact()
        self.assertFalse(self.script.state.hold)
        self.fill(30)
        self.assertEqual(self.compact(force=False)["compacted_messages"], 30)


class TestMasking(LosslessTest):
    """Large old tool outputs are masked before anything is summarised."""

    def look(self, words):
        made = call("look")
        self.script.history.append([Message("assistant", "", tool_calls=tuple(made))])
        self.script.history.append(
            [Message("tool", "timber " * words, tool_call_id=made[0]["id"], name="look")]
        )

    def test_masks_need_no_extraction(self):
        """Neither in an emergency nor asleep is a model called where masks are enough."""
        self.configure(
            max_context_tokens=14_000,
            compact_preserve_token_share=0.0,
            compact_sleep_threshold=0.6,
            compact_emergency_threshold=0.6,
        )
        for asleep in (False, True):
            for _ in range(10):
                self.look(700)
            self.fill(20)
            if asleep:
                self.script.fall_asleep()
            self.tick()
            self.assertEqual(self.script.history.last_compaction().report.level, "masked")
            self.assertEqual(self.model.requests, [])
            self.configure(compact_emergency_threshold=0.99)

    def test_is_no_relief_where_there_are_too_many_messages(self):
        """A count trigger folds at once: masks would leave as many lines as there were.

        Calls and results leave with the lines around them.
        """
        self.configure(immediate_window=10, recent_window=10)
        for _ in range(5):
            self.look(700)
        self.fill(21)
        result = self.compact(force=False, trigger=COUNT)
        self.assertEqual((result["level"], result["compacted_messages"]), ("main", 20))


class TestOffSwitch(LosslessTest):
    """`compact_enabled` False shows the raw history, True the summaries again."""

    def test_off_says_what_did_not_fit(self):
        """The newest lines that fit are shown; the budget counts the others and names the last."""
        lines = self.fill(80, words=60)
        self.compact()
        self.configure(compact_enabled=False, max_context_tokens=4000)
        prompt, budget = str(self.prompt()), self.script.prompts.events()[-1]
        shown = [n for n in range(80) if f"line {label(n)}:" in prompt]
        self.assertTrue(shown)
        self.assertEqual(shown, list(range(budget.left_out, 80)))
        self.assertEqual(budget.left_until, lines[shown[0] - 1].id)


class TestTwoAtOnce(LosslessTest):
    def begin(self):
        return compact_conversation_history(self.script, self.aria, force=True)

    def test_second_compaction_changes_nothing(self):
        """Of two that planned the same, one is carried out; no message is archived twice."""
        self.fill(50)
        self.model.held = True
        first, second = self.begin(), self.begin()
        self.model.release()
        results = [wait_for(first), wait_for(second)]
        self.assertEqual(sorted(result["success"] for result in results), [False, True])
        self.assertEqual(len(list(self.script.history.segments())), 1)
        self.assert_proven()

    def test_rollback_meanwhile(self):
        """A compaction whose former summary was taken back meanwhile is given up."""
        self.fill(50)
        self.compact()
        self.fill(30)
        self.model.held = True
        running = self.begin()
        rollback_compaction(self.script)  # in between, as it may come to one in the background
        self.model.release()
        self.assertFalse(wait_for(running)["success"])
        self.assertEqual(len(self.script.history.messages()), 80)
        self.assert_proven()


class TestAfterTheCommit(LosslessTest):
    """A compaction that is stored stands, whatever fails behind it."""

    def test_a_room_that_raises(self):
        """The receipt comes all the same, and the failure is told."""
        told = []
        self.configure(emotes={"compact": "rests."})
        self.fill(40)
        self.script.log = lambda text, warning=False: told.append(text)
        self.room1.msg_contents = self.fail
        try:
            result = self.compact()
        finally:
            del self.script.log, self.room1.msg_contents
        self.assertTrue(result["success"])
        self.assertIn("compacted 20 messages", told[0])
        self.assertIn("could not pose", self.script.runtime.trouble.text)
        self.assert_proven()

    def test_players_see_only_what_a_builder_wrote(self):
        """Players see nothing of a compaction, or the emote that was set for it."""
        shown = self.lines_of(self.char1)
        self.fill(40)
        self.compact()
        self.assertEqual(shown, [])
        self.configure(emotes={"compact": "rests."})
        self.fill(40)
        self.compact()
        self.assertEqual(shown, ["Aria rests."])

    def dreamt(self):
        """The id of an entry of an extraction that is in semantic memory, and compacted."""
        self.fill(40)
        entry = self.aria.journal.add("Bob owes Alice a coin.")
        wait_for(consolidate_memories_to_semantic(self.script, self.aria))
        self.compact()
        (record,) = self.script.history.compactions()
        self.script.history.save_compaction(replace(record, entries=(*record.entries, entry.id)))
        return entry.id

    def test_a_rollback_while_the_store_is_down(self):
        """What was withdrawn is owed, also over a compaction that fails, until the night."""
        entry = self.dreamt()
        inner, self.semantic.delete = self.semantic.delete, self.fail
        wait_for(alone(rollback_compaction, self.script))
        pump_until(lambda: "publishing" in self.script.runtime.trouble.text)
        self.semantic.delete = inner
        self.assertIn(entry, wait_for(self.semantic.ids(self.script.scope)))
        self.model.default = model_down()
        self.assertFalse(self.compact()["success"])
        self.assertIn(entry, self.script.state.outbox)
        self.script.fall_asleep()
        self.tick()
        self.assertNotIn(entry, wait_for(self.semantic.ids(self.script.scope)))
        self.assertEqual(self.script.state.outbox, [])

    def test_a_store_that_hangs(self):
        """The rollback is told and the next turn comes, though the store never answers."""
        entry, inner = self.dreamt(), self.semantic.delete
        self.semantic.delete = lambda *args: Deferred()
        wait_for(alone(rollback_compaction, self.script))
        self.assertIn(entry, self.script.state.outbox)
        self.model.default = "Indeed."
        self.say("Aria, are you there?")
        self.assertEqual(self.tick(), "turn")
        self.semantic.delete = inner
        self.script.repair_when_ready()
        pump_until(lambda: not self.script.state.outbox)
        self.assertNotIn(entry, wait_for(self.semantic.ids(self.script.scope)))

    def test_another_compaction_than_the_one_meant(self):
        """A rollback that was confirmed for one compaction does not take back another."""
        self.fill(40)
        first = self.compact()["compaction_id"]
        self.fill(40)
        self.compact()
        with self.assertRaisesRegex(AssistantError, "Another compaction"):
            wait_for(alone(rollback_compaction, self.script, first))
        self.assertEqual(len(self.script.history.messages()), 22)


class TestNotes(LosslessTest):
    """What a compaction notes is written by its commit, or not at all."""

    def setUp(self):
        super().setUp()
        self.fill(50)
        self.aria.journal.add("Written by herself.")
        bram = new_profile("o9", "Bram", at=1.0)
        self.aria.entities.put({"o8": new_profile("o8", "Wren", at=1.0), "o9": bram})
        self.before = self.stored()

    def stored(self):
        """All that a compaction with an extraction may change; a withdrawn entry is none."""
        entries = [e for e in self.aria.journal.recent(99) if not e.withdrawn]
        signals, extraction = self.script.state.signals, self.script.state.extracted
        history = self.script.history.messages()
        profiles = {  # without when they were last seen, which nothing takes back
            key: replace(profile, last_seen="")
            for key, profile in self.aria.entities.profiles().items()
        }
        return history, entries, profiles, signals, extraction, self.prompt()

    def noted_and_compacted(self):
        """A compaction whose commit writes what its model noted."""
        notes = [
            {"lines": [1], "text": "Bob owes Alice.", "about": "Bob"},
            {"lines": [2], "text": "Wren sells tar.", "about": "Wren"},
        ]
        self.model.answers = [json.dumps({"summary": "They talked.", "notes": notes})]
        wait_for(Compaction(self.script, MANUAL, noted=True).run())

    def test_exception_at_each_step(self):
        """A failing commit leaves nothing, in the database and in Evennia's caches."""
        for step in (*COMMIT_STEPS, "done"):
            with self.subTest(step=step):
                self.script.at_commit_step = raising_at(step, RuntimeError)
                with self.assertRaises(RuntimeError):
                    self.noted_and_compacted()
                self.assertEqual(self.stored(), self.before)
                self.restart()
                self.assertEqual(self.stored(), self.before)
                self.assert_proven()
        self.noted_and_compacted()
        self.assertEqual(len(self.script.history.compactions()), 1)
        facts = [e.content for e in self.aria.journal.recent(99) if e.source_type == OWN]
        self.assertEqual(facts, ["Written by herself.", "Bob owes Alice.", "Wren sells tar."])
        self.roll_back()
        self.assertEqual(self.stored(), self.before)
        self.assert_proven()

    def test_what_an_extraction_notes(self):
        """It is written before the compaction, whose rollback takes it back all the same."""
        first = call("add_journal_entry", content="Bob owes Alice.", lines=[1])
        told = call("update_entity_observation", entity="Wren", observation="Sells tar.", lines=[2])
        told += call("update_entity_observation", entity="Nell", observation="Bakes.", lines=[2])
        self.model.answers = [first, told + call("noop")]
        wait_for(extract_and_compact(self.script))
        (observation,) = self.aria.entities.get("o8").observations
        self.assertEqual(observation.text, "Sells tar.")
        self.roll_back()
        self.assertEqual(self.stored(), self.before)
        self.assert_proven()

    def test_a_kill_in_an_extraction(self):
        """It leaves nothing but its signal, which the next start clears."""
        self.model.answers = [call("add_journal_entry", content="Bob owes."), self.die]
        with self.assertRaises(SystemExit):
            wait_for(extract_and_compact(self.script))
        del self.script.store.set
        self.assertIn("pre_compaction", self.script.state.signals)
        self.restart()
        self.assertEqual(self.stored(), self.before)
        self.compact()
        self.roll_back()
        self.assertEqual(self.stored(), self.before)
        self.assert_proven()

    def die(self, request):
        """As a kill: nothing after it runs, not even what always should."""
        self.script.store.set = lambda *_, **__: None
        raise SystemExit


class TestWaits(LosslessTest):
    """Automatic compactions that fail wait, longer each time."""

    def setUp(self):
        super().setUp()
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.fill(50, words=30)
        self.at = self.script.now()
        self.script.now = lambda: self.at

    def tearDown(self):
        del self.script.now
        super().tearDown()

    def is_due(self, after_s):
        self.at += after_s
        return due(self.script, SLEEP) is not None

    def test_longer_each_time(self):
        """Until one succeeds, of whatever kind; a manual one waits for nothing."""
        self.model.default = model_down()
        wait_s = WAIT_S
        while wait_s < MOST_WAIT_S:
            self.assertFalse(self.compact(force=False)["success"])
            self.assertFalse(self.is_due(wait_s - 1))
            self.assertTrue(self.is_due(1))
            wait_s *= 4
        for _ in range(2):
            self.assertFalse(self.compact(force=False)["success"])
            self.assertFalse(self.is_due(MOST_WAIT_S - 1))
            self.assertTrue(self.is_due(1))
        self.assertFalse(self.compact()["success"])
        self.assertTrue(self.is_due(0), "a manual one that fails says nothing of others")
        self.assertFalse(self.compact(force=False)["success"])
        self.script.fall_asleep()
        before = self.script.history.messages()
        self.tick()
        self.assertEqual(self.script.history.messages(), before)
        self.model.default = SUMMARY
        self.assertTrue(self.compact()["success"])
        self.fill(50, words=30)
        self.assertTrue(self.is_due(0))
