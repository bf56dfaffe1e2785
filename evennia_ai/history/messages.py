"""The message: one entry of a conversation history.

A message is what somebody said, what the assistant answered, a tool call's result, or a summary
marker. It is stored as a plain dict (`Message.to_dict`) and rendered for a model by `rendered`.
A line that was heard and waits in the queue is a message without a token count.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from evennia_ai.history.audience import PUBLIC, normalised, widest_of
from evennia_ai.history.frames import heard_line, notice
from evennia_ai.history.sealed import unseal
from evennia_ai.language.words import storable

SCHEMA_VERSION = 1
ROLES = ("system", "user", "assistant", "tool")
# What a chat message costs beside its text: role and separators. OpenAI's cookbook gives 3 to 4.
OVERHEAD_TOKENS = 4

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u

Counter = Callable[[str], int]
# Keys that stand in every message stored by this version; the others only where they say something.
_ALWAYS = frozenset(
    ("id", "role", "content", "created_at", "audience", "channel", "tokens", "metadata")
)
_SOMETIMES = frozenset(("speaker", "tool_calls", "tool_call_id", "name"))
_KNOWN = _ALWAYS | _SOMETIMES
_REGULAR = frozenset[str]()
_EMPTY: dict[str, Any] = {}
_SPEAKER = frozenset(("key", "id"))


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who said something: the name at the time, and the stable id, empty if unknown.

    `extra` holds unknown keys of the stored dict, `irregular` names the keys it lacks.
    """

    key: str = ""
    id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    irregular: frozenset[str] = frozenset()

    @classmethod
    def from_dict(cls, raw: object) -> "Speaker":
        """A speaker from what is stored; anything that is no mapping is taken as the name."""
        if not isinstance(raw, Mapping):
            return cls(key=_text(raw or ""))
        keys, name, stable_id = raw.keys(), _text(raw.get("key") or ""), _text(raw.get("id") or "")
        if keys == _SPEAKER:
            return _known_speaker(name, stable_id)
        extra = {key: raw[key] for key in keys - _SPEAKER}
        return cls(name, stable_id, extra, _SPEAKER - keys)

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        known = {"key": self.key, "id": self.id}
        kept = {k: v for k, v in known.items() if v or k not in self.irregular}
        return {**self.extra, **kept}


# Loading a history makes the same few speakers over and over.
_known_speaker = lru_cache(maxsize=256)(Speaker)


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the history.

    Args:
        role: One of `ROLES`.
        content: The text, raw.
        id: Unique, never reused; empty until it is stored.
        created_at: UTC ISO 8601; empty until it is stored.
        audience: Who may know it, see `history.audience`.
        channel: How it was said: say, whisper, page, pose, tool, ...
        tokens: Tokens it takes in a prompt; 0 until they are counted.
        tool_calls: The calls an assistant message makes, in the chat format.
        tool_call_id: The call that a tool's result answers.
        name: The tool that gave a result.
        extra: Unknown keys of the stored dict.
        irregular: Keys for which the stored dict differs from the rule of `to_dict`.
    """

    role: str
    content: str
    id: str = ""
    created_at: str = ""
    speaker: Speaker | None = None
    audience: str = PUBLIC
    channel: str = ""
    tokens: int = 0
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str = ""
    name: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    irregular: frozenset[str] = frozenset()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Message":
        """A message from what is stored.

        What is complete (`is_complete`) comes back from `to_dict` as it is; what hands have
        edited is repaired. `completed` stamps and counts what is still missing. Code may have
        taken it from the Attribute, where its texts are sealed.
        """
        if not is_complete(raw) and not is_complete(raw := unseal(raw)):
            raw = _repaired(raw)
        speaker, keys = raw.get("speaker"), raw.keys()
        return cls(
            raw["role"],
            raw["content"],
            raw.get("id", ""),
            raw.get("created_at", ""),
            Speaker.from_dict(speaker) if speaker else None,
            raw["audience"],
            raw.get("channel", ""),
            raw.get("tokens", 0),
            tuple(raw.get("tool_calls", ())),
            raw.get("tool_call_id", ""),
            raw.get("name", ""),
            raw.get("metadata", {}),
            {} if keys <= _KNOWN else {key: raw[key] for key in keys - _KNOWN},
            _REGULAR
            if keys >= _ALWAYS and all(map(raw.get, _SOMETIMES & keys))
            else _ALWAYS - keys | {key for key in _SOMETIMES & keys if not raw[key]},
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored.

        Keys of `_ALWAYS` stand in it, the others where they are not empty; a key in `irregular`
        the other way round.
        """
        known = {
            "id": self.id,
            "role": self.role,
            "content": self.content,
            "created_at": self.created_at,
            "audience": self.audience,
            "channel": self.channel,
            "tokens": self.tokens,
            "metadata": dict(self.metadata),
            "speaker": self.speaker.to_dict() if self.speaker else {},
            "tool_calls": list(self.tool_calls),
            "tool_call_id": self.tool_call_id,
            "name": self.name,
        }
        odd = self.irregular
        kept = {k: v for k, v in known.items() if v or (k in _ALWAYS) != (k in odd)}
        return {**self.extra, **kept}

    def completed(
        self, count: Counter, at: float, make_id: Callable[[str], str] | None = None
    ) -> "Message":
        """The message with an id, a time (`at`, epoch seconds), a channel and a token count."""
        stamped = replace(
            self,
            id=self.id or (make_id or new_id)("m"),
            created_at=self.created_at or utc_iso(at),
            channel=self.channel or ("tool" if self.role == "tool" else "say"),
            irregular=self.irregular - _ALWAYS,
        )
        return stamped if self.tokens > 0 else stamped.counted(count)

    def counted(self, count: Counter) -> "Message":
        """The message with the tokens it takes in a prompt."""
        return replace(self, tokens=message_tokens(self, count))

    @property
    def is_summary(self) -> bool:
        """Whether it is a compaction's marker."""
        return self.metadata.get("type") == "compaction"

    @property
    def speaker_name(self) -> str:
        """The speaker's name at the time; empty if unknown."""
        return self.speaker.key if self.speaker else ""

    @property
    def speaker_id(self) -> str:
        """The speaker's stable id; empty if unknown."""
        return self.speaker.id if self.speaker else ""


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


