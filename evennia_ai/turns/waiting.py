"""Calls of tools that wait: for staff at level `confirm`, or for the one who asked.

An assistant's waiting calls are one stored value. Numbers are never used twice, so that an approval
that is typed late cannot mean another call.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.errors import BoundError, ToolError
from evennia_ai.history.audience import STAFF
from evennia_ai.history.messages import quoted
from evennia_ai.history.stored import Stored, Unreadable, as_dict

KEY = "waiting_calls"
# How long a call waits for staff and for who asked, and how many do: of one assistant, and of one
# person.
WAIT_S, YES_S = 3600.0, 600.0
MOST_WAITING, MOST_OF_ONE = 20, 5
# Characters of an argument, and of all, that a line about a call shows.
VALUE_CHARS, SHOWN_CHARS = 120, 400


@dataclass(frozen=True, slots=True)
class WaitingCall(Stored):
    """A call that waits."""

    number: int  # by which staff name it
    tool: str  # the tool's name
    arguments: str = "{}"  # a JSON text, with the names of objects
    ids: str = "{}"  # the stable ids of those objects by argument name, a JSON text
    asker: str = ""  # stable id of the one who asked, empty if nobody did; `asker_name` then
    asker_name: str = ""
    audience: str = STAFF  # of the turn it was made in
    known_to: str = STAFF  # who may know of it: a whisper's receiver, or the turn's audience
    channel: str = "say"  # how the one who asked spoke
    at: float = 0.0  # when it was made, seconds since the epoch
    sources: tuple[str, ...] = ()  # ids of the messages the turn answered
    by_asker: bool = False  # whether the one who asked confirms it, not staff

    def is_like(self, other: "WaitingCall") -> bool:
        """Whether another call would do the same for the same person."""
        is_same = (self.tool, self.asker) == (other.tool, other.asker)
        return is_same and self.values == other.values

    @property
    def values(self) -> dict[str, Any]:
        """The arguments, with stable ids for objects."""
        return {**_object(self.arguments), **_object(self.ids)}

    def object(self, argument: str) -> tuple[str, str]:
        """Name and stable id of the object that an argument means; no id if that was not kept."""
        name, id = _object(self.arguments).get(argument), _object(self.ids).get(argument)
        return cut(str(name), VALUE_CHARS), str(id or "")

    def is_over(self, now: float) -> bool:
        """Whether it has waited too long, also where the clock was set back."""
        most_s = WAIT_S
        if self.by_asker:
            most_s = YES_S
        return abs(now - self.at) >= most_s

    @property
    def act(self) -> str:
        """What it would do, on one line: ``give (thing: "sword", to: "Bob")``."""
        values = _object(self.arguments)
        shown = ", ".join(f"{k}: {quoted(cut(str(v), VALUE_CHARS))}" for k, v in values.items())
        line = self.tool
        if shown:
            line += f" ({cut(shown, SHOWN_CHARS)})"
        return " ".join(line.split())

    @property
    def line(self) -> str:
        """Number, who asked and what it would do."""
        who = "nobody"
        if self.asker:
            who = quoted(self.asker_name or self.asker)
        return f"{self.number}: {self.act}, asked by {who}"


@dataclass(frozen=True, slots=True)
class WaitingCalls(Stored):
    """All calls of one assistant that wait, oldest first, and the number of the next."""

    calls: tuple[WaitingCall, ...] = ()
    next: int = 1

    def check(self) -> None:
        """Each call has a number of its own, below the next."""
        numbers = [call.number for call in self.calls]
        if len(set(numbers)) < len(numbers) or max(numbers, default=0) >= self.next:
            raise Unreadable("a number twice, or one that is still to come")

    def with_call(self, call: WaitingCall) -> "WaitingCalls":
        """With one more call, under the next number; `ToolError` if there are enough."""
        if same := [each.number for each in self.calls if each.is_like(call)]:
            raise ToolError(f"this waits for approval already, as number {same[0]}; call noop")
        if len(self.calls) >= MOST_WAITING:
            raise BoundError(f"{BoundError.SAYS}: too many calls wait; this one was dropped")
        if sum(each.asker == call.asker for each in self.calls) >= MOST_OF_ONE:
            raise BoundError(f"{BoundError.SAYS}: calls of this person wait; this one was dropped")
        return WaitingCalls((*self.calls, replace(call, number=self.next)), self.next + 1)

    def without(self, numbers: Collection[int]) -> "WaitingCalls":
        """Without these calls."""
        return replace(self, calls=tuple(c for c in self.calls if c.number not in numbers))


def _object(text: str) -> dict[str, Any]:
    """The arguments that a JSON text holds; none if it holds no object."""
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def cut(text: str, most: int) -> str:
    """The beginning of a text, with dots where there is more."""
    if len(text) <= most:
        return text
    return f"{text[:most]}..."
