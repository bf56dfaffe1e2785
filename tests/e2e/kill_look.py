"""Check after a kill and a restart that everything is stored once, unchanged, in order."""

import time
from collections import Counter

from twisted.internet.defer import inlineCallbacks
from twisted.internet.task import deferLater

# What is counted; each must be 0.
FAULTS = ("lost", "doubled", "changed", "misplaced", "violations", "timer_stopped", "ghosts")
# Pending work for semantic memory waits for Mem0, which each life has to import.
SETTLE_S = 60.0


def look(script, log):
    """Check an assistant that was started again, once its start has finished.

    The check holds the turn lock, because the first tick may compact again and leave new pending
    work, and ends with a night, which repairs semantic memory.

    Args:
        script: The assistant's script.
        log: What was heard and stored before, a `kill_steps.Log`.

    Returns:
        A Deferred that fires with counts by the names of `FAULTS`, and ``notes``, a list of texts.
    """
    return script.run_exclusive(lambda: _look(script, log))


@inlineCallbacks
def until(condition, timeout_s):
    """Wait for a condition; fires with whether it came true in time."""
    from twisted.internet import reactor

    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        yield deferLater(reactor, 0.02)
    return True


@inlineCallbacks
def _look(script, log):
    yield until(lambda: not script.state.outbox, SETTLE_S)  # `_violations` names one that stays
    faults = {**_messages(script, log.entries()), "violations": _violations(script)}
    faults["timer_stopped"] = [] if script.ndb._task and script.ndb._task.running else ["timer"]
    faults["ghosts"] = yield _ghosts(script)
    notes = [f"{name}: {found[:5]}" for name, found in faults.items() if found]
    return {**{name: len(found) for name, found in faults.items()}, "notes": notes}


def kept_lists(script):
    """Return all raw messages: the live ones, and those of each segment that was not restored."""
    history = script.history
    restored = history.restored_segments()
    live = [message for message in history.messages() if not message.is_summary]
    away = [list(s.messages) for s in history.segments() if s.id not in restored]
    return [live, *away]


def _messages(script, log):
    """Ids of logged messages and journal entries that do not exist once, unchanged, in order.

    A heard line that waits in the queue counts as existing.
    """
    from tests.e2e.kill_steps import sha

    lists = kept_lists(script)
    everything = [message for messages in lists for message in messages]
    times = Counter(m.id for m in everything)
    digests = {m.id: sha(m) for m in everything}
    stored = {e["id"]: e["sha"] for e in log if e["kind"] == "stored"}
    lost = [each for each in stored if each not in times]
    waiting = {event.id for event in script.runtime.pending()}
    lost += [each for each in due_lines(log) if each not in {*stored, *times, *waiting}]
    doubled = [each for each, count in times.items() if count > 1]
    doubled += [e.id for e in script.runtime.queue if e.id in times]
    changed = [each for each, was in stored.items() if digests.get(each, was) != was]
    entries = Counter(e.id for e in script.obj.journal.recent(10**6))
    lost += [e["id"] for e in log if e["kind"] == "entry" and e["id"] not in entries]
    doubled += [each for each, count in entries.items() if count > 1]
    misplaced = _misplaced(lists, list(stored))
    return {"lost": lost, "doubled": doubled, "changed": changed, "misplaced": misplaced}


def due_lines(log):
    """Ids of heard lines that must exist, because a tick came before the end of their life.

    What is heard is only in memory until a tick begins, which stores or saves it.
    """
    due, since_tick = [], []
    for entry in log:
        if entry["kind"] == "heard":
            since_tick.append(entry["id"])
        elif entry["kind"] in ("ticked", "born"):
            due += since_tick if entry["kind"] == "ticked" else []
            since_tick = []
    return due


def _misplaced(lists, order):
    """Return ids that are behind one that was stored later."""
    place = {each: number for number, each in enumerate(order)}
    found = []
    for messages in lists:
        ids = [m.id for m in messages if m.id in place]
        found += [b for a, b in zip(ids, ids[1:], strict=False) if place[b] < place[a]]
    return found


def _violations(script):
    """What verification finds, faults of the prompt, and what is half done."""
    from evennia_ai.llm_interaction.prompt import build_prompt
    from tests.loopback import check_pairs
    from tests.steps import verify_history

    wrong = [str(violation) for violation in verify_history(script)]
    prompt = build_prompt(script)
    try:
        check_pairs({"messages": prompt.messages})
    except AssertionError as error:
        wrong.append(str(error))
    if not prompt.fits:
        wrong.append(f"the prompt does not fit: {prompt.budget}")
    if script.state.signals or script.state.outbox:
        wrong.append(f"left: {script.state.signals}, {script.state.outbox}")
    return wrong


@inlineCallbacks
def _ghosts(script):
    """What is left, after another night, of entries that were withdrawn."""
    from evennia_ai.sleep import run_sleep_tick

    yield run_sleep_tick(script, script.obj)
    yield until(lambda: not script.state.outbox, SETTLE_S)
    ids = yield script.mind.memories.ids(script.scope)
    journal = {e.id: e for e in script.obj.journal.recent(10**6)}
    ghosts = [each for each in ids if each not in journal or journal[each].withdrawn]
    withdrawn = [each for each, entry in journal.items() if entry.withdrawn]
    left = yield script.mind.recall.count(script.scope, withdrawn)
    if left:
        ghosts.append(f"{left} withdrawn entries in the recall index")
    return ghosts
