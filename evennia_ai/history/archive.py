"""The archive: messages that left the live history, and the records of how they left.

Segments hold the messages, word for word. Records of summaries and of compactions say what they
became. Records are held in memory (`history.stored.Cache`).
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.history.messages import (
    Message,
    in_order,
    new_id,
    total_tokens,
    unmasked,
)
from evennia_ai.history.stored import KEPT, Store, Stored, records

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
        if self.checksum == self.sha256:
            return revised.resealed()
        return revised

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


def records_below(records: Mapping[str, SummaryRecord], summary_id: str) -> list[SummaryRecord]:
    """A summary and those that it was made from, each once, those below first."""
    below = dict[str, SummaryRecord]()

    def visit(key: str) -> None:
        if key in records and key not in below:
            for child in records[key].child_ids:
                visit(child)
            below[key] = records[key]

    visit(summary_id)
    return [*below.values()]


def count_messages_below(records: Mapping[str, SummaryRecord], summary_id: str) -> int:
    """How many raw messages are below a summary."""
    return sum(len(record.source_ids) for record in records_below(records, summary_id))


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


def reached_from(ids: Iterable[str], records: Mapping[str, SummaryRecord]) -> set[str]:
    """The summaries of these ids, and all that they were made from."""
    waiting, reached = list(ids), set[str]()
    while waiting:
        key = waiting.pop()
        if key in records and key not in reached:
            reached.add(key)
            waiting += records[key].child_ids
    return reached


def in_use(records: Sequence[SummaryRecord]) -> list[SummaryRecord]:
    """The summaries that markers show: public ones first, of each audience the long-term one first.

    `records` are oldest first.
    """
    above = absorbed_by(records)
    shown = (r for r in records if r.tier != UNSUMMARISED and state_of(r, above) == LIVE)
    return sorted(shown, key=lambda r: (r.audience != PUBLIC, r.audience, r.tier != LONG))


def state_of(record: SummaryRecord, above: Mapping[str, str]) -> str:
    """`LIVE`, `ABSORBED` or `ROLLED_BACK`; `above` is `absorbed_by` of all summaries."""
    if record.rolled_back:
        return ROLLED_BACK
    if record.id in above:
        return ABSORBED
    return LIVE


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
        if self.summary_ids:
            return self.summary_ids[0]
        return ""

    @property
    def reduction_pct(self) -> float:
        """By how much the history shrank."""
        before = self.original_tokens
        if before:
            return round(100 * (before - self.new_tokens) / before, 1)
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecord(Stored):
    """What one compaction did, and what a rollback needs to undo it.

    `summaries` and `entries` are the ids of what it wrote; `entries` are those of the journal, with
    those of the extractions before it. What left is what the summaries cite; the markers in the
    history are made of the summaries in use.
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
    rolled_back_at: str = ""  # when it was rolled back, UTC ISO 8601


