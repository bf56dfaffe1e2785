"""Lines cut into runs that fit a request."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.budget import packed, pieces
from tests.strategies import awkward_texts


def words(text):
    return len(text.split())


class TestPacked(unittest.TestCase):
    """Runs of lines."""

    def test_runs_in_order(self):
        """Lines fill a run until the next one would not fit; a line costs one more than itself."""
        self.assertEqual(packed(["a b", "c d", "e"], 6, words), (("a b", "c d"), ("e",)))

    def test_nothing(self):
        """No lines are no runs."""
        self.assertEqual(packed([], 10, words), ())

    def test_long_line_is_cut(self):
        """A line over the room is cut, and its pieces are packed like lines."""
        runs = packed(["abcdefghij"], 4, len)
        self.assertEqual("".join(piece for run in runs for piece in run), "abcdefghij")
        self.assertTrue(all(len(piece) + 1 <= 4 for run in runs for piece in run))

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


class TestPieces(unittest.TestCase):
    """One line."""

    def test_fits(self):
        """A line that fits stays whole."""
        self.assertEqual(pieces("abc", 4, len), ["abc"])

    def test_a_character_is_the_least(self):
        """No room at all still gives single characters."""
        self.assertEqual(pieces("abc", 0, len), ["a", "b", "c"])
