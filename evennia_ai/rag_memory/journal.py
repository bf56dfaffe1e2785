"""The journal: its entries, where they come from and how important one is, and its pages.

The newest page is in one Attribute, older pages are in Attributes of their own. An append rewrites
one page of at most 50 entries, so it costs the same at 100 and at 100,000 entries.
"""

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import regex

from evennia_ai.history.audience import PUBLIC, normalised
from evennia_ai.history.messages import base32, new_id, seconds, utc_iso
from evennia_ai.history.stored import (
    KEPT,
    Cache,
    Store,
    Stored,
    as_count,
    as_dict,
    as_texts,
    each_readable,
)
from evennia_ai.language.script import size
from evennia_ai.language.words import asks
from evennia_ai.recall.values import Turn

# Source of an entry that the assistant chose to write.
OWN = "assistant"
# Source of an entry that repeats what was just found in memory.
RECALLED = "recalled"
# Source of an entry that a compaction made of its summary.
SYNTHESIS = "compaction"
# Sources of entries that only repeat or sum up what stands elsewhere.
DERIVED_SOURCES = (RECALLED, SYNTHESIS)
# Characters of an id behind its prefix (`history.messages.IdSource`).
ID_CHARS = 15
# For so many days everything stays in retrieval; from this importance on an entry stays at any age.
DAY_S, KEEP_DAYS, MIN_IMPORTANCE = 86400.0, 30.0, 4
DEFAULT_IMPORTANCE, LEAST_IMPORTANCE, MOST_IMPORTANCE = 5, 1, 10
# A plain statement: below the journal's default of 5, and it stays in retrieval for ever.
BASE = 4
# Words of a text that may hold more than one fact; characters that are read.
MANY_WORDS, MAX_CHARACTERS = 12, 4000


@dataclass(frozen=True, slots=True)
class JournalEntry(Stored):
    """What the assistant found worth keeping."""

    id: str  # sorts by time
    timestamp: str  # when it was written, UTC ISO 8601
    content: str
    importance: int = DEFAULT_IMPORTANCE  # 1 to 10
    source_type: str = OWN  # ``assistant`` (it chose to), one of `DERIVED_SOURCES`, or ``import``
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # names or ids of those it is about
    # Ids of the messages it rests on, and of the extraction that made it.
    source_message_ids: tuple[str, ...] = ()
    audience: str = PUBLIC
    withdrawn: bool = False  # whether it was taken back: kept, but neither found nor consolidated

    @property
    def tombstone(self) -> "JournalEntry":
        """What is left of it when it is forgotten: id and time, in its place, without words."""
        return JournalEntry(self.id, self.timestamp, "", audience=self.audience, withdrawn=True)

    @property
    def may_consolidate(self) -> bool:
        """Whether it may become a memory: neither derived nor taken back."""
        return self.source_type not in DERIVED_SOURCES and not self.withdrawn

    def is_worn(self, now: float) -> bool:
        """Whether it is old, by a readable time, and of a low importance."""
        if self.importance >= MIN_IMPORTANCE:
            return False
        return 0 < seconds(self.timestamp) < now - KEEP_DAYS * DAY_S

    def is_indexed(self, now: float) -> bool:
        """Whether it takes part in retrieval at a time, seconds since the epoch."""
        is_empty = self.source_type == RECALLED or self.withdrawn or not self.content.strip()
        return not is_empty and not self.is_worn(now)

    @property
    def turn(self) -> Turn:
        """It as a turn for the index."""
        kind = "summary" if self.source_type == SYNTHESIS else "journal"
        return Turn(self.id, "", self.content, self.timestamp, None, self.audience, kind)


def bounded(importance: float | None) -> int:
    """An importance from 1 to 10; the middle without one."""
    if importance is None:
        return DEFAULT_IMPORTANCE
    return int(min(MOST_IMPORTANCE, max(LEAST_IMPORTANCE, importance)))


def synthesis_id(summary_id: str) -> str:
    """The id of the entry that a compaction made of a summary."""
    return f"compact_{summary_id[1:]}"


def score_importance(text: str) -> int:
    """How important a text is for memory, from 1 (chatter) to 10, where the model gave no number.

    A statement stays in retrieval for ever, a question does not, in whatever words; numbers and
    length count for more.
    """
    text = text[:MAX_CHARACTERS]
    count = size(text)
    if not count:
        return LEAST_IMPORTANCE
    has_number = regex.search(r"\p{Nd}", text) is not None
    return bounded(BASE + has_number + (count >= MANY_WORDS) - 2 * asks(text))


