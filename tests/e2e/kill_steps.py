"""The steps before which a Server is killed, how a step is armed in it, and the log.

The hooks are on classes, because Evennia may drop an object of the game and load it again.
"""

import contextlib
import hashlib
import json
import os
import signal
import sys

from tests.steps import COMMIT_STEPS, DRAFT_STEPS, ROLLBACK_STEPS

# Options of the assistant that is killed. Small windows make compactions frequent.
CONFIG = {
    "compact_preserve_window": 6,
    "max_context_tokens": 9000,
    "pre_compact_max_iterations": 3,
    "max_react_iterations": 3,
    "sleep_after_idle_s": None,
}
COMMIT = (*COMMIT_STEPS, "done")
MASK = tuple(f"mask {name}" for name in COMMIT)
EMERGENCY = tuple(f"emergency {name}" for name in COMMIT)
DRAFTS = tuple(f"draft {name}" for name in DRAFT_STEPS)
COMMITS = (*DRAFTS, *(f"commit {name}" for name in COMMIT))
ROLLBACK = tuple(f"rollback {name}" for name in (*ROLLBACK_STEPS, "done"))
WITHDRAW = "rollback, then withdraw"
BEFORE_STORE = "consolidation: before store"
BEFORE_MARK = "consolidation: between store and mark"
FIRST_WRITE, SECOND_WRITE = "journal: page turn, first write", "journal: page turn, second write"
OTHERS = (WITHDRAW, BEFORE_MARK, BEFORE_STORE, FIRST_WRITE, SECOND_WRITE)
# The functions that call `at_commit_step`, and what they do.
DOINGS = {
    "Compaction._summarise": "draft",
    "Compaction._store": "commit",
    "rollback_compaction": "rollback",
}


class Log:
    """What was heard and stored: one JSON object per line, synced to disk before going on.

    Args:
        path: The file. It is created or continued.
    """

    def __init__(self, path):
        self.path = path
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - lives as long
        if self._file.tell():
            self._file.write("\n")  # an incomplete line must not corrupt the next one

    def note(self, kind, *entries):
        """Write entries and wait until they are on disk."""
        for entry in entries:
            self._file.write(json.dumps({"kind": kind, **entry}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def entries(self):
        """Return all entries, also those of earlier processes."""
        entries = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(
                ValueError
            ):  # incomplete after a kill: it acknowledged nothing
                entries.append(json.loads(line))
        return entries


def sha(message):
    """Return a digest of the parts of a message that must never change."""
    names = ("id", "role", "content", "speaker", "tool_calls", "tool_call_id", "name", "audience")
    stored = message.to_dict()
    kept = {name: stored.get(name) for name in (*names, "created_at")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


class Killer:
    """Kills its own process according to a plan, and logs what the assistant stores.

    Args:
        log: The log.

    Attributes:
        plan: ``{"step": name}``; empty for nothing. It may be replaced at any time.
    """

    def __init__(self, log):
        self.log, self.plan = log, {}

    def die(self):
        """Die as if by power failure: no handler, no flush, no cleanup."""
        os.kill(os.getpid(), signal.SIGKILL)

    def at(self, step):
        """Die if the plan says so."""
        if step and self.plan.get("step") == step:
            self.die()

    def arm(self):
        """Install the hooks, once per process, on the thread that owns the database."""
        from django.db import connection

        connection.ensure_connection()
        self.log.note("born", {})
        self._arm_script()
        self._arm_memory()
        self._arm_history()
        self._arm_journal()

    def _arm_script(self):
        from evennia_ai.assistant_script import AssistantScript

        @_around(AssistantScript, "hear")
        def hear(inner, script, event):
            self.log.note("heard", {"id": event.id})
            return inner(script, event)

        @_around(AssistantScript, "at_tick")
        def tick(inner, script):
            done = inner(script)
            self.log.note("ticked", {})
            return done

        @_around(AssistantScript, "at_commit_step")
        def step(inner, script, name):
            self.at(f"{_doing(sys._getframe(1))} {name}")
            return inner(script, name)

    def _arm_memory(self):
        from evennia_ai.mind.remote import RemoteMind

        def stored(result):
            self.at(BEFORE_MARK)
            return result

        @_around(RemoteMind, "ask")
        def ask(inner, link, method, *args, **options):
            self.at({"memories.add": BEFORE_STORE, "memories.delete": WITHDRAW}.get(method))
            asked = inner(link, method, *args, **options)
            return asked.addCallback(stored) if method == "memories.add" else asked

    def _arm_history(self):
        from evennia_ai.game.evennia_internals import on_commit
        from evennia_ai.history.live import HistoryHandler

        @_around(HistoryHandler, "append")
        def append(inner, history, messages):
            stored = inner(history, messages)
            noted = [{"id": m.id, "sha": sha(m)} for m in stored]
            on_commit(lambda: self.log.note("stored", *noted))
            return stored

    def _arm_journal(self):
        from evennia_ai.game.evennia_internals import on_commit
        from evennia_ai.history.stored import Cache
        from evennia_ai.rag_memory.journal import JOURNAL, JournalHandler, Page

        @_around(JournalHandler, "add")
        def add(inner, journal, content, **fields):
            entry = inner(journal, content, **fields)
            on_commit(lambda: self.log.note("entry", {"id": entry.id}))
            return entry

        @_around(Cache, "set")
        def write(inner, pages, key, page):
            turns = isinstance(page, Page) and key != JOURNAL and pages.get(key) is None
            self.at(FIRST_WRITE if turns else None)
            inner(pages, key, page)
            self.at(SECOND_WRITE if turns else None)


def _doing(frame):
    """What the code in a frame does; an emergency, and mere masks, have names of their own."""
    while frame is not None:
        if doing := DOINGS.get(frame.f_code.co_qualname):
            if doing == "commit" and frame.f_locals["masked"]:
                return "mask"
            if doing == "commit" and frame.f_locals["self"].trigger == "emergency":
                return "emergency"
            return doing
        frame = frame.f_back
    return ""


def _around(owner, name):
    """Put a function in the place of a method; it gets the method itself first."""
    inner = getattr(owner, name)

    def put(function):
        setattr(owner, name, lambda *args, **options: function(inner, *args, **options))

    return put
