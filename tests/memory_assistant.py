"""An assistant without a game: real handlers and services on stores in memory.

Everything between a heard line and a stored Attribute is the package's own, but the database is a
dict, the model is scripted and the clock stands still until it is moved. `restart` throws all
objects away and makes new ones on the same stores, as a server does that starts again.
"""

import copy
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

from twisted.internet.defer import fail, succeed

from evennia_ai.assistant import recovery as mending
from evennia_ai.assistant.react_loop import run_turn
from evennia_ai.assistant.runtime import Runtime
from evennia_ai.assistant.state import StateHandler
from evennia_ai.assistant.tick import is_called
from evennia_ai.errors import ToolError
from evennia_ai.history.audience import members
from evennia_ai.history.live import HistoryHandler
from evennia_ai.rag_memory.indexing import memory_of
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.ledger_store import LedgerHandler
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.rag_memory.search import TOOLS
from evennia_ai.services import InlineMind
from evennia_ai.testing import MemorySemanticStore, MemoryStore, ScriptedModel
from evennia_ai.tools import BUILTIN_TOOLS
from evennia_ai.tools.execution import ToolRegistry

ARIA = "o9.aria"
PEOPLE = {"Alice": "o1.a", "Bob": "o2.b", "Cora": "o3.c"}
START = 1_800_000_000.0


def count(text):
    """Tokens as characters / 4: cheap, and the same everywhere."""
    return (len(text) + 3) // 4


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


class InlineWorker:
    """A worker that works at once, on the caller's thread."""

    def submit(self, function, *args):
        try:
            return succeed(function(*args))
        except Exception:  # noqa: BLE001 - handed to the Deferred, as the real worker does
            return fail()


class DictIndex:
    """The port of the recall index on a dict; found is what shares a word."""

    damaged = False

    def __init__(self):
        self.turns = {}

    def close(self):
        """Nothing to release."""

    def add(self, scope, turns):
        self.turns.update({turn.id: turn for turn in turns})

    def clear(self, scope, at_most=None):
        return self.remove(scope, list(self.turns)[:at_most])

    def set_filling(self, scope, filling):
        """A dict does not outlive a crash."""

    def is_filling(self, scope):
        return False

    def remove(self, scope, ids):
        return sum(self.turns.pop(each, None) is not None for each in ids)

    def get(self, scope, ids):
        return tuple(self.turns[each] for each in ids if each in self.turns)

    def search(self, scope, query, limit=10, audience=None):
        from evennia_ai.history.audience import PUBLIC, visible

        words = set(query.lower().split())
        hits = [
            SimpleNamespace(**vars_of(turn), turn_id=turn.id, score=1.0, matches=True)
            for turn in self.turns.values()
            if words & set(turn.text.lower().split())
            and (turn.kind == "tool") == scope.endswith(TOOLS)
            and visible(turn.audience or PUBLIC, audience or PUBLIC)
        ]
        return tuple(hits[-limit:])


def vars_of(turn):
    """The fields of a turn that a hit has too."""
    return {name: getattr(turn, name) for name in ("kind", "speaker", "at", "text")}


class MemoryGame:
    """`GamePort` of a tavern with three people in it."""

    def __init__(self):
        self.said = []

    def present(self):
        return tuple(
            {"id": each, "key": key, "player": True, "assistant": False}
            for key, each in PEOPLE.items()
        )

    def place(self):
        return {"id": "r1", "key": "Tavern", "description": "", "exits": [], "private": False}

    def things(self):
        return ("t1.lamp",)

    def identify(self, name):
        for key, each in PEOPLE.items():
            if name in (key, each):
                return {"id": each, "key": key, "kind": "person"}
        return None

    addressee = identify

    def allowed(self, lock, asker):
        return True

    def only_present(self, audience):
        return set(PEOPLE.values()) <= members(audience)

    def speak(self, text, audience, channel, asker):
        self.said.append((audience, text))

    def say(self, text):
        self.said.append(("public", text))

    emote = say

    def whisper(self, target, text, audience="public"):
        if self.identify(target) is None:
            raise ToolError(f"there is no `{target}` here")
        self.said.append((audience, text))

    def look(self, target=None):
        return "A tavern. " + "Barrels stand along the wall. " * 60

    def move(self, direction):
        raise ToolError(f"there is no exit `{direction}`")


