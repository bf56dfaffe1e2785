"""The recall index in scopes larger than what is looked at closely, and its lexicon."""

import random
import unittest

from evennia_ai.core.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.features import CANDIDATES
from evennia_ai.recall.kinds import members, members_by_kind
from evennia_ai.recall.query import parsed_query
from evennia_ai.recall.ranking import default_model
from evennia_ai.recall.text import stem

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
        self.index._forget_views()
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


class TestQuery(unittest.TestCase):
    def test_who_does_comes_first(self):
        """Of two names the one after an auxiliary is the doer."""
        query = parsed_query("What book for Bram did Alice buy?", ["Bram", "Alice", "Cora"])
        self.assertEqual(query.asked, ("Alice", "Bram"))
        self.assertEqual(query.content, ("book", "buy"))
        self.assertFalse(query.together)

    def test_short_names(self):
        """A short form of three letters or more is the name; other words are not."""
        self.assertEqual(parsed_query("Does Mel sing?", ["Melanie"]).asked, ("Melanie",))
        self.assertEqual(parsed_query("Tell me a melody", ["Melanie"]).asked, ())

    def test_dates(self):
        """Months, days and years are read; `may` the verb is no month."""
        query = parsed_query("What happened on 8 May, 2023?", [])
        self.assertEqual((query.months, query.days, query.years), ((5,), (8,), (2023,)))
        self.assertEqual(parsed_query("What may Alice buy?", ["Alice"]).months, ())
        self.assertEqual(parsed_query("How was June?", []).months, (6,))

    def test_wants(self):
        """The kind of answer wanted is read from the question word."""
        self.assertIn("time", parsed_query("When did it rain?", []).wants)
        self.assertIn("number", parsed_query("How many ravens?", []).wants)
        self.assertIn("place", parsed_query("Where is the mill?", []).wants)


class TestWeights(unittest.TestCase):
    def test_weights_fit_the_features(self):
        """The shipped weights name exactly the features that are computed."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        index.add("aria", chatter(3))
        from evennia_ai.embedding import default_embedder
        from evennia_ai.recall.features import Reader

        turns = index._view(1).seen_by(None)
        found = Reader(turns, parsed_query("warm ale", []), default_embedder()).candidates()
        self.assertEqual(sorted(found.features), sorted(default_model().names))
