"""Token budgets: records of requests, the limits of a model, the room of a history, what fits.

The newest records are in memory alone. The audit log has a line for each answered request, and
each reply keeps the record of its own.
"""

import json
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evennia_ai.history.audience import PUBLIC, members
from evennia_ai.history.messages import Counter, Message
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.servers import USABLE_TOKENS
from evennia_ai.llm_interaction.values import (
    OFFLINE_MODEL,
    SPEAKS_AND_CALLS,
    ModelFacts,
    ModelReply,
    ShownNotes,
    Usage,
)

# Budgets that are kept, and prompts to be looked at: newest turns of an assistant.
EVENTS_KEPT, PROMPTS_KEPT = 50, 8
# Of what was cut, a logged event keeps so many notes.
NOTES_KEPT = 5
# Key of a reply's metadata.
TRACE = "trace"
_FIXED = ("System", "Tools", "Ledger", "Examples")
REGIONS = (*_FIXED, "Summaries", "History", "Retrieved", "Tail", "Reserve")
# Of a history's room: what remains after a compaction, most that all summaries one reader sees
# take, and most of what remains that the kept messages take.
TARGET_SHARE, SUMMARIES_SHARE, KEPT_SHARE = 0.5, 0.3, 0.7
# A smaller room than this share of the limit is no room to talk in; it is never counted as less.
LEAST_SHARE = 0.15
# Requests that may show the lines of a compaction: so many, and one more for so many tokens.
REQUESTS, TOKENS_A_REQUEST = 4, 4_000
# Tokens of a summary's title and frame; and the fewest that a summary is given.
MARKER_TOKENS, LEAST_SUMMARY = 12, 30
# Volatile regions and the reply's reserve together take at most this share of the limit; a
# summary and the ledger at most the others, or a few words.
VOLATILE_SHARE, SUMMARY_SHARE, LEDGER_SHARE, LEAST_CAP, LEAST_RESERVE = 0.25, 0.1, 0.1, 40, 16
# Largest size of the prompt's part about room, time and people, and of a base model's summary.
TAIL_TOKENS, PLAIN_SUMMARY_TOKENS = 800, 200


@dataclass(frozen=True, kw_only=True)
class TokenBudget(Stored, Usage):
    """What one request was made of: numbers and ids, no talk.

    What it used, as the reply says, is 0 until that is there.
    """

    regions: Mapping[str, int]  # tokens by region, as `REGIONS` names them; a prompt has them all
    limit: int  # bounds prompt and reply together
    at: float = 0.0  # when the request was made, seconds since the epoch
    purpose: str = ""  # as of the request: ``awake``, ``pre_compaction``, ``summary`` and the like
    model: str = ""  # the model that was asked; once it is answered, the one that answered
    audience: str = PUBLIC  # whom the prompt was for
    left_out: int = 0  # how many live messages did not fit
    left_until: str = ""  # id of the newest of them
    notes: tuple[str, ...] = ()  # what was shortened or left out, and why
    # What started the compaction that the request belongs to; empty for any other.
    trigger: str = ""

    @property
    def fixed(self) -> int:
        """Tokens of what is the same in each prompt."""
        return sum(self.regions[name] for name in _FIXED)

    @property
    def total(self) -> int:
        """Tokens of all regions, the reserve included."""
        return sum(self.regions.values())

    def __str__(self) -> str:
        """Tokens by region, total and limit on one line, as people read it."""
        shown = ", ".join(f"{name}: {tokens}" for name, tokens in self.regions.items())
        return f"{shown} (total {self.total}/{self.limit})"


