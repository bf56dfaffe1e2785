"""One entry of the journal, and where entries come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from math import isfinite
from typing import Any

from evennia_ai.history.audience import PUBLIC, normalised
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.records import as_stored

# Source of an entry that the assistant chose to write.
OWN = "assistant"
# Source of an entry that repeats what was just found in memory.
RECALLED = "recalled"
# Source of an entry that a compaction made of its summary.
SYNTHESIS = "compaction"
# Sources of entries that only repeat or sum up what stands elsewhere.
DERIVED_SOURCES = (RECALLED, SYNTHESIS, "retention")
DEFAULT_IMPORTANCE, LEAST_IMPORTANCE, MOST_IMPORTANCE = 5, 1, 10
# Characters of an id behind its prefix (`history.messages.IdSource`).
ID_CHARS = 15
# Begins that part of the id of an entry that somebody wrote by hand.
BY_HAND = "h"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What the assistant found worth keeping.

    Args:
        id: Sorts by time unless somebody wrote the entry by hand.
        timestamp: When it was written, UTC ISO 8601.
        importance: 1 to 10.
        source_type: ``assistant`` (it chose to), one of `DERIVED_SOURCES`, or ``import``.
        entities: Names or ids of those it is about.
        source_message_ids: Ids of the messages it rests on, and of the extraction that made it.
        withdrawn: Whether it was taken back: kept, but neither found nor consolidated.
        extra: What else is stored with it.
    """

    id: str
    timestamp: str
    content: str
    importance: int = DEFAULT_IMPORTANCE
    source_type: str = OWN
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    audience: str = PUBLIC
    withdrawn: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: object, now: str = "") -> "JournalEntry":
        """A repaired entry; a value that is no dict is its content, `now` its time if missing."""
        held: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {"content": raw}
        content = str(held.get("content") or "")
        return cls(
            str(held.get("id") or _id_by_hand(content)),
            _time_in(held.get("timestamp"), now),
            content,
            importance_in(held.get("importance")),
            str(held.get("source_type") or OWN),
            texts_in(held.get("tags")),
            texts_in(held.get("entities")),
            texts_in(held.get("source_message_ids")),
            normalised(held.get("audience")),
            bool(held.get("withdrawn")),
            {key: value for key, value in held.items() if key not in _KNOWN},
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return as_stored(self, ("withdrawn",))

    @property
    def tombstone(self) -> "JournalEntry":
        """What is left of it when it is forgotten: id and time, in its place, without words."""
        return JournalEntry(self.id, self.timestamp, "", audience=self.audience, withdrawn=True)

    @property
    def may_consolidate(self) -> bool:
        """Whether it may become a memory: neither derived nor taken back."""
        return self.source_type not in DERIVED_SOURCES and not self.withdrawn


_KNOWN = frozenset(each.name for each in fields(JournalEntry)) - {"extra"}


def importance_in(value: object) -> int:
    """An importance from 1 to 10; the middle where the value is no number."""
    if not isinstance(value, int) and not (isinstance(value, float) and isfinite(value)):
        return DEFAULT_IMPORTANCE
    return int(min(MOST_IMPORTANCE, max(LEAST_IMPORTANCE, value)))


def listed(value: object) -> list[Any]:
    """A stored value as a list: a single text or mapping is its only item."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return [value] if isinstance(value, str | Mapping) and value else []


def texts_in(value: object) -> tuple[str, ...]:
    """A stored list as texts."""
    return tuple(map(str, listed(value)))


def _time_in(value: object, now: str) -> str:
    if not isinstance(value, int | float):
        return str(value or now)
    try:
        return utc_iso(value)
    except (ValueError, OverflowError, OSError):
        return now


def _id_by_hand(content: str) -> str:
    """The same id at every reading, or the entry would count as new each time."""
    digest = sha256(content.encode("utf-8", "replace")).hexdigest()
    return f"e{BY_HAND}{digest}"[: 1 + ID_CHARS]
