"""The message: one entry of a conversation history.

A message is what somebody said, what the assistant answered, a tool call's result, or a summary
marker. It is stored as a plain dict (`Message.to_dict`) and rendered for a model by `rendered`.
A line that was heard and waits in the queue is a message without a token count.

A provider refuses a request that holds a result without its call or a call without its result, so
a history is cut between turns alone (`cut_points`). Ids of calls are not unique forever: a result
belongs to the nearest earlier call with its id that has none yet.

Frames of data (who said a line, what nobody said, which id a row has) are written and read here,
and nowhere else. Prompts, and jobs that read talk (a summary, an extraction), show it as people
read it, ``Alice: Good evening.``; each line is one line and begins with its true speaker. What
nobody said is a note in brackets. Nobody can type what looks like another frame.
"""

import collections
import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from evennia_ai.history.audience import PUBLIC, Views
from evennia_ai.history.stored import Stored, Unreadable, unseal

ROLES = ("system", "user", "assistant", "tool")
# What a chat message costs beside its text: role and separators. OpenAI's cookbook gives 3 to 4.
OVERHEAD_TOKENS = 4
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PYTHONS = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")  # digits of `int`
# Seconds beyond which a number is no time.
MOST_SECONDS = 1e15
Counter = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Speaker(Stored):
    """Who said something: the name at the time, and the stable id, empty if unknown."""

    key: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message(Stored):
    """One entry of the history; one put in by hand is at least ``{role, content}``."""

    role: str  # one of `ROLES`
    content: str  # the text, raw
    id: str = ""  # unique, never reused; empty until it is stored
    created_at: str = ""  # UTC ISO 8601; empty until it is stored
    speaker: Speaker | None = None
    audience: str = PUBLIC  # who may know it, see `history.audience`
    channel: str = ""  # how it was said: say, whisper, page, pose, tool,
    tokens: int = 0  # tokens it takes in a prompt; 0 until they are counted
    # Where it stands in the talk (`in_order`); 0 until it is stored, and for markers.
    place: float = 0
    # The calls an assistant message makes, in the chat format.
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str = ""  # the call that a tool's result answers
    name: str = ""  # the tool that gave a result
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: object) -> "Message":
        """The message of a stored dict; raises `Unreadable`. None is an empty text, as in APIs."""
        if isinstance(raw, Mapping) and raw.get("content", "") is None:
            raw = {**(raw if type(raw) is dict else unseal(raw)), "content": ""}
        return Stored.from_dict.__func__(cls, raw)  # type: ignore[attr-defined,no-any-return]

    def check(self) -> None:
        """Its role is one of `ROLES`, and each call names its function and arguments."""
        if self.role not in ROLES:
            raise Unreadable(f"no role is called `{self.role}`")
        for call in self.tool_calls:
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping) or not all(
                isinstance(function.get(key), str) for key in ("name", "arguments")
            ):
                raise Unreadable("a tool call without a function")

    @property
    def is_complete(self) -> bool:
        """Whether it has all that `completed` gives it."""
        has_place = self.place > 0 or self.is_summary
        return bool(self.id and self.created_at and self.channel and self.tokens > 0 and has_place)

    def completed(self, count: Counter, at: float, place: float = 1) -> "Message":
        """The message with an id, a time (`at`, epoch seconds), a channel, a place, its tokens."""
        stamped = replace(
            self,
            id=self.id or new_id("m"),
            created_at=self.created_at or utc_iso(at),
            channel=self.channel or ("tool" if self.role == "tool" else "say"),
            place=self.place or (0 if self.is_summary else place),
        )
        if self.tokens > 0:
            return stamped
        return stamped.counted(count)

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
        if self.speaker:
            return self.speaker.key
        return ""

    @property
    def speaker_id(self) -> str:
        """The speaker's stable id; empty if unknown."""
        if self.speaker:
            return self.speaker.id
        return ""