def made_at(known: str) -> int | None:
    """When an id was made by `IdSource`, milliseconds since the epoch; None for any other id."""
    stamp = known[1:10]
    if len(known) != 16 or set(stamp) - set(_ALPHABET):
        return None
    millis = 0
    for digit in stamp:
        millis = millis * 32 + _ALPHABET.index(digit)
    return millis


class IdSource:
    """Makes ids that sort by time and are never used twice.

    An id is a prefix, the milliseconds of its making (9 characters) and a number (6 characters)
    that starts at random and counts up within a millisecond. The system seeds the random source
    only once: asking it for every id would release Python's lock each time.
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
        """Make ids that sort behind this one, also where the clock was set back since.

        They begin a millisecond later, at random: at this one's, ids of other kinds may have been
        made of which nobody tells, and an earlier process may have counted up from it.
        """
        millis = made_at(known)
        if millis is not None:
            with self._lock:
                self._last = max(self._last, (millis + 1, self._random_bits(29)))

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


def _repaired(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A stored message whose known keys have their types; those it lacks stay away."""
    message = dict(raw)
    role, content = str(raw.get("role") or "user"), raw.get("content")
    message["role"] = role if role in ROLES else "user"
    message["content"] = storable(content if isinstance(content, str) else _as_text(content))
    message["audience"] = normalised(raw.get("audience"))
    kept = raw.get("metadata")
    # What somebody put there by hand goes under a key of its own.
    message["metadata"] = (
        dict(kept) if isinstance(kept, Mapping) else {"value": kept} if kept else {}
    )
    for key in ("id", "created_at", "channel", "tool_call_id", "name"):
        if key in raw:
            message[key] = _text(raw[key])
    tokens = raw.get("tokens")
    message["tokens"] = tokens if type(tokens) is int and tokens > 0 else 0
    if "speaker" in raw:
        speaker = Speaker.from_dict(raw["speaker"])
        message["speaker"] = {"key": speaker.key, "id": speaker.id, **speaker.extra}
    if "tool_calls" in raw:
        calls = raw["tool_calls"]
        calls = calls if isinstance(calls, list | tuple) else []
        message["tool_calls"] = [_call(call) for call in calls if isinstance(call, Mapping)]
    return message


