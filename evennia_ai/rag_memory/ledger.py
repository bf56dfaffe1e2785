"""The memory ledger: notes people approved, pinned into every prompt under a cap.

A note that concerns only its author is approved at once, unless it is a rule; any other stays
proposed until staff approve it. Notes are never deleted, only superseded or withdrawn.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.rag_memory.entities import SHORTEST_MENTION, mentioned
from evennia_ai.rag_memory.note import APPROVED, RULE, SUPERSEDED, WITHDRAWN, Note, kind_of, moved
from evennia_ai.rag_memory.profile import Profile

# Living notes one person may have, so that nobody fills the ledger alone.
NOTES_A_PERSON = 30
# Notes one person may add in a day (UTC), closed ones among them.
NOTES_A_DAY = 30
# Notes of one author that are shown before the notes of others; half of the default cap.
NOTES_AT_ONCE = 3

# People who are meant without a name: the one who is told, and whoever it may be.
_UNNAMED = re.compile(
    r"\b(?:you|your|yours|yourself|they|them|their|theirs|he|him|his|she|her|hers|we|us|our|"
    r"everybody|everyone|anybody|anyone|nobody|no one|somebody|someone|whoever|people|others)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|i'll|i've|me|my|mine|myself)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:remember|don'?t forget|do not forget|never forget|keep in mind|note (?:that|down)|"
    r"make a note|write (?:that|this|it) down)\b",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"^(.{3,80}?) (?:is|are|was|were) ", re.IGNORECASE)
# Names that are everyday words: written small, behind `I` or an article they name nobody.
_WORDS_TOO = re.compile(
    r"\b(?:[Ii]|[Mm]y|[Aa]|[Aa]n|[Tt]he) (?:art|bill|dawn|faith|frank|grace|grant|hope|joy|mark|"
    r"may|penny|rob|rose|sue|violet|will)\b"
)
# The like of two letters; written small they name nobody.
_SHORT_WORD = re.compile(
    r"a[hmnst]?|b[ey]|do|eh|go|h[aeio]|i[fnst]?|m[ey]|no|o[fhknr]|so|to|u[ps]|we|y[eo]",
    re.IGNORECASE,
)


def asks_to_remember(texts: Iterable[str]) -> bool:
    """Whether somebody asked for something to be remembered, in these words of theirs."""
    return any(_ASKS.search(text) for text in texts)


@dataclass(frozen=True)
class Concern:
    """Whom a text concerns.

    Args:
        own: Whether it speaks of its author.
        others: Stable ids of other people it names.
        unnamed: Whether it speaks of others without a name, as ``you`` or ``everybody``.
    """

    own: bool
    others: tuple[str, ...] = ()
    unnamed: bool = False

    @property
    def only_own(self) -> bool:
        """Whether it concerns nobody but its author."""
        return self.own and not self.others and not self.unnamed


def concern_of(text: str, author: str, people: Mapping[str, Profile]) -> Concern:
    """Whom a note by an author (stable id) concerns of known people, by stable id."""
    named = mentioned(people, _WORDS_TOO.sub("", text))
    named = [*dict.fromkeys([*named, *_called_shortly(people, text)])]
    # Somebody who shares the author's name is not meant by it.
    own_names = {people[author].name.lower()} if author in people else set()
    others = [who for who in named if who != author and people[who].name.lower() not in own_names]
    own = author in named or bool(_FIRST_PERSON.search(text))
    return Concern(own, tuple(others), bool(_UNNAMED.search(text)))


def binds_only_author(text: str, concern: Concern, kind: str | None = None) -> bool:
    """Whether a note is valid without staff: about nobody but its author, and no rule.

    A text that reads like a rule is one, whatever its `kind`.
    """
    return concern.only_own and RULE not in (kind, kind_of(text))


def _called_shortly(people: Mapping[str, Profile], text: str) -> list[str]:
    """People whose names of one or two letters stand in a text, words of the language as written.

    `rag_memory.entities.mentioned` leaves such names out.
    """
    written = set(re.findall(r"\w+", text))
    small = {word.lower() for word in written}
    return [
        who
        for who, person in people.items()
        if any(
            len(name) < SHORTEST_MENTION
            and (name in written if _SHORT_WORD.fullmatch(name) else name.lower() in small)
            for name in person.names
        )
    ]


def same_note(notes: Iterable[Note], text: str, by_id: str, audience: str) -> Note | None:
    """A living note of the same person that says the same to the same people, or None."""
    said = ((note.by.id, note.audience, _plain(note.text), note) for note in notes)
    wanted = (by_id, audience, _plain(text))
    return next((note for *same, note in said if note.is_living and (*same,) == wanted), None)


def replacing(note: Note, notes: Iterable[Note], at: float) -> tuple[Note, list[Note]]:
    """A note, new or newly approved, with the ids of those it replaces, and all other notes.

    `at` is when, in seconds since the epoch. The others keep their order. Outdated ones are
    superseded, those that say the same to other people are withdrawn: a secret closes the public
    note at once, a public note closes the secret when it is approved.
    """
    others = [old for old in notes if old.id != note.id]
    closed: dict[str, str] = {}
    if note.state == APPROVED or note.audience != PUBLIC:
        closed = {
            old.id: WITHDRAWN
            for old in others
            if old.is_living
            and old.by.id == note.by.id
            and old.audience != note.audience
            and _plain(old.text) == _plain(note.text)
        }
    if note.state == APPROVED:
        closed |= {old.id: SUPERSEDED for old in outdated_by(note, others)}
    left = [
        replace(moved(old, closed[old.id], at, note.by), superseded_by=note.id)
        if old.id in closed
        else old
        for old in others
    ]
    return replace(note, replaces=tuple(closed)) if closed else note, left


def outdated_by(note: Note, notes: Iterable[Note]) -> list[Note]:
    """Approved notes that a newly approved one replaces.

    Those of the same author and audience that say something else of the same thing, as
    ``my favourite drink is ale`` and ``my favourite drink is rum``.
    """
    topic = _topic(note.text)
    return [
        old
        for old in notes
        if topic
        and old.id != note.id
        and (old.state, old.by.id, old.audience) == (APPROVED, note.by.id, note.audience)
        and _topic(old.text) == topic
    ]


def _topic(text: str) -> str:
    """The words before the first ``is``, if there is more than one."""
    found = _TOPIC.match(text)
    topic = _plain(found.group(1)) if found else ""
    return topic if " " in topic else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def living_of(notes: Iterable[Note], person: str) -> list[Note]:
    """The living notes by or about somebody, oldest first."""
    return [note for note in notes if note.is_living and person in (note.by.id, *note.about)]


def shown_to(notes: Iterable[Note], viewer: str) -> tuple[Note, ...]:
    """The approved notes a turn for an audience may see, in the order in which they are kept.

    Those of staff come first; of the rest `NOTES_AT_ONCE` of each author before more of anybody.
    Within these groups rules come first, then the heavier, then the newer.
    """
    seen = [note for note in notes if note.state == APPROVED and visible(note.audience, viewer)]
    seen.sort(key=lambda note: (note.at, note.id), reverse=True)
    seen.sort(key=lambda note: (note.kind != RULE, -note.weight))
    written: Counter[str] = Counter()
    rounds: dict[str, int] = {}
    for note in seen:
        if not note.is_from_staff:
            rounds[note.id] = 1 + written[note.by.id] // NOTES_AT_ONCE
            written[note.by.id] += 1
    return tuple(sorted(seen, key=lambda note: rounds.get(note.id, 0)))


def replacement_line(note: Note) -> str:
    """Which notes a note replaces, as ``It replaces l1.``; empty if none."""
    return f"It replaces {', '.join(note.replaces)}." if note.replaces else ""
