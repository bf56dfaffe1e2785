"""Compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking where that is enough, summaries with their
retention gate (nothing is stored until all are there), one commit, what follows from it.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, succeed

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.masking import masked, plan_masks, unmasked
from evennia_ai.history.messages import (
    SCHEMA_VERSION,
    Message,
    new_id,
    speakers,
    total_tokens,
    utc_iso,
    widest_view_tokens,
)
from evennia_ai.llm_interaction.prompt import context_usage
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import CompactionCommit
from evennia_ai.sleep.compaction.extraction import (
    EMERGENCY_MAX_ITERATIONS,
    run_pre_compaction_extraction,
)
from evennia_ai.sleep.compaction.folding import Fold, fold
from evennia_ai.sleep.compaction.plan import STALLS_TO_STOP, Plan, spliced
from evennia_ai.sleep.compaction.publishing import begin_intent, drop_intent, publish_owed
from evennia_ai.sleep.compaction.receipts import receipt_line
from evennia_ai.sleep.compaction.triggers import HEADROOM, count_fires, make_plan, usage_with

STALL_SHARE = 0.05

__all__ = [
    "EMERGENCY_MAX_ITERATIONS",
    "compact_conversation_history",
    "extract_first",
    "run_pre_compaction_extraction",
]


@inlineCallbacks
def compact_conversation_history(
    script: Assistant,
    character: Character,
    force: bool = False,
    instructions: str | None = None,
    threshold: float | None = None,
    trigger: str | None = None,
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Fold the older part of the history into summaries.

    Args:
        script: The assistant's script.
        character: Its body.
        force: Skip the threshold; never `compact_enabled` nor the preserve window.
        instructions: Additional instructions for the summary.
        threshold: The trigger to compare usage with; `compact_sleep_threshold` if None.
        trigger: What fired: ``manual``, ``sleep``, ``emergency``, ``count``,
            ``request``; by default manual if forced.

    Returns:
        A Deferred that fires with a dict: `success`, `skipped` and `reason`, or `error`, or the
        figures of what was done. Nothing is raised for a failing model.
    """
    share = threshold if threshold is not None else script.config.compact_sleep_threshold
    trigger = trigger or ("manual" if force else "sleep")
    reason = _skip_reason(script, force, share)
    if reason is not None:
        return _skipped(reason)
    plan = make_plan(script, automatic=not force, threshold=share)
    if plan.empty:
        held = {"held_messages": len(plan.held)} if plan.held else {}
        return {**_skipped("history within preserve window"), **held}
    relief = _mask_if_enough(script, plan, share, trigger)
    if relief is not None:
        return relief
    try:
        result = yield _compact(script, character, plan, instructions, trigger)
    except CancelledError:
        raise  # somebody stopped it; that says nothing of its use
    except Exception:
        _note_failure(script, plan, trigger)
        raise
    if not result["success"]:
        _note_failure(script, plan, trigger)
    return result


def _note_failure(script: Assistant, plan: Plan, trigger: str) -> None:
    """An automatic compaction that fails for ever must stop, as one that frees nothing."""
    if trigger != "manual":
        _count_stall(script, True, plan.by_count > 0)


def _skipped(reason: str) -> dict[str, Any]:
    return {"success": True, "skipped": True, "reason": reason}


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


def extract_first(
    script: Assistant, character: Character, plan: Plan, threshold: float, max_iterations: int
) -> Deferred[dict[str, Any]]:
    """The extraction before an automatic compaction, where a model is to be asked at all.

    Args:
        script: The assistant's script.
        character: Its body.
        plan: What the compaction would do.
        threshold: The trigger that fired.
        max_iterations: Bound of the extraction.

    Returns:
        A Deferred that fires with the extraction's report, or with why there was none.
    """
    if script.over_spend():
        return succeed(_skipped("the spend cap is reached"))
    if masks_suffice(script, plan, threshold):
        return succeed(_skipped("old tool outputs are only masked"))
    return run_pre_compaction_extraction(script, character, max_iterations=max_iterations)


