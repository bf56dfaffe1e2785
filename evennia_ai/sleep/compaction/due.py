"""When a compaction is due, and its plan: one list of rules, asked by every caller."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.llm_interaction.windows import USABLE_TOKENS
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.plan import FEW_LINES, Plan, plan_compaction

MANUAL, EMERGENCY, COUNT, REQUEST, BACKGROUND, SLEEP = (
    "manual",
    "emergency",
    "count",
    "request",
    "background",
    "sleep",
)
# What is at work where summaries are made again behind an emergency.
BETTER = "better"
# Lines of scopes with too few for a summary are archived once they are so old.
FEW_STAY = timedelta(weeks=4)
# A time (ISO 8601) before which everything is old.
ALL = "9999"
# From one automatic compaction to the next, except for an emergency or by count.
PAUSE_S = 60.0
# A limit that falls below this share of what it was is looked at again.
MUCH_LESS = 0.8


def _is_filling(script: Assistant) -> bool:
    """Usage has reached the threshold for sleep, and for lulls."""
    return script.usage() >= script.config.compact_sleep_threshold


def _by_count(script: Assistant) -> bool:
    """More lines of talk stand there than the two windows hold."""
    config = script.config
    if config.immediate_window is None or config.recent_window is None:
        return False
    return script.history.lines() > config.immediate_window + config.recent_window


RULES: dict[str, Callable[[Assistant], bool]] = {
    EMERGENCY: lambda script: script.usage() >= script.config.compact_emergency_threshold,
    COUNT: _by_count,
    REQUEST: lambda script: script.runtime.compaction_requested and _is_filling(script),
    BACKGROUND: _is_filling,
    SLEEP: _is_filling,
}


def firing(script: Assistant, *triggers: str) -> str:
    """The first of these triggers that fires; empty if none does. Constant time.

    None fires that may not: switched off, with a window that is too small, waiting after failures,
    or held after a rollback, when only an overflow does. Those that are no emergency follow the
    last one after `PAUSE_S`.
    """
    config, runtime, now = script.config, script.runtime, script.now()
    if not (config.compact_enabled and config.compact_auto) or script.limits().only_talks:
        return ""
    if now < runtime.compaction_waits[1]:
        return ""
    if 0 <= now - runtime.compacted_at < PAUSE_S:
        triggers = tuple(each for each in triggers if each in (EMERGENCY, COUNT))
    if script.state.hold and script.usage() < 1.0:
        return ""
    return next((each for each in triggers if RULES[each](script)), "")


def make_plan(script: Assistant, trigger: str = MANUAL) -> Plan:
    """The plan of a compaction that this trigger started.

    In sleep and in the background a share of the limit is kept as well as the window. By count
    just those lines leave for which there is a window.
    """
    config, history = script.config, script.history.messages()
    room, before = script.limits().room, datetime.fromtimestamp(script.now(), UTC) - FEW_STAY
    if trigger == COUNT and config.immediate_window and config.recent_window:
        # One stays over, as more than the two windows hold fires.
        few = min(FEW_LINES, config.recent_window)
        window = config.immediate_window + 1
        return plan_compaction(history, window, room, archive_before=ALL, few_lines=few)
    keep = 0
    if trigger in (SLEEP, BACKGROUND, REQUEST):
        keep = int(script.compact_preserve_token_share * config.max_context_tokens)
    window = config.compact_preserve_window
    return plan_compaction(history, window, room, keep, before.isoformat())


def usage_of(script: Assistant, history_tokens: int) -> float:
    """The usage if the widest view of the history held so many tokens."""
    return script.limits().room.usage(history_tokens + script.runtime.queued_tokens())


def check_room(script: Assistant) -> None:
    """Say it if there is no room: at the start, for a new configuration, for a smaller limit."""
    checked, limit = script.runtime.room_for, script.limits().tokens
    if checked and checked[0] == script.config and limit > MUCH_LESS * checked[1]:
        return
    script.runtime.room_for = script.config, limit
    measure_fixed(script, script.obj)
    if reason := no_room(script):
        if script.limits().only_talks:
            script.alert(reason)
        else:
            script.trouble(reason)


def no_room(script: Assistant) -> str:
    """Why there is no room for a talk, with the numbers and what to change; empty if there is."""
    room, limits = script.limits().room, script.limits()
    if limits.only_talks:
        return (
            f"the window of {limits.model} is too small: {limits.facts.window}. Under "
            f"{USABLE_TOKENS:,} tokens the assistant answers, and does nothing else: no summaries, "
            "no notes, no tools. Give the model's server a larger window, 8,192 tokens or more."
        )
    if not room.is_too_small:
        return ""
    source, remedy = limits.source
    left = max(0, room.limit - room.fixed - room.reserved)
    return (
        f"there is hardly room to talk: of {room.limit:,} tokens rules, tools and ledger take "
        f"{room.fixed:,}, reply, memories and the present {room.reserved:,}, which leaves {left:,} "
        f"({source} sets the limit). {remedy}, or switch tools off by `tool_levels`."
    )