def _call(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call whose function is a name and its arguments as a text."""
    function = raw.get("function")
    parts = function if isinstance(function, Mapping) else {"name": function}
    arguments = parts.get("arguments")
    text = arguments if isinstance(arguments, str) else "{}"
    return {**raw, "function": {**parts, "name": _text(parts.get("name")), "arguments": text}}


def _is_call(raw: object) -> bool:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    return isinstance(function, Mapping) and all(
        isinstance(function.get(key), str) for key in ("name", "arguments")
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def is_complete(raw: Mapping[str, Any]) -> bool:
    """Whether a stored message has all it needs, in the right types."""
    get = raw.get
    if not (
        type(get("id")) is type(get("created_at")) is type(get("audience")) is str
        and type(get("content")) is type(get("channel", "")) is str
        and type(get("tool_call_id", "")) is type(get("name", "")) is str
        and type(get("tokens")) is int
        and get("role") in ROLES
        and raw["id"]
        and raw["created_at"]
        and raw["audience"]
    ):
        return False
    speaker, calls = get("speaker", _EMPTY), get("tool_calls", ())
    return (
        isinstance(get("metadata", _EMPTY), dict)
        and isinstance(speaker, dict)
        and type(speaker.get("key", "")) is type(speaker.get("id", "")) is str
        and (calls == () or (isinstance(calls, list) and all(map(_is_call, calls))))
    )


def _as_text(content: object) -> str:
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


def speakers(messages: Iterable[Message]) -> dict[str, tuple[str, str]]:
    """Name and time (ISO 8601) of each speaker's newest message, by stable id; oldest first in."""
    return {
        m.speaker.id: (m.speaker.key or m.speaker.id, m.created_at)
        for m in messages
        if m.speaker and m.speaker.id
    }


def rendered(message: Message) -> dict[str, Any]:
    """A message in the chat format of the model's API, speech as quoted data."""
    role = message.role
    if role == "assistant" and message.tool_calls:
        return {
            "role": role,
            "content": message.content or None,
            "tool_calls": [dict(call) for call in message.tool_calls],
        }
    if role == "tool":
        return {
            "role": role,
            "tool_call_id": message.tool_call_id,
            "name": message.name,
            "content": mask_of(message).get("placeholder") or message.content,
        }
    if role == "user" and message.speaker:
        speaker, channel = message.speaker, message.channel or "say"
        return {
            "role": role,
            "content": heard_line(speaker.key, speaker.id, channel, message.content),
        }
    if role == "system":
        # Providers take later system messages as orders; a stored one is data.
        return {"role": "user", "content": notice(message.content)}
    return {"role": role, "content": message.content}


def mask_of(message: Message) -> Mapping[str, Any]:
    """The flag of a tool result that is shown as a placeholder (`history.masking`); else empty."""
    flag = message.metadata.get("masked")
    return flag if isinstance(flag, Mapping) and flag.get("placeholder") else {}


def tool_calls(message: Message) -> Sequence[dict[str, Any]]:
    """The tool calls an assistant message makes, in order; empty for others."""
    return message.tool_calls if message.role == "assistant" else ()


def call_ids(message: Message) -> list[str]:
    """The ids of the tool calls an assistant message makes, in order; empty for others."""
    return [str(call.get("id", "")) for call in tool_calls(message)]


def total_tokens(messages: Iterable[Message]) -> int:
    """Sum of the messages' own counts."""
    return sum(message.tokens for message in messages)


def widest_view_tokens(messages: Iterable[Message]) -> int:
    """Tokens of the largest view of a history that any one audience has."""
    tally: dict[str, int] = {}
    for message in messages:
        tally[message.audience] = tally.get(message.audience, 0) + message.tokens
    return widest_of(tally)


SPEECH = ("say", "whisper", "page", "pose")
_NOT_TALK = ("arrive", "leave", "tool", "summary")


def is_talk(message: Message) -> bool:
    """Whether a message is a line that people heard or saw; windows count these.

    What a tool says stands in its argument `text` (`pairs.ToolTraits.speaks`).
    """
    if message.role not in ("user", "assistant") or message.channel in _NOT_TALK:
        return False
    calls = (call.get("function") for call in message.tool_calls)
    return bool(message.content) or any(
        '"text"' in str(function.get("arguments"))
        for function in calls
        if isinstance(function, Mapping)
    )
