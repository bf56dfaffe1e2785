"""What `kill.py` kills at, how a step is armed in the process that is to die, and its log.

Used by forked processes (`kill_life`) and inside a started game (`kill_server`) alike. The hooks
sit on classes, as Evennia may drop an object of the game and load it anew.
"""

import hashlib
import json
import os
import random
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Options of the assistant that is killed: small windows, so that compactions come often.
CONFIG = {
    "compact_preserve_window": 6,
    "max_context_tokens": 9000,
    "pre_compact_max_iterations": 3,
    "max_react_iterations": 3,
    "reply_cooldown_s": 0,
    "sleep_after_idle_s": None,
}
# A thing whose description is a large tool output; its text is longer than what is shown of it.
CHRONICLE = " ".join(f"In year {year} the river rose {year % 7} ells." for year in range(900, 1200))
# What a deed sets just below the usage there is, so that it fires.
TRIGGERS = ("compact_sleep_threshold", "compact_emergency_threshold")
COMMIT = ("archive", "summaries", "history", "journal", "record", "last_compaction", "done")
MASK = tuple(f"mask {name}" for name in ("history", "record", "last_compaction", "done"))
EMERGENCY = tuple(f"emergency {name}" for name in COMMIT)
ROLLBACK = tuple(
    f"rollback {name}"
    for name in ("history", "withdrawn", "summaries", "journal", "entities", "record", "done")
)
PUBLISH, WITHDRAW = "commit, then publish", "rollback, then withdraw"
BEFORE_STORE = "consolidation: before store"
BEFORE_MARK = "consolidation: between store and mark"
FIRST_WRITE, SECOND_WRITE = "journal: page turn, first write", "journal: page turn, second write"
EXTRACTION = "extraction: between call and result"
OTHERS = (PUBLISH, WITHDRAW, BEFORE_MARK, BEFORE_STORE, FIRST_WRITE, SECOND_WRITE, EXTRACTION)
STEPS = (*MASK, *EMERGENCY, *(f"commit {name}" for name in COMMIT), *ROLLBACK, *OTHERS)