def utc_iso(at: float) -> str:
    """Seconds since the epoch as UTC ISO 8601, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def seconds(moment: object) -> float:
    """A moment as seconds since the epoch, in UTC if it names no zone; 0.0 if it is no time."""
    if isinstance(moment, int | float):
        return float(moment) if abs(moment) < MOST_SECONDS else 0.0
    try:
        when = datetime.fromisoformat(str(moment).strip())
    except ValueError:
        return 0.0
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


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
    return int(stamp.translate(_PYTHONS), 32)


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

EMPTY_DIGEST = "0" * 64
_MODULUS = 1 << 256


def digest_add(digest: str, ids: Iterable[str]) -> str:
    """Add ids to the digest of a set of ids, which does not depend on their order.

    The digest is the sum of the SHA-256 of each id, modulo 2**256. Together with the count it
    shows whether a set of ids is the recorded one, without storing the ids twice. Such sums
    distinguish sets as long as nobody chooses the ids (Bellare and Micciancio's AdHash, Eurocrypt
    1997); ids are made here, by a clock and chance. A digest has 64 hexadecimal digits.
    """
    total = int(digest, 16)
    for one in ids:
        total += int.from_bytes(hashlib.sha256(one.encode("utf-8", "surrogatepass")).digest())
    return f"{total % _MODULUS:064x}"


def message_tokens(message: Message, count: Counter) -> int:
    """Tokens a message takes in a prompt: its rendered text, its tool calls, its frame."""
    shown = rendered(message)
    tokens = OVERHEAD_TOKENS + count(shown["content"] or "")
    if calls := shown.get("tool_calls"):
        tokens += count(json.dumps(calls, ensure_ascii=False))
    if shown["role"] == "tool":
        tokens += count(shown["tool_call_id"]) + count(shown["name"])
    return tokens


def is_by(message: Message, people: Collection[str], until: str = "") -> bool:
    """Whether one of these people said it, by the stable id of a character or an account.

    With `until`, only of what was said up to the message of that id: ids go on counting where the
    clock is set back.
    """
    if message.role != "user" or (until and message.id > until):
        return False
    by, account = message.speaker_id, message.metadata.get("account")
    return bool((by and by in people) or (isinstance(account, str) and account in people))


def rendered(message: Message) -> dict[str, Any]:
    """A message in the chat format of the model's API; what people said as lines of talk."""
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
    if role == "system":
        # Providers take later system messages as orders; a stored one is data.
        return {"role": "user", "content": note(NOTICED, message.content)}
    if role == "user":
        heard, channel = message.content or "", message.channel  # None if put in by hand
        line = talk_line(message.speaker_name, channel or "say", heard)
        if channel not in COMINGS and not flat(heard):
            line = ""
        return {"role": role, "content": line}
    return {"role": role, "content": message.content}


def mask_of(message: Message) -> Mapping[str, Any]:
    """The flag of a tool result that is shown as a placeholder (`masked`); else empty."""
    flag = message.metadata.get("masked")
    if isinstance(flag, Mapping) and flag.get("placeholder"):
        return flag
    return {}


def tool_calls(message: Message) -> Sequence[dict[str, Any]]:
    """The tool calls an assistant message makes, in order; empty for others."""
    if message.role == "assistant":
        return message.tool_calls
    return ()


def call_ids(message: Message) -> list[str]:
    """The ids of the tool calls an assistant message makes, in order; empty for others."""
    return [str(call.get("id", "")) for call in tool_calls(message)]


def in_order(messages: Iterable[Message]) -> list[Message]:
    """Raw messages as they were stored, whatever left meanwhile.

    One that was put in by hand has the place of the one before it.
    """
    return sorted(messages, key=lambda message: (message.place, message.id))


def total_tokens(messages: Iterable[Message]) -> int:
    """Sum of the messages' own counts."""
    return sum(message.tokens for message in messages)


def widest_view_tokens(messages: Iterable[Message]) -> int:
    """Tokens of the largest view of a history that any one audience has."""
    tally = collections.Counter[str]()
    for message in messages:
        tally[message.audience] += message.tokens
    return Views(tally).widest


SPEECH = ("say", "whisper", "page", "pose")
# Key of a heard message's metadata: the stable id of the room where it was heard.
ROOM = "room"
# Key of an event's metadata: the id of the mask that the speaker wore, if they wore one. So those
# ids begin.
FACE, MASK = "face", "mask-"
COMINGS = ("arrive", "leave")
_NOT_TALK = (*COMINGS, "tool", "summary")


def is_talk(message: Message) -> bool:
    """Whether a message is a line that people heard or saw; windows count these.

    What a tool says stands in its argument `text` (`ToolTraits.speaks`).
    """
    if message.role not in ("user", "assistant") or message.channel in _NOT_TALK:
        return False
    calls = (call["function"]["arguments"] for call in message.tool_calls)
    return bool(message.content) or any('"text"' in arguments for arguments in calls)


