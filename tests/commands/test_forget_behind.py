"""`aiforget`, and what else ends a compaction in the background, in a game."""

from evennia_ai.history.live import verify_history
from evennia_ai.llm_interaction.prompt import context_usage, measure_fixed
from evennia_ai.privacy.queue import ForgettingJob, queued
from evennia_ai.testing import call
from tests.asked import source_of
from tests.commands.test_commands_privacy import SECRET, ForgettingGameTest, parrot
from tests.waiting import pump_until


class TestBehind(ForgettingGameTest):
    """Aria compacts in the background; her model takes its time."""

    def setUp(self):
        super().setUp()
        self.configure(
            max_context_tokens=8000,
            compact_preserve_token_share=0.0,
            compact_preserve_window=4,
            pre_compact_extraction_enabled=True,
            reply_cooldown_s=0,
        )
        self.held_for = ""
        self.model.default = self.answer

    def answer(self, request):
        """Hold the first request for one purpose; facts and summaries repeat what was said."""
        if request.purpose == self.held_for:
            self.model.held, self.held_for = True, ""
        if request.purpose == "pre_compaction":
            if request.messages[-1]["role"] == "tool":
                return call("noop")
            return call("add_journal_entry", content=f"A boat is {SECRET}00x.")
        if SECRET not in source_of(request.messages):
            return "They spoke of barley."
        # Nobody spoke of Paris: what is struck goes to the log.
        return f"{parrot(request)[:300]} They saw {SECRET}01x and Paris in 1871."

    def begin(self, purpose):
        """A compaction that waits for its model's answer to a request for this purpose."""
        self.lived()
        measure_fixed(self.script, self.aria)
        while context_usage(self.script) < 0.72:
            for n in range(6):
                self.say(f"My boat is {SECRET}0{n}x" + " and far away" * 12)
            self.script.runtime.give_up()
            self.stored(self.script)
        self.held_for = purpose
        self.tick()
        pump_until(lambda: self.model._waiting)
        self.assertIsNotNone(self.script.runtime.behind)
        self.model.held = False  # only that one call waits

    def release(self):
        """The model answers; what follows from it is done."""
        self.model.release()
        pump_until(lambda: self.script.runtime.behind is None, 60)

    def test_forgetting_while_facts_are_extracted(self):
        """The answer comes in the middle of it."""
        self.forgotten_at("pre_compaction", "forget journal")

    def test_forgetting_while_a_summary_is_written(self):
        """The answer comes when it is all done."""
        self.forgotten_at("summary", "forget log again")

    def test_a_compaction_in_its_course(self):
        """What it wrote to the log after that was cleared is cleared too."""
        self.forgotten_at("summary", "forget exports")

    def forgotten_at(self, purpose, step):
        """Begin, type `aiforget`, and let the model answer at a step."""
        self.begin(purpose)
        compactions = len(self.script.history.compactions())
        kinds = ((ForgettingJob, "at_step"), (type(self.script), "at_commit_step"))
        before = [getattr(kind, name) for kind, name in kinds]

        def at_step(this, name):
            if name == step:
                self.model.release()
                if step == "forget exports":  # the log was cleared: it fills again
                    self.script.audit("error", what=f"lost {SECRET}00x")
                    pump_until(lambda: self.script.runtime.behind is None, 60)

        for kind, name in kinds:
            setattr(kind, name, at_step)
        try:
            self.forget_me()
        finally:
            for (kind, name), was in zip(kinds, before, strict=True):
                setattr(kind, name, was)
        if step == "forget exports":
            self.assertGreater(len(self.script.history.compactions()), compactions)
        self.release()
        self.assertIsNone(self.script.runtime.in_flight)
        self.assertEqual(queued(), [])
        self.assertNotIn(SECRET, self.everything())
        self.assertEqual(verify_history(self.script), ())

    def test_a_rollback(self):
        """It does not wait for the model; the compaction in flight is gone."""
        self.begin("summary")
        self.be("Admin")
        self.typed("compact/rollback Aria")
        self.typed("compact/rollback Aria = yes", until="Taken back")
        self.release()
        statuses = [record.status for record in self.script.history.compactions()]
        self.assertEqual(statuses[-1], "rolled back")
        self.assert_at_rest()

    def test_stopped(self):
        """`ai/stop` ends it, and after `ai/start` another one comes about."""
        self.begin("summary")
        self.be("Admin")
        self.typed("ai/stop Aria")
        self.assertIsNone(self.script.runtime.behind)
        self.release()
        known = len(self.script.history.compactions())
        self.assert_at_rest()
        self.typed("ai/start Aria")
        self.script.stop()
        self.tick()
        pump_until(lambda: self.script.runtime.behind is None, 60)
        self.assertGreater(len(self.script.history.compactions()), known)

    def test_compaction_switched_off(self):
        """What is ready by then is not committed."""
        self.begin("summary")
        before = self.contents()
        self.be("Admin")
        self.typed("compact/off Aria")
        self.release()
        self.assertEqual(self.contents(), before)
        self.assert_at_rest()

    def test_deletion(self):
        """By command."""
        self.begin("summary")
        script, runtime = self.script, self.script.runtime
        self.be("Admin")
        self.typed("ai/delete Aria")
        self.typed("ai/delete Aria = yes", until="is deleted")
        self.model.release()
        self.assertIsNone(script.pk)
        self.assertIsNone(runtime.behind)
        self.assertEqual(runtime.counts["errors"], 0)

    def test_destruction(self):
        """Of the body, by Evennia's own command."""
        self.begin("pre_compaction")
        runtime = self.script.runtime
        self.aria.delete()
        self.model.release()
        self.assertIsNone(runtime.behind)
        self.assertEqual(runtime.counts["errors"], 0)

    def assert_at_rest(self):
        """Nothing of an unfinished compaction is noted, and the history is proven."""
        self.assertIsNone(self.script.runtime.in_flight)
        pump_until(lambda: not self.script.state.intent, 60)  # what is pending is published
        self.assertEqual(self.script.state.signals(), {})
        self.assertEqual(verify_history(self.script), ())
