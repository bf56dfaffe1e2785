"""Stored records: archive segments, summaries, compactions, and readers of single stored values.

The readers (`as_text`, `as_count`, ...) turn any stored value into one of their type.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.history.stored import MOST, Stored

_NOTHING: Mapping[str, Any] = MappingProxyType({})
# States of a summary.
LIVE, ABSORBED, ROLLED_BACK = "live", "absorbed", "rolled back"
# The state of a compaction that was not rolled back.
COMMITTED = "committed"
# The tier of a record that stands for a few lines archived without a summary; no marker shows it.
UNSUMMARISED = "unsummarised"
_LAST_SECOND = 253_000_000_000.0  # in the year 9987


def as_text(value: object) -> str:
    """A text as it is; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """A whole number below `MOST` as it is; 0 for anything else."""
    return value if type(value) is int and -MOST < value < MOST else 0


def as_amount(value: object) -> float:
    """A number below `MOST` as it is, no NaN; 0 for anything else."""
    return value if type(value) in (int, float) and -MOST < value < MOST else 0.0  # type: ignore


def as_time(value: object) -> float:
    """Seconds since the epoch that a date can be made of; 0 for anything else."""
    return max(0.0, min(as_amount(value), _LAST_SECOND))


def as_dict(value: object) -> dict[str, Any]:
    """A mapping as a dict; an empty one for anything else."""
    return dict(value) if isinstance(value, Mapping) else {}


def as_texts(value: object) -> list[str]:
    """The texts of a list; none for anything else."""
    return [each for each in as_list(value) if isinstance(each, str)]


def as_dicts(value: object) -> list[dict[str, Any]]:
    """The mappings of a list; none for anything else."""
    return [dict(each) for each in as_list(value) if isinstance(each, Mapping)]


def as_list(value: object) -> list[Any]:
    """A list or tuple as a list; an empty one for anything else."""
    return list(value) if isinstance(value, list | tuple) else []


@dataclass(frozen=True, slots=True)
class Segment(Stored):
    """Complete messages that left the live history together, oldest first; never rewritten.

    Args:
        summary_id: The summary that was made from it.
        sha256: Its checksum when it was sealed.
        tombstones: When messages were forgotten, by their ids.
    """

    id: str
    summary_id: str
    sha256: str
    messages: tuple[Message, ...]
    tombstones: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def sealed(cls, segment_id: str, summary_id: str, messages: Sequence[Message]) -> "Segment":
        """A new segment with its checksum."""
        return cls(segment_id, summary_id, "", tuple(messages)).resealed()

    def resealed(self) -> "Segment":
        """The segment with the checksum of what it holds."""
        return replace(self, sha256=self.checksum)

    def revised(
        self, message_ids: Collection[str], at: str, changed: Mapping[str, Message] = _NOTHING
    ) -> "Segment":
        """The segment with tombstones in place of these messages, forgotten at a time (ISO 8601).

        `changed` are messages that take the place of those with their ids. It is sealed again only
        if its checksum was right, so that damage stays provable.
        """
        messages = tuple(changed.get(m.id, m) for m in self.messages if m.id not in message_ids)
        gone = dict.fromkeys((each for each in self.message_ids if each in message_ids), at)
        revised = replace(self, messages=messages, tombstones={**self.tombstones, **gone})
        return revised.resealed() if self.checksum == self.sha256 else revised

    @property
    def message_ids(self) -> list[str]:
        """The ids of its messages."""
        return [message.id for message in self.messages]

    @property
    def checksum(self) -> str:
        """What its checksum must be: SHA-256 of messages and tombstones as canonical JSON.

        That is with sorted keys, without spaces, in UTF-8.
        """
        plain = [*(message.to_dict() for message in self.messages), dict(self.tombstones)]
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRecord(Stored):
    """One summary that was ever made.

    Args:
        tier: ``recent``, ``node``, ``long`` or `UNSUMMARISED`.
        status: `LIVE`, `ABSORBED` or `ROLLED_BACK`.
        created_at: UTC ISO 8601.
        source_ids: The messages it was made from, oldest first.
        child_ids: The summaries it was made from.
        segment: The archive segment of its messages; None for a summary of summaries.
        absorbed_by: The summary that took it over.
        level: How it was made (`llm_interaction.summary.LEVELS`).
        generation: How many times its audience's history was compacted then.
        tree_level: Its level in the cascade.
        coverage: Share of names, numbers and quoted words kept in summary, journal or ledger.
        unsupported: How many sentences were struck because its source does not support them.
        extra: Its model, what it lost, and what else is noted of it.
    """

    id: str
    tier: str
    status: str
    created_at: str
    audience: str
    text: str
    source_ids: tuple[str, ...] = ()
    child_ids: tuple[str, ...] = ()
    segment: str | None = None
    absorbed_by: str | None = None
    level: str = ""
    generation: int = 0
    tree_level: int = 0
    coverage: float | None = None
    unsupported: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Stored):
    """The figures of a compaction.

    Args:
        level: The lowest level that a summary needed, or ``masked``.
        original_tokens: Tokens of the live history before it.
        new_tokens: And after it.
        compacted_messages: How many messages left.
        preserved_messages: How many stayed.
        masked_messages: How many old tool outputs were masked.
        left_from: When the oldest message that left was said, UTC ISO 8601.
        left_until: And the newest.
        summary_ids: The new recent summaries, public first.
        coverage: Share of names, numbers and quoted words kept in summary, journal or ledger.
        unsupported: How many sentences were struck because their source does not support them.
        generation: How many times the history was compacted, this time included.
        query: Names in what left, by which it is found again.
        prompt_tokens: Tokens of the summaries' requests.
        completion_tokens: Tokens of their replies.
    """

    level: str = ""
    original_tokens: int = 0
    new_tokens: int = 0
    compacted_messages: int = 0
    preserved_messages: int = 0
    masked_messages: int = 0
    left_from: str = ""
    left_until: str = ""
    summary_ids: tuple[str, ...] = ()
    coverage: float = 1.0
    unsupported: int = 0
    generation: int = 0
    query: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def summary_id(self) -> str:
        """The first of the summaries; empty if there is none."""
        return self.summary_ids[0] if self.summary_ids else ""

    @property
    def reduction_pct(self) -> float:
        """By how much the history shrank."""
        before = self.original_tokens
        return round(100 * (before - self.new_tokens) / before, 1) if before else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecord(Stored):
    """What one compaction did, and what a rollback needs to undo it.

    `summaries`, `segments`, `markers` and `entries` are the ids of what it wrote; `entries` are
    those of the journal, with those of the extractions before it.

    Args:
        at: When, UTC ISO 8601.
        trigger: What fired: ``manual``, ``sleep``, ``background``, ``emergency``, ``count``,
            or ``request``.
        status: `COMMITTED` or `ROLLED_BACK`.
        leaving: The messages that left, oldest first.
        masked: The tool results that were masked.
        markers_before: The markers that stood there before, without the texts of their summaries.
        summaries_before: ``{"status", "absorbed_by"}`` of summaries that it changed, as they were
            before, by id.
        rolled_back_at: When it was rolled back, UTC ISO 8601.
    """

    id: str
    at: str
    trigger: str
    status: str = COMMITTED
    report: Report = Report()
    leaving: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    markers_before: tuple[Message, ...] = ()
    summaries_before: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    rolled_back_at: str = ""
