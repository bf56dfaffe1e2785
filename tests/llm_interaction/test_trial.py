"""A few calls find out whether a model talks as well with tools as without."""

import asyncio
import unittest

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.contexts import TOOL_RULES
from evennia_ai.llm_interaction.conversation import read_prompt
from evennia_ai.llm_interaction.trial import (
    GREETING,
    GUEST,
    ME,
    ORDER,
    SMALL_TALK,
    speech_of,
)
from evennia_ai.llm_interaction.values import FORM, ONLY_SPEAKS, SPEAKS_AND_CALLS
from evennia_ai.testing import call
from tests.asked import heard_in
from tests.models import ScriptedModel

HELLO, WIND = "Sleepy, but well, thank you.", "Mine is in the millpond since Tuesday."
GIVEN = call("give", thing="copper lamp", to=GUEST)


def found(*answers):
    """What a trial finds of a model that answers so, and the requests it made."""
    model = ScriptedModel(answers)

    async def ask(request):
        return await model.complete(request).asFuture(asyncio.get_running_loop())

    result = asyncio.run(speech_of(ask, "any/model", 9.0))
    return result, model.requests


class TestTrial(unittest.TestCase):
    def test_what_counts(self):
        """It greets and chats in words of its own, and calls the tool that an order wants."""
        for calls_tools, answers in (
            (True, (HELLO, WIND, GIVEN)),
            (True, (f"{ME}: {HELLO}", "*yawns* Windy, aye.", GIVEN)),
            # An order may be answered in words besides, and by a call that is written as text.
            (True, (HELLO, WIND, '<tool_call>{"name": "give", "arguments": {}}</tool_call>')),
            # No call when it is asked for one, or another one.
            (False, (HELLO, WIND, "Here you are.")),
            (False, (HELLO, WIND, call("search_memory", query="lamp"))),
            # A call on small talk.
            (False, (call("noop"),)),
            (False, (HELLO, call("search_memory", query="wind"))),
            # What is no answer.
            (False, ("",)),
            (False, (GREETING,)),
            (False, ("(Here: Merrit)",)),
            (False, (f"{GUEST}: I am fine.",)),
            (False, (HELLO, SMALL_TALK)),
            (False, (HELLO, "<answer/>")),
        ):
            with self.subTest(answers):
                for before, speech in (((), SPEAKS_AND_CALLS), (("",), FORM)):
                    result, requests = found(*before, *answers)
                    self.assertEqual(result, speech if calls_tools else ONLY_SPEAKS)
                    ways = [request.speech for request in requests]
                    tried = [SPEAKS_AND_CALLS] * len(before) + [speech] * len(answers)
                    self.assertEqual(ways[: len(tried)], tried)

    def test_a_server_that_fails(self):
        """Its error is raised: nothing is found. A refusal of tools leads to the next way."""
        with self.assertRaises(ModelError):
            found(HELLO, ModelError("no server", retryable=True, kind="connection"))
        refused = ModelError("no tools here", kind="bad_request")
        self.assertEqual(found(HELLO, refused, HELLO, WIND, GIVEN)[0], FORM)
        self.assertEqual(found(refused, HELLO, refused)[0], ONLY_SPEAKS)

    def test_what_is_asked(self):
        """An ordinary prompt, with examples, a few tools and the line last."""
        _, requests = found(HELLO, WIND, GIVEN)
        for request, line in zip(requests, (GREETING, SMALL_TALK, ORDER), strict=True):
            reading = read_prompt(request.messages)
            self.assertEqual(reading.me, ME)
            heard = heard_in(request.messages)
            self.assertEqual(heard[-1].text, line)
            self.assertEqual(len(heard), 5)
            self.assertIn(TOOL_RULES, request.messages[0]["content"])
            self.assertIn("copper lamp", reading.place["What you carry"])
            self.assertEqual(request.called, {t["function"]["name"] for t in request.tools})
            self.assertEqual((request.model, request.timeout_s), ("any/model", 9.0))
        beginnings = {str(request.messages[:-1]) for request in requests}
        self.assertEqual(len(beginnings), 1)  # which servers cache