def masks_suffice(script: Assistant, plan: Plan, threshold: float) -> bool:
    """Whether masking old tool outputs alone brings usage under an automatic trigger.

    Then nothing is summarised and no model is called, neither for an extraction.
    """
    return _masked_history(script, plan, threshold) is not None


def _masked_history(
    script: Assistant, plan: Plan, threshold: float
) -> tuple[list[Message], set[str]] | None:
    """The history with masks and the ids of those masked; None where masks are not enough.

    Where there are too many messages masking is no relief.
    """
    if count_fires(script):
        return None
    at = utc_iso(script.now())
    ids = set(plan_masks(plan.leaving, len(plan.leaving), script.config.mask_min_tokens))
    history = [masked(m, at, script.count) if m.id in ids else m for m in script.history.messages()]
    if not ids or usage_with(script, widest_view_tokens(history)) >= threshold * HEADROOM:
        return None
    return history, ids


def _mask_if_enough(
    script: Assistant, plan: Plan, threshold: float, trigger: str
) -> dict[str, Any] | None:
    """Mask old tool outputs if that is enough; the figures, or None where it is not."""
    if trigger == "manual":
        return None
    enough = _masked_history(script, plan, threshold)
    if enough is None:
        return None
    history, ids = enough
    before = script.history.tokens()
    freed = before - total_tokens(history)
    result = {
        "success": True,
        "skipped": False,
        "level": "masked",
        "masked_messages": len(ids),
        "compacted_messages": 0,
        "preserved_messages": len(history),
        "original_tokens": before,
        "new_tokens": before - freed,
        "reduction_pct": _pct(before, before - freed),
    }
    record = _record(script, trigger, result, masked=sorted(ids))
    CompactionCommit(script).masks(history, record)
    _tell(script, plan, result, record)
    return result


