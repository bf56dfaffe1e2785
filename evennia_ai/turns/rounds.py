"""Following a day's plan: walking, exit by exit, and what is done there. No model is asked."""

from evennia_ai.errors import ToolError
from evennia_ai.protocol import Assistant
from evennia_ai.turns.cues import Cue
from evennia_ai.turns.routine import Stop, read_routine
from evennia_ai.turns.turn_taking import THREAD_S

# Words for a step of the way.
THERE, WALKS, BARRED, LOST = "there", "walks", "barred", "lost"
# It stays in a talk so long beyond its time, and goes to bed when it has been quiet for this long.
STAYS_S, BED_S = 600.0, 300.0
_WHY = {BARRED: "the way is barred", LOST: "no way leads there"}


def follow_routine(script: Assistant) -> str:
    """Take one step by the plan of the day; returns what the tick did, empty for nothing."""
    if script.config.routine is None:
        return ""
    runtime, now = script.runtime, script.now()
    routine = read_routine(script.config.routine)
    stop = routine.at(*script.clock_time(routine.is_game))
    if runtime.stop is None or runtime.stop[0] != stop.label:
        runtime.stop, runtime.stop_told = (stop.label, now), False
    is_asleep, is_done = script.state.mode == "sleep", script.state.routine == stop.label
    quiet_s = runtime.quiet_s(now)
    if stop.is_sleep:
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
        if now - runtime.stop[1] < STAYS_S:
            return ""
        if not runtime.stop_told:
            runtime.stop_told = True
            script.game.emote(script.own_notice("leaving"))
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
            try:
                script.game.emote(stop.doing)
            except ToolError as error:
                script.log(f"routine: {error}", warning=True)
        return "routine"
    if script.state.routine_alert != stop.label:
        script.state.routine_alert = stop.label
        script.alert(f"cannot follow its routine at {stop.label}: {_WHY[step]}")
    return ""
