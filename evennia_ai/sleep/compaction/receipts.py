"""Receipts: what a compaction did, in a line for staff and logs."""

from collections.abc import Mapping
from typing import Any

# From this generation on, detail may have faded.
FADING_GENERATION = 3


def receipt_line(name: str, record: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """One line: how much, from what to what, how well, and where the raw words are.

    Args:
        name: The assistant's name.
        record: The compaction's record.
        result: The figures returned to the caller.
    """
    tokens = f"{result['original_tokens']:,} to {result['new_tokens']:,} tokens"
    if result["level"] == "masked":
        count = result["masked_messages"]
        outputs = "old tool output" if count == 1 else "old tool outputs"
        return (
            f"{name} masked {count} {outputs} "
            f"({record['trigger']}): {tokens}. Nothing was summarised."
        )
    parts = [
        f"{name} compacted {result['compacted_messages']} messages{_between(result)} "
        f"({record['trigger']}): {tokens}, level {result['level']}, {result['retention']:.0%} of "
        f"names, numbers and quotes kept{_where(result)}.",
        f"Raw words: aihistory/expand {name} = {result['summary_id']}; by their words: "
        f"aihistory/search {name} = {result.get('query') or '<words>'}.",
    ]
    if result.get("window_shrunk"):
        parts.append(
            f"Only the {_newest(result)} newest messages stayed, fewer than "
            "configured: with more it would have come out over its trigger."
        )
    if result["generation"] >= FADING_GENERATION:
        parts.append(
            f"This is generation {result['generation']}: detail may have faded{_faded(result)}; "
            "the raw words are in the archive."
        )
    return " ".join(parts)


def _faded(result: Mapping[str, Any]) -> str:
    """How much is known to have faded; nothing where that is none."""
    share = f"{result.get('drift', 0.0):.0%}"
    if share == "0%":
        return ""
    return (
        f" (the long-term summary no longer holds {share} of the names, numbers and quotes of the "
        "first ones)"
    )


def _newest(result: Mapping[str, Any]) -> int:
    """How many newest messages stayed, without older ones that were held back."""
    return int(result["preserved_messages"]) - int(result.get("held_messages", 0))


def _where(result: Mapping[str, Any]) -> str:
    """Where they are kept; receipts of old do not tell."""
    if "in_summary" not in result:
        return ""
    return f" in summary, journal or ledger ({result['in_summary']:.0%} in the summary itself)"


def _between(result: Mapping[str, Any]) -> str:
    """From when to when what left was said."""
    if not result.get("left_from"):
        return ""
    start, end = (str(result[key])[:16].replace("T", " ") for key in ("left_from", "left_until"))
    return f" of {start} to {end} UTC"
