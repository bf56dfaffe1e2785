"""What is heard while something long holds the turn lock: stored and answered afterwards."""

from dataclasses import replace

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.staff.acts import Acts
from evennia_ai.turns.runtime import RUNTIMES
from tests.base import AssistantTest
from tests.steps import verify_history
from tests.waiting import pump_until, wait_for


class TestHeardMeanwhile(AssistantTest):
    """The lock is held by a model that does not answer yet."""

    default = "So it was."

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False, compact_auto=False)
        self.told = []

    def hear(self, count, channel="say", **fields):
        """So many lines of Char's, with a late tick behind each fifty."""
        by = Speaker("Char", stable_id(self.char1))
        for n in range(count):
            self.told.append(f"verse {len(self.told)}")
            line = Message("user", self.told[-1], new_id("m"), speaker=by, **fields)
            self.script.hear(replace(line, channel=channel))
            if n % 50 == 49:
                self.assertEqual(wait_for(self.script.at_tick()), "late")

    def compact(self):
        """Begin a compaction whose summary is not made yet."""
        self.fill(60)
        self.model.held = True
        self.told = [text for _, text in self.contents()]
        done = Acts(self.script, self.script.seen("staff"), self.char1).compacted()
        pump_until(lambda: self.model.requests)
        return done

    def heard(self):
        """The texts of all that was told, wherever it is now."""
        segments = [m for s in self.script.history.segments() for m in s.messages]
        messages = [*segments, *self.script.history.messages()]
        return [m.content for m in messages if m.content in set(self.told)]

    def test_a_slow_summary_loses_nothing(self):
        """What is heard until then is stored in order, and answered afterwards."""
        done = self.compact()
        self.hear(220)
        self.assertEqual(self.script.runtime.dropped, 0)
        self.model.release()
        self.assertIn("compacted", wait_for(done))
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.heard(), self.told)
        self.assertEqual(self.contents()[-1], ("assistant", "So it was."))
        self.assertEqual(verify_history(self.script), ())
        self.assertEqual(self.tick(), "idle")

    def test_a_crash_meanwhile(self):
        """Lines heard while a summary was made are answered after the next start."""
        self.compact()
        self.hear(100)
        self.model.cancel_all()
        RUNTIMES.pop(self.script.scope, None)
        self.script.at_server_start()
        self.model.held = False
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.heard(), self.told)
        self.assertEqual(self.contents()[-1], ("assistant", "So it was."))

    def test_a_dreamer_is_woken(self):
        """Who is spoken to in a long dream wakes."""
        self.script.fall_asleep()
        self.compact()
        self.hear(50, channel="whisper", audience=private([stable_id(self.char1)]))
        self.model.release()
        pump_until(lambda: self.script.runtime.lock.running is None)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.script.state.mode, "awake")
