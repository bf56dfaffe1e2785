"""Searches in large scopes, the lexicon, and that of what was said twice the newest counts."""

import random
import unittest
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.lexicon import parsed_query
from evennia_ai.recall.ranking import (
    CANDIDATES,
    CROWD_MARGIN,
    LOOKED_AT,
    MARGIN,
    Candidates,
    Reader,
    default_model,
    latest_first,
)

WORDS = ["the", "ale", "is", "warm", "tonight", "and", "carts", "rolled"]
WORDS += ["past", "mill", "smoke", "over", "hill", "road", "wet", "cold"]


def chatter(count, seed=5):
    """Lines of small talk, a minute apart."""
    rng = random.Random(seed)
    return [
        Turn(f"c{n}", rng.choice(["Ann", "Ben"]), " ".join(rng.choices(WORDS, k=9)), 60.0 * n)
        for n in range(count)
    ]


class TestLargeScope(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.index = RecallIndex(":memory:")
        cls.addClassCleanup(cls.index.close)
        said = chatter(2 * CANDIDATES + 500)
        said.insert(700, Turn("needle", "Ann", "My aunt Odile keeps the lighthouse.", 42_000.5))
        said.insert(900, Turn("secret", "Ben", "Odile hid the crown.", 54_000.5, None, STAFF))
        cls.turns = said
        cls.index.add("aria", said)

    def test_needle(self):
        """One telling turn among thousands comes first."""
        self.assertEqual(self.index.search("aria", "Who is Odile?", 1)[0].turn_id, "needle")

    def test_limit_above_what_is_looked_at(self):
        """A limit above the number of candidates gives all candidates, once."""
        hits = self.index.search("aria", "warm ale", 10 * CANDIDATES)
        self.assertEqual(len({hit.turn_id for hit in hits}), CANDIDATES)

    def test_audience(self):
        """What is hidden does not come up, nor change what does."""
        seen = RecallIndex(":memory:")
        self.addCleanup(seen.close)
        seen.add("aria", [turn for turn in self.turns if turn.id != "secret"])
        for query in ("Odile's crown", "the wet road", "What did Ann say of the lighthouse?"):
            for viewer in ("public", private(["o1"])):
                hits = self.index.search("aria", query, 50, viewer)
                self.assertEqual(hits, seen.search("aria", query, 50, viewer))


class TestQuery(unittest.TestCase):
    def test_who_does_comes_first(self):
        """Of two names the one after an auxiliary is the doer."""
        query = parsed_query("What book for Bram did Alice buy?", ["Bram", "Alice", "Cora"])
        self.assertEqual(query.asked, ("Alice", "Bram"))
        self.assertEqual(query.content, ("book", "buy"))
        self.assertFalse(query.together)

        # A short form of three letters or more is the name; other words are not.
        self.assertEqual(parsed_query("Does Mel sing?", ["Melanie"]).asked, ("Melanie",))
        self.assertEqual(parsed_query("Tell me a melody", ["Melanie"]).asked, ())

    def test_what_is_wanted(self):
        """Dates and the kind of answer are read; `may` the verb is no month."""
        query = parsed_query("What happened on 8 May, 2023?")
        self.assertEqual((query.months, query.days, query.years), ((5,), (8,), (2023,)))
        self.assertEqual(parsed_query("What may Alice buy?", ["Alice"]).months, ())
        self.assertEqual(parsed_query("How was June?").months, (6,))
        self.assertTrue(parsed_query("When did it rain?").wants_time)
        self.assertTrue(parsed_query("Who owns the mill?").wants_name)


class TestCrowd(unittest.TestCase):
    def setUp(self):
        self.index = RecallIndex(":memory:")
        self.addCleanup(self.index.close)

    def in_crowd(self, viewer=None):
        return self.index._view(1, viewer).in_crowd

    def test_talk_without_a_thread_is_a_crowd(self):
        """Lines that have nothing to do with the next make a crowd; a few of them do not yet."""
        for count, is_crowd in ((50, False), (500, True)):
            self.index.add("aria", chatter(count))
            self.assertEqual(self.in_crowd(), is_crowd)

    def test_what_is_hidden_does_not_make_a_crowd(self):
        """Talk of one thing after the other is none; what the asker may not see has no say."""
        self.index.add("aria", threads())
        self.assertFalse(self.in_crowd())
        hidden = [replace(turn, id=f"h{turn.id}", audience=STAFF) for turn in chatter(500)]
        self.index.add("aria", hidden)
        self.assertTrue(self.in_crowd())
        self.assertFalse(self.in_crowd("public"))

    def test_weights_fit_the_features(self):
        """The shipped weights name the features that are computed; a crowd's, some of them."""
        for count, crowd in ((3, False), (300, True)):
            index = RecallIndex(":memory:")
            self.addCleanup(index.close)
            index.add("aria", chatter(count))
            view = index._view(1, None)
            self.assertEqual(view.in_crowd, crowd)
            found = Reader(
                view, parsed_query("warm ale"), index._embedder, index._stems
            ).candidates()
            self.assertLessEqual(set(default_model(crowd).weights), set(found.features))


def threads():
    """Talk of one thing after the other."""
    return [
        Turn(f"w{n}", "ABCD"[n % 4], f"{WORDS[n // 30]} {WORDS[n // 30]} {WORDS[n % 7]}", 60.0 * n)
        for n in range(30 * len(WORDS))
    ]


DAY = 86_400.0
SPEAKERS = ["Alice", "Bram"]


def babble(count):
    """Lines that have nothing to do with the next, half a minute apart."""
    rng = random.Random(8)
    things = ["ale", "bread", "rain", "carts", "dice", "boots", "geese", "fiddle", "candle"]
    people = ["Alice", "Bram", "Cora", "Dora"]
    lines = [
        f"{rng.choice(things).title()} and {rng.choice(things)}, as ever." for _ in range(count)
    ]
    return [Turn(f"b{n}", rng.choice(people), text, 30.0 * n) for n, text in enumerate(lines)]


def candidates(query, matched, tells, times, rarity=(1.0, 1.0, 1.0)):
    """Candidates of a query; `matched` are the words that each holds, as bits."""
    count, words = len(matched), len(query.content)
    return Candidates(
        positions=np.arange(count),
        features={},
        held=np.array([[bits >> n & 1 for bits in matched] for n in range(words)], dtype=bool),
        rarity=np.array(rarity[:words], dtype=np.float32),
        exact=np.zeros(count, dtype=bool),
        tells=np.array(tells),
        times=np.array(times),
        about=np.zeros(count, dtype=bool),
        repeats=np.zeros(count, dtype=bool),
    )


class TestLatestFirst(unittest.TestCase):
    def setUp(self):
        self.matched, self.tells = [1, 1, 2, 1, 0], [True, True, True, False, True]
        self.times = [0.0, 9 * DAY, 20 * DAY, 30 * DAY, 40 * DAY]
        self.scores, self.repeats = [5.0, 4.0, 3.5, 3.0, 2.0], slice(0)

    def ordered(self, query, scores=None):
        asked = parsed_query(query, SPEAKERS)
        found = candidates(asked, self.matched, self.tells, self.times)
        found.repeats[self.repeats] = True
        scores = np.array(self.scores if scores is None else scores)
        return latest_first(np.arange(len(scores)), scores, found, asked).tolist()

    def test_order(self):
        """Of turns that say the same the newest comes first; all others keep their places.

        A newer turn that answers far worse does not say the same, nor one that shares few words
        with the query, or a name alone. A question about what was, or on a date, moves nothing.
        """
        stay, moved = [0, 1, 2, 3, 4], [1, 0, 2, 3, 4]
        worse = [5.0, 5.0 - MARGIN - 0.1, 1.0, 0.5, 0.0]
        for query, scores, matched, order in (
            ("Where does Alice live?", None, 1, moved),
            ("Where does Alice live?", worse, 1, stay),
            ("Where did Alice live?", None, 1, stay),
            ("Where does Alice go in June?", None, 1, stay),
            ("Alice's first home", None, 1, stay),
            ("Where does Alice sell lamp oil?", None, 1, stay),
            ("Where does Alice sell lamp oil?", None, 3, moved),
            ("Who is Odile?", None, 1, stay),
            ("Who is the mayor?", None, 1, moved),
        ):
            with self.subTest(query=query, matched=matched):
                self.matched[:2] = matched, matched
                self.assertEqual(self.ordered(query, scores), order)
        self.times[1] = 60.0  # one talk is not told apart by seconds
        self.assertEqual(self.ordered("Where does Alice live?"), stay)

    def test_what_is_far_down_stays_there(self):
        """A newer turn below the best ones looked at does not come up."""
        count = LOOKED_AT + 1
        self.matched = [1] + [2] * (count - 2) + [1]
        self.tells = [True] + [False] * (count - 2) + [True]
        self.times = [n * DAY for n in range(count)]
        self.scores = np.linspace(1, 0, count)
        self.assertEqual(self.ordered("Where does Alice live?"), list(range(count)))
        self.repeats = slice(5, 8)  # but as if the question itself had not been asked
        moved = [count - 1, *range(1, count - 1), 0]
        self.assertEqual(self.ordered("Where does Alice live?"), moved)


class TestLatestFirstInACrowd(unittest.TestCase):
    """What `alike` says counts with the words in common."""

    def ordered(self, query, matched, cosine, scores=(3.0, 2.0), tells=(True, True)):
        asked = parsed_query(query, SPEAKERS)
        found = candidates(asked, matched, tells, [0.0, 9 * DAY], (2.0, 1.0, 1.0))
        alike = np.array([[1.0, cosine], [cosine, 1.0]], dtype=np.float32)
        return latest_first(np.arange(2), np.array(scores), found, asked, alike).tolist()

    def test_words_in_common_and_likeness_add_up(self):
        """Half of the words by rarity, or less of them and more likeness, make the same news.

        A turn that lacks a name of the query says nothing of the one it names.
        """
        drinks, lives = "What does Alice like to drink at breakfast?", "Where does old Tomas live?"
        self.assertEqual(parsed_query(drinks, SPEAKERS).content, ("drink", "breakfast"))
        for query, matched, cosine, is_moved in (
            (drinks, [0b11, 0b01], 0.0, True),
            (drinks, [0b11, 0b10], 0.0, False),
            (drinks, [0b11, 0b10], 0.2, True),
            (drinks, [0, 0], 0.4, False),
            (drinks, [0, 0], 0.6, True),
            (lives, [0b111, 0b101], 0.9, False),
            (lives, [0b111, 0b110], 0.9, True),
            ("Who is Tomas?", [1, 1], 0.9, False),
            # Where Alice hid a thing asks where it is; where she lived does not.
            ("Where did Alice live?", [1, 1], 0.9, False),
            ("Where did Alice hide it?", [1, 1], 0.9, True),
            ("Who employs Alice?", [1, 1], 0.9, True),
        ):
            with self.subTest(query=query, matched=matched, cosine=cosine):
                self.assertEqual(
                    self.ordered(query, matched, cosine), [1, 0] if is_moved else [0, 1]
                )

    def test_what_tells_nothing_or_answers_far_worse_stays(self):
        """A question, or a turn of a much lower score, never takes a better place."""
        query = "What does Alice drink?"
        self.assertEqual(self.ordered(query, [1, 1], 0.9, tells=(True, False)), [0, 1])
        low = 3.0 - CROWD_MARGIN - 0.1
        self.assertEqual(self.ordered(query, [1, 1], 0.9, scores=(3.0, low)), [0, 1])


class TestSearch(unittest.TestCase):
    def setUp(self):
        self.index = RecallIndex(":memory:")
        self.addCleanup(self.index.close)

    def test_the_newest_of_two_homes(self):
        """Told anew where somebody lives, a search finds the new home first, scores in order."""
        told = [
            Turn("old", "Alice", "I live in Dunmere, by the mill.", 0.0),
            Turn("talk", "Bram", "The stew is burnt again.", 60.0),
            Turn("new", "Alice", "I live in Oakhollow now.", 20 * DAY),
        ]
        self.index.add("aria", told)
        hits = self.index.search("aria", "Where does Alice live?")
        self.assertEqual([hit.turn_id for hit in hits][:2], ["new", "old"])
        self.assertEqual(hits, sorted(hits, key=lambda hit: -hit.score))

    def test_the_newest_of_two_homes_in_a_crowd(self):
        """Among many who talk at once the newest telling comes first too, in whatever words."""
        old = Turn("old", "Bram", "Alice has a house to live in, out in Oakhollow.", 30.5)
        new = Turn("new", "Cora", "Alice lives over in Dunmere.", 9_000.5)
        self.index.add("aria", [*babble(300), old, new])
        query = "Where does Alice live?"
        hits = self.index.search("aria", query)
        self.assertEqual([hit.turn_id for hit in hits][:2], ["new", "old"])
        asked = [Turn(f"q{n}", "Dora", f"{query} Anyone?", 1e4 + 1900.0 * n) for n in range(12)]
        self.index.add("aria", asked)
        found = [hit.turn_id for hit in self.index.search("aria", query, 60)]
        self.assertLess(found.index("new"), found.index("old"))

    def test_dates(self):
        """A day the query names draws the turns said on it, in whatever year it leaves open."""
        times = ((month, datetime(2023, month, 8, 12, tzinfo=UTC)) for month in (3, 5, 9))
        late = "The ferry was late."
        self.index.add("aria", [Turn(f"m{n}", "Alice", late, at.timestamp()) for n, at in times])
        for query in ("Was the ferry late on 8 May?", "Was the ferry late on 8 May, 2023?"):
            self.assertEqual(self.index.search("aria", query)[0].turn_id, "m5", query)
