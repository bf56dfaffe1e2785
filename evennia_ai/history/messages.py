"""The message: one entry of a conversation history, as a plain dict.

A message is what somebody said, what the assistant answered, a tool call's result, or a summary
marker. It is stored as it is (see `Message`), never mutated in place, and rendered for a model
by `rendered`.
"""

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from evennia_ai.history.audience import PUBLIC, normalised, widest_of

SCHEMA_VERSION = 1
SUMMARY_TITLE = "[CONTEXT SUMMARY]"
SYNTHESIS_TITLE = "[CONTEXT SYNTHESIS]"
ROLES = ("system", "user", "assistant", "tool")
# What a chat message costs beside its text: role and separators. OpenAI's cookbook gives 3 to 4.
OVERHEAD_TOKENS = 4

_VERBS = {
    "say": "says",
    "whisper": "whispers to you",
    "page": "pages you",
    "pose": "poses",
    "arrive": "arrives",
    "leave": "leaves",
    "event": "notice",
}
# Ends of lines that JSON lets stand unescaped: next line, line and paragraph separator.
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


class Speaker(TypedDict, total=False):
    """Who said something: the name at the time and the id that is never reused."""

    key: str
    id: str


class Message(TypedDict, total=False):
    """One entry of the history. `role` and `content` are always there once adopted."""

    id: str
    role: str
    content: str
    created_at: str
    speaker: Speaker
    audience: str
    channel: str
    tokens: int
    tool_calls: list[dict[str, Any]]
    tool_call_id: str
    name: str
    metadata: dict[str, Any]


Counter = Callable[[str], int]
# Made once: every prompt renders every message.
_as_json = json.JSONEncoder(ensure_ascii=False).encode
_UNSAFE = re.compile(r'[\s"\[\]<>]+')


def utc_iso(at: float) -> str:
    """Seconds since the epoch as UTC ISO 8601, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def base32(number: int, width: int = 0) -> str:
    """A non-negative int in Crockford's base 32, lower case, zero-padded to `width`."""
    digits = ""
    while number:
        number, rest = divmod(number, 32)
        digits = _ALPHABET[rest] + digits
    return digits.rjust(width, "0")


