"""Stored records held in memory, each read and checked once as long as nobody changes it.

Whether somebody did is told by the stamp of its Attribute, so that a change by hand is seen.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

from evennia_ai.protocol import Store

Record = dict[str, Any]
# Records read from the database at once where there is time between two readings.
SLICE = 50


class CachedRecords:
    """The records of one category.

    Records are handed out as copies that may be changed; the lists in them may not.

    Args:
        store: Where they are kept.
        category: Their category.
        sound: Makes a record of a key and the value stored under it, or None.
    """

    def __init__(self, store: Store, category: str, sound: Callable[[str, Any], Record | None]):
        self.store = store
        self.category = category
        self._sound = sound
        self._known: dict[str, tuple[object, Record | None]] = {}

    def one(self, key: str) -> Record | None:
        """The record under a key, or None."""
        record = self._current(key, self.store.stamp(key, self.category))
        return None if record is None else dict(record)

    def all(self, is_wanted: Callable[[Record], bool] = bool) -> list[Record]:
        """The records that are wanted, by key; only they are copied."""
        records = map(self._held, self.refresh())
        return [dict(r) for r in records if r is not None and is_wanted(r)]

    def refresh(self) -> tuple[str, ...]:
        """Read what is new or changed, in one query for what was never read; returns the keys."""
        keys = self.store.keys(self.category)
        self._read(keys)
        if len(self._known) > len(keys):
            for key in self._known.keys() - set(keys):
                self._forget(key)
        return keys

    def warm(self) -> Any:
        """An iterator that reads a slice of the records at each step, for a start in pieces."""
        keys = iter(self.store.keys(self.category))
        while some := list(islice(keys, SLICE)):
            self._read(some)
            yield

    def _read(self, keys: Any) -> None:
        self.store.preload(keys, self.category)
        for key, stamp in zip(keys, self.store.stamps(keys, self.category), strict=True):
            self._current(key, stamp)

    def _held(self, key: str) -> Record | None:
        return self._known[key][1] if key in self._known else None

    def _current(self, key: str, stamp: object) -> Record | None:
        """The record under a key, read if its stamp is another one than before."""
        if stamp is None:
            self._forget(key)
            return None
        known = self._known.get(key)
        if known is None or known[0] is not stamp:
            record = self._sound(key, self.store.get(key, category=self.category))
            self._known[key] = (stamp, record)
            self._changed(key, known[1] if known else None, record)
            return record
        return known[1]

    def _forget(self, key: str) -> None:
        _, before = self._known.pop(key, (None, None))
        self._changed(key, before, None)

    def _changed(self, key: str, before: Record | None, after: Record | None) -> None:
        """Called whenever the record held under a key is another one."""


class SummaryRecords(CachedRecords):
    """The records of summaries, and a map from messages to the segments they left into."""

    def __init__(self, store: Store, category: str, sound: Callable[[str, Any], Record | None]):
        super().__init__(store, category, sound)
        self._segments: dict[str, tuple[str, ...]] | None = None
        self._newest = ""

    def segments_with(self, message_id: str) -> tuple[str, ...]:
        """Ids of the segments that a message went into by the records, newest first.

        As of the last `refresh`.
        """
        if self._segments is None:
            self._segments, self._newest = {}, ""
            for key in sorted(self._known):
                self._place(key, self._held(key))
        return self._segments.get(message_id, ())[::-1]

    def _place(self, key: str, record: Record | None) -> None:
        segment, ids = _placed(record)
        if self._segments is None or not segment:
            return
        self._newest, alone = key, (segment,)
        for each in ids:
            before = self._segments.get(each)
            self._segments[each] = alone if before is None else (*before, segment)

    def _changed(self, key: str, before: Record | None, after: Record | None) -> None:
        if self._segments is None or _placed(before) == _placed(after):
            return
        if before is None and key > self._newest:
            self._place(key, after)
        else:
            self._segments = None


def _placed(record: Record | None) -> tuple[str, list[str]]:
    """The segment of a record and the messages that went into it."""
    segment = record["segment"] if record else None
    return (segment, record["source_ids"]) if record and segment else ("", [])
