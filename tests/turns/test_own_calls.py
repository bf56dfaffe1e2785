"""What an assistant does for itself costs few model calls, whatever the window and the talk."""

import unittest

from twisted.internet.defer import inlineCallbacks

from evennia_ai.errors import SpendError
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.contexts import CONTEXT_UNASKED
from evennia_ai.llm_interaction.values import READ_AHEAD, ModelReply, ModelRequest, TurnRequest
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.plan import EMERGENCY
from evennia_ai.sleep.compaction.rules import check_room, firing
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.waiting import wait_for

MINUTE_S = 60.0


class TimedModel(ScriptedModel):
    """A scripted model that notes when it was asked, and for what."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.calls, self.now = [], lambda: 0.0

    def complete(self, request):
        if not request.model.startswith("offline/"):
            self.calls.append((self.now(), request.purpose))
        return super().complete(request)


def most_in_a_minute(times):
    """The most of these times that lie within one minute."""
    return max((sum(at <= t < at + MINUTE_S for t in times) for at in times), default=0)


def talk(count, words=20, people=("Alice",), **fields):
    """So many lines of talk, people's and the assistant's in turn."""
    lines = []
    for number in range(count):
        name = people[number % len(people)]
        text = f"{name} has {number + 3} geese on pond {number}. " + "So it goes. " * words
        said = {"speaker": Speaker(name, f"o{name}")} if number % 2 == 0 else {}
        role = "user" if said else "assistant"
        lines.append(Message(role, text, channel="say", **said, **fields))
    return lines


class OwnCallsCase(unittest.TestCase):
    def aria(self, default="They talked of geese.", window=None, **options):
        """An assistant, and its model."""
        model = TimedModel(default=default, window=window)
        aria = FakeAssistant(model, **options)
        model.now = aria.now
        return aria, model


class TestCalls(OwnCallsCase):
    """At most two a minute that nobody asked for, compactions apart."""

    def test_any_purpose(self):
        """The third in a minute is not made; calls of players, compactions and staff are."""
        for purpose in (CONTEXT_UNASKED, "memory", "anything new"):
            with self.subTest(purpose):
                aria, model = self.aria()
                request = ModelRequest(model="scripted/model", purpose=purpose)
                ask = aria.spend.complete
                for _ in range(2):
                    wait_for(ask(request))
                with self.assertRaises(SpendError):
                    wait_for(ask(request))
                for other in ("summary", "pre_compaction"):
                    wait_for(aria.spend.complete(ModelRequest(model="m", purpose=other)))
                wait_for(aria.spend.complete(request, "o1.a"))
                self.assertEqual(len(model.calls), 5)
                aria.clock.advance(MINUTE_S)
                wait_for(ask(request))

    def test_reading_ahead(self):
        """It is left out where the assistant has made two such calls."""
        aria, model = self.aria()
        model.own = True
        for _ in range(3):
            wait_for(aria.read_ahead())
        self.assertEqual([purpose for _, purpose in model.calls], [READ_AHEAD] * 2)
        aria.clock.advance(MINUTE_S)
        wait_for(aria.read_ahead())
        self.assertEqual(len(model.calls), 3)

    def test_one_try(self):
        """Such a call names no fallback, and is marked to be tried once."""
        aria, model = self.aria()
        request = ModelRequest(model="m", purpose="memory", fallback_models=("n",))
        wait_for(aria.spend.complete(request))
        self.assertEqual((model.requests[0].fallback_models, model.requests[0].is_own), ((), True))


class TestCompactions(OwnCallsCase):
    """However small the window and however long the lines, compactions do not loop."""

    @inlineCallbacks
    def live(self, aria, minutes, lines):
        """Ticks every two seconds, with new lines each time; nobody has to be answered."""
        for number in range(int(minutes * 30)):
            if number < lines:
                aria.history.append(talk(1, words=300))
            yield aria.check_emergency()
            begin_behind(aria)
            aria.clock.advance(2.0)

    def calls(self, window, minutes=4.0, lines=120, **options):
        """Model calls of some minutes in a room where long lines are said."""
        aria, model = self.aria(window=window, **options)
        check_room(aria)
        wait_for(self.live(aria, minutes, lines))
        return aria, model.calls

    def test_a_flood(self):
        """One compaction a minute asks a model, with one call more for each 4,000 tokens.

        Where somebody waits for it, an extraction comes before it, which may ask as often.
        """
        for window in (1_248, 2_047, 2_048, 3_000, 4_096, 8_192, 16_384):
            for in_background in (True, False):
                with self.subTest(window=window, in_background=in_background):
                    _, calls = self.calls(window, compact_background=in_background)
                    most = 14 if in_background else 24
                    self.assertLessEqual(most_in_a_minute([at for at, _ in calls]), most)

    def test_no_calls_without_news(self):
        """Once nobody talks, the work ends."""
        for window in (1_500, 2_500, 4_096, 8_192):
            with self.subTest(window=window):
                aria, calls = self.calls(window, minutes=2)
                wait_for(self.live(aria, 30, 0))
                before = len(aria.mind.model.calls)
                wait_for(self.live(aria, 60, 0))
                self.assertEqual(len(aria.mind.model.calls), before)

    def test_useless_models(self):
        """Whatever the model writes of itself, the same holds."""
        for reply in ("", "no " * 900, ModelReply(content="x", finish_reason="length")):
            with self.subTest(reply=str(reply)[:20]):
                _, calls = self.calls(4_096, default=reply)
                self.assertLessEqual(most_in_a_minute([at for at, _ in calls]), 14)


class TestTooSmall(OwnCallsCase):
    """With a window under 2,048 tokens an assistant only talks, and staff learn of it."""

    def test_a_fault(self):
        """It is said once, with the figure, its source and what to do."""
        aria, _ = self.aria(window=1_500)
        for _ in range(3):
            check_room(aria)
        (said,) = [text for kind, text in aria.audits if kind == "log" and "too small" in text]
        for words in ("1,500 tokens", "by the script", "larger window"):
            self.assertIn(words, said)

    def test_no_other_work(self):
        """It compacts, extracts and speaks unasked never; with more room it does."""
        for window, only_talks in ((1_500, True), (2_047, True), (2_048, False), (8_192, False)):
            with self.subTest(window=window):
                aria, model = self.aria(window=window, initiative=3)
                aria.history.append(talk(80, words=60))
                self.assertEqual(aria.limits().only_talks, only_talks)
                self.assertEqual(not firing(aria, EMERGENCY), only_talks)
                self.assertEqual("too small" in aria.why_not(), only_talks)
                outcome = wait_for(Compaction(aria, "manual").run())
                self.assertEqual("too small" in getattr(outcome, "reason", ""), only_talks)
                self.assertFalse(model.calls and only_talks)

    def test_it_talks(self):
        """A question is answered, with a prompt that fits, and without tools."""
        aria, model = self.aria("The stew is hot.", window=1_500)
        aria.history.append(talk(80, words=60))
        wait_for(aria.run_turn(TurnRequest(asker="o1.a")))
        self.assertEqual(aria.game.said, [("public", "The stew is hot.")])
        (request,) = model.requests
        self.assertEqual(request.tools, ())
        self.assertLessEqual(request.prompt_tokens + request.max_tokens, 1_500)
