"""The state of an assistant, as commands, pages and metrics show it."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.stored import aside
from evennia_ai.llm_interaction.contexts import CONTEXTS
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.sleep.compaction.compact import no_room, report_line
from evennia_ai.sleep.compaction.plan import STALE
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.staff.show import ago, counted, moment, price_of
from evennia_ai.turns.spend_book import GAME, Amount, Cap, Holder, SharedSpend
from evennia_ai.turns.tools.execution import waiting_calls

if TYPE_CHECKING:
    from evennia import DefaultObject

    from evennia_ai.assistant_script import AssistantScript

UNCONSOLIDATED_SHOWN = 200
BROKEN = "reading the state"


def facts_or_trouble(
    facts: Callable[["AssistantScript"], dict[str, Any]], script: "AssistantScript"
) -> dict[str, Any]:
    """The facts of an assistant; if they cannot be found, only its name and its last trouble."""
    found = script.survived(BROKEN, lambda: facts(script), None)
    return found or {"name": script.obj.key, "broken": script.runtime.last_error}


def status_or_trouble(script: "AssistantScript") -> list[str]:
    """As `status_lines`; of an assistant whose state cannot be read, what is wrong with it."""
    name = script.obj.key
    return script.survived(BROKEN, lambda: status_lines(script), None) or [
        f"{name} is broken.",
        f"Last trouble: {script.runtime.last_error}",
        "`ai/doctor` looks for damaged Attributes; the server log says more.",
    ]


def status_lines(script: "AssistantScript") -> list[str]:
    """The state of an assistant, a line for each fact; call it on the reactor thread."""
    runtime, state, body = script.runtime, script.state, script.obj
    name, spent, shared = script.model_name, usage_facts(script), script.spend.shared
    game_limits = [
        _cap_line(cap)
        for cap in shared.game_caps()
        if not (cap.spares_own and shared.runs_here(name))
    ]
    learned = script.mind.model.facts(name).profile
    last = script.history.last_compaction()
    switched = "yes" if script.db.enabled is not False else "no (ai/start switches it on)"
    if body.has_account:
        switched += "; somebody puppets the body, so it does not think"
    if not script.is_active:
        switched += "; its timer is stopped"
    calls = len(waiting_calls(script))
    waiting = f"Waiting for approval: {counted(calls, 'call')} (ai/approve {body.key})"
    # Names of the talk are for admins.
    bare = replace(last, report=replace(last.report, query="")) if last else None
    trouble = f"{runtime.last_error} ({ago(script.now() - runtime.last_error_at)})"
    return [
        f"{body.key} ({room_name(script.obj)})",
        f"Mode: {state.mode}" + (f", {state.phase}" if state.phase else ""),
        f"Enabled: {switched}",
        f"Model: {name}",
        f"Speaks by: {script.limits().speech}",
        *([f"Learned of the model: {'; '.join(learned)}"] if learned else []),
        f"Mind: {script.mind.status()}",
        f"Thinking now: {'yes' if runtime.lock.running is not None else 'no'}",
        *_context_lines(script),
        *stored_lines(script),
        f"Waiting: {counted(len(runtime.queue), 'line')} heard and not yet thought about",
        *([waiting] if calls else []),
        f"Spent (UTC): today {spent['today']}; this month {spent['this_month']}; "
        f"limits: {', '.join(spent['caps']) or 'none of its own'}; "
        f"of the game: {', '.join(game_limits) or 'none'}",
        "Last compaction: "
        + (f"{moment(last.at)} {report_line(body.key, bare)}" if last else "never"),
        *_sleep_lines(state.last_sleep),
        f"Since the server started: {answers_line(runtime.counts)}",
        f"Last trouble: {trouble if runtime.last_error else 'none'}",
        *(f"Wrong setting: {problem}" for problem in state.configuration.problems),
        *(f"Warning: {warning}" for warning in warnings(script)),
    ]


def _cap_line(cap: Cap) -> str:
    return f"{cap.shown(cap.limit)} a {cap.window}"


def spent_line(spent: Amount) -> str:
    """What was spent, in words; the offline model is not counted."""
    if not spent.calls:
        return "nothing"
    cost = price_of(spent.calls, spent.cost, spent.unpriced)
    return f"{counted(spent.calls, 'call')}, {spent.tokens:,} tokens, {cost}"


def answers_line(counts: Counter[str]) -> str:
    """How many answers an assistant gave since the server started, and by which model."""
    answers, fell_back = counts["answers"], counts["fell back"]
    if not fell_back:
        return counted(answers, "answer")
    share = f"{fell_back:,} of them ({fell_back / answers:.0%})"
    return f"{counted(answers, 'answer')}, {share} by the offline model, as no other answered"


def _context_lines(script: "AssistantScript") -> list[str]:
    config, compaction, limits = script.config, compaction_state(script), script.limits()
    asked = [event for event in script.budgets.events() if event.purpose in CONTEXTS]
    if compaction.startswith("on"):  # else the triggers do not fire
        compaction += (
            f"; in a lull from {config.compact_sleep_threshold:.0%} full, "
            f"at once from {config.compact_emergency_threshold:.0%}"
        )
    room, used = limits.room.tokens, script.usage()
    return [
        f"Context: {used:.1%} full, {round(used * room):,} of the {room:,} tokens left for talk in "
        f"{limits.tokens:,} tokens ({limits.source[0]})",
        f"Compaction: {compaction}",
        f"Last prompt: {asked[-1] if asked else 'none since the server started'}",
    ]


def stored_lines(script: "AssistantScript") -> list[str]:
    """How much an assistant has stored, a line a kind."""
    history, journal = script.history, script.obj.journal
    waiting = len(journal.unconsolidated(UNCONSOLIDATED_SHOWN))
    more = " or more" if waiting >= UNCONSOLIDATED_SHOWN else ""
    live = sum(not message.is_summary for message in history.messages())
    archived = history.recorded[0] - live - len(history.tombstones())
    return [
        f"Messages: {live} live ({history.tokens():,} tokens), {archived} archived in "
        f"{counted(history.segment_count(), 'segment')}",
        f"Summaries: {len(history.summary_ids())}",
        f"Journal: {journal.count()} entries, {waiting}{more} not yet consolidated",
        f"Entity profiles: {len(script.obj.entities.profiles())}",
    ]


@inlineCallbacks
def memory_status(script: "AssistantScript") -> Steps[list[str]]:
    """Counts of every kind of memory; fires with lines of text."""
    indexed = yield script.memory.count()
    try:
        status = yield script.mind.memories.status()
        own = yield script.mind.memories.ids(script.scope)
    except AssistantError as error:
        semantic = f"does not work: {error}"
    else:
        works = "works" if status["ok"] else "does not work"
        semantic = f"{works} ({status['detail']}); {len(own)} memories"
    return [
        f"Memory of {script.obj.key}",
        f"Search index: {'cannot be read' if indexed is None else f'{indexed} items'}",
        f"Semantic memory: {semantic}",
        *stored_lines(script),
    ]


def _sleep_lines(last: SleepReport) -> list[str]:
    if not last.at:
        return ["Last sleep: never"]
    lines = [f"Last sleep: {moment(utc_iso(last.at))}"]
    for name, entry in last.steps.items():
        outcome = "done"
        if not entry.get("success", True):
            outcome = f"failed: {entry.get('failure', 'the log says why')}"
        elif entry.get("skipped"):
            outcome = f"skipped: {entry.get('reason', '')}"
        lines.append(f"  {name}: {outcome}")
    return lines


def compaction_state(script: "AssistantScript") -> str:
    """Whether and when compaction happens, in a few words."""
    if not script.config.compact_enabled:
        return "off"
    if not script.config.compact_auto:
        return "by command only"
    if script.state.hold:
        return "paused after a rollback, until you type compact or the context is full"
    if script.runtime.behind is not None:
        if script.runtime.behind[1] == STALE:
            return "on; a summary is being made again, as something in it was forgotten"
        return "compacting in the background"
    if script.now() < script.runtime.compaction_waits[1]:
        return "on, but the last one failed; it is tried again in a while"
    return "on"


def warnings(script: "AssistantScript") -> list[str]:
    """What does not work as configured, with the numbers."""
    tools_left = measure_fixed(script).tools_left
    name, place = script.obj.key, script.obj.location
    limit, found = script.limits().tokens, []
    if place is None:
        found.append(f"{name} is nowhere and hears nothing: teleport it into a room")
    elif place.location is not None:
        found.append(f"{name} is carried by {place.key} and hears nothing: drop {name}")
    for name_of_value, count in {**aside(script.store), **aside(script.journal.store)}.items():
        found.append(
            f"{count} of `{name_of_value}` could not be read and are kept aside: "
            f"aihistory/export {name} writes them to a file"
        )
    if tools_left:
        found.append(
            f"{tools_left} of the tools of {name} are not offered: they "
            f"leave no room under the limit of {limit:,} tokens. {script.limits().source[1]}, "
            "or switch tools off by `tool_levels`."
        )
    elif reason := no_room(script.limits()):
        found.append(reason)
    if cap := script.spend.reached():
        found.append(f"{cap} is reached: no replies {cap.until}")
    if script.spend.is_unpriced:
        found.append(
            f"nobody knows the price of {script.model_name}: limits of money do not count it"
        )
    return found


def room_name(body: "DefaultObject") -> str:
    """The name of the room that a body is in, or ``nowhere``."""
    place = body.location
    return place.key if place else "nowhere"


def overview(script: "AssistantScript") -> dict[str, Any]:
    """One row of the list of assistants; `mode` is ``awake``, ``dreaming``, ``off`` and so on."""
    mode = script.state.phase or script.state.mode
    if script.db.enabled is False:
        mode = "off"
    elif script.obj.has_account:
        mode = "puppeted"
    cap = script.spend.reached()
    return {
        "name": script.obj.key,
        "room": room_name(script.obj),
        "mode": mode,
        "model": script.model_name,
        "usage": script.usage(),
        "messages": len(script.history.messages()),
        "troubles": script.runtime.counts["troubles"] + script.runtime.counts["errors"],
        "trouble": script.runtime.last_error,
        "today": spent_line(script.spend.today()),
        "cap": f"{cap} is reached {cap.until}" if cap else "",
        "answers": answers_line(script.runtime.counts),
    }


def usage_facts(script: "AssistantScript") -> dict[str, Any]:
    """What an assistant's calls cost today and this month, and the limits of that."""
    spend, now = script.spend, script.now()
    return _spent(spend.shared, spend.holder, now, spend.caps())


def game_usage(shared: SharedSpend, now: float) -> dict[str, Any]:
    """The same for the whole game."""
    return _spent(shared, GAME, now, shared.game_caps())


def _spent(shared: SharedSpend, holder: Holder, now: float, caps: Iterable[Cap]) -> dict[str, Any]:
    return {
        "today": spent_line(shared.spent(holder, "day", now)),
        "this_month": spent_line(shared.spent(holder, "month", now)),
        "caps": [*map(_cap_line, caps)],
    }
