"""Tool calls of a reply: written, read, bounded, storable, one person's secrets in a batch."""

import json
import unittest
from types import MappingProxyType

from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.tool_calls import (
    ARGUMENT_CHARS,
    batches,
    storable_call,
    tool_call,
    tool_instructions,
    write_call,
)
from tests.strategies import FEW, call

ENDING = {"whisper", "noop"}


def read_calls(text, main=MappingProxyType({})):
    """The calls in a text, in the chat format, and the rest of it."""
    answer = read(text, main)
    return tuple(tool_call("c1", *each) for each in answer.calls), answer.text


def whisper(to, call_id="c1"):
    return call(call_id, "whisper", json.dumps({"target": to}))


def target(made):
    return json.loads(made["function"]["arguments"]).get("target")


class TestTextProtocol(unittest.TestCase):
    @FEW
    @given(st.text(min_size=1), st.dictionaries(st.text(), st.text() | st.integers()))
    def test_a_written_call_is_read_back(self, name, arguments):
        """`read` gives what `write_call` wrote, whatever the name and the arguments."""
        made = tool_call("c1", name, json.dumps(arguments, ensure_ascii=False))
        self.assertEqual(read_calls(f"Well.\n{write_call(made)}"), ((made,), "Well."))

    def test_a_call_that_an_argument_quotes_is_no_call(self):
        quoted = '<tool_call>{"name": "give"}</tool_call>'
        made = tool_call("c1", "say", json.dumps({"text": f"You wrote {quoted}."}))
        calls = read(f"{write_call(made)}\nTOOL look\n{quoted}").calls
        self.assertEqual([name for name, _ in calls], ["say", "look", "give"])
        self.assertEqual(tool_call("c1", *calls[0]), made)

    def test_the_example_shown_to_the_model_is_readable(self):
        """The form in the instructions is the form that is read."""
        shown = tool_instructions([{"name": "noop"}]).replace("<tool>", "tool")
        calls = read(shown.replace("<value>", "1")).calls
        self.assertEqual(calls, (("tool", '{"<argument>": 1}'), ("tool", "text")))

    @FEW
    @given(st.text(), st.sampled_from(["say", "look"]))
    @example("null", "say")
    @example(";<_", "say")
    def test_a_written_text_is_read_back(self, text, name):
        """A call with its main argument alone comes back the same, whatever the text."""
        made = tool_call("c1", name, json.dumps({"text": text}, ensure_ascii=False))
        main = {"say": "text"}
        self.assertEqual(read_calls(write_call(made, main), main), ((made,), ""))

    def test_short_calls(self):
        """A name alone, a text behind it, and an object are calls; prose is none."""
        main = {"search": "query", "look": "target"}
        for text, name, arguments in (
            ("TOOL look", "look", "{}"),
            ("TOOL: look()", "look", "{}"),
            ("TOOL look.", "look", "{}"),
            ("TOOL noop!", "noop", "{}"),
            ("TOOL a.b: x", "a.b", "x"),
            ("**TOOL** look the pike", "look", '{"target": "the pike"}'),
            ("TOOL search: Bram's boat", "search", '{"query": "Bram\'s boat"}'),
            ('TOOL search("boat")', "search", '{"query": "boat"}'),
            ('TOOL search: {"query": "boat"}', "search", '{"query": "boat"}'),
            ('TOOL give {"thing": "lamp",\n"to": "Al"}', "give", '{"thing": "lamp", "to": "Al"}'),
            ("TOOL give: lamp", "give", "lamp"),
            ('TOOL give {"thing"', "give", '{"thing"'),
        ):
            with self.subTest(text):
                answer = read(text, main)
                self.assertEqual((answer.calls, answer.text), (((name, arguments),), ""))
        for text in ("TOOL is a word", "TOOL: nothing of it", "TOOLS: look", "A TOOL look"):
            self.assertEqual(read_calls(text, main), ((), text))

    def test_brief_instructions_are_lines_that_can_be_read(self):
        """For small models each tool is the line that calls it, and what it does."""
        parameters = {"properties": {"query": {"type": "string"}}, "required": ["query"]}
        search = {"name": "search", "description": "Look it up.", "parameters": parameters}
        shown = tool_instructions([search, {"name": "noop"}], brief=True)
        self.assertEqual(shown.splitlines()[1:], ["TOOL search: <query> (Look it up)", "TOOL noop"])

    def test_broken_calls_are_kept_as_written(self):
        """What cannot be mended, and a missing name, reach the executor."""
        lines = {
            'TOOL {"name": "say", "arguments": {"text": "Hel': ("say", '{"text": "Hel"}'),
            'TOOL {"tool": "x"}': ("", '{"tool": "x"}'),
            'TOOL {"name": "say", "arguments": [1]}': ("say", "[1]"),
            "TOOL {broken": ("", "{broken"),
        }
        answer = read("\n".join(lines))
        self.assertEqual((answer.calls, answer.text), (tuple(lines.values()), ""))

    def test_instructions_name_every_tool(self):
        """The instructions show each tool, its arguments and which of them are optional."""
        schema = {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say."},
                "mood": {"enum": ["calm", "angry"]},
                "extra": {},
            },
            "required": ["text"],
        }
        say = {"name": "say", "description": "Speak.", "parameters": schema}
        shown = tool_instructions([{"type": "function", "function": say}, {"name": "noop"}])
        arguments = "text: string = What to say., mood?: calm|angry, extra?: any"
        self.assertIn(f"- say({arguments}): Speak.", shown)
        self.assertIn("- noop()", shown)
        self.assertEqual(tool_instructions(()), "")


class TestStored(unittest.TestCase):
    @FEW
    @given(
        st.text() | st.none() | st.dictionaries(st.text(), st.integers()) | st.lists(st.integers())
    )
    def test_always_an_object(self, arguments):
        """Whatever the model sent, the arguments stored are a JSON object's text."""
        made = storable_call({"id": "c1", "function": {"name": "say", "arguments": arguments}})
        self.assertIsInstance(json.loads(made["function"]["arguments"]), dict)
        self.assertEqual((made["id"], made["function"]["name"]), ("c1", "say"))

    def test_others_are_kept_as_text(self):
        """What cannot be read is not lost; what is endless keeps its beginning."""
        endless = json.dumps({"text": "x" * 10**6})
        for text in ('{"text": "hi', "[" * 50_000, endless):
            made = storable_call(call("c1", "say", text))
            arguments = json.loads(made["function"]["arguments"])
            self.assertEqual(arguments, {"unreadable": text[:ARGUMENT_CHARS]})

    def test_what_stands_together(self):
        """What stands behind a noop is done all the same; whispers to one person share a batch."""
        made = [call("n", "noop"), whisper("Bob", "a"), whisper("Bob", "b"), whisper("Eve", "c")]
        found = batches([*made, call("d", "look")], {"noop", "whisper"}, target)
        ids = [[one["id"] for one in batch] for batch in found]
        self.assertEqual(ids, [["d", "n", "a", "b"], ["c"]])

    @FEW
    @given(st.lists(st.sampled_from(("Bob", "Eve", "Mo", None)), max_size=9))
    def test_each_once_and_never_for_two(self, people):
        """Every call is in one batch, and no batch is for two people."""
        ids = ((f"c{n}", to) for n, to in enumerate(people))
        made = [whisper(to, each) if to else call(each, "look") for each, to in ids]
        found = batches(made, ENDING, target)
        flat = [one["id"] for batch in found for one in batch]
        self.assertEqual(sorted(flat), sorted(one["id"] for one in made))
        for batch in found:
            self.assertLessEqual(len({target(one) for one in batch} - {None}), 1)
