"""The recall index in scopes larger than what is looked at closely, and its lexicon."""

import random
import unittest
from dataclasses import replace

from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.query import parsed_query
from evennia_ai.recall.ranking import CANDIDATES, Reader, default_model

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
            found = Reader(view, parsed_query("warm ale"), index._lexicon).candidates()
            self.assertLessEqual(set(default_model(crowd).weights), set(found.features))


def threads():
    """Talk of one thing after the other."""
    return [
        Turn(f"w{n}", "ABCD"[n % 4], f"{WORDS[n // 30]} {WORDS[n // 30]} {WORDS[n % 7]}", 60.0 * n)
        for n in range(30 * len(WORDS))
    ]
