"""The ledger of one assistant: living notes in one Attribute, closed ones in pages of their own.

A change rewrites the living notes (each person has a bounded number) and at most the newest page of
closed ones.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Unpack

from evennia_ai.history.messages import Speaker, new_id, utc_iso
from evennia_ai.history.records import as_dict, next_number, page_key, page_numbers
from evennia_ai.protocol import Store
from evennia_ai.rag_memory import ledger
from evennia_ai.rag_memory.ledger import APPROVED, LedgerError, Note, NoteFields, notes_in

LEDGER, CATEGORY, PAGES = "ledger", "ai_ledger", "ai_ledger_closed"
# Of what is stored: 1 held closed notes among the living.
VERSION = 2
PAGE_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The Attribute of the living notes, repaired.

    Args:
        entries: The living notes, oldest first.
        leaving: Closed notes that are still among them.
        pages: Keys of the pages of closed notes, oldest first.
        day: The day of the newest note, as ``2026-01-31``.
        counts: How many notes each person added on it, by stable id.
    """

    entries: tuple[Note, ...]
    leaving: tuple[Note, ...]
    pages: tuple[str, ...]
    day: str
    counts: Mapping[str, int]

    @classmethod
    def from_dict(cls, value: object, pages: tuple[str, ...]) -> "LedgerState":
        """From a stored value, repaired where somebody wrote it by hand."""
        held = value if isinstance(value, Mapping) else {"entries": value}
        entries = notes_in(held.get("entries"))
        return cls(
            tuple(note for note in entries if note.is_living),
            tuple(note for note in entries if not note.is_living),
            pages,
            str(held.get("day") or ""),
            {str(who): n for who, n in as_dict(held.get("given")).items() if isinstance(n, int)},
        )

    def to_dict(self) -> dict[str, Any]:
        """What is stored in the Attribute: all but the closed notes and their pages."""
        entries = [note.to_dict() for note in self.entries]
        return {"version": VERSION, "entries": entries, "day": self.day, "given": dict(self.counts)}


