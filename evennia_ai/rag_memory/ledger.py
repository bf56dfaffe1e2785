"""The memory ledger: notes people approved, pinned into every prompt under a cap.

A note that only its author may see, and one of staff, is approved at once; any other stays proposed
until staff approve it. Notes are never deleted, only superseded or withdrawn.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evennia_ai.errors import AssistantError, BoundError
from evennia_ai.history.audience import PUBLIC, normalised, visible
from evennia_ai.history.messages import Speaker, new_id, one_line, utc_iso
from evennia_ai.history.stored import Store, Stored, Unreadable, records
from evennia_ai.language.words import telling_words, words
from evennia_ai.recall.values import Hit

CATEGORY = "ai_ledger"  # each note is in an Attribute of its own
RULE, TASK, PREFERENCE, FACT = "rule", "task", "preference", "fact"
TYPES = (RULE, TASK, PREFERENCE, FACT)
PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN = "proposed", "approved", "superseded", "withdrawn"
STATES = (PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN)
LIVING = (PROPOSED, APPROVED)
# Long enough for two sentences; five such notes fill the default cap.
TEXT_CHARS = 300
# Most notes that a search finds.
MOST_FOUND = 3
# Living notes one person may have, so that nobody fills the ledger alone.
NOTES_A_PERSON = 30


class LedgerError(AssistantError):
    """A note cannot be added, found or changed; the text says why."""


class LedgerFullError(LedgerError, BoundError):
    """Somebody has as many notes as a person may have."""


@dataclass(frozen=True, slots=True)
class Note(Stored):
    """A note that people want pinned into every prompt."""

    id: str
    text: str  # the note, on one line
    kind: str  # one of `TYPES`
    source: str  # ``command`` or the id of the message it rests on
    about: tuple[str, ...]  # stable ids of the people it concerns
    audience: str
    state: str  # one of `STATES`, since `decided_at` (UTC ISO 8601) by `decided_by`
    at: str  # when it was written, UTC ISO 8601
    by: Speaker
    staff: bool = False  # whether staff wrote it as staff
    decided_at: str = ""
    decided_by: Speaker | None = None
    superseded_by: str = ""  # id of the note that took its place

    def check(self) -> None:
        """It has words, and its kind and state are known."""
        if not self.text or self.kind not in TYPES or self.state not in STATES:
            raise Unreadable("a note without text, or of an unknown kind or state")

    @property
    def is_living(self) -> bool:
        """Whether it is proposed or approved, not closed."""
        return self.state in LIVING


def moved(note: Note, state: str, at: float, by: Speaker) -> Note:
    """A note in another state, with who decided it and when; `LedgerError` if it cannot be."""
    if not note.is_living or state in (note.state, PROPOSED):
        raise LedgerError(f"Note `{note.id}` is {note.state}; it cannot become {state}.")
    return replace(note, state=state, decided_at=utc_iso(at), decided_by=by)


def same_note(notes: Iterable[Note], text: str, by_id: str, audience: str) -> Note | None:
    """A living note of the same person that says the same to the same people, or None."""
    said = words(text)
    for note in notes:
        is_theirs = note.is_living and note.by.id == by_id and note.audience == audience
        if is_theirs and words(note.text) == said:
            return note
    return None


def superseded(note: Note, notes: Iterable[Note], at: float) -> list[Note]:
    """The notes that a new or newly approved note closes, closed at `at`, in seconds.

    They say the same of the same author to other people: a secret closes the public note at once,
    a public note closes the secret when it is approved.
    """
    if note.state != APPROVED and note.audience == PUBLIC:
        return []
    others = (old for old in notes if old.audience != note.audience)
    same = (old for old in others if same_note([old], note.text, note.by.id, old.audience))
    return [replace(moved(o, SUPERSEDED, at, note.by), superseded_by=note.id) for o in same]


def living_of(notes: Iterable[Note], person: str) -> list[Note]:
    """The living notes by or about somebody, oldest first."""
    return [note for note in notes if note.is_living and person in (note.by.id, *note.about)]


def in_prompt_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The approved ones of some notes, in the order to show them.

    Those that staff wrote or approved come first; among these and among others rules come first,
    then the newer.
    """
    approved = [note for note in notes if note.state == APPROVED]
    approved.sort(key=lambda note: (note.at, note.id), reverse=True)
    approved.sort(key=lambda note: (not (note.staff or note.decided_by), note.kind != RULE))
    return tuple(approved)


def found_notes(notes: Iterable[Note], query: str, viewer: str) -> list[Hit]:
    """The approved notes with a telling word of a query, at most `MOST_FOUND`, best first."""
    wanted, shared = telling_words(query), list[tuple[int, str, Hit]]()
    for note in notes:
        if note.state == APPROVED and visible(note.audience, viewer):
            hit = Hit(note.id, 0.0, note.by.key, note.text, note.at, "ledger", None, note.audience)
            count = len(wanted & telling_words(hit.line))
            if count:
                shared.append((count, note.at, hit))
    shared.sort(key=lambda each: each[:2], reverse=True)
    return [hit for *_, hit in shared[:MOST_FOUND]]


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

    def add(
        self,
        text: str,
        by: Speaker,
        *,
        state: str,
        kind: str = FACT,
        source: str = "command",
        about: Iterable[str] = (),
        audience: str = PUBLIC,
        staff: bool = False,
    ) -> Note:
        """Add a note; the arguments are the fields of `Note`.

        `state` is one of `LIVING`. Returns the note, or a known one of the same words, author and
        audience. `LedgerError` if the text is empty or longer than `TEXT_CHARS`, the kind unknown,
        or if its author has too many.
        """
        line, now, notes = " ".join(text.split()), self._now(), self.entries()
        kind = kind.strip().lower()
        if kind not in TYPES:
            raise LedgerError(f"`{one_line(kind)}` is no kind of note; kinds: {', '.join(TYPES)}.")
        if not line:
            raise LedgerError("A note needs words.")
        if len(line) > TEXT_CHARS:
            raise LedgerError(
                f"A note holds at most {TEXT_CHARS} characters; this has {len(line)}."
            )
        note = Note(
            new_id("l"),
            line,
            kind,
            source,
            tuple(about),
            normalised(audience),
            state,
            utc_iso(now),
            by,
            bool(staff),
        )
        known = same_note(notes, text, by.id, note.audience)
        if known is not None:
            if kind not in (FACT, known.kind):  # as staff make a rule of what stands as a fact
                known = replace(known, kind=kind)
                self._save(known)
            return known
        closed = superseded(note, notes, now)
        if sum(each.by.id == by.id for each in notes) - len(closed) >= NOTES_A_PERSON:
            raise LedgerFullError(
                f"{by.key} has {NOTES_A_PERSON} notes already; withdraw one to make room."
            )
        self._save(note, *closed)
        return note

    def change(self, note_id: str, state: str, by: Speaker) -> Note:
        """Approve or withdraw a note, as `by` decided; `LedgerError` if that cannot be."""
        now, closed = self._now(), list[Note]()
        note = moved(self.get(note_id), state, now, by)
        if state == APPROVED:
            closed = superseded(note, self.entries(), now)
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