@inlineCallbacks
def _compact(
    script: Assistant,
    character: Character,
    plan: Plan,
    instructions: str | None,
    trigger: str,
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Summaries first, then the commit, then what follows from it."""
    original = script.history.tokens()
    begin_intent(script, trigger)
    folds: list[Fold] = []
    tied = plan.tied
    try:
        for audience in plan.audiences:
            made = yield fold(script, character, plan, audience, instructions)
            if audience in tied or _shrinks(made, plan):
                folds.append(made)
            else:
                plan = plan.without([audience])
        if not folds:
            return _failed("the summaries would be as long as what they stand for")
        if not script.config.compact_enabled:  # switched off while the model was writing
            return _skipped("compaction disabled")
        result = _commit(script, plan, folds, original, trigger)
    except ModelError as error:
        script.log_error("compaction", error)
        return _failed(str(error))
    finally:
        if drop_intent(script):
            publish_owed(script)
    if result["success"]:
        publish_owed(script)  # beside the tick: a store that hangs does not hold up a turn
    return result


def _shrinks(made: Fold, plan: Plan) -> bool:
    """Whether one audience's summaries are shorter than what they take the place of."""
    before = total_tokens((*made.leaving, *plan.previous(made.audience)))
    return total_tokens(made.markers) < before


def _failed(detail: str) -> dict[str, Any]:
    return {
        "success": False,
        "skipped": False,
        "error": "summary generation failed",
        "detail": detail,
    }


def _commit(
    script: Assistant, plan: Plan, folds: Sequence[Fold], original: int, trigger: str
) -> dict[str, Any]:
    """Carry the plan out and report. The history may have grown meanwhile; it is read again."""
    markers = [marker for made in folds for marker in made.markers]
    overtaken = _overtaken(script.history.messages(), plan)
    if overtaken:
        return _failed(overtaken)
    now = script.history.tokens()
    after = total_tokens(spliced(script.history.messages(), plan, markers))
    if after >= now:
        return _failed(f"the summaries would not shrink the history ({now} to {after} tokens)")
    result = _result(plan, folds, original, after - (now - original))
    record = _record(
        script,
        trigger,
        result,
        leaving=[m.id for m in plan.leaving],
        speakers={key: list(seen) for key, seen in speakers(plan.leaving).items()},
    )
    CompactionCommit(script)(plan, folds, record)
    _tell(script, plan, result, record)
    return result


def _overtaken(live: Sequence[Message], plan: Plan) -> str:
    """Why a plan cannot be carried out on the history as it is by now; empty if it can."""
    known = {message.id: message for message in live}
    planned = (*plan.leaving, *plan.folded)
    if any(message.id not in known for message in planned):
        return "what was to leave has left meanwhile, by another compaction or a rollback"
    if any(_is_changed(message, known[message.id]) for message in planned):
        return "a message that was to leave was changed meanwhile; try again, to take it as it is"
    return ""


def _is_changed(before: Message, now: Message) -> bool:
    """Whether somebody changed a message: a mask or a new token count is our own doing."""
    return before != now and _raw_text(before) != _raw_text(now)


def _raw_text(message: Message) -> str:
    """A message as JSON, which takes tuples for the lists that a database makes of them."""
    raw = {key: value for key, value in unmasked(message).to_dict().items() if key != "tokens"}
    return json.dumps(raw, sort_keys=True, default=str)


def _record(
    script: Assistant, trigger: str, result: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """The record of a compaction; the commit adds what a rollback needs."""
    return {
        "version": SCHEMA_VERSION,
        "id": new_id("c"),
        "at": utc_iso(script.now()),
        "trigger": trigger,
        "status": "committed",
        "result": dict(result),
        "leaving": [],
        "masked": [],
        **more,
    }


def _tell(script: Assistant, plan: Plan, result: dict[str, Any], record: Mapping[str, Any]) -> None:
    """Tell of a compaction that is committed, and count stalled ones.

    It stands, whatever fails here: a room that a game's own code guards, a receipt.
    """
    result["compaction_id"] = record["id"]
    tellings = (
        script.compacted,
        lambda: script.audit("compaction", trigger=record["trigger"], **result),
        lambda: script.tell_staff(receipt_line(_name(script), record, result)),
        lambda: _count_stall(script, _stalled(plan, result), plan.by_count > 0),
    )
    for telling in tellings:
        try:
            telling()
        except Exception as error:  # noqa: BLE001
            script.log_error("telling of a compaction", error)


def _name(script: Assistant) -> str:
    return str(script.obj.key if script.obj else script.key)


def _stalled(plan: Plan, result: Mapping[str, Any]) -> bool:
    """Whether a compaction was of no use: it freed next to nothing of what it could have freed.

    One by count is to let so many messages leave, however small a share of the tokens they are.
    """
    if plan.by_count:
        return plan.missed
    freed = result["original_tokens"] - result["new_tokens"]
    able = result["original_tokens"] - result.get("held_tokens", 0)
    return bool(freed < STALL_SHARE * able)


def _count_stall(script: Assistant, stalled: bool, by_count: bool) -> None:
    """Count compactions in a row that were of no use; the last one stops the automatic ones.

    Those by count have their own row, which stops but them: others still keep the context in
    its limit, and such a one that is of use ends both rows.
    """
    state = script.state
    before = state.stalls_by_count if by_count else state.stalls
    state.count_stalls(before + 1 if stalled else 0, by_count)
    if not stalled and not by_count:
        state.count_stalls(0, by_count=True)
    if by_count and state.stalled_by_count:
        script.alert(
            f"{STALLS_TO_STOP} compactions by count in a row failed or folded less than half of "
            "what was to leave; the count windows fire no more until another compaction frees "
            f"at least {STALL_SHARE:.0%}. See `aistatus`."
        )
    elif state.stalled_out:
        script.alert(
            f"{STALLS_TO_STOP} compactions in a row failed or freed less than {STALL_SHARE:.0%}; "
            "automatic compaction is stopped until a manual one frees more. See `aistatus`."
        )


def _result(plan: Plan, folds: Sequence[Fold], original: int, new: int) -> dict[str, Any]:
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
        "generation": max(made.generation for made in folds),
        "token_usage": {
            "prompt_tokens": sum(s.prompt_tokens for s in summaries),
            "completion_tokens": sum(s.completion_tokens for s in summaries),
        },
    }


def _pct(before: int, after: int) -> float:
    return round(100 * (before - after) / before, 1) if before else 0.0
