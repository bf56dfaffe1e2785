"""The recall index in scopes larger than what is looked at closely, and its lexicon."""

import random
import unittest
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.audience import STAFF, private
from evennia_ai.language.words import stem, words
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.embedding import default_embedder
from evennia_ai.recall.features import CANDIDATES, Reader
from evennia_ai.recall.query import Speakers, is_called, name_parts, parsed_query
from evennia_ai.recall.ranking import default_model
from evennia_ai.recall.vocabulary import Vocabulary, members, members_by_kind

WORDS = [
    "the",
    "ale",
    "is",
    "warm",
    "tonight",
    "and",
    "carts",
    "rolled",
    "past",
    "mill",
    "smoke",
    "over",
    "hill",
    "road",
    "wet",
    "cold",
]


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
        said = chatter(2 * CANDIDATES + 500)
        said.insert(700, Turn("needle", "Ann", "My aunt Odile keeps the lighthouse.", 42_000.5))
        said.insert(900, Turn("secret", "Ben", "Odile hid the crown.", 54_000.5, None, STAFF))
        cls.turns = said
        cls.index.add("aria", said)

    @classmethod
    def tearDownClass(cls):
        cls.index.close()

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

    def test_same_again(self):
        """The same query gives the same hits, also after the scope was read anew."""
        before = self.index.search("aria", "cold smoke over the hill", 100)
        self.index._views.clear()
        self.assertEqual(self.index.search("aria", "cold smoke over the hill", 100), before)


class TestLexicon(unittest.TestCase):
    def test_kind_finds_member(self):
        """A question about a kind finds a turn that names one of the kind."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        lines = ["The rent is due.", "I learned the fiddle as a boy.", "Snow again, says Ben."]
        index.add("aria", [Turn(f"t{n}", "Ann", text, 9_000.0 * n) for n, text in enumerate(lines)])
        self.assertEqual(index.search("aria", "What instruments does Ann play?")[0].turn_id, "t1")

    def test_members(self):
        """Any form of a kind's name gives its members, any other word gives none."""
        self.assertIn(stem("raven"), members("pets"))
        self.assertEqual(members("xyzzy"), ())
        self.assertTrue(all(members_by_kind().values()))


LETTERS = st.text("abé", max_size=7)


class TestSpeakers(unittest.TestCase):
    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.lists(LETTERS, max_size=2).map(" ".join), max_size=12),
        st.lists(LETTERS, max_size=4),
    )
    def test_called(self, names, tokens):
        """Words call those whose first name, or a short form of it, is among them."""
        tokens = [word for token in tokens for word in words(token)]
        expected = {
            name: parts
            for name in names
            if (parts := name_parts(name)) and any(is_called(token, parts[0]) for token in tokens)
        }
        self.assertEqual(Speakers(names).called(tokens), expected)


class TestQuery(unittest.TestCase):
    def test_who_does_comes_first(self):
        """Of two names the one after an auxiliary is the doer."""
        query = parsed_query(
            "What book for Bram did Alice buy?", Speakers(["Bram", "Alice", "Cora"])
        )
        self.assertEqual(query.asked, ("Alice", "Bram"))
        self.assertEqual(query.content, ("book", "buy"))
        self.assertFalse(query.together)

    def test_short_names(self):
        """A short form of three letters or more is the name; other words are not."""
        self.assertEqual(parsed_query("Does Mel sing?", Speakers(["Melanie"])).asked, ("Melanie",))
        self.assertEqual(parsed_query("Tell me a melody", Speakers(["Melanie"])).asked, ())

    def test_dates(self):
        """Months, days and years are read; `may` the verb is no month."""
        query = parsed_query("What happened on 8 May, 2023?", Speakers())
        self.assertEqual((query.months, query.days, query.years), ((5,), (8,), (2023,)))
        self.assertEqual(parsed_query("What may Alice buy?", Speakers(["Alice"])).months, ())
        self.assertEqual(parsed_query("How was June?", Speakers()).months, (6,))

    def test_wants(self):
        """The kind of answer wanted is read from the question word."""
        self.assertIn("time", parsed_query("When did it rain?", Speakers()).wants)
        self.assertIn("number", parsed_query("How many ravens?", Speakers()).wants)
        self.assertIn("place", parsed_query("Where is the mill?", Speakers()).wants)


