"""The state of an assistant as plain values, for commands, web and command line."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evennia_ai.game.lease import ELSEWHERE, is_elsewhere
from evennia_ai.history.aside import aside
from evennia_ai.llm_interaction.contexts import CONTEXTS
from evennia_ai.llm_interaction.prompt import (
    TAIL_TOKENS,
    context_caps,
    context_limit,
    context_usage,
    learned_window,
    limit_source,
    measure_fixed,
    offered_tools,
)
from evennia_ai.llm_interaction.tool_protocol import tool_protocol
from evennia_ai.sleep.compaction.due import no_room
from evennia_ai.turns.spend import GAME
from evennia_ai.turns.spend_book import Cap, SpendRow
from evennia_ai.turns.tools.approval import waiting_calls

if TYPE_CHECKING:
    from evennia_ai.assistant_script import AssistantScript

UNCONSOLIDATED_SHOWN = 200
# Accounts that a report on spend names.
ACCOUNTS_SHOWN = 10
BROKEN = "reading the state"


def facts_or_trouble(
    facts: Callable[["AssistantScript"], dict[str, Any]], script: "AssistantScript"
) -> dict[str, Any]:
    """The facts of an assistant; if they cannot be found, only its name and its last trouble."""
    found = script.survived(BROKEN, lambda: facts(script), None)
    return found or {"name": script.obj.key, "broken": script.runtime.last_error}


def status_facts(script: "AssistantScript") -> dict[str, Any]:
    """Everything `aistatus` shows, as JSON can hold it; call it on the reactor thread."""
    config, last = script.config, script.budgets.newest(lambda event: event.purpose in CONTEXTS)
    return {
        "name": script.obj.key,
        "room": room_name(script),
        "enabled": script.db.enabled is not False,
        "puppeted": bool(script.obj.has_account),
        "timer": bool(script.is_active),
        "mode": script.state.mode,
        "phase": script.state.phase,
        "model": script.model_name,
        "tool_protocol": str(tool_protocol(script)),
        "mind": str(script.mind.status()),
        "context": {
            "usage": round(context_usage(script), 4),
            "limit_tokens": context_limit(script),
            "limit_source": limit_source(script).name,
            "sleep_threshold": config.compact_sleep_threshold,
            "emergency_threshold": config.compact_emergency_threshold,
            "compaction": compaction_state(script),
            "last_prompt": str(last) if last else "",
            "left_out": last.left_out if last else 0,
            "notes": list(last.notes) if last else [],
        },
        "stored": _stored(script),
        "queue": len(script.runtime.queue),
        "waiting_calls": len(waiting_calls(script)),
        "thinking": script.runtime.lock.running is not None,
        "counts": dict(sorted(script.runtime.counts.items())),
        "spent_today": script.spend.today(),
        "last_compaction": last_compaction(script),
        "last_sleep": script.state.last_sleep,
        "last_trouble": script.runtime.last_error,
        "last_trouble_age_s": script.now() - script.runtime.last_error_at,
        "problems": [str(problem) for problem in script.state.problems],
        "warnings": warnings(script),
    }


def last_compaction(script: "AssistantScript") -> dict[str, Any]:
    """When the last compaction was and what it did; empty if there was none."""
    record = script.history.last_compaction()
    if record is None:
        return {}
    summary = {"summary_id": record.report.summary_id}
    return {"id": record.id, "at": record.at, **asdict(record.report), **summary}


def compaction_state(script: "AssistantScript") -> str:
    """Whether and when compaction happens, in a few words."""
    if not script.config.compact_enabled:
        return "off"
    if not script.config.compact_auto:
        return "by command only"
    if script.state.hold:
        return "held after a rollback until the next compact or until the context is full"
    if script.runtime.behind is not None:
        return "compacting in the background"
    if script.now() < script.runtime.compaction_waits[1]:
        return "on, but the last one failed; it is tried again in a while"
    return "on"


def _stored(script: "AssistantScript") -> dict[str, int]:
    messages = script.history.messages()
    live = sum(not message.is_summary for message in messages)
    recorded, _ = script.history.recorded
    return {
        "live_messages": live,
        "live_tokens": script.history.tokens(),
        "archived_messages": recorded - live - len(script.history.tombstones()),
        "archive_segments": archive_segments(script),
        "summaries": len(script.history.summary_ids()),
        "journal_entries": script.obj.journal.count(),
        "unconsolidated": len(script.obj.journal.unconsolidated(UNCONSOLIDATED_SHOWN)),
        "entity_profiles": len(script.obj.entities.profiles()),
    }


def archive_segments(script: "AssistantScript") -> int:
    """How many archive segments hold messages that are not live again by a rollback."""
    history = script.history
    return max(0, history.segment_count() - len(history.restored_segments()))


def warnings(script: "AssistantScript") -> list[str]:
    """What does not work as configured, with the numbers."""
    offered, tools = measure_fixed(script, script.obj).tools, offered_tools(script)
    name, place = script.obj.key, script.obj.location
    config, caps, limit = script.config, context_caps(script), context_limit(script)
    found = [ELSEWHERE.format(name=name)] if is_elsewhere(script) else []
    if place is None:
        found.append(f"{name} is nowhere and hears nothing: teleport it into a room")
    elif place.location is not None:
        found.append(f"{name} is carried by {place.key} and hears nothing: drop {name}")
    for name_of_value, count in {**aside(script.store), **aside(script.journal.store)}.items():
        found.append(
            f"{count} of `{name_of_value}` could not be read and are kept aside: "
            f"aihistory/export {name} writes them to a file"
        )
    if len(offered) < len(tools):
        missing = len(tools) - len(offered)
        found.append(
            f"{missing} of the {len(tools)} tools of {name} are not offered: they "
            f"leave no room under the limit of {limit:,} tokens. {limit_source(script).remedy}, "
            "or switch tools off by `tool_levels`."
        )
    elif reason := no_room(script):
        found.append(reason)
    window = learned_window(script)
    if window and window.tokens < config.max_context_tokens:
        found.append(
            f"`max_context_tokens` is {config.max_context_tokens:,}, but the window of "
            f"{script.model_name} holds {window.tokens:,} ({window.source}): the smaller figure "
            "is used. Nothing has to be done; a server with a larger window remembers more."
        )
    if caps.shrunk:
        wanted = (
            ("`memory_inject_tokens`", caps.retrieved, config.memory_inject_tokens),
            ("room and people", caps.tail, TAIL_TOKENS),
            ("`reply_reserve_tokens`", caps.reserve, config.reply_reserve_tokens),
            ("a summary", caps.summary, script.summary_max_tokens),
            ("`ledger_max_tokens`", caps.ledger, config.ledger_max_tokens),
        )
        shown = (f"{what} {used:,} of {most:,}" for what, used, most in wanted if used < most)
        found.append(f"caps are shrunk to fit {limit:,} tokens: {', '.join(shown)}")
    if cap := script.spend.reached():
        found.append(f"{cap} is reached: no replies {cap.until}")
    if script.spend.is_unpriced:
        found.append(
            f"nobody knows the price of {script.model_name}: caps of money do not count it"
        )
    return found


def room_name(script: "AssistantScript") -> str:
    """The name of the room that its body is in, or ``nowhere``."""
    place = script.obj.location
    return place.key if place else "nowhere"


def overview(script: "AssistantScript") -> dict[str, Any]:
    """One row of the list of assistants; `mode` is ``awake``, ``dreaming``, ``off`` and so on."""
    mode = script.state.phase or script.state.mode
    if script.db.enabled is False:
        mode = "off"
    elif script.obj.has_account:
        mode = "puppeted"
    return {
        "name": script.obj.key,
        "room": room_name(script),
        "mode": mode,
        "model": script.model_name,
        "usage": context_usage(script),
        "messages": len(script.history.messages()),
        "troubles": script.runtime.counts["troubles"] + script.runtime.counts["errors"],
    }


def usage_facts(script: "AssistantScript") -> dict[str, Any]:
    """What an assistant's calls cost today and this month, and the caps of that."""
    spend = script.spend
    who = {"name": script.obj.key, "model": script.model_name}
    return {**who, **_spent(spend.row(), spend.caps())}


def shared_usage(script: "AssistantScript") -> list[dict[str, Any]]:
    """The same for the whole game and for the accounts that asked this month, dearest first.

    Any assistant of the game will do.
    """
    spend = script.spend
    months = {account: spend.row(account).month.spent for account in spend.shared.accounts()}
    busy = sorted(months, key=lambda a: (-months[a].cost, -months[a].tokens))[:ACCOUNTS_SHOWN]
    return [
        {"name": spend.name_of(holder), **_spent(spend.row(holder), spend.caps(holder))}
        for holder in (GAME, *(account for account in busy if months[account].calls))
    ]


def _spent(row: SpendRow, caps: Iterable[Cap]) -> dict[str, Any]:
    windows = {"day": row.day.spent.to_dict(), "month": row.month.spent.to_dict()}
    return {**windows, "caps": [f"{cap.shown(cap.limit)} a {cap.window}" for cap in caps]}
