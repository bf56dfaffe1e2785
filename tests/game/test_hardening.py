"""What must not hurt: odd unicode, endless loops."""

from evennia.comms.models import Msg

from evennia_ai.game.hearing import Origin, heard_event
from evennia_ai.language.words import storable
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.testing import call
from tests.base import AssistantTest, events
from tests.waiting import pump_until, wait_for


class TestOddText(AssistantTest):
    """Text no database or network would take."""

    default = "Well met."

    def test_lone_surrogate(self):
        """A lone surrogate is left out of what is heard, stored, logged and answered."""
        self.say("Aria, \ud800 hello")
        self.tick()
        self.assertEqual(self.contents()[0], ("user", "Aria,  hello"))
        self.script.trouble("odd \ud800")
        self.script.audit("odd", text="\ud800")
        self.assertEqual(len(events("odd")), 1)
        self.assertEqual(storable("a\udfffb"), "ab")

    def test_nul(self):
        """A NUL, which PostgreSQL refuses in texts, is stored nowhere and breaks nothing."""
        self.model.answers = [
            call("whisper", target="Nob\x00ody", text="Psst."),
            call("page", target="Char", text="a\x00b"),
            "One\x00two.",
        ]
        self.aria.hear_page(self.account, "Aria, \x00 hello", self.char1)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.contents()[0], ("user", "Aria,  hello"))
        self.assertNotIn("\x00", repr(self.script.history.messages()))
        [page] = Msg.objects.all()
        self.assertEqual(page.message, "Onetwo.")

    def test_odd_message_types(self):
        """Options of any type in a message are passed over."""
        for kind in (["say"], 5, {"a": 1}):
            text = ("hi", {"type": kind})
            self.assertIsNone(heard_event(self.aria, text, self.char1, Origin()))


class TestEndlessLoops(AssistantTest):
    """Nothing asks a model again and again for nothing."""

    default = "Well met."

    def test_hopeless_context(self):
        """An idle assistant whose context no compaction can relieve makes no calls."""
        self.fill(12, words=30)
        self.configure(max_context_tokens=1500, compact_preserve_window=100)
        self.tick()
        self.model.requests.clear()
        for _ in range(5):
            self.tick()
        self.assertEqual(self.model.requests, [])

    def test_a_stopped_compaction_is_no_failure(self):
        """A compaction that staff stop makes none wait."""
        self.configure(max_context_tokens=4000, pre_compact_extraction_enabled=False)
        self.fill(80, words=40)
        for _ in range(3):
            self.model.held = True
            self.model.requests.clear()
            self.script.at_tick()
            pump_until(lambda: self.model.requests)
            self.assertTrue(self.script.stop_thinking())
            pump_until(lambda: self.script.runtime.lock.running is None)
        self.assertEqual(self.script.runtime.summaries.waits, (0, 0.0))

    def test_heard_before_a_long_compaction_is_saved(self):
        """What is heard survives a kill once a tick began, whatever that tick waits for first."""
        self.configure(max_context_tokens=4000, pre_compact_extraction_enabled=False)
        self.fill(80, words=40)
        self.model.held = True
        self.say("Aria, can you hear me?")
        running = self.script.at_tick()
        self.assertFalse(running.called)
        self.assertEqual(len(self.script.state.load_queue()), 1)
        self.script.stop_thinking()
        self.assertEqual(wait_for(running), "cancelled")

    def test_off_while_the_summary_is_written(self):
        """Switching compaction off stops one under way."""
        self.fill(50)
        self.model.held = True
        running = compact_conversation_history(self.script, self.aria, force=True)
        self.configure(compact_enabled=False)
        pump_until(lambda: self.model.requests)
        self.model.release()
        self.assertEqual(wait_for(running)["reason"], "compaction disabled")
        self.assertEqual(len(self.script.history.messages()), 50)
