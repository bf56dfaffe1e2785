"""Receipts: what a compaction did, for staff and logs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evennia_ai.history.records import CompactionRecord
from evennia_ai.protocol import Assistant

# From this generation on, detail may have faded.
FADING_GENERATION = 3


def announce(script: Assistant, record: CompactionRecord, result: Mapping[str, Any]) -> None:
    """Announce a compaction that is committed; it stands, whatever fails here.

    Of better summaries behind an emergency, which free nothing, players are not told.
    """
    frees = not result.get("summarised_messages")
    _do_each(
        script,
        *((script.compacted,) if frees else ()),
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
            f"{tokens}, level {result['level']}, {result['coverage']:.0%} of names, numbers and "
            f"quotes kept. Raw words: aihistory/expand {name} = {result['summary_id']}."
        )
    between = ""
    if result.get("left_from"):
        start, end = (result[key][:16].replace("T", " ") for key in ("left_from", "left_until"))
        between = f" of {start} to {end} UTC"
    parts = [
        f"{name} compacted {result['compacted_messages']} messages{between} "
        f"({record.trigger}): {tokens}, level {result['level']}, {result['coverage']:.0%} of "
        "names, numbers and quotes kept in summary, journal or ledger.",
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
            "configured: more would not have fitted."
        )
    if result["generation"] >= FADING_GENERATION:
        parts.append(
            f"This is generation {result['generation']}: detail may have faded; "
            "the raw words are in the archive."
        )
    return " ".join(parts)
