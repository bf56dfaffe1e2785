"""The journal: the newest page in one Attribute, older pages in Attributes of their own.

An append rewrites one page of at most 50 entries, so that it costs the same at 100 and at
100,000 entries. Each page names those of its entries that are in semantic memory.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any

from evennia_ai.core.audience import normalised
from evennia_ai.core.messages import SCHEMA_VERSION, new_id, utc_iso
from evennia_ai.core.recalled import DERIVED_SOURCES
from evennia_ai.handlers.store import Store

JOURNAL, PAGES = "journal", "ai_journal"
PAGE_ENTRIES = 50
# Newest entries whose importance is looked up for a search: two pages.
WEIGHED = 2 * PAGE_ENTRIES
# Characters of an id behind its prefix (`core.messages.IdSource`).
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
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        on_add: Callable[[Entry], None] = lambda entry: None,
    ):
        self.store = store
        self._now = now
        self._on_add = on_add
        self._stamp: object = None
        self._page: Page | None = None

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
            found = [*page["entries"], *found]
            if len(found) >= limit:
                break
        return tuple(found[-limit:])

    def importance_of(self, entry_ids: Collection[str]) -> dict[str, int]:
        """The importance, 1 to 10, of those of these entries that are among the newest, by id.

        Only among those, as it is asked at every search.
        """
        newest = self.recent(WEIGHED)
        return {entry["id"]: entry["importance"] for entry in newest if entry["id"] in entry_ids}

    def all(self) -> Iterator[Entry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""
        for page in self._pages_back():
            yield from page["entries"]

    def oldest(self) -> tuple[Entry, ...]:
        """The entries of the oldest page, oldest first."""
        return tuple(self._load_page(1)["entries"])

    def get(self, entry_id: str) -> Entry | None:
        """One entry by its id, or None; looks at a few pages only, as ids sort by time."""
        page = self._page_of(entry_id)
        found = (entry for entry in page["entries"] if entry["id"] == entry_id) if page else ()
        return next(iter(found), None)

    def _page_of(self, entry_id: str) -> Page | None:
        """The page that holds an entry."""
        key = _time_key(entry_id)
        pages = self._pages_back() if key is None else self._pages_near(key)
        held = (page for page in pages if any(e["id"] == entry_id for e in page["entries"]))
        return next(held, None)

    def _pages_near(self, key: str) -> Iterator[Page]:
        """The page an id of this time belongs to, and those beside it."""
        low, high = 1, self._newest()["page"]
        while low < high:
            middle = (low + high + 1) // 2
            entries = self._load_page(middle)["entries"]
            first = _time_key(entries[0]["id"]) if entries else None
            if first is None:  # put in by hand: no order to go by
                yield from self._pages_back()
                return
            low, high = (middle, high) if first <= key else (low, middle - 1)
        for number in (low, low + 1, low + 2, low - 1):
            if 1 <= number <= self._newest()["page"]:
                yield self._load_page(number)

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
                page = self._load_page(number)
                done = page["consolidated_entry_ids"]
                new = [e["id"] for e in page["entries"] if e["id"] in wanted - set(done)]
                if not new:
                    continue
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
            self.store.set(_page_key(page["page"]), page, category=PAGES)

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
            self._page = self._completed(self.store.get(JOURNAL))
            self._stamp = stamp
        return self._page

    def _completed(self, raw: Any) -> Page:
        """A stored page made whole; hand-written entries get what they lack."""
        raw = raw if isinstance(raw, Mapping) else {"entries": raw}
        number = raw.get("page")
        return {
            "version": SCHEMA_VERSION,
            "page": number if isinstance(number, int) and number > 0 else 1,
            "open_pages": [n for n in _as_list(raw.get("open_pages")) if isinstance(n, int)],
            "entries": [self._adopted(entry) for entry in _as_list(raw.get("entries"))],
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
        texts.setdefault("id", f"e{sha256(content.encode('utf-8', 'replace')).hexdigest()[:15]}")
        return {**entry, **self._entry(content, {**entry, **texts})}

    def _turn(self, page: Page) -> Page:
        """Store a full page under its number and begin the next."""
        number = page["page"]
        still_open = [*page["open_pages"], number] if self._is_open(page) else page["open_pages"]
        self.store.set(_page_key(number), page, category=PAGES)
        return {**self._completed(None), "page": number + 1, "open_pages": still_open}

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
        return self._completed(self.store.get(_page_key(number), category=PAGES))

    def _store_page(self, number: int, page: Page) -> None:
        newest = self._newest()
        if number == newest["page"]:
            self._save({**newest, "consolidated_entry_ids": page["consolidated_entry_ids"]})
            return
        self.store.set(_page_key(number), page, category=PAGES)
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


def _consolidates(entry: Mapping[str, Any]) -> bool:
    return entry.get("source_type") not in DERIVED_SOURCES and not entry.get("withdrawn")


def _time_key(entry_id: str) -> str | None:
    """The part of an id that sorts by time; None of ids that were made elsewhere."""
    key = entry_id[-ID_CHARS:]
    ours = len(entry_id) > ID_CHARS and key.isalnum() and key[0].isdigit()
    return key if ours else None


def _page_key(number: int) -> str:
    return f"page_{number:06d}"
