"""What every memory back end must do, and that a setting is enough to use another one.

`TEST_QDRANT_URL` names a Qdrant server for the tests; there is no package that brings one.
"""

import os
import unittest
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.test import override_settings

from evennia_ai import services
from evennia_ai.errors import StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.mind.mind import MEM0_BACKEND
from evennia_ai.recall.values import Query
from tests import postgres
from tests.base import AssistantTest
from tests.rag_memory.tiny_backend import TinyBackend
from tests.store_case import item
from tests.waiting import wait_for

TINY = "tests.rag_memory.tiny_backend.TinyBackend"
WHISPERED = private(["o1.a"])


class Contract:
    """The contract of `MemoryBackend`; a back end's test names its dotted path."""

    path: str

    def setUp(self):
        self.folder = self.enterContext(TemporaryDirectory(ignore_cleanup_errors=True))
        options = {"EVENNIA_AI_MEMORY_BACKEND": self.path, "EVENNIA_AI_DATA_DIR": self.folder}
        self.enterContext(override_settings(**options))
        self.backend = services.memory_backend()
        self.addCleanup(lambda: self.done(self.backend.close()))

    def done(self, deferred):
        return wait_for(deferred)

    def add(self, *items, scope="aria"):
        self.done(self.backend.add(scope, items))

    def found(self, query, scope="aria", **options):
        return [hit.turn_id for hit in self.done(self.backend.search(scope, query, **options))]

    def test_finds_what_was_stored(self):
        """The memory with most of the query comes first, as it was told."""
        told = item("j1", "Alice keeps bees behind the mill", WHISPERED)
        self.add(told, item("j2", "The cellar door is locked at night"))
        best = self.done(self.backend.search("aria", "who keeps bees", audience=STAFF))[0]
        self.assertEqual((best.turn_id, best.kind, best.text), ("j1", "memory", told.text))
        self.assertEqual((best.at, best.audience), (told.at, WHISPERED))
        self.assertGreater(best.score, 0)

    def test_each_id_once(self):
        """What is stored already stays; another text takes the place of the old one."""
        self.add(item("j1", "red door"), item("j2", "blue door"))
        self.add(item("j2", "blue door"), item("j1", "green gate"))
        self.assertEqual(self.done(self.backend.ids("aria")), {"j1", "j2"})
        hits = self.done(self.backend.search("aria", "red door, blue door, green gate"))
        self.assertCountEqual([hit.text for hit in hits], ["blue door", "green gate"])

    def test_scopes_are_apart(self):
        """No assistant finds, lists or deletes the memories of another; spaces are no trap."""
        self.add(item("j1", "the silver key"), scope="a b")
        self.add(item("j1", "the golden key"), scope="a%20b")
        self.assertEqual(self.found("silver key", scope="ab"), [])
        self.assertEqual(self.done(self.backend.delete("ab", ["j1"])), 0)
        self.assertEqual(self.done(self.backend.delete("a b", ["j1"])), 1)
        self.assertEqual(self.done(self.backend.ids("a%20b")), {"j1"})

    def test_audience_before_limit(self):
        """Only what the audience may know is found, as many as were asked for."""
        self.add(*(item(f"s{n}", "silver silver key", WHISPERED) for n in range(5)))
        self.add(item("j1", "a silver spoon of mine"))
        self.assertEqual(self.found("silver key", limit=1), ["j1"])
        for nobody in (None, "public", "", "alice", "private:"):
            self.assertEqual(self.found("silver", audience=nobody), ["j1"])
        for audience in (WHISPERED, STAFF):
            self.assertEqual(len(self.found("silver", audience=audience)), 6)
        self.assertEqual(self.found("silver", audience=private(["o1.a", "o2.b"])), ["j1"])

    def test_nothing_asked(self):
        """An empty query or no room finds nothing."""
        self.add(item("j1", "the silver key"))
        self.assertEqual(self.found("  "), [])
        self.assertEqual(self.found("silver", limit=0), [])

    def test_deletes(self):
        """What is deleted is gone; unknown ids do not count."""
        self.add(item("j1", "red door"), item("j2", "blue door"))
        self.assertEqual(self.done(self.backend.delete("aria", ["j1", "unknown"])), 1)
        self.assertEqual(self.found("red door blue"), ["j2"])
        self.assertEqual(self.done(self.backend.ids("aria")), {"j2"})

    def test_refuses(self):
        """A turn without a text is refused in words."""
        with self.assertRaises(StoreError):
            self.add(item("j1", ""))

    def test_status(self):
        """It says how it is."""
        self.add(item("j1", "red door"))
        status = self.done(self.backend.status())
        self.assertTrue(status["ok"])
        self.assertLessEqual({"detail", "path"}, set(status))


class TestTinyBackend(Contract, unittest.TestCase):
    path = TINY


class TestMem0Backend(Contract, unittest.TestCase):
    path = MEM0_BACKEND


class TestBySetting(AssistantTest):
    def use(self, path):
        """Have the back end made from the settings, as in a game."""
        self.enterContext(override_settings(EVENNIA_AI_MEMORY_BACKEND=path))
        services.use(memories=services.memory_backend())

    def test_consolidates_and_searches(self):
        """What the journal holds is dreamt into it and found through it."""
        self.use(TINY)
        entry = self.aria.journal.add("Elin keeps bees behind the mill.")
        wait_for(self.script._run_sleep_tick())
        self.assertIsInstance(self.script.mind.memories, TinyBackend)
        self.assertEqual(wait_for(self.script.mind.memories.ids(self.script.scope)), {entry.id})
        wait_for(self.script.memory.forget([entry.id]))
        (hit,) = wait_for(self.script.memory.search(Query("who keeps bees")))
        self.assertEqual((hit.turn_id, hit.kind), (entry.id, "memory"))

    def test_unusable(self):
        """With one that cannot be made, searches go on in the index; its status names it."""
        self.use("world.nothing.Backend")
        entry = self.aria.journal.add("Elin keeps bees behind the mill.")
        wait_for(self.script.memory.remember_entry(entry))  # a search overtakes what is indexed
        (hit,) = wait_for(self.script.memory.search(Query("who keeps bees")))
        self.assertEqual((hit.turn_id, hit.kind), (entry.id, "journal"))
        status = wait_for(self.script.mind.memories.status())
        self.assertFalse(status["ok"])
        self.assertIn("EVENNIA_AI_MEMORY_BACKEND", status["detail"])
        with self.assertRaises(StoreError):
            wait_for(self.script.mind.memories.ids("aria"))
        wait_for(self.script._run_sleep_tick())
        self.assertEqual(self.aria.journal.waiting(), 1)


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


@pytest.mark.database
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
