"""The search of history and archive: what was really said is not pushed out by summaries."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.recall import RecallIndex
from evennia_ai.recall.values import Query
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for


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
