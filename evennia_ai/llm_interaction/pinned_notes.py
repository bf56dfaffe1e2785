"""The ledger as a prompt shows it: as many notes as fit under a cap."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from evennia_ai.history.frames import LEDGER_LABEL, row, speaker_label
from evennia_ai.history.messages import OVERHEAD_TOKENS, Counter, Speaker

_HEADINGS = {"rule": "Rules:", "task": "Tasks:", "preference": "Preferences:", "fact": "Facts:"}


class PinnedNote(Protocol):
    """What a prompt shows of a note (`rag_memory.ledger.Note`)."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def text(self) -> str:
        """Its words."""

    @property
    def kind(self) -> str:
        """A key of the headings: ``rule``, ``task``, ``preference`` or ``fact``."""

    @property
    def at(self) -> str:
        """When it was written, UTC ISO 8601."""

    @property
    def by(self) -> Speaker:
        """Who wrote it."""


class Pinned(NamedTuple):
    """The ledger's block, empty if nothing is shown, and the ids of notes that did not fit."""

    text: str = ""
    left_out: tuple[str, ...] = ()


def pinned(notes: Sequence[PinnedNote], cap: int, count: Counter) -> Pinned:
    """As many notes as fit, in the order of `rag_memory.ledger.shown_to`, shown by type.

    `cap` is the most tokens of the block with its message's frame. If notes were left out, the
    block ends with a line that says how many.
    """
    used = OVERHEAD_TOKENS + sum(count(line) + 1 for line in (LEDGER_LABEL, _more(len(notes))))
    kept: list[PinnedNote] = []
    left_out: list[str] = []
    for note in notes:
        cost = count(note_line(note)) + 1
        if all(other.kind != note.kind for other in kept):
            cost += count(_HEADINGS[note.kind]) + 1
        if used + cost <= cap:
            used += cost
            kept.append(note)
        else:
            left_out.append(note.id)
    if not kept:
        return Pinned("", tuple(left_out))
    lines = [LEDGER_LABEL]
    for kind, heading in _HEADINGS.items():
        of_kind = [note_line(note) for note in kept if note.kind == kind]
        lines += [heading, *of_kind] if of_kind else []
    if left_out:
        lines.append(_more(len(left_out)))
    return Pinned("\n".join(lines), tuple(left_out))


def _more(missing: int) -> str:
    return f"({missing} more notes did not fit here.)"


def note_line(note: PinnedNote) -> str:
    """A note as quoted data: its id, its day, its author, its words."""
    return row(note.id, note.at[:10], speaker_label(note.by.key, note.by.id), note.text)