class IdSource:
    """Makes ids that sort by time and are never used twice.

    An id is a prefix, the milliseconds of its making (9 characters) and a number (6 characters)
    that starts at random and counts up within a millisecond.

    Args:
        now: Clock, seconds since the epoch.
        random_bits: Source of random bits. By default one that is seeded by the system once and
            does not ask it again, which would let go of Python's lock at every id.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        random_bits: Callable[[int], int] = random.Random().getrandbits,  # noqa: B008
    ):
        self._now = now
        self._random_bits = random_bits
        self._lock = threading.Lock()
        self._last = (0, 0)

    def follow(self, known: str) -> None:
        """Make ids that sort behind this one, also where the clock was set back since."""
        stamp = known[1:10]
        if len(known) == 16 and not set(stamp) - set(_ALPHABET):
            millis = sum(_ALPHABET.index(d) * 32**place for place, d in enumerate(stamp[::-1]))
            with self._lock:
                self._last = max(self._last, (millis, 1 << 29))

    def __call__(self, prefix: str = "m") -> str:
        """The next id."""
        with self._lock:
            millis = max(int(self._now() * 1000), self._last[0])
            tail = self._random_bits(29)
            if millis == self._last[0]:
                tail = self._last[1] + 1
            self._last = (millis, tail)
        return f"{prefix}{base32(millis, 9)}{base32(tail, 6)}"


new_id = IdSource()


def adopted(
    raw: Mapping[str, Any],
    count: Counter,
    at: float,
    make_id: Callable[[str], str] = new_id,
) -> Message:
    """A message made complete: an id, a time, an audience and a token count.

    Args:
        raw: What was stored, as a new message or a hand-written ``{role, content}``.
        count: Counts the tokens of a text.
        at: Time to stamp where there is none, seconds since the epoch.
        make_id: Makes a new id from a prefix.

    Returns:
        A new dict; keys that are there already keep their values.
    """
    message: Message = {**raw}  # type: ignore[typeddict-item]
    role = str(raw.get("role") or "user")
    message["role"] = role if role in ROLES else "user"
    content = raw.get("content")
    message["content"] = storable(content if isinstance(content, str) else _as_text(content))
    message["id"] = str(raw.get("id") or make_id("m"))
    message["created_at"] = str(raw.get("created_at") or utc_iso(at))
    message["audience"] = normalised(raw.get("audience"))
    message["channel"] = str(raw.get("channel") or ("tool" if role == "tool" else "say"))
    message["metadata"] = _as_dict(raw.get("metadata"), "value")
    _repair_parts(message)
    tokens = raw.get("tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
        message["tokens"] = message_tokens(message, count)
    return message


def _as_dict(value: Any, key: str) -> dict[str, Any]:
    """A stored part as a dict; what is none, as one by hand may be, goes under `key`."""
    if isinstance(value, Mapping):
        return dict(value)
    return {key: value} if value else {}


def _repair_parts(message: Message) -> None:
    """Bring the optional parts of a message that was written by hand into their form."""
    if "speaker" in message:
        speaker = _as_dict(message["speaker"], "key")
        texts = {key: str(speaker.get(key) or "") for key in ("key", "id")}
        message["speaker"] = {**speaker, **texts}  # type: ignore[typeddict-item]
    if "tool_calls" in message:
        calls = message["tool_calls"]
        calls = calls if isinstance(calls, list | tuple) else []
        message["tool_calls"] = [_call(call) for call in calls if isinstance(call, Mapping)]
    if "tool_call_id" in message:
        message["tool_call_id"] = _text_or_none(message["tool_call_id"])
    if "name" in message:
        message["name"] = _text_or_none(message["name"])


def _call(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call whose function is a name and its arguments as a text."""
    function = raw.get("function")
    parts = function if isinstance(function, Mapping) else {"name": function}
    name, arguments = _text_or_none(parts.get("name")), parts.get("arguments")
    text = arguments if isinstance(arguments, str) else "{}"
    return {**raw, "function": {**parts, "name": name, "arguments": text}}


def _is_call(raw: Any) -> bool:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    return isinstance(function, Mapping) and all(
        isinstance(function.get(key), str) for key in ("name", "arguments")
    )


def _text_or_none(value: Any) -> str:
    return "" if value is None else str(value)


def is_complete(raw: Mapping[str, Any]) -> bool:
    """Whether a stored message needs no adoption."""
    return (
        all(raw.get(key) and isinstance(raw[key], str) for key in ("id", "created_at"))
        and isinstance(raw.get("audience"), str)
        and isinstance(raw.get("tokens"), int)
        and isinstance(raw.get("content"), str)
        and raw.get("role") in ROLES
        and isinstance(raw.get("metadata", {}), dict)
        and isinstance(raw.get("speaker", {}), dict)
        and all(isinstance(raw.get("speaker", {}).get(key, ""), str) for key in ("key", "id"))
        and isinstance(raw.get("tool_calls", []), list)
        and all(map(_is_call, raw.get("tool_calls", [])))
    )


def storable(text: str) -> str:
    """A text every database and network takes: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_text(content: Any) -> str:
    if content is None:
        return ""
    try:
        return json.dumps(content, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys of no JSON type, or a list that holds itself
        return str(content)


def message_tokens(message: Message, count: Counter) -> int:
    """Tokens a message takes in a prompt: its rendered text, its tool calls, its frame."""
    shown = rendered(message)
    tokens = OVERHEAD_TOKENS + count(shown["content"] or "")
    if calls := shown.get("tool_calls"):
        tokens += count(json.dumps(calls, ensure_ascii=False))
    if shown["role"] == "tool":
        tokens += count(shown["tool_call_id"]) + count(shown["name"])
    return tokens


def heard_line(key: str, speaker_id: str, channel: str, text: str) -> str:
    """One heard line as quoted data: ``Alice [o12.abc] says: "hello"``.

    The text is a JSON string, so that nobody can type a line that looks like another speaker.
    """
    who = one_line(key) + (f" [{one_line(speaker_id)}]" if speaker_id else "")
    return f"{who} {one_line(_VERBS.get(channel, channel))}: {quoted(text)}"


def speakers(messages: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Who spoke: the name and the time (ISO 8601) of each speaker's newest message, by stable id.

    Args:
        messages: Messages, oldest first.
    """
    found: dict[str, tuple[str, str]] = {}
    for message in messages:
        speaker = message.get("speaker") or {}
        if speaker.get("id"):
            name = str(speaker.get("key") or speaker["id"])
            found[speaker["id"]] = (name, str(message.get("created_at") or ""))
    return found


