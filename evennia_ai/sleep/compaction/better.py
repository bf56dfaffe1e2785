"""Better summaries behind an emergency, in the places of its offline extracts.

They are made from the archived messages, never from the extracts. Nodes of the tree and long-term
summaries that rest on an extract are made again above them. No message moves.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import Message, new_id, total_tokens, utc_iso, widest_view_tokens
from evennia_ai.history.records import ABSORBED, COMMITTED, CompactionRecord, SummaryRecord
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.summary import LEVELS, summarise, summary_levels
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import CompactionCommit
from evennia_ai.sleep.compaction.extraction import (
    EMERGENCY_MAX_ITERATIONS,
    run_pre_compaction_extraction,
)
from evennia_ai.sleep.compaction.folding import Fold, cascade, in_use, marker_of, new_record
from evennia_ai.sleep.compaction.plan import Plan, spliced
from evennia_ai.sleep.compaction.publishing import begin_intent, drop_intent, publish_pending
from evennia_ai.sleep.compaction.receipts import announce_better
from evennia_ai.sleep.compaction.retention_gate import retained
from evennia_ai.sleep.compaction.triggers import usage_with

TRIGGER = "better"
EXTRACTIVE = LEVELS[-1]
# The first wait after a try in vain, in seconds; each further one is four times as long.
WAIT_S, MOST_WAIT_S = 60.0, 3600.0
# Tries in vain, with the facts extracted, after which the extracts stay.
MOST_TRIES = 6


class _Untimely(Exception):
    """No better summary could be made now."""


def owed_compactions(script: Assistant) -> list[CompactionRecord]:
    """The emergencies that still wait for better summaries, oldest first."""
    owed = script.state.owed
    if not owed:
        return []
    known = script.history.compactions()
    return [record for record in known if record.id in owed and record.status == COMMITTED]


def is_better_due(script: Assistant) -> bool:
    """Whether better summaries are owed and may be tried now."""
    config, (_, due) = script.config, script.runtime.better_tries
    if not script.state.owed or script.now() < due:
        return False
    if not (config.compact_enabled and config.compact_auto) or script.state.hold:
        return False
    return not script.over_spend()


@inlineCallbacks
def better_summaries(
    script: Assistant, character: Character, beside: bool = False
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Extract facts behind emergencies, and replace their extracts by better summaries.

    Args:
        script: The assistant's script.
        character: Its body.
        beside: Whether turns go on beside it. If not, call it under the turn lock.

    Returns:
        A Deferred that fires with a dict as of `compact_conversation_history`.
    """
    if not is_better_due(script):
        return {"success": True, "skipped": True, "reason": "no better summary is due"}
    locked = script.between_turns if beside else maybeDeferred
    try:
        yield _extract(script, character, beside)
        result = yield _replace(script, character, locked)
    except (ModelError, _Untimely) as error:
        tries = script.runtime.better_tries[0] + 1
        wait_s = min(MOST_WAIT_S, WAIT_S * 4 ** (tries - 1))
        script.runtime.better_tries = tries, script.now() + wait_s
        if tries >= MOST_TRIES and all(script.state.owed.values()):
            script.trouble(f"the extracts of an emergency stay: {error}")
            _close(script)
        return {"success": False, "skipped": False, "error": str(error)}
    return dict(result)


def _close(script: Assistant) -> None:
    script.state.owe({})
    script.runtime.better_tries = (0, 0.0)


@inlineCallbacks
def _extract(
    script: Assistant, character: Character, beside: bool
) -> Generator[Deferred[Any], Any, None]:
    """Extract facts from the messages that left with the emergencies, once."""
    for record in owed_compactions(script):
        if script.state.owed.get(record.id):
            continue
        report = yield run_pre_compaction_extraction(
            script,
            character,
            EMERGENCY_MAX_ITERATIONS,
            TRIGGER,
            beside,
            script.memory.quarantine.messages(_left_with(script, record)),
        )
        if not report["success"]:
            raise _Untimely(report.get("error", "no model answered"))
        script.state.owe({**script.state.owed, record.id: True})


def _left_with(script: Assistant, record: CompactionRecord) -> list[Message]:
    """The messages that left with a compaction, oldest first, without those forgotten since."""
    segments = filter(None, map(script.history.segment, record.segments))
    known = {message.id: message for segment in segments for message in segment.messages}
    return [known[each] for each in record.leaving if each in known]


