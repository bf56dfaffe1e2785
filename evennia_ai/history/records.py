"""Stored records made sound: what hands or a crash left may lack keys or hold odd values.

Each function takes a stored value of any type and returns a dict whose known keys have their
types, so that nobody behind has to ask; None for what is no record at all. What is right stays
as it is, and nothing is written back. A record's id is the key it is stored under, or one that was
changed would be written over another of that name.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from evennia_ai.history.audience import STAFF, normalised
from evennia_ai.history.messages import SCHEMA_VERSION, Message, is_complete

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = dict[str, Any]
Reader = Callable[[Any], Any]
# The tier and the status of a record that names none: it takes part in nothing.
UNKNOWN = "unknown"


def as_text(value: Any) -> str:
    """A text as it is; of anything else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """A whole number as it is; of anything else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def as_amount(value: Any) -> float:
    """A number as it is; of anything else 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def as_dict(value: Any) -> dict[str, Any]:
    """A mapping as a dict; of anything else an empty one."""
    return dict(value) if isinstance(value, Mapping) else {}


def as_texts(value: Any) -> list[str]:
    """The texts of a list; of anything else none."""
    return [each for each in as_list(value) if isinstance(each, str)]


def as_dicts(value: Any) -> list[dict[str, Any]]:
    """The mappings of a list; of anything else none."""
    return [dict(each) for each in as_list(value) if isinstance(each, Mapping)]


def as_list(value: Any) -> list[Any]:
    """A list or tuple as a list; of anything else none."""
    return list(value) if isinstance(value, list | tuple) else []


def as_audience(value: Any) -> str:
    """Who may know; where nobody is named, nobody but staff until somebody says so."""
    return normalised(value) if isinstance(value, str) and value else STAFF


def _name(value: Any) -> str:
    return as_text(value) or UNKNOWN


def as_stored(value: "DataclassInstance", optional: Collection[str] = ()) -> dict[str, Any]:
    """A value's fields as a plain dict: first what its `extra` holds, tuples as lists.

    Optional fields are left out while they have their default.
    """
    found: dict[str, Any] = {}
    for each in fields(value):
        held = getattr(value, each.name)
        if each.name == "extra":
            found = {**held, **found}
        elif each.name not in optional or held != each.default:
            found[each.name] = _plain(held)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def sound(raw: Any, must: Mapping[str, Reader], may: Mapping[str, Reader]) -> Record | None:
    """A record whose known keys have their types.

    Args:
        raw: A stored value.
        must: How each key is read that must be there.
        may: The same for keys that may be missing.
    """
    if not isinstance(raw, Mapping):
        return None
    known = {key: read(raw.get(key)) for key, read in must.items()}
    return {**raw, **known, **{key: read(raw[key]) for key, read in may.items() if key in raw}}


def sound_summary(key: str, raw: Any) -> Record | None:
    """A summary's record, stored under `key`."""
    return sound(raw, {**_SUMMARY, "id": lambda value: key}, _SUMMARY_MAY)


def sound_compaction(key: str, raw: Any) -> Record | None:
    """A compaction's record, stored under `key`."""
    return sound(raw, {**_COMPACTION, "id": lambda value: key}, _COMPACTION_MAY)


