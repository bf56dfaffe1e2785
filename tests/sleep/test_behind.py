"""Compaction in the background, and better summaries behind an emergency."""

from contextlib import contextmanager

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, measure_fixed
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.sleep.compaction.compact import WAIT_S
from evennia_ai.staff.status import compaction_state
from evennia_ai.testing import call
from evennia_ai.turns.tick import Tick
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
        measure_fixed(self.script, self.body)
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
        return wait_for(Tick(self.script).run())

    def begin(self):
        return begin_behind(self.script)

    def emergency(self):
        self.fill_to(0.85)
        self.assertTrue(wait_for(Tick(self.script).check_emergency()))

    def records(self):
        return self.script.history.compactions()

    def requests_for(self, purpose):
        return [r for r in self.world.model.requests if r.purpose == purpose]

    @contextmanager
    def begun(self):
        """Begin with a model that answers afterwards; gives what waits for it."""
        self.world.model.held = True
        self.assertTrue(self.begin())
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
        """Begin while a model notes a fact and an observation."""
        self.world.model.answers = [
            call("add_journal_entry", content="Bob hides tar.", lines=[1])
            + call("update_entity_observation", entity="Alice", observation="Sells barrels.")
            + call("noop")
        ]
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
        self.assertIsNone(self.script.runtime.behind)
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
            turn = self.script.runtime.lock.run(lambda: Tick(self.script).run())
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
        self.assertIn("pre_compaction", self.script.state.signals)
        self.world.model.held = False
        seen = wait_for(self.script.run_exclusive(lambda: self.script.state.signals))
        self.assertEqual(seen, {})
        self.assertIsNone(self.script.runtime.behind)
        self.assertEqual(self.script.runtime.compacting, "")
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
        self.assertEqual(self.script.runtime.compacting, "")
        self.assertTrue(self.begin())
        self.assertEqual(len(self.records()), 1)
        self.assert_proven()

    def test_a_rollback_keeps_what_turns_wrote_meanwhile(self):
        """Of a profile that both changed only the extraction's words go."""
        self.fill_to(0.72)
        extracted, told = (
            call("update_entity_observation", entity="Alice", observation=f"Alice {does}.")
            for does in ("sells tar", "is from Wells")
        )
        self.world.model.answers = [extracted]
        with self.begun():
            self.world.model.answers = [told, "I see."]
            self.say("Aria, Alice is from Wells.")
            self.tick()
        self.assertIn("sells tar", str(self.written()[1]))
        self.roll_back()
        self.assertNotIn("sells tar", str(self.written()[1]))
        self.assertIn("from Wells", str(self.written()[1]))
        self.assert_proven()


