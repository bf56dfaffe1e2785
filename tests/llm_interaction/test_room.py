"""The room of a history, and its shares."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.room import LEAST_SUMMARY, MARKER_TOKENS, Room
from tests.strategies import MANY

sizes = st.integers(1, 200_000)


class TestRoom(unittest.TestCase):
    """Shares that add up."""

    def test_too_small(self):
        """It is never counted as less than a share of the limit."""
        room = Room(1000, 900, 50)
        self.assertTrue(room.is_too_small)
        self.assertEqual(room.tokens, 150)
        self.assertEqual(Room(0, 0, 0).usage(1), 1.0)

    @MANY
    @given(sizes, sizes, sizes, st.integers(1, 20))
    def test_a_compaction_gets_under(self, limit, fixed, reserved, summaries):
        """What is kept and as many summaries as one reader sees lie within the target."""
        room = Room(limit, fixed, reserved)
        cap = room.summary_cap(room.kept, summaries)
        if cap > LEAST_SUMMARY:
            whole = room.kept + summaries * (cap + MARKER_TOKENS)
            self.assertLessEqual(whole, room.target)
