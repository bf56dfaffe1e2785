"""What an assistant does that nobody asked for: it follows its routine, or speaks of itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.routine import BARRED, LOST, SLEEP, THERE, WALKS, Stop, read_routine
from evennia_ai.turns.initiative import (
    HOUR_S,
    IDLE_S,
    MOST_UNANSWERED,
    QUIET_S,
    SPEND_SHARE,
    Cue,
    Used,
)
from evennia_ai.turns.turn_taking import THREAD_S

if TYPE_CHECKING:
    from evennia_ai.turns.assistant import Assistant

# It goes to bed when it has been quiet for this long.
BED_S = 300.0
_WHY = {BARRED: "the way is barred", LOST: "no way leads there"}


def follow_routine(script: "Assistant") -> str:
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


def _step(script: "Assistant", stop: Stop) -> str:
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


def lately(script: "Assistant") -> Used:
    """What counts now of how often it spoke unasked."""
    return script.state.unasked.since(script.now(), script.runtime.player_spoke_at)


# Why nobody speaks unasked, and what must hold that it does; in the order in which it is asked.
RULES: tuple[tuple[str, Callable[["Assistant"], bool]], ...] = (
    ("its option `initiative` is 0", lambda s: s.config.initiative > 0),
    ("it is on the offline model", lambda s: s.model_name != OFFLINE_MODEL),
    ("the window of its model is too small", lambda s: not s.limits().only_talks),
    ("it is switched off or asleep", lambda s: s.enabled and s.state.mode == "awake"),
    ("no player who is not idle is here", lambda s: bool(s.game.company(IDLE_S))),
    ("somebody spoke in the last two minutes", lambda s: s.runtime.quiet_s(s.now()) >= QUIET_S),
    (
        "an assistant spoke unasked here in the last two minutes",
        lambda s: not 0 <= s.now() - s.game.manners.cued_at < QUIET_S,
    ),
    (
        "it has spoken unasked often enough for this hour",
        lambda s: sum(0 <= s.now() - at < HOUR_S for at in lately(s).at) < s.config.initiative,
    ),
    (
        "nobody answered its last two lines; it waits until a player speaks",
        lambda s: lately(s).unanswered < MOST_UNANSWERED,
    ),
    # The last, as it asks the database.
    ("half of a spend limit is used up", lambda s: s.spend.reached(share=SPEND_SHARE) is None),
)


def why_not(script: "Assistant") -> str:
    """Why an assistant does not speak unasked now, in words; empty if it may."""
    return next((why for why, holds in RULES if not holds(script)), "")
