"""The memory ledger: notes people approved, pinned into every prompt under a cap.

An entry is a plain dict (`new_entry`). What concerns only the one who gave it is approved at
once, unless it is a rule; the rest waits as proposed until staff approve it. Entries are never
deleted here, only superseded or withdrawn.
"""

import re
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import PUBLIC, STAFF, normalised, visible
from evennia_ai.history.messages import SCHEMA_VERSION, one_line, utc_iso
from evennia_ai.rag_memory.entities import SHORTEST_MENTION, mentioned, names_index
from evennia_ai.rag_memory.profile import Profile

Entry = dict[str, Any]
Counter = Callable[[str], int]

RULE, TASK, PREFERENCE, FACT = "rule", "task", "preference", "fact"
TYPES = (RULE, TASK, PREFERENCE, FACT)
PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN = "proposed", "approved", "superseded", "withdrawn"
STATES = (PROPOSED, APPROVED, SUPERSEDED, WITHDRAWN)
# What an entry may become; superseded and withdrawn ones stay what they are.
MOVES = {PROPOSED: (APPROVED, WITHDRAWN), APPROVED: (SUPERSEDED, WITHDRAWN)}
LIVING = (PROPOSED, APPROVED)
# Long enough for two sentences; five such notes fill the default cap.
TEXT_CHARS = 300
# Living notes one person may have, so that nobody fills the ledger alone.
NOTES_A_PERSON = 30
# Notes one person may give in a day (UTC), closed ones among them.
NOTES_A_DAY = 30
# Notes of one giver that are shown before others have had theirs; half of the default cap.
NOTES_AT_ONCE = 3
DEFAULT_WEIGHT = 5

_KINDS = (
    (RULE, r"\b(?:never|always|must|mustn'?t|do not|don'?t|no one may|nobody may|forbidden)\b"),
    (TASK, r"\b(?:remind|todo|to-do|promised?|needs? to|has to|have to|owes?|by tomorrow)\b"),
    (PREFERENCE, r"\b(?:likes?|loves?|prefers?|hates?|dislikes?|favou?rites?|rather|enjoys?)\b"),
)
# One's own ways: `I never ...` binds nobody else.
_OWN_WAY = re.compile(
    r"\b(?:i|i'[a-z]+)(?: (?:have|had|will|would|can|could|also|really))?"
    r" (?:never|always|must|mustn'?t|do not|don'?t)\b",
    re.IGNORECASE,
)
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


class LedgerError(AssistantError):
    """A note cannot be taken, found or changed; the text says why."""


def new_entry(
    text: str,
    entry_id: str,
    at: float,
    by: Mapping[str, str],
    *,
    state: str,
    kind: str | None = None,
    weight: int = DEFAULT_WEIGHT,
    source: str = "command",
    about: Iterable[str] = (),
    audience: object = None,
    staff: bool = False,
) -> Entry:
    """An entry in its stored form.

    Args:
        text: The note, one line of at most `TEXT_CHARS` characters.
        entry_id: Its id.
        at: When it was given, seconds since the epoch.
        by: Who gave it: `key` and stable `id`.
        state: One of `LIVING`.
        kind: One of `TYPES`; told from the text where it is None.
        weight: 1 to 10; heavier notes are shown first.
        source: Where it came from: ``command`` or the id of the message it rests on.
        about: Stable ids of the people it concerns.
        audience: Who may be told; public where None.
        staff: Whether staff gave it as staff, which ranks it before the notes of players.

    Raises:
        LedgerError: If the text is empty or too long, or the kind is unknown.
    """
    return {
        "version": SCHEMA_VERSION,
        "id": entry_id,
        "text": checked_text(text),
        "type": checked_kind(kind) if kind else kind_of(text),
        "weight": min(10, max(1, int(weight))),
        "source": source,
        "about": list(about),
        "audience": normalised(audience),
        "state": state,
        "at": utc_iso(at),
        "by": {"key": str(by.get("key", "")), "id": str(by.get("id", ""))},
        "staff": bool(staff),
    }


def checked_text(text: str) -> str:
    """A note's text on one line.

    Raises:
        LedgerError: If there is none, or too much.
    """
    line = " ".join(text.split())
    if not line:
        raise LedgerError("A note needs words.")
    if len(line) > TEXT_CHARS:
        raise LedgerError(f"A note holds at most {TEXT_CHARS} characters; this has {len(line)}.")
    return line


