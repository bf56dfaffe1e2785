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
        return (
            f"{name} masked {result['masked_messages']} old tool outputs "
            f"({record['trigger']}): {tokens}. Nothing was summarised."
        )
    parts = [
        f"{name} compacted {result['compacted_messages']} messages ({record['trigger']}): "
        f"{tokens}, level {result['level']}, {result['retention']:.0%} of names, numbers and "
        f"quotes kept in the summary itself.",
        f"Raw words: aihistory/expand {name} = {result['summary_id']}; by their words: "
        f"aihistory/search {name} = <words>.",
    ]
    if result["generation"] >= FADING_GENERATION:
        parts.append(
            f"This is generation {result['generation']}: detail may have faded from the "
            "summaries; the raw words are in the archive."
        )
    return " ".join(parts)
