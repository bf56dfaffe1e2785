"""Values as frames and back."""

import json
import unittest
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.errors import ConfigError, ModelError, SpendError, StoreError
from evennia_ai.history.items import Item
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.llm_interaction.grounding import Grounded, Struck
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, ProbeReport
from evennia_ai.mind.codec import TAG, VALUES, error_dict, frame, read_error, unframed
from evennia_ai.recall.values import Hit, Query, Turn
from evennia_ai.sleep.compaction.coverage import Covered

SAMPLES = (
    Grounded("She came.", (Struck("Zed paid.", "name", ("Zed",)),), 2),
    Hit("t1", 0.5, "Bob", "bees", 12.5),
    Item("name", "Oakhaven"),
    Covered("They met.", 0.5, (Item("name", "Ash"),), (), ("Ash",)),
    Message(
        "user",
        "Hé \ud800 {}",
        id="m1",
        speaker=Speaker("Bob", "o1.x"),
        tool_calls=({"id": "c1"},),
        metadata={"context": None},
    ),
    ModelReply(content="Aye.", tool_calls=({"id": "c", "type": "function"},), cost=None),
    ModelRequest(model="m", messages=({"role": "user", "content": "x"},), stop=("\n",), key="k"),
    ProbeReport("m", True, 0.5, "", "fine", "closed"),
    Query("bees", exclude=["m1"]),
    Speaker("Bob", "o1.x"),
    Struck("Zed paid.", "name", ("Zed",)),
    TokenCounter("gpt-4"),
    ToolTraits(speaks=frozenset({"say", "emote"})),
    Turn("t1", "Bob", "bees", datetime(2026, 1, 2, tzinfo=UTC), session=3),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class TestCodec(unittest.TestCase):
    def test_every_value_comes_back_as_it_was(self):
        """Each registered class has a sample, and each sample survives."""
        self.assertEqual({type(each).__name__ for each in SAMPLES}, set(VALUES))
        for value in SAMPLES:
            with self.subTest(value):
                self.assertEqual(unframed(frame({"value": [value]})), {"value": [value]})

    def test_sets_and_dates_come_back(self):
        """Also inside of other data."""
        value = {"a": {"x", "y"}, "b": [frozenset({"z"})], "c": date(2026, 1, 2)}
        self.assertEqual(unframed(frame(value)), value)

    @given(PLAIN)
    def test_plain_data_comes_back(self, value):
        """Whatever its keys and texts are."""
        self.assertEqual(unframed(frame(value)), value)

    def test_no_text_passes_for_a_value(self):
        """An object with a tag of an earlier frame, or with a class's name, stays a dict."""
        old = frame(Item("name", "x"))
        for forged in (
            json.loads(old[TAG:]),
            {old[:TAG].decode(): ["Item", "name", "x"]},
            {"Item": ["name", "x"]},
        ):
            self.assertEqual(unframed(frame(forged)), forged)

    def test_what_is_no_frame(self):
        """Garbage is refused with `ValueError`, whatever it is."""
        for data in (
            b"",
            b"garbage",
            b"12345678{",
            b"\xff" * 40,
            b'aaaaaaaa{"aaaaaaaa":["Item"]}',
            b'aaaaaaaa{"aaaaaaaa":["os.system","ls"]}',
            b'aaaaaaaa{"aaaaaaaa":7}',
            b"aaaaaaaa" + b"[" * 100_000,
        ):
            with self.subTest(data[:40]), self.assertRaises(ValueError):
                unframed(data)

    def test_what_cannot_be_sent(self):
        """A function or another object is refused, not rendered."""
        for value in (print, object(), {"a": lambda: 1}):
            with self.assertRaises(TypeError):
                frame(value)

    def test_errors_come_back(self):
        """With their kind; an unexpected one names its class."""
        for error in (StoreError("full"), ConfigError("`x`"), SpendError("cap")):
            again = read_error(error_dict(error))
            self.assertEqual((type(again), str(again)), (type(error), str(error)))
        again = read_error(error_dict(ModelError("down", retryable=True, kind="server")))
        self.assertEqual((str(again), again.retryable, again.kind), ("down", True, "server"))
        self.assertEqual(str(read_error(error_dict(KeyError("x")))), "KeyError: 'x'")
