"""Tool calls of a reply: bounded, storable, one person's secrets in a batch."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.tool_calls import ARGUMENT_CHARS, storable_call
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.tools.execution import batches
from tests.strategies import FEW, call


def whisper(to, call_id="c1"):
    return call(call_id, "whisper", json.dumps({"target": to}))


def target(made):
    return made.arguments.get("target", "")


def batched(made):
    """Ids of calls in their batches, and whom each batch is for."""
    read = [one for raw in made for one in ToolRegistry(BUILTIN_TOOLS).read([raw])]
    return [([one.raw["id"] for one in batch], person) for person, batch in batches(read, target)]


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
        found = batched([*made, call("d", "look")])
        self.assertEqual(found, [(["d", "n", "a", "b"], "Bob"), (["c"], "Eve")])

    @FEW
    @given(st.lists(st.sampled_from(("Bob", "Eve", "Mo", None)), max_size=9))
    def test_each_once_and_never_for_two(self, people):
        """Every call is in one batch, and no batch is for two people."""
        to_whom = {f"c{n}": to for n, to in enumerate(people)}
        made = [whisper(to, id) if to else call(id, "look") for id, to in to_whom.items()]
        found = batched(made)
        self.assertEqual(sorted(id for ids, _ in found for id in ids), sorted(to_whom))
        for ids, person in found:
            self.assertLessEqual({to_whom[id] for id in ids} - {None}, {person} - {""})
