"""Forgetting, rollback, switching off and restarts while a compaction runs in the background."""

import copy

from twisted.internet.defer import Deferred

from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import context_usage, measure_fixed
from evennia_ai.privacy.forgetting import STEPS, forget_people, remake_summary
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.sleep.compaction.commit import COMMIT_STEPS, REMAKE_STEPS
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.testing import ScriptedModel, call
from evennia_ai.turns.tick import check_emergency, run_tick
from tests.privacy.test_forgetting import ALICE, AT, BOB, SECRET, ForgettingTest, parrot
from tests.waiting import pump_until, wait_for

KINDS = ("background", "better", "emergency")
# More model calls than any compaction of these tests makes.
MOST_CALLS = 40


class BesideTest(ForgettingTest):
    """The assistant of `ForgettingTest`, whose context is full."""

    worlds = {}  # each kind's, made once

    def setUp(self):
        """Nothing: each kind of compaction has a world of its own."""

    def begin_at(self, kind):
        """The world in which a compaction of this kind is due."""
        if kind not in self.worlds:
            self.worlds[kind] = self.made_due(kind)
        self.world, self.others = copy.deepcopy(self.worlds[kind])
        self.held_at, self.calls = None, 0
        self.world.model = ScriptedModel(default=self.answer)
        self.world.restart()
        measure_fixed(self.script, self.body)

    def made_due(self, kind):
        """Talk until it is due; that world, and what Bob said in it."""
        super().setUp()
        self.world.configure(
            max_context_tokens=12000,
            compact_preserve_token_share=0.0,
            pre_compact_extraction_enabled=True,
            reply_cooldown_s=0,
        )
        measure_fixed(self.script, self.body)
        while context_usage(self.script) < (0.72 if kind == "background" else 0.85):
            self.talk(1)
        if kind == "better":
            self.world.model.default = self.extract
            self.assertTrue(wait_for(check_emergency(self.script, self.body)))
        world, others = self.world, self.lines_of(BOB)
        world.script = world.body = world.model = None  # what no restart outlives
        return world, others

    @staticmethod
    def extract(request):
        return respond(request.messages).content or ""

    def answer(self, request):
        """Facts and summaries that repeat what was said; the call number `held_at` is held."""
        self.calls += 1
        if self.calls == self.held_at:
            self.world.model.held = True
        if request.purpose == "pre_compaction":
            if request.messages[-1]["role"] == "tool":
                return call("noop")
            entry = f"The boats are {SECRET}1x and {SECRET}2x."
            return call("add_journal_entry", content=entry)
        return parrot(request)[:400] if request.purpose == "summary" else self.extract(request)

    def begin(self, kind):
        self.assertTrue(begin_behind(self.script, self.body))
        if self.script.runtime.behind is not None:
            self.assertEqual(self.script.runtime.behind[1], kind)

    def begin_held(self, kind, number):
        """Begin a compaction whose model call of this number waits; False if it makes fewer."""
        self.begin_at(kind)
        self.held_at = number
        self.begin(kind)
        return self.script.runtime.behind is not None

    def at_each_call(self, kind):
        """Yields with the compaction held at its first call, then at its second, and so on."""
        number = 1
        while self.begin_held(kind, number):
            with self.subTest(kind=kind, call=number):
                yield
            number += 1
            self.assertLess(number, MOST_CALLS)
        self.assertGreater(number, 1, "no model was asked")

    def forgetting(self):
        """Forget Alice under the turn lock, as `aiforget` does; summaries are made again."""
        done = self.script.run_exclusive(
            lambda: forget_people(self.script, self.body, [ALICE.id], AT)
        )
        return done.addCallback(self.remade)

    def remade(self, counts):
        remaking = self.script.run_exclusive(lambda: remake_summary(self.script, self.body))
        return remaking.addCallback(lambda left: self.remade(counts) if left else counts)

    def late(self):
        """The held model answers after all."""
        self.held_at = None
        self.world.model.release()
        pump_until(lambda: not self.world.model._waiting)

    def assert_at_rest(self):
        """Nothing runs, and nothing of an unfinished compaction is noted."""
        self.assertIsNone(self.script.runtime.behind)
        self.assertIsNone(self.script.runtime.in_flight)
        self.assertEqual(self.script.state.signals(), {})
        self.assertEqual(self.script.state.intent, {})
        self.assertEqual(self.script.errors, [])
        self.assert_proven()

    def assert_goes_on(self):
        """The assistant ticks, and its next compaction comes about."""
        self.held_at, self.world.model.held = None, False
        self.world.model.default = self.extract
        self.world.later()
        wait_for(run_tick(self.script, self.body))
        while context_usage(self.script) < 0.72:
            self.script.history.append([Message("user", "Hay is dear. " * 40, speaker=BOB)])
        known = len(self.script.history.compactions())
        while begin_behind(self.script, self.body):
            continue
        self.assertGreater(len(self.script.history.compactions()), known)
        self.assertIsNone(self.script.runtime.behind)
        self.assert_proven()


