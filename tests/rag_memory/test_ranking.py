"""The rules by which hits are ranked."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.rag_memory.ranking import (
    INDEX_RULES,
    OUTPUT_RULES,
    RANK_CONSTANT,
    RULES,
    depth,
    exact_first,
    few_summaries,
    fused,
    is_crowded,
    once,
    outputs_worth_showing,
    own_lines_last,
    rank,
    repeats_last,
    shortlist,
    without_excluded,
)
from evennia_ai.recall.values import Query
from tests.search_case import FACT, QUESTION, hit, ids
from tests.strategies import FEW

ANY = Query("")
KINDS = ("message", "memory", "observation")
rankings = st.lists(st.lists(st.integers(1, 8), unique=True), max_size=3)


def lists(*rows):
    """Hits of several sources, each given as the numbers of its hits, best first."""
    return [
        hit(f"m{n}", f"Text {n}.", kind=kind)
        for row, kind in zip(rows, KINDS, strict=False)
        for n in row
    ]


class TestOnce(unittest.TestCase):
    """Identical texts."""

    def test_last_said_at_the_best_place(self):
        """A speaker's text stands once, with its newest id, where the first of them stood."""
        found = once([hit("m1", "I live here."), hit("m2", "Ha."), hit("m3", " i live HERE.")], ANY)
        self.assertEqual(ids(found), ["m3", "m2"])
        self.assertEqual(ids(once([hit("m3", "Ha."), hit("m1", "Ha.")], ANY)), ["m3"])

    def test_by_speaker(self):
        """The same words of two people are two things told, but one thing asked."""
        self.assertEqual(
            len(once([hit("m1", "I live here."), hit("m2", "I live here.", "Bo")], ANY)), 2
        )
        self.assertEqual(
            len(once([hit("m1", "Who is it?"), hit("m2", "Who is it?", "Bo")], ANY)), 1
        )


class TestRepeatsLast(unittest.TestCase):
    """The same words of many."""

    def test_few_first(self):
        """The first two that say it stand where they stood, the others last."""
        cheers = [hit(f"m{n}", "Cheers!", f"Guest{n}") for n in (1, 2, 3, 4)]
        self.assertEqual(
            ids(repeats_last([*cheers, hit("m5", FACT)], ANY)), ["m1", "m2", "m5", "m3", "m4"]
        )


class TestFewSummaries(unittest.TestCase):
    """Summaries among the hits."""

    def test_each_once_and_few_of_a_kind(self):
        """The first three of each kind stay; one stored twice stays as an experience."""
        told = [hit(f"s{n}", "Then.", kind="experience", at="") for n in range(1, 6)]
        twice = hit("compact_1", "Then.", kind="summary", at="")
        others = [hit(f"compact_{n}", "Then.", kind="summary", at="") for n in range(6, 10)]
        found = few_summaries([twice, *told, hit("m1", FACT), *others], ANY)
        expected = ["s1", "s2", "s3", "m1", "compact_6", "compact_7", "compact_8"]
        self.assertEqual(ids(found), expected)


class TestOwnLinesLast(unittest.TestCase):
    """The assistant's own lines."""

    def test_nobody_speaks_in_a_journal(self):
        """Without a name to look for, entries of the journal are nobody's echoes."""
        entries = [hit(f"e{n}", f"Entry {n}.", "", kind="journal") for n in range(1, 6)]
        self.assertEqual(ids(own_lines_last([*entries, hit("m9", "Ha.")], ANY))[-1], "m9")


