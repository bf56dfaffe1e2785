"""Work that holds the turn lock for itself: neither `ai/stop` nor `ai/delete` breaks it off."""

from functools import partial

from twisted.internet.defer import Deferred

from evennia_ai.commands.memory import rebuild_memory
from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.messages import Message
from evennia_ai.privacy.forget import forget_people
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.staff.cards import take_chat
from evennia_ai.staff.export import export_assistant
from evennia_ai.turns.tools.execution import approve, refuse
from tests.base import AssistantTest
from tests.command_line import CommandLineTest
from tests.waiting import pump_until, wait_for

AT = "2027-01-15T08:00:00.000+00:00"


class TestStopped(CommandLineTest):
    """The work is whole, under the lock from its first step to its last, and staff learn of it."""

    default = "They talked."

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)
        me = speaker_of(self.char1)
        lines = [Message("user", f"My boat is Heron{n}.", speaker=me) for n in range(60)]
        self.script.history.append(lines)
        for n in range(60):
            self.aria.journal.add(f"Entry {n}.", source_message_ids=[lines[n].id])

    def works(self):
        """Kinds of exclusive work that take several steps, and how each shows that it is done."""
        script, body, people = self.script, self.aria, [stable_id(self.char1)]
        return {
            "forget": (
                lambda: forget_people(script, body, people, AT),
                lambda: not [m for m in script.history.messages() if m.role == "user"],
            ),
            "export": (lambda: export_assistant(script), lambda: True),
            "rebuild": (lambda: script.memory.rebuild(), lambda: True),
        }

    def stopped_in(self, work, line, turns):
        """Begin a work, type a line after some turns of the reactor; its outcome is returned."""
        script, lock, outcome = self.script, self.script.runtime.lock, []
        done = script.run_exclusive(work)
        pump_until(iter([False] * turns + [True]).__next__)
        holder = lock.running
        assert holder is not None, "the work is over already"
        script.at_commit_step = lambda _: self.assertIs(lock.running, holder)
        done.addBoth(outcome.append)
        self.typed(line)
        self.assertIs(lock.running, holder)
        self.assertIn("Waiting until Aria has finished", self.shown())
        pump_until(lambda: outcome)
        return outcome[0]

    def test_stop(self):
        """Whatever the work, and whenever it is typed."""
        kinds = self.works()
        for name, turns in (("export", 0), ("export", 1), ("rebuild", 0), ("forget", 1)):
            work, is_done = kinds[name]
            with self.subTest(name, turns=turns):
                result = self.stopped_in(work, "ai/stop Aria", turns)
                self.assertNotIn("CancelledError", str(result))
                self.assertTrue(is_done())
                pump_until(lambda: "Aria has finished." in self.shown())
                self.assertFalse(self.script.enabled)
                self.assertIsNone(self.script.runtime.lock.running)
                self.typed("ai/start Aria")

    def test_delete(self):
        """A deletion waits for it, too, and is carried out then."""
        work, _ = self.works()["forget"]
        self.typed("ai/delete Aria")
        result = self.stopped_in(work, "ai/delete Aria = yes", 1)
        self.assertEqual(result["messages"], 60)
        pump_until(lambda: "is deleted" in self.shown())

    def test_a_turn_is_still_cancelled(self):
        """What a model is asked for somebody's line ends at once."""
        turn = self.asked_slowly("Aria, hello", "Good evening.")
        self.assertTold("ai/stop Aria", "Its current turn is cancelled.")
        self.assertEqual(wait_for(turn), "cancelled")


class TestWithoutTheLock(AssistantTest):
    """What says that it needs the turn lock refuses to begin without it, and changes nothing."""

    def test_refused(self):
        script, body = self.script, self.aria
        calls = {
            "forget": partial(forget_people, script, body, ["o1.a"], AT),
            "rollback": partial(rollback_compaction, script),
            "index": partial(rebuild_memory, script),
            "export": partial(export_assistant, script),
            "talk": partial(take_chat, script, self.char1, "old.jsonl", "o1.a", "x"),
            "approve": partial(approve, script, script.tools, 1, "o1.a"),
            "refuse": partial(refuse, script, 1, "o1.a"),
        }
        for name, function in calls.items():
            with self.subTest(name), self.assertRaises(RuntimeError):
                result = function()
                wait_for(result if isinstance(result, Deferred) else Deferred())

    def test_what_others_may_call_takes_it(self):
        """A compaction or a night that is begun by other code holds the lock while it runs."""
        # By count, so that the night makes a summary, too.
        self.configure(pre_compact_extraction_enabled=False, immediate_window=10, recent_window=10)
        for begin in (
            lambda: compact_conversation_history(self.script, self.aria, force=True),
            lambda: self.script._run_sleep_tick(),
        ):
            self.fill(60)
            self.model.held, self.model.default = True, "They talked."
            done = begin()
            self.assertTrue(self.script.runtime.lock.is_exclusive)
            self.model.release()
            wait_for(done)
            self.assertIsNone(self.script.runtime.lock.running)