JOURNAL, PAGES = "journal", "ai_journal"
PAGE_ENTRIES = 50
# Newest pages that are looked through for what waits.
LOOKED_AT = 5
_PAGE = re.compile(r"page_(\d{6,})")


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries in a row, oldest first."""

    number: int  # its place among the pages, from 1
    entries: tuple[JournalEntry, ...] = ()
    consolidated: tuple[str, ...] = ()  # ids of its entries that are in semantic memory

    @classmethod
    def read(cls, key: str, raw: object, odd: list[object]) -> "Page":
        """A stored page; entries that cannot be read go into `odd`."""
        page = as_dict(raw)
        entries = each_readable(page.get("entries"), JournalEntry.from_dict, odd)
        done = as_texts(page.get("consolidated_entry_ids"))
        return cls(max(1, as_count(page.get("page"))), tuple(entries), tuple(done))

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return {
            "page": self.number,
            "entries": [entry.to_dict() for entry in self.entries],
            "consolidated_entry_ids": list(self.consolidated),
        }

    @property
    def waiting(self) -> list[JournalEntry]:
        """Its entries that are still to go into semantic memory."""
        done = set(self.consolidated)
        return [entry for entry in self.entries if entry.may_consolidate and entry.id not in done]


class JournalHandler:
    """Reads and writes one assistant's journal.

    Args:
        now: Clock, seconds since the epoch.
        on_add: Called with each entry once it is certain that it stays stored.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        on_add: Callable[[JournalEntry], Any] = lambda entry: None,
    ):
        self.store = store
        self._now = now
        self._on_add = on_add
        self._pages = Cache(store, PAGES, Page.read, Page.to_dict, KEPT, newest=JOURNAL)

    def add(self, content: str, **fields: Any) -> JournalEntry:
        """Append a new entry, and return it; the fields are those of `new`."""
        entry = self.new(content, **fields)
        self.put(entry)
        return entry

    def new(
        self,
        content: str,
        *,
        importance: int | None = None,
        source_type: str = OWN,
        tags: Iterable[str] = (),
        entities: Iterable[str] = (),
        source_message_ids: Iterable[str] = (),
        audience: str | None = None,
        timestamp: str | None = None,
    ) -> JournalEntry:
        """A new entry, which is not stored; the fields are those of `JournalEntry`."""
        return JournalEntry(
            new_id("e"),
            timestamp or utc_iso(self._now()),
            content,
            bounded(importance),
            source_type,
            tuple(tags),
            tuple(entities),
            tuple(source_message_ids),
            normalised(audience),
        )

    def put(self, *entries: JournalEntry) -> None:
        """Append entries as they are; a page is written once for all that come onto it."""
        if not entries:
            return
        with self.store.transaction():
            page, left = self._page(), entries
            while left:
                if len(page.entries) >= PAGE_ENTRIES:  # it goes behind all others, the next begins
                    number = self._next_number()
                    self._pages.set(page_key(number), replace(page, number=number))
                    page = Page(number + 1)
                room = PAGE_ENTRIES - len(page.entries)
                page = replace(page, entries=(*page.entries, *left[:room]))
                left = left[room:]
            self._pages.set(JOURNAL, page)
        self.store.on_commit(lambda: [*map(self._on_add, entries)])

    def recent(self, limit: int = 50) -> tuple[JournalEntry, ...]:
        """The newest entries, oldest first."""
        return self.stretch(0, limit)[::-1]

    def stretch(self, start: int, stop: int) -> tuple[JournalEntry, ...]:
        """The entries from one place to before another, newest first; reads only their pages.

        Places are counted as in `count`: a page that lost entries keeps its places.
        """
        entries, place = list[JournalEntry](), 0
        for key in reversed(self.pages()):
            size = len(self._page().entries) if key == JOURNAL else PAGE_ENTRIES
            if place < stop and place + size > start:
                here = self.page(key).entries[::-1]
                entries += here[max(0, start - place) : stop - place]
            place += size
        return tuple(entries)

    def all(self) -> Iterator[JournalEntry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""
        for key in reversed(self.pages()):
            yield from self.page(key).entries

    def get(self, entry_id: str) -> JournalEntry | None:
        """One entry by its id, or None; reads few pages, as ids sort by time."""
        place = self._place(entry_id)
        return place and place[1]

    def waiting(self) -> int:
        """How many entries are still to go into semantic memory; derived ones never do.

        Reads no page beyond the first that has none, and of the newest at most `LOOKED_AT`.
        """
        newest = map(self.page, self.pages()[: -LOOKED_AT - 1 : -1])
        return sum(len(page.waiting) for page in takewhile(lambda page: page.waiting, newest))

    def mark_consolidated(self, entry_ids: Iterable[str]) -> None:
        """Record that entries are in semantic memory."""
        wanted = set(entry_ids)
        with self.store.transaction():
            for key in self.pages_with(wanted):
                page = self.page(key)
                new = [e.id for e in page.entries if e.id in wanted - {*page.consolidated}]
                self._pages.set(key, replace(page, consolidated=(*page.consolidated, *new)))

    def withdraw(self, entry_ids: Iterable[str]) -> None:
        """Mark entries as withdrawn: kept, but neither found nor consolidated."""
        wanted = set(entry_ids)
        pages = self.pages_with(wanted)
        self.rewrite(lambda e: replace(e, withdrawn=True) if e.id in wanted else e, pages)

    def pages_with(self, entry_ids: Iterable[str]) -> list[str]:
        """The keys of the pages that hold one of these entries."""
        places = filter(None, map(self._place, sorted(entry_ids)))
        return list(dict.fromkeys(key for key, _ in places))

    def pages(self) -> list[str]:
        """The keys of all pages, oldest first."""
        return [*map(page_key, range(1, self._page().number)), JOURNAL]

    def written(self, since: float, until: float) -> Iterator[list[JournalEntry]]:
        """The entries written in a time, seconds since the epoch, up to before its end.

        Oldest first, page by page; only pages on which there may be some are loaded.
        """
        first, last = (base32(max(0, int(at * 1000)), 9) for at in (since, until))
        keys = self.pages()
        start, stop = (bisect_right(keys, at, key=self._first_id) for at in (first, last))
        for key in keys[max(0, start - 1) : stop]:
            entries = self.page(key).entries
            yield [entry for entry in entries if first <= entry.id[-ID_CHARS:] < last]

    def rewrite(
        self, change: Callable[[JournalEntry], JournalEntry], pages: Iterable[str]
    ) -> list[JournalEntry]:
        """Replace each entry of these pages by what `change` returns; returns the new ones.

        The entries keep their ids and places. Nothing is indexed.
        """
        changed: list[JournalEntry] = []
        for key in pages:
            page = self.page(key)
            entries = tuple(map(change, page.entries))
            if entries != page.entries:
                self._pages.set(key, replace(page, entries=entries))
                changed += [new for new in entries if new not in page.entries]
        return changed

    def count(self) -> int:
        """How many entries there are."""
        page = self._page()
        return (page.number - 1) * PAGE_ENTRIES + len(page.entries)

    def _page(self) -> Page:
        return self._pages.get(JOURNAL) or Page(self._next_number())

    def _next_number(self) -> int:
        """The number of a new page behind all others; keys added by hand are no pages."""
        keys = filter(_PAGE.fullmatch, self.store.keys(PAGES))
        return max((int(key[5:]) for key in keys), default=0) + 1

    def page(self, key: str) -> Page:
        """One page by its key."""
        if key == JOURNAL:
            return self._page()
        return self._pages.get(key) or Page(int(key[5:]))

    def _place(self, entry_id: str) -> tuple[str, JournalEntry] | None:
        """An entry and the key of its page: the page of its time, or one of those beside it."""
        keys = self.pages()
        place = bisect_right(keys, entry_id[-ID_CHARS:], key=self._first_id)
        for at in (place - 1, place, place + 1, place - 2):
            for entry in self.page(keys[at]).entries if 0 <= at < len(keys) else ():
                if entry.id == entry_id:
                    return keys[at], entry
        return None

    def _first_id(self, key: str) -> str:
        """The part that sorts by time of the id of a page's first entry."""
        entries = self.page(key).entries
        if entries:
            return entries[0].id[-ID_CHARS:]
        return ""


def page_key(number: int) -> str:
    """The key of a numbered page: ``page_000001`` and so on."""
    return f"page_{number:06d}"
