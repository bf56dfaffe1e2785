"""Words, poses and calls of a model that answers with a JSON object."""

import json
import re
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.form import form_format
from evennia_ai.llm_interaction.profiles import ModelProfile, reshaped
from evennia_ai.llm_interaction.values import FORM, SPEAKS_AND_CALLS, ModelRequest, TurnRequest
from evennia_ai.testing import call
from tests import loopback
from tests.fake import FakeAssistant
from tests.loopback import LoopbackServer, failure, form
from tests.strategies import FEW, texts
from tests.waiting import wait_for

MODEL = "openai/any"
TOOL = {
    "type": "function",
    "function": {
        "name": "give",
        "description": "Give a thing.",
        "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}},
    },
}


class TestForm(unittest.TestCase):
    @FEW
    @given(texts, texts, st.dictionaries(st.text(min_size=1), st.integers()))
    def test_what_an_object_says(self, say, pose, arguments):
        """All its words, the pose before them on a line of its own, and its call."""
        said = {"say": say, "pose": pose, "call": {"name": "give", "arguments": arguments}}
        answer = read(json.dumps(said), {"give"}, reported=True)
        self.assertEqual([(n, json.loads(a)) for n, a in answer.calls], [("give", arguments)])
        answer = read(json.dumps({**said, "call": None}), {"give"}, reported=True)
        bare = [re.sub(r"[\s*]", "", each) for each in (answer.text, pose + say)]
        self.assertEqual(bare[0], bare[1])
        self.assertTrue(answer.text.endswith(say.strip()))

    def test_odd_objects(self):
        """What is null says and calls nothing; a torn one says what is left of it."""
        for text, said, calls in (
            ('{"say": null, "pose": null, "call": null}', "", 0),
            ('{"say": "Aye."}', "Aye.", 0),
            ('{"say": "Aye.", "call": {"name": "a"}}', "Aye.", 1),
            ('{"pose": "*nods*", "call": [{"name": "a"}, {"name": "b"}]}', "*nods*", 2),
            ('{"say": "Aye.", "call": {"arguments": {}}}', "Aye.", 0),
            ('{"say": "Ay', "Ay", 0),
            ("Aye.", "Aye.", 0),
        ):
            answer = read(text)
            self.assertEqual((answer.text, len(answer.calls)), (said, calls))

    def test_the_schema(self):
        """One call of the tools that are offered; several only in a job."""
        for takes_many in (False, True):
            schema = form_format([TOOL], takes_many)["json_schema"]["schema"]
            self.assertEqual(schema["required"], ["say", "pose", "call"])
            call_schema = schema["properties"]["call"]
            self.assertEqual(call_schema.get("type"), "array" if takes_many else None)
            self.assertIn('"enum": ["give"]', json.dumps(call_schema))

    def test_the_request(self):
        """No native tools, calls or results; the tools stand in the system text."""
        messages = (
            {"role": "system", "content": "You are Aria."},
            {"role": "user", "content": "Al: look!"},
            {"role": "assistant", "content": None, "tool_calls": call("look")},
            {"role": "tool", "name": "look", "content": "A lamp.", "tool_call_id": "c1"},
        )
        asked = ModelRequest(model=MODEL, messages=messages, tools=(TOOL,))
        sent = reshaped(asked, ModelProfile(speech=FORM))
        self.assertEqual(sent.tools, ())
        self.assertIn("- give(thing): Give a thing.", sent.messages[0]["content"])
        self.assertIn("response_format", sent.extra)
        self.assertEqual([m["role"] for m in sent.messages], ["system", "user"])
        self.assertIn("(look: A lamp.)", sent.messages[1]["content"])
        # Without tools there is nothing to call: it answers in words.
        for bare in (
            reshaped(ModelRequest(model=MODEL, messages=messages), ModelProfile(speech=FORM)),
            reshaped(asked, ModelProfile(speech=FORM, flags=("response_format",))),
        ):
            self.assertNotIn("response_format", bare.extra)
            self.assertEqual(bare.messages[0], messages[0])
        self.assertEqual(reshaped(asked, ModelProfile(speech=SPEAKS_AND_CALLS)).tools, (TOOL,))


class TestOverTheWire(unittest.TestCase):
    """A server that obeys a schema and knows no tools."""

    def setUp(self):
        self.server = LoopbackServer(drops_tools=True, takes_form=True).start()
        self.addCleanup(self.server.stop)
        self.client = ModelClient(api_base=self.server.url, api_key="k", home_model=MODEL)
        wait_for(self.client.trial(MODEL))
        self.aria = FakeAssistant(self.client, model_name=MODEL)

    def ask(self, *answers, text="Aria, hello!"):
        self.server.script(*answers)
        bob = next(iter(self.aria.game.people.values()))
        said = Message("user", text, speaker=Speaker("Bob", bob), channel="say")
        [line] = self.aria.history.append([said])
        return wait_for(self.aria.run_turn(TurnRequest(asker=bob, source_ids=(line.id,))))

    def test_words_and_poses(self):
        """Both are heard, in one call."""
        self.ask(form("Well met.", pose="looks up"))
        self.assertEqual(self.aria.game.said[-1][1], "*looks up*\nWell met.")
        [body] = self.server.bodies
        self.assertIn("response_format", body)
        self.assertNotIn("tools", body)

    def test_a_call_is_made(self):
        """Its result comes back as a note; the call has passed the tool's own rules."""
        look = {"name": "look", "arguments": {}}
        self.ask(form(call=look), form("A fine room."))
        self.assertEqual([text for _, text in self.aria.game.said], ["A fine room."])
        first, second = self.server.bodies
        self.assertEqual(first["messages"][:-1], second["messages"][: len(first["messages"]) - 1])
        self.assertIn("(look: ", second["messages"][-1]["content"])

    def test_a_call_that_is_wrong(self):
        """It is refused like a native one, and the model is told."""
        self.ask(form(call={"name": "give", "arguments": {"n": 1}}), form("I cannot."))
        self.assertIn("error", self.server.bodies[1]["messages"][-1]["content"])
        self.assertEqual([text for _, text in self.aria.game.said], ["I cannot."])

    def test_a_schema_that_is_refused(self):
        """It is left out from then on; the model answers in words."""
        said = "response_format is not supported"
        self.ask(failure(400, said), loopback.text("Aye, well met."))
        self.assertEqual([text for _, text in self.aria.game.said], ["Aye, well met."])
        self.assertNotIn("response_format", self.server.bodies[-1])