@inlineCallbacks
def _replace(
    script: Assistant, character: Character, locked: Callable[[Callable[[], Any]], Deferred[Any]]
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """The summaries, then the commit."""
    owed = owed_compactions(script)
    made_then = {each for record in owed for each in record.summaries}
    before = script.history.summaries()
    extracts = [r for r in before if r.id in made_then and r.level == EXTRACTIVE]
    audiences = dict.fromkeys(record.audience for record in extracts)
    if summary_levels(script)[0][1] == OFFLINE_MODEL:
        audiences = {}
    begin_intent(script, TRIGGER)
    folds: list[Fold] = []
    try:
        for audience in audiences:
            made = yield _refolded(script, character, audience, {r.id for r in extracts})
            folds += [made] if made else []
        result: dict[str, Any] = yield locked(partial(_commit, script, folds, owed, before))
    finally:
        if drop_intent(script):
            publish_pending(script)
    if not result["skipped"]:
        publish_pending(script)
    return result


@inlineCallbacks
def _refolded(
    script: Assistant, character: Character, audience: str, extracts: set[str]
) -> Generator[Deferred[Any], Any, Fold | None]:
    """One audience's summaries made again; None if none of its extracts is in use any more."""
    known = in_use(script, audience)
    leaves = [r for r in known if r.tier in ("recent", "single")]
    made = Fold(audience, (), "")
    if leaves and leaves[-1].tier == "single":
        former = _chain(known, leaves[-1], extracts)
    else:
        former = [r for r in leaves if r.id in extracts and r.tier == "recent"]
    if not former:
        return None
    better: dict[str, SummaryRecord] = {}
    for extract in former:
        better[extract.id] = yield _better(script, character, made, extract, better)
    newest = leaves[-1]
    if newest.tier == "recent":
        yield _remade_above(script, character, made, known, better)
    if newest.id in better:
        count = sum(len(r.source_ids) for r in former) if newest.tier == "single" else 0
        record = made.records[better[newest.id].id]
        made.markers.append(marker_of(script, made, record, count or len(made.leaving)))
    return made


def _chain(
    known: Sequence[SummaryRecord], newest: SummaryRecord, extracts: set[str]
) -> list[SummaryRecord]:
    """With one summary an audience: the extracts at the end of the chain, oldest first."""
    records, found = {record.id: record for record in known}, list[SummaryRecord]()
    at: SummaryRecord | None = newest
    while at is not None and at.id in extracts and at.tier == "single" and at not in found:
        found.insert(0, at)
        at = records.get(at.earlier_ids[0]) if len(at.earlier_ids) == 1 else None
    return found


@inlineCallbacks
def _better(
    script: Assistant,
    character: Character,
    made: Fold,
    extract: SummaryRecord,
    better: dict[str, SummaryRecord],
) -> Generator[Deferred[Any], Any, SummaryRecord]:
    """The record that takes an extract's place; both are put into the fold."""
    segment = script.history.segment(extract.segment or "")
    if segment is None:
        raise _Untimely(f"archive segment `{extract.segment}` is missing")
    made.leaving, made.generation = segment.messages, extract.generation
    earlier_ids = tuple(better[e].id if e in better else e for e in extract.earlier_ids)
    texts = (made.records.get(e) or script.history.summary(e) for e in earlier_ids)
    earlier = "\n".join(record.text for record in texts if record)
    told = script.memory.quarantine.messages(segment.messages)
    summary = yield summarise(script, told, earlier)
    if summary.level == EXTRACTIVE:
        raise _Untimely("no model gave a summary: " + "; ".join(summary.rejected))
    kept = yield retained(script, character, told, earlier, summary, made.audience)
    record = new_record(script, made, summary, kept, extract.tier)
    record = replace(
        record,
        source_ids=extract.source_ids,
        segment=extract.segment,
        created_at=extract.created_at,
        earlier_ids=earlier_ids,
        replaces=(extract.id,),
    )
    made.put(record)
    made.absorb([extract], record.id)
    made.absorb([made.records[e] for e in earlier_ids if e in made.records], record.id)
    made.summaries += filter(None, (summary, kept.asked_again))
    made.score, made.in_summary = min(made.score, kept.score), min(made.in_summary, kept.in_summary)
    made.query = made.query or " ".join(kept.named)
    made.corrected[extract.id] = record.text
    return record


@inlineCallbacks
def _remade_above(
    script: Assistant,
    character: Character,
    made: Fold,
    known: Sequence[SummaryRecord],
    better: dict[str, SummaryRecord],
) -> Generator[Deferred[Any], Any, None]:
    """Make the nodes and the long-term summary again that rest on what was replaced."""
    newest = [r for r in known if r.tier in ("recent", "single")][-1]
    stale = set(better)
    nodes = sorted((r for r in known if r.tier == "node"), key=lambda r: r.tree_level)
    for node in nodes:
        if not stale.isdisjoint(node.child_ids):
            stale.add(node.id)
    dropped = [node for node in nodes if node.id in stale]
    older = [
        made.records[better[r.id].id] if r.id in better else r
        for r in known
        if r.id != newest.id and r not in dropped
    ]
    if not any(record.tier in ("recent", "node", "single") for record in older):
        return
    yield cascade(script, character, made, older)
    long_id = str(made.markers[-1].metadata["summary_id"])
    if any(summary.level == EXTRACTIVE for summary in made.summaries):
        raise _Untimely("no model gave a summary of summaries")
    made.absorb(dropped, long_id)
    long = made.records[long_id]
    made.put(
        replace(
            long,
            replaces=tuple(node.id for node in dropped),
        )
    )


def _commit(
    script: Assistant,
    folds: Sequence[Fold],
    owed: Sequence[CompactionRecord],
    before: Sequence[SummaryRecord],
) -> dict[str, Any]:
    """Store the better summaries, if nothing has changed meanwhile, and report."""
    if list(script.history.summaries()) != list(before):
        raise _Untimely("the summaries have changed meanwhile")
    if not folds:
        _close(script)
        return {"success": True, "skipped": True, "reason": "no extract is in use any more"}
    live = script.history.messages()
    plan = _plan(live, folds)
    markers = [marker for made in folds for marker in made.markers]
    after = spliced(live, plan, markers)
    config = script.config
    if usage_with(script, widest_view_tokens(after)) >= config.compact_emergency_threshold:
        raise _Untimely("the better summaries would leave no room")
    at = utc_iso(script.now())
    result = _result(folds, owed, script.history.tokens(), total_tokens(after))
    record = CompactionRecord(id=new_id("c"), at=at, trigger=TRIGGER, result=result)
    with script.history.store.transaction():
        CompactionCommit(script)(plan, folds, record)
        script.state.owe({})
    script.runtime.better_tries = (0, 0.0)
    result = {**result, "compaction_id": record.id}
    announce_better(script, record, result)
    return result


def _plan(live: Sequence[Message], folds: Sequence[Fold]) -> Plan:
    """What leaves: the markers of the summaries that others take over."""
    gone = {r.id for made in folds for r in made.records.values() if r.status == ABSORBED}
    folded = tuple(m for m in live if m.is_summary and m.metadata.get("summary_id") in gone)
    return Plan((), folded, tuple(m for m in live if m not in folded))


def _result(
    folds: Sequence[Fold], owed: Sequence[CompactionRecord], original: int, new: int
) -> dict[str, Any]:
    """The figures of a commit."""
    summaries = [summary for made in folds for summary in made.summaries]
    better = [r for made in folds for r in made.records.values() if r.replaces and r.segment]
    return {
        "success": True,
        "skipped": False,
        "better_for": [record.id for record in owed],
        "compacted_messages": 0,
        "summarised_messages": sum(len(record.source_ids) for record in better),
        "original_tokens": original,
        "new_tokens": new,
        "summary_id": better[0].id,
        "summary_ids": [record.id for record in better],
        "level": max((made.level for made in folds), key=LEVELS.index),
        "retention": round(min(made.score for made in folds), 3),
        "in_summary": round(min(made.in_summary for made in folds), 3),
        "drift": max(made.drift for made in folds),
        "generation": max(made.generation for made in folds),
        "query": next((made.query for made in folds if made.query), ""),
        "token_usage": {
            "prompt_tokens": sum(s.prompt_tokens for s in summaries),
            "completion_tokens": sum(s.completion_tokens for s in summaries),
        },
    }