def checked_kind(kind: str) -> str:
    """One of `TYPES`, as it was meant.

    Raises:
        LedgerError: If it is none of them.
    """
    wanted = kind.strip().lower()
    if wanted not in TYPES:
        raise LedgerError(f"`{one_line(kind)}` is no kind of note; kinds: {', '.join(TYPES)}.")
    return wanted


def sound_entries(stored: object) -> tuple[Entry, ...]:
    """The notes of a stored list, those written by hand with all that a note has.

    A note without a state is proposed, one without an audience is for staff alone, until
    somebody says otherwise. What has no words is no note.
    """
    listed = stored if isinstance(stored, list | tuple) else ()
    found = (_sound(entry, place) for place, entry in enumerate(listed, 1))
    return tuple(entry for entry in found if entry["text"])


def _sound(raw: object, place: int) -> Entry:
    entry = dict(raw) if isinstance(raw, Mapping) else {}
    text, kind, weight = str(entry.get("text") or ""), entry.get("type"), entry.get("weight")
    by, about = entry.get("by"), entry.get("about")
    known = by if isinstance(by, Mapping) else {"key": by or ""}
    return {
        **entry,
        "id": str(entry.get("id") or f"l{place}"),
        "text": text,
        "type": kind if kind in TYPES else kind_of(text),
        "weight": weight if isinstance(weight, int) else DEFAULT_WEIGHT,
        "source": str(entry.get("source") or ""),
        "about": [str(who) for who in about] if isinstance(about, list | tuple) else [],
        "audience": normalised(entry.get("audience") or STAFF),
        "state": entry.get("state") if entry.get("state") in STATES else PROPOSED,
        "at": str(entry.get("at") or ""),
        "by": {key: str(known.get(key) or "") for key in ("key", "id")},
    }


def moved(entry: Mapping[str, Any], state: str, at: float, by: Mapping[str, str]) -> Entry:
    """An entry in another state, with who decided it and when.

    Raises:
        LedgerError: If it cannot become that.
    """
    now = str(entry["state"])
    if state not in MOVES.get(now, ()):
        raise LedgerError(f"Note `{entry['id']}` is {now}; it cannot become {state}.")
    decided = {"key": str(by.get("key", "")), "id": str(by.get("id", ""))}
    return {**entry, "state": state, "decided_at": utc_iso(at), "decided_by": decided}


def kind_of(text: str) -> str:
    """The type a text looks like: rule, task, preference, else fact."""
    rest = _OWN_WAY.sub("", text)
    return next((kind for kind, sign in _KINDS if re.search(sign, rest, re.IGNORECASE)), FACT)


def asks_to_remember(texts: Iterable[str]) -> bool:
    """Whether somebody asked for something to be remembered, in these words of theirs."""
    return any(_ASKS.search(text) for text in texts)


@dataclass(frozen=True)
class Concern:
    """Whom a text concerns.

    Args:
        own: Whether it speaks of the one who gave it.
        others: Stable ids of other people it names.
        unnamed: Whether it speaks of others without a name, as ``you`` or ``everybody``.
    """

    own: bool
    others: tuple[str, ...] = ()
    unnamed: bool = False

    @property
    def only_own(self) -> bool:
        """Whether it concerns nobody but the one who gave it."""
        return self.own and not self.others and not self.unnamed


def concern_of(text: str, giver: str, people: Mapping[str, Profile]) -> Concern:
    """Whom a note concerns: it names others, or speaks of its giver.

    Args:
        text: The note.
        giver: Stable id of the one who gave it.
        people: Profiles of known people by stable id; the giver may be among them.
    """
    named = mentioned(people, _WORDS_TOO.sub("", text), names_index(people))
    named = [*dict.fromkeys([*named, *_called_shortly(people, text)])]
    # Somebody who shares the giver's name is not meant by it.
    own_names = {people[giver].name.lower()} if giver in people else set()
    others = [who for who in named if who != giver and people[who].name.lower() not in own_names]
    own = giver in named or bool(_FIRST_PERSON.search(text))
    return Concern(own, tuple(others), bool(_UNNAMED.search(text)))


