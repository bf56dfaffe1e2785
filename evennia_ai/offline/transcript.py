"""Reads a request back into a talk: who is here, who said what, what this turn has done so far."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_LINES = 2000  # newest kept, so that a long history costs bounded time
MAX_CHARS = 4000  # of one line
_HEARD = re.compile(
    r"^(?P<who>[^\"\[\]<>\n]{1,80}?)(?: \[(?P<id>[^\]\n]{1,80})\])? "
    r"(?P<verb>says|whispers to you|pages you|poses|arrives|leaves|notice)(?:: (?P<text>.*))?$"
)
_TOLD = re.compile(
    r"^(?:- )?(?:\((?P<id>[^)\s]{1,80})\) )?(?:(?P<at>\d{4}-\d\d-\d\d\S*(?: \d\d:\d\d\S*)?) )?"
    r"(?P<who>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,3})(?: \[[^\]]{1,80}\])?"
    r"(?: (?:said|says|told me|whispers to you|pages you))?: (?P<text>.+)$"
)
_ITEM = re.compile(
    r"^- (?:\((?P<id>[^)\s]{1,80})\) )?"
    r"(?:(?P<at>\d{4}-\d\d-\d\d\S*(?: \d\d:\d\d\S*)?) )?(?P<text>.+)$"
)
_LABEL = re.compile(r"^\[([A-Z][A-Za-z ]{2,40})\]")
_ME = re.compile(r"\bYou are (?:called |named )?([A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,2})")
_ONE_PRESENT = re.compile(r"([^,\[\]]+?)\s*(?:\[([^\]]*)\])?\s*(?:\([^)]*\))?\s*(?:,|$)")
SPOKEN = ("says", "whispers to you", "pages you")


@dataclass(frozen=True, slots=True)
class Line:
    """Something said or noted.

    Attributes:
        who: The speaker's name, ``""`` where a note stands alone.
        text: The words.
        verb: ``says`` and so on; ``note`` for what is no direct speech.
        id: The memory's id, ``""`` where none is known.
        at: When, UTC ISO 8601, ``""`` where it is not shown.
        order: Place in the visible history, -1 for what came from elsewhere.
        who_id: The speaker's stable id.
    """

    who: str
    text: str
    verb: str = "says"
    id: str = ""
    at: str = ""
    order: int = -1
    who_id: str = ""


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
    label = _LABEL.match(content)
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
            pending[str(call.get("id"))] = (name, _loaded(function.get("arguments")))
    if content.strip() and not calls:
        talk.replies.append(content)
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


def _loaded(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {}
    return dict(arguments) if isinstance(arguments, Mapping) else {}


def heard_lines(content: str, order: int) -> Iterator[Line]:
    """Heard lines of a user message; a message in no known form is one line by nobody named."""
    rows = content[: MAX_CHARS * 20].splitlines()
    matches = [_HEARD.match(row) for row in rows]
    if not any(matches):
        if content.strip():
            yield Line("", content.strip()[:MAX_CHARS], order=order)
        return
    for match in matches:
        if match:
            text = _unquoted(match["text"] or "")
            yield Line(match["who"], text, match["verb"], order=order, who_id=match["id"] or "")
            order += 1


def _unquoted(text: str) -> str:
    if text.startswith('"'):
        try:
            loaded = json.loads(text)
        except ValueError:
            return text.strip('"')[:MAX_CHARS]
        return loaded[:MAX_CHARS] if isinstance(loaded, str) else text[:MAX_CHARS]
    return text[:MAX_CHARS]


def note_lines(content: str) -> Iterator[Line]:
    """Lines of a summary or of a list of memories: each with its speaker where it names one."""
    for row in content.splitlines()[:MAX_LINES]:
        row = row.strip()[:MAX_CHARS]
        if row and not _LABEL.match(row):
            yield note_line(row)


def note_line(row: str, memory_id: str = "", at: str = "") -> Line:
    """One line of a summary, a journal or a memory."""
    if heard := _HEARD.match(row):
        return Line(heard["who"], _unquoted(heard["text"] or ""), heard["verb"], memory_id, at)
    match = _TOLD.match(row) or _ITEM.match(row)
    if not match:
        return Line("", row, "note", memory_id, at)
    parts = match.groupdict()
    verb = "says" if parts.get("who") else "note"
    text = _unquoted(parts["text"])
    return Line(parts.get("who") or "", text, verb, parts["id"] or memory_id, parts["at"] or at)


def found_lines(result: str) -> list[Line]:
    """The lines a `search_memory` result holds, best first; empty for anything else."""
    loaded = _loaded(result)
    items = loaded.get("results")
    found: list[Line] = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            found.extend(_found(item))
    return found


def _found(item: Mapping[str, Any]) -> Iterator[Line]:
    text = text_of(item.get("text"))[:MAX_CHARS]
    memory_id, at = str(item.get("id") or ""), str(item.get("at") or "")
    who = item.get("speaker")
    who = str(who.get("key") or "") if isinstance(who, Mapping) else str(who or "")
    if item.get("kind", "message") == "message":
        line = _HEARD.match(text)
        said = _unquoted(line["text"] or "") if line else text
        yield Line(line["who"] if line else who, said, "says", memory_id, at)
        return
    for row in text.splitlines()[:200]:
        if row.strip() and not _LABEL.match(row):
            yield note_line(row.strip(), memory_id, at)
