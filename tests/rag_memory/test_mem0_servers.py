"""Long-term memory in a database server: what every back end must do, and what is new there.

`TEST_QDRANT_URL` names a Qdrant server for the tests; there is no package that brings one.
"""

import os
import unittest
import uuid
from pathlib import Path

from django.test import override_settings

from evennia_ai.mind.mind import MEM0_BACKEND
from tests import postgres
from tests.rag_memory.test_memory_backends import Contract
from tests.store_case import item

QDRANT = os.environ.get("TEST_QDRANT_URL", "")


class OnServer(Contract):
    """A collection of its own for each test; `server` is that part of the configuration."""

    path = MEM0_BACKEND

    def setUp(self):
        config = {**self.server(), "collection_name": f"test_{uuid.uuid4().hex}"}
        store = {"provider": self.provider, "config": config}
        self.enterContext(override_settings(EVENNIA_AI_MEM0_CONFIG={"vector_store": store}))
        super().setUp()

    def test_found_among_many_of_others(self):
        """Memories of an assistant are found however many others have nearer ones."""
        others = [item(f"x{n}", "The brown dog sleeps by the fire.") for n in range(300)]
        self.add(*others, scope="borg")
        self.add(*(item(f"a{n}", f"The grey dog sleeps, {n} nights long.") for n in range(5)))
        self.assertEqual(len(self.found("the brown dog sleeps by the fire", limit=5)), 5)

    def test_odd_texts(self):
        """A NUL and a lone surrogate, which databases refuse, are replaced."""
        self.add(item("odd", "a raven \x00 or \ud800 two"))
        self.assertEqual(self.found("raven"), ["odd"])

    def test_no_file_holds_a_text(self):
        """Mem0 keeps no copy beside the server."""
        self.add(item("a", "a raven called Pepper"))
        files = [path for path in Path(self.folder).rglob("*") if path.is_file()]
        self.assertFalse([path for path in files if b"Pepper" in path.read_bytes()])


class TestPgvector(OnServer, unittest.TestCase):
    provider = "pgvector"

    @classmethod
    def setUpClass(cls):
        if why := postgres.why_no_vector():
            raise unittest.SkipTest(why)
        super().setUpClass()

    def server(self):
        """The address as the docs write it: a search with filters ends when enough is found."""
        url = postgres.shared().url()
        mark = "&" if "?" in url else "?"
        return {"connection_string": f"{url}{mark}options=-c%20hnsw.iterative_scan%3Dstrict_order"}


class TestQdrant(OnServer, unittest.TestCase):
    provider = "qdrant"

    @classmethod
    def setUpClass(cls):
        if not QDRANT:
            raise unittest.SkipTest("no Qdrant server: set `TEST_QDRANT_URL` to one")
        super().setUpClass()

    def server(self):
        return {"url": QDRANT}


del OnServer, Contract
