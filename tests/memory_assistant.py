"""A fake assistant and what outlives it: its stores, which can fail, and restarts on them.

`restart` throws all objects away and makes new ones on the same stores, as a server does that
starts again.
"""

import copy
import unittest
from contextlib import ExitStack, contextmanager

from twisted.internet.defer import succeed
from twisted.internet.task import Clock

from evennia_ai import conf
from evennia_ai.feature import listed_features
from evennia_ai.history.messages import Message, new_id
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.options import OPTIONS
from evennia_ai.rag_memory.memory import WHOLE
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import Compaction, as_result
from evennia_ai.sleep.compaction.plan import MANUAL, SLEEP
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.testing import call
from tests.fake import FakeAssistant, FakeBody, FakeGame, MemoryStore
from tests.memories import MemoryIndex, MemorySemanticStore
from tests.models import ScriptedModel
from tests.steps import verify_history
from tests.waiting import alone, wait_for

ARIA, PEOPLE = FakeBody.stable_id, FakeGame.people
START = 1_800_000_000.0
count = FakeAssistant.count


class StoreFailure(OSError):
    """What a disk that is full says."""


class FailingStore(MemoryStore):
    """A store in memory whose n-th write from now fails, once."""

    def __init__(self, disk):
        super().__init__()
        self.disk, self.others = disk, ()

    @contextmanager
    def transaction(self):
        with ExitStack() as stack:
            for store in (*self.others, self):
                stack.enter_context(MemoryStore.transaction(store))
            yield

    def set(self, key, value, category=None):
        self.disk.write()
        super().set(key, value, category)

    def delete(self, key, category=None):
        self.disk.write()
        super().delete(key, category)

    def move(self, keys, category, to):
        self.disk.write()
        super().move(keys, category, to)


class Disk:
    """Counts the writes of all stores of a world; `fail_in(n)` lets the n-th from now fail."""

    def __init__(self):
        self.left = None

    def fail_in(self, writes):
        self.left = writes

    def write(self):
        if self.left is None:
            return
        self.left -= 1
        if self.left <= 0:
            self.left = None
            raise StoreFailure("disk full")


class Storage:
    """The Attributes of script and body as one database: a transaction spans both."""

    def __init__(self):
        self.disk = Disk()
        self.script, self.body = FailingStore(self.disk), FailingStore(self.disk)
        self.script.others, self.body.others = (self.body,), (self.script,)

    def survivor(self):
        """What a new process finds: the same values, out of the old one's reach.

        Python closes a dead process' suspended generators late, and their `finally` clauses
        write; a process that was killed writes no more.
        """
        after = Storage()
        after.disk.left = self.disk.left
        after.script.values, after.body.values = dict(self.script.values), dict(self.body.values)
        return after


class MemoryWorld:
    """An assistant in memory and all that outlives a restart of it.

    Attributes:
        script: The script now.
        body: Its body now.
        model: The scripted model.
        semantic: Semantic memory, as durable as a disk.
        index: The recall index, likewise.
    """

    def __init__(self, model=None, **config):
        self.storage, self.clock = Storage(), Clock()
        self.clock.advance(START)
        self.model = model or ScriptedModel()
        self.semantic, self.index = MemorySemanticStore(), MemoryIndex()
        self.attributes = {
            "features": listed_features(),
            "known_features": listed_features(more=conf.SHIPPED),
        }
        self._start()
        self.configure(**config)

    def _start(self):
        stores = {"store": self.storage.script, "body_store": self.storage.body}
        self.script = FakeAssistant(
            self.model, self.semantic, self.index, clock=self.clock, **stores, **self.attributes
        )
        self.script.breathe = lambda: self.breathe()
        self.body = self.script.obj

    def breathe(self):
        """Between two steps of long work: nobody else waits."""
        return succeed(None)

    def configure(self, **values):
        """Set configuration Attributes, and attributes of the class, which outlive a restart."""
        for name, value in values.items():
            if name in OPTIONS:
                self.storage.script.set(name, value)
            else:
                assert hasattr(FakeAssistant, name), name
                self.attributes[name] = value
                setattr(self.script, name, value)

    def later(self, seconds=1.0):
        """Let time pass."""
        self.clock.advance(seconds)

    def restart(self, before_start=lambda: None):
        """Drop every object and start again on what is stored."""
        self.storage = self.storage.survivor()
        if self.script is not None:
            self.script.pk = None  # what it does in the background ends with its process
        self._start()
        before_start()
        self.script.at_server_start()

    def write(self, name, value, category=None):
        """Set an Attribute of the script by hand."""
        self.storage.script.set(name, value, category)

    def indexed(self):
        """Ids of all turns in the recall index."""
        return set(self.index.turns) - {WHOLE}

    def memories(self):
        """All of semantic memory."""
        return list(self.semantic.memories.get("Aria", {}).values())

    def syntheses(self):
        """Texts of the summaries in the recall index, by the ids of their entries."""
        turns = self.index.turns.values()
        return {turn.id: turn.text for turn in turns if turn.kind == "summary"}

    def attribute(self, name):
        """A copy of a stored value of the script."""
        return copy.deepcopy(self.storage.script.get(name))


def extract_and_compact(script, trigger=MANUAL, **options):
    """A compaction with an extraction before it; fires with its result."""
    return Compaction(script, trigger, **options).extract_and_run().addCallback(as_result)


class MemoryWorldTest(unittest.TestCase):
    """A test of an assistant in memory, with what such tests do to it."""

    def setUp(self):
        self.world = MemoryWorld(compact_preserve_window=4)
        self.world.model.default = "They talked."

    @property
    def script(self):
        return self.world.script

    @property
    def body(self):
        return self.world.body

    def fill(self, count=12, **fields):
        messages = [Message("user", **{"content": f"line {n}", **fields}) for n in range(count)]
        return self.script.history.append(messages)

    def hear(self, text, speaker, **fields):
        """A line reaches the assistant."""
        line = Message("user", text, new_id("m"), speaker=speaker, **{"channel": "say", **fields})
        self.script.runtime.hear(line, self.script.now())

    def compact(self, force=True, **options):
        options.setdefault("trigger", MANUAL if force else SLEEP)
        job = Compaction(self.script, **options)
        return as_result(wait_for(job.run()))

    def extract(self, *answers):
        self.world.model.answers = [*answers, call("noop")]
        return wait_for(run_pre_compaction_extraction(self.script, self.body))

    def roll_back(self):
        return wait_for(alone(rollback_compaction, self.script))

    def prompt(self):
        return build_llm_messages(self.script, self.body)

    def assert_proven(self):
        self.assertEqual(verify_history(self.script), ())
