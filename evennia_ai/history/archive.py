"""The archive: messages that left the live history, and the records of how they left.

Segments hold the messages, word for word. Records of summaries and of compactions say what they
became. Records are held in memory (`history.pages`).
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from evennia_ai.history.audience import visible
from evennia_ai.history.messages import Message, in_order, total_tokens, unmasked
from evennia_ai.history.pages import KEPT, Store, records
from evennia_ai.history.records import (
    COMMITTED,
    ROLLED_BACK,
    CompactionRecord,
    Segment,
    SummaryRecord,
    as_dict,
)

ARCHIVE, SUMMARIES, COMPACTIONS = "ai_archive", "ai_summaries", "ai_compactions"
# Ids of messages that were forgotten at somebody's request, and when; no words, no names.
TOMBSTONES = "tombstones"
# Records read from the database at once where there is time between two readings.
SLICE = 50


class Archive:
    """Reads and writes the archive of one assistant."""

    def __init__(self, store: Store):
        self.store = store
        self._segments = records(store, ARCHIVE, Segment, KEPT)
        self._summaries = records(store, SUMMARIES, SummaryRecord)
        self._compactions = records(store, COMPACTIONS, CompactionRecord)

    def archive(self, segment: Segment) -> None:
        """Write a segment of messages that leave the live history, or what is left of one."""
        self._segments.set(segment.id, segment)

    def tombstones(self) -> dict[str, str]:
        """When messages were forgotten, by their ids."""
        return {each: str(at) for each, at in as_dict(self.store.get(TOMBSTONES)).items()}

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
        """One archive segment, or None."""
        return self._segments.get(segment_id)

    def segment_count(self) -> int:
        """How many archive segments hold messages that are not live again by a rollback."""
        return len({*self.store.keys(ARCHIVE)} - self.restored_segments())

    def restored_segments(self) -> set[str]:
        """Ids of segments whose messages are live again."""
        rolled_back = (r for r in self.compactions() if r.status == ROLLED_BACK)
        return {key for record in rolled_back for key in record.segments}

    def save_compaction(self, record: CompactionRecord) -> None:
        """Write a compaction's record."""
        self._compactions.set(record.id, record)

    def compactions(self) -> list[CompactionRecord]:
        """The records of all compactions, oldest first."""
        return list(self._compactions.all().values())

    def last_compaction(self) -> CompactionRecord | None:
        """The newest compaction that was not rolled back."""
        records = reversed(self.compactions())
        return next((record for record in records if record.status == COMMITTED), None)

    def note_last_compaction(self) -> None:
        """Store in `script.db.last_compaction` what the newest compaction was."""
        last = self.last_compaction()
        about = {"id": last.id, "at": last.at, "trigger": last.trigger} if last else {}
        self.store.set("last_compaction", {**about, **last.report.to_dict()} if last else {})

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
            segment = self.segment(key)
            messages = {m.id: m for m in segment.messages} if segment else {}
            yield from (messages[each] for _, each in places if each in messages)

    def places_below(self, summary_id: str) -> list[tuple[str, str]]:
        """Segments and ids of the raw messages below a summary."""
        records, seen = self._summaries.all(), set[str]()

        def places(key: str) -> Iterator[tuple[str, str]]:
            record = records.get(key)
            if record is not None and key not in seen:
                seen.add(key)
                for child in record.child_ids:
                    yield from places(child)
                for each in record.source_ids if record.segment else ():
                    yield str(record.segment), each

        return list(places(summary_id))

    def archived(self, message_ids: Iterable[str]) -> dict[str, Message]:
        """Archived messages by their ids, with the others of their segments."""
        keys = self._segments_with(set(message_ids))
        self.store.preload(keys, ARCHIVE)
        segments = filter(None, map(self.segment, keys))
        return {message.id: message for segment in segments for message in segment.messages}

    def _segments_with(self, message_ids: set[str]) -> list[str]:
        """Ids of the segments that records cite one of these messages of, oldest first."""
        records = self.summaries() if message_ids else ()
        return [r.segment for r in records if r.segment and message_ids.intersection(r.source_ids)]

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
        restored, shown, tokens, older = self.restored_segments(), list(live), 0, 0
        for record in reversed(self.summaries()):
            if not record.segment or record.segment in restored:
                continue
            if not visible(record.audience, audience):
                continue
            if tokens >= room_tokens:
                older += len(record.source_ids)
            elif segment := self.segment(record.segment):
                raw = [unmasked(m) for m in segment.messages if visible(m.audience, audience)]
                shown += raw
                tokens += total_tokens(raw)
        return in_order(shown), older
