"""Records come back as stored, and are read once: what a question about an old archive loads."""

import unittest
from dataclasses import replace

from django.db import connection
from django.test.utils import CaptureQueriesContext
from evennia.typeclasses.attributes import Attribute

from evennia_ai.history.archive import ARCHIVE, SUMMARIES, CompactionRecord, Segment, SummaryRecord
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import Message, new_id, utc_iso
from evennia_ai.history.stored import Unreadable
from evennia_ai.history.verification import verify
from tests.base import AssistantTest
from tests.stand_ins import CountingStore
from tests.waiting import wait_for

LEAVES, EACH = 80, 8


def handler(store):
    return HistoryHandler(store, lambda: len, lambda: 0.0)


def record(summary_id, **fields):
    made = {"id": summary_id, "tier": "recent", "created_at": utc_iso(0.0)}
    return SummaryRecord(**{**made, "audience": "public", "text": f"of {summary_id}", **fields})


def leaf(history):
    """A recent summary with its segment of `EACH` messages; returns its id."""
    segment, summary = new_id("g"), new_id("s")
    lines = [Message("user", f"line {number}", new_id("m")) for number in range(EACH)]
    messages = [line.completed(len, 0.0) for line in lines]
    history.archive(Segment.sealed(segment, summary, messages))
    sources = tuple(m.id for m in messages)
    history.save_summary(record(summary, segments={segment: EACH}, source_ids=sources))
    return summary


class TestReadings(unittest.TestCase):
    """A handler on a store that counts the segments read."""

    def setUp(self):
        self.store = CountingStore(ARCHIVE)
        self.history = handler(self.store)
        self.leaves = [leaf(self.history) for _ in range(LEAVES)]
        self.long = new_id("s")
        self.history.save_summary(record(self.long, tier="long", child_ids=tuple(self.leaves)))
        self.history = handler(self.store)
        self.history.messages()
        self.store.reads = 0

    def assert_read(self, segments):
        """So many segments were read since the last time."""
        self.assertEqual(self.store.reads, segments)
        self.store.reads = 0

    def test_a_message_is_found_by_one_segment(self):
        """Where a message went is known without looking through the archive."""
        wanted = self.history.summary(self.leaves[5])
        ids = wanted.source_ids
        self.assertEqual([m.id for m in self.history.around(ids[2])], list(ids))
        self.assert_read(1)
        self.assertEqual(list(self.history.around("m0")), [])
        some = self.history.by_ids([ids[4], "m0", ids[1]])
        self.assertEqual([m.id for m in some], [ids[4], ids[1]])
        self.assert_read(0)

    def test_others(self):
        """A record or segment that cannot be read is put aside, and the proof says so."""
        [kept] = self.history.summary(self.leaves[1]).segments
        self.store.set(self.leaves[0], record("s0").to_dict(), SUMMARIES)
        self.store.set(kept, "oops", ARCHIVE)
        self.assertEqual(len(self.history.summaries()), LEAVES)
        self.assertIsNone(self.history.segment(kept))
        details = [v.detail for v in verify(self.history.evidence()) if v.kind == "unreadable"]
        self.assertEqual(len(details), 2)
        self.assertIn(f"ai_archive_{kept}", details[0])

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
        self.assertEqual(list(self.history.around(gone[0])), [])
        self.history.save_summary(replace(old, source_ids=old.source_ids[1:]))
        self.assertEqual(list(self.history.around(old.source_ids[0])), [])
        self.assertTrue(self.history.around(old.source_ids[1]))

    def test_the_newest_segment_counts(self):
        """A message that was folded, taken back and folded again is found where it is now."""
        old = self.history.summary(self.leaves[0])
        [key] = old.segments
        messages = self.history.segment(key).messages
        again = new_id("s")
        self.history.archive(Segment.sealed("g9", again, messages))
        self.history.save_summary(replace(old, id=again, segments={"g9": EACH}))
        self.assertEqual(self.history.around(messages[0].id), list(messages))
        self.assertEqual(list(self.history.archived([messages[0].id])), [m.id for m in messages])

    def test_a_page_loads_its_segments(self):
        """Of a long summary only the segments in sight are loaded."""
        self.assertEqual(len(self.history.places_below(self.long)), LEAVES * EACH)
        self.assert_read(0)
        page = list(self.history.below(self.long, EACH - 2, EACH + 2))
        self.assert_read(2)
        self.assertEqual(page, list(self.history.below(self.long))[EACH - 2 : EACH + 2])
        self.store.reads = 0
        next(iter(self.history.below(self.long)))
        self.assertLessEqual(self.store.reads, 1)

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
        self.fresh = handler(self.history.store)

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
        self.script.attributes.add("s1", record("s1").to_dict(), category=SUMMARIES)
        self.assertIn("s1", [r.id for r in self.fresh.summaries()])


def same(message):
    return message


class TestRecords(unittest.TestCase):
    """Compactions and segments, and segments some of whose messages are forgotten."""

    def setUp(self):
        messages = [Message("user", text, id=f"m{n}", tokens=1) for n, text in enumerate("abc")]
        self.whole = Segment.sealed("g1", "s1", messages)

    def test_others(self):
        """What is of another form is no record."""
        record = CompactionRecord(id="c1", at="", trigger="sleep").to_dict()
        segment = self.whole.to_dict()
        for kind, odd in (
            (CompactionRecord, ["c1"]),
            (CompactionRecord, {"id": "c1"}),
            (CompactionRecord, {**record, "summaries": {"s1": "live"}}),
            (Segment, {**segment, "messages": [{"role": "nobody", "content": "a"}]}),
            (Segment, {**segment, "sha256": None}),
        ):
            with self.assertRaises(Unreadable):
                kind.from_dict(odd)

    def test_sealed_again(self):
        """What is left is sealed again; a second time, too."""
        left = self.whole.revised({"m1", "m9"}, same).revised({"m2"}, same)
        self.assertEqual((left.message_ids, [m.id for m in left.messages]), (["m0"], ["m0"]))
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotEqual(left.sha256, self.whole.sha256)

    def test_changed(self):
        """Messages that change take the place of the old ones, under a new seal."""

        def change(message):
            return replace(message, content="[forgotten]") if message.id == "m1" else message

        left = self.whole.revised((), change)
        self.assertEqual([m.content for m in left.messages], ["a", "[forgotten]", "c"])
        self.assertEqual(Segment.from_dict(left.to_dict()).messages, left.messages)
        self.assertEqual(left.checksum, left.sha256)

    def test_damage_is_not_covered_up(self):
        """One whose checksum was wrong keeps it."""
        damaged = replace(self.whole, sha256="0")
        self.assertEqual(damaged.revised({"m1"}, same).sha256, "0")
