"""What a rollback makes of a history."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import Message, in_order
from evennia_ai.history.records import CompactionRecord, Segment
from evennia_ai.sleep.compaction.rollback import raw_before
from tests.strategies import MANY, heard, numbered

TALK = tuple(
    replace(message, place=place)
    for place, message in enumerate(numbered([heard(content=word) for word in "abcdefgh"]), 1)
)


class TestRawBefore(unittest.TestCase):
    """The live history after it."""

    @MANY
    @given(st.lists(st.sampled_from((None, "g1", "g2")), min_size=8, max_size=8))
    def test_what_left_stands_where_it_stood(self, segments):
        """Whichever lines left, by whichever scope, the talk is as it was."""
        left = {
            key: [m for m, own in zip(TALK, segments, strict=True) if own == key]
            for key in ("g1", "g2")
        }
        stayed = [m for m, own in zip(TALK, segments, strict=True) if own is None]
        new = Message("system", "", id="x", metadata={"type": "compaction"})
        record = CompactionRecord(id="c1", at="", trigger="")
        sealed = [Segment.sealed(key, "s1", messages) for key, messages in left.items()]
        self.assertEqual(raw_before([new, *stayed], record, sealed), list(TALK))

    def test_a_late_result_stands_behind_its_call(self):
        """What was put in later has the place of the one before it, and a later id."""
        call, line, late = TALK[0], TALK[1], replace(TALK[7], place=1)
        self.assertEqual(in_order([late, line, call]), [call, late, line])
