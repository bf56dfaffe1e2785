"""A script and a character without a game: the ports of `evennia_ai.protocol` on plain lists."""

import time
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy
from twisted.internet.defer import fail

from evennia_ai.errors import StoreError
from evennia_ai.rag_memory.journal import JOURNAL, JournalHandler
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.testing import FakeAssistant, MemorySemanticStore, MemoryStore


class CountingStore(MemoryStore):
    """Counts the values of one category that are read."""

    def __init__(self, category):
        super().__init__()
        self.counted, self.reads = category, 0

    def get(self, key, category=None, default=None):
        """The value, as `MemoryStore` gives it."""
        self.reads += category == self.counted
        return super().get(key, category, default)


class HashingEmbedder:
    """Words hashed into a fixed number of buckets; texts that share words are near."""

    def __init__(self, dims=64):
        self.dims = dims

    def embed(self, texts):
        """A unit vector a text, as a float32 array of shape (n, dims)."""
        rows = numpy.zeros((len(texts), self.dims), dtype=numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.strip(".,?!").encode()) % self.dims] += 1.0
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        return rows / numpy.where(lengths == 0, 1, lengths)


class ChangingJournal(JournalHandler):
    """The real journal on a store in memory, which changes as by hand."""

    @property
    def entries(self):
        """The entries of all pages; of one page oldest first."""
        return tuple(self.all())

    def change(self, **fields):
        """Change the first entry."""
        first = self.entries[0]
        self.rewrite(lambda e: replace(e, **fields) if e == first else e, self.pages())

    def forget_marks(self):
        """Let all that stands on the newest page wait again."""
        self._newest.set(JOURNAL, replace(self._page(), consolidated=()))


class MemorySemantic(MemorySemanticStore):
    """Of one assistant; `broken` makes every call fail."""

    def __init__(self):
        super().__init__()
        self.broken = False
        self.before_add = lambda: None

    @property
    def rows(self):
        """Its turns by id."""
        return self.memories.setdefault("aria", {})

    def add(self, scope, turns):
        """Store turns."""
        if self.broken:
            return fail(StoreError("The memory store is away."))
        self.before_add()
        return super().add(scope, turns)

    def ids(self, scope):
        """The ids of all turns."""
        return fail(StoreError("The memory store is away.")) if self.broken else super().ids(scope)


def script(semantic=None, scope="aria"):
    """An assistant with this long-term memory."""
    assistant = FakeAssistant(memories=semantic or MemorySemantic())
    assistant.scope = scope
    return assistant


def character(profiles=(), now=time.time):
    """A character with an empty journal and the given profiles."""
    entities = EntityHandler(MemoryStore())
    entities.put({profile.id: profile for profile in profiles})
    return SimpleNamespace(
        key="Aria", journal=ChangingJournal(MemoryStore(), now), entities=entities
    )
