"""Forgetting people: which messages go, and which texts repeat words that only they used."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evennia_ai.history.audience import members
from evennia_ai.history.messages import Message, made_at, utc_iso
from evennia_ai.history.pairs import ASKER, MEMORIES, pairing
from evennia_ai.history.records import Segment, SummaryRecord, as_text, as_texts
from evennia_ai.history.verification import Evidence
from evennia_ai.language.words import STARTERS, word_places, words

# Words in a row that count as a quotation if nobody else used them so.
RUN = 4
# How many of them must be other than ordinary words.
TELLING_IN_RUN = 2
REDACTED = "[forgotten]"

# A word, or a run of words.
Item = str | tuple[str, ...]


@dataclass(frozen=True)
class Heard:
    """What an assistant had heard from somebody who then asked to be forgotten.

    It goes by places in the history, because the clock of a server may be set back.

    Args:
        ids: Ids of their messages that were live, or waiting to be stored or answered.
        segment: Id of the newest archive segment there was.
    """

    ids: frozenset[str]
    segment: str = ""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Heard":
        """From what is stored."""
        return cls(frozenset(as_texts(raw.get("ids"))), as_text(raw.get("segment")))

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return {"ids": sorted(self.ids), "segment": self.segment}


@dataclass(frozen=True)
class OwnWords:
    """Words and runs of words that only those who are forgotten used."""

    items: frozenset[Item] = frozenset()

    def are_in(self, value: object) -> bool:
        """Whether a text, or a text anywhere in a list or mapping, repeats one of them."""
        return bool(self.items) and any(
            not self.items.isdisjoint(_items(words(text))) for text in texts_in(value)
        )

    def are_quoted_in(self, value: object) -> bool:
        """The same for runs of words alone."""
        return any(
            isinstance(item, tuple) and item in self.items
            for text in texts_in(value)
            for item in _items(words(text))
        )

    def redacted(self, value: Any) -> Any:
        """A plain value with `REDACTED` in place of each of them; what is around them stays."""
        if isinstance(value, Mapping):
            return {key: self.redacted(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.redacted(each) for each in value]
        if not isinstance(value, str) or not self.are_in(value):
            return value
        loaded = _loaded(value)
        return self._without(value) if loaded is None else _dumped(self.redacted(loaded))

    def _without(self, text: str) -> str:
        places = word_places(text)
        hidden = set[int]()
        for start, item in _placed_items([word for word, _, _ in places]):
            if item in self.items:
                hidden.update(range(start, start + (len(item) if isinstance(item, tuple) else 1)))
        parts, done = list[str](), 0
        for place in sorted(hidden):
            _, begin, end = places[place]
            if place - 1 not in hidden:
                parts += [text[done:begin], REDACTED]
            done = end
        return "".join([*parts, text[done:]])

    def taken_out_of(self, message: Message) -> Message:
        """A message of an assistant or a tool without them; the same if it has none."""
        if not self.are_in(_shown(message)):
            return message
        calls = ({**call, "function": self._call(call)} for call in message.tool_calls)
        kept = {k: self.redacted(v) if k == MEMORIES else v for k, v in message.metadata.items()}
        content = self.redacted(message.content)
        return replace(message, content=content, tool_calls=tuple(calls), metadata=kept)

    def _call(self, call: Mapping[str, Any]) -> Any:
        function = call.get("function")
        if not isinstance(function, Mapping):
            return function
        return {**function, "arguments": self.redacted(function.get("arguments"))}


@dataclass(frozen=True)
class Forgetting:
    """What is to be forgotten of a history.

    Args:
        said: Ids of the messages of those who are forgotten.
        repeated: Ids of messages of assistants and tools that go because they repeat their own
            words, with the calls and results these belong to.
        changed: Ids of messages that only lose single words, or names in their metadata.
        own: The words that only they used.
        emptied: Ids of the summaries that rest on what goes, with all that were made from these.
        parts: Ids of the messages that go or change, by the archive segments that hold them.
    """

    said: frozenset[str]
    repeated: frozenset[str]
    changed: frozenset[str]
    own: OwnWords
    emptied: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)


def plan_forgetting(
    evidence: Evidence,
    people: Collection[str],
    heard: Heard | None,
    known: str = "",
    unnamed: Callable[[Message], Message] = lambda message: message,
) -> Forgetting:
    """What goes of all that an assistant has stored.

    Args:
        evidence: Its history, archive and summaries.
        people: Stable ids of those who are forgotten, with their accounts.
        heard: What it had heard from them when they asked; None for all that they ever said.
        known: Names and other words that are nobody's own.
        unnamed: Returns a message whose metadata do not name these people; the same if they don't.
    """
    segments, raw = evidence.segments, list[Message]()
    said = {m.id for m in evidence.live if is_by(m, people) and was_heard(heard, m)}
    for part in segments:
        raw += part.messages
        theirs = (m for m in part.messages if is_by(m, people))
        said |= {m.id for m in theirs if was_heard(heard, m, part.id)}
    found = to_forget([*raw, *evidence.live], said, people, known, unnamed)
    touched = found.said | found.repeated | found.changed
    parts = {part.id: touched.intersection(part.message_ids) for part in segments}
    return replace(
        found,
        emptied=_emptied(evidence.summaries.values(), segments, found),
        parts={key: ids for key, ids in parts.items() if ids},
    )


def was_heard(heard: Heard | None, message: Message, segment: str = "") -> bool:
    """Whether a message, live or in a segment, had been heard; any was if `heard` is None."""
    return heard is None or message.id in heard.ids or "" < segment <= heard.segment


def _emptied(
    records: Iterable[SummaryRecord], segments: Iterable[Segment], found: Forgetting
) -> frozenset[str]:
    """Ids of the summaries that rest on what goes, with all that were made from these."""
    leaving = found.said | found.repeated
    hit = {part.id for part in segments if not leaving.isdisjoint(part.message_ids)}
    made_from: dict[str, list[str]] = {}
    waiting = []
    for record in records:
        for below in record.child_ids:
            made_from.setdefault(below, []).append(record.id)
        if record.segment in hit or found.own.are_in(record.text):
            waiting.append(record.id)
    emptied = set[str]()
    while waiting:
        each = waiting.pop()
        if each not in emptied:
            emptied.add(each)
            waiting += made_from.get(each, ())
    return frozenset(emptied)


def to_forget(
    messages: Iterable[Message],
    said: Collection[str],
    people: Collection[str],
    known: str = "",
    unnamed: Callable[[Message], Message] = lambda message: message,
) -> Forgetting:
    """Which messages go, and which change, with the words of some people.

    A word is theirs if no other person ever used it, nor an assistant or a tool before them. A line
    of an assistant goes if it repeats a run of their own words, or if it holds one of them and was
    made for them or from them. Any other line only loses the word.

    Args:
        messages: The whole history in any order; markers are left out.
        said: Ids of those that are to be forgotten.
        people: Stable ids of those who said them, with their accounts.
        known: Names and other words that are nobody's own.
        unnamed: As of `plan_forgetting`.
    """
    raw = {message.id: message for message in messages if not message.is_summary}
    ordered = sorted(raw.values(), key=_place)
    said = raw.keys() & said
    own = OwnWords(_own_items(ordered, said, people, f"{known} . {REDACTED}"))
    pairs = pairing(ordered)
    groups = [pairs.get(place, place) for place in range(len(ordered))]
    repeating, changed, is_last = set[int](), set[str](), False
    for message, group in zip(ordered, groups, strict=True):
        if _is_person(message):
            is_last = is_by(message, people)
        elif own.are_in(shown := _shown(message)):
            if own.are_quoted_in(shown) or _is_for(message, people, is_last, own):
                repeating.add(group)
            else:
                changed.add(message.id)
        if unnamed(message) is not message:
            changed.add(message.id)
    repeated = {m.id for m, group in zip(ordered, groups, strict=True) if group in repeating}
    gone = said | repeated
    return Forgetting(frozenset(said), frozenset(repeated - said), frozenset(changed - gone), own)


def _place(message: Message) -> tuple[str, str]:
    """A key by which messages sort as they came.

    Ids go on counting where the clock is set back; only those made by hand have to rely on times.
    """
    millis = made_at(message.id)
    return (message.created_at if millis is None else utc_iso(millis / 1000), message.id)


def _is_for(message: Message, people: Collection[str], follows: bool, own: OwnWords) -> bool:
    """Whether a line of an assistant or a tool was made for these people, or from their words.

    `follows` says whether the last person who spoke before it was one of them, which decides for
    lines that do not note whom they answer.
    """
    if not members(message.audience).isdisjoint(people):
        return True
    if own.are_in(message.metadata.get(MEMORIES)):
        return True
    asker = message.metadata.get(ASKER)
    return asker in people if asker else follows


def is_by(message: Message, people: Collection[str]) -> bool:
    """Whether one of these people said it, by the stable id of a character or an account."""
    if message.role != "user":
        return False
    by, account = message.speaker_id, message.metadata.get("account")
    return bool((by and by in people) or (isinstance(account, str) and account in people))


def texts_in(value: object) -> Iterator[str]:
    """The texts in a plain value, also those inside of JSON texts; keys are no texts."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        loaded = _loaded(value)
        yield from (value,) if loaded is None else texts_in(loaded)