def plan_of(number: int, rng: random.Random, statements: int, moment_s: float) -> dict[str, Any]:
    """What kills the life of this number: named steps in turn, then statements and moments.

    Args:
        number: Of the life.
        rng: Where chance comes from.
        statements: The last statement that may be hit, counted from the arming.
        moment_s: The last moment, seconds from the arming.
    """
    if number % 2 == 0:
        return {"kind": "step", "step": STEPS[number // 2 % len(STEPS)]}
    if number % 4 == 1:
        return {"kind": "statement", "nth": rng.randrange(1, statements)}
    return {"kind": "moment", "after_s": round(rng.uniform(0.05, moment_s), 3)}


def lower(script: Any, option: str) -> None:
    """Set a trigger of an assistant just below its usage."""
    from evennia_ai.llm_interaction.prompt import context_usage

    script.attributes.add(option, min(1.0, round(context_usage(script) * 0.99, 3)))


def restore(script: Any) -> None:
    """Set its triggers to their defaults; a kill may have left them low."""
    for option in TRIGGERS:
        script.attributes.remove(option)


class Log:
    """What was heard and stored, a JSON object a line, on the disk before anything goes on.

    Args:
        path: The file; it is made, or continued.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - lives as long
        if self._file.tell():
            self._file.write("\n")  # a line that a kill cut short must not spoil the next

    def note(self, kind: str, *entries: dict[str, Any]) -> None:
        """Write entries and wait until they are on the disk."""
        for entry in entries:
            self._file.write(json.dumps({"kind": kind, **entry}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def entries(self) -> list[dict[str, Any]]:
        """All entries, of earlier processes too."""
        return list(_parsed(self.path.read_text(encoding="utf-8").splitlines()))


def _parsed(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:  # empty, or cut by a kill: nothing was acknowledged by it
            continue


def sha(message: dict[str, Any]) -> str:
    """A digest of what must never change of a message."""
    names = ("id", "role", "content", "speaker", "tool_calls", "tool_call_id", "name", "audience")
    kept = {name: message.get(name) for name in (*names, "created_at")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


class Killer:
    """Kills its own process where a plan says so, and logs what the assistant stores.

    Args:
        log: Where that is noted.
        plan: See `plan_of`; empty for nothing. It may be replaced at any time.
    """

    def __init__(self, log: Log, plan: dict[str, Any] | None = None):
        self.log = log
        self.plan = plan or {}
        self._written = 0

    def die(self) -> None:
        """As a pulled plug: no handler, no flush, no cleanup."""
        os.kill(os.getpid(), signal.SIGKILL)

    def at(self, step: str) -> None:
        """Die if the plan says so."""
        if self.plan.get("step") == step:
            self.die()

    def set_plan(self, plan: dict[str, Any]) -> None:
        """Live by another plan; statements are counted anew."""
        self.plan, self._written = plan, 0

    def arm(self) -> None:
        """Put the hooks in place, once in a process, on the thread that owns the database."""
        from django.db import connection

        connection.ensure_connection()
        connection.execute_wrappers.append(self._count_statement)
        self.log.note("born", {})
        self._arm_hearing()
        self._arm_transactions()
        self._arm_memory()
        self._arm_history()
        self._arm_journal()

    def _arm_hearing(self) -> None:
        from evennia_ai.assistant_script import AssistantScript

        def hearing(inner: Any) -> Any:
            def hear(script: Any, event: dict[str, Any]) -> Any:
                self.log.note("heard", {"id": event["id"]})
                return inner(script, event)

            return hear

        def ticking(inner: Any) -> Any:
            def tick(script: Any) -> Any:
                done = inner(script)
                self.log.note("ticked", {})
                return done

            return tick

        _wrap(AssistantScript, "hear", hearing)
        _wrap(AssistantScript, "at_tick", ticking)

    def _arm_transactions(self) -> None:
        from evennia_ai.sleep.compaction.commit import CompactionCommit
        from evennia_ai.sleep.compaction.rollback import Rollback

        def stepping(doing: str, inner: Any) -> Any:
            def run(handler: Any, *args: Any) -> Any:
                name = "emergency" if doing == "commit" and _is_emergency(args[-1]) else doing
                handler.on_step = lambda step: self.at(f"{name} {step}")
                return inner(handler, *args)

            return run

        _wrap(CompactionCommit, "__call__", lambda inner: stepping("commit", inner))
        _wrap(CompactionCommit, "masks", lambda inner: stepping("mask", inner))
        _wrap(Rollback, "__call__", lambda inner: stepping("rollback", inner))

    def _arm_memory(self) -> None:
        from evennia_ai.rag_memory import Mem0Store

        def adding(inner: Any) -> Any:
            def add(store: Any, scope: str, items: Any) -> Any:
                if not items or items[0]["metadata"].get("type") != "journal":
                    self.at(PUBLISH)
                    return inner(store, scope, items)
                self.at(BEFORE_STORE)
                return inner(store, scope, items).addCallback(stored)

            return add

        def stored(ids: Any) -> Any:
            self.at(BEFORE_MARK)
            return ids

        def deleting(inner: Any) -> Any:
            def delete(store: Any, scope: str, ids: Any) -> Any:
                self.at(WITHDRAW)
                return inner(store, scope, ids)

            return delete

        _wrap(Mem0Store, "add", adding)
        _wrap(Mem0Store, "delete", deleting)

    def _arm_history(self) -> None:
        from evennia_ai.assistant.attribute_store import on_commit
        from evennia_ai.history.live import HistoryHandler

        def appending(inner: Any) -> Any:
            def append(history: Any, messages: Any) -> Any:
                stored = inner(history, messages)
                noted = [{"id": m["id"], "sha": sha(m)} for m in stored]
                on_commit(lambda: self.log.note("stored", *noted))
                if any(m.get("tool_calls") and _extracts(m) for m in stored):
                    self.at(EXTRACTION)
                return stored

            return append

        _wrap(HistoryHandler, "append", appending)

    def _arm_journal(self) -> None:
        from evennia_ai.assistant.attribute_store import on_commit
        from evennia_ai.rag_memory.journal import JournalHandler

        def adding(inner: Any) -> Any:
            def add(journal: Any, content: str, **fields: Any) -> Any:
                entry = inner(journal, content, **fields)
                on_commit(lambda: self.log.note("entry", {"id": entry.id}))
                return entry

            return add

        def turning(inner: Any) -> Any:
            def turn(journal: Any, page: Any) -> Any:
                self.at(FIRST_WRITE)
                new = inner(journal, page)
                self.at(SECOND_WRITE)
                return new

            return turn

        _wrap(JournalHandler, "add", adding)
        _wrap(JournalHandler, "_turn", turning)

    def _count_statement(self, execute: Any, sql: str, *rest: Any) -> Any:
        nth = self.plan.get("nth")
        if nth is None or sql.lstrip().upper().startswith("SELECT"):
            return execute(sql, *rest)
        self._written += 1
        if self._written == nth:
            if nth % 2:
                execute(sql, *rest)
            self.die()
        return execute(sql, *rest)


def _is_emergency(record: dict[str, Any]) -> bool:
    """Whether a compaction's record is that of one that a nearly full context called for."""
    return record["trigger"] == "emergency"


def _extracts(message: dict[str, Any]) -> bool:
    """Whether a message was made by the extraction before a compaction."""
    return bool((message.get("metadata") or {}).get("context") == "pre_compaction")


def _wrap(owner: type, name: str, around: Callable[[Any], Any]) -> None:
    """Replace a method by what a function makes of it."""
    setattr(owner, name, around(getattr(owner, name)))