@dataclass(frozen=True, kw_only=True)
class ReplyTrace(Stored, Usage):
    """What a reply rests on, and what the calls of its turn used until then: ids and numbers.

    It is in the reply's metadata as a JSON text: a history of hundreds of replies is stored and
    loaded much faster than with dicts and lists. It leaves the live history, is exported and is
    forgotten together with the reply.
    """

    budget: TokenBudget  # the budget of the request that gave the reply
    answers: tuple[str, ...] = ()  # ids of the messages it answers
    # Scores of the memories in its prompt, by id.
    given: Mapping[str, float] = field(default_factory=dict)
    # Scores of what the turn's own searches found, by id.
    found: Mapping[str, float] = field(default_factory=dict)
    opened: tuple[str, ...] = ()  # ids of the memories that the turn read in full
    tools: tuple[str, ...] = ()  # names of the tools called before it, in order
    calls: int = 1  # model calls of the turn until then
    # Why replies of the turn were no answers (`llm_interaction.reply.fault`).
    faults: tuple[str, ...] = ()
    # Whether the game's moderation replaced or refused something of the turn.
    moderated: bool = False

    @classmethod
    def of(cls, message: Message) -> "ReplyTrace | None":
        """The trace of a reply; None if it has none that can be read."""
        try:
            return cls.from_dict(json.loads(message.metadata.get(TRACE, "")))
        except (TypeError, ValueError, RecursionError):  # `Unreadable` is a ValueError
            return None

    def to_text(self) -> str:
        """The text that is stored."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


class PromptLog:
    """The newest requests of one assistant since the server started, and the last one's figures."""

    def __init__(self) -> None:
        self._events: deque[TokenBudget] = deque(maxlen=EVENTS_KEPT)
        # The messages and tools of the newest turns' prompts, with the time of their budget.
        self.newest: deque[tuple[float, Sequence[dict[str, Any]]]] = deque(maxlen=PROMPTS_KEPT)
        self.fixed_tokens = 0  # of system text, tools and ledger in the last prompt
        self.left_out = frozenset[str]()  # ids of live messages that it had no room for
        # The notes that prompts showed before a message, by its id: later ones show them, too.
        self.shown_notes: dict[str, ShownNotes] = {}

    def note(self, event: TokenBudget) -> TokenBudget:
        """Log an event, of its notes the first; returns it."""
        self._events.append(replace(event, notes=event.notes[:NOTES_KEPT]))
        return self._events[-1]

    def answered(self, event: TokenBudget, reply: ModelReply) -> TokenBudget:
        """Add the figures of the reply to a logged event; returns it as it is now."""
        full = replace(event, model=reply.model or event.model, **reply.figures())
        if event in self._events:
            self._events[self._events.index(event)] = full
        return full

    def events(self) -> tuple[TokenBudget, ...]:
        """The logged events, oldest first."""
        return tuple(self._events)

    def forget(self, people: Collection[str]) -> None:
        """Drop the budgets of private talk with these people (stable ids), and all texts."""
        left = [event for event in self._events if members(event.audience).isdisjoint(people)]
        self._events = deque(left, maxlen=EVENTS_KEPT)
        self.newest.clear()
        self.shown_notes.clear()


