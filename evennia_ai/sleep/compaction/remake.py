"""Summaries made again: behind an emergency's extract, or without what was forgotten.

A record keeps its id and its sources; only what it says changes, and with it the markers, the
journal entry and the summaries above that were made from it. No message moves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.messages import new_id, utc_iso
from evennia_ai.history.records import (
    COMMITTED,
    ROLLED_BACK,
    CompactionRecord,
    Report,
    SummaryRecord,
)
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.summary import LEVELS, summary_levels
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import commit_remade
from evennia_ai.sleep.compaction.compact import at_work, figures, longer, summary_cap
from evennia_ai.sleep.compaction.due import BETTER
from evennia_ai.sleep.compaction.extraction import (
    EMERGENCY_MAX_ITERATIONS,
    Extraction,
    extracted,
    write_notes,
)
from evennia_ai.sleep.compaction.folding import Fold
from evennia_ai.sleep.compaction.plan import Plan
from evennia_ai.sleep.compaction.report import Done, Failed, Outcome, Skipped, announce

EXTRACTIVE = LEVELS[-1]
# Tries in vain, with the facts extracted, after which the extracts stay.
MOST_TRIES = 6

Locked = Callable[[Callable[[], Any]], Deferred[Any]]


class _Untimely(Exception):
    """No better summary could be made now."""


@inlineCallbacks
def remade(
    script: Assistant,
    record: SummaryRecord,
    changed: Mapping[str, SummaryRecord],
    written: ModelReply | None = None,
) -> Steps[tuple[SummaryRecord, Fold]]:
    """A summary made again from its messages, or from the summaries below it.

    Args:
        script: The assistant's script.
        record: What it is now.
        changed: Summaries below it that are made again already, by id.
        written: A reply that may hold it already.

    Returns:
        A Deferred that fires with its new record and a fold that holds the figures. It fails with
        `ModelError` where no level gives one.
    """
    history = script.history
    cap = summary_cap(script, Plan((), (), history.messages()))
    fold = Fold(script, record.audience, (), cap, generation=record.generation)
    if record.segment:
        segment = history.segment(record.segment)
        if segment is None:
            raise ModelError(f"archive segment `{record.segment}` is missing")
        fold.leaving = segment.messages
        summary, text = yield fold.recent(written=written)
    else:
        below = (changed.get(each) or history.summary(each) for each in record.child_ids)
        summary, text = yield fold.merged([each for each in below if each])
    new = replace(
        record,
        text=text.text,
        level=summary.level,
        coverage=round(text.share, 4),
        unsupported=summary.unsupported,
        extra={
            **record.extra,
            "model": summary.model,
            "prompt_tokens": summary.prompt_tokens,
        },
    )
    return new, fold


def owed_compactions(script: Assistant) -> list[CompactionRecord]:
    """The emergencies that still wait for better summaries, oldest first."""
    owed = script.state.owed
    records = script.history.compactions() if owed else ()
    return [record for record in records if record.id in owed and record.status == COMMITTED]


def is_better_due(script: Assistant) -> bool:
    """Whether better summaries are owed and may be tried now."""
    config, (_, at) = script.config, script.runtime.better_tries
    if not script.state.owed or script.now() < at:
        return False
    if not (config.compact_enabled and config.compact_auto) or script.state.hold:
        return False
    return not script.over_spend()


@inlineCallbacks
def better_summaries(
    script: Assistant, character: Character, background: bool = False
) -> Steps[Outcome]:
    """Extract facts behind emergencies, and make their extracts again, by a model.

    `background` is whether turns go on meanwhile. If not, call it under the turn lock. Fires with
    the outcome.
    """
    if not is_better_due(script):
        return Skipped("no better summary is due")
    locked: Locked = script.between_turns if background else maybeDeferred
    try:
        outcome: Outcome = yield _better(script, character, locked)
    except CancelledError:
        raise
    except Exception as error:
        tries, _ = script.runtime.better_tries = longer(script.runtime.better_tries, script.now())
        if not isinstance(error, ModelError | _Untimely):
            raise
        if tries >= MOST_TRIES and all(script.state.owed.values()):
            script.trouble(f"the extracts of an emergency stay: {error}")
            _close(script)
        return Failed(str(error))
    return outcome


def _close(script: Assistant) -> None:
    script.state.owed = {}
    script.runtime.better_tries = (0, 0.0)


@inlineCallbacks
def _better(script: Assistant, character: Character, locked: Locked) -> Steps[Outcome]:
    """The facts, the summaries from below upward, then the commit."""
    owed, before = owed_compactions(script), script.history.summaries()
    then = {each for record in owed for each in record.summaries}
    extracts = {r.id: r for r in before if r.id in then and r.level == EXTRACTIVE}
    written = yield _facts(script, character, owed, extracts, locked)
    if not extracts or summary_levels(script)[0][1] == OFFLINE_MODEL:
        _close(script)
        return Skipped("no extract is in use any more")
    stale = dict(extracts)
    for each in sorted(before, key=lambda r: (r.tier == "long", r.tree_level)):
        if each.status != ROLLED_BACK and not stale.keys().isdisjoint(each.child_ids):
            stale[each.id] = each
    order = sorted(
        stale.values(), key=lambda r: (r.segment is None, r.tier == "long", r.tree_level, r.id)
    )
    records: dict[str, SummaryRecord] = {}
    folds: list[Fold] = []
    with at_work(script, BETTER):
        for former in order:
            yield script.breathe()
            new, fold = yield remade(script, former, records, written.get(former.id))
            if any(summary.model == OFFLINE_MODEL for summary in fold.summaries):
                raise _Untimely("no model gave a summary")
            records[new.id] = new
            folds.append(fold)
        outcome: Outcome = yield locked(partial(_commit, script, records, folds, before))
    return outcome


@inlineCallbacks
def _facts(
    script: Assistant,
    character: Character,
    owed: Sequence[CompactionRecord],
    extracts: Mapping[str, SummaryRecord],
    locked: Locked,
) -> Steps[dict[str, ModelReply]]:
    """Extract facts from the messages that left with the emergencies, once, and store them.

    Fires with the summaries with which the passes closed, by the ids of the extracts.
    """
    written: dict[str, ModelReply] = {}
    for record in owed:
        if script.state.owed.get(record.id):
            continue
        known = [extracts[each] for each in record.summaries if each in extracts]
        segments = {each.id: script.history.segment(each.segment) for each in known if each.segment}
        parts = {key: segment.messages for key, segment in segments.items() if segment}
        extraction: Extraction = yield extracted(
            script, character, parts, EMERGENCY_MAX_ITERATIONS, BETTER, summarises=True
        )
        yield locked(partial(_store_facts, script, record, extraction))
        if extraction.error:
            raise _Untimely(extraction.error)
        written |= extraction.summaries
    return written


def _store_facts(script: Assistant, record: CompactionRecord, extraction: Extraction) -> None:
    """Store what was extracted behind an emergency; a rollback of that one takes it back."""
    with script.history.store.transaction():
        if ids := write_notes(script, extraction.notes):
            script.history.save_compaction(replace(record, entries=(*record.entries, *ids)))
        if not extraction.error:
            script.state.owed = {**script.state.owed, record.id: True}


def _commit(
    script: Assistant,
    records: Mapping[str, SummaryRecord],
    folds: Sequence[Fold],
    before: Sequence[SummaryRecord],
) -> Outcome:
    """Store the better summaries, if nothing has changed meanwhile, and report."""
    if list(script.history.summaries()) != list(before):
        raise _Untimely("the summaries have changed meanwhile")
    leaves = [record for record in records.values() if record.segment] or list(records.values())
    report = Report(
        summarised_messages=sum(len(record.source_ids) for record in leaves),
        original_tokens=script.history.tokens(),
        summary_ids=tuple(record.id for record in leaves),
        **figures(folds),
    )
    at = utc_iso(script.now())
    record = CompactionRecord(id=new_id("c"), at=at, trigger=BETTER, report=report)
    record = commit_remade(script, list(records.values()), record)
    script.runtime.better_tries = (0, 0.0)
    announce(script, record)
    return Done(record)
