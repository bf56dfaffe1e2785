"""Work on summaries in the background: compactions, and stale summaries made again."""

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.background import in_time
from evennia_ai.history.archive import EMPTIED
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction import prompt
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, measure_fixed
from evennia_ai.sleep.compaction.behind import begin_behind, compact_asleep
from evennia_ai.sleep.compaction.compact import WAIT_S, Compaction
from evennia_ai.sleep.compaction.plan import SLEEP
from evennia_ai.sleep.compaction.rules import STALE_A_DAY
from evennia_ai.staff.status import compaction_state
from evennia_ai.testing import call
from tests.asked import model_down
from tests.base import AssistantTest
from tests.loopback import check_pairs
from tests.memory_assistant import PEOPLE, MemoryWorldTest
from tests.steps import REMAKE_STEPS, raising_at
from tests.waiting import pump_until, wait_for

BOB = Speaker("Bob", PEOPLE["Bob"])
LINE = "Mirabel hid barrel {} north of the mill of Saltmarsh, and that took the whole long evening."


class BehindTest(MemoryWorldTest):
    """An assistant whose context fills up, with a model that may be slow."""

    def setUp(self):
        super().setUp()
        self.world.configure(
            max_context_tokens=16000,
            compact_preserve_window=4,
            compact_preserve_token_share=0.0,
            reply_cooldown_s=0,
            summary_max_tokens=300,
        )
        measure_fixed(self.script)
        self.summary = "Mirabel hid the barrels north of the mill of Saltmarsh."
        self.world.model.default = self.answer

    def answer(self, request):
        if request.model == OFFLINE_MODEL:
            return respond(request.messages).content or ""
        if request.purpose == "summary":
            return self.summary
        return call("noop") if request.purpose == "pre_compaction" else "Yes, so it was."

    def fill_to(self, share):
        """Talk until the context is so full."""
        n = len(self.script.history.messages())
        while self.script.usage() < share:
            n += 1
            self.script.history.append([Message("user", LINE.format(n) * 3, speaker=BOB)])

    def say(self, text="Aria, where is the barrel?"):
        self.hear(text, BOB, metadata={"assistant": False, "addressed": True})

    def tick(self):
        self.script.runtime.last_turn_at = 0.0
        self.world.later(1.0)
        return wait_for(self.script.tick())

    def begin(self):
        return begin_behind(self.script)

    def records(self):
        return self.script.history.compactions()

    def requests_for(self, purpose):
        return [r for r in self.world.model.requests if r.purpose == purpose]

    @contextmanager
    def begun(self, begin=None):
        """Begin with a model that answers afterwards; gives what waits for it."""
        self.world.model.held = True
        self.assertTrue((begin or self.begin)())
        slow, self.world.model._waiting = self.world.model._waiting, []
        self.world.model.held = False
        yield slow
        self.world.model._waiting = slow
        self.world.model.release()

    def begin_and_restart(self):
        """The server dies while the model writes."""
        self.world.model.held = True
        self.begin()
        self.world.model.held, self.world.model._waiting = False, []
        self.world.restart()

    def note_and_begin(self):
        """Begin while a model notes a fact beside the summary."""
        note = {"lines": [1], "text": "Bob hides tar.", "about": "Bob"}
        self.world.model.answers = [json.dumps({"summary": self.summary, "notes": [note]})]
        self.assertTrue(self.begin())

    def written(self):
        """Facts in the journal, profiles, and what an extraction left for the next compaction."""
        entries = [e for e in self.body.journal.recent(99) if not e.withdrawn]
        facts = [e.content for e in entries if e.source_type != "compaction"]
        return facts, self.body.entities.profiles(), self.script.state.extracted


