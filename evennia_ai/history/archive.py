"""The archive: messages that left the live history, and the records of how they left.

Segments hold the messages, word for word. Records of summaries and of compactions say what they
became. Records are held in memory; a stamp shows when one was changed by hand.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from evennia_ai.history.audience import visible
from evennia_ai.history.masking import unmasked
from evennia_ai.history.messages import Message, total_tokens
from evennia_ai.history.pairs import hidden
from evennia_ai.history.records import (
    COMMITTED,
    ROLLED_BACK,
    CompactionRecord,
    Segment,
    SummaryRecord,
)
from evennia_ai.protocol import Store

ARCHIVE, SUMMARIES, COMPACTIONS = "ai_archive", "ai_summaries", "ai_compactions"
# Ids of messages that were forgotten at somebody's request, and when; no words, no names.
TOMBSTONES = "tombstones"
# Audiences whose view of the archive is held in memory while compaction is off.
VIEWS = 8
# Records read from the database at once where there is time between two readings.
SLICE = 50

R = TypeVar("R")


class Archive:
    """Reads and writes the archive of one assistant.

    `complete` stamps and counts a message that was edited by hand.
    """

    def __init__(self, store: Store, complete: Callable[[Message], Message]):
        self.store = store
        self._complete = complete
        self._summaries = SummaryRecords(store, SUMMARIES, SummaryRecord.from_dict)
        self._compactions = CachedRecords(store, COMPACTIONS, CompactionRecord.from_dict)
        self._views: dict[tuple[str, int], ArchiveView] = {}

    def archive(self, segment: Segment) -> None:
        """Write a segment of messages that leave the live history. Never rewritten."""
        self.store.set(segment.id, segment.to_dict(), category=ARCHIVE)

    def revise(
        self,
        segment_id: str,
        message_ids: Collection[str],
        at: str,
        change: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        """Put tombstones in place of a segment's messages, or change them; see `Segment.revised`.

        `change` gets the messages that stay; most of them come back as they are.
        """
        segment = self.segment(segment_id)
        if segment is not None:
            new = {m.id: left for m in segment.messages if (left := change(m)) is not m}
            revised = segment.revised(message_ids, at, new)
            self.store.set(segment_id, revised.to_dict(), category=ARCHIVE)

    def tombstones(self) -> dict[str, str]:
        """When messages were forgotten, by their ids."""
        kept = self.store.get(TOMBSTONES)
        if isinstance(kept, Mapping):
            return {str(each): str(at) for each, at in kept.items()}
        return {str(each): "" for each in kept} if isinstance(kept, list) else {}

    def add_tombstones(self, message_ids: Iterable[str], at: str) -> None:
        """Note that messages were forgotten, at a time (ISO 8601)."""
        self.store.set(TOMBSTONES, {**dict.fromkeys(message_ids, at), **self.tombstones()})

    def segments(self) -> Iterator[Segment]:
        """All archive segments, oldest first, loaded one at a time."""
        for key in self.store.keys(ARCHIVE):
            segment = self.segment(key)
            if segment is not None:
                yield segment

    def segment(self, segment_id: str) -> Segment | None:
        """One archive segment, its messages complete, or None."""
        raw = self.store.get(segment_id, category=ARCHIVE)
        return Segment.from_dict(segment_id, raw, self._complete)

    def segment_count(self) -> int:
        """How many archive segments there are."""
        return len(self.store.keys(ARCHIVE))

    def restored_segments(self) -> set[str]:
        """Ids of segments whose messages are live again."""
        rolled_back = (r for r in self.compactions() if r.status == ROLLED_BACK)
        return {key for record in rolled_back for key in record.segments}

    def save_compaction(self, record: CompactionRecord) -> None:
        """Write a compaction's record."""
        self.store.set(record.id, record.to_dict(), category=COMPACTIONS)

    def compactions(self) -> list[CompactionRecord]:
        """The records of all compactions, oldest first."""
        return self._compactions.all()

    def save_summary(self, record: SummaryRecord) -> None:
        """Write a summary's record."""
        self.store.set(record.id, record.to_dict(), category=SUMMARIES)

    def summaries(self) -> list[SummaryRecord]:
        """The records of all summaries, oldest first."""
        return self._summaries.all()

    def summary(self, summary_id: str) -> SummaryRecord | None:
        """One summary's record, or None."""
        return self._summaries.one(summary_id)

    def summary_ids(self) -> tuple[str, ...]:
        """The ids of all summaries ever made, oldest first, without loading them."""
        return self.store.keys(SUMMARIES)

    def warm(self) -> Iterator[None]:
        """Reads the records of summaries and compactions in advance, a few at each step."""
        yield from self._summaries.warm()
        yield from self._compactions.warm()

    def records_below(self, summary_id: str) -> list[SummaryRecord]:
        """The records of a summary and of those below it, the deepest and oldest first."""
        self._summaries.refresh()
        found: list[SummaryRecord] = []
        waiting, seen = [(summary_id, False)], set[str]()
        while waiting:
            key, is_below_done = waiting.pop()
            record = self.summary(key)
            if record is None or (key in seen and not is_below_done):
                continue
            if is_below_done:
                found.append(record)
                continue
            seen.add(key)
            below = record.child_ids
            waiting += [(key, True), *((each, False) for each in reversed(below))]
        return found

    def each_below(self, summary_id: str) -> Iterator[Message]:
        """The raw messages below a summary, oldest first, loaded segment by segment."""
        for record in self.records_below(summary_id):
            segment = self.segment(record.segment) if record.segment else None
            yield from segment.messages if segment else ()

    def listed_below(self, summary_id: str) -> "MessagesBelow":
        """The raw messages below a summary, to be read by slices."""
        return MessagesBelow(self, self.records_below(summary_id))

    def archived(self, message_ids: Iterable[str]) -> dict[str, Message]:
        """Archived messages by their ids, with the others of their segments."""
        self._summaries.refresh()
        places = {each: self._summaries.segments_with(each) for each in message_ids}
        self.store.preload({keys[0] for keys in places.values() if keys}, ARCHIVE)
        known: dict[str, Message] = {}
        for each, keys in places.items():
            if each not in known:
                known |= {message.id: message for message in self._with(each, keys)}
        return known

    def archived_around(self, message_id: str) -> tuple[Message, ...]:
        """The messages of the newest segment that holds one; empty if none does."""
        self._summaries.refresh()
        return self._with(message_id, self._summaries.segments_with(message_id))

    def _with(self, message_id: str, keys: Iterable[str]) -> tuple[Message, ...]:
        for key in keys:
            segment = self.segment(key)
            if segment and any(message.id == message_id for message in segment.messages):
                return segment.messages
        return ()

    def view(self, audience: str, room_tokens: int) -> "ArchiveView":
        """What an audience may see of the archive, newest segments until the room is full.

        It is kept until a compaction is made or rolled back, or a segment read for it changes:
        every prompt asks for it while compaction is off.
        """
        kept = self._views.get((audience, room_tokens))
        if kept is not None:
            marks = self._marks(kept.segments)
            if len(marks) == len(kept.marks) and all(map(operator.is_, marks, kept.marks)):
                return kept
        if len(self._views) >= VIEWS:
            self._views.clear()
        view = self._views[audience, room_tokens] = self._read_view(audience, room_tokens)
        return view

    def _read_view(self, audience: str, room_tokens: int) -> "ArchiveView":
        made = {record.segment: record for record in self.summaries() if record.segment}
        parts: list[tuple[list[Message], Sequence[str]]] = []
        read: list[str] = []
        tokens = older = 0
        for record in reversed(self.compactions()):
            if record.status != COMMITTED:
                continue
            keys = [
                key
                for key in record.segments
                if key not in made or visible(made[key].audience, audience)
            ]
            if tokens >= room_tokens:
                older += sum(len(made[key].source_ids) for key in keys if key in made)
                continue
            self.store.preload(keys, ARCHIVE)
            left = {m.id: m for s in map(self.segment, keys) if s for m in s.messages}
            seen = {
                each: unmasked(left[each])
                for each in record.leaving
                if each in left and visible(left[each].audience, audience)
            }
            stood = [seen.get(each) or hidden(each) for each in record.leaving]
            parts.append((stood, record.order))
            tokens += total_tokens(seen.values())
            read += keys
        return ArchiveView(tuple(parts), older, tuple(read), self._marks(read))

    def _marks(self, segments: Iterable[str]) -> tuple[object, ...]:
        keys = self.store.keys(COMPACTIONS)
        return (*self.store.stamps(keys, COMPACTIONS), *self.store.stamps(segments, ARCHIVE))


