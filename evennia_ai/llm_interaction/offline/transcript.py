"""Reads a request: who said what, what memory answered, what the prompt's blocks show.

Frames and labels are read by `history.frames`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evennia_ai.history import frames
from evennia_ai.history.records import as_dict
from evennia_ai.language.tables import table_of
from evennia_ai.llm_interaction import conversation as form
from evennia_ai.llm_interaction.budget import LEFT_OUT
from evennia_ai.llm_interaction.offline.prose import beginning, is_fixed, quote_lead, sentences
from evennia_ai.llm_interaction.tool_calls import loaded
from evennia_ai.recall.values import Hit

SILENT = ("arrives", "leaves", "notice")  # verbs of lines that nobody says
MAX_LINES = 2000  # of one request or text, the newest kept
MAX_CHARS = 4000  # of one line
MESSAGE, LEDGER, JOURNAL, MEMORY, SUMMARY = "message", "ledger", "journal", "memory", "summary"
# Where words may come from, the most original first.
SOURCES = (MESSAGE, LEDGER, JOURNAL, MEMORY, SUMMARY)
# Ids of lore: a name and a colon in a fact are a heading, and nobody said it.
_LORE = re.compile(r"w\d+$|help:|room:")
# The id of a memory among the parts of a note's label, which also say how long ago it was.
_ID = re.compile(r"\S*\d\S*")


@dataclass(frozen=True, slots=True)
class Line:
    """Something said, or a note that names no speaker (`who` is empty, `verb` is ``note``)."""

    who: str
    text: str
    verb: str = "says"
    id: str = ""  # of the memory, where one is known
    at: str = ""  # UTC ISO 8601, where it is shown
    order: int = -1  # place in the visible history, -1 for what came from elsewhere
    source: str = MESSAGE  # one of `SOURCES`


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to be called, or that was called, with its result as text."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    result: str = ""

    @property
    def failed(self) -> bool:
        """Whether the result is an error."""
        return '"error"' in self.result


@dataclass(slots=True)
class Talk:
    """A request, read: lines, replies and tool calls, each oldest first."""

    me: str = "assistant"  # the assistant's name
    system: str = ""  # the system prompt
    persona: str = ""  # the paragraph of it that says who the assistant is
    heard: list[Line] = field(default_factory=list)  # in the visible history
    fresh: list[Line] = field(default_factory=list)  # those not answered yet
    notes: list[Line] = field(default_factory=list)  # of summaries and memories shown
    # What holds now: `time`, `place`, `description`, `exits`.
    moment: dict[str, str] = field(default_factory=dict)
    people: tuple[str, ...] = ()  # names of those here, the assistant left out
    assistants: tuple[str, ...] = ()  # those of them that are assistants, too
    replies: list[str] = field(default_factory=list)  # what the assistant said before
    done: list[ToolCall] = field(default_factory=list)  # tool calls of this turn
    before: list[ToolCall] = field(default_factory=list)  # tool calls of earlier turns
    begins: bool = False  # whether the next line is the first of the newest turn

    def evidence(self) -> list[Line]:
        """What the request shows of what people told: heard, noted and found lines."""
        lines = [*self.notes, *self.heard]
        for done in self.done:
            if done.name in ("search_memory", "expand_memory"):
                lines += found_lines(done.result)
        own = {self.me, *self.assistants}
        return [line for line in lines if line.who not in own and line.verb not in SILENT]

    def result_of(self, call: ToolCall) -> ToolCall | None:
        """A call as it was made in this turn, with its result."""
        made = (d for d in self.done if (d.name, d.arguments) == (call.name, call.arguments))
        return next(made, None)

    def end_turn(self) -> None:
        """Count all that was heard as answered."""
        self.before.extend(self.done)
        self.done.clear()
        self.fresh.clear()


def read_talk(messages: Sequence[Mapping[str, Any]]) -> Talk:
    """Read the messages of a request.

    A turn begins with heard lines and ends with the assistant's words. The notes that say what
    holds now begin the newest one.
    """
    talk = Talk()
    called: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages[-MAX_LINES:]:
        role, content = message["role"], str(message.get("content") or "")
        if role == "system":
            _read_system(talk, content)
        elif role == "user":
            _read_user(talk, content)
        elif role == "assistant":
            calls = message.get("tool_calls") or ()
            for call in calls:
                function = call["function"]
                called[call["id"]] = function["name"], as_dict(loaded(function["arguments"]))
            if content.strip() and not calls:
                talk.replies.append(content)
                talk.end_turn()
        elif role == "tool":
            unknown = (str(message.get("name") or ""), dict[str, Any]())
            name, arguments = called.get(str(message.get("tool_call_id")), unknown)
            talk.done.append(ToolCall(name, arguments, content))
            if name in ("noop", "say"):
                talk.end_turn()
    return talk


_PLACE = {form.PLACE: "place", form.LOOKS: "description", form.WAYS: "exits"}


def _read_system(talk: Talk, content: str) -> None:
    talk.system += content + "\n"
    reading = form.read_prompt([{"role": "system", "content": content}])
    talk.me, talk.persona = reading.me or talk.me, reading.persona or talk.persona
    talk.moment |= {_PLACE[key]: text for key, text in reading.place.items() if key in _PLACE}
    for row in reading.ledger:
        talk.notes += told_lines(row, source=LEDGER)


def _read_user(talk: Talk, content: str) -> None:
    """Read lines and notes; of a job the lines in their frames."""
    if content.startswith(frames.MESSAGES_LABEL):
        lines = list(heard_lines(content, len(talk.heard)))
        talk.heard.extend(lines)
        talk.fresh.extend(lines)
        return
    for line in form.read_lines(content):
        if isinstance(line, frames.Note):
            _read_note(talk, line)
            continue
        who, verb, text = (
            (line.who, line.verb, line.text)
            if isinstance(line, frames.Heard)
            else ("", "says", line)
        )
        if talk.begins:
            talk.end_turn()
            talk.begins = False
        told = Line(who, uncut(text), verb, order=len(talk.heard))
        talk.heard.append(told)
        talk.fresh.append(told)
        talk.before.extend(talk.done)
        talk.done.clear()


def _read_note(talk: Talk, note: frames.Note) -> None:
    label, *rest = note.label.split(", ")
    if label == form.NOW:
        talk.begins = True
        talk.moment["time"] = note.text
    elif label == form.NOBODY:
        talk.end_turn()
    elif label == form.HERE:
        names = note.text.split(", ")
        talk.assistants = tuple(
            name.removesuffix(form.AN_ASSISTANT)
            for name in names
            if name.endswith(form.AN_ASSISTANT)
        )
        others = (name.removesuffix(form.AN_ASSISTANT) for name in names)
        talk.people = tuple(name for name in others if name != form.NOBODY_ELSE)
    elif label in (form.BEFORE, form.REMEMBERED, form.RELATED, form.KNOWN):
        source = SUMMARY if label in (form.BEFORE, form.RELATED) else MEMORY
        words = (part.split()[-1] for part in rest if part.strip())
        known = next((word for word in words if _ID.fullmatch(word)), "")
        talk.notes += told_lines(note.text, known, source=source)


def uncut(text: str) -> str:
    """The whole sentences of a text that a prompt may show shortened; if none, how it begins."""
    first, *others = LEFT_OUT.split(text)
    if not others:
        return text[:MAX_CHARS]
    whole = sentences(first)[:-1] + sentences(others[-1])[1:]
    return " ".join(whole)[:MAX_CHARS] or beginning(first, len(first) - 1)


def heard_lines(content: str, order: int) -> Iterator[Line]:
    """Heard lines of a user message; a message in no known form is one line by nobody named."""
    heard = [found for row in content.splitlines() if (found := frames.read_heard(row))]
    if not heard and content.strip():
        yield Line("", uncut(content.strip()), order=order)
    for place, each in enumerate(heard, order):
        yield Line(each.who, uncut(each.text), each.verb, order=place)


def told_lines(row: str, memory_id: str = "", at: str = "", source: str = MEMORY) -> list[Line]:
    """What one row of a summary, the journal, the ledger or a memory tells, and who told it.

    The row may have its own id, times and speaker in front; `memory_id`, `at` and `source` are
    those of what it stands in. What an assistant said itself or quoted is left out.
    """
    lead = frames.read_row(row.strip()[: 2 * MAX_CHARS])
    if not lead:
        return []
    if (lead.id or memory_id).startswith(("s1", "compact_")):
        source = SUMMARY
    frame = Line("", "", "note", lead.id or memory_id, lead.at or at, source=source)
    lines: list[Line] = []
    for part in lead.text.splitlines()[:MAX_LINES]:
        part = frames.without_stamps(part[:MAX_CHARS])
        spoken = None if _LORE.match(lead.id or memory_id) else frames.read_spoken(part)
        who, _, verb, said, _ = spoken or ("", "", "note", part, False)
        said = without_echo(said)
        bare = table_of(part).expression("speech", "bare")
        if said and not bare.match(part) and not bare.match(said):
            lines.append(replace(frame, who=who, text=said, verb=verb))
    return lines


def without_echo(text: str) -> str:
    """A text up to where it quotes as assistants do, without their fixed lines."""
    echo = quote_lead().search(text)
    parts = sentences(text[: echo.start()] if echo else text)
    own = [part for part in parts if not is_fixed(part)]
    return " ".join(own) if echo or len(own) < len(parts) else text


def quotes_of(reply: str) -> list[Line]:
    """What an answer quotes, with who told it; empty where it quotes nobody."""
    leads = list(quote_lead().finditer(reply))
    ends = [*(lead.start() for lead in leads), len(reply)][1:]
    quotes: list[Line] = []
    for lead, end in zip(leads, ends, strict=True):
        words = reply[lead.end() + 1 : end].rpartition('"')[0].strip()
        quotes += [Line(lead["speaker"] or "", words)] if words else []
    return quotes


def found_lines(result: str) -> list[Line]:
    """What people told among a result of `search_memory` or `expand_memory`, best first.

    Looks, other tools' results and profiles are left out: nobody told them.
    """
    answer, lines = as_dict(loaded(result)), list[Line]()
    items = answer.get("results"), [answer], answer.get("around")
    for item in (each for some in items if isinstance(some, list) for each in some):
        hit = Hit.from_dict(as_dict(item))
        text, at = hit.text[:MAX_CHARS], str(hit.at or "")
        if hit.kind in (MESSAGE, LEDGER):
            if said := without_echo(text) if hit.speaker else "":
                lines.append(Line(hit.speaker, said, "says", hit.turn_id, at, source=hit.kind))
        elif hit.kind in SOURCES:
            for row in text.splitlines()[:MAX_LINES]:
                lines += told_lines(row, hit.turn_id, at, hit.kind)
    return lines