class TestInALull(BehindTest):
    """From the sleep threshold on, awake."""

    def test_it_compacts_beside_the_talk(self):
        """A turn is answered while the summariser writes; what was said meanwhile stays."""
        self.fill_to(0.72)
        with self.begun():
            self.assertFalse(self.begin(), "one at a time")
            self.say()
            self.assertEqual(self.tick(), "turn")
            self.assertEqual([said for _, said in self.script.game.said], ["Yes, so it was."])
        self.assertIsNone(self.script.runtime.summaries.running)
        [record] = self.records()
        self.assertEqual(record.trigger, "background")
        contents = [m.content for m in self.script.history.messages()]
        self.assertIn("Aria, where is the barrel?", contents)
        self.assertIn("Yes, so it was.", contents)
        self.assertLess(self.script.usage(), 0.7)
        self.assert_proven()

    def test_it_waits_for_a_lull(self):
        """While somebody waits for an answer it begins only when the context is fuller."""
        self.fill_to(0.71)
        self.say()
        self.assertFalse(self.begin())
        self.fill_to(0.76)
        self.assertTrue(self.begin())

    def test_not_below_the_threshold_nor_asleep_nor_switched_off(self):
        self.fill_to(0.6)
        self.assertFalse(self.begin())
        self.fill_to(0.72)
        for config in ({"compact_auto": False}, {"compact_background": False}):
            self.world.configure(**config)
            self.assertFalse(self.begin())
            self.world.configure(compact_auto=True, compact_background=True)
        self.script.fall_asleep()
        self.assertFalse(self.begin())

    def test_the_commit_waits_for_the_end_of_a_turn(self):
        """A turn that calls tools is never cut in two."""
        self.fill_to(0.72)
        with self.begun():
            self.world.model.held = True
            self.world.model.answers = [call("look")]
            self.say()
            self.script.runtime.last_turn_at = 0.0
            turn = self.script.runtime.lock.run(lambda: self.script.tick())
            looking = self.world.model._waiting
            self.world.model.held = False
        self.assertEqual(self.records(), [])
        self.world.model._waiting = looking
        self.world.model.release()
        wait_for(turn)
        self.assertEqual(len(self.records()), 1)
        check_pairs({"messages": self.prompt()})
        self.assert_proven()

    def test_what_takes_the_lock_cancels_it(self):
        """A manual compaction does not wait for it, and nothing of it is left."""
        self.fill_to(0.72)
        self.world.model.held = True
        self.begin()
        self.assertIsNotNone(self.script.runtime.summaries.running)
        self.world.model.held = False
        seen = wait_for(self.script.run_exclusive(lambda: self.script.state.signals))
        self.assertEqual(seen, {})
        self.assertIsNone(self.script.runtime.summaries.running)
        self.world.model.release()
        self.assertEqual(self.records(), [])
        self.assertTrue(self.begin())
        self.assertEqual(len(self.records()), 1)

    def test_a_restart_in_its_middle(self):
        """Nothing is lost, and it begins again."""
        self.fill_to(0.72)
        before = self.script.history.messages()
        self.begin_and_restart()
        self.assertEqual(self.script.history.messages(), before)
        self.assertEqual(self.script.state.signals, {})
        self.assertTrue(self.begin())
        self.assertEqual(len(self.records()), 1)
        self.assert_proven()

    def test_a_rollback_keeps_what_turns_wrote_meanwhile(self):
        """Only what the compaction noted goes."""
        self.fill_to(0.72)
        note = {"lines": [1], "text": "Alice sells tar.", "about": "Alice"}
        self.world.model.answers = [json.dumps({"summary": self.summary, "notes": [note]})]
        told = call("update_entity_observation", entity="Alice", observation="Is from Wells.")
        with self.begun():
            self.world.model.answers = [told, "I see."]
            self.say("Aria, Alice is from Wells.")
            self.tick()
        self.assertEqual(self.written()[0], ["Alice sells tar."])
        self.roll_back()
        self.assertEqual(self.written()[0], [])
        self.assertIn("from Wells", str(self.written()[1]))
        self.assert_proven()


