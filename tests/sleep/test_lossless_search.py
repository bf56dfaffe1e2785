"""The search of history and archive: what was really said is not pushed out by summaries."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.ranking import SUMMARIES, few_summaries
from evennia_ai.recall import Hit, RecallIndex
from evennia_ai.recall.values import Query
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for


def hit(hit_id, kind="message"):
    """A result."""
    return Hit(hit_id, 0.5, "", hit_id, None, kind)


class TestUncrowded(unittest.TestCase):
    """Summaries among the results."""

    def test_few_of_each_kind(self):
        """Of summaries and experiences the first few stay, of all else everything."""
        many = [hit(f"s{n}", "experience") for n in range(9)]
        many += [hit(f"compact_x{n}", "summary") for n in range(9)]
        many += [hit(f"m{n}") for n in range(9)]
        kept = few_summaries(many, Query(""))
        self.assertEqual([h.turn_id for h in kept[:SUMMARIES]], ["s0", "s1", "s2"])
        self.assertEqual(len(kept), 2 * SUMMARIES + 9)

    def test_each_summary_once(self):
        """A synthesis in the journal is left out where its summary is there as an experience."""
        kept = few_summaries(
            [hit("compact_7", "summary"), hit("m1"), hit("s7", "experience")], Query("")
        )
        self.assertEqual([h.turn_id for h in kept], ["m1", "s7"])


class TestVeryWords(unittest.TestCase):
    """Who types the words of a line finds it."""

    def test_the_line_with_every_word_comes_first(self):
        """Also where the speaker's name is one of them, amid journal entries on other things."""
        world = MemoryWorld()
        world.index = RecallIndex(":memory:")
        world.restart()
        said = Message("user", "", channel="say", speaker=Speaker(key="Edith", id="o1.e"))
        lines = [
            "You'll find my bookshop halfway down Barrel Street.",
            "The inn is on Candle Street.",
        ]
        stored = world.script.history.append([replace(said, content=line) for line in lines])
        for number in range(60):
            world.body.journal.add(f"Edith has {number} barrels in a street.")
            world.script.history.append([replace(said, content="This stew needs salt.")] * 10)
        found = wait_for(
            world.script.memory.search(Query("Edith bookshop Barrel Street", 20, "staff"))
        )
        self.assertEqual(found[0].turn_id, stored[0].id)
