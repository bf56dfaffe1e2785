"""Profiles: what is known of a person, place or thing, and what of it may be shown to whom.

Times are UTC ISO 8601 (`history.messages.utc_iso`), which sorts as text.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from evennia_ai.history.audience import PUBLIC, STAFF, normalised, visible
from evennia_ai.history.frames import one_line
from evennia_ai.history.records import as_count, as_dicts, as_stored, as_text, as_texts

SCHEMA_VERSION = 1
CURRENT, SUPERSEDED = "current", "superseded"
# Observations named in the stored summary line of a profile; more would not be one short line.
SUMMARY_FACTS = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that was observed.

    Args:
        subject: What it is about; None is the entity itself.
        predicate: Which property, as ``lives in``.
        value: The property's value, as ``the mill``.
        source: Id of the message or journal entry it rests on; all ids are in `sources` if
            there are several.
        status: `CURRENT` or `SUPERSEDED`, by which other observation and when.
        last_at: When it was last observed, if more than once (`times`).
        other_texts: Other wordings of the same.
        extra: What else is stored with it.
    """

    id: str
    text: str
    at: str
    subject: str | None = None
    predicate: str | None = None
    value: str | None = None
    source: str = ""
    audience: str = PUBLIC
    status: str = CURRENT
    superseded_by: str | None = None
    superseded_at: str = ""
    sources: tuple[str, ...] = ()
    last_at: str = ""
    times: int = 1
    other_texts: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Observation":
        """An observation from what is stored; one without an audience is for staff only."""
        return cls(
            _optional(raw.get("id")) or "",
            _optional(raw.get("text")) or "",
            as_text(raw.get("at")),
            _optional(raw.get("subject")),
            _optional(raw.get("predicate")),
            _optional(raw.get("value")),
            _optional(raw.get("source")) or "",
            normalised(raw.get("audience", STAFF)),
            as_text(raw.get("status")) or CURRENT,
            _optional(raw.get("superseded_by")),
            as_text(raw.get("superseded_at")),
            tuple(as_texts(raw.get("sources"))),
            as_text(raw.get("last_at")),
            max(1, as_count(raw.get("times"))),
            tuple(as_texts(raw.get("other_texts"))),
            {key: value for key, value in raw.items() if key not in _OBSERVATION},
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return as_stored(self, _OPTIONAL)

    @property
    def source_ids(self) -> tuple[str, ...]:
        """The ids of the messages and journal entries that it rests on."""
        return self.sources or (self.source,)

    def rests_on(self, gone: Collection[str], cited: Collection[str] = ()) -> bool:
        """Whether it rests on sources that are gone alone, and on messages cited with these."""
        rest = [source for source in self.source_ids if source not in gone]
        return len(rest) < len(self.source_ids) and all(source in cited for source in rest)

    @property
    def latest(self) -> str:
        """When it was observed last."""
        return self.last_at or self.at

    @property
    def is_fact(self) -> bool:
        """Whether it names a property and its value."""
        return bool(self.predicate and self.value)

    @property
    def told_by(self) -> str:
        """The name of who said it of somebody else; empty if unknown, or said of themselves."""
        return as_text(self.extra.get("told_by"))

    @property
    def line(self) -> str:
        """Its text on one line, without the full stop."""
        return " ".join(self.text.split()).rstrip(".")

    @property
    def attributed_line(self) -> str:
        """The same with who said it: ``Bram said: Cora stole it``."""
        is_named = not self.told_by or self.line.startswith(self.told_by)
        return self.line if is_named else f"{one_line(self.told_by)} said: {self.line}"


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a person, place or thing.

    Args:
        id: Its stable id.
        kind: ``person``, ``place``, ``thing`` or ``unknown``.
        relationship: What it is to the assistant.
        memory_links: Ids of memories about it.
        archived: Keys of pages of older observations.
        summary: One line of what everyone may know.
        tidied: The state of the observations when they were last tidied.
        extra: What else is stored with it.
    """

    id: str
    name: str
    kind: str = ""
    aliases: tuple[str, ...] = ()
    first_seen: str = ""
    last_seen: str = ""
    relationship: str = ""
    observations: tuple[Observation, ...] = ()
    memory_links: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    summary: str = ""
    tidied: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_bare(self) -> bool:
        """Whether nothing but its name is known."""
        told = (self.observations, self.archived, self.aliases, self.memory_links)
        return not (any(told) or self.relationship)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], key: str = "") -> "Profile":
        """A profile from what is stored under a key, without observations that have no id."""
        observations = map(Observation.from_dict, as_dicts(raw.get("observations")))
        return cls(
            str(raw.get("id") or key),
            str(raw.get("name") or key),
            _optional(raw.get("kind")) or "",
            tuple(as_texts(raw.get("aliases"))),
            as_text(raw.get("first_seen")),
            as_text(raw.get("last_seen")),
            _optional(raw.get("relationship")) or "",
            tuple(each for each in observations if each.id),
            tuple(as_texts(raw.get("memory_links"))),
            tuple(as_texts(raw.get("archived"))),
            as_text(raw.get("summary")),
            as_text(raw.get("tidied")),
            {key: value for key, value in raw.items() if key not in _PROFILE},
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return {**as_stored(self, _OPTIONAL), "version": SCHEMA_VERSION}

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases."""
        return tuple(name for name in (self.name, *self.aliases) if name)

    @property
    def heading(self) -> str:
        """Name, kind and relationship, as ``Alice (person), the miller``."""
        relationship = " ".join(self.relationship.split())
        head = f"{one_line(self.name or self.id)} ({self.kind or 'entity'})"
        return f"{head}, {relationship}" if relationship else head

    def lines(self, audience: str, limit: int = 8) -> list[str]:
        """The heading, then a line with id for each of at most `limit` shown observations.

        First those with a predicate and a value, each kind newest first.
        """
        shown = sorted(shown_observations(self, audience), key=lambda item: not item.is_fact)
        return [
            self.heading,
            *(f"- {item.attributed_line} [{item.id}]" for item in shown[: max(limit, 0)]),
        ]


_OBSERVATION = frozenset(each.name for each in fields(Observation)) - {"extra"}
_PROFILE = frozenset(each.name for each in fields(Profile)) - {"extra"} | {"version"}
# Of both, the fields that are stored only where there is something in them.
_OPTIONAL = frozenset(
    {
        *("superseded_at", "sources", "last_at", "times", "other_texts"),
        *("archived", "summary", "tidied"),
    }
)


def _optional(value: object) -> str | None:
    return None if value is None else str(value)


def summary_line(profile: Profile) -> str:
    """What everyone may know, as ``Alice (person), the miller: keeps bees (+2 more)``."""
    facts = [item.attributed_line for item in shown_observations(profile, PUBLIC)]
    shown, more = "; ".join(facts[:SUMMARY_FACTS]), len(facts) - SUMMARY_FACTS
    line = f"{profile.heading}: {shown}" if facts else profile.heading
    return f"{line} (+{more} more)" if more > 0 else line


def shown_observations(profile: Profile, audience: str) -> list[Observation]:
    """What an audience may know and still holds, newest first; one value for each property."""
    allowed = [item for item in profile.observations if visible(item.audience, audience)]
    ids = {item.id for item in allowed}
    # Superseded counts only for those who may know by what.
    holding = [
        item for item in allowed if item.status != SUPERSEDED or item.superseded_by not in ids
    ]
    holding.sort(key=lambda item: (item.latest, item.id), reverse=True)
    own, properties, result = own_names(profile), set[tuple[str, str]](), list[Observation]()
    for item in holding:
        key = property_of(own, item)
        if key is None or key not in properties:
            result.append(item)
        if key is not None:
            properties.add(key)
    return result


def own_names(profile: Profile) -> frozenset[str]:
    """What the entity is called as the subject of an observation; an empty subject means it too."""
    return frozenset({"", folded(profile.id), *map(folded, profile.names)})


def property_of(own: Iterable[str], observation: Observation) -> tuple[str, str] | None:
    """Subject and predicate of an observation that has predicate and value; see `own_names`."""
    predicate = folded(observation.predicate)
    if not predicate or not folded(observation.value):
        return None
    subject = folded(observation.subject)
    return ("" if subject in own else subject, predicate)


@lru_cache(maxsize=8192)  # a profile's texts are compared at every observation of it
def folded(text: str | None) -> str:
    """A text for comparing, without case, punctuation and spacing."""
    return " ".join(re.findall(r"\w+", (text or "").casefold()))
