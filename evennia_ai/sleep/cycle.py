"""The sleep cycle: memory work and compaction, as a list of named steps.

Adding a step is adding a line to `SLEEP_STEPS`. A failing step is reported, and the next runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.background import Steps
from evennia_ai.history.stored import as_dict, as_time
from evennia_ai.rag_memory.entity_store import Character, note_met, run_entity_consolidation_batch
from evennia_ai.rag_memory.journal import DAY_S, KEEP_DAYS, JournalEntry
from evennia_ai.rag_memory.memory import (
    clear_stale_conversations,
    prune_low_importance_entries,
)
from evennia_ai.sleep.compaction.behind import compact_asleep
from evennia_ai.sleep.compaction.compact import (
    Compaction,
    Outcome,
    Skipped,
    as_result,
    due,
)
from evennia_ai.sleep.compaction.plan import COUNT, SLEEP
from evennia_ai.sleep.compaction.rules import why_not
from evennia_ai.sleep.consolidation import (
    consolidate_memories_to_semantic,
    prune_orphaned_memory_links,
)
from evennia_ai.sleep.sleeper import Sleeper

# What `StateHandler.nights` has of `prune_episodic_index`: until when it has looked.
_FADED = "faded"
# Texts in the entry of a step that are ids, times and words of the package's own.
_FIXED = frozenset(
    (
        "compaction_id",
        "failure",
        "left_from",
        "left_until",
        "level",
        "reason",
        "stopped_by",
        "summary_id",
    )
)


@dataclass(frozen=True)
class SleepStep:
    """One step of the cycle: its key in the report and what it runs."""

    name: str
    # Takes script and character; returns a dict or an `Outcome`, or a Deferred of one.
    run: Callable[[Sleeper, Character], object]
    every_tick: bool = False  # whether it runs at each sleeping tick, not once a sleep


def entities_met(script: Sleeper, character: Character) -> dict[str, int]:
    """Note whom it has met since the last night."""
    me, place, since = character.stable_id, script.game.place(), script.state.last_sleep.at
    return note_met(character.entities, script.history, place, me, since, script.now())


@inlineCallbacks
def prune_episodic_index(script: Sleeper, character: Character) -> Steps[dict[str, int]]:
    """Take old entries of low importance out of retrieval; the journal keeps them.

    Looks at those that came of age since the last night. Fires with ``{"pruned", "kept"}``.
    """
    since, until = as_time(script.state.nights.get(_FADED)), script.now() - KEEP_DAYS * DAY_S
    aged = list[JournalEntry]()
    for entries in character.journal.written(since, until):
        aged += (entry for entry in entries if not entry.withdrawn)
        yield script.breathe()
    counts = prune_low_importance_entries(aged, script.now())
    with script.history.store.transaction():
        script.state.outbox = [*script.state.outbox, *counts.pop("pruned_ids")]
        script.state.nights = {**script.state.nights, _FADED: until}
    yield script.memory.clear_outbox()
    return counts


@inlineCallbacks
def extract_before_compaction(
    script: Sleeper, character: Character
) -> Steps[Outcome | dict[str, Any]]:
    """The extraction, only when a compaction will follow."""
    job = due(script, SLEEP, COUNT)
    if job is None:
        return Skipped("no compaction will follow")
    report: Outcome | dict[str, Any] = yield job.extract(script.runtime.is_called)
    return report


def compact_if_needed(script: Sleeper, character: Character) -> "Deferred[Outcome] | Outcome":
    """The compaction at the sleep threshold, or by count."""
    job = due(script, COUNT) or Compaction(script, SLEEP)
    if reason := why_not(script, job.trigger):
        return Skipped(reason)
    return compact_asleep(job)


SLEEP_STEPS: tuple[SleepStep, ...] = (
    SleepStep("entities_met", entities_met),
    SleepStep("memory_links", consolidate_memories_to_semantic),
    SleepStep("entity_consolidation", run_entity_consolidation_batch),
    SleepStep("orphaned_links", prune_orphaned_memory_links),
    SleepStep("episodic_prune", prune_episodic_index),
    SleepStep(
        "stale_conversations",
        lambda script, _: clear_stale_conversations(
            reversed(script.history.messages()), script.now()
        ),
    ),
    SleepStep("pre_compaction_extraction", extract_before_compaction, every_tick=True),
    SleepStep("context_compaction", compact_if_needed, every_tick=True),
)


def run_sleep_tick(
    script: Sleeper, character: Character, first: bool = True
) -> "Deferred[dict[str, Any]]":
    """Run the sleep cycle; after the first tick of a sleep only the steps that repeat.

    It runs under the turn lock of the caller, or takes it if it is free. Once somebody speaks to
    the sleeper it ends: the next sleep goes on.

    Returns:
        A Deferred that fires with one entry a step, by name; a step that failed has
        ``{"success": False, "error", "failure"}``: what it says, and its class.
    """
    report: dict[str, Any] = {}

    @inlineCallbacks
    def run() -> Steps[dict[str, Any]]:
        for step in SLEEP_STEPS:
            if not first and not step.every_tick:
                continue
            yield script.breathe()
            if script.runtime.is_called():
                break
            try:
                result = yield maybeDeferred(step.run, script, character)
                if isinstance(result, Outcome):
                    result = as_result(result)
                report[step.name] = {"success": True, **result}
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - one failing step must not stop the rest
                script.log_error(f"sleep step `{step.name}`", error)
                failure = type(error).__name__
                told = {"error": str(error) or failure, "failure": failure}
                report[step.name] = {"success": False, **told}
        return report

    return script.runtime.lock.run_here(run)


def without_words(steps: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The report of a cycle as it is stored: nothing in it repeats what anybody said.

    It has figures, ids, times and words of the package's own.
    """
    return {
        name: {
            key: value
            for key, value in as_dict(step).items()
            if isinstance(value, int | float) or (key in _FIXED and isinstance(value, str))
        }
        for name, step in steps.items()
    }
