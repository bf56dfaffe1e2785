"""What every memory back end must do, and that a setting is enough to use another one."""

import tempfile
import unittest

from django.test import override_settings

from evennia_ai import conf, services
from evennia_ai.errors import ConfigError, StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall.values import Query
from tests.base import AssistantTest
from tests.rag_memory.tiny_backend import TinyBackend
from tests.waiting import wait_for

TINY = "tests.rag_memory.tiny_backend.TinyBackend"
WHISPERED = private(["o1.a"])


def item(source_id, text, audience="public", **metadata):
    """One thing to remember."""
    return {"source_id": source_id, "text": text, "metadata": {"audience": audience, **metadata}}


class Contract:
    """The contract of `protocol.MemoryBackend`; a back end's test names its dotted path."""

    path: str

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.folder.cleanup)
        on = override_settings(
            EVENNIA_AI_MEMORY_BACKEND=self.path, EVENNIA_AI_DATA_DIR=self.folder.name
        )
        on.enable()
        self.addCleanup(on.disable)
        self.backend = conf.memory_backend()
        self.addCleanup(lambda: self.done(self.backend.close()))

    def done(self, deferred):
        """What a Deferred fires with."""
        return wait_for(deferred, 120)

    def add(self, *items, scope="aria"):
        return self.done(self.backend.add(scope, items))

    def sources_found(self, query, scope="aria", **options):
        found = self.done(self.backend.search(scope, query, **options))
        return [memory["metadata"]["source_id"] for memory in found]

    def test_finds_what_was_stored(self):
        """The memory with most of the query comes first, with text, score and metadata."""
        ids = self.add(
            item("j1", "Alice keeps bees behind the mill", importance=7),
            item("j2", "The cellar door is locked at night"),
        )
        best = self.done(self.backend.search("aria", "who keeps bees"))[0]
        self.assertEqual((best["id"], best["text"]), (ids[0], "Alice keeps bees behind the mill"))
        self.assertGreater(best["score"], 0)
        kept = {"source_id": "j1", "audience": "public", "type": "memory", "importance": 7}
        self.assertLessEqual(kept.items(), best["metadata"].items())

    def test_each_source_once(self):
        """A source that is stored already keeps its memory."""
        first = self.add(item("j1", "red door"), item("j2", "blue door"))
        again = self.add(item("j2", "blue door"), item("j1", "changed"))
        self.assertEqual(again, first[::-1])
        self.assertEqual(self.done(self.backend.ids("aria")), set(first))
        expected = dict(zip(("j1", "j2"), first, strict=True))
        self.assertEqual(self.done(self.backend.sources("aria")), expected)

    def test_scopes_are_apart(self):
        """No assistant finds, lists or deletes the memories of another."""
        (memory_id,) = self.add(item("j1", "the silver key"), scope="a b")
        self.assertEqual(self.sources_found("silver key", scope="ab"), [])
        self.assertEqual(self.done(self.backend.source_of("ab", memory_id)), None)
        self.assertEqual(self.done(self.backend.delete("ab", [memory_id])), 0)
        self.assertEqual(self.done(self.backend.source_of("a b", memory_id)), "j1")

    def test_audience_before_limit(self):
        """Only what the audience may know is found, as many as were asked for."""
        self.add(*(item(f"s{n}", "silver silver key", WHISPERED) for n in range(5)))
        self.add(item("j1", "a silver spoon of mine"))
        self.assertEqual(self.sources_found("silver key", limit=1), ["j1"])
        self.assertEqual(self.sources_found("silver", limit=1, audience=None), ["j1"])
        for audience in (WHISPERED, STAFF):
            self.assertEqual(len(self.sources_found("silver", audience=audience)), 6)

    def test_nothing_asked(self):
        """An empty query or no room finds nothing."""
        self.add(item("j1", "the silver key"))
        self.assertEqual(self.sources_found("  "), [])
        self.assertEqual(self.sources_found("silver", limit=0), [])

    def test_deletes(self):
        """What is deleted is gone; unknown ids do not count."""
        first, second = self.add(item("j1", "red door"), item("j2", "blue door"))
        self.assertEqual(self.done(self.backend.delete("aria", [first, "unknown"])), 1)
        self.assertEqual(self.sources_found("red door blue"), ["j2"])
        self.assertEqual(self.done(self.backend.ids("aria")), {second})

    def test_extraction(self):
        """What a model extracted is stored under its source; then there is nothing to ask."""
        told = item("j1", "Alice told me at length that she keeps bees")
        self.assertTrue(self.done(self.backend.extraction_prompt("aria", told)))
        answer = '{"memory": [{"text": "Alice keeps bees"}]}'
        self.done(self.backend.add_extracted("aria", told, answer))
        self.assertIsNone(self.done(self.backend.extraction_prompt("aria", told)))
        self.assertEqual(self.sources_found("bees"), ["j1"])

    def test_refuses(self):
        """An item without a text is refused in words."""
        with self.assertRaises(StoreError):
            self.add(item("j1", ""))

    def test_status(self):
        """It says how it is, and how much it holds."""
        self.add(item("j1", "red door"))
        status = self.done(self.backend.status())
        self.assertEqual((status["ok"], status["count"]), (True, 1))
        self.assertLessEqual({"detail", "path"}, set(status))


class TestTinyBackend(Contract, unittest.TestCase):
    path = TINY


class TestMem0Backend(Contract, unittest.TestCase):
    path = conf.MEM0_BACKEND


class TestBySetting(AssistantTest):
    """An assistant with the back end of the settings."""

    def use(self, path):
        """Have the back end made from the settings, as in a game."""
        on = override_settings(EVENNIA_AI_MEMORY_BACKEND=path)
        on.enable()
        self.addCleanup(on.disable)
        services.use(memories=services.memory_backend())

    def test_consolidates_and_searches(self):
        """What the journal holds is dreamt into it and found through it."""
        self.use(TINY)
        entry = self.aria.journal.add("Elin keeps bees behind the mill.")
        wait_for(self.script._run_sleep_tick(), 30)
        self.assertIsInstance(self.script.mind.memories, TinyBackend)
        sources = wait_for(self.script.mind.memories.sources(self.script.scope))
        self.assertEqual(set(sources), {entry.id})
        wait_for(self.script.memory.forget([entry.id]))
        (hit,) = wait_for(self.script.memory.search(Query("who keeps bees")))
        self.assertEqual((hit.turn_id, hit.kind), (entry.id, "memory"))

    def test_unusable(self):
        """With one that cannot be made, searches go on in the index; its status names it."""
        self.use("world.nothing.Backend")
        with self.assertRaisesRegex(ConfigError, "EVENNIA_AI_MEMORY_BACKEND"):
            conf.memory_backend()
        entry = self.aria.journal.add("Elin keeps bees behind the mill.")
        wait_for(self.script.memory.remember_entry(entry))  # a search overtakes what is indexed
        (hit,) = wait_for(self.script.memory.search(Query("who keeps bees")))
        self.assertEqual((hit.turn_id, hit.kind), (entry.id, "journal"))
        status = wait_for(self.script.mind.memories.status())
        self.assertFalse(status["ok"])
        self.assertIn("EVENNIA_AI_MEMORY_BACKEND", status["detail"])
        with self.assertRaises(StoreError):
            wait_for(self.script.mind.memories.ids("aria"))
        wait_for(self.script._run_sleep_tick(), 30)
        self.assertEqual([e.id for e in self.aria.journal.unconsolidated()], [entry.id])
