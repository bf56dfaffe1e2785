"""A Mem0 store in a folder of its own, and what tests of it share."""

import shutil
import tempfile
import unittest
from pathlib import Path

from evennia_ai.rag_memory import Mem0Backend
from tests.stand_ins import HashingEmbedder
from tests.waiting import wait_for


def item(source_id, text, audience="public", **metadata):
    """One thing to remember."""
    return {"source_id": source_id, "text": text, "metadata": {"audience": audience, **metadata}}


class StoreCase(unittest.TestCase):
    """A folder of its own for each test, and every store closed at the end."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="evennia-ai-memory-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = self.opened()

    def opened(self, **kwargs):
        kwargs.setdefault("embedder", HashingEmbedder())
        store = Mem0Backend(self.folder, **kwargs)
        self.addCleanup(lambda: wait_for(store.close(), 60))
        return store

    def reopened(self, **kwargs):
        wait_for(self.store.close(), 60)
        self.store = self.opened(**kwargs)
        return self.store

    def add(self, *items, scope="aria"):
        return wait_for(self.store.add(scope, items), 60)

    def search(self, query, scope="aria", **kwargs):
        return wait_for(self.store.search(scope, query, **kwargs), 60)

    def texts(self, query, **kwargs):
        return [found["text"] for found in self.search(query, **kwargs)]
