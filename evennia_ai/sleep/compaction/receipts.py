"""Receipts: what a compaction did, for staff and logs, and the count of those that did nothing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evennia_ai.history.records import CompactionRecord
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.plan import STALLS_TO_STOP, Plan

# From this generation on, detail may have faded.
FADING_GENERATION = 3
# A compaction that frees a smaller share of the tokens was of no use.
STALL_SHARE = 0.05


def announce(
    script: Assistant, plan: Plan, record: CompactionRecord, result: Mapping[str, Any]
) -> None:
    """Announce a compaction that is committed, and count it if it was of no use.

    It stands, whatever fails here: a room that a game's own code guards, a receipt.
    """
    freed = result["original_tokens"] - result["new_tokens"]
    able = result["original_tokens"] - result.get("held_tokens", 0)
    stalled = plan.missed if plan.by_count else bool(freed < STALL_SHARE * able)
    _do_each(
        script,
        script.compacted,
        lambda: script.audit("compaction", trigger=record.trigger, **result),
        lambda: _tell_staff(script, record),
        lambda: count_stall(script, stalled, plan.by_count > 0),
    )


def announce_better(script: Assistant, record: CompactionRecord, result: Mapping[str, Any]) -> None:
    """Announce better summaries behind an emergency. It frees nothing, so it is no stall."""
    _do_each(
        script,
        lambda: script.audit("compaction", trigger=record.trigger, **result),
        lambda: _tell_staff(script, record),
    )


def _do_each(script: Assistant, *acts: Callable[[], object]) -> None:
    for act in acts:
        try:
            act()
        except Exception as error:  # noqa: BLE001
            script.log_error("announcing a compaction", error)


def _tell_staff(script: Assistant, record: CompactionRecord) -> None:
    """Send the receipt to staff; the log gets one without the names by which it is found again."""
    name, unsaid = str((script.obj or script).key), {**record.result, "query": ""}
    logged = receipt_line(name, replace(record, result=unsaid))
    script.tell_staff(receipt_line(name, record), logged)


def count_stall(script: Assistant, stalled: bool, by_count: bool) -> None:
    """Count compactions in a row that were of no use; the last one stops the automatic ones.

    Those by count are counted separately and stop only these, as the others still keep the context
    within its limit. A compaction by tokens that is of use resets both counts.
    """
    state = script.state
    before = state.stalls_by_count if by_count else state.stalls
    state.count_stalls(before + 1 if stalled else 0, by_count)
    if not stalled and not by_count:
        state.count_stalls(0, by_count=True)
    if by_count and state.stalled_by_count:
        script.alert(
            f"{STALLS_TO_STOP} compactions by count in a row failed or folded less than half of "
            "what was to leave. The count windows are off until another compaction frees at least "
            f"{STALL_SHARE:.0%}. See `aistatus`."
        )
    elif state.stalled_out:
        script.alert(
            f"{STALLS_TO_STOP} compactions in a row failed or freed less than {STALL_SHARE:.0%}; "
            "automatic compaction is stopped until a manual one frees more. See `aistatus`."
        )


def receipt_line(name: str, record: CompactionRecord) -> str:
    """One line: how much, from what to what, how well, and where the raw words are."""
    result = record.figures
    tokens = f"{result['original_tokens']:,} to {result['new_tokens']:,} tokens"
    if result["level"] == "masked":
        count = result["masked_messages"]
        outputs = "old tool output" if count == 1 else "old tool outputs"
        return (
            f"{name} masked {count} {outputs} ({record.trigger}): {tokens}. Nothing was summarised."
        )
    if summarised := result.get("summarised_messages"):
        return (
            f"{name} summarised {summarised} messages of an emergency again ({record.trigger}): "
            f"{tokens}, level {result['level']}, {result['retention']:.0%} of names, numbers and "
            f"quotes kept. Raw words: aihistory/expand {name} = {result['summary_id']}."
        )
    between = where = faded = ""
    if result.get("left_from"):
        start, end = (result[key][:16].replace("T", " ") for key in ("left_from", "left_until"))
        between = f" of {start} to {end} UTC"
    if "in_summary" in result:  # not in old receipts
        where = f" in summary, journal or ledger ({result['in_summary']:.0%} in the summary itself)"
    if (share := f"{result.get('drift', 0.0):.0%}") != "0%":
        faded = (
            f" (the long-term summary no longer holds {share} of the names, numbers and quotes of "
            "the first ones)"
        )
    parts = [
        f"{name} compacted {result['compacted_messages']} messages{between} "
        f"({record.trigger}): {tokens}, level {result['level']}, {result['retention']:.0%} of "
        f"names, numbers and quotes kept{where}.",
        f"Raw words: aihistory/expand {name} = {result['summary_id']}; by their words: "
        f"aihistory/search {name} = {result.get('query') or '<words>'}.",
    ]
    if struck := int(result.get("unsupported") or 0):
        sentences = "1 sentence" if struck == 1 else f"{struck} sentences"
        parts.append(f"{sentences} of the model struck as unsupported: nobody said so.")
    if result.get("window_shrunk"):
        newest = int(result["preserved_messages"]) - int(result.get("held_messages", 0))
        parts.append(
            f"Only the {newest} newest messages stayed, fewer than "
            "configured: with more it would have come out over its trigger."
        )
    if result["generation"] >= FADING_GENERATION:
        parts.append(
            f"This is generation {result['generation']}: detail may have faded{faded}; "
            "the raw words are in the archive."
        )
    return " ".join(parts)
