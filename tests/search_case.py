"""An assistant with a real index, and what tests of searching share."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.recall import Hit, RecallIndex
from evennia_ai.recall.values import Query
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

QUESTION = "Aria, where is the forge of the smith?"
FACT = "If you need a blade, the smith has his forge down at the old harbour, next to the ropewalk."
MOVED = "The smith has moved his forge up to the north gate, by the way."
ECHO = "The smith's forge? At the old harbour, next to the ropewalk, as Bram said."


def hit(hit_id, text, speaker="Bram", at=None, kind="message", score=0.5):
    """A search result; ids made of a letter and a number tell the time."""
    at = f"2026-01-{int(hit_id[1:]):02d}" if at is None else at
    return Hit(hit_id, score, speaker, text, at, kind)


def told(line, hit_id="m1"):
    """A memory of ``Speaker: text``, or of a text that nobody said."""
    who, colon, text = line.partition(": ")
    return Hit(hit_id, 0.0, who if colon else "", text if colon else line, None)


def ids(hits):
    """Ids of results."""
    return [each.turn_id for each in hits]


class CountingIndex(RecallIndex):
    """A real index that keeps how many turns came at a time, and that can be broken."""

    def __init__(self):
        super().__init__(":memory:")
        self.sizes, self.broken = [], False

    def add(self, scope, turns):
        """As `RecallIndex.add`."""
        self._work()
        self.sizes.append(len(turns))
        return super().add(scope, turns)

    def remove(self, scope, ids):
        """As `RecallIndex.remove`."""
        self._work()
        return super().remove(scope, ids)

    def _work(self):
        if self.broken:
            raise OSError("database is locked")


class SearchTest(unittest.TestCase):
    """An assistant with a real index."""

    def setUp(self):
        self.world = MemoryWorld()
        self.index = self.world.index = CountingIndex()
        self.world.restart()

    def say(self, speaker, *texts):
        """Messages of somebody, an hour apart, into the history; their ids."""
        stored = []
        for text in texts:
            self.world.later(3600)
            role = "assistant" if speaker == "Aria" else "user"
            said = Message(role, "", channel="say", speaker=Speaker(speaker, "o1"))
            stored += self.world.script.history.append([replace(said, content=text)])
        return [message.id for message in stored]

    def search(self, query, limit=12, audience="public", **options):
        """What is found."""
        return wait_for(self.world.script.memory.search(Query(query, limit, audience, **options)))
