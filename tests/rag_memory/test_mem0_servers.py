"""Long-term memory in a database server: the same tests as embedded, and what is new there.

`TEST_QDRANT_URL` names a Qdrant server for the tests; there is no package that brings one.
"""

import os
import unittest
import uuid

from tests import postgres
from tests.rag_memory import test_mem0_backend as embedded
from tests.store_case import StoreCase, item
from tests.waiting import wait_for

QDRANT = os.environ.get("TEST_QDRANT_URL", "")


class OnServer(StoreCase):
    """A collection of its own for each test; `vector_store` is that part of the configuration."""

    def setUp(self):
        self.collection = f"test_{uuid.uuid4().hex}"
        super().setUp()

    def opened(self, **kwargs):
        kwargs.setdefault("config", {"vector_store": self.vector_store()})
        return super().opened(**kwargs)


class ServerTests:
    """What is new in a server."""

    def test_found_among_many_of_others(self):
        """Memories of an assistant are found however many others have nearer ones."""
        others = [item(f"x{n}", "The brown dog sleeps by the fire.") for n in range(300)]
        self.add(*others, scope="borg")
        own = [item(f"a{n}", f"The grey dog sleeps, {n} nights long.") for n in range(5)]
        self.add(*own)
        self.assertEqual(len(self.search("the brown dog sleeps by the fire", limit=5)), 5)

    def test_odd_texts(self):
        """A NUL and a lone surrogate, which databases refuse, are replaced."""
        self.add(item("odd", "a raven \x00 or \ud800 two"))
        [text] = self.texts("raven")
        self.assertEqual(text, "a raven   or ? two")

    def test_status_counts(self):
        """The number of memories, over all assistants."""
        self.add(item("a", "a raven"))
        self.add(item("b", "a tortoise"), scope="borg")
        status = wait_for(self.store.status(), 60)
        self.assertEqual((status["ok"], status["count"]), (True, 2))

    def test_deleted(self):
        """What is deleted is in no search, and not in Mem0's history of changes."""
        self.add(item("a", "a raven called Pepper"), item("b", "a tortoise"))
        found = wait_for(self.store.sources("aria"), 60)
        self.assertEqual(wait_for(self.store.delete("aria", [found["a"]]), 60), 1)
        self.assertNotIn("a raven called Pepper", self.texts("raven"))
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        self.assertFalse([path for path in files if b"Pepper" in path.read_bytes()])


class Pgvector:
    @classmethod
    def setUpClass(cls):
        if why := postgres.why_no_vector():
            raise unittest.SkipTest(why)
        super().setUpClass()

    def vector_store(self):
        config = {"connection_string": postgres.shared().url(), "collection_name": self.collection}
        return {"provider": "pgvector", "config": config}


class Qdrant:
    @classmethod
    def setUpClass(cls):
        if not QDRANT:
            raise unittest.SkipTest("no Qdrant server: set `TEST_QDRANT_URL` to one")
        super().setUpClass()

    def vector_store(self):
        config = {"url": QDRANT, "collection_name": self.collection}
        return {"provider": "qdrant", "config": config}


class TestPgvector(ServerTests, Pgvector, OnServer):
    def test_searches_go_on_until_enough_is_found(self):
        """An index scan does not end at the nearest 40, which may all be another assistant's."""
        self.add(item("a", "a raven"))
        pool = self.store._engine._memory.vector_store.connection_pool
        with pool.connection() as connection:
            [found] = connection.execute("SHOW hnsw.iterative_scan").fetchone()
        self.assertEqual(found, "strict_order")


class TestPgvectorAddAndSearch(Pgvector, OnServer, embedded.TestAddAndSearch):
    # PostgreSQL also finds a text by its words, with which an embedded store does nothing.
    test_text_without_known_words_is_near_to_nothing = None


class TestPgvectorAudience(Pgvector, OnServer, embedded.TestAudience):
    pass


class TestQdrant(ServerTests, Qdrant, OnServer):
    pass


class TestQdrantAddAndSearch(Qdrant, OnServer, embedded.TestAddAndSearch):
    pass


class TestQdrantAudience(Qdrant, OnServer, embedded.TestAudience):
    pass


del OnServer, ServerTests
