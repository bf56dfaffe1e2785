"""The archive: messages that left the live history, and the records of how they left.

Segments hold the messages, word for word. Records of summaries and of compactions say what they
became. Records are held in memory (`history.pages`).
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from evennia_ai.history.audience import visible
from evennia_ai.history.messages import Message, in_order, new_id, total_tokens, unmasked
from evennia_ai.history.pages import KEPT, Store, records
from evennia_ai.history.records import (
    COMMITTED,
    CompactionRecord,
    Segment,
    SummaryRecord,
    Tombstones,
)

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
                yield from record.places

        return list(places(summary_id))

    def archived(self, message_ids: Iterable[str]) -> dict[str, Message]:
        """Archived messages by their ids, with the others of their segments."""
        wanted = set(message_ids)
        places = (place for record in self._citing_one(wanted) for place in record.places)
        keys = list(dict.fromkeys(key for key, each in places if each in wanted))
        self.store.preload(keys, ARCHIVE)
        segments = filter(None, map(self.segment, keys))
        return {message.id: message for segment in segments for message in segment.messages}

    def left_with(self, message_id: str) -> tuple[str, ...]:
        """Ids of the messages that left together with one, oldest first; none if it never left."""
        records = self._citing_one({message_id})
        return records[-1].source_ids if records else ()

    def _citing_one(self, message_ids: set[str]) -> list[SummaryRecord]:
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
