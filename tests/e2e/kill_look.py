"""Check after a kill and a restart that everything is stored once, unchanged, in order."""

import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import deferLater

from evennia_ai.history.messages import Message

FIGURES = (
    "heard",
    "stored",
    "unsaved",
    "lost",
    "doubled",
    "changed",
    "misplaced",
    "violations",
    "timer_stopped",
    "ghosts",
)
FAULTS = tuple(name for name in FIGURES if name not in ("heard", "stored", "unsaved"))
# Pending work for semantic memory waits for Mem0, which each life has to import.
SETTLE_S = 60.0


@inlineCallbacks
def look(script: Any, log: Any) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Check an assistant that was started again, once its start has finished.

    The check holds the turn lock and ends with a night, which repairs semantic memory.

    Args:
        script: The assistant's script.
        log: What was heard and stored before, a `kill_steps.Log`. The check is recorded there.

    Returns:
        A Deferred that fires with counts by the names of `FIGURES`; ``notes``, a list of texts; and
        ``settled_s``, the seconds until no work of a compaction was pending.
    """
    notes: list[str] = []
    found = yield script.run_exclusive(lambda: _settled_look(script, log, notes))
    log.note("looked", {})
    return {**found, "notes": notes}


@inlineCallbacks
def _settled_look(
    script: Any, log: Any, notes: list[str]
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    # Under the lock, because the first tick may compact again and leave new pending work.
    began = time.monotonic()
    yield until(lambda: not script.state.outbox, SETTLE_S)  # `_proof` reports an outbox that stays
    settled = round(time.monotonic() - began, 2)
    found = yield _look(script, log.entries(), notes)
    return {**found, "settled_s": settled}


@inlineCallbacks
def until(condition: Callable[[], Any], timeout_s: float) -> Generator[Deferred[Any], Any, bool]:
    """Wait for a condition; fires with whether it came true in time."""
    from twisted.internet import reactor

    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        yield deferLater(reactor, 0.02)  # type: ignore[arg-type]
    return True


@inlineCallbacks
def _look(
    script: Any, entries: list[dict[str, Any]], notes: list[str]
) -> Generator[Deferred[Any], Any, dict[str, int]]:
    found = {**_messages(script, entries, notes), **_proof(script, notes)}
    found["timer_stopped"] = int(not (script.ndb._task and script.ndb._task.running))
    found.update((yield _memories(script, notes)))
    return found


def kept_lists(script: Any) -> list[list[Message]]:
    """Return all raw messages: the live ones, and those of each segment that was not restored."""
    history = script.history
    restored = history.restored_segments()
    live = [message for message in history.messages() if not message.is_summary]
    away = [list(s.messages) for s in history.segments() if s.id not in restored]
    return [live, *away]


def _messages(script: Any, log: list[dict[str, Any]], notes: list[str]) -> dict[str, int]:
    """Check that each logged message and journal entry exists once, unchanged and in order.

    A heard line that waits in the queue counts as existing.
    """
    from tests.e2e.kill_steps import sha

    kept = kept_lists(script)
    everything = [message for messages in kept for message in messages]
    times = Counter(m.id for m in everything)
    digests = {m.id: sha(m) for m in everything}
    stored = {e["id"]: e["sha"] for e in log if e["kind"] == "stored"}
    lost = [each for each in stored if each not in times]
    waiting = {event.id for event in script.runtime.pending()}
    due, fresh = heard_lines(log)
    lost += [each for each in due if each not in stored and each not in {*times, *waiting}]
    unsaved = [each for each in fresh if each not in {*times, *waiting}]
    doubled = [each for each, count in times.items() if count > 1]
    doubled += [e.id for e in script.runtime.queue if e.id in times]
    changed = [each for each, was in stored.items() if digests.get(each, was) != was]
    entries = Counter(e.id for e in script.obj.journal.recent(10**6))
    lost += [e["id"] for e in log if e["kind"] == "entry" and e["id"] not in entries]
    doubled += [each for each, count in entries.items() if count > 1]
    misplaced = _misplaced(kept, list(stored))
    faults = {"lost": lost, "doubled": doubled, "changed": changed, "misplaced": misplaced}
    notes += [f"{name}: {ids[:5]}" for name, ids in faults.items() if ids]
    kinds = Counter(e["kind"] for e in _since_last_look(log))
    counts = {
        "heard": kinds["heard"],
        "stored": kinds["stored"],
        "unsaved": len(unsaved),
    }
    return {**counts, **{name: len(ids) for name, ids in faults.items()}}


def heard_lines(log: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Sort heard lines by whether a tick came between them and the end of their life.

    What is heard is only in memory until a tick begins, which stores or saves it.

    Returns:
        Ids that must exist because a tick came, and ids since the last check that a kill may have
        removed.
    """
    due: list[str] = []
    fresh: list[str] = []
    since_tick: list[str] = []
    for entry in log:
        if entry["kind"] == "heard":
            since_tick.append(entry["id"])
        elif entry["kind"] == "ticked":
            due.extend(since_tick)
            since_tick = []
        elif entry["kind"] == "born":
            fresh.extend(since_tick)
            since_tick = []
        elif entry["kind"] == "looked":
            fresh = []
    return due, fresh + since_tick


def _misplaced(kept: list[list[Message]], order: list[str]) -> list[str]:
    """Return ids that are behind one that was stored later."""
    place = {each: number for number, each in enumerate(order)}
    found = []
    for messages in kept:
        ids = [m.id for m in messages if m.id in place]
        found += [b for a, b in zip(ids, ids[1:], strict=False) if place[b] < place[a]]
    return found


def _since_last_look(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    looks = [number for number, entry in enumerate(log) if entry["kind"] == "looked"]
    return log[looks[-1] + 1 :] if looks else log


def _proof(script: Any, notes: list[str]) -> dict[str, int]:
    """Check that verification passes, prompts are valid and nothing is half done."""
    from evennia_ai.llm_interaction.prompt import build_prompt
    from tests.loopback import check_pairs
    from tests.steps import verify_history

    wrong = [str(violation) for violation in verify_history(script)]
    prompt = build_prompt(script, script.obj)
    try:
        check_pairs({"messages": prompt.messages})
    except AssertionError as error:
        wrong.append(str(error))
    if not prompt.fits:
        wrong.append(f"the prompt does not fit: {prompt.budget}")
    if script.state.signals or script.state.outbox:
        wrong.append(f"left: {script.state.signals}, {script.state.outbox}")
    notes += wrong[:5]
    return {"violations": len(wrong)}


@inlineCallbacks
def _memories(script: Any, notes: list[str]) -> Generator[Deferred[Any], Any, dict[str, int]]:
    """Check after another night that nothing withdrawn is left."""
    from evennia_ai.sleep import run_sleep_tick

    yield run_sleep_tick(script, script.obj)
    yield until(lambda: not script.state.outbox, SETTLE_S)
    ids = yield script.mind.memories.ids(script.scope)
    journal = {e.id: e for e in script.obj.journal.recent(10**6)}
    ghosts = [each for each in ids if each not in journal or journal[each].withdrawn]
    withdrawn = [each for each, entry in journal.items() if entry.withdrawn]
    missing = yield script.mind.recall.missing(script.scope, withdrawn)
    if missing < len(withdrawn):
        ghosts.append(f"{len(withdrawn) - missing} withdrawn entries in the recall index")
    notes += [f"ghosts: {ghosts[:5]}"] if ghosts else []
    return {"ghosts": len(ghosts)}
