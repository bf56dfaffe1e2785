"""The ledger of one assistant, in one Attribute of the script."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evennia_ai.core import ledger
from evennia_ai.core.ledger import Entry, LedgerError
from evennia_ai.core.messages import SCHEMA_VERSION, new_id
from evennia_ai.handlers.store import Store

LEDGER, CATEGORY = "ledger", "ai_ledger"


class LedgerHandler:
    """Reads and writes the ledger.

    Args:
        store: Where the script's values are kept.
        now: Clock, seconds since the epoch.
    """

    def __init__(self, store: Store, now: Callable[[], float] = time.time):
        self.store = store
        self._now = now
        self._stamp: object = None
        self._entries: tuple[Entry, ...] | None = None

    def entries(self) -> tuple[Entry, ...]:
        """Every note ever taken, oldest first. Treat them as immutable."""
        stamp = self.store.stamp(LEDGER, CATEGORY)
        if self._entries is None or stamp is not self._stamp:
            value = self.store.get(LEDGER, category=CATEGORY)
            stored = value.get("entries") if isinstance(value, Mapping) else value
            self._entries = ledger.sound_entries(stored)
            self._stamp = stamp
        return self._entries

    def shown(self, audience: str) -> tuple[Entry, ...]:
        """The approved notes a turn for an audience may see, as they are to be shown."""
        return ledger.shown_to(self.entries(), audience)

    def add(self, text: str, by: Mapping[str, str], *, state: str, **fields: Any) -> Entry:
        """Take a note; one of the same words by the same person is not taken twice.

        Args:
            text: The note.
            by: Who gives it: `key` and stable `id`.
            state: ``proposed`` or ``approved``.
            **fields: As for `core.ledger.new_entry`.

        Returns:
            The entry, or the one that says the same already.

        Raises:
            LedgerError: If it cannot be taken.
        """
        known = ledger.same_note(self.entries(), text, by["id"])
        if known is not None:
            return known
        entry = ledger.new_entry(text, new_id("l"), self._now(), by, state=state, **fields)
        given = [e for e in ledger.living_of(self.entries(), by["id"]) if e["by"]["id"] == by["id"]]
        if len(given) >= ledger.NOTES_A_PERSON:
            raise LedgerError(
                f"{by['key']} has {len(given)} notes already; withdraw one to make room."
            )
        self._save([*self._without_outdated(entry), entry])
        return entry

    def change(self, entry_id: str, state: str, by: Mapping[str, str]) -> Entry:
        """Approve or withdraw a note.

        Args:
            entry_id: Its id.
            state: What it becomes.
            by: Who decides: `key` and stable `id`.

        Raises:
            LedgerError: If there is none of that id, or it cannot become that.
        """
        entry = ledger.moved(self.get(entry_id), state, self._now(), by)
        others = self._without_outdated(entry)
        self._save([entry if old["id"] == entry["id"] else old for old in others])
        return entry

    def get(self, entry_id: str) -> Entry:
        """A note by its id.

        Raises:
            LedgerError: If there is none.
        """
        for entry in self.entries():
            if entry["id"] == entry_id:
                return entry
        raise LedgerError(f"There is no note `{entry_id}`.")

    def _without_outdated(self, entry: Entry) -> list[Entry]:
        """All entries, those marked that an approved one takes the place of."""
        everything = list(self.entries())
        if entry["state"] != ledger.APPROVED:
            return everything
        old = {e["id"]: e for e in ledger.outdated_by(entry, everything)}
        for outdated in old.values():
            done = ledger.moved(outdated, ledger.SUPERSEDED, self._now(), entry["by"])
            old[outdated["id"]] = {**done, "superseded_by": entry["id"]}
        return [old.get(e["id"], e) for e in everything]

    def _save(self, entries: Iterable[Entry]) -> None:
        kept = tuple(entries)
        value = {"version": SCHEMA_VERSION, "entries": list(kept)}
        self.store.set(LEDGER, value, category=CATEGORY)
        self._entries, self._stamp = kept, self.store.stamp(LEDGER, CATEGORY)
