"""Pages about one assistant: its state, talk, prompts, summaries, memory, options."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from django.http import Http404
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps, pause
from evennia_ai.game.seeing import find, stable_id
from evennia_ai.history.archive import COMMITTED, SummaryRecord, absorbed_by, state_of
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import ASKER, COMINGS, ROOM, SPEECH, Message, utc_iso
from evennia_ai.kinds import Kind, shown
from evennia_ai.llm_interaction.budget import REGIONS, ReplyTrace, TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.options import OPTIONS, PRESETS
from evennia_ai.rag_memory.ledger import STATES
from evennia_ai.rag_memory.profile import Profile, current
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction.compact import report_line
from evennia_ai.staff.acts import Acts, line_state
from evennia_ai.staff.configuration import change_option, option_called, take_preset
from evennia_ai.staff.explanation import explanation, is_reply, spoken, whole_prompt
from evennia_ai.staff.show import cuts, marked, moment, speaker_label
from evennia_ai.staff.status import memory_status, room_name, status_or_trouble, warnings
from evennia_ai.turns.contributors import contributors
from evennia_ai.turns.runtime import ANSWER
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
    """What was said, newest first, by words, speaker and channel; older pages begin before an id.

    Of private talk alone if the address asks for that.
    """
    script, speaks = visit.assistant, visit.assistant.tools.traits.speaks
    wants = {key: visit.asked.get(key, "").strip() for key in ("who", "channel", "audience", "q")}
    who, words, before = wants["who"].casefold(), wants["q"].casefold(), visit.asked.get("before")
    found, channels = list[Message](), set[str]()
    for stretch in visit.seen.stretches():
        channels |= {message.channel for message in stretch if message.channel}
        for message in stretch:
            if before:  # it is still to come
                if message.id == before:
                    before = ""
                continue
            if (
                not message.is_summary
                and who in speaker_label(message, script.obj.key).casefold()
                and wants["channel"] in ("", message.channel)
                and (wants["audience"] != "private" or message.audience != PUBLIC)
                and words in spoken(message, speaks).casefold()
            ):
                found.append(message)
        if len(found) > PAGE_LINES:
            break
        yield pause()
    older, shown_now = len(found) > PAGE_LINES, found[:PAGE_LINES]
    note_look(visit, "talk", (message.audience for message in shown_now))
    lines = [
        {**message_row(script, message), "parts": marked(message.content, wants["q"])}
        for message in shown_now
    ]
    older_than = shown_now[-1].id if older else ""
    return {**wants, "lines": lines, "channels": sorted(channels), "older": older_than}


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
    newest, rows = lines[-SCENE_LINES:], list[Shown]()
    for message in newest:
        to, verb = names.get(message.metadata.get(ASKER, ""), ""), message.channel or "say"
        if message.role == "user" and message.metadata.get(ANSWER):
            to = script.obj.key
        if verb in (*SPEECH, *COMINGS):
            verb += "s"
        said = spoken(message, speaks)
        rows.append({**message_row(script, message), "said": said, "to": to, "verb": verb})
    note_look(visit, "scene", (message.audience for message in newest))
    here = [str(person["key"]) for person in script.game.present()] if chosen == now else []
    return {
        "place": rooms.get(chosen, "Nowhere"),
        "rooms": list(rooms.items()),
        "chosen": chosen,
        "is_here": chosen == now,
        "here": here,
        "lines": rows,
        "most": SCENE_LINES,
    }


def message_row(script: AssistantScript, message: Message) -> Shown:
    """A message for a template."""
    made = (call["function"] for call in message.tool_calls)
    calls = [f"{call['name']} {call['arguments']}" for call in made]
    state = line_state(message, script.memory.quarantine.sources)
    return plain(message, who=speaker_label(message, script.obj.key), calls=calls, state=state)


def note_look(visit: Visit, page: str, audiences: Iterable[str]) -> None:
    """Note in the audit log that somebody read what is not public."""
    private = sum(audience != PUBLIC for audience in audiences)
    if private:
        visit.assistant.audit("looked", by=stable_id(visit.account), page=page, private=private)


@inlineCallbacks
def search(visit: Visit) -> Steps[Shown]:
    """What a search finds, with scores: that of the assistant itself, over everything."""
    script, words = visit.assistant, visit.asked.get("q", "").strip()
    hits: Sequence[Any] = ()
    if words:
        query = Query(words, FOUND, own_name=script.obj.key, observations=True, tools=True)
        hits = yield visit.seen.search(query)
        note_look(visit, "search", (hit.audience for hit in hits))
    return {"q": words, "hits": [plain(hit, parts=marked(hit.text, words)) for hit in hits]}


def why(visit: Visit) -> Shown:
    """A line, what was said around it, and what it rests on if the assistant said it."""
    script, wanted = visit.assistant, visit.asked["message"]
    message = next(iter(visit.seen.by_ids([wanted])), None)
    if message is None:
        raise Http404(f"{script.obj.key} has no message {wanted}.")
    stretch = visit.seen.around(message.id)
    place = [each.id for each in stretch].index(message.id) if stretch else 0
    near = stretch[max(0, place - AROUND) : place + AROUND + 1]
    note_look(visit, "why", (each.audience for each in (message, *near)))
    speaks, sentence, lines = script.tools.traits.speaks, "", list[str]()
    said_it = is_reply(message, speaks)
    if said_it:
        sentence, *lines = explanation(script, message, visit.seen)
    return {
        "sentence": sentence,
        "message": message_row(script, message),
        "said": spoken(message, speaks),
        "is_reply": said_it,
        "lines": [(line, found[1] if (found := _SOURCE.match(line)) else "") for line in lines],
        "prompt": whole_prompt(script, message),
        "around": [message_row(script, each) for each in near],
    }


def summaries(visit: Visit) -> Shown:
    """The tree of summaries, and the reports of compactions."""
    script = visit.assistant
    records = {record.id: record for record in visit.seen.summaries()}
    above = absorbed_by(records.values())
    children: dict[str, list[SummaryRecord]] = {}
    for record in records.values():
        children.setdefault(above.get(record.id, ""), []).append(record)

    def node(record: SummaryRecord, depth: int = 0) -> Shown:
        inner = children.get(record.id, ()) if depth < MOST_DEEP else ()
        return {**_summary(record, above), "below": [node(each, depth + 1) for each in inner]}

    newest = sorted(children.get("", ()), key=lambda record: record.created_at, reverse=True)
    note_look(visit, "summaries", (record.audience for record in newest))
    reports = [
        (moment(record.at), report_line(script.obj.key, record), record.status)
        for record in islice(reversed(script.history.compactions()), MOST_REPORTS)
    ]
    return {"roots": [node(each) for each in newest], "reports": reports}


def _summary(record: SummaryRecord, above: Mapping[str, str]) -> Shown:
    kept = "" if record.coverage is None else f"{record.coverage:.0%}"
    return plain(record, coverage=kept, status=state_of(record, above))


def below(visit: Visit) -> Shown:
    """A summary and the raw lines it stands for."""
    script, wanted, seen = visit.assistant, visit.asked["summary"], visit.seen
    record = seen.summary(wanted)
    if record is None:
        raise Http404(f"{script.obj.key} has no summary {wanted}.")
    count = seen.count_below(wanted)
    first = number(visit.asked.get("from"), 0, 10**9)
    shown_now = seen.below(wanted, first, first + MOST_ROWS)
    note_look(visit, "summary", [record.audience])
    return {
        "summary": _summary(record, absorbed_by(seen.summaries())),
        "lines": [message_row(script, message) for message in shown_now],
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
    profiles = list(islice(by_time, MOST_ROWS))
    facts = (item for profile in profiles for item in profile.observations)
    unused = [{"id": each, **about} for each, about in script.memory.quarantine.sources.items()]
    note_look(visit, "memory", [each.audience for each in (*entries, *notes, *facts)])
    return {
        "status": status[1:],
        "entries": [
            plain(each, sources=[m for m in each.source_message_ids if m[:1] == "m"])
            for each in entries
        ],
        "entry_count": count,
        "older": last - JOURNAL_LINES if last > JOURNAL_LINES else 0,
        "notes": [plain(note, by=note.by.key) for note in notes],
        "profiles": [_profile(each) for each in profiles],
        "quarantine": sorted(unused, key=lambda row: str(row["at"]), reverse=True)[:MOST_ROWS],
    }


def _profile(profile: Profile) -> Shown:
    beliefs = current(profile.observations, STAFF)
    facts = [plain(belief.observation, line=belief.line) for belief in beliefs]
    return plain(profile, relationship=profile.relationship(STAFF), facts=facts)


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
    return {
        "hours": hours,
        "limit": f"{prompts[-1].limit:,}" if prompts else "",
        "chart": stacked([p for p in prompts if p.purpose == CONTEXT_AWAKE]),
        "marks": [
            {
                "at": mark.at,
                "on": moment(mark.at),
                "trigger": mark.trigger,
                "back": moment(mark.rolled_back_at) if mark.status != COMMITTED else "",
            }
            for mark in script.history.compactions()
            if mark.at >= utc_iso(since)
        ],
        "requests": [_request(event) for event in reversed(seen.requests())],
        "contributors": [plain(piece) for piece in contributors(script, visit.audience)],
    }


def _request(event: TokenBudget) -> str:
    """A request: when, what for, its regions, the reply, what was left out and why."""
    head = f"{moment(utc_iso(event.at))} {event.purpose}: {event}"
    tokens = f"in {event.prompt_tokens:,}, out {event.completion_tokens:,} tokens"
    return "\n".join([head, f"model {event.model}, {tokens}", *cuts(event)])


def stacked(prompts: Sequence[TokenBudget]) -> dict[str, list[float]]:
    """Prompts as columns of a chart: times, tokens of each region that one holds, limits."""
    columns = {region: [float(each.regions[region]) for each in prompts] for region in REGIONS}
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
    script, sent, by = visit.assistant, visit.sent, visit.account.key
    if sent["act"] == "preset":
        return " ".join(take_preset(script, sent.get("preset", ""), by))
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
    return " ".join(change_option(script, option, text, by, visit.is_admin))
