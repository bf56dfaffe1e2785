"""The ledger of one assistant: living notes in one Attribute, closed ones in pages of their own.

A change rewrites the living notes (each person has a bounded number) and at most the newest page of
closed ones.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from evennia_ai.history.messages import Speaker, new_id
from evennia_ai.history.pages import Cache, Pages
from evennia_ai.history.records import as_dict
from evennia_ai.history.stored import each_readable
from evennia_ai.protocol import Store
from evennia_ai.rag_memory import ledger
from evennia_ai.rag_memory.ledger import APPROVED, LedgerError, LedgerFullError, Note

LEDGER, CATEGORY, PAGES = "ledger", "ai_ledger", "ai_ledger_closed"
PAGE_ENTRIES = 50

Notes = tuple[Note, ...]


def _notes(raw: object, odd: list[object]) -> Notes:
    return tuple(each_readable(as_dict(raw).get("entries"), Note.from_dict, odd))


def _stored(notes: Notes) -> dict[str, Any]:
    return {"entries": [note.to_dict() for note in notes]}


class LedgerHandler:
    """Reads and writes the ledger in the script's store; `now` gives seconds since the epoch."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time):
        self.store = store
        self._now = now
        self._living = Cache(store, CATEGORY, lambda key, raw, odd: _notes(raw, odd), _stored)
        self._closed = Pages(store, PAGES, _notes, _stored)

    def entries(self) -> Notes:
        """The living notes, oldest first. Treat them as immutable."""
        return self._living.get(LEDGER) or ()

    def closed(self) -> Iterator[Note]:
        """Superseded and withdrawn notes, the last closed first; loads a page at a time."""
        for _, notes in self._closed.back():
            yield from reversed(notes)

    def closed_count(self) -> int:
        """How many notes are closed."""
        return sum(1 for _ in self.closed())

    def everything(self) -> list[Note]:
        """Every note ever added, oldest first."""
        return sorted([*self.closed(), *self.entries()], key=_by_time)

    def shown(self, audience: str) -> tuple[Note, ...]:
        """As `rag_memory.ledger.shown_to`."""
        return ledger.shown_to(self.entries(), audience)

    def add(self, text: str, by: Speaker, *, state: str, **fields: Any) -> Note:
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
            raise LedgerFullError(
                f"{by.key} has {len(own)} notes already; withdraw one to make room."
            )
        self._save([*others, note])
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
        before, closed = self.entries(), [*self.closed()][::-1]
        living = tuple(note for note in before if not is_gone(note))
        kept = [note for note in closed if not is_gone(note)]
        count = len(before) + len(closed) - len(living) - len(kept)
        if count:
            with self.store.transaction():
                for key, _ in [*self._closed.back()]:
                    self.store.delete(key, category=PAGES)
                self._append_closed(kept)
                self._living.set(LEDGER, living)
        return count

    def get(self, note_id: str) -> Note:
        """A note by its id; `LedgerError` if there is none."""
        note = next((n for n in chain(self.entries(), self.closed()) if n.id == note_id), None)
        if note is None:
            raise LedgerError(f"There is no note `{note_id}`.")
        return note

    def _save(self, notes: Sequence[Note]) -> None:
        """Store the notes, the closed ones in pages."""
        with self.store.transaction():
            self._append_closed([note for note in notes if not note.is_living])
            self._living.set(LEDGER, tuple(note for note in notes if note.is_living))

    def _append_closed(self, notes: Sequence[Note]) -> None:
        """Write closed notes into the newest page, and what it has no room for into new ones."""
        key, newest = next(self._closed.back(), ("", ()))
        if key and notes and (room := PAGE_ENTRIES - len(newest)) > 0:
            self._closed.set(key, (*newest, *notes[:room]))
            notes = notes[room:]
        for start in range(0, len(notes), PAGE_ENTRIES):
            self._closed.add(tuple(notes[start : start + PAGE_ENTRIES]))


def _by_time(note: Note) -> tuple[str, str]:
    return note.at, note.id
