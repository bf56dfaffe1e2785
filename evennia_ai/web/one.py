"""Pages about one assistant: its state, talk, prompts, summaries, memory, options."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import Http404
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.game.seeing import find, stable_id
from evennia_ai.history.archive import SummaryRecord, absorbed_by, state_of
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import ASKER, COMINGS, ROOM, SPEECH, Message, utc_iso
from evennia_ai.kinds import Kind, shown
from evennia_ai.llm_interaction.budget import REGIONS, ReplyTrace, TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.options import OPTIONS, PRESETS
from evennia_ai.rag_memory.entities import current
from evennia_ai.rag_memory.ledger import STATES
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction.compact import report_line
from evennia_ai.staff.acts import Acts, line_state
from evennia_ai.staff.configuration import Tuning, option_called
from evennia_ai.staff.explanation import (
    explanation,
    holds,
    is_reply,
    newest_lines,
    spoken,
    whole_prompt,
)
from evennia_ai.staff.show import marked, moment, request_lines, speaker_label
from evennia_ai.staff.status import memory_status, room_name, status_or_trouble, warnings
from evennia_ai.turns.runtime import ANSWER
from evennia_ai.turns.tools.memory import contributors
from evennia_ai.web.site import Shown, Visit, number, plain

PAGE_LINES, SCENE_LINES, FOUND, JOURNAL_LINES = 50, 60, 30, 50
# Lines before and after a message that its page shows.
AROUND = 5
BUDGET_HOURS, MOST_HOURS = 24, 24 * 30
# Rows and reports of a page, and levels of its tree of summaries.
MOST_ROWS, MOST_REPORTS, MOST_DEEP = 400, 100, 12
# A line of an explanation on a source that has a page of its own.
_SOURCE = re.compile(r"  \(([ms]\w+)\)(?!.*no longer stored$)")


def state(visit: Visit) -> Shown:
    """What `aistatus` shows, and what can be switched."""
    script = visit.assistant
    head, *lines = status_or_trouble(script)
    return {
        "head": head,
        "lines": [line.partition(": ")[::2] for line in lines],
        "is_off": script.db.enabled is False,
        "sleeps": script.state.mode == "sleep",
        "may_change": script.may_change(visit.account),
    }


def change(visit: Visit) -> "Deferred[str]":
    """Do what a button names to the assistant, to a line, or to its memory."""
    sent = {name: text.strip() for name, text in visit.sent.items()}
    wanted = sent.get("id") or sent.get("player") or visit.asked.get("message", "")
    acts = Acts(visit.assistant, visit.seen, visit.account)
    return acts.do(sent["act"], wanted, sent.get("text", ""))


@inlineCallbacks
def talk(visit: Visit) -> Steps[Shown]:
    """What was said, newest first, by words, speaker and channel; older ones before an id."""
    name, speaks = visit.assistant.own_name, visit.assistant.tools.traits.speaks
    wants = {key: visit.asked.get(key, "").strip() for key in ("who", "channel", "q")}
    who, channels = wants["who"].casefold(), {wants["channel"]}

    def fits(message: Message) -> bool:
        channels.add(message.channel)
        return (
            not message.is_summary
            and who in speaker_label(message, name).casefold()
            and wants["channel"] in ("", message.channel)
            and holds(spoken(message, speaks), wants["q"])
        )

    before = visit.asked.get("before", "")
    found = yield newest_lines(visit.seen, fits, PAGE_LINES + 1, before)
    lines = found[:PAGE_LINES]
    note_look(visit, "talk", lines)
    return {
        **wants,
        "lines": [_row(visit, m, parts=marked(m.content, wants["q"])) for m in lines],
        "channels": sorted(filter(None, channels)),
        "older": lines[-1].id if len(found) > PAGE_LINES else "",
    }


def scene(visit: Visit) -> Shown:
    """Who said what to whom in one room, as the assistant heard it, oldest first."""
    script, speaks, lines = visit.assistant, visit.assistant.tools.traits.speaks, list[Message]()
    place, names = script.obj.location, dict[str, str]()
    at = now = stable_id(place) if place is not None else ""
    chosen, rooms = visit.asked.get("room") or now, {now: room_name(script.obj)}
    for message in visit.seen.messages():
        if message.speaker:
            names[message.speaker.id] = message.speaker.key
        if message.role == "user":  # what it answers is said in the same room
            at = message.metadata.get(ROOM, "")
            if at not in rooms:
                rooms[at] = str(getattr(find(at), "key", "by page, or elsewhere"))
        is_talk = message.role in ("user", "assistant") and not message.is_summary
        if at == chosen and is_talk and spoken(message, speaks).strip():
            lines.append(message)
    lines, rows = lines[-SCENE_LINES:], list[Shown]()
    for message in lines:
        to, verb = names.get(message.metadata.get(ASKER, ""), ""), message.channel or "say"
        if message.role == "user" and message.metadata.get(ANSWER):
            to = script.own_name
        if verb in (*SPEECH, *COMINGS):
            verb += "s"
        rows.append(_row(visit, message, said=spoken(message, speaks), to=to, verb=verb))
    note_look(visit, "scene", lines)
    here = []
    if chosen == now:
        here = [str(person["key"]) for person in script.game.present()]
    return {
        "place": rooms.get(chosen, "Nowhere"),
        "rooms": list(rooms.items()),
        "chosen": chosen,
        "is_here": chosen == now,
        "here": here,
        "lines": rows,
        "most": SCENE_LINES,
    }


def _row(visit: Visit, message: Message, **more: Any) -> Shown:
    """A message for a template."""
    made = (call["function"] for call in message.tool_calls)
    return plain(
        message,
        who=speaker_label(message, visit.assistant.own_name),
        calls=[f"{call['name']} {call['arguments']}" for call in made],
        state=line_state(message, visit.assistant.memory.quarantine.sources),
        **more,
    )


def note_look(visit: Visit, page: str, items: Iterable[Any]) -> None:
    """Note in the audit log that somebody read what is not public."""
    private = sum(item.audience != PUBLIC for item in items)
    if private:
        visit.assistant.audit("looked", by=stable_id(visit.account), page=page, private=private)


@inlineCallbacks
def search(visit: Visit) -> Steps[Shown]:
    """What a search finds, with scores: that of the assistant itself, over everything."""
    words, hits = visit.asked.get("q", "").strip(), list[Any]()
    if words:
        name = visit.assistant.own_name
        query = Query(words, FOUND, own_name=name, observations=True, tools=True)
        hits = yield visit.seen.search(query)
        note_look(visit, "search", hits)
    return {"q": words, "hits": [plain(hit, parts=marked(hit.text, words)) for hit in hits]}


def why(visit: Visit) -> Shown:
    """A line, what was said around it, and what it rests on if the assistant said it."""
    script, seen, wanted = visit.assistant, visit.seen, visit.asked["message"]
    message = next(iter(seen.by_ids([wanted])), None)
    if message is None:
        raise Http404(f"{script.own_name} has no message {wanted}.")
    near = seen.around(wanted)
    if message in near:
        place = near.index(message)
        near = near[max(0, place - AROUND) : place + AROUND + 1]
    note_look(visit, "why", [message, *near])
    speaks, sentence, lines = script.tools.traits.speaks, "", list[str]()
    if said_it := is_reply(message, speaks):
        sentence, *lines = explanation(message, seen, speaks)
    return {
        "sentence": sentence,
        "message": _row(visit, message),
        "said": spoken(message, speaks),
        "is_reply": said_it,
        "lines": [(line, found[1] if (found := _SOURCE.match(line)) else "") for line in lines],
        "prompt": whole_prompt(message, script.prompts),
        "around": [_row(visit, each) for each in near],
    }


def summaries(visit: Visit) -> Shown:
    """The tree of summaries, and the reports of compactions."""
    records = {record.id: record for record in visit.seen.summaries()}
    above = absorbed_by(records.values())
    children: dict[str, list[SummaryRecord]] = {}
    for record in records.values():
        children.setdefault(above.get(record.id, ""), []).append(record)

    def node(record: SummaryRecord, depth: int = 0) -> Shown:
        inner = children.get(record.id, ()) if depth < MOST_DEEP else ()
        return {**_summary(record, above), "below": [node(each, depth + 1) for each in inner]}

    newest = sorted(children.get("", ()), key=lambda record: record.created_at, reverse=True)
    note_look(visit, "summaries", newest)
    script = visit.assistant
    reports = [
        (moment(record.at), report_line(script.own_name, record), record.status)
        for record in script.history.compactions()[: -MOST_REPORTS - 1 : -1]
    ]
    return {"roots": [node(each) for each in newest], "reports": reports}


def _summary(record: SummaryRecord, above: Mapping[str, str]) -> Shown:
    kept = "" if record.coverage is None else f"{record.coverage:.0%}"
    return plain(record, coverage=kept, status=state_of(record, above))


def below(visit: Visit) -> Shown:
    """A summary and the raw lines it stands for."""
    wanted, seen = visit.asked["summary"], visit.seen
    record = seen.summary(wanted)
    if record is None:
        raise Http404(f"{visit.assistant.own_name} has no summary {wanted}.")
    count = seen.count_below(wanted)
    first = number(visit.asked.get("from"), 0, 10**9)
    lines = seen.below(wanted, first, first + MOST_ROWS)
    note_look(visit, "summary", [record])
    return {
        "summary": _summary(record, absorbed_by(seen.summaries())),
        "lines": [_row(visit, message) for message in lines],
        "count": count,
        "next": first + MOST_ROWS if first + MOST_ROWS < count else 0,
    }


@inlineCallbacks
def memory(visit: Visit) -> Steps[Shown]:
    """Journal, profiles, pinned notes, who is in quarantine, and how the stores do."""
    script, seen = visit.assistant, visit.seen
    status, count = (yield memory_status(script)), script.obj.journal.count()
    last = number(visit.asked.get("before"), count, count)
    entries = seen.stretch(count - last, count - last + JOURNAL_LINES)
    notes = sorted(seen.notes(), key=lambda note: (STATES.index(note.state), note.at))
    by_time = sorted(seen.profiles(), key=lambda p: p.last_seen, reverse=True)
    profiles = by_time[:MOST_ROWS]
    facts = [item for profile in profiles for item in profile.observations]
    unused = [{"id": each, **about} for each, about in script.memory.quarantine.sources.items()]
    note_look(visit, "memory", [*entries, *notes, *facts])
    return {
        "status": status[1:],
        "entries": [*map(plain, entries)],
        "entry_count": count,
        "older": max(0, last - JOURNAL_LINES),
        "notes": [*map(plain, notes)],
        "profiles": [
            plain(
                profile,
                relationship=profile.relationship(STAFF),
                facts=[
                    plain(belief.observation, line=belief.line)
                    for belief in current(profile.observations, STAFF)
                ],
            )
            for profile in profiles
        ],
        "quarantine": sorted(unused, key=lambda row: str(row["at"]), reverse=True)[:MOST_ROWS],
    }


@inlineCallbacks
def budget(visit: Visit) -> Steps[Shown]:
    """What prompts held over time, the newest requests, and what takes the most."""
    script, seen = visit.assistant, visit.seen
    hours = number(visit.asked.get("hours"), BUDGET_HOURS, MOST_HOURS)
    since = script.now() - 3600 * hours
    budgets: dict[float, TokenBudget] = {}
    for messages in seen.stretches():
        traces = filter(None, map(ReplyTrace.of, messages))
        budgets |= {each.budget.at: each.budget for each in traces if each.budget.at >= since}
        if messages and messages[0].created_at < utc_iso(since):
            break
        yield pause()
    prompts = [budgets[at] for at in sorted(budgets)]
    marks = [
        {
            "at": mark.at,
            "on": moment(mark.at),
            "trigger": mark.trigger,
            "back": moment(mark.rolled_back_at),
        }
        for mark in script.history.compactions()
        if mark.at >= utc_iso(since)
    ]
    return {
        "hours": hours,
        "limit": f"{prompts[-1].limit:,}" if prompts else "",
        "chart": stacked([p for p in prompts if p.purpose == CONTEXT_AWAKE]),
        "marks": marks,
        "requests": ["\n".join(request_lines(event)) for event in reversed(seen.requests())],
        "contributors": contributors(script, script.tools.offered(), visit.audience),
    }


def stacked(prompts: Sequence[TokenBudget]) -> dict[str, list[float]]:
    """Prompts as columns of a chart: times, tokens of each region that one holds, limits."""
    columns = {
        region: [float(each.regions.get(region, 0)) for each in prompts] for region in REGIONS
    }
    columns = {region: tokens for region, tokens in columns.items() if any(tokens)}
    return {
        "at": [each.at for each in prompts],
        **columns,
        "limit": [each.limit for each in prompts],
    }


def options(visit: Visit) -> Shown:
    """All options with their values, defaults, help and form fields."""
    script = visit.assistant
    config, sources = script.config, script.state.configuration.sources
    groups: dict[str, list[Shown]] = {}
    for option in OPTIONS.values():
        kind, value = option.kind, getattr(config, option.name)
        parts = [_field(f"{option.name}.{key}", kind.of, value.get(key)) for key in kind.keys]
        row = {
            "option": option,
            "label": _label(option.name),
            "source": sources.get(option.name, ""),
            "default": shown(option.default),
            "fields": parts or [_field(option.name, kind, value)],
        }
        groups.setdefault(option.facts["group"], []).append(row)
    return {
        "groups": list(groups.items()),
        "presets": list(PRESETS),
        "problems": [str(problem) for problem in script.state.configuration.problems],
        "warnings": warnings(script),
        "may_change": script.may_change(visit.account),
    }


def _field(name: str, kind: Kind, value: Any) -> Shown:
    """The field of a form for an option, or for one of its values."""
    text = shown(value)
    if kind.field == "list":
        text = "\n".join(value)
    elif kind.field == "number" and value is None:
        text = ""
    return {"name": name, "label": _label(name.rpartition(".")[2]), "kind": kind, "value": text}


def _label(name: str) -> str:
    """An option's name as words."""
    return name.replace("_", " ").capitalize()


def set_option(visit: Visit) -> str:
    """Set an option or take a preset; by the rules of `aiconfig`."""
    sent, tuning = visit.sent, Tuning(visit.assistant, visit.account.key, visit.is_admin)
    if sent["act"] == "preset":
        return " ".join(tuning.take_preset(sent.get("preset", "")))
    option, text = sent.get("option", ""), sent.get("value", "")
    if sent["act"] == "default":
        text = "default"
    elif not text.strip():
        name, key = option_called(option)
        kind = OPTIONS[name].kind
        if key and kind.of is not None:
            kind = kind.of
        if kind.field == "number":
            text = "None"
    return " ".join(tuning.change(option, text))
