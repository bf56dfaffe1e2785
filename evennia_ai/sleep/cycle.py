"""The sleep cycle: memory work and compaction, as a list of named steps.

Adding a step is adding a line to `SLEEP_STEPS`. A failing step is reported, and the next runs.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.background import Steps, pause
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.episodic_index import (
    clear_stale_conversations,
    prune_low_importance_entries,
)
from evennia_ai.rag_memory.profiles import note_met, run_entity_consolidation_batch
from evennia_ai.sleep.compaction.compact import Compaction, due
from evennia_ai.sleep.compaction.due import COUNT, SLEEP
from evennia_ai.sleep.compaction.remake import better_summaries
from evennia_ai.sleep.compaction.report import Outcome, Skipped, as_result
from evennia_ai.sleep.compaction.rollback import empty_outbox
from evennia_ai.sleep.consolidation import (
    consolidate_memories_to_semantic,
    prune_orphaned_memory_links,
)


@dataclass(frozen=True)
class SleepStep:
    """One step of the cycle: its key in the report and what it runs."""

    name: str
    # Takes script and character; returns a dict or an `Outcome`, or a Deferred of one.
    run: Callable[[Assistant, Character], object]
    every_tick: bool = False  # whether it runs at each sleeping tick, not once a sleep


@inlineCallbacks
def prune_episodic_index(script: Assistant, character: Character) -> Steps[dict[str, int]]:
    """Take old entries of low importance out of retrieval; the journal keeps them.

    The same goes for withdrawn ones, in case a crash kept the index from forgetting them. Pauses
    while it looks through a long journal. Fires with ``{"pruned", "kept"}``.
    """
    counts, gone, journal = Counter(pruned=0, kept=0), list[str](), character.journal
    for key in reversed(journal.pages()):  # the newest first: it may be turned meanwhile
        entries = journal.page(key).entries
        result = prune_low_importance_entries([e for e in entries if not e.withdrawn], script.now())
        gone += [*result.pop("pruned_ids"), *(entry.id for entry in entries if entry.withdrawn)]
        counts.update(result)
        yield pause()
    yield script.memory.forget(gone)
    return dict(counts)


@inlineCallbacks
def extract_before_compaction(
    script: Assistant, character: Character
) -> Steps[Outcome | dict[str, Any]]:
    """The extraction, only when a compaction will follow; what it gives the compaction stores."""
    script.runtime.prepared, job = None, due(script, SLEEP, COUNT)
    if job is None:
        return Skipped("no compaction will follow")
    yield job.extract()
    script.runtime.prepared = job
    return job.extraction.report


def compact_if_needed(script: Assistant, character: Character) -> "Deferred[Outcome] | Outcome":
    """The compaction at the sleep threshold."""
    if not script.config.compact_auto:
        return Skipped("automatic compaction is off")
    job, script.runtime.prepared = script.runtime.prepared, None
    return (job or Compaction(script, SLEEP)).run()


def link_memories(script: Assistant, character: Character) -> Deferred[dict[str, int]]:
    """Make semantic memory hold what the journal says, and nothing that was taken back."""
    done = empty_outbox(script)
    return done.addCallback(lambda _: consolidate_memories_to_semantic(script, character))


SLEEP_STEPS: tuple[SleepStep, ...] = (
    SleepStep("entities_met", note_met),
    SleepStep("memory_links", link_memories),
    SleepStep("entity_consolidation", run_entity_consolidation_batch),
    SleepStep("orphaned_links", prune_orphaned_memory_links),
    SleepStep("episodic_prune", prune_episodic_index),
    SleepStep(
        "stale_conversations",
        lambda script, _: clear_stale_conversations(
            reversed(script.history.messages()), script.now()
        ),
    ),
    SleepStep("better_summaries", lambda script, _: better_summaries(script)),
    SleepStep("pre_compaction_extraction", extract_before_compaction, every_tick=True),
    SleepStep("context_compaction", compact_if_needed, every_tick=True),
)


def run_sleep_tick(
    script: Assistant, character: Character, first: bool = True
) -> "Deferred[dict[str, Any]]":
    """Run the sleep cycle; after the first tick of a sleep only the steps that repeat.

    It runs under the turn lock of the caller, or takes it if it is free.

    Returns:
        A Deferred that fires with one entry a step, by name; a step that failed has
        ``{"success": False, "error"}``.
    """
    return script.runtime.lock.run_here(partial(_run_steps, script, character, first))


@inlineCallbacks
def _run_steps(script: Assistant, character: Character, first: bool) -> Steps[dict[str, Any]]:
    report: dict[str, Any] = {}
    for step in SLEEP_STEPS:
        if not first and not step.every_tick:
            continue
        yield script.breathe()
        try:
            result = yield maybeDeferred(step.run, script, character)
            result = as_result(result) if isinstance(result, Outcome) else result
            report[step.name] = {"success": True, **result}
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - one failing step must not stop the rest
            script.log_error(f"sleep step `{step.name}`", error)
            report[step.name] = {"success": False, "error": str(error) or type(error).__name__}
    return report