class TestFused(unittest.TestCase):
    """Reciprocal rank fusion."""

    def test_agreement_wins(self):
        """What two sources put second beats what one puts first and the other not at all."""
        self.assertEqual(ids(fused(lists([1, 2], [3, 2]))), ["m2", "m1", "m3"])

    def test_first_source_is_kept(self):
        """Of hits with one id that of the index stands for all."""
        (kept,) = fused([*lists([], [1]), *lists([1])])
        self.assertEqual(kept.kind, "message")
        self.assertEqual(fused([]), [])

    def test_outputs_aside(self):
        """What tools gave out takes no part."""
        self.assertEqual(fused([hit("t1", "A lamp.", kind="tool")]), [])

    @FEW
    @given(rankings)
    def test_each_once_by_score(self, rows):
        """Each hit is there once; scores, counted apart, never rise from one to the next."""
        found = ids(fused(lists(*rows)))
        self.assertEqual(sorted(found), sorted({f"m{n}" for row in rows for n in row}))
        scores = [
            sum(1 / (RANK_CONSTANT + 1 + row.index(n)) for row in rows if n in row)
            for n in (int(each[1:]) for each in found)
        ]
        for score, following in zip(scores, scores[1:], strict=False):
            self.assertGreaterEqual(score + 1e-12, following)

    @FEW
    @given(st.lists(st.integers(1, 8), unique=True), st.integers(1, 3))
    def test_one_opinion(self, row, times):
        """A list alone, or of several sources, keeps its order."""
        self.assertEqual(ids(fused(lists(*[row] * times))), [f"m{n}" for n in row])


class TestTyped(unittest.TestCase):
    """Queries of a few typed words."""

    def test_exact(self):
        """Hits with every word come first, unless they ask; a question wants no exact hits."""
        hits = [hit("m1", "The mill."), hit("m2", "Who sings?"), hit("m3", "Ha.", "Sings")]
        self.assertEqual(ids(exact_first(hits, Query("sings"))), ["m3", "m1", "m2"])
        for query in ("who sings", "", "a b c d e f g h sings"):
            self.assertEqual(exact_first(hits, Query(query)), hits)


class TestShortlist(unittest.TestCase):
    """What the index found."""

    def test_as_deep_as_needed(self):
        """Twice the limit; more is looked through only where most of the best ask or repeat."""
        query = Query(QUESTION, limit=2, exclude=["m99"])
        told = [hit(f"m{n}", f"Fact {n}.") for n in range(1, 9)]
        self.assertFalse(is_crowded(told, query))
        self.assertEqual(ids(shortlist(told, query)), ids(told[: depth(query)]))
        asked = [hit(f"m{n}", QUESTION) for n in range(11, 19)]
        self.assertTrue(is_crowded(asked, query))
        self.assertFalse(is_crowded(asked[:3], query))
        self.assertEqual(ids(shortlist([*asked, *told], query)), ["m18", "m1", "m2", "m3", "m4"])

    def test_outputs(self):
        """Of outputs the best few, each text once, none that is left out."""
        outputs = [hit(f"t{n}", f"Lamp {n // 2}.", "", kind="tool") for n in range(1, 10)]
        query = Query("lamp", exclude=["t1"])
        self.assertEqual(ids(outputs_worth_showing(outputs, query)), ["t3", "t5", "t7"])


class TestRank(unittest.TestCase):
    """The whole."""

    def test_listed(self):
        """Every rule takes hits and a query and gives hits it was given."""
        hits = lists([1, 2, 3], [4], [5])
        for rule in {*RULES, *INDEX_RULES, *OUTPUT_RULES}:
            self.assertLessEqual(set(ids(rule(hits, ANY))), set(ids(hits)))

    def test_all_sources(self):
        """Hits of all sources make one list no longer than asked for, without excluded ones."""
        hits = [*lists([1, 2, 3], [4, 2], [5]), hit("t1", "Text 2.", "", kind="tool")]
        found = rank(hits, Query("text 2", limit=4, exclude=["m1"], tools=True))
        self.assertEqual(ids(found), ["m2", "t1", "m4", "m5"])
        self.assertEqual(
            ids(without_excluded(found, Query("", exclude=["t1"]))), ["m2", "m4", "m5"]
        )

    @FEW
    @given(rankings)
    def test_stable(self, rows):
        """Ranking what was ranked, of one source, changes nothing."""
        query = Query("words to look for")
        found = [each for each in rank(lists(*rows), query) if each.kind == "message"]
        self.assertEqual(rank(found, query), found)
