"""Reads a request: who said what, what tools answered, what the prompt shows of the room.

Frames and labels are read by `history.messages` and `llm_interaction.conversation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history.messages import Heard, Note
from evennia_ai.history.stored import as_dict
from evennia_ai.llm_interaction import conversation as form
from evennia_ai.llm_interaction.tool_calls import loaded

SILENT = ("arrives", "leaves", "notice")  # verbs of lines that nobody says
PAGES = "pages you"  # verb of lines that come from anywhere
MAX_LINES = 2000  # of one request, the newest kept
MAX_CHARS = 4000  # of one line


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
    known: list[str] = field(default_factory=list)  # lore that the newest line found
    # All lines, and those not answered yet; nobody's are a user's in a plain chat.
    heard: list[Heard] = field(default_factory=list)
    fresh: list[Heard] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)  # what the assistant said before
    done: list[ToolCall] = field(default_factory=list)  # tool calls of this turn
    begins: bool = False  # whether the next line is the first of the newest turn

    def names(self, *labels: str) -> list[str]:
        """Names in rows of the system prompt: what is here, what is carried, ways out."""
        rows = (self.place.get(label, "") for label in labels)
        return [name.strip() for row in rows for name in row.split(",") if name.strip()]

    def result_of(self, call: ToolCall) -> ToolCall | None:
        """A call as it was made in this turn, with its result.

        A thing may have been named in other words: once it is given away it is not here any more.
        """
        made = [done for done in self.done if done.name == call.name]
        same = [
            done for done in made if done.arguments == call.arguments or "thing" in call.arguments
        ]
        return same[-1] if same else None

    def end_turn(self) -> None:
        """Count all that was heard as answered."""
        self.done.clear()
        self.fresh.clear()


def read_talk(messages: Sequence[Mapping[str, Any]]) -> Talk:
    """Read the messages of a request.

    A turn begins with heard lines and ends with the assistant's words. The notes that say what
    holds now begin the newest one.
    """
    reading = form.read_prompt(messages[-MAX_LINES:])
    rules = (str(each["content"]) for each in messages if each["role"] == "system")
    talk = Talk(reading.me or "assistant", "\n".join(rules), reading.place)
    called: dict[str, tuple[str, dict[str, Any]]] = {}
    for role, line in reading.turns:
        if isinstance(line, Note):
            _read_note(talk, line)
        elif role == "user":
            if talk.begins:
                talk.end_turn()
                talk.begins = False
            told = Heard("", "says", line) if isinstance(line, str) else line
            told = told._replace(text=told.text[:MAX_CHARS])
            talk.heard.append(told)
            talk.fresh.append(told)
            talk.done.clear()
        elif role == "tool":
            unknown = (str(line.get("name") or ""), dict[str, Any]())
            name, arguments = called.get(str(line.get("tool_call_id")), unknown)
            talk.done.append(ToolCall(name, arguments, str(line.get("content") or "")))
            if name in ("noop", "say"):
                talk.end_turn()
        elif not isinstance(line, str):
            for call in line["tool_calls"]:
                function = call["function"]
                called[call["id"]] = function["name"], as_dict(loaded(function["arguments"]))
        elif line.strip():
            talk.replies.append(line)
            talk.end_turn()
    return talk


def _read_note(talk: Talk, note: Note) -> None:
    label = note.label.partition(", ")[0]
    if label == form.NOW:
        talk.begins = True
        talk.known.clear()
    elif label == form.KNOWN:
        talk.known.append(note.text)
    elif label == form.NOBODY:
        talk.end_turn()
    elif label == form.HERE:
        names = [name for name in note.text.split(", ") if name != form.NOBODY_ELSE]
        own = [name for name in names if name.endswith(form.AN_ASSISTANT)]
        talk.assistants = tuple(name.removesuffix(form.AN_ASSISTANT) for name in own)
        talk.people = tuple(name.removesuffix(form.AN_ASSISTANT) for name in names)
