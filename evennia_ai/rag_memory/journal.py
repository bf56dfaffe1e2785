"""The journal: the newest page in one Attribute, older pages in Attributes of their own.

An append rewrites one page of at most 50 entries, so it costs the same at 100 and at 100,000
entries. A page's number is that of its key, and the newest comes after all stored ones; a number
that somebody wrote into a page by hand is ignored, so that no page is hidden or overwritten.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from evennia_ai.history.audience import normalised
from evennia_ai.history.messages import SCHEMA_VERSION, new_id, utc_iso
from evennia_ai.history.records import as_dict, next_number, page_key, page_numbers
from evennia_ai.protocol import Store
from evennia_ai.rag_memory.journal_entry import (
    ID_CHARS,
    OWN,
    JournalEntry,
    importance_in,
    listed,
    texts_in,
)

JOURNAL, PAGES = "journal", "ai_journal"
PAGE_ENTRIES = 50
# Older pages that one search may read for the importance of its hits; entries it is remembered of.
MOST_READ, MOST_WEIGHED = 20, 20_000
# The time part of an id as older versions gave it to entries written by hand.
HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries in a row, oldest first.

    Args:
        number: Its place among the pages, from 1.
        open_pages: On the newest page, the numbers of older pages with entries that are not in
            semantic memory.
        consolidated: Ids of its entries that are in semantic memory.
    """

    number: int
    entries: tuple[JournalEntry, ...] = ()
    open_pages: tuple[int, ...] = ()
    consolidated: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, raw: object, number: int, now: str) -> "Page":
        """A stored page; entries without a time have `now`."""
        held = as_dict(raw)
        return cls(
            number,
            tuple(JournalEntry.from_dict(entry, now) for entry in _entries_in(raw)),
            tuple(n for n in listed(held.get("open_pages")) if isinstance(n, int)),
            texts_in(held.get("consolidated_entry_ids")),
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return {
            "version": SCHEMA_VERSION,
            "page": self.number,
            "open_pages": list(self.open_pages),
            "entries": [entry.to_dict() for entry in self.entries],
            "consolidated_entry_ids": list(self.consolidated),
        }

    @property
    def waiting(self) -> list[JournalEntry]:
        """Its entries that are still to go into semantic memory."""
        done = set(self.consolidated)
        return [entry for entry in self.entries if entry.may_consolidate and entry.id not in done]


def _entries_in(raw: object) -> list[Any]:
    """The stored entries of a page; a page that is no mapping is a list of them."""
    return listed(raw.get("entries") if isinstance(raw, Mapping) else raw)


class JournalHandler:
    """Reads and writes one assistant's journal.

    Args:
        now: Clock, seconds since the epoch.
        on_add: Called with each entry once it is certain that it stays stored.
        on_change: Called with an entry of the newest page that was changed by hand; a removed
            one is marked as withdrawn.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        on_add: Callable[[JournalEntry], Any] = lambda entry: None,
        on_change: Callable[[JournalEntry], Any] = lambda entry: None,
    ):
        self.store = store
        self._now = now
        self._on_add = on_add
        self._on_change = on_change
        self._stamp: object = None
        self._page: Page | None = None
        self._pages_read = 0
        self._weights: dict[str, int] = {}
        self._unweighed: set[str] = set()
        self._first_keys: dict[int, tuple[object, str | None]] = {}

    def add(
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
        id: str | None = None,
    ) -> JournalEntry:
        """Append an entry, and return it; the fields are those of `JournalEntry`."""
        entry = JournalEntry(
            id or new_id("e"),
            timestamp or utc_iso(self._now()),
            content,
            importance_in(importance),
            source_type,
            tuple(tags),
            tuple(entities),
            tuple(source_message_ids),
            normalised(audience),
        )
        with self.store.transaction():
            page = self._newest()
            if len(page.entries) >= PAGE_ENTRIES:
                page = self._turn(page)
            self._save(replace(page, entries=(*page.entries, entry)))
        self.store.on_commit(lambda: self._on_add(entry))
        return entry

    def recent(self, limit: int = 50) -> tuple[JournalEntry, ...]:
        """The newest entries, oldest first."""
        newest_first = (entry for page in self._pages_back() for entry in reversed(page.entries))
        return tuple(islice(newest_first, limit))[::-1]

    def stretch(self, start: int, stop: int) -> tuple[JournalEntry, ...]:
        """The entries from one place to before another, newest first; reads only their pages.

        Places are counted as in `count`: a page that lost entries keeps its places.
        """
        newest, found = self._newest(), list[JournalEntry]()
        end = len(newest.entries)
        for number in range(newest.number, 0, -1):
            begin = end - (end if number == newest.number else PAGE_ENTRIES)
            if end > start:
                entries = self._load_page(number).entries[::-1]
                found += entries[max(0, start - begin) : stop - begin if stop < end else None]
            if end >= stop:
                break
            end += PAGE_ENTRIES
        return tuple(found)

    def importance_of(self, entry_ids: Collection[str]) -> dict[str, int]:
        """The importance, 1 to 10, of these entries by id, where it is known.

        Every search calls it, so it reads at most `MOST_READ` older pages and remembers them. An
        entry missing from that many pages is not looked for again.
        """
        self._learn(self._newest())
        before = self._pages_read
        for entry_id in entry_ids:
            left = MOST_READ - (self._pages_read - before)
            if left > 0 and entry_id not in self._weights and entry_id not in self._unweighed:
                page = self._page_of(entry_id, left)
                if page is not None:
                    self._learn(page)
                elif left == MOST_READ:
                    self._unweighed.add(entry_id)
        return {each: self._weights[each] for each in entry_ids if each in self._weights}

    def _learn(self, page: Page) -> None:
        if len(self._weights) + len(self._unweighed) > MOST_WEIGHED:
            self._weights.clear()
            self._unweighed.clear()
        self._weights.update((entry.id, entry.importance) for entry in page.entries)

    def all(self) -> Iterator[JournalEntry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""
        for page in self._pages_back():
            yield from page.entries

    def oldest(self) -> tuple[JournalEntry, ...]:
        """The entries of the oldest page, oldest first."""
        return self._load_page(1).entries

    def get(self, entry_id: str, most_read: int | None = None) -> JournalEntry | None:
        """One entry by its id, or None; reads few pages, as ids sort by time.

        For an id without a time it reads `most_read` pages, by default all.
        """
        page = self._page_of(entry_id, most_read)
        return next((each for each in page.entries if each.id == entry_id), None) if page else None

    def _page_of(self, entry_id: str, most_read: int | None = None) -> Page | None:
        key = _time_key(entry_id)
        if key is None:
            pages = self._pages_back()
        elif HEX.fullmatch(key):  # of an older version: written by hand, its time is not known
            pages = chain(self._pages_near(key), self._pages_back())
        else:
            pages = self._pages_near(key)
        read = islice(pages, most_read)
        return next((p for p in read if any(each.id == entry_id for each in p.entries)), None)

    def _pages_near(self, key: str) -> Iterator[Page]:
        """The page an id of this time belongs to, and those beside it."""
        low, high = 1, self._newest().number
        while low < high:
            middle = (low + high + 1) // 2
            first = self._first_key(middle)
            if first is None:  # put in by hand: no order to go by
                yield from self._pages_back()
                return
            low, high = (middle, high) if first <= key else (low, middle - 1)
        near = (n for n in (low, low + 1, low + 2, low - 1) if 1 <= n <= self._newest().number)
        yield from map(self._load_page, near)

    def _first_key(self, number: int) -> str | None:
        """The time key of a page's first entry; read once, until the page is replaced."""
        stamp = self.store.stamp(page_key(number), PAGES)
        known, key = self._first_keys.get(number, (None, None))
        if stamp is None or known is not stamp:
            entries = self._load_page(number).entries
            key = _time_key(entries[0].id) if entries else None
            self._first_keys[number] = (stamp, key)
        return key

    def unconsolidated(self, limit: int = 200) -> tuple[JournalEntry, ...]:
        """Oldest entries not yet in semantic memory; derived ones never go there."""
        pages = map(self._load_page, self._open_pages())
        return tuple(islice((entry for page in pages for entry in page.waiting), limit))

    def mark_consolidated(self, entry_ids: Iterable[str]) -> int:
        """Record that entries are in semantic memory; returns how many were newly marked."""
        wanted, marked = set(entry_ids), 0
        with self.store.transaction():
            for page in map(self._load_page, self._open_pages()):
                here = [entry.id for entry in page.entries if entry.id in wanted]
                wanted.difference_update(here)
                if new := [each for each in here if each not in page.consolidated]:
                    marked += len(new)
                    self._replace(replace(page, consolidated=(*page.consolidated, *new)))
                if not wanted:  # a backlog has many more pages
                    break
        return marked

    def withdraw(self, entry_ids: Iterable[str]) -> int:
        """Mark entries as withdrawn: kept, but neither found nor consolidated."""
        wanted, marked = set(entry_ids), 0
        for page in map(self._load_page, self.pages_with(wanted)):
            marked += sum(entry.id in wanted for entry in page.entries)
            entries = (replace(e, withdrawn=True) if e.id in wanted else e for e in page.entries)
            self._replace(replace(page, entries=tuple(entries)))
        return marked

    def pages_with(self, entry_ids: Iterable[str]) -> list[int]:
        """The numbers of the pages that hold one of these entries."""
        found = (page for page in map(self._page_of, sorted(entry_ids)) if page is not None)
        return list(dict.fromkeys(page.number for page in found))

    @property
    def page_count(self) -> int:
        """How many pages there are."""
        return self._newest().number

    def rewrite(
        self, change: Callable[[JournalEntry], JournalEntry], pages: Iterable[int]
    ) -> list[JournalEntry]:
        """Replace each entry of these pages by what `change` returns; returns the new ones.

        The entries keep their ids and places. Nothing is indexed.
        """
        changed: list[JournalEntry] = []
        for page in map(self._load_page, pages):
            entries = tuple(map(change, page.entries))
            if entries != page.entries:
                self._replace(replace(page, entries=entries))
                changed += [new for new in entries if new not in page.entries]
        return changed

    def consolidated(self) -> Iterator[JournalEntry]:
        """Every entry that is in semantic memory."""
        for page in self._pages_back():
            done = set(page.consolidated)
            yield from (entry for entry in page.entries if entry.id in done)

    def count(self) -> int:
        """How many entries there are."""
        page = self._newest()
        return (page.number - 1) * PAGE_ENTRIES + len(page.entries)

    def store_complete(self) -> None:
        """Store the newest page with complete entries, if there is one."""
        if self.store.get(JOURNAL) is not None:
            self._save(self._newest())

    def _newest(self) -> Page:
        stamp = self.store.stamp(JOURNAL)
        if self._page is None or stamp is not self._stamp:
            raw, known = self._without_doubles(self.store.get(JOURNAL)), self._page
            self._page, self._stamp = self._placed(raw), stamp
            self._report_changes(self._page, known, _entries_in(raw))
        return self._page

    def _placed(self, raw: object) -> Page:
        """The newest page, complete and numbered after all stored ones."""
        keys, kept = self.store.keys(PAGES), as_dict(raw)
        page = Page.from_dict(raw, next_number(keys), utc_iso(self._now()))
        if isinstance(kept.get("open_pages"), list) and kept.get("page") == page.number:
            return page
        waiting = [number for number in page_numbers(keys) if self._stored(number).waiting]
        return replace(page, open_pages=tuple(waiting))

    def _without_doubles(self, raw: object) -> object:
        """The newest page without entries of a stored page, as after putting back an older copy."""
        held = as_dict(raw)
        number = held.get("page")
        if not isinstance(number, int) or number not in page_numbers(self.store.keys(PAGES)):
            return raw
        there = [entry.to_dict() for entry in self._stored(number).entries]
        return {**held, "entries": [entry for entry in _entries_in(raw) if entry not in there]}

    def _stored(self, number: int) -> Page:
        raw = self.store.get(page_key(number), category=PAGES)
        return Page.from_dict(raw, number, utc_iso(self._now()))

    def _report_changes(self, page: Page, known: Page | None, raw: list[Any]) -> None:
        """Report entries that somebody wrote into the page, changed there or removed."""
        held = {entry.id: entry for entry in known.entries} if known else {}
        for entry, stored in zip(page.entries, raw, strict=True):
            before = held.get(entry.id)
            if before is not None and before != entry:
                self._on_change(entry)
            elif before is None and (held or stored != entry.to_dict()):
                self._on_add(entry)
        for entry_id in held.keys() - {entry.id for entry in page.entries}:
            if self.get(entry_id, MOST_READ) is None:
                self._on_change(replace(held[entry_id], withdrawn=True))

    def _turn(self, page: Page) -> Page:
        """Store a full page and begin the next."""
        # Pages may have been put in by hand.
        page = self._placed(page.to_dict())
        self.store.set(page_key(page.number), page.to_dict(), category=PAGES)
        also_open = (page.number,) if page.waiting else ()
        return Page(page.number + 1, open_pages=(*page.open_pages, *also_open))

    def _save(self, page: Page) -> None:
        self.store.set(JOURNAL, page.to_dict())
        self._page, self._stamp = page, self.store.stamp(JOURNAL)

    def _open_pages(self) -> list[int]:
        page = self._newest()
        return [*page.open_pages, page.number]

    def _load_page(self, number: int) -> Page:
        if number == self._newest().number:
            return self._newest()
        self._pages_read += 1
        return self._stored(number)

    def _replace(self, page: Page) -> None:
        """Store a changed page; one with nothing left to consolidate is no longer open."""
        newest = self._newest()
        if page.number == newest.number:
            self._save(page)
            return
        self.store.set(page_key(page.number), page.to_dict(), category=PAGES)
        if page.number in newest.open_pages and not page.waiting:
            still_open = (number for number in newest.open_pages if number != page.number)
            self._save(replace(newest, open_pages=tuple(still_open)))

    def _pages_back(self) -> Iterator[Page]:
        yield from map(self._load_page, range(self._newest().number, 0, -1))


def _time_key(entry_id: str) -> str | None:
    """The part of an id that sorts by time; None of ids that were made elsewhere."""
    key = entry_id[-ID_CHARS:]
    is_ours = len(entry_id) > ID_CHARS and key.isalnum() and key[0].isdigit()
    return key if is_ours else None