# Masking: a large old tool result is shown as one line that says how to bring it back. JetBrains'
# study of agents' context found that hiding old observations is as good as summarising them at
# half the cost. It is a flag in a message's metadata and a rule of `rendered`: the raw text stays
# stored, and taking the flag away gives back the message as it was, byte for byte. It is decided
# in batches, at a compaction, and never again, so that a provider's cache keeps hitting.

PLACEHOLDER = "[TOOL OUTPUT ARCHIVED - search history for details]"
# A tool's name is letters, digits, `_` and `-`, 64 at most, in the chat format.
_TOOL_NAME_CHARS = 64
_NOT_IN_TOOL_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
# Results of tools that are larger than this are masked; a placeholder takes a quarter of it.
MASKED_TOKENS = 200


def placeholder(message: Message, at_iso: str) -> str:
    """One line for a masked tool result: the tool, the time, the id that brings the text back."""
    name = _NOT_IN_TOOL_NAMES.sub("_", message.name or "unknown")[:_TOOL_NAME_CHARS]
    found_by = one_line(message.id)
    return f"{PLACEHOLDER} original_tool={name} archived_at={one_line(at_iso)} id={found_by}"


def is_maskable(message: Message) -> bool:
    """Whether it is a tool's result large enough to mask, and not masked yet."""
    is_large = message.role == "tool" and message.tokens > MASKED_TOKENS
    return is_large and "masked" not in message.metadata


def masked(message: Message, at_iso: str, count: Counter) -> Message:
    """A tool result that is shown as a placeholder from now on.

    Its content is still the raw text, its `tokens` are those of what is shown. It must be one that
    `is_maskable`.
    """
    flag = {
        "original_tool": message.name,
        "archived_at": at_iso,
        "placeholder": placeholder(message, at_iso),
        "raw_tokens": message.tokens,
    }
    return replace(message, metadata={**message.metadata, "masked": flag}).counted(count)


def unmasked(message: Message) -> Message:
    """The message as it was before `masked`; others as they are."""
    flag = mask_of(message)
    if not flag:
        return message
    metadata = {k: v for k, v in message.metadata.items() if k != "masked"}
    return replace(message, metadata=metadata, tokens=flag.get("raw_tokens") or 0)


INTERRUPTED = '{"error": "interrupted before it was done"}'
# Key of a result's metadata: the audience whose turn the calls ended, empty if they ended none.
# The result itself may be for fewer. Older versions stored no such key.
ANSWERED = "answered"
# Key of the metadata of what a turn stored: the stable id of whom it answers. Likewise.
ASKER = "asker"
# Key of the metadata of what was passed on for somebody: the stable id of whom it was for.
FOR = "for"
# Key of a reply's metadata: the shown memories that it may repeat.
MEMORIES = "memories"
# Key of a reply's metadata: what later prompts show of it, where it repeats the ones before.
SAID_ONCE = "said_once"
# Characters of a tool's result that a summary or an extraction is made from.
RESULT_CHARS = 200


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """Names of tools by trait, which is a class attribute of `evennia_ai.turns.tools.Tool`.

    A game's own tools have traits too, so nothing else knows a tool by name.
    """

    speaks: frozenset[str] = frozenset()  # others hear the argument `text`
    to_one: frozenset[str] = frozenset()  # only the person in the argument `target` hears it
    silent: frozenset[str] = frozenset()  # does nothing, so that text beside the call is still said
    # The result consists of memories; summaries are made without it.
    recalls: frozenset[str] = frozenset()
    # The result only confirms the call, or repeats what is known already.
    tells_nothing_new: frozenset[str] = frozenset()
    extracts: frozenset[str] = frozenset()  # may be used while dreaming and before a compaction

    @classmethod
    def of(cls, tools: Mapping[str, object]) -> "ToolTraits":
        """The traits of tools by name; each tool has an attribute for each trait."""
        return cls(
            **{
                trait.name: frozenset(n for n, tool in tools.items() if getattr(tool, trait.name))
                for trait in fields(cls)
            }
        )


def pairing(messages: Sequence[Message]) -> dict[int, int]:
    """Index of each tool result to the index of its call's message; without a call left out."""
    waiting: dict[str, list[int]] = {}
    pairs: dict[int, int] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
            for call_id in call_ids(message):
                waiting.setdefault(call_id, []).append(index)
        elif message.role == "tool":
            callers = waiting.get(message.tool_call_id)
            if callers:
                pairs[index] = callers.pop()
    return pairs


