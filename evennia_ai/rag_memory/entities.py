"""Entities: what is known of a person, place or thing, and what of it may be shown to whom.

Observations are only ever added; all functions that add return new profiles. What holds of them is
worked out on reading, for one viewer (`current`). Times are UTC ISO 8601
(`history.messages.utc_iso`), which sorts as text.

A model states its observations itself, with property and value, by `update_entity_observation`.
A search reads the profiles that it names as they are: it never finds former or forgotten
observations.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from evennia_ai.history.audience import PUBLIC, STAFF, normalised, visible
from evennia_ai.history.messages import new_id, one_line, utc_iso
from evennia_ai.history.stored import UNMET, Stored
from evennia_ai.language.script import words
from evennia_ai.language.words import telling_words
from evennia_ai.recall.values import Hit

# The predicates of another name, of which there may be many, and of what somebody is to the
# assistant.
ALIAS, RELATIONSHIP = "alias", "relationship"
# A profile, read and written whole, with more observations than the first is cut to the second.
MOST_KEPT, CUT_BACK_TO = 150, 100
# Most observations that a search finds, each with more than this share of a query's words.
MOST_FOUND, LEAST_SHARE = 3, 0.5


@lru_cache(maxsize=8192)  # a profile's texts are compared at every reading of it
def folded(text: str) -> str:
    """A text for comparing, without case, punctuation and spacing."""
    return " ".join(words(text))


def bare(name: str) -> str:
    """A name for comparing, without a leading article."""
    return re.sub(r"^(the|a|an) (?=.)", "", folded(name))


def is_named(name: str, text: str) -> bool:
    """Whether a text holds a name as whole words."""
    wanted = bare(name)
    return bool(wanted) and f" {wanted} " in f" {folded(text)} "


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
        if self.times > 1:
            return f"{text} (heard {self.times} times)"
        return text


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
        if newest:
            return " ".join(newest[0].observation.value.split())
        return ""

    def facts(self, audience: str, limit: int) -> list[str]:
        """What an audience may know of it, at most `limit` sentences: its relationship first."""
        beliefs = sorted(self.beliefs(audience), key=lambda each: not each.observation.is_fact)
        first = self.relationship(audience)
        return [*([first] if first else []), *(each.line for each in beliefs[: max(limit, 0)])]

    def only(self, is_kept: Callable[[Observation], bool]) -> "Profile":
        """The profile with some of its observations; the same if all stay."""
        left = tuple(filter(is_kept, self.observations))
        if len(left) == len(self.observations):
            return self
        return replace(self, observations=left)


def new_profile(entity_id: str, name: str, at: float | str, kind: str = "person") -> Profile:
    """The profile of an entity first met at a time (seconds since the epoch or ISO 8601)."""
    return Profile(entity_id, name, kind, _iso(at), _iso(at))


def observe(
    profile: Profile,
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    *,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    told_by: str = "",
) -> Profile:
    """A profile with one more observation; the fields are those of `Observation`.

    `at` is in seconds since the epoch or ISO 8601, `source` one id or several.
    """
    names = (profile.id, *profile.names(STAFF))
    new = Observation(
        new_id("o"),
        " ".join(text.split()),
        _iso(at),
        "" if folded(subject or "") in map(folded, names) else subject or "",
        predicate or "",
        value or "",
        (source,) if isinstance(source, str) else tuple(source),
        normalised(audience),
        told_by,
    )
    return replace(profile, observations=(*profile.observations, new))


def with_alias(
    profile: Profile, alias: str, at: float | str, source: str | Sequence[str], audience: str
) -> Profile:
    """A profile that an audience finds by one more name."""
    if folded(alias) in {"", *map(folded, profile.names(audience))}:
        return profile
    name = " ".join(alias.split())
    text = f"{name} is another name."
    return observe(profile, text, at, source, audience, predicate=ALIAS, value=name)


def cut_back(profile: Profile) -> tuple[Profile, list[Observation]]:
    """A profile of over `MOST_KEPT` observations with the best `CUT_BACK_TO`, and those cut.

    First goes what names no property, the oldest first; other names go last.
    """
    surplus = len(profile.observations) - CUT_BACK_TO
    if surplus <= MOST_KEPT - CUT_BACK_TO:
        return profile, []
    by_worth = sorted(profile.observations, key=lambda o: (o.predicate == ALIAS, o.is_fact, o.at))
    gone = by_worth[:surplus]
    return profile.only(lambda item: item not in gone), gone


def unmet_id(name: str) -> str:
    """The id of somebody or something that was mentioned and never met."""
    return UNMET + " ".join(name.split()).lower()


def _iso(at: float | str) -> str:
    if isinstance(at, str):
        return at
    return utc_iso(at)


def found_observations(profiles: Iterable[Profile], query: str, audience: str) -> list[Hit]:
    """The beliefs that have more than half of a query's telling words, best first.

    At most `MOST_FOUND` that the audience may know, of equal ones the newest first; the score is
    the share of the query's words. `profiles` are those that the query names.
    """
    wanted, hits = telling_words(query), list[Hit]()
    for profile in profiles:
        names = telling_words(" ".join(profile.names(audience)))
        for item in (belief.observation for belief in profile.beliefs(audience)):
            share = len(wanted & (names | telling_words(item.words))) / max(1, len(wanted))
            if share > LEAST_SHARE:
                is_named = bool(names & telling_words(item.text)) or not profile.name
                text = item.text if is_named else f"About {profile.name}: {item.text}"
                who = f"{item.told_by} said" if item.told_by else ""
                hit = Hit(item.id, share, who, text, item.at, "observation", None, item.audience)
                hits.append(replace(hit, sources=item.sources))
    hits.sort(key=lambda hit: (hit.score, str(hit.at)), reverse=True)
    return hits[:MOST_FOUND]
