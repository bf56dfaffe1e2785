"""One compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking if that is enough, summaries with their
retention gate (nothing is stored until all are there), one commit, what follows from it.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from twisted.internet.defer import (
    CancelledError,
    Deferred,
    inlineCallbacks,
    maybeDeferred,
    succeed,
)

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC
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
from evennia_ai.llm_interaction.prompt import context_usage
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import CompactionCommit
from evennia_ai.sleep.compaction.extraction import run_pre_compaction_extraction
from evennia_ai.sleep.compaction.folding import Fold, fold
from evennia_ai.sleep.compaction.plan import Plan, spliced
from evennia_ai.sleep.compaction.publishing import begin_intent, drop_intent, publish_pending
from evennia_ai.sleep.compaction.receipts import announce, count_stall
from evennia_ai.sleep.compaction.triggers import HEADROOM, count_fires, make_plan, usage_with


@inlineCallbacks
def compact_conversation_history(
    script: Assistant,
    character: Character,
    force: bool = False,
    instructions: str | None = None,
    threshold: float | None = None,
    trigger: str | None = None,
    beside: bool = False,
    extracts: bool = False,
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Fold the older part of the history into summaries.

    Args:
        script: The assistant's script.
        character: Its body.
        force: Skip the threshold; never `compact_enabled` nor the preserve window.
        instructions: Additional instructions for the summary.
        threshold: The usage from which to compact; `compact_sleep_threshold` by default.
        trigger: What fired (`CompactionRecord.trigger`); by default ``manual`` if forced.
        beside: Whether turns go on beside it. If not, call it under the turn lock.
        extracts: Whether to ask no model but the offline one, as nobody may wait. Better
            summaries are then owed (`StateHandler.owed`).

    Returns:
        A Deferred that fires with a dict: `success`, `skipped` and `reason`, or `error`, or the
        figures of what was done. Nothing is raised for a failing model.
    """
    share = threshold if threshold is not None else script.config.compact_sleep_threshold
    trigger = trigger or ("manual" if force else "sleep")
    locked = script.between_turns if beside else maybeDeferred
    plan = yield locked(partial(_planned_or_masked, script, force, share, trigger))
    if isinstance(plan, dict):
        return plan
    # An automatic compaction that fails again and again must stop, like one that frees nothing.
    by_count, counts = plan.by_count > 0, trigger != "manual"
    try:
        yield script.breathe()
        begin_intent(script, trigger, extracts)
        yield script.breathe()
        result = yield _compact(script, character, plan, instructions, trigger, locked)
    except Exception as error:
        # If somebody stopped it, that says nothing about its use.
        if counts and not isinstance(error, CancelledError):
            count_stall(script, True, by_count)
        raise
    if counts and not result["success"]:
        count_stall(script, True, by_count)
    return dict(result)


def _planned_or_masked(
    script: Assistant, force: bool, share: float, trigger: str
) -> Plan | dict[str, Any]:
    """The plan, or the report if there is nothing to summarise; masks are committed at once."""
    reason = _skip_reason(script, force, share)
    if reason is not None:
        return skipped(reason)
    plan = make_plan(script, automatic=not force, threshold=share)
    if plan.empty:
        held = {"held_messages": len(plan.held)} if plan.held else {}
        return {**skipped("history within preserve window"), **held}
    enough = _masked_history(script, plan, share) if trigger != "manual" else None
    return plan if enough is None else _mask(script, plan, trigger, *enough)


def _skip_reason(script: Assistant, force: bool, threshold: float) -> str | None:
    if not script.config.compact_enabled:
        return "compaction disabled"
    if not script.history.messages():
        return "no history"
    share = context_usage(script)
    if not force and share < threshold and not count_fires(script):
        return f"below threshold ({share:.1%} < {threshold:.1%})"
    if not force and script.state.hold and share < 1.0:
        return "automatic compaction is held after a rollback"
    return None


def skipped(reason: str) -> dict[str, Any]:
    """The report of a step that had nothing to do."""
    return {"success": True, "skipped": True, "reason": reason}


def _failed(detail: str) -> dict[str, Any]:
    error = "summary generation failed"
    return {"success": False, "skipped": False, "error": error, "detail": detail}


