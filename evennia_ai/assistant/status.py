"""The state of an assistant as plain values, for commands, web and command line."""

from collections.abc import Mapping
from typing import Any

from evennia_ai import conf
from evennia_ai.history.messages import is_summary
from evennia_ai.history.records import as_count
from evennia_ai.llm_interaction.prompt import (
    context_caps,
    context_limit,
    context_usage,
    measure_fixed,
)
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.triggers import feasibility

UNCONSOLIDATED_SHOWN = 200


def status_facts(script: Assistant) -> dict[str, Any]:
    """Everything `aistatus` shows.

    Args:
        script: The assistant's script; called on the reactor thread.

    Returns:
        A dict that JSON can hold.
    """
    config = script.config
    return {
        "name": script.obj.key,
        "room": script.obj.location.key if script.obj.location else "nowhere",
        "enabled": script.db.enabled is not False,
        "puppeted": bool(script.obj.has_account),
        "timer": bool(script.is_active),
        "mode": script.state.mode,
        "phase": script.state.phase,
        "model": script.model_name,
        "context": _context(script, config),
        "stored": _stored(script),
        "queue": len(script.runtime.queue),
        "thinking": script.runtime.in_flight is not None,
        "counts": dict(sorted(script.runtime.counts.items())),
        "spent_today": {k: v for k, v in script.spend.today().items() if k != "version"},
        "last_compaction": script.state.last_compaction,
        "last_sleep": script.state.last_sleep,
        "last_trouble": script.runtime.last_error,
        "problems": [str(problem) for problem in script.state.problems],
        "warnings": warnings(script),
    }


def _context(script: Assistant, config: Any) -> dict[str, Any]:
    budgets = script.runtime.budgets
    last = budgets[-1] if budgets else None
    return {
        "usage": round(context_usage(script), 4),
        "limit_tokens": context_limit(script),
        "sleep_threshold": config.compact_sleep_threshold,
        "emergency_threshold": config.compact_emergency_threshold,
        "compaction": compaction_state(script),
        "last_prompt": str(last) if last else "",
        "left_out": len(last.left_out) if last else 0,
        "notes": list(last.notes) if last else [],
    }


def compaction_state(script: Assistant) -> str:
    """Whether and when compaction happens, in a few words."""
    if not script.config.compact_enabled:
        return "off"
    if not script.config.compact_auto:
        return "by command only"
    if script.state.stalled_out:
        return "stopped after stalls"
    if script.state.hold:
        return "held after a rollback until the next compact or until the context is full"
    has_windows = script.config.immediate_window and script.config.recent_window
    stopped = has_windows and script.state.stalled_by_count
    return "on, but by count stopped after stalls" if stopped else "on"


def _stored(script: Assistant) -> dict[str, int]:
    messages = script.history.messages()
    markers = [message for message in messages if is_summary(message)]
    return {
        "live_messages": len(messages) - len(markers),
        "live_tokens": script.history.tokens(),
        "archived_messages": sum(as_count(m["metadata"].get("compacted_count")) for m in markers),
        "archive_segments": archive_segments(script),
        "summaries": script.history.summary_count(),
        "journal_entries": script.obj.journal.count(),
        "unconsolidated": len(script.obj.journal.unconsolidated(UNCONSOLIDATED_SHOWN)),
        "entity_profiles": len(script.obj.entities.profiles()),
    }


def archive_segments(script: Assistant) -> int:
    """How many archive segments hold messages that are not live again by a rollback."""
    history = script.history
    return max(0, history.segment_count() - len(history.restored_segments()))


def warnings(script: Assistant) -> list[str]:
    """What the configuration cannot reach, with the numbers."""
    measure_fixed(script, script.obj)
    found = [*_deaf(script), *(_speechless(script) or _infeasible(script)), *_shrunk(script)]
    if script.over_spend():
        found.append("the spend cap of today is reached: no replies until tomorrow (UTC)")
    return found


def _deaf(script: Assistant) -> list[str]:
    """That it stands in no room, if so."""
    name, place = script.obj.key, script.obj.location
    if place is None:
        return [f"{name} is nowhere and hears nothing: teleport it into a room"]
    if place.location is None:
        return []
    return [f"{name} is carried by {place.key} and hears nothing: drop {name}"]


def _speechless(script: Assistant) -> list[str]:
    """That no prompt at all fits under the limit, if so."""
    fixed, caps, limit = script.runtime.fixed_tokens, context_caps(script), context_limit(script)
    if fixed + caps.reserve <= limit:
        return []
    return [
        f"{script.obj.key} cannot think at all: the fixed regions (rules, persona, tools, ledger) "
        f"take {fixed:,} tokens and the reply {caps.reserve:,}, more than the limit of {limit:,}. "
        "Raise `max_context_tokens`."
    ]


def _infeasible(script: Assistant) -> list[str]:
    """The threshold no compaction can get under, as the newest messages are now."""
    reason = feasibility(script)
    return [reason] if reason else []


def _shrunk(script: Assistant) -> list[str]:
    """Caps that are smaller than configured because of the limit."""
    config, caps = script.config, context_caps(script)
    if not caps.shrunk:
        return []
    pairs = (
        ("memory_inject_tokens", caps.retrieved),
        ("tail_max_tokens", caps.tail),
        ("reply_reserve_tokens", caps.reserve),
        ("summary_max_tokens", caps.summary),
        ("ledger_max_tokens", caps.ledger),
    )
    shown = [
        f"`{name}` {used:,} of {getattr(config, name):,}"
        for name, used in pairs
        if used < getattr(config, name)
    ]
    return [f"caps are shrunk to fit {context_limit(script):,} tokens: {', '.join(shown)}"]


def overview(script: Assistant) -> dict[str, Any]:
    """One line of the list of assistants."""
    return {
        "name": script.obj.key,
        "room": script.obj.location.key if script.obj.location else "nowhere",
        "mode": mode_word(script),
        "model": script.model_name,
        "usage": context_usage(script),
        "messages": len(script.history.messages()),
        "troubles": script.runtime.counts["troubles"] + script.runtime.counts["errors"],
    }


def mode_word(script: Assistant) -> str:
    """What an assistant is doing: ``awake``, ``dreaming``, ``off`` and so on."""
    if script.db.enabled is False:
        return "off"
    if script.obj.has_account:
        return "puppeted"
    return str(script.state.phase or script.state.mode)


def usage_facts(script: Assistant) -> dict[str, Any]:
    """What an assistant's calls cost today, and how many were made since the server started."""
    return {
        "name": script.obj.key,
        "model": script.model_name,
        **script.spend.today(),
        "cap": script.config.spend_max_tokens_day,
        "calls_since_start": script.runtime.counts["calls"],
    }


def game_facts() -> dict[str, Any]:
    """The model of the game, for the head of a report."""
    return {"model": conf.model_name(), "base": bool(conf.setting("LLM_API_BASE"))}