class TestForgetting(BesideTest):
    """Nothing of what is forgotten comes back by what the compaction was making."""

    def test_before_each_answer(self):
        """The compaction is cancelled; what the model says later reaches nothing."""
        for kind in KINDS:
            for _ in self.at_each_call(kind):
                done = self.forgetting()
                self.held_at = None
                self.world.model.held = False
                wait_for(done)
                self.late()
                self.assert_at_rest()
                self.assert_forgotten()

    def test_an_answer_between_its_steps(self):
        """The same where the answer comes in the middle of the forgetting."""
        for kind in KINDS:
            for step in STEPS:
                with self.subTest(kind=kind, step=step):
                    self.assertTrue(self.begin_held(kind, 1))
                    self.script.at_commit_step = lambda name, at=step: name != at or self.late()
                    self.world.model.held = False
                    wait_for(self.forgetting())
                    self.assert_at_rest()
                    self.assert_forgotten()

    def test_between_the_answer_and_the_commit(self):
        """While both wait for the end of a turn, whichever came first."""
        for kind in KINDS:
            for is_first in (True, False):
                with self.subTest(kind=kind, forgetting_first=is_first):
                    known, done, turn = self.wait_with_commit(kind, is_first)
                    turn.callback(None)
                    wait_for(done)
                    made = len(self.script.history.compactions()) - known
                    self.assertEqual(made, 0 if is_first else 1)
                    self.assert_at_rest()
                    self.assert_forgotten()

    def wait_with_commit(self, kind, is_first):
        """A compaction whose commit waits for a turn, and so does a forgetting."""
        number = 1
        while self.begin_held(kind, number):
            last, number = number, number + 1
        self.assertTrue(self.begin_held(kind, last))
        known, turn = len(self.script.history.compactions()), Deferred()
        self.script.runtime.run_locked(lambda: turn)
        if is_first:
            done = self.forgetting()
            self.late()
            return known, done, turn
        self.late()
        return known, self.forgetting(), turn

    def test_between_the_parts_of_the_commit(self):
        """What asks for the lock in the middle of a commit gets it when the commit is whole."""
        for kind in KINDS:
            steps = REMAKE_STEPS if kind == "better" else COMMIT_STEPS
            for step in (*steps, "done"):
                with self.subTest(kind=kind, step=step):
                    self.begin_at(kind)
                    known, asked = len(self.script.history.compactions()), []

                    def at_step(name, step=step, asked=asked):
                        if name == step and not asked:
                            begun = []
                            self.script.run_exclusive(lambda: begun.append(name))
                            self.assertEqual(begun, [])
                            asked.append(self.forgetting())

                    self.script.at_commit_step = at_step
                    self.begin(kind)
                    [done] = asked
                    wait_for(done)
                    self.assertEqual(len(self.script.history.compactions()), known + 1)
                    self.assert_at_rest()
                    self.assert_forgotten()


class TestOthers(BesideTest):
    """What else may come while a compaction waits for its model."""

    def test_a_rollback(self):
        """It takes back what was there before, and the compaction in flight makes nothing."""
        for kind in KINDS:
            for _ in self.at_each_call(kind):
                known = [r.status for r in self.script.history.compactions()]
                done = self.script.run_exclusive(
                    lambda: rollback_compaction(self.script, self.body)
                )
                wait_for(done)
                self.late()
                now = [r.status for r in self.script.history.compactions()]
                self.assertEqual(now, [*known[:-1], "rolled back"])
                self.assertEqual(self.lines_of(BOB), self.others)
                self.assert_at_rest()

    def test_switched_off(self):
        """The next tick stops it."""
        for kind in KINDS:
            for _ in self.at_each_call(kind):
                before = self.script.history.messages()
                self.script.enabled = False
                self.assertEqual(wait_for(run_tick(self.script, self.body)), "disabled")
                self.late()
                self.assertEqual(self.script.history.messages(), before)
                self.assert_at_rest()

    def restart(self):
        """The process ends, and with it the call that waits."""
        self.held_at, self.world.model.held, self.world.model._waiting = None, False, []
        self.world.restart()

    def test_a_restart(self):
        """Nothing is lost; what the compaction had stored before it is forgotten after it."""
        for kind in KINDS:
            for _ in self.at_each_call(kind):
                before = self.script.history.messages()
                self.restart()
                raw = [m for m in self.script.history.messages() if m.role == "user"]
                self.assertEqual(raw, [m for m in before if m.role == "user"])
                self.assert_at_rest()
                wait_for(self.forgetting())
                self.assert_at_rest()
                self.assert_forgotten()

    def test_the_next_compaction(self):
        """Whatever ended the last one, the next comes about."""

        def off_and_on():
            self.script.enabled = False
            wait_for(run_tick(self.script, self.body))
            self.script.enabled = True

        for kind in KINDS:
            for end in (self.forgetting, self.restart, off_and_on):
                with self.subTest(kind=kind, end=end.__name__):
                    self.assertTrue(self.begin_held(kind, 1))
                    self.world.model.held = False
                    done = end()
                    if done is not None:
                        wait_for(done)
                    self.assert_goes_on()
