"""Token budgets: usage, what fits a prompt or a request, and the record of what was left out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evennia_ai.history.messages import Counter, Message, total_tokens
from evennia_ai.history.pairs import cut_points

REGIONS = ("System", "Tools", "Ledger", "Summaries", "History", "Retrieved", "Tail", "Reserve")


@dataclass(frozen=True)
class TokenBudget:
    """What one prompt was made of: tokens by region, in the order of `REGIONS`.

    `limit` bounds prompt and reply together, `left_out` are the ids of live messages that did not
    fit, oldest first, `notes` say what was shortened and why.
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
    """What is left out and what is kept of messages so that the newest fit, oldest first.

    The cut is where no tool call loses its result.
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
    """Why, in numbers, no compaction can bring the prompt under its trigger; None if one can.

    All in tokens: the fixed regions, the messages that must stay, what is kept for the reply and
    the volatile regions, the trigger.
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


def packed(lines: Sequence[str], room_tokens: int, count: Counter) -> tuple[tuple[str, ...], ...]:
    """Lines in runs of at most `room_tokens`, in order.

    A line that does not fit by itself is cut into pieces that do, so that every character of it
    stands in exactly one run. A line costs one token more than its text, for its break.
    """
    runs: list[tuple[str, ...]] = []
    run: list[str] = []
    used = 0
    for piece in (part for line in lines for part in pieces(line, room_tokens, count)):
        tokens = count(piece) + 1
        if run and used + tokens > room_tokens:
            runs.append(tuple(run))
            run, used = [], 0
        run.append(piece)
        used += tokens
    if run:
        runs.append(tuple(run))
    return tuple(runs)


def pieces(line: str, room_tokens: int, count: Counter) -> list[str]:
    """A line in pieces of at most `room_tokens` tokens (one character at least)."""
    if count(line) + 1 <= room_tokens or len(line) < 2:
        return [line]
    parts = max(2, -(-(count(line) + 1) // max(1, room_tokens)))
    step = max(1, len(line) // parts)
    cut = [line[start : start + step] for start in range(0, len(line), step)]
    return [piece for part in cut for piece in pieces(part, room_tokens, count)]
