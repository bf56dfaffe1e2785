"""Lines cut into runs that fit a request."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.budget import packed
from tests.strategies import awkward_texts


def words(text):
    return len(text.split())


class TestPacked(unittest.TestCase):
    """Runs of lines."""

    @given(st.lists(awkward_texts, max_size=6), st.integers(0, 40))
    def test_no_character_is_lost(self, lines, room):
        """Whatever the room, all characters come out, once and in order."""
        runs = packed(lines, room, len)
        self.assertEqual("".join(piece for run in runs for piece in run), "".join(lines))

    @given(st.lists(awkward_texts, max_size=6), st.integers(2, 40))
    def test_runs_fit(self, lines, room):
        """Every run fits the room, where the room holds a character at all."""
        for run in packed(lines, room, len):
            self.assertLessEqual(sum(len(piece) + 1 for piece in run), room)
