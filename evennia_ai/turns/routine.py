"""A day's plan: where an assistant is and what it does from which hour on; no model is asked."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from evennia_ai.kinds import Text, says
from evennia_ai.protocol import Assistant
from evennia_ai.turns.initiative import Cue
from evennia_ai.turns.turn_taking import THREAD_S

# Words for a step of the way.
THERE, WALKS, BARRED, LOST = "there", "walks", "barred", "lost"
# It goes to bed when it has been quiet for this long.
BED_S = 300.0
_WHY = {BARRED: "the way is barred", LOST: "no way leads there"}

MOST_STOPS = 24
_PLAN = re.compile(r"(?:(game|real)\s+)?(.+)", re.IGNORECASE | re.DOTALL)
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
    found = _PLAN.fullmatch(text.strip())
    parts = [part.strip() for part in found[2].split(";") if part.strip()] if found else []
    stops = {
        int(stop[1]) * 60 + int(stop[2]): (stop[3], stop[4] or "")
        for stop in map(_STOP.fullmatch, parts)
        if stop
    }
    if not found or not 0 < len(stops) == len(parts) <= MOST_STOPS:
        raise ValueError(text)
    return Routine(
        tuple(Stop(minute, *stops[minute]) for minute in sorted(stops)),
        (found[1] or "game").lower() == "game",
    )


def _check(text: str) -> str:
    text = " ".join(text.split()).strip("; ")
    read_routine(text)
    return text


Plan = Annotated[
    Text,
    AfterValidator(_check),
    says("a plan such as 06:00 Kitchen: kneads dough; 20:00 Taproom; 23:00 sleep", "long"),
]


def follow_routine(script: Assistant) -> str:
    """Take one step by the plan of the day; returns what the tick did, empty for nothing."""
    if script.config.routine is None:
        return ""
    runtime, now = script.runtime, script.now()
    routine = read_routine(script.config.routine)
    clock = script.game.clock(routine.is_game, now)
    stop = routine.at(clock.hour, clock.minute)
    is_asleep, is_done = script.state.mode == "sleep", script.state.routine == stop.label
    quiet_s = runtime.quiet_s(now)
    if stop.place.lower() == SLEEP:
        script.state.routine_alert = ""  # the next day it tries again
        if is_asleep or quiet_s < BED_S:
            return ""
        script.fall_asleep()
        script.state.routine = stop.label
        return "fell asleep"
    if is_done or (is_asleep and script.state.routine_alert == stop.label):
        return ""  # nor does it wake for what it has tried in vain
    if is_asleep:
        script.wake()
    if quiet_s < THREAD_S:
        return ""  # it never leaves a talk
    return _step(script, stop)


def _step(script: Assistant, stop: Stop) -> str:
    """Go one exit on; where it has arrived, do what is planned there."""
    runtime, step = script.runtime, script.game.step_towards(stop.place)
    if step == WALKS:
        return step
    if step == THERE:
        script.state.routine, script.state.routine_alert = stop.label, ""
        if stop.doing:
            runtime.cue = Cue(
                f"it is {stop.label}; by your day's plan you do this: {stop.doing}", script.now()
            )
            script.act_out(stop.doing)
        return "routine"
    if script.state.routine_alert != stop.label:
        script.state.routine_alert = stop.label
        script.alert(f"cannot follow its routine at {stop.label}: {_WHY[step]}")
    return ""
