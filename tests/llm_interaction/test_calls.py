"""Tool calls of a reply: bounded, readable, one person's secrets in one batch."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.calls import (
    ARGUMENT_CHARS,
    MOST_CALLS,
    batches,
    bounded,
    storable_call,
)
from tests.strategies import FEW, call

ENDING = {"whisper", "noop"}


def whisper(to, call_id="c1"):
    return call(call_id, "whisper", json.dumps({"target": to}))


def told(made):
    return json.loads(made["function"]["arguments"]).get("target")


class TestBounded(unittest.TestCase):
    """A runaway is cut."""

    def test_first_ones_are_kept(self):
        """So many are kept, the others counted."""
        many = [call(f"c{number}") for number in range(MOST_CALLS + 5)]
        kept, left_out = bounded(many)
        self.assertEqual((list(kept), left_out), (many[:MOST_CALLS], 5))
        self.assertEqual(bounded(many[:3]), (tuple(many[:3]), 0))


class TestStorable(unittest.TestCase):
    """What goes back to a provider is always readable."""

    @FEW
    @given(
        st.one_of(
            st.text(), st.none(), st.dictionaries(st.text(), st.integers()), st.lists(st.integers())
        )
    )
    def test_always_an_object(self, arguments):
        """Whatever the model sent, the arguments stored are a JSON object's text."""
        made = storable_call({"id": "c1", "function": {"name": "say", "arguments": arguments}})
        self.assertIsInstance(json.loads(made["function"]["arguments"]), dict)
        self.assertEqual((made["id"], made["function"]["name"]), ("c1", "say"))

    def test_readable_ones_stay_as_they_are(self):
        """Good arguments are not touched, to the letter."""
        self.assertEqual(
            storable_call(call("c1", "say", '{ "text":"hi"}')), call("c1", "say", '{ "text":"hi"}')
        )

    def test_others_are_kept_as_text(self):
        """What cannot be read is not lost; what is endless keeps its beginning."""
        broken = storable_call(call("c1", "say", '{"text": "hi'))
        self.assertEqual(
            json.loads(broken["function"]["arguments"]), {"unreadable": '{"text": "hi'}
        )
        deep = storable_call(call("c1", "say", "[" * 50_000))
        self.assertEqual(len(json.loads(deep["function"]["arguments"])["unreadable"]), 50_000)
        endless = storable_call(call("c1", "say", json.dumps({"text": "x" * 10**6})))
        self.assertEqual(
            len(json.loads(endless["function"]["arguments"])["unreadable"]), ARGUMENT_CHARS
        )

    def test_no_function(self):
        """A call without a function gets an empty one's arguments."""
        self.assertEqual(storable_call({"id": "c1"})["function"], {"arguments": "{}"})
        self.assertEqual(
            storable_call({"id": "c1", "function": "say"})["function"], {"arguments": "{}"}
        )


class TestBatches(unittest.TestCase):
    """What is stored together."""

    def test_ending_ones_come_last(self):
        """What stands behind a noop is done all the same."""
        (batch,) = batches([call("c1", "noop"), call("c2", "look")], ENDING, lambda made: None)
        self.assertEqual([made["id"] for made in batch], ["c2", "c1"])

    def test_two_whispers(self):
        """Whispers to two people never share a batch; two to one person do."""
        made = [whisper("Bob", "a"), whisper("Bob", "b"), whisper("Eve", "c"), call("d", "look")]
        found = batches(made, ENDING, told)
        self.assertEqual(
            [[one["id"] for one in batch] for batch in found], [["d", "a", "b"], ["c"]]
        )

    def test_none(self):
        """No calls, no batch."""
        self.assertEqual(batches([], ENDING, told), ())

    @FEW
    @given(st.lists(st.sampled_from(("Bob", "Eve", "Mo", None)), max_size=9))
    def test_each_once_and_never_for_two(self, people):
        """Every call is in one batch, and no batch is for two people."""
        made = [
            whisper(to, f"c{n}") if to else call(f"c{n}", "look") for n, to in enumerate(people)
        ]
        found = batches(made, ENDING, told)
        flat = [one["id"] for batch in found for one in batch]
        self.assertEqual(sorted(flat), sorted(one["id"] for one in made))
        for batch in found:
            self.assertLessEqual(len({told(one) for one in batch} - {None}), 1)