def extract_first(
    script: Assistant,
    character: Character,
    plan: Plan,
    threshold: float,
    max_iterations: int,
    trigger: str,
    beside: bool = False,
) -> Deferred[dict[str, Any]]:
    """The extraction before an automatic compaction, if that will call a model.

    Fires with the extraction's report, or with why there was none. `beside` as for
    `compact_conversation_history`.
    """
    if script.over_spend():
        return succeed(skipped("the spend cap is reached"))
    if _masked_history(script, plan, threshold) is not None:
        return succeed(skipped("old tool outputs are only masked"))
    return run_pre_compaction_extraction(script, character, max_iterations, trigger, beside)


def _masked_history(
    script: Assistant, plan: Plan, threshold: float
) -> tuple[list[Message], list[str]] | None:
    """The history with old tool outputs masked, and their ids; None if that is not enough.

    Masks are no relief if there are too many messages.
    """
    if count_fires(script):
        return None
    at = utc_iso(script.now())
    ids = set(plan_masks(plan.leaving, len(plan.leaving), script.config.mask_min_tokens))
    history = [masked(m, at, script.count) if m.id in ids else m for m in script.history.messages()]
    if not ids or usage_with(script, widest_view_tokens(history)) >= threshold * HEADROOM:
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
    announce(script, plan, record, result)
    return result


@inlineCallbacks
def _compact(
    script: Assistant,
    character: Character,
    plan: Plan,
    instructions: str | None,
    trigger: str,
    locked: Callable[[Callable[[], Any]], Deferred[Any]],
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Summaries first, then the commit, then what follows from it."""
    original = script.history.tokens()
    folds: list[Fold] = []
    tied = plan.tied
    try:
        for audience in plan.audiences:
            made = yield fold(script, character, plan, audience, instructions)
            yield script.breathe()
            replaced = total_tokens((*made.leaving, *plan.previous(audience)))
            if audience in tied or total_tokens(made.markers) < replaced:
                folds.append(made)
            else:
                plan = plan.without([audience])
        if not folds:
            return _failed("the summaries would be as long as what they stand for")
        if not script.config.compact_enabled:  # switched off while the model was writing
            return skipped("compaction disabled")
        result: dict[str, Any] = yield locked(
            partial(_commit, script, plan, folds, original, trigger)
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


def _commit(
    script: Assistant, plan: Plan, folds: Sequence[Fold], original: int, trigger: str
) -> dict[str, Any]:
    """Carry the plan out and report. The history may have grown meanwhile; it is read again."""
    live = script.history.messages()
    if overtaken := _overtaken(live, plan):
        return _failed(overtaken)
    now = script.history.tokens()
    after = total_tokens(spliced(live, plan, [m for made in folds for m in made.markers]))
    if after >= now:
        return _failed(f"the summaries would not shrink the history ({now} to {after} tokens)")
    result = _result(plan, folds, original, after - (now - original))
    record = CompactionRecord(
        id=new_id("c"),
        at=utc_iso(script.now()),
        trigger=trigger,
        result=result,
        leaving=tuple(message.id for message in plan.leaving),
        speakers=speakers(plan.leaving),
    )
    CompactionCommit(script)(plan, folds, record)
    result = {**result, "compaction_id": record.id}
    announce(script, plan, record, result)
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


def _result(plan: Plan, folds: Sequence[Fold], original: int, new: int) -> Mapping[str, Any]:
    summaries = [summary for made in folds for summary in made.summaries]
    return {
        "success": True,
        "skipped": False,
        "compacted_messages": len(plan.leaving),
        "left_from": plan.leaving[0].created_at,
        "left_until": plan.leaving[-1].created_at,
        "query": next((made.query for made in folds if made.audience == PUBLIC), ""),
        "preserved_messages": sum(not m.is_summary for m in plan.staying),
        "held_messages": len(plan.held),
        "held_tokens": total_tokens(plan.held),
        "window_shrunk": plan.shrunk,
        "original_tokens": original,
        "new_tokens": new,
        "reduction_pct": _pct(original, new),
        "summary_id": folds[0].summary_id,
        "summary_ids": [made.summary_id for made in folds],
        "level": max((made.level for made in folds), key=LEVELS.index),
        "retention": round(min(made.score for made in folds), 3),
        "in_summary": round(min(made.in_summary for made in folds), 3),
        "drift": max(made.drift for made in folds),
        "unsupported": sum(summary.unsupported for summary in summaries),
        "generation": max(made.generation for made in folds),
        "token_usage": {
            "prompt_tokens": sum(s.prompt_tokens for s in summaries),
            "completion_tokens": sum(s.completion_tokens for s in summaries),
        },
    }


def _pct(before: int, after: int) -> float:
    return round(100 * (before - after) / before, 1) if before else 0.0
