"""A day's plan: where an assistant is and what it does from which hour on."""

import re
from dataclasses import dataclass

from evennia_ai.kinds import Kind

# Entries of a plan, and characters of a place and of what is done there.
MOST_STOPS, PLACE_CHARS, DOING_CHARS = 24, 80, 200
_CLOCK = re.compile(r"(?:(?P<clock>game|real)\s+)?(?P<plan>.+)", re.IGNORECASE | re.DOTALL)
_STOP = re.compile(r"(\d{1,2}):(\d{2})\s+([^:;]+?)\s*(?::\s*([^;]+?)\s*)?")
_SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Stop:
    """One entry: from a minute of the day on, at a place (a room's name), doing something."""

    minute: int
    place: str
    doing: str = ""

    @property
    def is_sleep(self) -> bool:
        """Whether it sleeps then, wherever it is."""
        return self.place.lower() == _SLEEP

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
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    stops = [_stop(part) for part in found["plan"].split(";") if part.strip()]
    if not stops or len(stops) > MOST_STOPS or len({s.minute for s in stops}) < len(stops):
        raise ValueError(text)
    is_game = (found["clock"] or "game").lower() == "game"
    return Routine(tuple(sorted(stops, key=lambda stop: stop.minute)), is_game)


def _stop(text: str) -> Stop:
    found = _STOP.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    hour, minute, place, doing = int(found[1]), int(found[2]), found[3], found[4] or ""
    if hour > 23 or minute > 59 or len(place) > PLACE_CHARS or len(doing) > DOING_CHARS:
        raise ValueError(text)
    return Stop(hour * 60 + minute, place, doing)


def _check(value: object) -> str:
    text = " ".join(str(value).split()).strip("; ")
    read_routine(text)
    return text


ROUTINE = Kind(
    "a plan such as 06:00 Kitchen: kneads dough; 20:00 Taproom; 23:00 sleep", _check, field="long"
)
