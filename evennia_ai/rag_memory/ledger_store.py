"""The ledger of one assistant: each note in an Attribute of its own."""

import time
from collections.abc import Callable
from typing import Any

from evennia_ai.history.messages import Speaker, new_id
from evennia_ai.history.pages import records
from evennia_ai.protocol import Store
from evennia_ai.rag_memory import ledger
from evennia_ai.rag_memory.ledger import APPROVED, LedgerError, LedgerFullError, Note

CATEGORY = "ai_ledger"


class LedgerHandler:
    """Reads and writes the ledger in the script's store; `now` gives seconds since the epoch."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time):
        self.store = store
        self._now = now
        self._notes = records(store, CATEGORY, Note)

    def everything(self) -> list[Note]:
        """Every note ever added, oldest first."""
        return list(self._notes.all().values())

    def entries(self) -> tuple[Note, ...]:
        """The living notes, oldest first."""
        return tuple(note for note in self.everything() if note.is_living)

    def closed(self) -> list[Note]:
        """Superseded and withdrawn notes, the last closed first."""
        notes = [note for note in self.everything() if not note.is_living]
        return sorted(notes, key=lambda note: (note.decided_at, note.id), reverse=True)

    def shown(self, audience: str) -> tuple[Note, ...]:
        """As `rag_memory.ledger.shown_to`."""
        return ledger.shown_to(self.entries(), audience)

    def add(self, text: str, by: Speaker, *, state: str, **fields: Any) -> Note:
        """Add a note; arguments and errors are those of `rag_memory.ledger.new_note`.

        Returns the note, with the ids of those it `replaces`, or a known one of the same words,
        author and audience. `LedgerError` if its author has too many.
        """
        now, notes = self._now(), self.entries()
        note = ledger.new_note(text, new_id("l"), now, by, state=state, **fields)
        known = ledger.same_note(notes, text, by.id, note.audience)
        if known is not None:
            return known
        note, closed = ledger.replacing(note, notes, now)
        if sum(each.by.id == by.id for each in notes) - len(closed) >= ledger.NOTES_A_PERSON:
            raise LedgerFullError(
                f"{by.key} has {ledger.NOTES_A_PERSON} notes already; withdraw one to make room."
            )
        self._save(note, *closed)
        return note

    def change(self, note_id: str, state: str, by: Speaker) -> Note:
        """Approve or withdraw a note, as `by` decided; `LedgerError` if that cannot be."""
        now, closed = self._now(), list[Note]()
        note = ledger.moved(self.get(note_id), state, now, by)
        if state == APPROVED:
            note, closed = ledger.replacing(note, self.entries(), now)
        self._save(note, *closed)
        return note

    def forget(self, is_gone: Callable[[Note], bool]) -> int:
        """Delete notes, living and closed; returns how many."""
        gone = [note.id for note in self.everything() if is_gone(note)]
        with self.store.transaction():
            for note_id in gone:
                self.store.delete(note_id, category=CATEGORY)
        return len(gone)

    def get(self, note_id: str) -> Note:
        """A note by its id; `LedgerError` if there is none."""
        note = self._notes.get(note_id)
        if note is None:
            raise LedgerError(f"There is no note `{note_id}`.")
        return note

    def _save(self, *notes: Note) -> None:
        with self.store.transaction():
            for note in notes:
                self._notes.set(note.id, note)
