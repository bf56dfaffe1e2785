"""The state of an assistant, as commands, pages and metrics show it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.stored import aside
from evennia_ai.llm_interaction.contexts import CONTEXTS
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.sleep.compaction.compact import report_line
from evennia_ai.sleep.compaction.rules import no_room
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.staff.show import ago, counted, moment, phrase, price_of
from evennia_ai.turns.spend_book import GAME, Amount, Cap, Holder, SharedSpend
from evennia_ai.turns.tools.execution import waiting_calls

if TYPE_CHECKING:
    from evennia import DefaultObject

    from evennia_ai.assistant_script import AssistantScript

UNCONSOLIDATED_SHOWN = 200
BROKEN = "reading the state"


def facts_or_trouble(script: "AssistantScript") -> dict[str, Any]:
    """As `overview`; of an assistant whose state cannot be read, its name and last trouble."""
    facts = script.survived(BROKEN, lambda: overview(script), None)
    return facts or {"name": script.own_name, "broken": script.runtime.trouble.text}


def status_or_trouble(script: "AssistantScript") -> list[str]:
    """As `status_lines`; of an assistant whose state cannot be read, what is wrong with it."""
    return script.survived(BROKEN, lambda: status_lines(script), None) or [
        f"{script.own_name} is broken.",
        f"Last trouble: {script.runtime.trouble.text}",
        "`ai/doctor` looks for damaged Attributes; the server log says more.",
    ]


def status_lines(script: "AssistantScript") -> list[str]:
    """The state of an assistant, a line for each fact; call it on the reactor thread."""
    runtime, state, body, spend = script.runtime, script.state, script.obj, script.spend
    shared, name = spend.shared, script.model_name
    spent = usage_facts(shared, script.now(), spend.holder, spend.caps())
    caps = [c for c in shared.game_caps() if not (c.spares_own and shared.runs_here(name))]
    switched = "yes"
    if script.db.enabled is False:
        switched = "no (ai/start switches it on)"
    if body.has_account:
        switched += "; somebody puppets the body, so it does not think"
    if not script.is_active:
        switched += "; its timer is stopped"
    compacted = "never"
    if last := script.history.last_compaction():
        # Names of the talk are for admins.
        bare = replace(last, report=replace(last.report, query=""))
        compacted = f"{moment(last.at)} {report_line(body.key, bare)}"
    trouble = "none"
    if runtime.trouble.text:
        trouble = f"{runtime.trouble.text} ({ago(script.now() - runtime.trouble.at)})"
    waiting = ""
    if calls := len(waiting_calls(script)):
        waiting = f"{counted(calls, 'call')} (ai/approve {body.key})"
    facts = {
        "Mode": ", ".join(filter(None, (state.mode, state.phase))),
        "Enabled": switched,
        "Model": name,
        "Speaks by": script.limits().speech,
        "Learned of the model": "; ".join(script.mind.model.facts(name).profile),
        "Mind": script.mind.status(),
        "Thinking now": "no" if runtime.lock.running is None else "yes",
        **_context(script),
        **stored(script.history, body.journal, body.entities),
        "Waiting": f"{counted(len(runtime.queue), 'line')} heard and not yet thought about",
        "Waiting for approval": waiting,
        "Spent (UTC)": f"today {spent['today']}; this month {spent['this_month']}; "
        f"limits: {', '.join(spent['caps']) or 'none of its own'}; "
        f"of the game: {', '.join(map(_cap_text, caps)) or 'none'}",
        "Last compaction": compacted,
        **_sleep(state.last_sleep),
        "Since the server started": answers_line(runtime.counts),
        "Last trouble": trouble,
    }
    return [
        f"{body.key} ({room_name(body)})",
        *as_lines(facts),
        *(f"Wrong setting: {problem}" for problem in state.configuration.problems),
        *(f"Warning: {warning}" for warning in warnings(script)),
    ]


def as_lines(facts: Mapping[str, str]) -> list[str]:
    """Facts as lines; empty ones are left out."""
    return [f"{name}: {value}" for name, value in facts.items() if value]


def _cap_text(cap: Cap) -> str:
    return f"{cap.shown(cap.limit)} a {cap.window}"


def spent_line(spent: Amount) -> str:
    """What was spent, in words; the offline model is not counted."""
    if not spent.calls:
        return "nothing"
    return f"{counted(spent.calls, 'call')}, {spent.tokens:,} tokens, {price_of(spent)}"


def answers_line(counts: Counter[str]) -> str:
    """How many answers an assistant gave since the server started, and by which model."""
    answers, fell_back = counts["answers"], counts["fell back"]
    if not fell_back:
        return counted(answers, "answer")
    share = f"{fell_back:,} of them ({fell_back / answers:.0%})"
    return f"{counted(answers, 'answer')}, {share} by the offline model, as no other answered"


def _context(script: "AssistantScript") -> dict[str, str]:
    """How full the context is, what sets its limit, and when it is compacted."""
    config, compaction, limits = script.config, compaction_state(script), script.limits()
    prompts = [str(event) for event in script.prompts.events() if event.purpose in CONTEXTS]
    if compaction.startswith("on"):  # else the triggers do not fire
        compaction += (
            f"; in a lull from {config.compact_sleep_threshold:.0%} full, "
            f"at once from {config.compact_emergency_threshold:.0%}"
        )
    room, used = limits.room.tokens, script.usage()
    return {
        "Context": f"{used:.1%} full, {round(used * room):,} of the {room:,} tokens left for talk "
        f"in {limits.tokens:,} tokens ({limits.source[0]})",
        "Compaction": compaction,
        "Last prompt": ["none since the server started", *prompts][-1],
    }


def stored(
    history: HistoryHandler, journal: JournalHandler, entities: EntityHandler
) -> dict[str, str]:
    """How much an assistant has stored, a fact a kind."""
    count = journal.waiting()
    waiting = f"{count}"
    if count >= UNCONSOLIDATED_SHOWN:
        waiting += " or more"
    live = sum(not message.is_summary for message in history.messages())
    archived = history.recorded[0] - live - len(history.tombstones())
    return {
        "Messages": f"{live} live ({history.tokens():,} tokens), {archived} archived in "
        f"{counted(history.segment_count(), 'segment')}",
        "Summaries": str(len(history.summary_ids())),
        "Journal": f"{journal.count()} entries, {waiting} not yet consolidated",
        "Entity profiles": str(len(entities.profiles())),
    }


@inlineCallbacks
def memory_status(script: "AssistantScript") -> Steps[list[str]]:
    """Counts of every kind of memory; fires with lines of text."""
    indexed, works = (yield script.memory.count()), "does not work"
    try:
        status = yield script.mind.memories.status()
        own = yield script.mind.memories.ids(script.scope)
        if status["ok"]:
            works = "works"
        semantic = f"{works} ({status['detail']}); {len(own)} memories"
    except AssistantError as error:
        semantic = f"does not work: {error}"
    facts = {
        "Search index": "cannot be read" if indexed is None else f"{indexed} items",
        "Semantic memory": semantic,
        **stored(script.history, script.journal, script.entities),
    }
    return [f"Memory of {script.own_name}", *as_lines(facts)]


def _sleep(last: SleepReport) -> dict[str, str]:
    """When it slept last, and what came of each step."""
    if not last.at:
        return {"Last sleep": "never"}
    facts = {"Last sleep": moment(utc_iso(last.at))}
    for name, entry in last.steps.items():
        outcome = "done"
        if not entry.get("success", True):
            outcome = f"failed: {entry.get('failure', 'the log says why')}"
        elif entry.get("skipped"):
            outcome = f"skipped: {entry.get('reason', '')}"
        facts[f"  {name}"] = outcome
    return facts


def compaction_state(script: "AssistantScript") -> str:
    """Whether and when compaction happens, in a few words."""
    if not script.config.compact_enabled:
        return "off"
    if not script.config.compact_auto:
        return "by command only"
    if script.state.hold:
        return "paused after a rollback, until you type compact or the context is full"
    if script.runtime.summaries.is_compacting:
        return "compacting in the background"
    if script.runtime.summaries.running is not None:
        return "on; a summary is being made again, as something in it was forgotten"
    if script.now() < script.runtime.summaries.waits[1]:
        return "on, but the last one failed; it is tried again in a while"
    return "on"


def warnings(script: "AssistantScript") -> list[str]:
    """What does not work as configured, with the numbers."""
    name, place, limits = script.own_name, script.obj.location, script.limits()
    found = []
    if place is None:
        found.append(f"{name} is nowhere and hears nothing: teleport it into a room")
    elif place.location is not None:
        found.append(f"{name} is carried by {place.key} and hears nothing: drop {name}")
    for value, count in {**aside(script.store), **aside(script.journal.store)}.items():
        found.append(
            f"{count} of `{value}` could not be read and are kept aside: "
            f"aihistory/export {name} writes them to a file"
        )
    if tools_left := measure_fixed(script).tools_left:
        found.append(
            f"{tools_left} of the tools of {name} are not offered: they leave no room under the "
            f"limit of {limits.tokens:,} tokens. {limits.source[1]}, "
            "or switch tools off by `tool_levels`."
        )
    elif reason := no_room(limits):
        found.append(reason)
    if cap := script.spend.reached():
        found.append(f"{cap} is reached: no replies {cap.until}")
    if script.spend.is_unpriced:
        model = script.model_name
        found.append(f"nobody knows the price of {model}: limits of money do not count it")
    return found


def room_name(body: "DefaultObject") -> str:
    """The name of the room that a body is in, or ``nowhere``."""
    return str(getattr(body.location, "key", "nowhere"))


def overview(script: "AssistantScript") -> dict[str, Any]:
    """One row of the list of assistants; `mode` is ``awake``, ``dreaming``, ``off`` and so on."""
    mode, cap, spent = script.state.mode, script.spend.reached(), script.spend.today()
    shown = script.state.phase or mode
    if script.db.enabled is False:
        shown = "off"
    elif script.obj.has_account:
        shown = "puppeted"
    return {
        "name": script.own_name,
        "room": room_name(script.obj),
        "mode": shown,
        "awake": mode == "awake",
        "model": script.model_name,
        "usage": script.usage(),
        "messages": len(script.history.messages()),
        "troubles": script.runtime.counts["troubles"] + script.runtime.counts["errors"],
        "trouble": script.runtime.trouble.text,
        "queue": len(script.runtime.queue),
        "counts": dict(script.runtime.counts),
        "calls": spent.calls,
        "tokens": spent.tokens,
        "cached": spent.cached,
        "cost": spent.cost,
        "today": spent_line(spent),
        "cap": phrase("{0} is reached {0.until}", cap),
        "answers": answers_line(script.runtime.counts),
    }


def usage_facts(
    shared: SharedSpend, now: float, holder: Holder = GAME, caps: Iterable[Cap] | None = None
) -> dict[str, Any]:
    """What calls of the game or an assistant cost today and this month, and the limits of that."""
    if caps is None:
        caps = shared.game_caps()
    return {
        "today": spent_line(shared.spent(holder, "day", now)),
        "this_month": spent_line(shared.spent(holder, "month", now)),
        "caps": [*map(_cap_text, caps)],
    }
