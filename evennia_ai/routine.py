"""A day's plan: where an assistant is and what it does from which hour on; no model is asked."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from evennia_ai.kinds import Text, says

# Words for a step of the way.
THERE, WALKS, BARRED, LOST = "there", "walks", "barred", "lost"

MOST_STOPS = 24
_PLAN = re.compile(r"(?:(game|real)\s)?(.*)", re.IGNORECASE | re.DOTALL)
_STOP = re.compile(
    r"([01]?\d|2[0-3]):([0-5]\d)\s+([^:;\s](?:[^:;]{0,78}[^:;\s])?)\s*"
    r"(?::\s*([^;\s](?:[^;]{0,198}[^;\s])?)?\s*)?"
)
# In place of a room: it sleeps then, wherever it is.
SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Stop:
    """One entry: from a minute of the day on, at a place (a room's name), doing something."""

    minute: int
    place: str
    doing: str = ""

    @property
    def label(self) -> str:
        """Its time and place in words."""
        return f"{self.minute // 60:02}:{self.minute % 60:02} {self.place}"


@dataclass(frozen=True, slots=True)
class Routine:
    """A plan, by the game's own clock unless it `is_game` no longer; stops in their order."""

    stops: tuple[Stop, ...]
    is_game: bool = True

    def at(self, hour: int, minute: int) -> Stop:
        """The stop that holds at a time; before the first one of a day that is the last."""
        before = [stop for stop in self.stops if stop.minute <= hour * 60 + minute]
        return (before or self.stops)[-1]


def read_routine(text: str) -> Routine:
    """The plan that a text is: ``06:00 Kitchen: kneads dough; 20:00 Taproom; 23:00 sleep``.

    Behind the word ``real`` its times are those of the real clock. Raises `ValueError`.
    """
    clock, plan = _PLAN.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
    parts = [part for part in plan.split(";") if part.strip()]
    stops = dict[int, Stop]()
    for part in parts:
        if stop := _STOP.fullmatch(part.strip()):
            minute = int(stop[1]) * 60 + int(stop[2])
            stops[minute] = Stop(minute, stop[3], stop[4] or "")
    if not 0 < len(stops) == len(parts) <= MOST_STOPS:
        raise ValueError(text)
    is_game = (clock or "game").lower() == "game"
    return Routine(tuple(stops[minute] for minute in sorted(stops)), is_game)


def _check(text: str) -> str:
    text = " ".join(text.split()).strip("; ")
    read_routine(text)
    return text


Plan = Annotated[
    Text,
    AfterValidator(_check),
    says("a plan such as 06:00 Kitchen: kneads dough; 20:00 Taproom; 23:00 sleep", "long"),
]
