"""One compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking if that is enough, the extraction (by the
callers, with `prepared`), summaries scope by scope, one commit, what follows from it. Nothing is
stored until all is there.
"""

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC, most_seen
from evennia_ai.history.masking import masked, plan_masks, unmasked
from evennia_ai.history.messages import (
    Message,
    new_id,
    speakers,
    total_tokens,
    utc_iso,
    widest_view_tokens,
)
from evennia_ai.history.records import CompactionRecord
from evennia_ai.llm_interaction.prompt import context_caps, context_usage, room_of
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import CompactionCommit
from evennia_ai.sleep.compaction.due import (
    COUNT,
    EMERGENCY,
    MANUAL,
    SLEEP,
    firing,
    kept_tokens,
    make_plan,
    usage_of,
)
from evennia_ai.sleep.compaction.extraction import Extraction, Note, extracted
from evennia_ai.sleep.compaction.folding import Fold, archived, fold
from evennia_ai.sleep.compaction.plan import Plan, spliced
from evennia_ai.sleep.compaction.publishing import begin_intent, drop_intent, publish_pending
from evennia_ai.sleep.compaction.receipts import announce

# Masks are enough if they bring usage this far under the trigger.
HEADROOM = 0.9
# Old outputs of tools that are larger than this are masked.
MASKED_TOKENS = 200
# The first wait after an automatic compaction in vain, in seconds; each further one is four times
# as long.
WAIT_S, MOST_WAIT_S = 60.0, 3600.0
# Staff are told once so many have failed in a row.
TELL_AFTER = 3


@dataclass(frozen=True)
class Prepared:
    """A plan, what fired it, and what the extraction saves of what leaves by it."""

    plan: Plan
    trigger: str
    extraction: Extraction


@inlineCallbacks
def prepared(
    script: Assistant,
    character: Character,
    plan: Plan,
    trigger: str,
    max_iterations: int,
    instructions: str | None = None,
) -> Generator[Deferred[Any], Any, Prepared]:
    """The extraction before a compaction, if that will call a model; fires with a `Prepared`."""
    extraction = Extraction(stopped_by="not needed")
    is_enough = trigger != MANUAL and _masked_history(script, plan, trigger) is not None
    if not (script.over_spend() or is_enough):
        parts = {scope: plan.part(scope) for scope in plan.summarised}
        extraction = yield extracted(
            script, character, parts, max_iterations, trigger, instructions, summarises=True
        )
    return Prepared(plan, trigger, extraction)


