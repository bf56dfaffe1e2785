"""Halves of characters and NULs in what models write and read, over real HTTP."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.words import storable, storable_json, storable_value
from evennia_ai.llm_interaction.failures import failure_of
from evennia_ai.llm_interaction.values import probe_request
from tests import loopback
from tests.llm_interaction.test_client import TOOL, LoopbackCase
from tests.loopback import text
from tests.strategies import FEW
from tests.waiting import wait_for
from tests.wire_case import WireTest

# Each with what is left of it.
HALVES = (
    ("A\ud83dB", "AB"),
    ("\udc00", ""),
    ("\ud83d\ud83d\ude00!", "\U0001f600!"),
    ("A\x00B", "AB"),
)
anything = st.text(st.characters(codec=None, categories=["L", "Cs", "Cc", "P"]))


def is_storable(written):
    """Whether a text can be encoded, and holds no NUL."""
    written.encode()
    return "\x00" not in written


class TestText(unittest.TestCase):
    def test_halves(self):
        """They are taken out, as they are and as JSON has them; whole characters stay."""
        for odd, left in HALVES:
            self.assertEqual(storable(odd), left)
            for is_escaped in (True, False):
                dumped = json.dumps({"text": odd}, ensure_ascii=is_escaped)
                if "\\ud83d\\ud83d" not in dumped or not is_escaped:
                    self.assertEqual(json.loads(storable_json(dumped)), {"text": left})
        self.assertEqual(storable_json(r'{"a": "\\ud83d"}'), r'{"a": "\\ud83d"}')
        self.assertEqual(storable_json(r'"\uD83D\uDE00 \uD83D \n"'), r'"\uD83D\uDE00  \n"')

    @FEW
    @given(st.recursive(anything, lambda each: st.lists(each) | st.dictionaries(anything, each)))
    def test_any_value(self, value):
        """Whatever a value holds, it can be encoded afterwards; good texts stay as they are."""
        self.assertTrue(is_storable(json.dumps(storable_value(value), ensure_ascii=False)))
        for is_escaped in (True, False):
            clean = storable_json(json.dumps(value, ensure_ascii=is_escaped))
            loaded = json.dumps(json.loads(clean), ensure_ascii=False)
            self.assertTrue(is_storable(loaded))

    @FEW
    @given(st.text())
    def test_good_texts(self, words):
        """What can be stored is not touched."""
        for written in (words.replace("\x00", ""), json.dumps(words.replace("\x00", ""))):
            self.assertEqual(storable(written), written)
            self.assertEqual(storable_json(written), written)


class TestReplies(LoopbackCase):
    """A reply with half of a character is a reply."""

    def raw(self, **message):
        """A body as servers send it: escaped."""
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return text("", raw=json.dumps({"id": "r", "choices": [choice]}))

    def test_words(self):
        for odd, left in HALVES:
            self.server.script(self.raw(content=f"Hm: {odd} so"))
            reply = self.ask()
            self.assertEqual((reply.content, reply.attempts), (f"Hm: {left} so", 1))

    def test_calls(self):
        """In names, ids and arguments, escaped once, twice or not at all, or written as text."""
        for odd, _ in HALVES:
            args = json.dumps({"text": f"Hm {odd} so"})
            for arguments in (
                args,
                json.dumps({"text": f"Hm {odd} so"}, ensure_ascii=False),
                json.dumps(args),
            ):
                made = loopback.call(f"say{odd}", arguments, f"id{odd}")
                self.server.script(self.raw(content=None, tool_calls=[made]))
                (call,) = self.ask(tools=(TOOL,), called={"say": "text"}).tool_calls
                self.assertTrue(is_storable(json.dumps(call, ensure_ascii=False)))
                said = json.loads(call["function"]["arguments"])["text"]
                self.assertTrue(is_storable(said))
            self.server.script(self.raw(content="TOOL say " + args))
            for call in self.ask(called={"say": "text"}).tool_calls:
                self.assertTrue(is_storable(json.loads(call["function"]["arguments"])["text"]))

    def test_what_is_sent(self):
        """No text of a request stops it, wherever it stands."""
        for odd, left in HALVES:
            made = loopback.call("say", {"text": "x"}, "c1")
            made["function"]["arguments"] = json.dumps({"text": odd}, ensure_ascii=False)
            tool = json.loads(json.dumps(TOOL))
            tool["function"]["description"] = f"Speak {odd}."
            asked = (
                {"role": "system", "content": f"Rules {odd}."},
                {"role": "assistant", "content": None, "tool_calls": [made]},
                {"role": "tool", "tool_call_id": "c1", "content": odd},
                {"role": "user", "content": f"Hello {odd} there", "name": f"A{odd}"},
            )
            self.server.script(text("Here."))
            self.assertEqual(self.ask(messages=asked, tools=(tool,)).attempts, 1)
            sent = self.server.bodies[-1]["messages"]
            self.assertEqual(sent[-1]["content"], f"Hello {left} there")
            self.server.script(text("Here."))
            self.assertEqual(self.ask(api="completion", prompt=f"A{odd}B").content, "Here.")
            self.assertTrue(self.ask(model="offline/extractive", messages=asked).model)

    def test_what_cannot_be_encoded(self):
        """It says nothing of the model: its breaker stays closed."""
        error = UnicodeEncodeError("utf-8", "a\ud83d", 1, 2, "surrogates not allowed")
        wrapped = RuntimeError("it failed")
        wrapped.__cause__ = error
        self.assertEqual({failure_of(error).kind, failure_of(wrapped).kind}, {"unsendable"})
        self.client = self.new_client(api_key="clé-\u0141")
        for _ in range(9):
            self.assertEqual(self.fail().kind, "unsendable")

    def test_errors(self):
        """An error with such a text is read and shown."""
        self.server.respond = lambda body: text(
            "", status=401, raw='{"error": {"message": "No \\ud83d key \\u0000"}}'
        )
        with self.assertRaisesRegex(Exception, "No"):
            wait_for(self.client.complete(probe_request("any")))


class TestInTheRoom(WireTest):
    """The assistant goes on as if nothing had been."""

    def test_a_talk(self):
        """The line is said without it, and the next requests are answered."""
        heard = self.lines_of(self.char1)
        raw = '{"choices": [{"index": 0, "finish_reason": "stop", "message": %s}]}'
        said = '{"role": "assistant", "content": "The ferry leaves at noon \\ud83d and late."}'
        self.server.script(text("", raw=raw % said))
        self.assertEqual(self.talk("Aria, when does the ferry leave? \ud83d"), "turn")
        self.assertIn(
            "The ferry leaves at noon  and late.", "".join(heard).replace("noon and", "noon  and")
        )
        arguments = json.dumps('{"text": "Aye, \\ud83d at noon."}')
        called = (
            '{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", '
            f'"function": {{"name": "say", "arguments": {arguments}}}}}]}}'
        )
        self.server.script(text("", raw=raw % called))
        self.talk("Aria, are you sure?")
        self.assertIn("at noon", heard[-1])
        for _ in range(3):
            self.talk("Aria, and tomorrow?")
        self.assertGreaterEqual(len(self.server.succeeded), 5)
        self.assertEqual(self.script.runtime.counts["model failures"], 0)
        for message in self.script.history.messages():
            self.assertTrue(is_storable(message.content))