class LedgerHandler:
    """Reads and writes the ledger in the script's store; `now` gives seconds since the epoch."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time):
        self.store = store
        self._now = now
        self._stamp: object = None
        self._state: LedgerState | None = None

    def entries(self) -> tuple[Note, ...]:
        """The living notes, oldest first. Treat them as immutable."""
        return self._load().entries

    def closed(self) -> Iterator[Note]:
        """Superseded and withdrawn notes, the last closed first; loads a page at a time."""
        state = self._load()
        yield from reversed(state.leaving)
        for key in reversed(state.pages):
            yield from reversed(self._page(key)[0])

    def closed_count(self) -> int:
        """How many notes are closed."""
        state = self._load()
        newest = sum(len(self._page(key)[0]) for key in state.pages[-1:])
        return len(state.leaving) + len(state.pages[:-1]) * PAGE_ENTRIES + newest

    def everything(self) -> list[Note]:
        """Every note ever added, oldest first."""
        return sorted([*self.closed(), *self.entries()], key=_by_time)

    def shown(self, audience: str) -> tuple[Note, ...]:
        """As `rag_memory.ledger.shown_to`."""
        return ledger.shown_to(self.entries(), audience)

    def add(self, text: str, by: Speaker, *, state: str, **fields: Unpack[NoteFields]) -> Note:
        """Add a note; arguments and errors are those of `rag_memory.ledger.new_note`.

        Returns the note, with the ids of those it `replaces`, or a known one of the same words,
        author and audience. `LedgerError` if its author has too many.
        """
        now = self._now()
        note = ledger.new_note(text, new_id("l"), now, by, state=state, **fields)
        known = ledger.same_note(self.entries(), text, by.id, note.audience)
        if known is not None:
            return known
        note, others = ledger.replacing(note, self.entries(), now)
        own = [each for each in others if each.is_living and each.by.id == by.id]
        if len(own) >= ledger.NOTES_A_PERSON:
            raise LedgerError(f"{by.key} has {len(own)} notes already; withdraw one to make room.")
        before, day = self._load(), utc_iso(now)[:10]
        counts = dict(before.counts) if before.day == day else {}
        counts[by.id] = counts.get(by.id, 0) + 1
        if counts[by.id] > ledger.NOTES_A_DAY:
            raise LedgerError(
                f"{by.key} gave {ledger.NOTES_A_DAY} notes today, the most in a day. "
                "The next can be given tomorrow (UTC)."
            )
        self._save([*others, note], (day, counts))
        return note

    def change(self, note_id: str, state: str, by: Speaker) -> Note:
        """Approve or withdraw a note, as `by` decided; `LedgerError` if that cannot be."""
        now = self._now()
        note = ledger.moved(self.get(note_id), state, now, by)
        others = list(self.entries())
        if state == APPROVED:
            note, others = ledger.replacing(note, others, now)
        left = [old for old in others if old.id != note_id]
        self._save(sorted([*left, note], key=_by_time))
        return note

    def forget(self, is_gone: Callable[[Note], bool]) -> int:
        """Delete notes, living and closed; returns how many."""
        state = self._load()
        paged = [note for key in state.pages for note in self._page(key)[0]]
        kept = [note for note in (*paged, *state.leaving) if not is_gone(note)]
        living = tuple(note for note in state.entries if not is_gone(note))
        gone = len(paged) + len(state.leaving) + len(state.entries) - len(kept) - len(living)
        if gone:
            with self.store.transaction():
                for key in state.pages:
                    self.store.delete(key, category=PAGES)
                pages = self._append_closed(kept)
                after = LedgerState(living, (), pages, state.day, state.counts)
                self.store.set(LEDGER, after.to_dict(), category=CATEGORY)
            self._state, self._stamp = after, self.store.stamp(LEDGER, CATEGORY)
        return gone

    def get(self, note_id: str) -> Note:
        """A note by its id; `LedgerError` if there is none."""
        for note in chain(self.entries(), self.closed()):
            if note.id == note_id:
                return note
        raise LedgerError(f"There is no note `{note_id}`.")

    def page_closed(self) -> None:
        """Move closed notes from among the living into their pages."""
        if self.store.get(LEDGER, category=CATEGORY) is not None:
            self._save(self.entries())

    def _load(self) -> LedgerState:
        stamp = self.store.stamp(LEDGER, CATEGORY)
        if self._state is None or stamp is not self._stamp:
            value = self.store.get(LEDGER, category=CATEGORY)
            self._state, self._stamp = LedgerState.from_dict(value, self._pages()), stamp
        return self._state

    def _pages(self) -> tuple[str, ...]:
        """Keys of the stored pages of closed notes, oldest first."""
        return tuple(map(page_key, page_numbers(self.store.keys(PAGES))))

    def _save(
        self, entries: Iterable[Note], counted: tuple[str, Mapping[str, int]] | None = None
    ) -> None:
        """Store the notes, the closed ones in pages; `counted` where a note was added."""
        before, everything = self._load(), list(entries)
        living = tuple(note for note in everything if note.is_living)
        closed = [note for note in everything if not note.is_living]
        day, counts = counted or (before.day, before.counts)
        with self.store.transaction():
            leaving = [*before.leaving, *closed]
            pages = self._append_closed(leaving) if leaving else before.pages
            after = LedgerState(living, (), pages, day, counts)
            self.store.set(LEDGER, after.to_dict(), category=CATEGORY)
        self._state, self._stamp = after, self.store.stamp(LEDGER, CATEGORY)

    def _append_closed(self, entries: list[Note]) -> tuple[str, ...]:
        """Write closed notes into the last page, if it holds only notes, and new ones."""
        rest, pages = list(entries), self._pages()
        while rest:
            held, is_sound = self._page(pages[-1]) if pages else ((), False)
            if not is_sound or len(held) >= PAGE_ENTRIES:
                held, pages = (), (*pages, page_key(next_number(pages)))
            room = PAGE_ENTRIES - len(held)
            listed = [note.to_dict() for note in (*held, *rest[:room])]
            self.store.set(pages[-1], {"version": VERSION, "entries": listed}, category=PAGES)
            rest = rest[room:]
        return pages

    def _page(self, key: str) -> tuple[tuple[Note, ...], bool]:
        """The notes of a page, the first closed first, and whether it holds nothing else."""
        value = self.store.get(key, category=PAGES)
        listed = value.get("entries") if isinstance(value, Mapping) else value
        notes = notes_in(listed)
        return notes, isinstance(listed, list | tuple) and len(listed) == len(notes)


def _by_time(note: Note) -> tuple[str, str]:
    return note.at, note.id