@inlineCallbacks
def compact_conversation_history(
    script: Assistant,
    character: Character,
    force: bool = False,
    instructions: str | None = None,
    trigger: str | None = None,
    beside: bool = False,
    extracts: bool = False,
    prepared: Prepared | None = None,
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Fold the older part of the history into summaries.

    Args:
        script: The assistant's script.
        character: Its body.
        force: Skip the threshold; never `compact_enabled` nor the preserve window.
        instructions: Additional instructions for the summary.
        trigger: What fired (`due.TRIGGERS`); by default ``manual`` if forced, else ``sleep``.
        beside: Whether turns go on beside it. If not, call it under the turn lock.
        extracts: Whether to ask no model but the offline one, as nobody may wait. Better
            summaries are then owed (`StateHandler.owed`).
        prepared: The plan to carry out, and what was extracted for it.

    Returns:
        A Deferred that fires with a dict: `success`, `skipped` and `reason`, or `error`, or the
        figures of what was done. Nothing is raised for a failing model.
    """
    trigger = trigger or (MANUAL if force else SLEEP)
    locked = script.between_turns if beside else maybeDeferred
    try:
        result = yield locked(partial(_planned_or_masked, script, force, trigger, prepared))
        if isinstance(result, Plan):
            yield script.breathe()
            extraction = prepared.extraction if prepared else Extraction()
            result = yield _compact(
                script, result, extraction, instructions, trigger, extracts, locked
            )
    except CancelledError:
        raise  # somebody stopped it: that says nothing about its use
    except Exception:
        if trigger != MANUAL:
            wait_longer(script)
        raise
    if not result["success"]:
        if trigger != MANUAL:
            wait_longer(script)
    elif not result.get("skipped"):
        script.runtime.compaction_waits = 0, 0.0
    return dict(result)


def wait_longer(script: Assistant) -> None:
    """Let automatic compactions wait after one that failed, longer each time."""
    tries = script.runtime.compaction_waits[0] + 1
    wait_s = min(MOST_WAIT_S, WAIT_S * 4 ** (tries - 1))
    script.runtime.compaction_waits = tries, script.now() + wait_s
    if tries == TELL_AFTER:
        script.alert(
            f"{tries} compactions in a row failed; the next one is tried in {wait_s / 60:.0f} "
            "minutes. See `aistatus`."
        )


def _planned_or_masked(
    script: Assistant, force: bool, trigger: str, prepared: Prepared | None
) -> Plan | dict[str, Any]:
    """The plan, or the report if there is nothing to summarise; masks are committed at once."""
    reason = _skip_reason(script, force, trigger)
    if reason is not None:
        return skipped(reason)
    plan = prepared.plan if prepared else make_plan(script, MANUAL if force else trigger)
    if plan.empty:
        held = {"held_messages": len(plan.held)} if plan.held else {}
        return {**skipped("history within preserve window"), **held}
    enough = _masked_history(script, plan, trigger) if trigger != MANUAL else None
    return plan if enough is None else _mask(script, plan, trigger, *enough)


def _skip_reason(script: Assistant, force: bool, trigger: str) -> str | None:
    if not script.config.compact_enabled:
        return "compaction disabled"
    if not script.history.messages():
        return "no history"
    share, threshold = context_usage(script), _threshold(script, trigger)
    is_counted = trigger == COUNT and firing(script, COUNT)
    if not force and share < threshold and not is_counted:
        return f"below threshold ({share:.1%} < {threshold:.1%})"
    if not force and script.state.hold and share < 1.0:
        return "automatic compaction is held after a rollback"
    return None


def _threshold(script: Assistant, trigger: str) -> float:
    """The usage at which this trigger fires."""
    config = script.config
    is_awake = trigger == EMERGENCY
    return config.compact_emergency_threshold if is_awake else config.compact_sleep_threshold


def skipped(reason: str) -> dict[str, Any]:
    """The report of a step that had nothing to do."""
    return {"success": True, "skipped": True, "reason": reason}


def _failed(detail: str) -> dict[str, Any]:
    error = "summary generation failed"
    return {"success": False, "skipped": False, "error": error, "detail": detail}


def _masked_history(
    script: Assistant, plan: Plan, trigger: str
) -> tuple[list[Message], list[str]] | None:
    """The history with old tool outputs masked, and their ids; None if that is not enough.

    Masks are no relief if there are too many messages.
    """
    if trigger == COUNT:
        return None
    at = utc_iso(script.now())
    ids = set(plan_masks(plan.leaving, len(plan.leaving), MASKED_TOKENS))
    history = [masked(m, at, script.count) if m.id in ids else m for m in script.history.messages()]
    usage = usage_of(script, widest_view_tokens(history))
    if not ids or usage >= _threshold(script, trigger) * HEADROOM:
        return None
    return history, sorted(ids)


def _mask(
    script: Assistant, plan: Plan, trigger: str, history: Sequence[Message], ids: Sequence[str]
) -> dict[str, Any]:
    """Commit masks and report."""
    before, after = script.history.tokens(), total_tokens(history)
    result = {
        "success": True,
        "skipped": False,
        "level": "masked",
        "masked_messages": len(ids),
        "compacted_messages": 0,
        "preserved_messages": len(history),
        "original_tokens": before,
        "new_tokens": after,
        "reduction_pct": _pct(before, after),
    }
    at = utc_iso(script.now())
    record = CompactionRecord(
        id=new_id("c"), at=at, trigger=trigger, result=result, masked=tuple(ids)
    )
    CompactionCommit(script).masks(history, record)
    result = {**result, "compaction_id": record.id}
    announce(script, record, result)
    return result


@inlineCallbacks
def _compact(
    script: Assistant,
    plan: Plan,
    extraction: Extraction,
    instructions: str | None,
    trigger: str,
    extracts: bool,
    locked: Callable[[Callable[[], Any]], Deferred[Any]],
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Summaries first, then the commit, then what follows from it."""
    original = script.history.tokens()
    cap, folds = summary_cap(script, plan), list[Fold]()
    try:
        begin_intent(script, trigger, extracts)
        yield script.breathe()
        for scope in plan.scopes:
            leaving = plan.part(scope)
            if scope in plan.unsummarised:
                made = yield archived(script, scope, leaving)
            else:
                told = [note.text for note in extraction.notes if note.scope == scope]
                written = extraction.summaries.get(scope)
                made = yield fold(script, scope, leaving, cap, told, instructions, written)
            yield script.breathe()
            former = [m for m in plan.folded if m.audience == scope]
            if total_tokens(made.markers) < total_tokens((*leaving, *former)):
                folds.append(made)
            else:  # lines so short that a summary is as long
                plan = plan.without(scope)
        if not folds:
            return _failed("the summaries would be as long as what they stand for")
        if not script.config.compact_enabled:  # switched off while the model was writing
            return skipped("compaction disabled")
        result: dict[str, Any] = yield locked(
            partial(_commit, script, plan, folds, extraction.notes, original, trigger)
        )
    except ModelError as error:
        script.log_error("compaction", error)
        return _failed(str(error))
    finally:
        if drop_intent(script):
            publish_pending(script)
    if result["success"]:
        publish_pending(script)  # not waited for: a store that hangs must not hold up a turn
    return result


def summary_cap(script: Assistant, plan: Plan) -> int:
    """Most tokens of each summary, so that all that one reader sees share their part of the room.

    A reader sees two tiers of each scope.
    """
    markers = [m for m in plan.staying if m.is_summary]
    scopes = {PUBLIC, *plan.summarised, *(m.audience for m in markers)}
    most = room_of(script).summary_cap(kept_tokens(plan), 2 * most_seen(scopes))
    return min(context_caps(script).summary, most)


def _commit(
    script: Assistant,
    plan: Plan,
    folds: Sequence[Fold],
    notes: Sequence[Note],
    original: int,
    trigger: str,
) -> dict[str, Any]:
    """Carry the plan out and report. The history may have grown meanwhile; it is read again."""
    live = script.history.messages()
    if overtaken := _overtaken(live, plan):
        return _failed(overtaken)
    now = script.history.tokens()
    after = total_tokens(spliced(live, plan, [m for made in folds for m in made.markers]))
    result = _result(plan, folds, original, after - (now - original))
    record = CompactionRecord(
        id=new_id("c"),
        at=utc_iso(script.now()),
        trigger=trigger,
        result=result,
        leaving=tuple(message.id for message in plan.leaving),
        speakers=speakers(plan.leaving),
    )
    CompactionCommit(script)(plan, folds, record, notes)
    result = {**result, "compaction_id": record.id}
    announce(script, record, result)
    return result


def _overtaken(live: Sequence[Message], plan: Plan) -> str:
    """Why a plan no longer fits the history; empty if it does.

    A mask or a new token count of a message is no change.
    """
    known = {message.id: message for message in live}
    for message in (*plan.leaving, *plan.folded):
        now = known.get(message.id)
        if now is None:
            return "what was to leave has left meanwhile, by another compaction or a rollback"
        if now != message and _raw_text(now) != _raw_text(message):
            return "a message that was to leave was changed meanwhile; try again"
    return ""


def _raw_text(message: Message) -> str:
    """A message as JSON, in which tuples equal the lists that a database makes of them."""
    raw = {key: value for key, value in unmasked(message).to_dict().items() if key != "tokens"}
    return json.dumps(raw, sort_keys=True, default=str)


def figures(folds: Sequence[Fold]) -> dict[str, Any]:
    """What the summaries of some folds are like, for a compaction's report."""
    summaries = [summary for made in folds for summary in made.summaries]
    return {
        "level": max((made.level for made in folds), key=LEVELS.index),
        "coverage": round(min(made.coverage for made in folds), 3),
        "unsupported": sum(summary.unsupported for summary in summaries),
        "generation": max(made.generation for made in folds),
        "query": next((made.query for made in folds if made.scope == PUBLIC), ""),
        "token_usage": {
            "prompt_tokens": sum(s.prompt_tokens for s in summaries),
            "completion_tokens": sum(s.completion_tokens for s in summaries),
        },
    }


def _result(plan: Plan, folds: Sequence[Fold], original: int, new: int) -> dict[str, Any]:
    ids = [str(made.markers[-1].metadata["summary_id"]) for made in folds if made.markers]
    ids = ids or [next(iter(folds[0].records))]
    return {
        "success": True,
        "skipped": False,
        "compacted_messages": len(plan.leaving),
        "left_from": plan.leaving[0].created_at,
        "left_until": plan.leaving[-1].created_at,
        "preserved_messages": sum(not m.is_summary for m in plan.staying),
        "held_messages": len(plan.held),
        "window_shrunk": plan.shrunk,
        "original_tokens": original,
        "new_tokens": new,
        "reduction_pct": _pct(original, new),
        "summary_id": ids[0],
        "summary_ids": ids,
        **figures(folds),
    }


def _pct(before: int, after: int) -> float:
    return round(100 * (before - after) / before, 1) if before else 0.0
