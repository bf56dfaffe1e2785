"""Reads a request back into a talk: who is here, who said what, what this turn has done so far."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.offline.lines import LABEL, Line, heard_lines, note_lines

MAX_LINES = 2000  # newest kept, so that a long history costs bounded time
_ME = re.compile(r"\bYou are (?:called |named )?([A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,2})")
_ONE_PRESENT = re.compile(r"([^,\[\]]+?)\s*(?:\[([^\]]*)\])?\s*(?:\([^)]*\))?\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Done:
    """A tool call this turn has made, with its result as text."""

    name: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(slots=True)
class Talk:
    """A request, read.

    Attributes:
        me: The assistant's name.
        system: The system prompt.
        heard: Everything heard in the visible history, oldest first.
        fresh: What was heard and not yet answered, oldest first.
        notes: Lines of summaries and memories shown in the prompt.
        moment: The ``[Present moment]`` as keys and values, keys in lower case.
        replies: What the assistant said before, oldest first.
        replied_at: For each reply, how many lines had been heard before it.
        done: Tool calls of this turn, in order.
        before: Tool calls of earlier turns.
    """

    me: str = "assistant"
    system: str = ""
    heard: list[Line] = field(default_factory=list)
    fresh: list[Line] = field(default_factory=list)
    notes: list[Line] = field(default_factory=list)
    moment: dict[str, str] = field(default_factory=dict)
    replies: list[str] = field(default_factory=list)
    replied_at: list[int] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    before: list[Done] = field(default_factory=list)

    def present(self) -> list[str]:
        """Names of those here, the assistant left out."""
        found = _ONE_PRESENT.findall(self.moment.get("present", ""))
        names = [name.strip() for name, _ in found if name.strip()]
        return [name for name in names if name != self.me and name.lower() != "nobody"]


def text_of(content: Any) -> str:
    """A message's content as text; parts of a content list are joined."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


def read_talk(messages: Iterable[Mapping[str, Any]]) -> Talk:
    """Read the messages of a request; what cannot be understood is passed over."""
    talk = Talk()
    pending: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in list(messages)[-MAX_LINES:]:
        if not isinstance(message, Mapping):
            continue
        role, content = message.get("role"), text_of(message.get("content"))
        if role == "system":
            _read_system(talk, content)
        elif role == "user":
            _read_user(talk, content)
        elif role == "assistant":
            _read_assistant(talk, message, content, pending)
        elif role == "tool":
            _read_result(talk, message, content, pending)
    return talk


def _read_system(talk: Talk, content: str) -> None:
    talk.system += content + "\n"
    if found := _ME.search(content):
        talk.me = found.group(1)


def _read_user(talk: Talk, content: str) -> None:
    label = LABEL.match(content)
    if label and label.group(1) == "Present moment":
        talk.moment = _keyed(content)
    elif label:
        talk.notes.extend(note_lines(content))
    else:
        for line in heard_lines(content, len(talk.heard)):
            talk.heard.append(line)
            talk.fresh.append(line)
            talk.before.extend(talk.done)
            talk.done.clear()


def _keyed(content: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in content.splitlines()[1:60])
    return {key.strip().lower(): value.strip() for key, colon, value in pairs if colon}


def _read_assistant(
    talk: Talk,
    message: Mapping[str, Any],
    content: str,
    pending: dict[str, tuple[str, dict[str, Any]]],
) -> None:
    calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    for call in calls:
        function = call.get("function")
        if isinstance(function, Mapping):
            name = str(function.get("name") or "")
            pending[str(call.get("id"))] = (name, loaded(function.get("arguments")))
    if content.strip() and not calls:
        talk.replies.append(content)
        talk.replied_at.append(len(talk.heard))
        _end_turn(talk)


def _read_result(
    talk: Talk,
    message: Mapping[str, Any],
    content: str,
    pending: dict[str, tuple[str, dict[str, Any]]],
) -> None:
    unknown: tuple[str, dict[str, Any]] = (str(message.get("name") or ""), {})
    name, arguments = pending.get(str(message.get("tool_call_id")), unknown)
    talk.done.append(Done(name, arguments, content))
    if name in ("noop", "say"):
        _end_turn(talk)


def _end_turn(talk: Talk) -> None:
    talk.before.extend(talk.done)
    talk.done.clear()
    talk.fresh.clear()


def loaded(arguments: Any) -> dict[str, Any]:
    """A JSON object as a dict; empty for anything else."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {}
    return dict(arguments) if isinstance(arguments, Mapping) else {}
