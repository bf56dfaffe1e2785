"""Random interleavings of all that happens to a history, against an independent record."""

import unittest

from evennia import create_object

from evennia_ai import services
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.rag_memory.memory import WHOLE, RecallJobs
from evennia_ai.testing import InlineWorker
from tests.base import CHARACTER, AssistantTest
from tests.interleaving import Broken, Interleaving
from tests.memories import MemoryIndex
from tests.memory_assistant import MemoryWorld
from tests.thoroughness import examples

IN_MEMORY, ON_ATTRIBUTES = examples(150), examples(20, 5)


class AttributeWorld:
    """The assistant of an `AssistantTest` as the world of an interleaving.

    A restart throws Evennia's caches away, and with them every object, handler and runtime.
    """

    def __init__(self, test):
        self.test, self.model = test, test.model
        self.index = MemoryIndex()
        services.use(recall=RecallJobs(InlineWorker(), lambda: self.index))
        self.script, self.body = test.script, test.aria

    def configure(self, **values):
        self.test.configure(**values)

    def later(self, seconds):
        """Evennia's own clock cannot be moved."""

    def restart(self, before_start):
        """Flush Evennia's caches and fetch everything anew.

        Work on threads that a compaction in the background waits for would outlive this restart, as
        it outlives no process.
        """
        self.script.runtime.summaries.stop()

        def fetched():
            self.script, self.body = self.test.script, self.test.aria
            before_start()

        self.test.restart(fetched)

    def attribute(self, name):
        return AttributeStore(self.script).get(name)

    def write(self, name, value):
        self.script.attributes.add(name, value)

    def indexed(self):
        return set(self.index.turns) - {WHOLE}

    def memories(self):
        return list(self.test.semantic.memories.get(self.script.scope, {}).values())


class TestInMemory(unittest.TestCase):
    def test_nothing_is_ever_lost(self):
        """Each message is there once, unchanged, in order, and proven, after every step."""
        for seed in range(IN_MEMORY):
            with self.subTest(seed=seed):
                Interleaving(MemoryWorld(), seed).run(25)

    def test_the_driver_sees_a_loss(self):
        """A message that vanishes, and one that changes, are noticed."""
        for spoil in (
            lambda stored: stored[1:],
            lambda stored: [{**stored[0], "content": "other words"}, *stored[1:]],
        ):
            run = Interleaving(MemoryWorld(), 1)
            run.step("exchange")
            run.step("checkpoint")
            stored = run.world.attribute("conversation_history")
            run.world.write("conversation_history", spoil(stored))
            with self.assertRaises(Broken):
                run.step("checkpoint")


class TestOnAttributes(AssistantTest):
    """The same on Evennia's Attributes, with its caches flushed at every restart."""

    def test_nothing_is_ever_lost(self):
        """Each message is there once, unchanged, in order, and proven, after every step."""
        for seed in range(ON_ATTRIBUTES):
            with self.subTest(seed=seed):
                Interleaving(AttributeWorld(self), seed, disk=False).run(15)
                self.model.held, self.model.answers = False, []
                self.aria.delete()
                self.aria = create_object(CHARACTER, key="Aria", location=self.room1)
                self.script = self.aria.assistant
                self.script.stop()
