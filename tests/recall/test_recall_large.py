"""Searches in large scopes, the lexicon, and that of what was said twice the newest counts."""

import random
import unittest
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.lexicon import parsed_query
from evennia_ai.recall.ranking import (
    CANDIDATES,
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
        hits = self.index.search("aria", "Who is Odile?", 1, PUBLIC)
        self.assertEqual(hits[0].turn_id, "needle")

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
    def test_who_is_asked_about(self):
        """The speakers that it names, in order, by short forms of three letters or more."""
        query = parsed_query("What book for Bram did Alice buy?", ["Alice", "Bram", "Cora"])
        self.assertEqual(query.asked, ("Bram", "Alice"))
        self.assertEqual(query.content, ("book", "buy"))
        self.assertEqual(parsed_query("Does Mel sing?", ["Melanie"]).asked, ("Melanie",))
        self.assertEqual(parsed_query("Tell me a melody", ["Melanie"]).asked, ())

    def test_dates(self):
        """They are read in every language; `may` the verb is no month."""
        query = parsed_query("What happened on 8 May, 2023?")
        self.assertEqual((query.months, query.days, query.years), ((5,), (8,), (2023,)))
        for text, months in (
            ("What may Alice buy?", ()),
            ("How was June?", (6,)),
            ("Was haben wir im Juni gemacht?", (6,)),
            ("Что мы делали в июне этого года?", (6,)),
            ("¿Qué es lo que hicimos nosotros en el mes de junio?", (6,)),
            ("6月に何をしましたか？", (6,)),
            ("우리는 12월에 무엇을 했어요?", (12,)),
        ):
            with self.subTest(text):
                self.assertEqual(parsed_query(text).months, months)


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
        """Each set of shipped weights names features that are computed."""
        kinds = ("", "crowd", "statement", "statement by words")
        for count, crowd in ((3, False), (300, True)):
            index = RecallIndex(":memory:")
            self.addCleanup(index.close)
            index.add("aria", chatter(count))
            view = index._view(1, None)
            self.assertEqual(view.in_crowd, crowd)
            found = Reader(
                view, parsed_query("warm ale"), index._embedder, index._stems
            ).candidates()
            for kind in kinds:
                self.assertLessEqual(set(default_model(kind).weights), set(found.features))


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


def candidates(query, matched, tells, times):
    """Candidates of a query; `matched` are the words that each holds, as bits."""
    count, words = len(matched), len(query.content)
    return Candidates(
        positions=np.arange(count),
        features={},
        held=np.array([[bits >> n & 1 for bits in matched] for n in range(words)], dtype=bool),
        exact=np.zeros(count, dtype=bool),
        tells=np.array(tells),
        times=np.array(times),
        about=np.zeros(count, dtype=bool),
    )


class TestLatestFirst(unittest.TestCase):
    def setUp(self):
        self.matched, self.tells = [1, 1, 2, 1, 0], [True, True, True, False, True]
        self.times = [0.0, 9 * DAY, 20 * DAY, 30 * DAY, 40 * DAY]
        self.scores = [5.0, 4.0, 3.5, 3.0, 2.0]

    def ordered(self, query, scores=None):
        asked = parsed_query(query, SPEAKERS)
        found = candidates(asked, self.matched, self.tells, self.times)
        scores = np.array(self.scores if scores is None else scores)
        return latest_first(np.arange(len(scores)), scores, found, asked).tolist()

    def test_order(self):
        """Of turns that say the same the newest comes first; all others keep their places.

        A newer turn that answers far worse does not say the same, nor one that shares few words
        with the query. A question on a date moves nothing.
        """
        stay, moved = [0, 1, 2, 3, 4], [1, 0, 2, 3, 4]
        worse = [5.0, 5.0 - MARGIN - 0.1, 1.0, 0.5, 0.0]
        for query, scores, matched, order in (
            ("Where does Alice live?", None, 1, moved),
            ("Where does Alice live?", worse, 1, stay),
            ("Where does Alice go in June?", None, 1, stay),
            ("Where does Alice sell lamp oil?", None, 1, stay),
            ("Where does Alice sell lamp oil?", None, 3, moved),
            ("Who is Odile?", None, 1, moved),
            ("Who is the mayor?", None, 1, moved),
        ):
            with self.subTest(query=query, matched=matched):
                self.matched[:2] = matched, matched
                self.assertEqual(self.ordered(query, scores), order)
        self.times[1] = 60.0  # one talk is not told apart by seconds
        self.assertEqual(self.ordered("Where does Alice live?"), stay)

    def test_what_is_far_down_stays_there(self):
        """A newer turn below the best ones that tell does not come up; questions do not count."""
        count = LOOKED_AT + 1
        self.matched = [1] + [2] * (count - 2) + [1]
        self.tells = [True] * count
        self.times = [n * DAY for n in range(count)]
        self.scores = np.linspace(1, 0, count)
        self.assertEqual(self.ordered("Where does Alice live?"), list(range(count)))
        self.tells[5:8] = False, False, False
        moved = [count - 1, *range(1, count - 1), 0]
        self.assertEqual(self.ordered("Where does Alice live?"), moved)


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
        """Among many who talk at once, and ask the same again and again, it comes first, too."""
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
