"""A script and a character without a game: the ports of `evennia_ai.protocol` on plain lists."""

import time
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy
from twisted.internet.defer import fail

from evennia_ai.errors import StoreError
from evennia_ai.history.messages import new_id, utc_iso
from evennia_ai.rag_memory.journal_entry import JournalEntry
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


class MemoryJournal:
    """A journal on a list."""

    def __init__(self, now=time.time):
        self.entries = []
        self.consolidated_ids = set()
        self._now = now

    def add(self, content, **fields):
        """Append an entry with the defaults of a journal."""
        raw = {"id": new_id("j"), "timestamp": utc_iso(self._now()), "content": content}
        self.entries.append(JournalEntry.from_dict({**raw, **fields}))
        return self.entries[-1]

    def recent(self, limit=50):
        """The newest entries, oldest first."""
        return tuple(self.entries[-limit:]) if limit else ()

    def get(self, entry_id):
        """One entry by its id."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    def unconsolidated(self, limit=200):
        """Oldest entries not marked consolidated, without syntheses."""
        waiting = [
            entry
            for entry in self.entries
            if entry.id not in self.consolidated_ids and entry.source_type != "compaction"
        ]
        return tuple(waiting[:limit])

    def mark_consolidated(self, entry_ids):
        """Mark entries; returns how many were new."""
        new = set(entry_ids) - self.consolidated_ids
        self.consolidated_ids |= new
        return len(new)

    def all(self):
        """Every entry, newest first."""
        yield from reversed(list(self.entries))

    def count(self):
        """How many entries there are."""
        return len(self.entries)

    def change(self, **fields):
        """Change the first entry, as somebody does by hand."""
        self.entries[0] = replace(self.entries[0], **fields)

    def remove(self, entry_id):
        """Forget an entry, as a privacy command does."""
        self.entries = [entry for entry in self.entries if entry.id != entry_id]


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
    return SimpleNamespace(key="Aria", journal=MemoryJournal(now), entities=entities)