@dataclass(frozen=True)
class ArchiveView:
    """Archived messages as one audience's prompt shows them.

    Args:
        parts: What left with each compaction and the order then, newest first.
        older: How many messages there are before them.
        segments: Ids of the segments read.
        marks: Objects that are replaced as soon as a compaction or a segment changes.
    """

    parts: tuple[tuple[list[Message], Sequence[str]], ...]
    older: int
    segments: tuple[str, ...]
    marks: tuple[object, ...]


class MessagesBelow:
    """The messages that records of summaries cite, oldest first, read by slices, as a pager does.

    Only the segments that a slice lies in are loaded.
    """

    def __init__(self, archive: Archive, records: Iterable[SummaryRecord]):
        self._archive = archive
        self._places = [(r.segment, each) for r in records if r.segment for each in r.source_ids]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, part: slice) -> list[Message]:
        places = self._places[part]
        segments = map(self._archive.segment, dict.fromkeys(key for key, _ in places))
        known = {m.id: m for segment in segments if segment for m in segment.messages}
        return [known[each] for _, each in places if each in known]


class CachedRecords(Generic[R]):
    """The records of one category, each read once as long as nobody changes it.

    `read` makes a record of a key and the value stored under it; None if that is no record.
    """

    def __init__(self, store: Store, category: str, read: Callable[[str, object], R | None]):
        self.store = store
        self.category = category
        self._read = read
        self._known: dict[str, tuple[object, R | None]] = {}

    def one(self, key: str) -> R | None:
        """The record under a key, or None."""
        return self._current(key, self.store.stamp(key, self.category))

    def all(self) -> list[R]:
        """All records, by key."""
        found = (self._known.get(key, (None, None))[1] for key in self.refresh())
        return [record for record in found if record is not None]

    def refresh(self) -> tuple[str, ...]:
        """Read what is new or changed, in one query for what was never read; returns the keys."""
        keys = self.store.keys(self.category)
        self._load(keys)
        if len(self._known) > len(keys):
            for key in self._known.keys() - set(keys):
                self._forget(key)
        return keys

    def warm(self) -> Iterator[None]:
        """Reads a slice of the records at each step."""
        keys = iter(self.store.keys(self.category))
        while some := list(islice(keys, SLICE)):
            self._load(some)
            yield

    def _load(self, keys: Sequence[str]) -> None:
        self.store.preload(keys, self.category)
        for key, stamp in zip(keys, self.store.stamps(keys, self.category), strict=True):
            self._current(key, stamp)

    def _current(self, key: str, stamp: object) -> R | None:
        """The record under a key, read again if its stamp is another one."""
        if stamp is None:
            self._forget(key)
            return None
        stamped, record = known = self._known.get(key, (None, None))
        if stamped is not stamp:
            record = self._read(key, self.store.get(key, category=self.category))
            self._known[key] = (stamp, record)
            self._changed(key, known[1], record)
        return record

    def _forget(self, key: str) -> None:
        _, before = self._known.pop(key, (None, None))
        self._changed(key, before, None)

    def _changed(self, key: str, before: R | None, after: R | None) -> None:
        """Called whenever the record held under a key is another one."""