def checksum(messages: Sequence[Any]) -> str:
    """SHA-256 of stored messages as canonical JSON (sorted keys, no spaces, UTF-8)."""
    text = json.dumps(
        messages, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def segment_checksum(segment: Mapping[str, Any]) -> str:
    """What a segment's `sha256` must be.

    A segment is sealed by the checksum of its messages. Where some were forgotten, the segment
    holds ``tombstones``, ``{id: SHA-256 of the message that was removed}``, in their stead, and
    is sealed anew by the checksum of the messages that are left, followed by that dict as the
    last element: neither can be changed afterwards, and an export that was made before can be
    held against the tombstones.

    Args:
        segment: The segment as it is stored.
    """
    tombstones = segment.get("tombstones") or {}
    messages = list(segment.get("messages") or ())
    return checksum([*messages, dict(tombstones)] if tombstones else messages)


@dataclass(frozen=True, slots=True)
class Segment:
    """Messages that left the live history together, never rewritten.

    Args:
        id: The key it is stored under.
        messages: Oldest first, complete.
        stored: The plain dict as it is stored, which its checksum covers.
    """

    id: str
    messages: tuple[Message, ...]
    stored: Mapping[str, Any]

    @classmethod
    def sealed(cls, segment_id: str, summary_id: str, messages: Sequence[Message]) -> "Segment":
        """A new segment with its checksum."""
        plain = [message.to_dict() for message in messages]
        stored = {
            "version": SCHEMA_VERSION,
            "id": segment_id,
            "summary_id": summary_id,
            "sha256": checksum(plain),
            "messages": plain,
        }
        return cls(segment_id, tuple(messages), stored)

    @classmethod
    def from_dict(
        cls, key: str, raw: Any, complete: Callable[[Message], Message] = lambda message: message
    ) -> "Segment | None":
        """A segment from what is stored under `key`; None if that is no record.

        Args:
            key: The key.
            raw: What is stored.
            complete: Stamps and counts a message that hands have edited.
        """
        stored = sound(
            raw, {"id": lambda value: key, "messages": as_dicts}, {"tombstones": as_dict}
        )
        if stored is None:
            return None
        messages = [
            message if is_complete(each) else complete(message)
            for each in stored["messages"]
            for message in (Message.from_dict(each),)
        ]
        return cls(key, tuple(messages), stored)

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return dict(self.stored)


def sound_extraction(raw: Any) -> Record:
    """What an extraction left behind; empty if there is nothing."""
    return sound(raw, {}, _EXTRACTION) or {}


def sound_result(raw: Any) -> Record:
    """The figures of a compaction."""
    return sound(raw, {}, _RESULT) or {}


def _full_result(raw: Any) -> Record:
    return sound(as_dict(raw), {key: _RESULT[key] for key in _RECEIPT}, _RESULT) or {}


def _retention(value: Any) -> float | None:
    return None if value is None else as_amount(value)


def _segment(value: Any) -> str | None:
    return as_text(value) or None


_SUMMARY: Mapping[str, Reader] = {
    "tier": _name,
    "status": _name,
    "created_at": as_text,
    "audience": as_audience,
    "text": as_text,
    "source_ids": as_texts,
    "child_ids": as_texts,
    "level": as_text,
    "segment": _segment,
    "generation": as_count,
}
_SUMMARY_MAY: Mapping[str, Reader] = {
    "absorbed_by": _segment,
    "tree_level": as_count,
    "retention": _retention,
    "in_summary": _retention,
    "earlier_ids": as_texts,
    "drift": as_amount,
}
_RESULT: Mapping[str, Reader] = {
    "at": as_text,
    "left_from": as_text,
    "left_until": as_text,
    "original_tokens": as_count,
    "new_tokens": as_count,
    "compacted_messages": as_count,
    "masked_messages": as_count,
    "generation": as_count,
    "retention": as_amount,
    "in_summary": as_amount,
    "drift": as_amount,
    "level": as_text,
    "summary_id": as_text,
    "summary_ids": as_texts,
}
# What a receipt names.
_RECEIPT = (
    "original_tokens",
    "new_tokens",
    "compacted_messages",
    "masked_messages",
    "generation",
    "retention",
    "level",
    "summary_id",
)


def _profiles(value: Any) -> dict[str, Any]:
    """Former profiles by id; None for those there were not."""
    known = as_dict(value).items()
    return {key: each for key, each in known if each is None or isinstance(each, Mapping)}


def _pairs(value: Any) -> dict[str, tuple[str, str]]:
    """Two texts by id."""
    lists = {key: as_texts(each) for key, each in as_dict(value).items()}
    return {key: (each[0], each[1]) for key, each in lists.items() if len(each) == 2}


def _by_id(value: Any) -> dict[str, Any]:
    return {key: dict(each) for key, each in as_dict(value).items() if isinstance(each, Mapping)}


_EXTRACTION: Mapping[str, Reader] = {
    "ids": as_texts,
    "messages": as_texts,
    "entries": as_texts,
    "profiles": _profiles,
    "profiles_after": _profiles,
    "begun": as_text,
}
_COMPACTION: Mapping[str, Reader] = {
    "at": as_text,
    "trigger": as_text,
    "status": _name,
    "result": _full_result,
    "leaving": as_texts,
    "masked": as_texts,
}
_COMPACTION_MAY: Mapping[str, Reader] = {
    "summaries": as_texts,
    "segments": as_texts,
    "markers": as_texts,
    "entries": as_texts,
    "markers_before": as_dicts,
    "summaries_before": _by_id,
    "extraction": sound_extraction,
    "last_before": sound_result,
    "order": as_texts,
    "speakers": _pairs,
}
