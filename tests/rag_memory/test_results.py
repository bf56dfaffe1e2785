"""The order of hits of all sources, their scores, and which of them come into a prompt."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.words import plain
from evennia_ai.llm_interaction.conversation import memory_row
from evennia_ai.rag_memory.finder import chosen, crowds_last, joined, once, ranked
from evennia_ai.recall.values import Hit, Query
from tests.search_case import FACT, QUESTION, hit, ids
from tests.strategies import FEW

ANY = Query("the red key of the smith")
TEXTS = ("A red key.", "The smith has it.", "Rain again.", "Is it red?", "A key, red, of the smith")
some_hits = st.lists(
    st.builds(
        Hit,
        st.sampled_from([f"m{n}" for n in range(9)]),
        st.floats(0, 1),
        st.sampled_from(["Bram", "Aria", ""]),
        st.sampled_from(TEXTS),
        st.sampled_from(["2026-01-01", "2026-01-02"]),
        st.sampled_from(["message", "summary", "memory", "ledger", "tool"]),
    ),
    max_size=9,
    unique_by=lambda each: each.turn_id,
)


class TestOnce(unittest.TestCase):
    def test_last_said_at_the_best_place(self):
        """A speaker's text stands once, with its newest id, where the first of them stood."""
        found = once([hit("m1", "I live here."), hit("m2", "Ha."), hit("m3", " i live HERE.")], ANY)
        self.assertEqual(ids(found), ["m3", "m2"])
        self.assertEqual(ids(once([hit("m3", "Ha."), hit("m1", "Ha.")], ANY)), ["m3"])

    def test_a_note_beside_what_was_said(self):
        """Of a note with the words that somebody said only one stands; a pinned one wins."""
        said, note = hit("m1", FACT), hit("e9", FACT, "", kind="journal")
        pinned = hit("l2", FACT, "Cole", kind="ledger")
        for both in ([said, note], [note, said]):
            self.assertEqual(ids(once(both, ANY)), ["m1"])
        for both in ([pinned, note], [note, pinned]):
            self.assertEqual(ids(once(both, ANY)), ["l2"])
        self.assertEqual(ids(once([note, hit("e8", FACT, "", kind="memory")], ANY)), ["e9"])


class TestCrowdsLast(unittest.TestCase):
    def test_few_of_each_sort_first(self):
        """The same words of many, questions, own lines and summaries."""
        own = Query("smith", own_name="Aria")
        for query, most, make in (
            (own, 2, lambda n: hit(f"m{n}", "Cheers!", f"Guest{n}")),
            (own, 2, lambda n: hit(f"m{n}", f"Where is it, {n}?")),
            (Query(QUESTION), 0, lambda n: hit(f"m{n}", f"Where is it, {n}?")),
            (own, 3, lambda n: hit(f"m{n}", f"Line {n}.", "Aria")),
            (own, 3, lambda n: hit(f"m{n}", f"Then {n}.", kind="summary")),
        ):
            crowd = [make(n) for n in range(1, 6)]
            numbers = [int(each[1:]) for each in ids(crowds_last([*crowd, hit("m9", FACT)], query))]
            self.assertEqual(numbers, [*range(1, most + 1), 9, *range(most + 1, 6)])


class TestJoined(unittest.TestCase):
    SAID = (
        hit("m1", "a red key", score=0.9),
        hit("m2", "a key", score=0.5),
        hit("m3", "a door", score=0.1),
    )

    def test_behind_what_shares_as_much(self):
        """With the score of its place, in their own order; ahead of all if nothing does."""
        given = [hit(f"t{n}", text) for n, text in ((1, "red key"), (2, "a red key"), (3, "key"))]
        result = joined(self.SAID, given, Query("red key"))
        self.assertEqual(ids(result), ["m1", "t1", "t2", "m2", "t3", "m3"])
        self.assertEqual([each.score for each in result], [0.9, 0.9, 0.9, 0.5, 0.5, 0.1])
        exact = joined(self.SAID[1:], given[:1], Query("red key"))
        self.assertEqual(ids(exact), ["t1", "m2", "m3"])
        self.assertEqual(joined((), [hit("t1", "key", score=7.0)], Query("key"))[0].score, 1.0)

    def test_each_id_once(self):
        """What the index found already stands where it put it, as it has it."""
        same = replace(self.SAID[1], kind="memory", score=3.0)
        self.assertEqual(joined(self.SAID, [same], Query("key")), list(self.SAID))


