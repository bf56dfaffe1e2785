"""A turn ends in time and with an answer, whatever the model and its server do."""

import time
import unittest

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.budget import ReplyTrace, TokenBudget
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.values import ModelReply, TurnRequest
from evennia_ai.testing import call
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from tests import loopback
from tests.fake import FakeAssistant
from tests.loopback import HANG, text
from tests.models import ScriptedModel
from tests.strategies import FEW
from tests.waiting import wait_for
from tests.wire_case import WireTest

OFFLINE = "Offline words."
DONE = "The bees are in the garden."
LOOKS = ("search_memory", "look", "journal_search", "nothing_like_it")


def searches(request):
    """A model that looks something up whenever it is shown tools, and else answers."""
    if request.model == OFFLINE_MODEL:
        return OFFLINE
    return call("search_memory", query="bees") if request.tools else DONE


class TestBounds(unittest.TestCase):
    """A bound ends with a request without tools, then the offline model, then the sign."""

    def aria(self, default, **options):
        aria = FakeAssistant(ScriptedModel(default=default), **options)
        line = Message("user", "Aria, where are the bees?", speaker=Speaker("Alice", "o1.a"))
        aria.history.append([line])
        return aria

    def turn(self, aria, **fields):
        """One turn of Alice's; returns what was heard, and the models that were asked."""
        wait_for(aria.run_turn(TurnRequest(asker="o1.a", **fields)))
        return [words for _, words in aria.game.said], aria.mind.model.requests

    def test_a_model_that_only_searches(self):
        """It is asked so often as it may, then once without tools, and that is said."""
        for most in (1, 3, 8):
            aria = self.aria(searches)
            said, requests = self.turn(aria, max_iterations=most)
            self.assertEqual((said, len(requests)), ([DONE], most + 1))
            self.assertEqual(requests[-1].tools, ())

    def test_a_model_that_never_answers(self):
        """Whatever it calls, also when it is shown no tools: the offline model answers."""
        for name in LOOKS:
            with self.subTest(name):

                def only_calls(request, name=name):
                    is_own = request.model != OFFLINE_MODEL
                    return call(name, query="bees") if is_own else OFFLINE

                said, requests = self.turn(self.aria(only_calls))
                self.assertEqual(said, [OFFLINE])
                self.assertLessEqual(len(requests), 8 + 2)

    def test_a_request_beside_the_turn(self):
        """The offline model's answer has the figures of the turn's prompt, and no other request."""
        beside = TokenBudget(regions={"History": 9}, limit=100, purpose="summary")

        def fails(request):
            if request.model == OFFLINE_MODEL:
                return OFFLINE
            aria.prompts.note(beside)
            return ModelError("nobody answers")

        aria = self.aria(fails)
        self.assertEqual(self.turn(aria)[0], [OFFLINE])
        self.assertEqual(aria.prompts.events()[-1], beside)
        trace = ReplyTrace.of(aria.history.messages()[-1])
        self.assertNotEqual(trace.budget.purpose, "summary")

    def test_the_sign(self):
        """Where no level answers, who waits sees it, and staff learn of it."""
        for fallback in (True, False):
            with self.subTest(fallback=fallback):
                aria = self.aria(
                    lambda request: call("search_memory", query="bees"),
                    llm_offline_fallback=fallback,
                )
                said, _ = self.turn(aria)
                self.assertEqual(said, [])
                self.assertEqual(len(aria.game.shown), 1)
                self.assertIn("without an answer", str(aria.audits))

    def test_tokens(self):
        """A turn that has used up its tokens ends in the same way."""

        def dear(request):
            if request.model == OFFLINE_MODEL or not request.tools:
                return searches(request)
            calls = call("search_memory", query="bees")
            return ModelReply(content="", tool_calls=calls, prompt_tokens=9_000)

        said, requests = self.turn(self.aria(dear, max_context_tokens=4_000))
        self.assertEqual((said, len(requests)), ([DONE], 3))

    def test_time(self):
        """Behind two thirds of its time no tools are called, and what is left bounds the call."""
        spent = []

        def slow(request):
            spent.append((aria.now() - began, request.within_s))
            aria.clock.advance(12.0)
            return searches(request)

        aria = self.aria(slow)
        began = aria.now()
        said, requests = self.turn(aria, deadline=began + 60.0)
        self.assertEqual(said, [DONE])
        self.assertEqual([bool(request.tools) for request in requests], [True] * 4 + [False])
        for at, within_s in spent:
            self.assertLessEqual(at + within_s, 60.0)

    def test_who_was_answered_is_not_answered_again(self):
        """A bound behind an answer ends the turn; so does one of a turn that nobody asked for."""

        both = [*call("say", text=DONE), *call("search_memory", query="bees")]
        answers = [both, call("search_memory", query="hives")]
        aria = self.aria(lambda request: answers.pop(0))
        said, requests = self.turn(aria, max_iterations=2)
        self.assertEqual((said, len(requests)), ([DONE], 2))
        said, requests = self.turn(self.aria(searches), max_iterations=1, context="unasked")
        self.assertEqual((said, len(requests)), ([], 1))

    def test_a_prompt_that_cannot_fit(self):
        """Somebody answers all the same."""
        for limit in (50, 60, 90):
            said, _ = self.turn(self.aria(searches, max_context_tokens=limit))
            self.assertEqual(len(said), 1)


