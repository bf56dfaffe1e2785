"""Records come back as they were stored; what cannot be read is no record."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.records import CompactionRecord, Segment
from evennia_ai.history.stored import Unreadable


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
            (CompactionRecord, {**record, "summaries_before": {"s1": ["live"]}}),
            (Segment, {**segment, "messages": [{"role": "nobody", "content": "a"}]}),
            (Segment, {**segment, "sha256": None}),
        ):
            with self.assertRaises(Unreadable):
                kind.from_dict(odd)

    def test_sealed_again(self):
        """The tombstones say when, and are under the seal; a second time adds to them."""
        left = self.whole.revised({"m1", "m9"}, "now", same).revised({"m2"}, "later", same)
        self.assertEqual(left.tombstones, {"m1": "now", "m2": "later"})
        self.assertEqual((left.message_ids, [m.id for m in left.messages]), (["m0"], ["m0"]))
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotEqual(left.sha256, self.whole.sha256)

    def test_changed(self):
        """Messages that change take the place of the old ones, under a new seal."""

        def change(message):
            return replace(message, content="[forgotten]") if message.id == "m1" else message

        left = self.whole.revised((), "now", change)
        self.assertEqual([m.content for m in left.messages], ["a", "[forgotten]", "c"])
        self.assertEqual(Segment.from_dict(left.to_dict()).messages, left.messages)
        self.assertEqual(left.checksum, left.sha256)
        self.assertNotIn("tombstones", left.to_dict())

    def test_damage_is_not_covered_up(self):
        """One whose checksum was wrong keeps it."""
        damaged = replace(self.whole, sha256="0")
        self.assertEqual(damaged.revised({"m1"}, "now", same).sha256, "0")
