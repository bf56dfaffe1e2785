"""Hits as tools show them, and results of memory as they are kept."""

import json
import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.recall.values import BRIEF_CHARS, BRIEF_HITS, BRIEF_TEXT_CHARS, Hit, brief

hits = st.fixed_dictionaries({"id": st.text(max_size=20), "text": st.text(max_size=200)})
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


class TestHits(unittest.TestCase):
    @given(st.lists(hits, min_size=1, max_size=12))
    def test_ids_and_beginnings(self, found):
        """The first hits' ids with their first words."""
        kept = json.loads(brief(json.dumps({"results": found})))
        self.assertEqual(
            [row["id"] for row in kept["results"]], [hit["id"] for hit in found[:BRIEF_HITS]]
        )
        self.assertTrue(all(len(row["text"]) <= BRIEF_TEXT_CHARS + 1 for row in kept["results"]))

    @given(odd | st.fixed_dictionaries({"results": odd}) | hits)
    def test_whatever_it_was(self, found):
        """Any JSON, and what is none, is kept in brief once and for all."""
        for result in (json.dumps(found), str(found)):
            kept = brief(result)
            self.assertEqual(brief(kept), kept)
            self.assertLessEqual(len(kept), BRIEF_CHARS + BRIEF_HITS * 12 * len(result))

    def test_one_that_was_opened(self):
        """A text that was opened is kept as the first hit is."""
        kept = brief(json.dumps({"id": "m1", "text": "The ferry leaves. " * 40, "around": []}))
        self.assertEqual([row["id"] for row in json.loads(kept)["results"]], ["m1"])

    def test_round_trip(self):
        """What is shown is read again; the time to the second, the score not at all."""
        for hit in (FOUND, replace(FOUND, speaker="", kind="message"), replace(FOUND, at=None)):
            shown = hit.to_dict()
            again = Hit.from_dict(json.loads(json.dumps(shown)))
            at = "2026-01-02T03:04:05" if hit.at else None
            self.assertEqual(again, replace(hit, at=at, score=0.0))
            self.assertEqual(again.to_dict(), shown)


FOUND = Hit("m1", 0.25, "Bob", "I keep bees.", "2026-01-02T03:04:05.678901+00:00", "journal")