class TestEmergency(BehindTest):
    """Nearly full, awake: the one compaction begins at once, and nobody waits for it."""

    def test_it_begins_before_the_answer_and_is_not_waited_for(self):
        """The turn's prompt leaves out the oldest lines, which are not lost."""
        self.fill_to(1.3)
        with self.begun(lambda: wait_for(self.script.check_emergency())):
            self.say()
            self.assertEqual(self.tick(), "turn")
            [spoken] = self.requests_for("awake")
            self.assertNotIn(LINE.format(1), str(spoken.messages))
            self.assertIn(LINE.format(1), self.script.history.messages()[0].content)
            self.assertEqual(self.records(), [])
        self.assertEqual([record.trigger for record in self.records()], ["emergency"])
        [warning] = [text for _, text in self.script.audits if "nearly full" in str(text)]
        self.assertRegex(warning, r"context nearly full \(\d{3}\.\d% of its room\)")

    def test_a_model_makes_the_summary(self):
        """It is a compaction like any other: by a model, with nothing left to be done."""
        self.fill_to(0.85)
        self.say()
        self.assertEqual(self.tick(), "turn")
        [record] = self.records()
        self.assertEqual((record.trigger, record.report.level), ("emergency", "main"))
        self.assertEqual(self.script.state.stale, [])
        self.assertLess(self.script.usage(), 0.7)
        self.assert_proven()

    def test_one_at_a_time(self):
        """What runs already is not begun anew, however full it is."""
        self.fill_to(0.72)
        with self.begun():
            self.fill_to(1.2)
            self.assertFalse(wait_for(self.script.check_emergency()))
            self.assertFalse(self.begin())
            self.say()
            self.assertEqual(self.tick(), "turn")
        [record] = self.records()
        self.assertEqual(record.trigger, "background")
        self.assert_proven()

    def test_a_summariser_that_hangs(self):
        """After its deadline the next level is asked, at last the offline one, which writes."""
        self.world.configure(llm_fallback_models=["scripted/other"])
        self.fill_to(0.85)
        clock, answers, asked = Clock(), self.world.model.complete, []

        def hang(request):
            asked.append((request.model, clock.seconds()))
            return answers(request) if request.model == OFFLINE_MODEL else Deferred()

        self.world.model.complete = hang
        deadline_s = self.script.config.turn_timeout_s + prompt.GRACE_S
        with patch.object(prompt, "in_time", partial(in_time, reactor=clock)):
            self.begin()
            clock.advance(deadline_s)
            clock.advance(deadline_s - 1)
            self.assertEqual(self.records(), [])
            clock.advance(1)
        models = ("scripted/model", "scripted/other", OFFLINE_MODEL)
        self.assertEqual(asked, [(name, n * deadline_s) for n, name in enumerate(models)])
        [record] = self.records()
        self.assertEqual(record.report.level, "extractive")
        self.assertEqual(self.script.state.stale, [])
        self.world.later(3600)
        self.assertFalse(self.begin(), "the extract stays")
        self.assert_proven()

    def test_a_rollback_of_it(self):
        """The messages are back, the history is as it was, byte by byte."""
        self.fill_to(0.85)
        before = self.script.history.messages()
        self.note_and_begin()
        self.roll_back()
        self.assertEqual(self.script.history.messages(), before)
        self.assertEqual(self.written(), ([], {}, []))
        self.assert_proven()


