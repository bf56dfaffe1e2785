"""Records read what is stored, repair what is odd, and give back what was right."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import Message
from evennia_ai.history.records import CompactionRecord, Segment, SummaryRecord, next_number
from tests.strategies import MANY, marker

TEXTS = st.lists(st.text(max_size=3), max_size=3)
SHARE = st.none() | st.floats(0, 1)
UNKNOWN = st.dictionaries(st.sampled_from(("version", "model", "lost", "odd")), st.integers())
ODD = st.none() | st.integers() | st.text() | TEXTS | st.dictionaries(st.text(), st.integers())
AUDIENCES = st.sampled_from(("public", "staff", "private:o1.a+o2.b"))
MARKER = {**marker(summary_id="s1").to_dict(), "id": "m1", "created_at": "2026-01-01"}


def some(always, optional):
    """Stored dicts with these keys, optional and unknown ones among them."""
    known = st.fixed_dictionaries({"id": st.just("x"), **always}, optional=optional)
    return st.tuples(UNKNOWN, known).map(lambda pair: {**pair[0], **pair[1]})


def nonempty(value):
    return st.text(min_size=1, max_size=3) if value == "text" else value


SUMMARIES = some(
    {"tier": nonempty("text"), "status": nonempty("text"), "audience": AUDIENCES},
    {
        **dict.fromkeys(("created_at", "text", "level"), st.text(max_size=3)),
        **dict.fromkeys(("source_ids", "child_ids", "earlier_ids"), TEXTS),
        **dict.fromkeys(("segment", "absorbed_by"), st.none() | nonempty("text")),
        **dict.fromkeys(("generation", "tree_level"), st.integers(0, 9)),
        **dict.fromkeys(("retention", "in_summary", "drift"), SHARE),
    },
)
COMPACTIONS = some(
    {"status": nonempty("text")},
    {
        **dict.fromkeys(("at", "trigger", "rolled_back_at"), st.text(max_size=3)),
        **dict.fromkeys(("leaving", "masked", "summaries", "segments", "markers"), TEXTS),
        **dict.fromkeys(("entries", "order"), TEXTS),
        "result": st.just({"new_tokens": 5, "query": "oak"}),
        "last_before": st.just({"at": "2026-01-01", "odd": 1}),
        "extraction": st.just({"ids": ["x1"], "profiles": {"o1": None}}),
        "markers_before": st.lists(st.just(MARKER), max_size=2),
        "summaries_before": st.just({"s1": {"status": "live", "absorbed_by": None}}),
        "speakers": st.just({"o1.a": ["Bob", "2026-01-01"]}),
    },
)
KEYS = SummaryRecord.__slots__ + CompactionRecord.__slots__


class TestRecords(unittest.TestCase):
    """Summaries and compactions as they are stored."""

    @MANY
    @given(SUMMARIES)
    def test_a_summary_is_given_back(self, stored):
        """What is right is written as it was read, missing and unknown keys among it."""
        self.assertEqual(SummaryRecord.from_dict("x", stored).to_dict(), stored)

    @MANY
    @given(COMPACTIONS)
    def test_a_compaction_is_given_back(self, stored):
        """The same for compactions."""
        self.assertEqual(CompactionRecord.from_dict("x", stored).to_dict(), stored)

    @MANY
    @given(st.dictionaries(st.sampled_from(KEYS), ODD))
    def test_odd_values_are_repaired(self, stored):
        """Whatever stands in a record, it is read, and what is written is right."""
        for record in (SummaryRecord, CompactionRecord):
            repaired = record.from_dict("x", stored).to_dict()
            self.assertEqual(record.from_dict("x", repaired).to_dict(), repaired)

    def test_no_records(self):
        """What is no mapping is no record; the id is the key, whatever stands in it."""
        for record in (SummaryRecord, CompactionRecord, Segment):
            self.assertIsNone(record.from_dict("x", ["s1"]))
            self.assertEqual(record.from_dict("x", {"id": "y"}).id, "x")

    def test_new_records(self):
        """Keys that say nothing are left out of a new record."""
        record = CompactionRecord(id="c1", at="", trigger="sleep", masked=("m1",))
        self.assertNotIn("order", record.to_dict())
        self.assertEqual(record.to_dict()["masked"], ["m1"])
        self.assertEqual(record.figures["summary_id"], "")
        summary = SummaryRecord.from_dict("s1", {"source_ids": ["m1", 5], "audience": "x"})
        self.assertEqual((summary.source_ids, summary.audience), (("m1",), "staff"))

    def test_pages(self):
        """A new page stands behind all others; keys by hand are no pages."""
        self.assertEqual(next_number(["page_000002", "page_1", "notes"]), 3)
        self.assertEqual(next_number([]), 1)


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
        self.assertEqual(Segment.from_dict("g1", left.to_dict()).messages, left.messages)
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotIn("tombstones", left.to_dict())

    def test_damage_is_not_covered_up(self):
        """One whose checksum was wrong keeps it; one without any gets none."""
        for seal in ({"sha256": "0"}, {}):
            stored = {k: v for k, v in self.whole.to_dict().items() if k != "sha256"} | seal
            left = Segment.from_dict("g1", stored).revised({"m1"}, "now")
            self.assertEqual(left.sha256, seal.get("sha256"))
