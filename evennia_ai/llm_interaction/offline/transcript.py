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
from evennia_ai.language.words import CUT
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
_IDENTITY = re.compile(r"^You are (?:called |named )?(?P<name>[^\n.,]{1,60})", re.MULTILINE)


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
    heard: list[Line] = field(default_factory=list)  # in the visible history
    fresh: list[Line] = field(default_factory=list)  # those not answered yet
    notes: list[Line] = field(default_factory=list)  # of summaries and memories shown
    moment: dict[str, str] = field(default_factory=dict)  # keys of the tail, in lower case
    replies: list[str] = field(default_factory=list)  # what the assistant said before
    done: list[ToolCall] = field(default_factory=list)  # tool calls of this turn
    before: list[ToolCall] = field(default_factory=list)  # tool calls of earlier turns

    def present(self) -> list[str]:
        """Names of those here, the assistant left out."""
        return [name for name in frames.names_present(self.moment) if name != self.me]

    def assistants(self) -> list[str]:
        """Names of the other assistants here."""
        return frames.assistants_present(self.moment)

    def persona(self) -> str:
        """The paragraph of the system prompt that says who the assistant is; may be ``""``."""
        found = _IDENTITY.search(self.system)
        return self.system[found.end() :].strip().split("\n\n")[0].strip() if found else ""

    def evidence(self) -> list[Line]:
        """What the request shows of what people told: heard, noted and found lines."""
        lines = [*self.notes, *self.heard]
        for done in self.done:
            if done.name in ("search_memory", "expand_memory"):
                lines += found_lines(done.result)
        own = {self.me, *self.assistants()}
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

    A turn begins with heard lines and ends with the assistant's words. Labelled blocks are notes
    wherever they stand, so that one behind the turn's tool results begins no new turn.
    """
    talk = Talk()
    called: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages[-MAX_LINES:]:
        role, content = message["role"], str(message.get("content") or "")
        if role == "system":
            talk.system += content + "\n"
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
    if found := _IDENTITY.search(talk.system):
        talk.me = found["name"]
    return talk


def _read_user(talk: Talk, content: str) -> None:
    """Read heard lines, or labelled blocks, or lines with blocks behind them."""
    for part in frames.blocks(content):
        if part.startswith(frames.MOMENT_LABEL):
            talk.moment = frames.read_moment(part) | talk.moment
            if asked := frames.read_answer_lines(part):
                talk.end_turn()
                talk.fresh = [_in_full(h, talk.heard) for h in asked]
        elif frames.label_of(part):
            talk.notes.extend(note_lines(part))
        else:
            lines = list(heard_lines(part, len(talk.heard)))
            if lines and (lines[0].who or not talk.done):
                talk.heard.extend(lines)
                talk.fresh.extend(lines)
                talk.before.extend(talk.done)
                talk.done.clear()


def _in_full(asked: frames.Heard, heard: Sequence[Line]) -> Line:
    """A line to be answered, as the history has it where the prompt's tail shows it shortened."""
    first, *others = LEFT_OUT.split(asked.text)
    same = (
        line
        for line in reversed(heard)
        if others and line.who == asked.who
        if line.text.startswith(first) and line.text.endswith(others[-1])
    )
    return next(same, Line(asked.who, uncut(asked.text), asked.verb))


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


def note_lines(content: str) -> Iterator[Line]:
    """Lines of a labelled block of the prompt: summaries, memories or the ledger."""
    title = frames.label_of(content)
    source = SUMMARY if title in frames.SUMMARIES else LEDGER if title == LEDGER else MEMORY
    for row in LEFT_OUT.sub(f"{CUT}\n{CUT}", content).splitlines()[:MAX_LINES]:
        yield from told_lines(row, source=source)


def told_lines(row: str, memory_id: str = "", at: str = "", source: str = MEMORY) -> list[Line]:
    """What one row of a summary, the journal, the ledger or a memory tells, and who told it.

    The row may have its own id, times and speaker in front; `memory_id`, `at` and `source` are
    those of what it stands in. What an assistant said itself or quoted is left out.
    """
    lead = frames.read_row(row.strip()[: 2 * MAX_CHARS])
    if not lead:
        return []
    if lead.id.startswith(("s1", "compact_")):
        source = SUMMARY
    frame = Line("", "", "note", lead.id or memory_id, lead.at or at, source=source)
    lines: list[Line] = []
    for part in lead.text.splitlines()[:MAX_LINES]:
        part = frames.without_stamps(part[:MAX_CHARS])
        spoken = None if _LORE.match(lead.id) else frames.read_spoken(part)
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
