"""The journal: the newest page in one Attribute, older pages in Attributes of their own.

An append rewrites one page of at most 50 entries, so that it costs the same at 100 and at
100,000 entries. Each page names those of its entries that are in semantic memory.

A page's number is that of its key; the newest page stands behind all that are stored. What a hand
wrote as a number is not gone by, so that no page is hidden or written over.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, islice
from math import isfinite
from typing import Any

from evennia_ai.history.audience import normalised
from evennia_ai.history.messages import SCHEMA_VERSION, new_id, utc_iso
from evennia_ai.history.pages import next_number, page_key, page_numbers
from evennia_ai.protocol import Store
from evennia_ai.rag_memory.recalled import DERIVED_SOURCES

JOURNAL, PAGES = "journal", "ai_journal"
PAGE_ENTRIES = 50
# Older pages that a search reads at most to learn how much its hits weigh, and entries of which
# that is kept.
MOST_READ, MOST_WEIGHED = 20, 20_000
# Begins the part of an id by which entries are known that somebody wrote by hand.
BY_HAND = "h"
# Such a part as older versions made it, mostly with a digit first, as times have it.
HEX = re.compile(r"[0-9a-f]+")
# Characters of an id behind its prefix (`history.messages.IdSource`).
ID_CHARS = 15
_TEXTS = ("id", "timestamp", "content", "source_type", "audience")
_LISTS = ("tags", "entities", "source_message_ids")
Entry = dict[str, Any]
Page = dict[str, Any]


class JournalHandler:
    """Reads and writes one assistant's journal.

    Args:
        store: Where the character's values are kept.
        now: Clock, seconds since the epoch.
        on_add: Called with each entry once it is certain that it stays stored.
        on_change: Called with an entry of the newest page that somebody changed by hand, or took
            out: that one is marked as withdrawn.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        on_add: Callable[[Entry], Any] = lambda entry: None,
        on_change: Callable[[Entry], Any] = lambda entry: None,
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

    def add(self, content: str, **fields: Any) -> Entry:
        """Append an entry.

        Args:
            content: What to keep.
            **fields: `id`, `importance` (1 to 10), `source_type`, `tags`, `entities`,
                `source_message_ids`, `audience`, `timestamp`.

        Returns:
            The entry as stored.
        """
        entry = self._entry(content, fields)
        page = self._newest()
        if len(page["entries"]) >= PAGE_ENTRIES:
            with self.store.transaction():
                self._append(self._turn(page), entry)
        else:
            self._append(page, entry)
        self.store.on_commit(lambda: self._on_add(entry))
        return entry

    def _append(self, page: Page, entry: Entry) -> None:
        self._save({**page, "entries": [*page["entries"], entry]})

    def recent(self, limit: int = 50) -> tuple[Entry, ...]:
        """The newest entries, oldest first."""
        found: list[Entry] = []
        for page in self._pages_back():
            found += page["entries"][::-1]
            if len(found) >= limit:
                break
        return tuple(found[:limit][::-1])

    def stretch(self, start: int, stop: int) -> tuple[Entry, ...]:
        """The entries from one place to before another, newest first; reads only their pages.

        Places are counted as in `count`: a page that lost entries keeps its places.
        """
        newest, found = self._newest(), list[Entry]()
        end = len(newest["entries"])
        for number in range(newest["page"], 0, -1):
            begin = end - (end if number == newest["page"] else PAGE_ENTRIES)
            if end > start:
                entries = self._load_page(number)["entries"][::-1]
                found += entries[max(0, start - begin) : stop - begin if stop < end else None]
            if end >= stop:
                break
            end += PAGE_ENTRIES
        return tuple(found)

    def importance_of(self, entry_ids: Collection[str]) -> dict[str, int]:
        """The importance, 1 to 10, of these entries by id, as far as it is known by now.

        It is asked at every search: at most `MOST_READ` older pages are read for it, and what
        they hold is kept for the next; so is what was not found in as many.
        """
        self._learn(self._newest())
        before = self._pages_read
        for entry_id in entry_ids:
            left = MOST_READ - (self._pages_read - before)
            if left > 0 and entry_id not in self._weights and entry_id not in self._unweighed:
                page = self._page_of(entry_id, left)
                self._learn(page)
                if page is None and left == MOST_READ:
                    self._unweighed.add(entry_id)
        return {each: self._weights[each] for each in entry_ids if each in self._weights}

    def _learn(self, page: Page | None) -> None:
        if len(self._weights) + len(self._unweighed) > MOST_WEIGHED:
            self._weights.clear()
            self._unweighed.clear()
        entries = page["entries"] if page else ()
        self._weights.update((entry["id"], entry["importance"]) for entry in entries)

    def all(self) -> Iterator[Entry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""
        for page in self._pages_back():
            yield from page["entries"]

    def oldest(self) -> tuple[Entry, ...]:
        """The entries of the oldest page, oldest first."""
        return tuple(self._load_page(1)["entries"])

    def get(self, entry_id: str, most_read: int | None = None) -> Entry | None:
        """One entry by its id, or None; looks at a few pages only, as ids sort by time.

        Args:
            entry_id: The id.
            most_read: Pages that are looked at, at most, for an id that tells no time, as one
                written by hand. All by default.
        """
        page = self._page_of(entry_id, most_read)
        found = (entry for entry in page["entries"] if entry["id"] == entry_id) if page else ()
        return next(iter(found), None)

    def _page_of(self, entry_id: str, most_read: int | None = None) -> Page | None:
        """The page that holds an entry, of the first so many it may be in."""
        key = _time_key(entry_id)
        if key is None:
            pages = self._pages_back()
        elif HEX.fullmatch(key):  # of an older version: written by hand, its time is not known
            pages = chain(self._pages_near(key), self._pages_back())
        else:
            pages = self._pages_near(key)
        tried = islice(pages, most_read)
        held = (page for page in tried if any(e["id"] == entry_id for e in page["entries"]))
        return next(held, None)

    def _pages_near(self, key: str) -> Iterator[Page]:
        """The page an id of this time belongs to, and those beside it."""
        low, high = 1, self._newest()["page"]
        while low < high:
            middle = (low + high + 1) // 2
            first = self._first_key(middle)
            if first is None:  # put in by hand: no order to go by
                yield from self._pages_back()
                return
            low, high = (middle, high) if first <= key else (low, middle - 1)
        for number in (low, low + 1, low + 2, low - 1):
            if 1 <= number <= self._newest()["page"]:
                yield self._load_page(number)

    def _first_key(self, number: int) -> str | None:
        """The time key of a page's first entry; read once, until the page is replaced."""
        stamp = self.store.stamp(page_key(number), PAGES)
        known, key = self._first_keys.get(number, (None, None))
        if stamp is None or known is not stamp:
            entries = self._load_page(number)["entries"]
            key = _time_key(entries[0]["id"]) if entries else None
            self._first_keys[number] = (stamp, key)
        return key

    def unconsolidated(self, limit: int = 200) -> tuple[Entry, ...]:
        """Oldest entries not yet in semantic memory; syntheses and recalled text never are."""
        found: list[Entry] = []
        for number in self._open_pages():
            page = self._load_page(number)
            done = set(page["consolidated_entry_ids"])
            found += [e for e in page["entries"] if e["id"] not in done and _consolidates(e)]
            if len(found) >= limit:
                break
        return tuple(found[:limit])

    def mark_consolidated(self, entry_ids: Iterable[str]) -> int:
        """Record that entries are in semantic memory; returns how many were newly marked."""
        wanted, marked = set(entry_ids), 0
        with self.store.transaction():
            for number in self._open_pages():
                if not wanted:  # a backlog has many more pages
                    break
                page = self._load_page(number)
                done = page["consolidated_entry_ids"]
                here = [e["id"] for e in page["entries"] if e["id"] in wanted]
                wanted.difference_update(here)
                if new := [each for each in here if each not in done]:
                    marked += len(new)
                    self._store_page(number, {**page, "consolidated_entry_ids": [*done, *new]})
        return marked

    def withdraw(self, entry_ids: Iterable[str]) -> int:
        """Mark entries as withdrawn: kept, but neither found nor consolidated any more."""
        wanted, marked = set(entry_ids), 0
        found = [page for page in map(self._page_of, sorted(wanted)) if page is not None]
        for page in {page["page"]: page for page in found}.values():
            hit = [e["id"] in wanted for e in page["entries"]]
            if any(hit):
                marked += sum(hit)
                entries = [
                    {**e, "withdrawn": True} if e["id"] in wanted else e for e in page["entries"]
                ]
                self._replace_page({**page, "entries": entries})
        return marked

    def _replace_page(self, page: Page) -> None:
        if page["page"] == self._newest()["page"]:
            self._save(page)
        else:
            self.store.set(page_key(page["page"]), page, category=PAGES)

    def consolidated(self) -> Iterator[Entry]:
        """Every entry that is marked as being in semantic memory."""
        for page in self._pages_back():
            done = set(page["consolidated_entry_ids"])
            yield from (entry for entry in page["entries"] if entry["id"] in done)

    def count(self) -> int:
        """How many entries there are in all pages."""
        page = self._newest()
        return (page["page"] - 1) * PAGE_ENTRIES + len(page["entries"])

    def _entry(self, content: str, fields: Mapping[str, Any]) -> Entry:
        given = fields.get("importance")
        importance = given if isinstance(given, int | float) and isfinite(given) else 5
        return {
            "id": fields.get("id") or new_id("e"),
            "timestamp": fields.get("timestamp") or utc_iso(self._now()),
            "content": str(content),
            "importance": min(10, max(1, int(importance))),
            "source_type": fields.get("source_type") or "assistant",
            **{key: list(map(str, _as_list(fields.get(key)))) for key in _LISTS},
            "audience": normalised(fields.get("audience")),
        }

    def newest_page(self) -> Page:
        """The newest page, complete, as it is stored."""
        return self._newest()

    def _newest(self) -> Page:
        stamp = self.store.stamp(JOURNAL)
        if self._page is None or stamp is not self._stamp:
            raw, known = self._without_doubles(self.store.get(JOURNAL)), self._page
            self._page, self._stamp = self._placed(raw), stamp
            self._tell_of(self._page, known, _items(raw))
        return self._page

    def _placed(self, raw: Any) -> Page:
        """The newest page made whole and numbered behind all that are stored."""
        keys = self.store.keys(PAGES)
        page = self._completed(raw, next_number(keys))
        kept = raw if isinstance(raw, Mapping) else {}
        is_known = isinstance(kept.get("open_pages"), list) and kept.get("page") == page["page"]
        return page if is_known else {**page, "open_pages": self._open_among(page_numbers(keys))}

    def _without_doubles(self, raw: Any) -> Any:
        """What the newest page holds, without what stands on a stored page of its number.

        So it is where somebody put back an older copy of it.
        """
        number = raw.get("page") if isinstance(raw, Mapping) else None
        if not isinstance(number, int) or number not in page_numbers(self.store.keys(PAGES)):
            return raw
        there = self._stored(number)["entries"]
        return {**raw, "entries": [entry for entry in _items(raw) if entry not in there]}

    def _stored(self, number: int) -> Page:
        return self._completed(self.store.get(page_key(number), category=PAGES), number)

    def _open_among(self, numbers: Iterable[int]) -> list[int]:
        """Those of these older pages that hold entries for semantic memory; reads them all."""
        return [number for number in numbers if self._is_open(self._stored(number))]

    def _tell_of(self, page: Page, known: Page | None, raw: list[Any]) -> None:
        """Tell of entries that somebody wrote into the page, changed there or took out."""
        held = {entry["id"]: entry for entry in known["entries"]} if known else {}
        for entry, stored in zip(page["entries"], raw, strict=True):
            before = held.get(entry["id"])
            if before is not None and before != entry:
                self._on_change(entry)
            elif before is None and (stored != entry or held):
                self._on_add(entry)
        for entry_id in held.keys() - {entry["id"] for entry in page["entries"]}:
            if self.get(entry_id, MOST_READ) is None:
                self._on_change({**held[entry_id], "withdrawn": True})

    def _completed(self, raw: Any, number: int) -> Page:
        """A page of this number, as it is stored, made whole; entries get what they lack."""
        raw = raw if isinstance(raw, Mapping) else {"entries": raw}
        return {
            "version": SCHEMA_VERSION,
            "page": number,
            "open_pages": [n for n in _as_list(raw.get("open_pages")) if isinstance(n, int)],
            "entries": [self._adopted(entry) for entry in _items(raw)],
            "consolidated_entry_ids": list(map(str, _as_list(raw.get("consolidated_entry_ids")))),
        }

    def _adopted(self, raw: Any) -> Entry:
        """A stored entry as it is if it is whole, else with what it lacks."""
        entry = raw if isinstance(raw, Mapping) else {"content": raw}
        whole = all(isinstance(entry.get(key), str) for key in _TEXTS)
        whole = whole and all(isinstance(entry.get(key), list) for key in _LISTS)
        if whole and isinstance(entry.get("importance"), int):
            return dict(entry)
        content = str(entry.get("content") or "")
        texts = {key: str(entry[key]) for key in _TEXTS if entry.get(key)}
        # The same id at every reading, or it would be taken for a new entry each time.
        digest = sha256(content.encode("utf-8", "replace")).hexdigest()
        texts.setdefault("id", f"e{BY_HAND}{digest}"[: 1 + ID_CHARS])
        return {**entry, **self._entry(content, {**entry, **texts})}

    def _turn(self, page: Page) -> Page:
        """Store a full page behind those that are stored and begin the next."""
        page = self._placed(page)  # pages may have been put in by hand
        number = page["page"]
        still_open = [*page["open_pages"], number] if self._is_open(page) else page["open_pages"]
        self.store.set(page_key(number), page, category=PAGES)
        return {**self._completed(None, number + 1), "open_pages": still_open}

    @staticmethod
    def _is_open(page: Page) -> bool:
        done = set(page["consolidated_entry_ids"])
        return any(e["id"] not in done and _consolidates(e) for e in page["entries"])

    def _save(self, page: Page) -> None:
        self.store.set(JOURNAL, page)
        self._page, self._stamp = page, self.store.stamp(JOURNAL)

    def _open_pages(self) -> list[int]:
        page = self._newest()
        return [*page["open_pages"], page["page"]]

    def _load_page(self, number: int) -> Page:
        newest = self._newest()
        if number == newest["page"]:
            return newest
        self._pages_read += 1
        return self._stored(number)

    def _store_page(self, number: int, page: Page) -> None:
        newest = self._newest()
        if number == newest["page"]:
            self._save({**newest, "consolidated_entry_ids": page["consolidated_entry_ids"]})
            return
        self.store.set(page_key(number), page, category=PAGES)
        if not self._is_open(page):
            pages = [n for n in newest["open_pages"] if n != number]
            self._save({**newest, "open_pages": pages})

    def _pages_back(self) -> Iterator[Page]:
        newest = self._newest()
        yield newest
        for number in range(newest["page"] - 1, 0, -1):
            yield self._load_page(number)


def _as_list(value: Any) -> list[Any]:
    """A stored value as a list: one as it is, a single text or mapping as its only item."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return [value] if isinstance(value, str | Mapping) and value else []


def _items(raw: Any) -> list[Any]:
    """What a stored page holds as entries."""
    return _as_list(raw.get("entries") if isinstance(raw, Mapping) else raw)


def _consolidates(entry: Mapping[str, Any]) -> bool:
    return entry.get("source_type") not in DERIVED_SOURCES and not entry.get("withdrawn")


def _time_key(entry_id: str) -> str | None:
    """The part of an id that sorts by time; None of ids that were made elsewhere."""
    key = entry_id[-ID_CHARS:]
    ours = len(entry_id) > ID_CHARS and key.isalnum() and key[0].isdigit()
    return key if ours else None
