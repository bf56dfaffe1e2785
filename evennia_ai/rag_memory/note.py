"""One note of the memory ledger: its types, its states, and its stored form."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import PUBLIC, STAFF, normalised
from evennia_ai.history.frames import one_line
from evennia_ai.history.messages import SCHEMA_VERSION, Speaker, utc_iso
from evennia_ai.history.records import as_list, as_stored

RULE, TASK, PREFERENCE, FACT = "rule", "task", "preference", "fact"
TYPES = (RULE, TASK, PREFERENCE, FACT)
PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN = "proposed", "approved", "superseded", "withdrawn"
STATES = (PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN)
# What a note may become; superseded and withdrawn ones never change again.
MOVES = {PROPOSED: (APPROVED, WITHDRAWN), APPROVED: (SUPERSEDED, WITHDRAWN)}
LIVING = (PROPOSED, APPROVED)
# Long enough for two sentences; five such notes fill the default cap.
TEXT_CHARS = 300
DEFAULT_WEIGHT = 5

_KINDS = (
    (RULE, r"\b(?:never|always|must|mustn'?t|do not|don'?t|no one may|nobody may|forbidden)\b"),
    (TASK, r"\b(?:remind|todo|to-do|promised?|needs? to|has to|have to|owes?|by tomorrow)\b"),
    (PREFERENCE, r"\b(?:likes?|loves?|prefers?|hates?|dislikes?|favou?rites?|rather|enjoys?)\b"),
)
# One's own habits: `I never ...` binds nobody else.
_OWN_WAY = re.compile(
    r"\b(?:i|i'[a-z]+)(?: (?:have|had|will|would|can|could|also|really))?"
    r" (?:never|always|must|mustn'?t|do not|don'?t)\b",
    re.IGNORECASE,
)


class LedgerError(AssistantError):
    """A note cannot be added, found or changed; the text says why."""


class NoteFields(TypedDict, total=False):
    """What may be said of a new note beside its text and its author; see `new_note`."""

    kind: str | None
    weight: int
    source: str
    about: Iterable[str]
    audience: str
    staff: bool


@dataclass(frozen=True, slots=True)
class Note:
    """A note that people want pinned into every prompt.

    Args:
        id: Its id.
        text: The note, on one line.
        kind: One of `TYPES`; stored as ``type``.
        weight: 1 to 10; heavier notes are shown first.
        source: Where it came from: ``command`` or the id of the message it rests on.
        about: Stable ids of the people it concerns.
        audience: Who may know it.
        state: One of `STATES`.
        at: When it was written, UTC ISO 8601.
        by: Who wrote it.
        staff: Whether staff wrote it as staff; None in notes from before this was stored.
        decided_at: When its state changed last, by `decided_by`.
        superseded_by: Id of the note that took its place; that one `replaces` it.
        extra: What else is stored with it.
    """

    id: str
    text: str
    kind: str
    weight: int
    source: str
    about: tuple[str, ...]
    audience: str
    state: str
    at: str
    by: Speaker
    staff: bool | None = None
    decided_at: str = ""
    decided_by: Speaker | None = None
    superseded_by: str = ""
    replaces: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], id_if_none: str = "") -> "Note":
        """A note from what is stored, complete whatever somebody wrote there by hand.

        A note without a state is proposed, and one without an audience is for staff only.
        """
        text, kind, weight, state = (raw.get(key) for key in ("text", "type", "weight", "state"))
        decided_by, text = raw.get("decided_by"), str(text or "")
        return cls(
            str(raw.get("id") or id_if_none),
            text,
            kind if kind in TYPES else kind_of(text),
            weight if isinstance(weight, int) else DEFAULT_WEIGHT,
            str(raw.get("source") or ""),
            tuple(map(str, as_list(raw.get("about")))),
            normalised(raw.get("audience") or STAFF),
            state if state in STATES else PROPOSED,
            str(raw.get("at") or ""),
            Speaker.from_dict(raw.get("by")),
            bool(raw["staff"]) if "staff" in raw else None,
            str(raw.get("decided_at") or ""),
            Speaker.from_dict(decided_by) if decided_by else None,
            str(raw.get("superseded_by") or ""),
            tuple(map(str, as_list(raw.get("replaces")))),
            {key: value for key, value in raw.items() if key not in _KNOWN},
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        stored = as_stored(self, _OPTIONAL)
        del stored["kind"]
        return {**self.extra, "version": SCHEMA_VERSION, "type": self.kind, **stored}

    @property
    def is_living(self) -> bool:
        """Whether it is proposed or approved, not closed."""
        return self.state in LIVING

    @property
    def is_from_staff(self) -> bool:
        """Whether staff wrote or approved an approved note.

        A note about nobody can only be approved by staff; this recognises notes written by hand,
        and those from before `staff` was stored.
        """
        return bool(self.staff or self.decided_by or not self.about)


_KNOWN = frozenset(each.name for each in fields(Note)) - {"extra", "kind"} | {"version", "type"}
_OPTIONAL = frozenset({"staff", "decided_at", "decided_by", "superseded_by", "replaces"})


def new_note(
    text: str,
    note_id: str,
    at: float,
    by: Speaker,
    *,
    state: str,
    kind: str | None = None,
    weight: int = DEFAULT_WEIGHT,
    source: str = "command",
    about: Iterable[str] = (),
    audience: str = PUBLIC,
    staff: bool = False,
) -> Note:
    """A new note; the arguments are the fields of `Note`.

    `at` is in seconds since the epoch, `state` one of `LIVING`, and `kind` is `kind_of` the text if
    it is None. `LedgerError` if the text is empty or longer than `TEXT_CHARS`, or the kind unknown.
    """
    line = " ".join(text.split())
    if not line:
        raise LedgerError("A note needs words.")
    if len(line) > TEXT_CHARS:
        raise LedgerError(f"A note holds at most {TEXT_CHARS} characters; this has {len(line)}.")
    return Note(
        note_id,
        line,
        checked_kind(kind) if kind else kind_of(text),
        min(10, max(1, int(weight))),
        source,
        tuple(about),
        normalised(audience),
        state,
        utc_iso(at),
        by,
        bool(staff),
    )


def notes_in(stored: object) -> tuple[Note, ...]:
    """The notes of a stored list, without those that have no text."""
    listed = enumerate(as_list(stored), 1)
    found = (Note.from_dict(raw, f"l{n}") for n, raw in listed if isinstance(raw, Mapping))
    return tuple(note for note in found if note.text)


def checked_kind(kind: str) -> str:
    """One of `TYPES`, in any case and spacing; `LedgerError` if it is none of them."""
    wanted = kind.strip().lower()
    if wanted not in TYPES:
        raise LedgerError(f"`{one_line(kind)}` is no kind of note; kinds: {', '.join(TYPES)}.")
    return wanted


def kind_of(text: str) -> str:
    """The type a text looks like: rule, task or preference, else fact."""
    rest = _OWN_WAY.sub("", text)
    return next((kind for kind, sign in _KINDS if re.search(sign, rest, re.IGNORECASE)), FACT)


def moved(note: Note, state: str, at: float, by: Speaker) -> Note:
    """A note in another state, with who decided it and when; `LedgerError` if it cannot be."""
    if state not in MOVES.get(note.state, ()):
        raise LedgerError(f"Note `{note.id}` is {note.state}; it cannot become {state}.")
    return replace(note, state=state, decided_at=utc_iso(at), decided_by=by)