def quoted(text: str) -> str:
    """A text as a JSON string on one line, by any reading of what ends a line."""
    quoted = _as_json(text)
    return _LINE_ENDS.sub(lambda end: f"\\u{ord(end.group()):04x}", quoted)


def on_one_line(text: str) -> str:
    """A text as it may stand behind a label: where a line ends in it, as a JSON string."""
    plain = text.splitlines() in ([], [text]) and not text.startswith('"')
    return text if plain else quoted(text)


def one_line(text: str) -> str:
    """A name made safe to stand outside quotes: one line, no quote marks or brackets."""
    return _UNSAFE.sub(" ", text).strip()


def rendered(message: Message) -> dict[str, Any]:
    """A message in the chat format of the model's API, speech as quoted data.

    Returns:
        A dict with `role`, `content` and, for tool traffic, `tool_calls`, `tool_call_id`, `name`.
    """
    role = message["role"]
    if role == "assistant" and message.get("tool_calls"):
        return {
            "role": role,
            "content": message["content"] or None,
            "tool_calls": [dict(call) for call in message["tool_calls"]],
        }
    if role == "tool":
        return {
            "role": role,
            "tool_call_id": message.get("tool_call_id", ""),
            "name": message.get("name", ""),
            "content": mask_of(message).get("placeholder") or message["content"],
        }
    speaker = message.get("speaker")
    if role == "user" and speaker:
        line = heard_line(
            speaker.get("key", ""),
            speaker.get("id", ""),
            message.get("channel", "say"),
            message["content"],
        )
        return {"role": role, "content": line}
    if role == "system":
        # Providers take later system messages as orders; a stored one is data.
        return {"role": "user", "content": f"[Notice] {on_one_line(message['content'])}"}
    return {"role": role, "content": message["content"]}


def mask_of(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The flag of a tool result that is shown as a placeholder (`history.masking`); else empty."""
    flag = (message.get("metadata") or {}).get("masked")
    return flag if isinstance(flag, Mapping) and flag.get("placeholder") else {}


def tool_calls(message: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """The tool calls an assistant message makes, in order; empty for others."""
    return (message.get("tool_calls") or ()) if message.get("role") == "assistant" else ()


def call_ids(message: Mapping[str, Any]) -> list[str]:
    """The ids of the tool calls an assistant message makes, in order; empty for others."""
    return [str(call.get("id", "")) for call in tool_calls(message)]


def is_summary(message: Mapping[str, Any]) -> bool:
    """Whether a message is a compaction's marker."""
    return (message.get("metadata") or {}).get("type") == "compaction"


def total_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Sum of the messages' own counts."""
    return sum(message.get("tokens") or 0 for message in messages)


def by_id(messages: Sequence[Message]) -> dict[str, Message]:
    """Messages keyed by their ids."""
    return {message["id"]: message for message in messages}


def audience_of(message: Mapping[str, Any]) -> str:
    """A message's audience, public where none is named."""
    return str(message.get("audience") or PUBLIC)


def widest_view_tokens(messages: Sequence[Message]) -> int:
    """Tokens of the largest view of a history that any one audience has."""
    tally: dict[str, int] = {}
    for message in messages:
        owner = audience_of(message)
        tally[owner] = tally.get(owner, 0) + (message.get("tokens") or 0)
    return widest_of(tally)


SPEECH = ("say", "whisper", "page", "pose")
