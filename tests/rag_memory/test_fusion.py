"""Ranked lists put together."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.rag_memory.fusion import fused
from tests.strategies import FEW

rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5)


def hits(ids, source=0):
    return [{"id": each, "source": source} for each in ids]


def order(found):
    return "".join(hit["id"] for hit in found)


class TestFused(unittest.TestCase):
    """Reciprocal rank fusion."""

    def test_agreement_wins(self):
        """What two lists put second beats what one puts first and the other not at all."""
        self.assertEqual(order(fused([hits("ab"), hits("cb")])), "bac")

    def test_constant(self):
        """With a small constant the first place counts most."""
        lists = [hits("xab"), hits("zab"), hits("xwb")]
        self.assertEqual(order(fused(lists))[0], "b")
        self.assertEqual(order(fused(lists, constant=0))[0], "x")

    def test_first_seen_is_kept(self):
        """Of hits with one id the first seen stands for all."""
        self.assertEqual(fused([hits("a", 1), hits("a", 2)]), hits("a", 1))
        self.assertEqual(fused([]), [])

    @FEW
    @given(rankings)
    def test_each_once_by_score(self, ids):
        """Each hit is there once; scores, counted apart, never rise from one to the next."""
        found = fused([hits(each) for each in ids])
        self.assertEqual(sorted(order(found)), sorted({each for row in ids for each in row}))
        scores = [
            sum(1 / (61 + row.index(hit["id"])) for row in ids if hit["id"] in row) for hit in found
        ]
        for score, following in zip(scores, scores[1:], strict=False):
            self.assertGreaterEqual(score + 1e-12, following)

    @FEW
    @given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.integers(1, 4))
    def test_one_opinion(self, ids, times):
        """A list alone, or several times, keeps its order."""
        self.assertEqual(order(fused([hits(ids)] * times)), "".join(ids))