def resting_on(ids: Iterable[str], sources: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """These ids, and those of all that rests on them, directly or through others.

    `sources` has the ids of what each thing rests on.
    """
    above: dict[str, list[str]] = {}
    for each, below in sources.items():
        for source in below:
            above.setdefault(source, []).append(each)
    reached, waiting = set[str](), list(ids)
    while waiting:
        each = waiting.pop()
        if each not in reached:
            reached.add(each)
            waiting += above.get(each, ())
    return frozenset(reached)


ARCHIVE, SUMMARIES, COMPACTIONS = "ai_archive", "ai_summaries", "ai_compactions"
# Ids of messages that were forgotten at somebody's request, and when; no words, no names. Each
# Attribute holds those of one step, and is never written again.
TOMBSTONES = "ai_tombstones"
# Ends the categories of what a compaction has written and not committed: nothing reads them.
_DRAFT = "_draft"
# Records read from the database at once where there is time between two readings.
SLICE = 50


class Archive:
    """Reads and writes the archive of one assistant."""

    def __init__(self, store: Store):
        self.store = store
        self._segments = records(store, ARCHIVE, Segment, KEPT)
        self._summaries = records(store, SUMMARIES, SummaryRecord)
        self._compactions = records(store, COMPACTIONS, CompactionRecord)
        self._tombstones = records(store, TOMBSTONES, Tombstones)
        self._citing: dict[str, list[str]] = {}  # ids of the summaries that cite each message
        self._known: set[str] = set()  # ids of the summaries that these were read from

    def archive(self, segment: Segment) -> None:
        """Write a segment of messages that leave the live history, or what is left of one."""
        self._segments.set(segment.id, segment)

    def draft(self, record: Segment | SummaryRecord) -> None:
        """Write a segment or a summary that does not count before `keep_drafts`."""
        category = ARCHIVE if isinstance(record, Segment) else SUMMARIES
        self.store.set(record.id, record.to_dict(), category + _DRAFT)

    def keep_drafts(self, segments: Iterable[str], summaries: Iterable[str]) -> None:
        """Let drafts count from now on, by their ids."""
        self.store.move(segments, ARCHIVE + _DRAFT, ARCHIVE)
        self.store.move(summaries, SUMMARIES + _DRAFT, SUMMARIES)

    def drop_drafts(self) -> Iterator[None]:
        """Delete the drafts of a compaction that was cut short, a few at each step."""
        for category in (ARCHIVE + _DRAFT, SUMMARIES + _DRAFT):
            keys = self.store.keys(category)
            for start in range(0, len(keys), SLICE):
                self.store.delete_all(keys[start : start + SLICE], category)
                yield

    def tombstones(self) -> dict[str, str]:
        """When messages were forgotten, by their ids."""
        steps = reversed(self._tombstones.all().values())
        return {message_id: step.at for step in steps for message_id in step.ids}

    def add_tombstones(self, message_ids: Iterable[str], at: str) -> None:
        """Note that messages were forgotten, at a time (ISO 8601)."""
        step = Tombstones(new_id("t"), at, tuple(sorted(message_ids)))
        self._tombstones.set(step.id, step)

    def segments(self) -> Iterator[Segment]:
        """All archive segments, oldest first, loaded one at a time."""
        for key in self.store.keys(ARCHIVE):
            segment = self.segment(key)
            if segment is not None:
                yield segment

    def segment(self, segment_id: str) -> Segment | None:
        """One archive segment, or None."""
        return self._segments.get(segment_id)

    def segment_count(self) -> int:
        """How many archive segments hold messages that are not live again by a rollback."""
        return len({*self.store.keys(ARCHIVE)} - self.restored_segments())

    def restored_segments(self) -> set[str]:
        """Ids of segments whose messages are live again."""
        return {key for record in self.summaries() if record.rolled_back for key in record.segments}

    def save_compaction(self, record: CompactionRecord) -> None:
        """Write a compaction's record."""
        self._compactions.set(record.id, record)

    def compactions(self) -> list[CompactionRecord]:
        """The records of all compactions, oldest first."""
        return list(self._compactions.all().values())

    def newest_compactions(self) -> Iterator[CompactionRecord]:
        """The records of compactions that were not rolled back, newest first, as they are taken."""
        records = map(self._compactions.get, reversed(self.store.keys(COMPACTIONS)))
        return (record for record in records if record and record.status == COMMITTED)

    def last_compaction(self) -> CompactionRecord | None:
        """The newest compaction that was not rolled back."""
        return next(self.newest_compactions(), None)

    def note_last_compaction(self) -> None:
        """Store in `script.db.last_compaction` what the newest compaction was."""
        stored: dict[str, Any] = {}
        if last := self.last_compaction():
            stored = {"id": last.id, "at": last.at, "trigger": last.trigger}
            stored |= last.report.to_dict()
        self.store.set("last_compaction", stored)

    def save_summary(self, record: SummaryRecord) -> None:
        """Write a summary's record."""
        self._summaries.set(record.id, record)

    def summaries(self) -> list[SummaryRecord]:
        """The records of all summaries, oldest first."""
        return list(self._summaries.all().values())

    def summary(self, summary_id: str) -> SummaryRecord | None:
        """One summary's record, or None."""
        return self._summaries.get(summary_id)

    def summary_ids(self) -> tuple[str, ...]:
        """The ids of all summaries ever made, oldest first, without loading them."""
        return self.store.keys(SUMMARIES)

    def warm(self) -> Iterator[None]:
        """Reads the records of summaries and compactions in advance, a few at each step."""
        for cache in (self._summaries, self._compactions):
            keys = cache.store.keys(cache.category or "")
            for start in range(0, len(keys), SLICE):
                cache.all(keys[start : start + SLICE])
                yield

    def below(self, summary_id: str, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """The raw messages below a summary, from one place to another, loaded by segments."""
        for key, places in groupby(self.places_below(summary_id)[start:stop], itemgetter(0)):
            if segment := self.segment(key):
                messages = {message.id: message for message in segment.messages}
                yield from (messages[each] for _, each in places if each in messages)

    def places_below(self, summary_id: str) -> list[tuple[str, str]]:
        """Segments and ids of the raw messages below a summary."""
        below = records_below(self._summaries.all(), summary_id)
        return [place for record in below for place in record.places]

    def count_below(self, summary_id: str) -> int:
        """How many raw messages are below a summary."""
        return count_messages_below(self._summaries.all(), summary_id)

    def archived(self, message_ids: Iterable[str]) -> dict[str, Message]:
        """Archived messages by their ids, with the others of their segments."""
        wanted = set(message_ids)
        places = (place for record in self.citing(wanted) for place in record.places)
        keys = list(dict.fromkeys(key for key, each in places if each in wanted))
        self.store.preload(keys, ARCHIVE)
        segments = filter(None, map(self.segment, keys))
        return {message.id: message for segment in segments for message in segment.messages}

    def citing(self, message_ids: set[str]) -> list[SummaryRecord]:
        """The records that cite one of these messages, oldest first."""
        if not message_ids:
            return []
        new = [key for key in self.store.keys(SUMMARIES) if key not in self._known]
        for record in self._summaries.all(new).values():
            self._known.add(record.id)
            for each in record.source_ids:
                self._citing.setdefault(each, []).append(record.id)
        citing = {key for each in message_ids for key in self._citing.get(each, ())}
        records = self._summaries.all(sorted(citing)).values()
        return [r for r in records if not message_ids.isdisjoint(r.source_ids)]

    def raw_back(
        self, audience: str, room_tokens: int, live: Iterable[Message] = ()
    ) -> tuple[list[Message], int]:
        """Archived raw messages together with live ones, oldest first, as if none had left.

        Args:
            audience: Who will see them. Segments of others' talk are not read.
            room_tokens: Stop once the archived ones hold so many tokens, the newest first.
            live: Live raw messages they may see.

        Returns:
            The messages, and how many older ones stay in the archive.
        """
        shown, tokens, older = list(live), 0, 0
        records = (r for r in reversed(self.summaries()) if not r.rolled_back)
        seen = (r for r in records if visible(r.audience, audience))
        for key, count in (part for r in seen for part in [*r.segments.items()][::-1]):
            if tokens >= room_tokens:
                older += count
            elif segment := self.segment(key):
                raw = [unmasked(m) for m in segment.messages if visible(m.audience, audience)]
                shown += raw
                tokens += total_tokens(raw)
        return in_order(shown), older
