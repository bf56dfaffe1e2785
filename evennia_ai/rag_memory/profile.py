"""Profiles: what is known of a person, place or thing, and what of it may be shown to whom.

Observations are only ever added. What holds of them is worked out on reading, for one viewer
(`current`). Times are UTC ISO 8601 (`history.messages.utc_iso`), which sorts as text.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from evennia_ai.history.audience import STAFF, visible
from evennia_ai.history.frames import one_line
from evennia_ai.history.stored import Stored
from evennia_ai.language.script import words

# The predicates of another name, of which there may be many, and of what somebody is to the
# assistant.
ALIAS, RELATIONSHIP = "alias", "relationship"


@dataclass(frozen=True, slots=True)
class Observation(Stored):
    """One thing that was observed, once."""

    id: str
    text: str
    at: str
    subject: str = ""  # what it is about; empty for the entity itself
    predicate: str = ""  # which property, as ``lives in``
    value: str = ""  # the property's value, as ``the mill``
    sources: tuple[str, ...] = ()  # ids of the messages, journal entries and extraction it rests on
    audience: str = STAFF
    # The name of who said it of somebody else; empty if unknown, or said of themselves.
    told_by: str = ""

    @property
    def words(self) -> str:
        """All that it says."""
        return " ".join(filter(None, (self.text, self.subject, self.predicate, self.value)))

    @property
    def is_fact(self) -> bool:
        """Whether it names a property and its value."""
        return bool(folded(self.predicate) and folded(self.value))

    @property
    def statement(self) -> tuple[str, ...]:
        """What it states, to compare: the text, or subject, predicate and value."""
        if not self.is_fact:
            return (folded(self.text),)
        return (*self.topic, folded(self.value))

    @property
    def topic(self) -> tuple[str, str]:
        """Subject and predicate, to compare."""
        return (folded(self.subject), folded(self.predicate))


@dataclass(frozen=True, slots=True)
class Belief:
    """What holds for a viewer."""

    observation: Observation  # the newest that states it
    times: int = 1  # how many observations state it
    # The newest observation of each other value of the property, newest first.
    former: tuple[Observation, ...] = ()

    @property
    def line(self) -> str:
        """One line: ``Bram said: Cora drinks rum (before: cider) (heard 2 times)``."""
        item = self.observation
        text = " ".join(item.text.split()).rstrip(".")
        if item.told_by and not text.startswith(item.told_by):
            text = f"{one_line(item.told_by)} said: {text}"
        if self.former:
            text += f" (before: {one_line(self.former[0].value)})"
        return f"{text} (heard {self.times} times)" if self.times > 1 else text


def current(observations: Iterable[Observation], audience: str) -> list[Belief]:
    """What an audience may know and still holds, newest first.

    Of several values of a property the newest holds. What was said several times is there once.
    """
    known = [item for item in observations if visible(item.audience, audience)]
    known.sort(key=lambda item: (item.at, item.id), reverse=True)
    groups: dict[tuple[str, ...], dict[tuple[str, ...], list[Observation]]] = {}
    for item in known:
        has_one = item.is_fact and item.predicate != ALIAS
        group = groups.setdefault(item.topic if has_one else ("", *item.statement), {})
        group.setdefault(item.statement, []).append(item)
    beliefs = []
    for group in groups.values():
        newest, *former = group.values()
        beliefs.append(Belief(newest[0], len(newest), tuple(items[0] for items in former)))
    return beliefs


@dataclass(frozen=True, slots=True)
class Profile(Stored):
    """What is known of a person, place or thing."""

    id: str  # its stable id
    name: str
    kind: str = ""  # ``person``, ``place``, ``thing`` or ``unknown``
    first_seen: str = ""  # when it was first met; empty if it never was
    last_seen: str = ""
    observations: tuple[Observation, ...] = ()

    def names(self, audience: str) -> tuple[str, ...]:
        """The name, and the other names that an audience may know."""
        others = (
            item.value
            for item in self.observations
            if item.predicate == ALIAS and visible(item.audience, audience)
        )
        return tuple(dict.fromkeys(name for name in (self.name, *others) if name))

    def beliefs(self, audience: str) -> list[Belief]:
        """What an audience may know of it and still holds, but for other names; newest first."""
        return current((o for o in self.observations if o.predicate != ALIAS), audience)

    def relationship(self, audience: str) -> str:
        """What it is to the assistant, as far as an audience may know; empty if unknown."""
        items = [
            item
            for item in self.observations
            if folded(item.predicate) == RELATIONSHIP and not item.subject
        ]
        newest = current(items, audience)[:1]
        return " ".join(newest[0].observation.value.split()) if newest else ""

    def facts(self, audience: str, limit: int) -> list[str]:
        """What an audience may know of it, at most `limit` sentences: its relationship first."""
        beliefs = sorted(self.beliefs(audience), key=lambda each: not each.observation.is_fact)
        first = self.relationship(audience)
        return [*([first] if first else []), *(each.line for each in beliefs[: max(limit, 0)])]

    def only(self, is_kept: Callable[[Observation], bool]) -> "Profile":
        """The profile with some of its observations; the same if all stay."""
        left = tuple(filter(is_kept, self.observations))
        return self if len(left) == len(self.observations) else replace(self, observations=left)


@lru_cache(maxsize=8192)  # a profile's texts are compared at every reading of it
def folded(text: str) -> str:
    """A text for comparing, without case, punctuation and spacing."""
    return " ".join(words(text))
