"""Of what was said twice the newest counts; the tavern benchmark is what it says it is."""

import random
import unittest
from datetime import UTC, datetime

import numpy as np

from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.query import parsed_query
from evennia_ai.recall.ranking import CROWD_MARGIN, LOOKED_AT, MARGIN, Candidates, latest_first

DAY = 86_400.0
SPEAKERS = ["Alice", "Bram"]


def day(month, number):
    """Noon of a day in 2023, in seconds."""
    return datetime(2023, month, number, 12, tzinfo=UTC).timestamp()


def babble(count):
    """Lines that have nothing to do with the next, half a minute apart."""
    rng = random.Random(8)
    things = ["ale", "bread", "rain", "carts", "dice", "boots", "geese", "fiddle", "candle"]
    return [
        Turn(
            f"b{n}",
            rng.choice(["Alice", "Bram", "Cora", "Dora"]),
            f"{rng.choice(things).title()} and {rng.choice(things)}, as ever.",
            30.0 * n,
        )
        for n in range(count)
    ]


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

    def test_newest_takes_the_best_place(self):
        """Of turns that say the same the newest comes first; all others keep their places."""
        self.assertEqual(self.ordered("Where does Alice live?"), [1, 0, 2, 3, 4])

    def test_the_past_is_left_alone(self):
        """A question about what was, or on a date, changes no order."""
        for query in (
            "Where did Alice live?",
            "Where does Alice go in June?",
            "Alice's first home",
        ):
            self.assertEqual(self.ordered(query), [0, 1, 2, 3, 4], query)

    def test_a_much_worse_turn_stays_down(self):
        """A newer turn that answers far worse does not say the same."""
        scores = [5.0, 5.0 - MARGIN - 0.1, 1.0, 0.5, 0.0]
        self.assertEqual(self.ordered("Where does Alice live?", scores), [0, 1, 2, 3, 4])

    def test_sharing_few_words_is_not_saying_the_same(self):
        """Turns that share one word of three with the query are not taken for the same."""
        self.assertEqual(self.ordered("Where does Alice sell lamp oil?"), [0, 1, 2, 3, 4])
        self.matched[:2] = 3, 3
        self.assertEqual(self.ordered("Where does Alice sell lamp oil?"), [1, 0, 2, 3, 4])

    def test_sharing_a_name_is_not_saying_the_same(self):
        """Turns that share nothing but a name with the query keep their order."""
        self.assertEqual(self.ordered("Who is Odile?"), [0, 1, 2, 3, 4])
        self.assertEqual(self.ordered("Who is the mayor?"), [1, 0, 2, 3, 4])

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

    def test_one_talk_keeps_its_order(self):
        """Turns of one talk are not told apart by seconds."""
        self.times[1] = 60.0
        self.assertEqual(self.ordered("Where does Alice live?"), [0, 1, 2, 3, 4])


class TestLatestFirstInACrowd(unittest.TestCase):
    """What `alike` says counts with the words in common."""

    def ordered(self, query, matched, cosine, scores=(3.0, 2.0), tells=(True, True)):
        asked = parsed_query(query, SPEAKERS)
        found = candidates(asked, matched, tells, [0.0, 9 * DAY], (2.0, 1.0, 1.0))
        alike = np.array([[1.0, cosine], [cosine, 1.0]], dtype=np.float32)
        return latest_first(np.arange(2), np.array(scores), found, asked, alike).tolist()

    def test_words_in_common_and_likeness_add_up(self):
        """Half of the words by rarity, or less of them and more likeness, make the same news."""
        query = "What does Alice like to drink at breakfast?"
        self.assertEqual(parsed_query(query, SPEAKERS).content, ("drink", "breakfast"))
        self.assertEqual(self.ordered(query, [0b11, 0b01], 0.0), [1, 0])
        self.assertEqual(self.ordered(query, [0b11, 0b10], 0.0), [0, 1])
        self.assertEqual(self.ordered(query, [0b11, 0b10], 0.2), [1, 0])
        self.assertEqual(self.ordered(query, [0, 0], 0.4), [0, 1])
        self.assertEqual(self.ordered(query, [0, 0], 0.6), [1, 0])

    def test_names_must_stand_in_both(self):
        """A turn that lacks a name of the query says nothing of the one it names."""
        query = "Where does old Tomas live?"
        self.assertEqual(self.ordered(query, [0b111, 0b101], 0.9), [0, 1])
        self.assertEqual(self.ordered(query, [0b111, 0b110], 0.9), [1, 0])
        self.assertEqual(self.ordered("Who is Tomas?", [1, 1], 0.9), [0, 1])

    def test_what_tells_nothing_or_answers_far_worse_stays(self):
        """A question, or a turn of a much lower score, never takes a better place."""
        query = "What does Alice drink?"
        self.assertEqual(self.ordered(query, [1, 1], 0.9, tells=(True, False)), [0, 1])
        low = 3.0 - CROWD_MARGIN - 0.1
        self.assertEqual(self.ordered(query, [1, 1], 0.9, scores=(3.0, low)), [0, 1])

    def test_the_past_is_left_alone_but_not_where_something_was_put(self):
        """Where Alice hid a thing asks where it is; where she lived does not."""
        self.assertEqual(self.ordered("Where did Alice live?", [1, 1], 0.9), [0, 1])
        self.assertEqual(self.ordered("Where did Alice hide it?", [1, 1], 0.9), [1, 0])
        self.assertEqual(self.ordered("Who employs Alice?", [1, 1], 0.9), [1, 0])


class TestSearch(unittest.TestCase):
    def setUp(self):
        self.index = RecallIndex(":memory:")
        self.addCleanup(self.index.close)

    def test_the_newest_of_two_homes(self):
        """Told anew where somebody lives, a search finds the new home first, scores in order."""
        self.index.add(
            "aria",
            [
                Turn("old", "Alice", "I live in Dunmere, by the mill.", 0.0),
                Turn("talk", "Bram", "The stew is burnt again.", 60.0),
                Turn("new", "Alice", "I live in Oakhollow now.", 20 * DAY),
            ],
        )
        hits = self.index.search("aria", "Where does Alice live?")
        self.assertEqual([hit.turn_id for hit in hits][:2], ["new", "old"])
        self.assertEqual(hits, sorted(hits, key=lambda hit: -hit.score))

    def test_the_newest_of_two_homes_in_a_crowd(self):
        """Among many who talk at once the newest telling comes first too, in whatever words."""
        self.index.add("aria", babble(300))
        self.index.add(
            "aria",
            [
                Turn("old", "Bram", "Alice has a house to live in, out in Oakhollow.", 30.5),
                Turn("new", "Cora", "Alice lives over in Dunmere.", 9_000.5),
            ],
        )
        query = "Where does Alice live?"
        hits = self.index.search("aria", query)
        self.assertEqual([hit.turn_id for hit in hits][:2], ["new", "old"])
        asked = [Turn(f"q{n}", "Dora", f"{query} Anyone?", 1e4 + 1900.0 * n) for n in range(12)]
        self.index.add("aria", asked)
        found = [hit.turn_id for hit in self.index.search("aria", query, 60)]
        self.assertLess(found.index("new"), found.index("old"))

    def test_dates(self):
        """A day the query names draws the turns said on it, in whatever year it leaves open."""
        self.index.add(
            "aria",
            [
                Turn(f"m{month}", "Alice", "The ferry was late.", day(month, 8))
                for month in (3, 5, 9)
            ],
        )
        for query in ("Was the ferry late on 8 May?", "Was the ferry late on 8 May, 2023?"):
            self.assertEqual(self.index.search("aria", query)[0].turn_id, "m5", query)
