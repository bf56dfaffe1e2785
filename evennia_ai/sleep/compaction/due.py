"""When a compaction is due, and its plan: one list of rules, asked by every caller."""

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
# What is at work where a summary is made again that forgetting touched.
STALE = "stale"
# Lines of scopes with too few for a summary are archived once they are so old.
FEW_STAY = timedelta(weeks=4)
# A time (ISO 8601) before which everything is old.
ALL = "9999"
# A limit that falls below this share of what it was is looked at again.
MUCH_LESS = 0.8


def threshold(script: Assistant, trigger: str) -> float:
    """The usage from which a trigger fires."""
    if trigger == EMERGENCY:
        return script.config.compact_emergency_threshold
    return script.config.compact_sleep_threshold


def why_not(script: Assistant, trigger: str) -> str:
    """Why no compaction may be made that this trigger starts; empty if one may."""
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
    usage, least = script.usage(), threshold(script, trigger)
    if trigger == COUNT and not _by_count(script):
        return "the windows hold all lines"
    if trigger == REQUEST and not script.runtime.compaction_requested:
        return "the assistant did not ask for it"
    if trigger != COUNT and usage < least:
        return f"below threshold ({usage:.1%} < {least:.1%})"
    held = script.state.hold and usage < 1.0
    return "automatic compaction is held after a rollback" if held else ""


def _by_count(script: Assistant) -> bool:
    """Whether more lines of talk stand there than the two windows hold."""
    config = script.config
    if config.immediate_window is None or config.recent_window is None:
        return False
    return script.history.lines() > config.immediate_window + config.recent_window


def firing(script: Assistant, *triggers: str) -> str:
    """The first of these triggers that fires; empty if none does. Constant time.

    None fires while compactions wait after failures.
    """
    if script.now() < script.runtime.compaction_waits[1]:
        return ""
    return next((each for each in triggers if not why_not(script, each)), "")


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
