"""Reads a request: who said what, what tools answered, what the prompt shows of the room.

Frames and labels are read by `history.frames` and `llm_interaction.conversation`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history import frames
from evennia_ai.history.records import as_dict
from evennia_ai.llm_interaction import conversation as form
from evennia_ai.llm_interaction.tool_calls import loaded

SILENT = ("arrives", "leaves", "notice")  # verbs of lines that nobody says
MAX_LINES = 2000  # of one request, the newest kept
MAX_CHARS = 4000  # of one line
LATELY = 8  # lines


@dataclass(frozen=True, slots=True)
class Line:
    """Something said by `who`, which is empty for a user in a plain chat."""

    who: str
    text: str
    verb: str = "says"


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
    place: dict[str, str] = field(default_factory=dict)  # lines of the system prompt by label
    people: tuple[str, ...] = ()  # names of those here, the assistant left out
    assistants: tuple[str, ...] = ()  # those of them that are assistants, too
    heard: list[Line] = field(default_factory=list)  # all lines
    fresh: list[Line] = field(default_factory=list)  # those not answered yet
    replies: list[str] = field(default_factory=list)  # what the assistant said before
    done: list[ToolCall] = field(default_factory=list)  # tool calls of this turn
    begins: bool = False  # whether the next line is the first of the newest turn

    def names(self, *labels: str) -> list[str]:
        """Names in rows of the system prompt: what is here, what is carried, ways out."""
        rows = (self.place.get(label, "") for label in labels)
        return [name.strip() for row in rows for name in row.split(",") if name.strip()]

    def is_between(self, who: str) -> bool:
        """Whether somebody else who is here has spoken lately, so that people may talk together."""
        others = set(self.people) - {who, self.me, *self.assistants}
        return any(line.who in others and line.verb == "says" for line in self.heard[-LATELY:])

    def result_of(self, call: ToolCall) -> ToolCall | None:
        """A call as it was made in this turn, with its result."""
        made = (d for d in self.done if (d.name, d.arguments) == (call.name, call.arguments))
        return next(made, None)

    def end_turn(self) -> None:
        """Count all that was heard as answered."""
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
            reading = form.read_prompt([{"role": role, "content": content}])
            talk.system += content + "\n"
            talk.me = reading.me or talk.me
            talk.place |= reading.place
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


def _read_user(talk: Talk, content: str) -> None:
    """Read lines and notes; of a job the lines in their frames."""
    if content.startswith(frames.MESSAGES_LABEL):
        lines = list(framed_lines(content))
        talk.heard.extend(lines)
        talk.fresh.extend(lines)
        return
    for line in form.read_lines(content):
        if isinstance(line, frames.Note):
            _read_note(talk, line)
            continue
        if talk.begins:
            talk.end_turn()
            talk.begins = False
        if isinstance(line, frames.Heard):
            told = Line(line.who, line.text[:MAX_CHARS], line.verb)
        else:
            told = Line("", line[:MAX_CHARS])
        talk.heard.append(told)
        talk.fresh.append(told)
        talk.done.clear()


def _read_note(talk: Talk, note: frames.Note) -> None:
    label = note.label.partition(", ")[0]
    if label == form.NOW:
        talk.begins = True
    elif label == form.NOBODY:
        talk.end_turn()
    elif label == form.HERE:
        names = [name for name in note.text.split(", ") if name != form.NOBODY_ELSE]
        own = [name for name in names if name.endswith(form.AN_ASSISTANT)]
        talk.assistants = tuple(name.removesuffix(form.AN_ASSISTANT) for name in own)
        talk.people = tuple(name.removesuffix(form.AN_ASSISTANT) for name in names)


def framed_lines(content: str) -> Iterator[Line]:
    """The heard lines of a job's text."""
    for row in content.splitlines()[:MAX_LINES]:
        if heard := frames.read_heard(row):
            yield Line(heard.who, heard.text[:MAX_CHARS], heard.verb)