def said_and_done(messages: Sequence[Message], traits: ToolTraits) -> list[Message]:
    """What was said and done: the messages as a summary and an extraction read them.

    Searches of memory leave, calls and results: they repeat what was said earlier. So do arrivals
    and departures, for which nobody asks later. Other results are cut to their first
    `RESULT_CHARS` characters. What is changed has no token count.
    """
    kept: list[Message] = []
    for message in messages:
        if message.channel in COMINGS:
            continue
        if message.role == "tool":
            if message.name in traits.recalls:
                continue
            if len(message.content) > RESULT_CHARS:
                short = f"{message.content[:RESULT_CHARS]}..."
                message = replace(message, content=short, tokens=0)
        elif made := tool_calls(message):
            calls = tuple(c for c in made if c["function"]["name"] not in traits.recalls)
            if not calls and not message.content:
                continue
            if len(calls) < len(made):
                message = replace(message, tool_calls=calls, tokens=0)
        kept.append(message)
    return kept


def cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indices at which a history may be cut without parting a tool call from its results.

    Results stand right behind their calls. The indices are sorted, in 0..len(messages); both ends
    are always among them.
    """
    inner = (n for n, message in enumerate(messages) if n and message.role != "tool")
    return tuple(dict.fromkeys((0, *inner, len(messages))))


def newest_turn(messages: Sequence[Message]) -> int:
    """Index at which the newest message begins, or the newest exchange that cannot be parted."""
    return cut_points(messages)[-2:][0]


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as a provider takes them: every call answered at once, no result alone.

    Results stand right behind their call; a call without one gets `INTERRUPTED`; a result
    without a call, or a second one, is left out. What is stored stays as it is.
    """
    results, said = dict[int, list[Message]](), list[Message]()
    for result, caller in pairing(messages).items():
        results.setdefault(caller, []).append(messages[result])
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        said += [message, *results.get(index, ())]
        left = [answer.tool_call_id for answer in results.get(index, ())]
        for call_id, call in zip(call_ids(message), tool_calls(message), strict=True):
            if call_id in left:  # an id may stand twice in one message
                left.remove(call_id)
            else:
                name = call["function"]["name"]
                said.append(Message("tool", INTERRUPTED, tool_call_id=call_id, name=name))
    return tuple(said)


SUMMARY_TITLE = "[CONTEXT SUMMARY]"
SYNTHESIS_TITLE = "[CONTEXT SYNTHESIS]"
MESSAGES_LABEL = "[MESSAGES TO COMPACT]"