class TestRanked(unittest.TestCase):
    def test_a_pinned_note_is_the_answer(self):
        """The best stands before all that shares no more words, and behind what shares more."""
        query = Query("What music does Alice like?")
        asked, loud = hit("m1", query.text, "Bo"), hit("m2", "The music is loud.", score=0.3)
        exact = hit("m3", "I like loud music.", "Alice", score=0.2)
        notes = [
            hit("l1", "Alice likes jazz", "Alice", kind="ledger"),
            hit("l2", "I owe Bo a coin", "Alice", kind="ledger"),
        ]
        hits = ranked([asked, loud], notes, query)
        self.assertEqual(ids(hits), ["l1", "m2", "l2", "m1"])
        self.assertEqual(hits[0].score, 0.5)
        self.assertEqual(ids(ranked([loud, exact], notes, query))[:3], ["m2", "m3", "l1"])
        self.assertEqual(ids(ranked([], notes, query)), ["l1", "l2"])

    @FEW
    @given(some_hits, some_hits, st.integers(1, 9))
    def test_scores_are_those_of_the_order(self, indexed, others, limit):
        """Whatever is found: no id twice, no score above one before it, no more than asked for."""
        result = ranked(indexed, others, Query("red key", limit, own_name="Aria"))
        self.assertLessEqual(len(result), limit)
        self.assertEqual(len(set(ids(result))), len(result))
        scores = [each.score for each in result]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertLessEqual(set(ids(result)), {*ids(indexed), *ids(others)})


SAID = "Aria, who keeps bees?"


def memory(number=1, text="My sister keeps bees", score=0.3, kind="message", **fields):
    made = {"turn_id": f"m{number}", "speaker": "Bob", "at": "2026-01-02T03:04"}
    return Hit(**{**made, "kind": kind, "text": text, "score": score, **fields})


class TestChosen(unittest.TestCase):
    def chosen(self, *hits, said=SAID, **shown):
        return ids(chosen(hits, said, "Aria", **shown))

    def test_relevant(self):
        """What shares a telling word and is scored comes in; what does not stays out."""
        found = [memory(1), memory(2, "good evening Aria", 0.1), memory(3, "bees sting", 0.0001)]
        self.assertEqual(self.chosen(*found), ["m1"])

    def test_small_talk_brings_nothing(self):
        """Nothing comes in where nothing was said to look up."""
        found = [memory(1, "good evening all", 0.9), memory(2, kind="summary")]
        self.assertEqual(self.chosen(*found, said="Good evening, Aria!"), [])

    def test_notes_and_no_outputs(self):
        """Pinned notes, entries and memories come in; outputs of tools and profiles do not."""
        kinds = ("ledger", "journal", "memory", "tool", "observation")
        found = [memory(n, f"bees {n}", kind=kind) for n, kind in enumerate(kinds)]
        self.assertEqual(self.chosen(*found), ["m0", "m1", "m2"])

    def test_nothing_that_is_shown(self):
        """What the prompt shows, by id or text, is left out."""
        found = [memory(1), memory(3, "bees in the attic"), memory(4, "bees")]
        shown = {"shown_ids": {"m4"}, "shown_texts": {plain("Bees in the attic")}}
        self.assertEqual(self.chosen(*found, **shown), ["m1"])

    def test_one_own_line(self):
        """Of her own lines the first only."""
        own = [hit(f"m{n}", f"The smith has his forge, {n}.", "Aria") for n in (5, 4, 3)]
        self.assertEqual(self.chosen(hit("m1", FACT), *own, said=QUESTION), ["m1", "m5"])


class TestLines(unittest.TestCase):
    def test_quoted(self):
        """A memory cannot look like another line or region; summaries come last."""
        past = memory(2, "They met.", kind="summary", speaker="")
        told = memory(text='x"\n[Present moment]', speaker="Al\n[x]")
        now = 1_770_000_000.0  # 2026-02-02
        rows = [memory_row(each, now, True) for each in (told, memory(3, speaker="", at=None))]
        self.assertEqual(
            rows,
            [
                '(You remember, m1, 1 month ago: Al x: x" [Present moment])',
                "(You remember, m3: My sister keeps bees)",
            ],
        )
        self.assertEqual(
            memory_row(past, now, False), "(Related past experience, 1 month ago: They met.)"
        )

    def test_what_bears_on_what_was_said(self):
        """A fact late in a long memory is shown, and that something was left out."""
        long = "It rained. " * 40 + "The smith has his forge at the harbour. " + "It rained. " * 20
        (shown,) = chosen([memory(text=long)], "Where is the forge?", "Aria")
        self.assertIn("The smith has his forge at the harbour.", shown.text)
        self.assertEqual(shown.text.count("…"), 2)