class SummaryRecords(CachedRecords[SummaryRecord]):
    """The records of summaries, and a map from messages to the segments they left into."""

    # None until somebody asks for it, and after a change in the middle.
    _segments: dict[str, tuple[str, ...]] | None = None
    _newest = ""

    def segments_with(self, message_id: str) -> tuple[str, ...]:
        """Ids of the segments that records cite a message of, newest first, as last refreshed."""
        if self._segments is None:
            self._segments, self._newest = {}, ""
            for key in sorted(self._known):
                self._place(key, self._known[key][1])
        return self._segments.get(message_id, ())[::-1]

    def _place(self, key: str, record: SummaryRecord | None) -> None:
        if self._segments is None or record is None or not record.segment:
            return
        self._newest, alone = key, (record.segment,)
        for each in record.source_ids:
            before = self._segments.get(each)
            self._segments[each] = alone if before is None else (*before, record.segment)

    def _changed(self, key: str, before: SummaryRecord | None, after: SummaryRecord | None) -> None:
        if self._segments is None or _cited(before) == _cited(after):
            return
        if before is None and key > self._newest:
            self._place(key, after)
        else:
            self._segments = None


def _cited(record: SummaryRecord | None) -> tuple[str, tuple[str, ...]]:
    """The segment of a record and the messages that went into it."""
    return (record.segment, record.source_ids) if record and record.segment else ("", ())
