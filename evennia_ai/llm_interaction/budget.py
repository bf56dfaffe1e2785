"""Token budgets: usage, what fits a prompt or a request, and the record of what was left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Counter, Message, total_tokens
from evennia_ai.history.pairs import cut_points
from evennia_ai.history.stored import Stored, Unreadable
from evennia_ai.llm_interaction.values import ModelReply

# Of what was cut, a logged event keeps so many notes, and so many characters of each.
NOTES_KEPT, NOTE_CHARS = 5, 120
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
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Tokens of all regions, the reserve included."""
        return sum(self.regions.values())

    def __str__(self) -> str:
        """Tokens by region, total and limit on one line, as people read it."""
        shown = ", ".join(f"{name}: {tokens}" for name, tokens in self.regions.items())
        return f"{shown} (total {self.total}/{self.limit})"


@dataclass(frozen=True, kw_only=True)
class BudgetEvent(Stored):
    """The budget of one request as it is logged: numbers and ids, no talk."""

    at: float  # when the request was made, seconds since the epoch
    purpose: str  # as of the request: ``awake``, ``pre_compaction``, ``summary`` and the like
    model: str  # the model that was asked; once it is answered, the one that answered
    sizes: tuple[int, ...]  # tokens by region, in the order of `REGIONS`
    limit: int  # bounds prompt and reply together
    audience: str = PUBLIC  # whom the prompt was for
    left_out: int = 0  # how many live messages did not fit
    left_until: str = ""  # id of the newest of them
    notes: tuple[str, ...] = ()  # what was shortened or left out, and why
    usage: float = 0.0  # share of the context in use when the request was made
    # What started the compaction that the request belongs to; empty for any other.
    trigger: str = ""
    prompt_tokens: int = 0  # As the reply says; 0 until it is there. Likewise `completion_tokens`.
    completion_tokens: int = 0
    cost: float | None = None  # US dollars, None if unknown
    cached_tokens: int = 0  # prompt tokens that the provider read from its cache
    cached_cost: float | None = None  # what these cost, None if unknown

    @classmethod
    def of(cls, budget: TokenBudget, **facts: Any) -> "BudgetEvent":
        """The event of a prompt; `facts` are the fields that the budget does not tell."""
        return cls(
            sizes=tuple(budget.regions.get(name, 0) for name in REGIONS),
            limit=budget.limit,
            left_out=len(budget.left_out),
            left_until=budget.left_out[-1] if budget.left_out else "",
            notes=tuple(note[:NOTE_CHARS] for note in budget.notes[:NOTES_KEPT]),
            **facts,
        )

    def check(self) -> None:
        """A stored event has a size for each region."""
        if len(self.sizes) != len(REGIONS):
            raise Unreadable("`sizes` are not those of the regions")

    @property
    def regions(self) -> dict[str, int]:
        """Tokens by region."""
        return dict(zip(REGIONS, self.sizes, strict=True))

    @property
    def total(self) -> int:
        """Tokens of all regions, the reserve included."""
        return sum(self.sizes)

    def answered(self, reply: ModelReply) -> "BudgetEvent":
        """The event with the figures of the reply."""
        return replace(
            self,
            model=reply.model or self.model,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=reply.cost,
            cached_tokens=reply.cached_tokens,
            cached_cost=reply.cached_cost if reply.cached_tokens else None,
        )

    def __str__(self) -> str:
        return str(TokenBudget(self.regions, self.limit))


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


# What `shortened` puts in place of the middle.
LEFT_OUT = re.compile(r" \[\.\.\. [\d,]+ characters left out here \.\.\.\] ")


def shortened(text: str, room_chars: int) -> str:
    """A text cut in its middle to about `room_chars`, saying how much was left out."""
    if len(text) <= room_chars:
        return text
    half = max(0, (room_chars - 60) // 2)
    gone = len(text) - 2 * half
    return f"{text[:half]} [... {gone:,} characters left out here ...] {text[len(text) - half :]}"


def capped(text: str, cap_tokens: int, count: Counter) -> str:
    """A summary cut at a sentence so that it holds at most `cap_tokens`."""
    tokens = count(text)
    while tokens > cap_tokens and len(text) > 8:
        shorter = text[: int(len(text) * min(0.9, max(cap_tokens, 1) / tokens))]
        end = max(shorter.rfind(mark) for mark in (". ", "! ", "? ", "\n"))
        text = shorter[: end + 1] if end > len(shorter) // 2 else shorter.rstrip()
        tokens = count(text)
    return text.strip()


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