class TestCalledAsleep(BehindTest):
    """Somebody speaks to a dreamer: it wakes at the model call that goes on, not at the end."""

    NOTE = "Mirabel hid a barrel north of the mill of Saltmarsh."

    def setUp(self):
        super().setUp()
        self.fill_to(0.75)
        self.script.fall_asleep()
        self.held_at, self.notes = "", []

    def answer(self, request):
        """Facts that are noted one a call, and the answer to the purpose `held_at` is held."""
        if request.purpose == self.held_at:
            self.world.model.held, self.held_at = True, ""
        if request.purpose == "pre_compaction" and self.notes:
            return call("add_journal_entry", content=self.notes.pop(), lines=[1])
        return super().answer(request)

    def dream_until(self, purpose):
        """A sleeping tick that waits for a model's answer of this purpose; gives the tick."""
        self.held_at = purpose
        done = self.script.runtime.lock.run(self.script.tick)
        pump_until(lambda: self.world.model._waiting)
        return done

    def test_the_extraction_ends_with_the_call_that_goes_on(self):
        """What it noted is written; awake it answers at once."""
        self.notes = [self.NOTE]
        done = self.dream_until("pre_compaction")
        self.say()
        self.world.model.release()
        self.assertEqual(wait_for(done), "dreamt")
        self.assertEqual(len(self.requests_for("pre_compaction")), 1)
        self.assertEqual(self.requests_for("summary"), [])
        self.assertEqual(self.written()[0], [self.NOTE])
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.script.state.mode, "awake")

    def test_the_next_one_repeats_nothing(self):
        """It takes back nothing, and writes no note again."""
        self.notes = [self.NOTE]
        done = self.dream_until("pre_compaction")
        self.say()
        self.world.model.release()
        wait_for(done)
        self.tick()
        self.world.later(61)
        self.script.fall_asleep()
        self.notes = [self.NOTE]
        self.tick()
        self.assertEqual(self.written()[0], [self.NOTE])
        self.assertEqual(len(self.records()), 1)
        self.roll_back()
        self.assertEqual(self.written()[0], [])
        self.assert_proven()

    def test_a_compaction_goes_on_in_the_background(self):
        """The dreamer wakes at once; the summary that a model writes is not lost."""
        done = self.dream_until("summary")
        slow, self.world.model._waiting = self.world.model._waiting, []
        self.world.model.held = False
        self.say()
        self.assertEqual(wait_for(done), "dreamt")
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.records(), [])
        self.world.model._waiting = slow
        self.world.model.release()
        [record] = self.records()
        self.assertEqual((record.trigger, len(self.requests_for("summary"))), ("sleep", 1))
        self.assertIsNone(self.script.runtime.summaries.running)
        self.assert_proven()

    def test_a_compaction_that_nobody_interrupts(self):
        """The sleep waits for it, and its report has the figures."""
        self.assertEqual(self.tick(), "dreamt")
        [record] = self.records()
        step = self.script.state.last_sleep.steps["context_compaction"]
        self.assertEqual(step["compaction_id"], record.id)
        self.assertIsNone(self.script.runtime.summaries.running)

    def test_a_compaction_that_is_stopped_before_it_begins(self):
        """The sleep ends as well."""
        self.script.breathe = lambda: Deferred()
        done = compact_asleep(Compaction(self.script, SLEEP))
        self.script.runtime.summaries.stop()
        done.addErrback(lambda failure: failure.type.__name__)
        self.assertEqual(wait_for(done), "CancelledError")

    def test_a_cancelled_sleep_cancels_its_compaction(self):
        """As the server stops."""
        done = self.dream_until("summary")
        done.addErrback(lambda failure: failure.type.__name__)
        done.cancel()
        self.assertEqual(wait_for(done), "CancelledError")
        self.assertIsNone(self.script.runtime.summaries.running)
        self.world.model.release()
        self.assertEqual(self.records(), [])


