"""A Mem0 store in a folder of its own, and what tests of it share."""

import shutil
import tempfile
import unittest
from pathlib import Path

from evennia_ai.rag_memory import Mem0Backend
from evennia_ai.recall.values import Turn
from tests.stand_ins import HashingEmbedder
from tests.waiting import wait_for


def item(turn_id, text, audience="public"):
    """One thing to remember."""
    return Turn(turn_id, "", text, "2026-01-02T03:04:05Z", None, audience, "journal")


class StoreCase(unittest.TestCase):
    """A folder of its own for each test, and every store closed at the end."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="evennia-ai-memory-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = self.opened()

    def opened(self, **kwargs):
        kwargs.setdefault("embedder", HashingEmbedder())
        store = Mem0Backend(self.folder, **kwargs)
        self.addCleanup(lambda: wait_for(store.close()))
        return store

    def reopened(self, **kwargs):
        wait_for(self.store.close())
        self.store = self.opened(**kwargs)
        return self.store

    def add(self, *items, scope="aria"):
        wait_for(self.store.add(scope, items))

    def ids(self, scope="aria"):
        return wait_for(self.store.ids(scope))

    def delete(self, *ids, scope="aria"):
        return wait_for(self.store.delete(scope, ids))

    def status(self):
        return wait_for(self.store.status())

    def texts(self, query, scope="aria", **kwargs):
        return [hit.text for hit in wait_for(self.store.search(scope, query, **kwargs), 60)]