def binds_only_giver(text: str, concern: Concern, kind: str | None = None) -> bool:
    """Whether a note holds without staff: no rule, and about nobody but the one who gave it.

    Args:
        text: The note.
        concern: Whom it concerns.
        kind: Its type, if one was given; what reads like a rule is one all the same.
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


def by_staff(entry: Mapping[str, Any]) -> bool:
    """Whether staff gave or approved an approved note.

    What is about nobody is only approved where staff say so; that tells those that were written
    by hand or before it was noted who gave them.
    """
    return bool(entry.get("staff") or entry.get("decided_by") or not entry["about"])


def same_note(
    entries: Iterable[Mapping[str, Any]], text: str, by_id: str, audience: str
) -> Entry | None:
    """A living note of the same person that says the same to the same people, or None."""
    wanted = _plain(text)
    for entry in entries:
        own = entry["state"] in LIVING and entry["by"]["id"] == by_id
        if own and entry["audience"] == audience and _plain(entry["text"]) == wanted:
            return dict(entry)
    return None


def replacing(
    entry: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], at: float
) -> tuple[Entry, list[Entry]]:
    """A note with the ids of those it takes the place of, and all others, those of them closed.

    Args:
        entry: The note, new or newly approved.
        entries: All notes; the note itself may be among them.
        at: When, seconds since the epoch.

    Returns:
        The note, and the others in their order: outdated ones superseded, those that say the
        same to other people withdrawn.
    """
    everything = list(entries)
    closed = {old["id"]: WITHDRAWN for old in _elsewhere(entry, everything)}
    if entry["state"] == APPROVED:
        closed |= {old["id"]: SUPERSEDED for old in outdated_by(entry, everything)}
    others = [
        {**moved(old, closed[old["id"]], at, entry["by"]), "superseded_by": entry["id"]}
        if old["id"] in closed
        else dict(old)
        for old in everything
        if old["id"] != entry["id"]
    ]
    return {**entry, **({"replaces": list(closed)} if closed else {})}, others


def _elsewhere(
    entry: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Living notes of the same giver and words for other people than a note's.

    A secret ends what was public at once; what is to be public ends a secret when it is approved.
    """
    if entry["state"] != APPROVED and entry["audience"] == PUBLIC:
        return []
    return [
        old
        for old in entries
        if old["id"] != entry["id"]
        and old["state"] in LIVING
        and old["by"]["id"] == entry["by"]["id"]
        and old["audience"] != entry["audience"]
        and _plain(old["text"]) == _plain(entry["text"])
    ]


def outdated_by(entry: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Approved notes that a newly approved one takes the place of.

    Those of the same giver, type and audience that say something else of the same thing, as
    ``my favourite drink is ale`` and ``my favourite drink is rum``.
    """
    topic = _topic(entry["text"])
    return [
        dict(old)
        for old in entries
        if topic
        and old["id"] != entry["id"]
        and old["state"] == APPROVED
        and old["by"]["id"] == entry["by"]["id"]
        and old["audience"] == entry["audience"]
        and _topic(old["text"]) == topic
    ]


def _topic(text: str) -> str:
    """What stands before the first ``is``, if that is more than one word."""
    found = _TOPIC.match(text)
    topic = _plain(found.group(1)) if found else ""
    return topic if " " in topic else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def living_of(entries: Iterable[Mapping[str, Any]], person: str) -> list[Entry]:
    """The living notes somebody gave or that are about them, oldest first."""
    return [
        dict(entry)
        for entry in entries
        if entry["state"] in LIVING and person in (entry["by"]["id"], *entry["about"])
    ]


def shown_to(entries: Iterable[Mapping[str, Any]], viewer: str) -> tuple[Entry, ...]:
    """The approved notes a turn for an audience may see, in the order in which they are kept.

    Those of staff come first; of the rest `NOTES_AT_ONCE` of each giver before more of anybody.
    Among like notes rules come first, then the heavier, then the newer.
    """
    seen = [
        dict(entry)
        for entry in entries
        if entry["state"] == APPROVED and visible(entry["audience"], viewer)
    ]
    newest = sorted(seen, key=lambda entry: (str(entry["at"]), entry["id"]), reverse=True)
    ranked = sorted(newest, key=lambda entry: (entry["type"] != RULE, -entry["weight"]))
    given: Counts[str] = Counts()
    rounds: dict[str, int] = {}
    for entry in ranked:
        if not by_staff(entry):
            giver = entry["by"]["id"]
            rounds[entry["id"]] = 1 + given[giver] // NOTES_AT_ONCE
            given[giver] += 1
    return tuple(sorted(ranked, key=lambda entry: rounds.get(entry["id"], 0)))


def replaces(entry: Mapping[str, Any]) -> str:
    """Which notes an entry replaces, as ``It replaces l1.``; empty if none."""
    old = ", ".join(entry.get("replaces", ()))
    return f"It replaces {old}." if old else ""
