"""Forgetting people: which messages go, and which texts repeat words that only they used."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import MEMORIES, pairing
from evennia_ai.language.words import STARTERS, words

# Words in a row that count as a quotation if nobody else used them so.
RUN = 4
# How many of them must be other than ordinary words.
TELLING_IN_RUN = 2
REDACTED = "[forgotten]"

# A word, or a run of words.
Item = str | tuple[str, ...]


@dataclass(frozen=True)
class OwnWords:
    """Words and runs of words that only those who are forgotten used."""

    items: frozenset[Item] = frozenset()

    def are_in(self, value: object) -> bool:
        """Whether a text, or a text anywhere in a list or mapping, repeats one of them."""
        return any(not self.items.isdisjoint(_items(text)) for text in texts_in(value))

    def redacted(self, value: Any) -> Any:
        """A plain value in which each text that repeats one of them is `REDACTED`."""
        if isinstance(value, Mapping):
            return {key: self.redacted(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.redacted(each) for each in value]
        return REDACTED if isinstance(value, str) and self.are_in(value) else value


@dataclass(frozen=True)
class Forgetting:
    """What is to be forgotten of a history.

    Args:
        said: Ids of the messages of those who are forgotten.
        repeated: Ids of messages of assistants and tools that repeat their own words, with the
            calls and results these belong to.
        own: The words that only they used.
    """

    said: frozenset[str]
    repeated: frozenset[str]
    own: OwnWords


def to_forget(
    messages: Iterable[Message], people: Collection[str], until: str, known: str = ""
) -> Forgetting:
    """What goes with the words of some people.

    A word is theirs if no other person ever used it, nor an assistant or a tool before them.

    Args:
        messages: The whole history in any order; markers are left out.
        people: Stable ids of those who are forgotten, with their accounts.
        until: When they asked for it, UTC ISO 8601; what they said later stays.
        known: Names and other words that are nobody's own.
    """
    raw = {message.id: message for message in messages if not message.is_summary}
    ordered = sorted(raw.values(), key=lambda message: (message.created_at, message.id))
    said = frozenset(m.id for m in ordered if is_by(m, people) and m.created_at <= until)
    own = OwnWords(_own_items(ordered, said, people, known))
    pairs = pairing(ordered)
    groups = [pairs.get(place, place) for place in range(len(ordered))]
    repeating = {
        group
        for message, group in zip(ordered, groups, strict=True)
        if not _is_person(message) and own.are_in(_shown(message))
    }
    repeated = frozenset(
        message.id for message, group in zip(ordered, groups, strict=True) if group in repeating
    )
    return Forgetting(said, repeated - said, own)


def is_by(message: Message, people: Collection[str]) -> bool:
    """Whether one of these people said it, by the stable id of a character or an account."""
    ids = (message.speaker_id, message.metadata.get("account"))
    return message.role == "user" and any(each in people for each in ids if each)


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
    theirs = {item for m in ordered if m.id in said for item in _items(m.content)}
    others, own = theirs.intersection(_items(known)), set[Item]()
    for message in ordered:
        found = {item for text in texts_in(_shown(message)) for item in _items(text)} & theirs
        if message.id in said:
            own |= found - others
        elif _is_person(message) and not is_by(message, people):
            others |= found
        elif not _is_person(message):
            others |= found - own
    return frozenset(own - others)


def _items(text: str) -> Iterator[Item]:
    """The words of a text that are not ordinary, and its runs of words."""
    found = words(text)
    telling = [len(word) > 1 and word not in STARTERS for word in found]
    for place, word in enumerate(found):
        if telling[place]:
            yield word
        if len(found) - place >= RUN and sum(telling[place : place + RUN]) >= TELLING_IN_RUN:
            yield tuple(found[place : place + RUN])