class TestStale(BehindTest):
    """Summaries that forgetting has emptied are made again, a few a day, in lulls."""

    def empty(self, count=1):
        """So many compactions, all summaries of which are emptied; their records."""
        self.world.configure(summary_max_tokens=120)
        for _ in range(count):
            self.fill_to(0.85)
            self.world.later(61)
            self.assertTrue(self.begin())
        history = self.script.history
        records = [replace(r, text=EMPTIED) for r in history.summaries()]
        for record in records:
            history.save_summary(record)
        history.replace_talk(history.messages())
        self.script.state.stale = [r.id for r in records]
        self.world.model.requests.clear()
        self.world.later(61)
        return records

    def texts(self):
        return [r.text for r in self.script.history.summaries()]

    def test_one_at_a_time_the_deepest_first(self):
        """Each from its messages or from the summaries below it; the records stay the same."""
        records = self.empty(3)
        total = len(records)
        for left in range(total - 1, -1, -1):
            self.assertTrue(self.begin())
            self.assertEqual(self.texts().count(EMPTIED), left)
            self.assertEqual(len(self.script.state.stale), left)
            self.assertFalse(self.begin(), "the next one waits")
            self.world.later(61)
        self.assertFalse(self.begin())
        made = self.script.history.summaries()
        self.assertEqual([r.id for r in made], [r.id for r in records])
        self.assertNotIn(EMPTIED, str(self.prompt()))
        self.assertEqual({r.level for r in made}, {"main"})
        self.assert_proven()

    def test_not_while_staff_hold_compaction(self):
        """Neither after a rollback nor with compaction switched off; the automatic one may be."""
        total = len(self.empty())
        for hold, options, is_made in (
            (True, {}, False),
            (False, {"compact_enabled": False}, False),
            (False, {"compact_auto": False}, True),
        ):
            self.world.configure(compact_auto=True, compact_enabled=True)
            self.script.state.hold = hold
            self.world.configure(**options)
            self.assertEqual(self.begin(), is_made, (hold, options))
            self.assertEqual(len(self.script.state.stale), total - is_made)

    def test_a_few_a_day(self):
        """What is over the day's number waits for the next day, also behind a restart."""
        total = len(self.empty(3))
        now = self.script.now()
        self.script.state.remade = [now - 3600.0] * (STALE_A_DAY - 2)
        self.assertGreater(total, 2)
        for _ in range(3):
            self.begin()
            self.world.later(61)
            self.world.restart()
        self.assertEqual(len(self.script.state.stale), total - 2)
        self.world.later(86_400)
        self.assertTrue(self.begin())
        self.assertEqual(len(self.script.state.stale), total - 3)

    def test_it_and_a_compaction_are_told_apart(self):
        """Each says what it is: in the status and in the budgets."""
        [record] = self.empty()
        with self.begun():
            self.assertIn("made again", compaction_state(self.script))
            self.fill_to(0.75)
            self.script.fall_asleep()
            self.assertEqual(self.tick(), "dreamt")
            self.assertEqual(self.script.state.stale, [record.id], "the compaction took its place")
        budgets = [b for b in self.script.prompts.events() if b.purpose == "summary"]
        self.assertEqual([b.trigger for b in budgets][-2:], ["stale", "sleep"])

    def test_only_in_a_lull(self):
        """Not while summaries are switched off, held, or too dear; also asleep."""
        self.empty()
        self.world.configure(compact_enabled=False)
        self.assertFalse(self.begin())
        self.world.configure(compact_enabled=True)
        self.script.spend_caps = {"game": {"tokens_day": 0}}
        self.assertFalse(self.begin())
        self.script.spend_caps = {}
        self.script.fall_asleep()
        self.assertTrue(self.begin())
        self.assertEqual(self.script.state.stale, [])

    def test_a_failure_at_each_step(self):
        """The summary stays empty, and is made at the next try."""
        for step in REMAKE_STEPS:
            with self.subTest(step=step):
                self.setUp()
                [record] = self.empty()
                self.script.at_commit_step = raising_at(step, OSError)
                self.assertTrue(self.begin())
                self.assertEqual(self.texts(), [EMPTIED])
                self.assertEqual(self.script.state.stale, [record.id])
                self.assert_proven()
                del self.script.at_commit_step
                self.world.later(WAIT_S + 1)
                self.assertTrue(self.begin())
                self.assertIn(self.summary, self.texts()[0])
                self.assertEqual(self.script.state.stale, [])

    def test_a_store_that_fails(self):
        """What was paid for and cannot be stored is not paid for again at the next tick."""
        self.empty()
        self.script.at_commit_step = raising_at("remade", OSError)
        self.assertTrue(self.begin())
        calls = len(self.world.model.requests)
        self.assertGreater(calls, 0)
        self.assertFalse(self.begin())
        self.assertEqual(len(self.world.model.requests), calls)
        del self.script.at_commit_step
        self.world.later(WAIT_S + 1)
        self.assertTrue(self.begin())
        self.assertEqual(self.script.state.stale, [])

    def test_a_model_that_is_down(self):
        """Then the offline model's extract is better than nothing."""
        self.empty()
        self.world.model.default = lambda request: (
            respond(request.messages).content if request.model == OFFLINE_MODEL else model_down()
        )
        self.assertTrue(self.begin())
        self.assertIn("barrel", self.texts()[0])
        self.assertEqual(self.script.state.stale, [])


class TestInTheGame(AssistantTest):
    default = "They talked by the fire."

    def setUp(self):
        super().setUp()
        self.configure(
            max_context_tokens=8000,
            compact_preserve_token_share=0.0,
            reply_cooldown_s=0,
            pre_compact_extraction_enabled=False,
        )
        measure_fixed(self.script)
        while self.script.usage() < 0.72:
            self.fill(1, words=60)

    def begin(self):
        """An idle tick begins it; its model writes."""
        self.model.held = True
        self.assertEqual(self.tick(), "idle")
        self.assertIsNotNone(self.script.runtime.summaries.running)
        pump_until(lambda: self.model.requests)
        self.assertEqual(compaction_state(self.script), "compacting in the background")

    def test_stopping_it(self):
        """What stops a turn stops it too, and a deletion."""
        self.begin()
        self.script.stop_thinking()
        self.assertIsNone(self.script.runtime.summaries.running)
        self.model.release()
        self.assertEqual(self.script.history.compactions(), [])
        self.model.requests.clear()
        self.begin()
        runtime = self.script.runtime
        self.aria.delete()
        self.model.release()
        self.assertIsNone(runtime.summaries.running)
