"""Records of summaries are read once: what a question about an old archive loads, counted."""

import unittest
from dataclasses import replace

from django.db import connection
from django.test.utils import CaptureQueriesContext
from evennia.typeclasses.attributes import Attribute

from evennia_ai.history.archive import ARCHIVE, SUMMARIES
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
from evennia_ai.history.records import Segment, SummaryRecord
from evennia_ai.history.verification import verify
from evennia_ai.testing import MemoryStore
from tests.base import AssistantTest
from tests.waiting import wait_for

LEAVES, EACH = 80, 8


def words(text):
    """A counter that needs no vocabulary."""
    return len(text.split())


class CountingStore(MemoryStore):
    """Counts the values read, by category."""

    def __init__(self):
        super().__init__()
        self.read = []

    def get(self, key, category=None, default=None):
        self.read.append((category, key))
        return super().get(key, category, default)

    def taken(self, category):
        """Keys read of a category since the last time."""
        found = [key for where, key in self.read if where == category]
        self.read = []
        return found


def leaf(history, audience="public"):
    """A recent summary with its segment of `EACH` messages; returns its id."""
    segment, summary = new_id("g"), new_id("s")
    messages = [
        Message(
            "user",
            f"line {number}",
            id=new_id("m"),
            created_at=utc_iso(0.0),
            speaker=Speaker(key="Bob", id="o9.b"),
            audience=audience,
            channel="say",
            tokens=2,
            metadata={},
        )
        for number in range(EACH)
    ]
    history.archive(Segment.sealed(segment, summary, messages))
    history.save_summary(
        summary_record(summary, audience, segment=segment, source_ids=[m.id for m in messages])
    )
    return summary


def record(summary_id, audience="public", **fields):
    """A summary's record."""
    made = {"id": summary_id, "tier": "recent", "status": "live", "level": "main"}
    made |= {"created_at": utc_iso(0.0), "audience": audience, "text": f"of {summary_id}"}
    return {**made, "source_ids": [], "child_ids": [], "segment": None, "generation": 1, **fields}


def summary_record(summary_id, audience="public", **fields):
    return SummaryRecord.from_dict(record(summary_id, audience, **fields))


class TestReadings(unittest.TestCase):
    """A handler on a store that counts."""

    def setUp(self):
        self.store = CountingStore()
        self.history = HistoryHandler(self.store, lambda: words, lambda: 0.0)
        self.leaves = [leaf(self.history) for _ in range(LEAVES)]
        self.long = new_id("s")
        self.history.save_summary(summary_record(self.long, tier="long", child_ids=self.leaves))
        self.history = HistoryHandler(self.store, lambda: words, lambda: 0.0)
        self.history.messages()
        self.store.read = []

    def test_a_message_is_found_by_one_segment(self):
        """Where a message went is known without looking through the archive."""
        wanted = self.history.summary(self.leaves[5])
        ids = wanted.source_ids
        self.assertEqual([m.id for m in self.history.around(ids[2])], list(ids))
        self.assertEqual(self.store.taken(ARCHIVE), [wanted.segment])
        self.assertEqual(self.history.around("m0"), ())
        self.assertEqual(
            [m.id for m in self.history.by_ids([ids[4], "m0", ids[1]])], list(ids[4:0:-3])
        )
        self.assertEqual(self.store.taken(ARCHIVE), [])

    def test_others(self):
        """A record or segment that cannot be read is put aside, and the proof says so."""
        kept = self.history.summary(self.leaves[1])
        self.store.set(self.leaves[0], record("s0"), SUMMARIES)
        self.store.set(kept.segment, "oops", ARCHIVE)
        self.assertEqual(len(self.history.summaries()), LEAVES)
        self.assertIsNone(self.history.segment(kept.segment))
        details = [v.detail for v in verify(self.history.evidence()) if v.kind == "unreadable"]
        self.assertEqual(len(details), 2)
        self.assertIn(f"ai_archive_{kept.segment}", details[0])

    def test_the_map_follows_changes(self):
        """New records, records changed by hand and those a rollback of the store took away."""
        old = self.history.summary(self.leaves[0])
        self.history.around(old.source_ids[0])
        new = self.history.summary(leaf(self.history))
        self.assertTrue(self.history.around(new.source_ids[0]))
        gone = []
        with self.assertRaises(OSError), self.store.transaction():
            gone += self.history.summary(leaf(self.history)).source_ids
            self.assertTrue(self.history.around(gone[0]))
            raise OSError("disk full")
        self.assertEqual(self.history.around(gone[0]), ())
        self.history.save_summary(replace(old, source_ids=old.source_ids[1:]))
        self.assertEqual(self.history.around(old.source_ids[0]), ())
        self.assertTrue(self.history.around(old.source_ids[1]))

    def test_the_newest_segment_counts(self):
        """A message that was folded, taken back and folded again is found where it is now."""
        old = self.history.summary(self.leaves[0])
        messages = self.history.segment(old.segment).messages
        again = new_id("s")
        self.history.archive(Segment.sealed("g9", again, messages))
        self.history.save_summary(replace(old, id=again, segment="g9"))
        self.assertEqual(self.history.around(messages[0].id), messages)
        self.assertEqual(list(self.history.archived([messages[0].id])), [m.id for m in messages])

    def test_a_page_loads_its_segments(self):
        """Of a long summary only the segments in sight are loaded."""
        self.assertEqual(len(self.history.places_below(self.long)), LEAVES * EACH)
        self.assertEqual(self.store.taken(ARCHIVE), [])
        page = list(self.history.below(self.long, EACH - 2, EACH + 2))
        self.assertEqual(len(self.store.taken(ARCHIVE)), 2)
        self.assertEqual(page, list(self.history.below(self.long))[EACH - 2 : EACH + 2])
        self.store.read = []
        next(iter(self.history.below(self.long)))
        self.assertLessEqual(len(self.store.taken(ARCHIVE)), 1)

    def test_evidence_in_slices(self):
        """The proof's evidence is the same with pauses, also of what changes meanwhile."""
        gathered = self.history.gathered_evidence()
        leaf(self.history)
        found, whole = wait_for(gathered), self.history.evidence()
        self.assertEqual(found, whole)
        self.assertEqual(len(found.segments), LEAVES + 1)


class TestQueries(AssistantTest):
    """The same in a database, after a start."""

    def setUp(self):
        super().setUp()
        self.history = self.script.history
        self.leaves = [leaf(self.history) for _ in range(LEAVES)]
        Attribute.flush_instance_cache(force=True)
        self.script.attributes.reset_cache()
        self.fresh = HistoryHandler(self.history.store, lambda: words, lambda: 0.0)

    def test_one_query_for_all_records(self):
        """Their keys and all that is not known yet; then the keys alone."""
        with CaptureQueriesContext(connection) as queries:
            found = self.fresh.summaries()
        self.assertEqual((len(found), len(queries)), (LEAVES, 2))
        with CaptureQueriesContext(connection) as queries:
            self.assertEqual(self.fresh.summaries(), found)
        self.assertEqual(len(queries), 1)

    def test_a_change_by_hand(self):
        """A builder's change of a stored record is seen, in place or as a whole."""
        self.fresh.summaries()
        stored = self.script.attributes.get(self.leaves[0], category=SUMMARIES)
        stored["text"] = "by hand"
        self.assertEqual(self.fresh.summary(self.leaves[0]).text, "by hand")
        self.script.attributes.add("s1", record("s1"), category=SUMMARIES)
        self.assertIn("s1", [r.id for r in self.fresh.summaries()])