class MemoryCharacter:
    """A body: journal and profiles."""

    key, stable_id = "Aria", ARIA

    def __init__(self, storage, now, memory):
        remember, correct = memory.remember_entry, memory.correct_entry
        self.journal = JournalHandler(storage.body, now, remember, correct)
        self.entities = EntityHandler(storage.body)


class MemoryScript:
    """A script with the ports the services use, wired as `AssistantPorts` wires them.

    Args:
        storage: Where its values are kept.
        clock: A list with the time as its only element, shared by all incarnations.
        model: The model.
        semantic: Semantic memory.
        index: The recall index.
    """

    key = scope = "Aria"
    pk = 1
    model_name = "scripted/model"
    enabled = ready = True

    def __init__(self, storage, clock, model, semantic, index):
        self.storage, self.clock = storage, clock
        desk = InlineWorker()
        self.mind = InlineMind(model, semantic, desk, lambda: index, desk, lambda name: count)
        self.runtime, self.game = Runtime(last_heard_at=clock[0]), MemoryGame()
        self.memory = memory_of(self, InlineWorker(), lambda: index, lambda: semantic)
        self.obj = MemoryCharacter(storage, self.now, self.memory)
        self.state = StateHandler(storage.script)
        self.ledger = LedgerHandler(storage.script, self.now)
        self.history = HistoryHandler(
            storage.script,
            lambda: ("quarter", count),
            self.now,
            self.memory.remember_messages,
            self.memory.correct_messages,
        )
        self.tools = ToolRegistry(BUILTIN_TOOLS)
        self.errors, self.audits = [], []

    def now(self):
        return self.clock[0]

    count = counter = staticmethod(count)

    def compacted(self):
        self.audits.append(("compacted", {}))

    @property
    def config(self):
        return self.state.config()

    def at_commit_step(self, name):
        """A test puts its own here."""

    @property
    def journal(self):
        return self.obj.journal

    @property
    def entities(self):
        return self.obj.entities

    def run_turn(self, request):
        return run_turn(self, self.obj, request)

    def is_called(self):
        return is_called(self)

    def audit(self, kind, **fields):
        self.audits.append((kind, fields))

    def log(self, text, warning=False):
        self.audits.append(("log", text))

    tell_staff = trouble = alert = log

    def log_error(self, what, error):
        self.errors.append((what, error))

    def spent(self, reply, purpose):
        """Costs nothing."""

    extracts_memories = False

    def over_spend(self):
        return False

    def save_queue(self):
        if not self.runtime.queue_saved:
            self.state.save_queue(self.runtime.pending())
            self.runtime.queue_saved = True

    def fall_asleep(self):
        self.state.set_mode("sleep", "sleeping")

    def wake(self):
        self.state.set_mode("awake")
        self.runtime.last_turn_at = 0.0
        self.runtime.last_heard_at = self.now()

    def dreamt(self, report):
        self.audits.append(("dreamt", report))

    def clock_time(self, game):
        return 12, 0

    def at_server_start(self):
        """As `AssistantScript.at_server_start`, without timer and schema."""
        self.state.signal("pre_compaction", None)
        if self.state.phase in ("dreaming", "waking"):
            self.state.set_mode("sleep", "sleeping")
        mending.restore_queue(self)
        mending.mend_when_ready(self)


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
        self.storage, self.clock = Storage(), [START]
        self.model = model or ScriptedModel()
        self.semantic, self.index = MemorySemanticStore(), DictIndex()
        self.configure(**config)
        self._start()

    def _start(self):
        self.script = MemoryScript(self.storage, self.clock, self.model, self.semantic, self.index)
        self.body = self.script.obj

    def configure(self, **values):
        """Set configuration Attributes."""
        for name, value in values.items():
            self.storage.script.set(name, value)

    def later(self, seconds=1.0):
        """Let time pass."""
        self.clock[0] += seconds

    def restart(self, before_start=lambda: None):
        """Drop every object and start again on what is stored."""
        self.storage = self.storage.survivor()
        self._start()
        before_start()
        self.script.at_server_start()

    def write(self, name, value):
        """Set an Attribute of the script by hand."""
        self.storage.script.set(name, value)

    def indexed(self):
        """Ids of all turns in the recall index."""
        return set(self.index.turns)

    def memories(self):
        """All of semantic memory."""
        return list(self.semantic.memories.get("Aria", {}).values())

    def attribute(self, name):
        """A copy of a stored value of the script."""
        return copy.deepcopy(self.storage.script.get(name))
