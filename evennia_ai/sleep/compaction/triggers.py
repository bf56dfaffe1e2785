"""When a compaction fires, and what it would take: counts, room, holds."""

from evennia_ai.history.audience import most_seen
from evennia_ai.history.messages import total_tokens, widest_view_tokens
from evennia_ai.llm_interaction.budget import feasible, usage
from evennia_ai.llm_interaction.prompt import (
    context_caps,
    context_limit,
    context_usage,
    limit_source,
    measure_fixed,
)
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.plan import Plan, cut_by_count, plan_compaction

# A compaction aims this far under its trigger, so that the next message does not fire it again.
HEADROOM = 0.9
# Under a trigger that no compaction can reach, another follows when the history has grown to
# this many times its size.
REGROWTH = 1.5
# A limit that falls below this share of what it was changes plans that were made for it.
MUCH_LESS = 0.8
# What a private circle's part must hold to be folded; below, a summary is about as long.
PART_TOKENS = 100


def wants_compaction(script: Assistant, threshold: float, by_count: bool = True) -> bool:
    """Whether an automatic trigger fires: allowed, something there, usage or count reached."""
    config = script.config
    if not (config.compact_enabled and config.compact_auto) or script.state.stalled_out:
        return False
    if not script.history.messages():
        return False
    share = context_usage(script)
    if script.state.hold:
        return share >= 1.0  # after a rollback only an overflow fires
    return share >= threshold or (by_count and count_fires(script))


def count_fires(script: Assistant) -> bool:
    """Whether more live messages stand there than the two windows hold, and it was of use.

    Markers are not counted, nor what is too little of a private circle to be folded, nor what an
    extraction left.
    """
    return _count_cut(script) > 0 and not script.state.stalled_by_count


def _count_cut(script: Assistant) -> int:
    """Where a compaction by count would cut now, as of `cut_by_count`; 0 where none is due.

    Every tick asks, so it is worked out anew only when the history or a window has changed.
    """
    config, runtime = script.config, script.runtime
    if config.immediate_window is None or config.recent_window is None:
        return 0
    windows = (config.immediate_window, config.recent_window)
    messages = script.history.messages()
    known = runtime.count_cut
    if known is None or known[0] is not messages or known[1] != windows:
        # One stays over, as more than the two windows hold fires.
        stay, leave = windows[0] + 1, windows[1]
        cut = cut_by_count(messages, stay, leave, PART_TOKENS)
        known = runtime.count_cut = (messages, windows, cut)
    return known[2]


def make_plan(script: Assistant, automatic: bool, threshold: float | None = None) -> Plan:
    """The plan of a compaction now; `threshold` is that for sleep by default.

    Where a token trigger fired, a share of tokens is kept as well as the window.
    """
    config = script.config
    threshold = threshold or config.compact_sleep_threshold
    keep = cut = 0
    if automatic and count_fires(script) and context_usage(script) < threshold:
        cut = _count_cut(script)
    elif automatic:
        keep = int(config.compact_preserve_token_share * config.max_context_tokens)
    history, window = script.history.messages(), config.compact_preserve_window
    capacity = kept_capacity(script, threshold)
    if capacity is None:  # room under the emergency's trigger at least, or that one follows soon
        capacity = kept_capacity(script, config.compact_emergency_threshold)
    return plan_compaction(history, window, keep, capacity, PART_TOKENS, cut)


def kept_capacity(script: Assistant, threshold: float) -> int | None:
    """Most tokens the kept messages may hold so that the result lies under its trigger.

    None where the fixed regions alone reach the trigger: no choice of messages would help, and the
    window is kept as it is.
    """
    caps = context_caps(script)
    room = int(threshold * context_limit(script) * HEADROOM)
    room -= script.runtime.fixed_tokens + caps.volatile + _summaries_seen(script) * caps.summary
    return room if room > 0 else None


def worth_a_try(script: Assistant, threshold: float) -> bool:
    """Whether a trigger can be reached, or enough was said since the last compaction.

    Where the fixed regions alone reach the trigger it would fire at every message, each time for
    a model's call and a handful of messages.
    """
    return kept_capacity(script, threshold) is not None or _has_regrown(script)


def is_held_up(script: Assistant, threshold: float, plan: Plan) -> bool:
    """Whether a plan would stay over its trigger for the private talk it holds back.

    Then, too, a compaction would follow at every message.
    """
    room = kept_capacity(script, threshold)
    if room is None or not plan.held or _has_regrown(script):
        return False
    return widest_view_tokens([m for m in plan.staying if not m.is_summary]) > room


def _has_regrown(script: Assistant) -> bool:
    """Whether enough was said since the last compaction; so where there was none."""
    left = script.state.last_compaction.get("new_tokens", 0)
    return bool(script.history.tokens() >= REGROWTH * left)


def usage_with(script: Assistant, history_tokens: int) -> float:
    """The usage if the widest view of the history held so many tokens."""
    used = history_tokens + script.runtime.queued_tokens()
    used += script.runtime.fixed_tokens + context_caps(script).volatile
    return usage(used, context_limit(script))


def check_feasible(script: Assistant) -> None:
    """Say what no compaction can reach.

    At the start, and for each new configuration or much smaller limit.
    """
    checked, limit = script.runtime.feasible_for, context_limit(script)
    if checked and checked[0] == script.config and limit > MUCH_LESS * checked[1]:
        return
    script.runtime.feasible_for = script.config, limit
    measure_fixed(script, script.obj)
    if reason := feasibility(script):
        script.trouble(reason)


def feasibility(script: Assistant) -> str | None:
    """Why no compaction can bring the context under a trigger as it is configured; None if it can.

    Fixed regions, the preserve window at its present size, summaries and reserves must fit. Where
    the fixed regions leave some room, fewer messages are kept; where they leave none, the window
    stays and `REGROWTH` bounds how often compactions follow.
    """
    config, caps = script.config, context_caps(script)
    raw = [m for m in script.history.messages() if not m.is_summary]
    kept = raw[-config.compact_preserve_window :]
    triggers = ("compact_sleep_threshold", "compact_emergency_threshold")
    threshold, name = min((getattr(config, trigger), trigger) for trigger in triggers)
    limit = context_limit(script)
    reserves = caps.volatile + _summaries_seen(script) * caps.summary
    numbers = feasible(
        script.runtime.fixed_tokens, total_tokens(kept), reserves, int(threshold * limit)
    )
    if numbers is None:
        return None
    source = limit_source(script)
    says = f"compaction cannot get under `{name}` with the {len(kept)} newest messages kept: "
    says += f"{numbers} ({source.name} sets the limit)"
    if kept_capacity(script, threshold) is None:
        return (
            f"{says}; not even with no message kept. In an emergency another compaction follows "
            f"only when the history has grown by {REGROWTH - 1:.0%}. {source.remedy}."
        )
    return f"{says}; fewer will be kept. {source.remedy} or lower `compact_preserve_window`."


def _summaries_seen(script: Assistant) -> int:
    """Most summaries one prompt holds: each tier of each audience its viewer may know.

    A circle that has none yet and said too little for one is left out.
    """
    tiers = 2 if script.config.compact_strategy == "cascade" else 1
    return tiers * most_seen(script.history.audiences(PART_TOKENS))
