"""Records come back as they were stored; what cannot be read is no record."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import Message
from evennia_ai.history.records import (
    CompactionRecord,
    Report,
    Segment,
    SummaryRecord,
)
from evennia_ai.history.stored import Unreadable
from tests.strategies import MANY, marker

TEXT = st.text(max_size=3)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
SHARE = st.none() | st.floats(0, 1)
MARKER = replace(marker(summary_id="s1"), id="m1", created_at="2026-01-01")
SUMMARIES = st.builds(
    SummaryRecord,
    **dict.fromkeys(("id", "tier", "status", "created_at", "audience", "text", "level"), TEXT),
    **dict.fromkeys(("source_ids", "child_ids"), TEXTS),
    **dict.fromkeys(("segment", "absorbed_by"), st.none() | st.text(min_size=1, max_size=3)),
    **dict.fromkeys(("generation", "tree_level"), st.integers(0, 9)),
    coverage=SHARE,
    extra=st.just({"model": "m", "lost": ["a"]}),
)
COMPACTIONS = st.builds(
    CompactionRecord,
    **dict.fromkeys(("id", "at", "trigger", "status", "rolled_back_at"), TEXT),
    **dict.fromkeys(("leaving", "masked", "summaries", "segments", "markers"), TEXTS),
    **dict.fromkeys(("entries",), TEXTS),
    report=st.builds(Report, new_tokens=st.integers(0, 9), summary_ids=TEXTS, query=TEXT),
    markers_before=st.lists(st.just(MARKER), max_size=2).map(tuple),
    summaries_before=st.just({"s1": {"status": "live", "absorbed_by": None}}),
)


class TestRecords(unittest.TestCase):
    """Summaries and compactions as they are stored."""

    @MANY
    @given(SUMMARIES)
    def test_summaries(self, record):
        """A summary comes back as it was."""
        self.assertEqual(SummaryRecord.from_dict(record.to_dict()), record)

    @MANY
    @given(COMPACTIONS)
    def test_compactions(self, record):
        """The same for compactions."""
        self.assertEqual(CompactionRecord.from_dict(record.to_dict()), record)

    def test_no_records(self):
        """What is of another form is no record."""
        whole = CompactionRecord(id="c1", at="", trigger="sleep").to_dict()
        for odd in (["c1"], {"id": "c1"}, {**whole, "summaries_before": {"s1": ["live"]}}):
            with self.assertRaises(Unreadable):
                CompactionRecord.from_dict(odd)
        segment = Segment.sealed("g1", "s1", [Message("user", "a", id="m1")]).to_dict()
        odd_message = {**segment, "messages": [{"role": "nobody", "content": "a"}]}
        for odd in (odd_message, {**segment, "sha256": None}):
            with self.assertRaises(Unreadable):
                Segment.from_dict(odd)


class TestWithout(unittest.TestCase):
    """A segment some of whose messages are forgotten."""

    def setUp(self):
        messages = [Message("user", text, id=f"m{n}", tokens=1) for n, text in enumerate("abc")]
        self.whole = Segment.sealed("g1", "s1", messages)

    def test_sealed_again(self):
        """The tombstones say when, and are under the seal; a second time adds to them."""
        left = self.whole.revised({"m1", "m9"}, "now").revised({"m2"}, "later")
        self.assertEqual(left.tombstones, {"m1": "now", "m2": "later"})
        self.assertEqual((left.message_ids, [m.id for m in left.messages]), (["m0"], ["m0"]))
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotEqual(left.sha256, self.whole.sha256)

    def test_changed(self):
        """Messages that change take the place of the old ones, under a new seal."""
        new = replace(self.whole.messages[1], content="[forgotten]")
        left = self.whole.revised((), "now", {"m1": new})
        self.assertEqual([m.content for m in left.messages], ["a", "[forgotten]", "c"])
        self.assertEqual(Segment.from_dict(left.to_dict()).messages, left.messages)
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotIn("tombstones", left.to_dict())

    def test_damage_is_not_covered_up(self):
        """One whose checksum was wrong keeps it."""
        left = Segment.from_dict({**self.whole.to_dict(), "sha256": "0"}).revised({"m1"}, "now")
        self.assertEqual(left.sha256, "0")