class TestCrowd(unittest.TestCase):
    def setUp(self):
        self.index = RecallIndex(":memory:")
        self.addCleanup(self.index.close)

    def in_crowd(self, viewer=None):
        return self.index._view(1).seen_by(viewer).in_crowd

    def test_talk_without_a_thread_is_a_crowd(self):
        """Lines that have nothing to do with the next make a crowd; a few of them do not yet."""
        self.index.add("aria", chatter(50))
        self.assertFalse(self.in_crowd())
        self.index.add("aria", chatter(500))
        self.assertTrue(self.in_crowd())

    def test_talk_of_one_thing_after_the_other_is_none(self):
        """Where the next turn is about the same there is no crowd, however many talk."""
        self.index.add("aria", threads())
        self.assertFalse(self.in_crowd())

    def test_what_is_hidden_does_not_make_a_crowd(self):
        """Turns that the asker may not see have no say in it."""
        hidden = [replace(turn, id=f"h{turn.id}", audience=STAFF) for turn in chatter(500)]
        self.index.add("aria", [*threads(), *hidden])
        self.assertTrue(self.in_crowd())
        self.assertFalse(self.in_crowd("public"))

    def test_added_words_are_known_at_once(self):
        """In a crowd, what is added after a search is found by the next one."""
        self.index.add("aria", chatter(500))
        self.index.search("aria", "Who keeps the lighthouse?")
        said = Turn("needle", "Ann", "My aunt Odile tends the lighthouse.", 42_000.5)
        self.index.add("aria", [said])
        self.assertEqual(
            self.index.search("aria", "Who keeps the lighthouse?", 1)[0].turn_id, "needle"
        )


def threads():
    """Talk of one thing after the other."""
    return [
        Turn(f"w{n}", "ABCD"[n % 4], f"{WORDS[n // 30]} {WORDS[n // 30]} {WORDS[n % 7]}", 60.0 * n)
        for n in range(30 * len(WORDS))
    ]


class OneMeaning:
    """An embedder to which all words mean the same."""

    dims = 2

    def embed(self, texts):
        return np.ones((len(texts), self.dims), dtype=np.float32)


class TestVocabulary(unittest.TestCase):
    def test_equally_near_words_come_in_one_order(self):
        """Words that are equally near come in the same order however they were added."""
        first, second = Vocabulary(OneMeaning()), Vocabulary(OneMeaning())
        first.numbers(["raven", "ale"])
        second.numbers(["ale"])
        vector = np.ones(2, dtype=np.float32)
        list(second.near("x", vector))
        second.numbers(["raven"])
        self.assertEqual([word for word, _ in first.near("x", vector)], ["ale", "raven"])
        self.assertEqual(list(first.near("x", vector)), list(second.near("x", vector)))


class TestNearness(unittest.TestCase):
    def test_nearness(self):
        """A turn is as near as its nearest word; one without words is near to nothing."""
        index, embedder = RecallIndex(":memory:"), default_embedder()
        self.addCleanup(index.close)
        said = ["A raven and a candle.", "", "The and of.", "Bread."]
        index.add("aria", [Turn(f"t{n}", "Ann", text, 60.0 * n) for n, text in enumerate(said)])
        vectors = embedder.embed(["raven", "bread"])
        turns = index._view(1).seen_by(None)
        near = turns.nearness(np.array([3, 0, 1, 2]), vectors)
        self.assertEqual(near.shape, (2, 4))
        np.testing.assert_allclose([near[0, 1], near[1, 0]], 1.0, atol=0.02)
        self.assertTrue(0 <= near[1, 1] < 0.9)
        np.testing.assert_array_equal(near[:, 2:], 0)
        self.assertEqual(turns.nearness(np.array([1]), vectors).tolist(), [[0.0], [0.0]])


class TestWeights(unittest.TestCase):
    def test_weights_fit_the_features(self):
        """The shipped weights name the features that are computed; a crowd's, some of them."""
        for count, crowd in ((3, False), (300, True)):
            index = RecallIndex(":memory:")
            self.addCleanup(index.close)
            index.add("aria", chatter(count))
            turns = index._view(1).seen_by(None)
            self.assertEqual(turns.in_crowd, crowd)
            found = Reader(
                turns, parsed_query("warm ale", Speakers()), default_embedder()
            ).candidates()
            unknown = set(default_model(crowd).names) - set(found.features)
            self.assertEqual(unknown, set())
            unused = set(found.features) - set(default_model(crowd).names)
            self.assertEqual(bool(unused), crowd)