class TestEmergency(BehindTest):
    def test_no_model_is_asked_before_the_answer(self):
        self.fill_to(0.85)
        self.say()
        self.assertEqual(self.tick(), "turn")
        models = [r.model for r in self.world.model.requests]
        self.assertEqual(set(models[:-1]), {OFFLINE_MODEL})
        self.assertEqual(self.requests_for("pre_compaction"), [])
        [record] = self.records()
        self.assertEqual((record.trigger, record.report.level), ("emergency", "extractive"))
        self.assertEqual(self.script.state.owed, {record.report.summary_id: False})
        self.assertLess(self.script.usage(), 0.8)
        self.assert_proven()

    def test_nor_where_summaries_are_extracts(self):
        """Who speaks with a model and compacts offline waits for no notes either."""
        self.world.configure(compact_model=OFFLINE_MODEL)
        self.fill_to(0.85)
        self.say()
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.requests_for("pre_compaction"), [])

    def test_a_tick_without_a_line_makes_room(self):
        """Then the next line finds room; one that comes meanwhile does not wait either."""
        self.fill_to(0.85)
        with self.begun() as slow:
            self.assertEqual([request.model for *_, request in slow], [OFFLINE_MODEL])
            self.say()
            self.assertEqual(self.tick(), "turn")
            self.assertEqual(self.records(), [])
        [record] = self.records()
        self.assertEqual((record.trigger, record.report.level), ("emergency", "extractive"))
        self.assertTrue(self.begin())
        self.assertEqual(self.script.state.owed, {})
        self.assert_proven()

    def test_the_better_summary_takes_the_place_of_the_extract(self):
        self.emergency()
        raw = [m.content for s in self.script.history.segments() for m in s.messages]
        [extract] = self.script.history.summaries()
        self.assertTrue(self.begin())
        self.assertEqual([record.trigger for record in self.records()], ["emergency"])
        self.assertEqual(self.script.state.owed, {})
        [marker] = [m for m in self.script.history.messages() if m.is_summary]
        self.assertIn(self.summary, marker.content)
        [record] = self.script.history.summaries()
        self.assertEqual((record.id, record.level), (extract.id, "main"))
        self.assertEqual(marker.metadata["summary_id"], extract.id)
        self.assertEqual(record.extra["former"], extract.text)
        request = next(r for r in self.requests_for("summary") if r.model != OFFLINE_MODEL)
        self.assertIn(raw[0][:60], str(request.messages))
        extraction = self.requests_for("pre_compaction")[0]
        self.assertIn(raw[0][:60], str(extraction.messages))
        self.assert_proven()
        self.assertEqual(self.expanded(record.id), raw)
        synthesis = self.body.journal.get(f"compact_{extract.id[1:]}")
        self.assertIn(self.summary, synthesis.content)
        self.assertEqual(self.world.syntheses(), {synthesis.id: synthesis.content})
        self.assertFalse(self.begin())

    def expanded(self, summary_id):
        return [m.content for m in self.script.history.below(summary_id)]

    def test_a_rollback_behind_it(self):
        """The messages are back, the history is as it was, byte by byte, and nothing is owed."""
        self.fill_to(0.85)
        before = self.script.history.messages()
        wait_for(Tick(self.script).check_emergency())
        self.world.model.answers = [call("add_journal_entry", content="Barrels.")]
        self.begin()
        self.roll_back()
        self.assertEqual(self.script.history.messages(), before)
        self.assertEqual(self.written()[0], [])
        self.assert_proven()

    def test_many_emergencies_in_the_tree(self):
        """Extracts deep in the tree are made again, with the nodes above them."""
        self.world.configure(summary_max_tokens=120)
        for _ in range(10):
            self.emergency()
        self.assert_proven()
        extracts = self.script.history.summaries()
        self.begin()
        self.assertEqual(self.script.state.owed, {})
        self.assert_proven()
        in_use = [r for r in self.script.history.summaries() if r.status == "live"]
        self.assertTrue(in_use)
        made = self.script.history.summaries()
        self.assertEqual([r.id for r in made], [r.id for r in extracts])
        self.assertEqual({r.level for r in made}, {"main"})
        raw = [m.content for s in self.script.history.segments() for m in s.messages]
        long = next(r for r in in_use if r.tier == "long")
        recent = next(r for r in in_use if r.tier == "recent")
        self.assertEqual([*self.expanded(long.id), *self.expanded(recent.id)], raw)

    def test_a_model_that_is_down(self):
        """The extract stays, and it is tried again later."""
        self.emergency()
        self.world.model.default = lambda request: (
            respond(request.messages).content if request.model == OFFLINE_MODEL else model_down()
        )
        self.begin()
        self.assertEqual(len(self.records()), 1)
        self.assertEqual(len(self.script.state.owed), 1)
        self.assertFalse(self.begin())
        self.world.later(WAIT_S + 1)
        self.world.model.default = self.answer
        self.assertTrue(self.begin())
        self.assertEqual(self.script.state.owed, {})
        self.assert_proven()

    def begin_for_minutes(self, minutes):
        """Begin work again each minute: an assistant makes two calls a minute for itself."""
        for _ in range(minutes):
            self.world.later(61)
            self.begin()

    def test_what_comes_in_between(self):
        """Whatever ends the work after any of its summaries, the others stay owed, and follow."""

        def cap():
            self.script.spend_caps = {"game": {"tokens_per_day": 1}}

        def uncap():
            self.script.spend_caps = {}

        def offline():
            self.script.model_name = OFFLINE_MODEL

        def online():
            self.script.model_name = "scripted/model"

        for come, go in ((cap, uncap), (offline, online)):
            for number in (1, 2, 4):
                with self.subTest(come=come.__name__, after=number):
                    self.setUp()
                    self.world.configure(summary_max_tokens=120)
                    for _ in range(3):
                        self.emergency()
                    owed, made = len(self.script.state.owed), []
                    self.assertGreater(owed, number)

                    def at_step(name, made=made, come=come, number=number):
                        made.extend([name] * (name == "remade"))
                        if len(made) == number:
                            come()

                    self.script.at_commit_step = at_step
                    self.begin()
                    del self.script.at_commit_step
                    self.assertEqual(len(made), number)
                    self.assertGreaterEqual(len(self.script.state.owed), owed - number)
                    self.assertFalse(self.begin(), "it is tried again and again")
                    go()
                    self.begin_for_minutes(owed)
                    self.assertEqual(self.script.state.owed, {})
                    made_by = {r.level for r in self.script.history.summaries()}
                    self.assertEqual(made_by, {"main"})
                    self.assert_proven()

    def test_in_sleep(self):
        """Asleep, the sleep cycle makes it."""
        self.emergency()
        self.script.fall_asleep()
        report = wait_for(run_sleep_tick(self.script, self.body))
        self.assertEqual(report["better_summaries"], {"success": True, "remade": 1})
        self.assert_proven()

    def test_a_failure_at_each_step_leaves_the_extract(self):
        """The next try makes it again; its facts, stored before, are not extracted twice."""
        for step in REMAKE_STEPS:
            with self.subTest(step=step):
                self.setUp()
                self.emergency()
                before, summaries = self.script.history.messages(), self.script.history.summaries()
                self.script.at_commit_step = raising_at(step, OSError)
                self.note_and_begin()
                self.assertEqual(self.script.history.messages(), before)
                self.assertEqual(self.script.history.summaries(), summaries)
                self.assertEqual(list(self.script.state.owed.values()), [True])
                self.assertEqual(len(self.records()), 1)
                self.assertEqual(self.written()[0], ["Bob hides tar."])
                self.assert_proven()
                del self.script.at_commit_step
                self.world.later(WAIT_S + 1)
                self.assertTrue(self.begin())
                self.assertEqual(self.script.state.owed, {})
                self.assertEqual(self.written()[0], ["Bob hides tar."])
                self.roll_back()  # the facts are the emergency's
                self.assertEqual(self.written(), ([], {}, []))
                self.assert_proven()


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
        measure_fixed(self.script, self.aria)
        while self.script.usage() < 0.72:
            self.fill(1, words=60)

    def begin(self):
        """An idle tick begins it; its model writes."""
        self.model.held = True
        self.assertEqual(self.tick(), "idle")
        self.assertIsNotNone(self.script.runtime.behind)
        pump_until(lambda: self.model.requests)
        self.assertEqual(compaction_state(self.script), "compacting in the background")

    def test_stopping_it(self):
        """What stops a turn stops it too, and a deletion."""
        self.begin()
        self.script.stop_thinking()
        self.assertIsNone(self.script.runtime.behind)
        self.model.release()
        self.assertEqual(self.script.history.compactions(), [])
        self.assertEqual(self.script.runtime.compacting, "")
        self.model.requests.clear()
        self.begin()
        runtime = self.script.runtime
        self.aria.delete()
        self.model.release()
        self.assertIsNone(runtime.behind)