@dataclass(frozen=True)
class Room:
    """The tokens in which an assistant's history and summaries live."""

    limit: int  # most tokens of a request and its reply
    fixed: int  # tokens of system text, tools and ledger
    reserved: int  # tokens set aside for the reply, retrieved memories and the present moment

    @property
    def is_too_small(self) -> bool:
        """Whether fixed regions and reserves leave next to nothing."""
        return self.limit - self.fixed - self.reserved < LEAST_SHARE * self.limit

    @property
    def tokens(self) -> int:
        """Its size."""
        return max(self.limit - self.fixed - self.reserved, int(LEAST_SHARE * self.limit), 1)

    def usage(self, history_tokens: int) -> float:
        """The share of it that history and summaries take."""
        return history_tokens / self.tokens

    @property
    def target(self) -> int:
        """Most tokens that remain after a compaction."""
        return int(TARGET_SHARE * self.tokens)

    @property
    def kept(self) -> int:
        """Most tokens of the messages that a compaction keeps."""
        return int(KEPT_SHARE * self.target)

    def summary_cap(self, kept_tokens: int, summaries: int) -> int:
        """Most tokens of one summary beside what is kept, if one reader sees so many of them."""
        free = min(int(SUMMARIES_SHARE * self.tokens), self.target - kept_tokens)
        return max(LEAST_SUMMARY, free // max(1, summaries) - MARKER_TOKENS)


@dataclass(frozen=True)
class Caps:
    """Most tokens of each region."""

    retrieved: int
    tail: int
    reserve: int
    summary: int
    ledger: int = 0

    @property
    def volatile(self) -> int:
        """What is set aside before the history: retrieved memories, tail and reply."""
        return self.retrieved + self.tail + self.reserve

    def under(self, limit: int) -> "Caps":
        """These caps, scaled down where they leave too little of a limit for a history."""
        share = min(1.0, int(limit * VOLATILE_SHARE) / max(1, self.volatile))
        return Caps(
            int(self.retrieved * share),
            int(self.tail * share),
            min(self.reserve, max(LEAST_RESERVE, int(self.reserve * share))),
            min(self.summary, max(LEAST_CAP, int(limit * SUMMARY_SHARE))),
            min(self.ledger, max(LEAST_CAP, int(limit * LEDGER_SHARE))),
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for the requests to a model; `Assistant.limits` makes them."""

    model: str  # its name
    facts: ModelFacts
    option: int  # the option `max_context_tokens`
    call: float | None  # the spend limit of a call, in tokens
    wanted: Caps  # of the regions, as configured
    fixed: int  # tokens of system text, tools and ledger in the last prompt
    is_base: bool  # whether it completes texts, without roles

    @property
    def tokens(self) -> int:
        """Most tokens a request and the reply may hold."""
        bounds = [self.option, self.call]
        if self.facts.window:
            bounds.append(self.facts.window.tokens)
        return min(int(bound) for bound in bounds if bound)

    @property
    def source(self) -> tuple[str, str]:
        """What sets that, and what makes it larger, in words."""
        tokens, window = self.tokens, self.facts.window
        if tokens == self.option:
            return "`max_context_tokens`", "Raise `max_context_tokens`"
        if window and tokens == window.tokens:
            name = f"the window of {self.model}, by {window.source}"
            return name, "Give the model's server a larger window"
        return "the spend limit of a call", "Raise the spend limit of a call"

    @property
    def caps(self) -> Caps:
        """The caps of the regions as they hold under it."""
        return self.wanted.under(self.tokens)

    @property
    def room(self) -> Room:
        """The room of the history beside the fixed regions of the last prompt."""
        return Room(self.tokens, self.fixed, self.caps.volatile)

    @property
    def calls_tools(self) -> bool:
        """Whether the model is offered tools; else it only speaks.

        The offline model is; another one where a trial found that it talks as well with them.
        """
        may_call = not (self.is_base or self.only_talks)
        return self.model == OFFLINE_MODEL or (may_call and bool(self.facts.calls_tools))

    @property
    def only_talks(self) -> bool:
        """Whether the model's window is so small that it can answer and do nothing else.

        There is no compaction, no extraction and no other work for the assistant itself then: its
        room is too small for the results, and the work would begin again and again.
        """
        return self.facts.window is not None and self.facts.window.tokens < USABLE_TOKENS

    @property
    def speech(self) -> str:
        """How the model speaks and acts, in words."""
        if self.calls_tools:
            return self.facts.speech or SPEAKS_AND_CALLS
        if self.is_base or self.facts.calls_tools is not None:
            return "words alone (orders are read from what people say)"
        return "words alone, until it has been tried with tools"


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
        text = text[: int(len(text) * min(0.9, max(cap_tokens, 1) / tokens))]
        end = max(text.rfind(mark) for mark in (". ", "! ", "? ", "\n"))
        if end > len(text) // 2:
            text = text[: end + 1]
        text = text.rstrip()
        tokens = count(text)
    return text.strip()


def most_requests(tokens: int) -> int:
    """How many requests may show lines of so many tokens; a tiny room would ask for many more."""
    return REQUESTS + tokens // TOKENS_A_REQUEST


def packed(lines: Sequence[str], room_tokens: int, count: Counter) -> tuple[tuple[str, ...], ...]:
    """Lines in runs of at most `room_tokens`, in order.

    A line that does not fit by itself is cut into pieces that do, so that every character of it
    stands in exactly one run. A line costs one token more than its text, for its break.
    """
    runs: list[list[str]] = []
    used = room_tokens  # nothing goes into no run
    for piece in (part for line in lines for part in pieces(line, room_tokens, count)):
        tokens = count(piece) + 1
        if used + tokens > room_tokens:
            runs.append([])
            used = 0
        runs[-1].append(piece)
        used += tokens
    return tuple(map(tuple, runs))


def pieces(line: str, room_tokens: int, count: Counter) -> list[str]:
    """A line in pieces of at most `room_tokens` tokens (one character at least)."""
    if count(line) + 1 <= room_tokens or len(line) < 2:
        return [line]
    halves = line[: len(line) // 2], line[len(line) // 2 :]
    return [piece for half in halves for piece in pieces(half, room_tokens, count)]
