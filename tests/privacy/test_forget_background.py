"""Forgetting while a compaction runs in the background, with the words in its model's request."""

import pickle

from twisted.internet.defer import Deferred

from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.privacy.forget import forget_people
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.testing import call
from tests.models import ScriptedModel
from tests.privacy.test_forget import ALICE, AT, BOB, SECRET, ForgettingTest, parrot
from tests.steps import COMMIT_STEPS
from tests.waiting import pump_until, wait_for

# The kinds of compaction, and the steps of their commits.
KINDS = {"background": (*COMMIT_STEPS, "done"), "emergency": ("done",)}
# More model calls than any compaction of these tests makes.
MOST_CALLS = 40


class TestInTheBackground(ForgettingTest):
    """Nothing of what is forgotten comes back by what a compaction was making."""

    worlds = {}  # each kind's, made once and pickled, which is read faster than a copy is made

    def setUp(self):
        """Nothing: each kind of compaction has a world of its own."""

    def begin_at(self, kind):
        """The world in which a compaction of this kind is due."""
        if kind not in self.worlds:
            self.worlds[kind] = pickle.dumps(self.made_due(kind))
        self.world, self.others = pickle.loads(self.worlds[kind])
        self.held_at, self.calls = None, 0
        self.world.model = ScriptedModel(default=self.answer)
        self.world.restart()
        measure_fixed(self.script)

    def made_due(self, kind):
        """Talk until it is due; that world, and what Bob said in it."""
        super().setUp()
        self.world.configure(
            max_context_tokens=12000,
            compact_preserve_token_share=0.0,
            pre_compact_extraction_enabled=True,
            reply_cooldown_s=0,
        )
        measure_fixed(self.script)
        while self.script.usage() < (0.72 if kind == "background" else 0.85):
            self.talk(1)
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
            entry = f"Alice says: my boat is called {SECRET}1x."
            return call("add_journal_entry", content=entry)
        return parrot(request)[:400] if request.purpose == "summary" else self.extract(request)

    def begin_held(self, kind, number):
        """Begin a compaction whose model call of this number waits; False if it makes fewer."""
        self.begin_at(kind)
        self.held_at = number
        self.assertTrue(begin_behind(self.script))
        return self.script.runtime.summaries.running is not None

    def at_each_call(self, kind):
        """Yields with the compaction held at its first call, then at its second, and so on."""
        number = 1
        while self.begin_held(kind, number):
            with self.subTest(kind=kind, call=number):
                yield number
            number += 1
            self.assertLess(number, MOST_CALLS)
        self.assertGreater(number, 1, "no model was asked")

    def forgetting(self):
        """Forget Alice under the turn lock, as `aiforget` does."""
        people = [ALICE.id]
        return self.script.run_exclusive(lambda: forget_people(self.script, self.body, people, AT))

    def late(self):
        """The held model answers after all."""
        self.held_at = None
        self.world.model.release()
        pump_until(lambda: not self.world.model._waiting)

    def assert_forgotten(self):
        """And nothing runs, and nothing of an unfinished compaction is noted."""
        runtime = self.script.runtime
        busy = (runtime.summaries.running, runtime.lock.running)
        self.assertEqual(busy, (None, None))
        self.assertEqual((self.script.state.signals, self.script.errors), ({}, []))
        super().assert_forgotten()

    def test_before_each_answer(self):
        """The compaction is cancelled; what the model says later, or meanwhile, reaches nothing."""
        for kind in KINDS:
            for number in self.at_each_call(kind):
                step = ("forget replies", "forget messages", "remake", "")[number % 4]
                self.script.at_commit_step = lambda name, at=step: name != at or self.late()
                done = self.forgetting()
                self.world.model.held = False
                wait_for(done)
                self.remake()
                self.late()
                self.assert_forgotten()

    def test_between_the_answer_and_the_commit(self):
        """While both wait for the end of a turn, whichever came first."""
        for kind in KINDS:
            last = max(self.at_each_call(kind))
            for is_first in (True, False):
                with self.subTest(kind=kind, forgetting_first=is_first):
                    self.assertTrue(self.begin_held(kind, last))
                    before, turn = len(self.script.history.compactions()), Deferred()
                    self.script.runtime.lock.run(lambda turn=turn: turn)
                    done = self.forgetting() if is_first else None
                    self.late()
                    done = done or self.forgetting()
                    turn.callback(None)
                    wait_for(done)
                    made = len(self.script.history.compactions()) - before
                    self.assertEqual(made, 0 if is_first else 1)
                    self.assert_forgotten()

    def test_between_drafts(self):
        """What was written before the commit goes, too."""
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.begin_at(kind)
                waiting, store = Deferred(), self.script.history.store

                def at_step(name, waiting=waiting):
                    if name == "summary":
                        self.script.breathe = lambda: waiting

                self.script.at_commit_step = at_step
                self.assertTrue(begin_behind(self.script))
                self.assertTrue(store.keys("ai_archive_draft"))
                del self.script.breathe, self.script.at_commit_step
                wait_for(self.forgetting())
                self.assertFalse(store.keys("ai_archive_draft") or store.keys("ai_summaries_draft"))
                self.remake()
                self.assert_forgotten()

    def test_between_the_parts_of_the_commit(self):
        """What asks for the lock in the middle of a commit gets it when the commit is whole."""
        for kind, steps in KINDS.items():
            for step in steps:
                with self.subTest(kind=kind, step=step):
                    self.begin_at(kind)
                    before, asked = len(self.script.history.compactions()), []

                    def at_step(name, step=step, asked=asked):
                        if name == step and not asked:
                            asked.append(self.forgetting())

                    self.script.at_commit_step = at_step
                    self.assertTrue(begin_behind(self.script))
                    [done] = asked
                    wait_for(done)
                    made = len(self.script.history.compactions()) - before
                    self.assertEqual(made, 1)
                    self.assert_forgotten()