class TestEqualCalls(unittest.TestCase):
    """Equal calls in one reply are made once."""

    FORMS = ('{"text": "Aye."}', '{"text":"Aye."}', {"text": "Aye."}, '{"text": "Aye.", "x": 1}')

    def test_a_line(self):
        """A line twice is said once, and has one call and one result in the history."""
        for second in self.FORMS:
            with self.subTest(second=second):
                (first,), (again,) = call("say", text="Aye."), call("say", text="Aye.")
                again["function"]["arguments"] = second
                aria = FakeAssistant(ScriptedModel([[first, again]]))
                wait_for(aria.run_turn(TurnRequest(asker="o1.a")))
                self.assertEqual(aria.game.said, [("public", "Aye.")])
                roles = [m.role for m in aria.history.messages()]
                self.assertEqual(roles, ["assistant", "tool"])

    @FEW
    @given(st.lists(st.sampled_from([("say", "a"), ("say", "b"), ("emote", "a")]), max_size=9))
    def test_any(self, wanted):
        """The first of each stays, in order; calls that differ all stay."""
        calls = [call(name, text=words)[0] for name, words in wanted]
        kept = [each.raw for each in ToolRegistry(BUILTIN_TOOLS).read(calls)]
        self.assertEqual(kept, [calls[wanted.index(each)] for each in dict.fromkeys(wanted)])

    def test_bad_arguments(self):
        """Calls that cannot be read are compared as they are."""
        calls = [call("say")[0], call("say", words="x")[0], call("say")[0]]
        self.assertEqual(len(ToolRegistry(BUILTIN_TOOLS).read(calls)), 2)


class TestDeadline(WireTest):
    """One time limit a turn, over real HTTP; the lock is free behind it."""

    LIMIT_S = 6.0

    def setUp(self):
        super().setUp()
        self.configure(llm_timeout_s=30.0, turn_timeout_s=self.LIMIT_S, reply_cooldown_s=0)

    def timed(self, words):
        """A tick with a line; returns what was heard and the seconds that passed."""
        heard = self.lines_of(self.char1)
        began = time.monotonic()
        self.talk(words)
        self.assertIsNone(self.script.runtime.lock.running)
        return [line for line in heard if "Aria" in line], time.monotonic() - began

    def test_a_hung_server(self):
        """The offline model answers in time; who asks next does not wait for the server."""
        self.server.respond = lambda body: HANG
        heard, seconds = self.timed("Aria, what is the time?")
        self.assertTrue(any("says" in line for line in heard), heard)
        self.assertLess(seconds, self.LIMIT_S)
        heard, seconds = self.timed("Aria, are you there?")
        self.assertTrue(any("says" in line for line in heard), heard)
        self.assertLess(seconds, 2.5)
        self.assertEqual(len(self.server.requests), 1)

    def test_a_server_that_hangs_later(self):
        """The time that the first calls took is not given again."""

        def respond(body):
            if len(self.server.requests) > 2:
                return HANG
            return loopback.calls(loopback.call("search_memory", {"query": "bees"}), delay_s=0.4)

        self.server.respond = respond
        heard, seconds = self.timed("Aria, where are the bees?")
        self.assertTrue(any("says" in line for line in heard), heard)
        self.assertLess(seconds, self.LIMIT_S)

    def test_a_short_try(self):
        """A try has its own limit."""
        self.configure(llm_timeout_s=0.5)
        self.server.respond = lambda body: HANG
        heard, seconds = self.timed("Aria, what is the time?")
        self.assertTrue(any("says" in line for line in heard), heard)
        self.assertLess(seconds, 2.5)

    def test_what_never_fires(self):
        """Whatever hangs beside the model, the turn is cut off, and the question is kept."""
        self.script.run_turn = lambda request: Deferred()
        self.configure(turn_timeout_s=0.2)
        began = time.monotonic()
        self.assertEqual(self.talk("Aria, hello?"), "error")
        self.assertLess(time.monotonic() - began, 4.0)
        self.assertIsNone(self.script.runtime.lock.running)
        self.assertTrue(self.script.runtime.unanswered)

    def test_good_words_are_not_cut_off(self):
        """An answer that takes its time is said."""
        self.server.respond = lambda body: text("So they say.", delay_s=0.8)
        heard, _ = self.timed("Aria, is it true?")
        self.assertTrue(any("So they say." in line for line in heard), heard)
