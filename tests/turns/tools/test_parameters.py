"""Parameters of tools: schemas, and what a model sends."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.errors import ToolError
from evennia_ai.turns.tools.base import Scale, Text, function_schema, read_arguments
from tests.strategies import FEW

PARAMETERS = {
    "content": Text("One fact.", limit=40),
    "importance": Scale("How much it matters.", required=False),
    "note": Text("A remark.", required=False),
}
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(300, 600).map(lambda digits: 10**digits),
        st.floats(),
        st.text(),
        st.integers(1, 10).map(str),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=4,
)


class TestParameters(unittest.TestCase):
    """Tools in the form of the API, and arguments as a model sends them."""

    def test_function(self):
        """Name, sentence, parameters, and which of them must be there."""
        schema = function_schema("note", "Notes.", PARAMETERS)
        self.assertEqual((schema["type"], schema["function"]["name"]), ("function", "note"))
        parameters = schema["function"]["parameters"]
        self.assertEqual(parameters["required"], ["content"])
        text = {"type": "string"}
        scale = {"type": "integer", "minimum": 1, "maximum": 10}
        wanted = {
            "content": {**text, "description": "One fact."},
            "importance": {**scale, "description": "How much it matters."},
            "note": {**text, "description": "A remark."},
        }
        self.assertEqual(parameters["properties"], wanted)

    def assert_refused(self, raw, says):
        with self.assertRaisesRegex(ToolError, says):
            read_arguments(raw, PARAMETERS)

    def test_good(self):
        """Text of JSON or a dict, stripped and in the right types; nulls are left out."""
        wanted = {"content": "a", "importance": 7}
        for raw in (
            '{"content": " a ", "importance": "7"}',
            {"content": "a", "importance": 7.0, "note": None},
        ):
            self.assertEqual(read_arguments(raw, PARAMETERS), wanted)
        self.assertEqual(read_arguments({"content": "a", "note": ""}, PARAMETERS)["note"], "")
        for nothing in (None, "", "  ", "{}", {}):
            self.assertEqual(read_arguments(nothing, {}), {})

    def test_refused(self):
        """What is no JSON object, is missing or of the wrong kind is told with the right one."""
        for raw in ("{", "[" * 100_000):
            self.assert_refused(raw, "no valid JSON")
        for raw in ("[]", "5", '"text"', "null x", 5, ["content"]):
            self.assert_refused(raw, "JSON")
        for raw in ({}, {"content": None}):
            self.assert_refused(raw, "missing argument `content`: One fact.")
        for wrong in (5, ["a"], " "):
            self.assert_refused({"content": wrong}, "`content` must be a text")
        self.assert_refused({"content": "a" * 41}, "a text of at most 40 characters")
        odd = (0, 11, 2.5, True, "x", "", [], {}, float("nan"), float("inf"), 10**400, "1e999")
        for wrong in odd:
            raw = {"content": "a", "importance": wrong}
            self.assert_refused(raw, "`importance` must be a whole number from 1")

    @FEW
    @given(st.one_of(values, st.dictionaries(st.sampled_from(sorted(PARAMETERS)), values)))
    def test_anything_is_taken_or_told(self, raw):
        """Whatever a model sends gives valid arguments or a `ToolError`, as text and as a dict."""
        try:
            taken = read_arguments(raw, PARAMETERS)
        except ToolError:
            taken = None
        else:
            self.assertTrue(taken["content"] and len(taken["content"]) <= 40)
            self.assertIn(taken.get("importance", 5), range(1, 11))
        if isinstance(raw, dict):
            try:
                self.assertEqual(read_arguments(json.dumps(raw), PARAMETERS), taken)
            except ToolError:
                self.assertIsNone(taken)