_VERBS = {
    "say": "says",
    "whisper": "whispers to you",
    "page": "pages you",
    "pose": "poses",
    "arrive": "arrives",
    "leave": "leaves",
    "event": "notice",
}
# What the assistant calls somebody whom it hears and does not see.
UNSEEN = "someone"
# Longest name in a line of talk.
NAME_CHARS = 80
# What stands in a line of talk and must not stand in a name: quotes, brackets, stars and colons of
# any script, bars, and characters that nobody sees.
_NOT_IN_NAMES = re.compile(
    '[\\s"\\[\\]<>(){}*|\\x00-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff'
    "\\ud800-\\udfff:\\u02d0\\u2236\\ua789\\ufe13\\ufe55\\uff1a\\uff08\\uff09]+"
)
_EDGES_OF_NAMES = re.compile(r"\A[\W_]+")
# A line break of Evennia's markup, and control characters.
_BREAKS = re.compile(r"\|/|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# The beginning or the end of a mark of some model's template.
_TEMPLATE = re.compile(
    r"<(?=[|/!\w\uff5c<])|(?<=[|\uff5c])(?=>)|\[(?=/?[A-Za-z_]{3,20}\]|\||e~)|\](?=~)"
)
_TALK = re.compile(
    rf"(?P<who>\w[^:()\n]{{0,{NAME_CHARS}}}?)(?: \((?P<how>[^()\n]{{1,60}})\))?: ?(?P<text>[^\n]*)"
)
_NOTE = re.compile(r"\((?P<label>[^:()\n]{1,120}): (?P<text>.*)\)")
_POSE = re.compile(r"\*(?P<text>.*)\*")
# The label of what the assistant noticed and nobody said.
NOTICED = "You notice"

# Made once: every prompt renders every message.
_as_json = json.JSONEncoder(ensure_ascii=False).encode
# Ends of lines that JSON lets stand unescaped: next line, line and paragraph separator.
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_UNSAFE = re.compile(r'[\s"\[\]<>]+')
_LABEL = re.compile(r"\[([A-Z][A-Za-z ]{2,40})\]")
_STAMP = r"(?:\[\d{4}-\d\d-\d\d[^\]\n]{0,20}\]\s*)*"
_STAMPS = re.compile(rf"{_STAMP}(?:{_LABEL.pattern}\s*)?{_STAMP}")
# Ids of speakers, days, labels and notices.
_MARKS = re.compile(r"\[(?=[^\[\]\s]*[0-9])[^\[\]\s]{1,80}\]|\[[A-Z][A-Z ]{2,60}\]|\[Notice\]")


class Heard(NamedTuple):
    """A heard line, read."""

    who: str
    verb: str
    text: str


class Note(NamedTuple):
    """A line in brackets, which nobody said: its label and its text."""

    label: str
    text: str


def shown_name(name: str) -> str:
    """A name as it may stand before a line of talk: one line without signs of a frame."""
    plain = " ".join(_NOT_IN_NAMES.sub(" ", name).split())
    return _EDGES_OF_NAMES.sub("", plain)[:NAME_CHARS].rstrip() or UNSEEN


def flat(text: str) -> str:
    """A text on one line, in which no mark of a model's template is left."""
    return _TEMPLATE.sub(lambda mark: f"{mark.group()} ", " ".join(_BREAKS.sub(" ", text).split()))


@lru_cache(maxsize=8192)  # every prompt shows the newest lines again
def talk_line(name: str, channel: str, text: str) -> str:
    """One heard line as a prompt shows it, by a name and the channel it came by.

    ``Alice: Good evening.``, ``Alice (whispers to you): …``, ``Alice: *waves*``; what nobody said
    is a note: ``(You notice: Alice arrives.)``.
    """
    who, said = shown_name(name), flat(text)
    if channel in ("arrive", "leave"):
        return note(NOTICED, f"{who} {_VERBS[channel]}.")
    if channel == "event":
        return note(NOTICED, f"{who} {said}")
    if channel == "pose":
        return f"{who}: *{said}*"
    if channel == "say":
        return f"{who}: {said}"
    return f"{who} ({shown_name(_VERBS.get(channel, channel))}): {said}"


def note(label: str, text: str) -> str:
    """What nobody said as a line of a prompt: ``(Here: Alice, Bram)``."""
    return f"({label}: {flat(text)})"


def read_talk_line(line: str) -> Heard | Note | None:
    """What `talk_line` or `note` wrote; None for other lines."""
    if found := _NOTE.fullmatch(line):
        return Note(found["label"], found["text"])
    spoken = _TALK.fullmatch(line)
    if spoken is None:
        return None
    verb, text = spoken["how"] or _VERBS["say"], spoken["text"]
    if verb == _VERBS["say"] and (posed := _POSE.fullmatch(text)):
        verb, text = _VERBS["pose"], posed["text"]
    return Heard(spoken["who"], verb, text)


def quoted(text: str) -> str:
    """A text as a JSON string on one line, by any reading of what ends a line."""
    return _LINE_ENDS.sub(lambda end: f"\\u{ord(end.group()):04x}", _as_json(text))


def one_line(text: str) -> str:
    """A name made safe to stand outside quotes: one line, no quote marks or brackets."""
    return _UNSAFE.sub(" ", text).strip()


def speaker_label(key: str, speaker_id: str) -> str:
    """A speaker's name and stable id: ``Alice [o12.abc]``; of somebody unseen no id."""
    has_id = bool(speaker_id) and key != UNSEEN
    return one_line(key) + (f" [{one_line(speaker_id)}]" if has_id else "")


def without_marks(text: str) -> str:
    """A text without the labels, days and ids of speakers in brackets."""
    if "[" in text:
        return _MARKS.sub(" ", text)
    return text


def row(row_id: str, day: str, who: str, text: str) -> str:
    """A memory or a note as a row of its block: ``- (m1) 2026-01-02 Al: "hello"``."""
    return " ".join(filter(None, (f"- ({row_id})", day, who and f"{who}:", quoted(text))))


def without_stamps(text: str) -> str:
    """A row of a summary without the days and the label in front of it."""
    return _STAMPS.sub("", text.strip(), count=1)
