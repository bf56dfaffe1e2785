"""Stored records: archive segments, summaries, compactions, and readers of single stored values.

The readers (`as_text`, `as_count`, ...) turn any stored value into one of their type.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.history.stored import MOST, Stored

# States of a summary (`state_of`).
LIVE, ABSORBED, ROLLED_BACK = "live", "absorbed", "rolled back"
# The state of a compaction that was not rolled back.
COMMITTED = "committed"
# The tier of the summary of all talk but the newest; one audience sees one of them.
LONG = "long"
# The tier of a record that stands for a few lines archived without a summary; no marker shows it.
UNSUMMARISED = "unsummarised"
# The text of a summary that lost lines, until it is made again, and of one that was rolled back.
EMPTIED = "Part of what this summary was made from is forgotten."
# Most messages of an archive segment, so that one is read and written quickly.
SEGMENT_MESSAGES = 100
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
    """At most `SEGMENT_MESSAGES` complete messages that left the live history together.

    They are in order, and never rewritten but to forget some.
    """

    id: str
    summary_id: str  # the summary that was made from it
    sha256: str  # its checksum when it was sealed
    messages: tuple[Message, ...]

    @classmethod
    def sealed(cls, segment_id: str, summary_id: str, messages: Sequence[Message]) -> "Segment":
        """A new segment with its checksum."""
        return cls(segment_id, summary_id, "", tuple(messages)).resealed()

    def resealed(self) -> "Segment":
        """The segment with the checksum of what it holds."""
        return replace(self, sha256=self.checksum)

    def revised(
        self, message_ids: Collection[str], change: Callable[[Message], Message]
    ) -> "Segment":
        """The segment without these messages; the others become what `change` makes of them.

        It is sealed again only if its checksum was right, so that damage stays provable.
        """
        messages = tuple(change(m) for m in self.messages if m.id not in message_ids)
        revised = replace(self, messages=messages)
        return revised.resealed() if self.checksum == self.sha256 else revised

    @property
    def message_ids(self) -> list[str]:
        """The ids of its messages."""
        return [message.id for message in self.messages]

    @property
    def checksum(self) -> str:
        """What its checksum must be: SHA-256 of its messages as canonical JSON.

        That is with sorted keys, without spaces, in UTF-8.
        """
        plain = [message.to_dict() for message in self.messages]
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Tombstones(Stored):
    """What stands for messages that were forgotten in one step."""

    id: str
    at: str  # when it was asked for, UTC ISO 8601
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRecord(Stored):
    """One summary that was ever made."""

    id: str
    tier: str  # ``recent``, ``node``, `LONG` or `UNSUMMARISED`
    created_at: str  # UTC ISO 8601
    audience: str
    text: str
    source_ids: tuple[str, ...] = ()  # the messages it stands for, oldest first
    without: tuple[str, ...] = ()  # those of them that it was made without: they were not used
    child_ids: tuple[str, ...] = ()  # the summaries it was made from
    # Of its messages, how many are in each archive segment, in their order; none for a summary of
    # summaries.
    segments: Mapping[str, int] = field(default_factory=dict)
    rolled_back: bool = False  # whether its compaction was taken back
    level: str = ""  # how it was made (`llm_interaction.summary.LEVELS`)
    generation: int = 0  # how many times its audience's history was compacted then
    tree_level: int = 0  # its level in the cascade
    # Share of names, numbers and quoted words kept in summary, journal or ledger.
    coverage: float | None = None
    unsupported: int = 0  # how many names, numbers and quotations its source does not have
    # Its model, what it lost, and what else is noted of it.
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The messages and summaries that its text was made from."""
        without = set(self.without)
        return (*(each for each in self.source_ids if each not in without), *self.child_ids)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Segment and id of each message it was made from, oldest first."""
        segments = (key for key, count in self.segments.items() for _ in range(count))
        return list(zip(segments, self.source_ids, strict=False))


def absorbed_by(records: Iterable[SummaryRecord]) -> dict[str, str]:
    """Which summary took over each of those that were taken over; `records` are oldest first.

    That is the newest one made from it. A long-term one gives way to the next of its audience.
    """
    above, long = dict[str, str](), dict[str, str]()
    for record in records:
        if record.rolled_back:
            continue
        above |= dict.fromkeys(record.child_ids, record.id)
        if record.tier == LONG:
            if record.audience in long:
                above[long[record.audience]] = record.id
            long[record.audience] = record.id
    return above


def state_of(record: SummaryRecord, above: Mapping[str, str]) -> str:
    """`LIVE`, `ABSORBED` or `ROLLED_BACK`; `above` is `absorbed_by` of all summaries."""
    if record.rolled_back:
        return ROLLED_BACK
    return ABSORBED if record.id in above else LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Stored):
    """The figures of a compaction."""

    level: str = ""  # the lowest level that a summary needed, or ``masked``
    original_tokens: int = 0  # tokens of the live history before it
    new_tokens: int = 0  # and after it
    compacted_messages: int = 0  # how many messages left
    preserved_messages: int = 0  # how many stayed
    masked_messages: int = 0  # how many old tool outputs were masked
    left_from: str = ""  # when the oldest message that left was said, UTC ISO 8601
    left_until: str = ""  # and the newest
    summary_ids: tuple[str, ...] = ()  # the new recent summaries, public first
    # Share of names, numbers and quoted words kept in summary, journal or ledger.
    coverage: float = 1.0
    # How many sentences were struck because their source does not support them.
    unsupported: int = 0
    generation: int = 0  # how many times the history was compacted, this time included
    query: str = ""  # names in what left, by which it is found again
    prompt_tokens: int = 0  # tokens of the summaries' requests
    completion_tokens: int = 0  # tokens of their replies

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

    `summaries` and `entries` are the ids of what it wrote; `entries` are those of the journal, with
    those of the extractions before it. What left is what the summaries cite.
    """

    id: str
    at: str  # when, UTC ISO 8601
    # What fired: ``manual``, ``sleep``, ``background``, ``emergency``, ``count``, or ``request``.
    trigger: str
    status: str = COMMITTED  # `COMMITTED` or `ROLLED_BACK`
    report: Report = Report()
    masked: tuple[str, ...] = ()  # the tool results that were masked
    summaries: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    # The markers that stood there before, without the texts of their summaries.
    markers_before: tuple[Message, ...] = ()
    rolled_back_at: str = ""  # when it was rolled back, UTC ISO 8601