def _loaded(text: str) -> Any:
    """What a JSON text of a list or mapping holds; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_person(message: Message) -> bool:
    return message.role == "user" and not message.metadata.get("assistant")


def _shown(message: Message) -> list[Any]:
    """What a message holds of words: its text, its calls' arguments, memories it drew on."""
    calls = (call.get("function") for call in message.tool_calls)
    arguments = [call.get("arguments") for call in calls if isinstance(call, Mapping)]
    return [message.content, arguments, message.metadata.get(MEMORIES)]


def _own_items(
    ordered: Sequence[Message], said: Collection[str], people: Collection[str], known: str
) -> frozenset[Item]:
    """What only the speakers of the messages in `said` used."""
    theirs = {item for m in ordered if m.id in said for item in _items(words(m.content))}
    others, own = theirs.intersection(_items(words(known))), set[Item]()
    for message in ordered:
        shown = texts_in(_shown(message))
        found = {item for text in shown for item in _items(words(text))} & theirs
        if message.id in said:
            own |= found - others
        elif _is_person(message) and not is_by(message, people):
            others |= found
        elif not _is_person(message):
            others |= found - own
    return frozenset(own - others)


def _items(found: Sequence[str]) -> Iterator[Item]:
    """The words among these that are not ordinary, and their runs of words."""
    return (item for _, item in _placed_items(found))


def _placed_items(found: Sequence[str]) -> Iterator[tuple[int, Item]]:
    """The same, each with the number of its first word."""
    telling = [len(word) > 1 and word not in STARTERS for word in found]
    for place, word in enumerate(found):
        if telling[place]:
            yield place, word
        if len(found) - place >= RUN and sum(telling[place : place + RUN]) >= TELLING_IN_RUN:
            yield place, tuple(found[place : place + RUN])
