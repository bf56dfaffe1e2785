"""The token budget of a prompt: usage, what fits, and the record of what was left out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evennia_ai.history.messages import Message, total_tokens
from evennia_ai.history.pairs import cut_points

REGIONS = ("System", "Tools", "Ledger", "Summaries", "History", "Retrieved", "Tail", "Reserve")


@dataclass(frozen=True)
class TokenBudget:
    """What one prompt was made of.

    Args:
        regions: Tokens by region, in the order of `REGIONS`.
        limit: Most the prompt and its reply may hold.
        left_out: Live messages that did not fit, oldest first, by id.
        notes: What was shortened and why, in plain words.
    """

    regions: dict[str, int]
    limit: int
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def total(self) -> int:
        """Tokens of all regions, the reserve included."""
        return sum(self.regions.values())

    def to_dict(self) -> dict[str, Any]:
        """As a plain dict, with the total."""
        return {**asdict(self), "total": self.total}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}: {tokens}" for name, tokens in self.regions.items())
        return f"{shown} (total {self.total}/{self.limit})"


def usage(tokens: int, limit: int) -> float:
    """Share of the context in use; 1.0 where there is no room at all."""
    return tokens / limit if limit > 0 else 1.0


def newest_that_fit(
    messages: Sequence[Message], room_tokens: int
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The newest messages that fit, cut where no tool call loses its result.

    Args:
        messages: Messages, oldest first.
        room_tokens: Most they may hold.

    Returns:
        What is left out and what is kept, both oldest first.
    """
    left = total_tokens(messages)
    position = 0
    for point in cut_points(messages):
        left -= total_tokens(messages[position:point])
        position = point
        if left <= room_tokens:
            break
    return tuple(messages[:position]), tuple(messages[position:])


def feasible(fixed: int, window_tokens: int, reserve: int, trigger_tokens: int) -> str | None:
    """Whether a compaction can bring the prompt under its trigger at all.

    Args:
        fixed: Tokens of the fixed regions.
        window_tokens: Tokens of the messages that must stay.
        reserve: Tokens kept for the reply and the volatile regions.
        trigger_tokens: The trigger.

    Returns:
        None if it can, else a sentence with the numbers.
    """
    needed = fixed + window_tokens + reserve
    if needed <= trigger_tokens:
        return None
    return (
        f"fixed regions {fixed:,} + messages to keep {window_tokens:,} + reserves {reserve:,} "
        f"= {needed:,} tokens, more than the trigger of {trigger_tokens:,}"
    )


def shortened(text: str, room_chars: int) -> str:
    """A text cut in its middle to about `room_chars`, saying how much was left out."""
    if len(text) <= room_chars:
        return text
    half = max(0, (room_chars - 60) // 2)
    gone = len(text) - 2 * half
    return f"{text[:half]} [... {gone:,} characters left out here ...] {text[len(text) - half :]}"
