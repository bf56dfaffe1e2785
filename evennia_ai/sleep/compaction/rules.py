"""When work on summaries is due: one list of rules, which every caller asks.

They say when a compaction fires (`why_not`), when an emptied summary is made again
(`is_remaking_due`), what of both may begin behind the ticks (`due_behind`), and whether there is
room to talk at all. All take constant time but the one by count, which counts the live lines.
"""

from collections.abc import Iterable

from evennia_ai.history.messages import Message, is_talk
from evennia_ai.llm_interaction.budget import Limits
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.llm_interaction.servers import USABLE_TOKENS
from evennia_ai.options import AssistantConfig
from evennia_ai.sleep.compaction.plan import (
    BACKGROUND,
    COUNT,
    EMERGENCY,
    MANUAL,
    REQUEST,
    STALE,
)
from evennia_ai.sleep.sleeper import Sleeper

DAY_S = 86_400.0
# Stale summaries that are made again in a day at most, those apart of which nothing is left.
STALE_A_DAY = 12
# From one to the next.
PAUSE_S = 60.0


def why_not(script: Sleeper, trigger: str) -> str:
    """Why no compaction may be made now that this trigger fires; empty if one may."""
    config = script.config
    if not config.compact_enabled:
        return "compaction disabled"
    if not script.history.messages():
        return "no history"
    if script.limits().only_talks:
        return "the model's window is too small"
    if trigger == MANUAL:
        return ""
    if not config.compact_auto:
        return "automatic compaction is off"
    usage = script.usage()
    if trigger == COUNT and not _is_by_count(config, script.history.messages()):
        return "the windows hold all lines"
    if trigger == REQUEST and not script.runtime.summaries.is_requested:
        return "the assistant did not ask for it"
    if trigger != COUNT and usage < (least := threshold(config, trigger)):
        return f"below threshold ({usage:.1%} < {least:.1%})"
    if script.state.hold and usage < 1.0:
        return "automatic compaction is held after a rollback"
    return ""


def _is_by_count(config: AssistantConfig, messages: Iterable[Message]) -> bool:
    """Whether more lines of talk stand there than the two windows hold."""
    immediate, recent = config.immediate_window, config.recent_window
    if immediate is None or recent is None:
        return False
    return sum(map(is_talk, messages)) > immediate + recent


def threshold(config: AssistantConfig, trigger: str) -> float:
    """The usage from which a trigger fires."""
    if trigger == EMERGENCY:
        return config.compact_emergency_threshold
    return config.compact_sleep_threshold


def firing(script: Sleeper, *triggers: str) -> str:
    """The first of these triggers that fires; empty if none does.

    None fires while compactions wait after failures.
    """
    if script.now() < script.runtime.summaries.waits[1]:
        return ""
    return next((each for each in triggers if not why_not(script, each)), "")


def due_behind(script: Sleeper) -> list[str]:
    """What is due in the background when a tick has ended, the most urgent first; maybe nothing.

    All compactions but those of an emergency wait for a lull.
    """
    config, runtime, due = script.config, script.runtime, list[str]()
    if runtime.summaries.running is not None or not (script.ready and script.enabled):
        return due
    if config.compact_background and script.state.mode == "awake":
        half = (config.compact_sleep_threshold + config.compact_emergency_threshold) / 2
        due.append(firing(script, EMERGENCY))
        if runtime.is_called() and script.usage() < half:
            due.append(firing(script, COUNT))
        else:
            due.append(firing(script, COUNT, REQUEST, BACKGROUND))
    if is_remaking_due(script):
        due.append(STALE)
    return list(filter(None, due))


def is_remaking_due(script: Sleeper) -> bool:
    """Whether a summary is stale and may be made again now: a few a day, one at a time.

    Also where automatic compactions are off: it mends what forgetting emptied.
    """
    state, now = script.state, script.now()
    times = of_the_day(state.remade, now)
    if not state.stale or state.hold or now < script.runtime.summaries.remake_waits[1]:
        return False
    if len(times) >= STALE_A_DAY or (times and now < times[-1] + PAUSE_S):
        return False
    is_enabled = script.config.compact_enabled and not script.limits().only_talks
    return is_enabled and not script.over_spend()


def of_the_day(times: Iterable[float], now: float) -> list[float]:
    """Those of the last day."""
    return [at for at in times if 0 <= now - at < DAY_S]


def check_room(script: Sleeper) -> None:
    """Say it if there is no room: at the start, and for a new configuration or limit."""
    checked = script.config, script.limits().tokens
    if script.runtime.summaries.room_for == checked:
        return
    script.runtime.summaries.room_for = checked
    measure_fixed(script)
    limits = script.limits()
    if reason := no_room(limits):
        if limits.only_talks:
            script.alert(reason)
        else:
            script.trouble(reason)


def no_room(limits: Limits) -> str:
    """Why there is no room for a talk, with the numbers and what to change; empty if there is."""
    if limits.only_talks:
        return (
            f"the window of {limits.model} is too small: {limits.facts.window}. Under "
            f"{USABLE_TOKENS:,} tokens the assistant answers, and does nothing else: no summaries, "
            "no notes, no tools. Give the model's server a larger window, 8,192 tokens or more."
        )
    room = limits.room
    if not room.is_too_small:
        return ""
    source, remedy = limits.source
    left = max(0, room.limit - room.fixed - room.reserved)
    return (
        f"there is hardly room to talk: of {room.limit:,} tokens rules, tools and ledger take "
        f"{room.fixed:,}, reply, memories and the present {room.reserved:,}, which leaves {left:,} "
        f"({source} sets the limit). {remedy}, or switch tools off by `tool_levels`."
    )
