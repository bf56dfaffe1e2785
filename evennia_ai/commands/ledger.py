"""`airemember`: notes a player wants an assistant to keep before its eyes."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from evennia_ai.assistant.identity import speaker_of, stable_id
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.commands.lookup import Refusal
from evennia_ai.commands.show import audience_mark, escaped, moment
from evennia_ai.history.audience import PUBLIC, STAFF, private, visible
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory import ledger
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.tools.ledger import tell_of_proposal


class CmdAIRemember(AssistantCommand):
    """
    tell an assistant what it should never forget about you

    Usage:
      airemember <assistant> = <text>
      airemember/private <assistant> = <text>
      airemember <assistant>
      airemember/forget <assistant> = <id>

    Switches:
      private - keep the note between the two of you
      forget  - take one of your notes back

    The assistant sees these notes whatever else it forgets. What is about you
    alone, as 'I like jazz', holds at once; it may tell anyone, unless the note
    is private. What names somebody else, speaks of 'you' or 'everybody', is a
    rule, or does not say that it is about you, waits until staff approve it.
    A new value of the same thing, as 'my favourite drink is rum', replaces
    the old one. Noted in private, the same words are public no more. You may
    give 30 notes a day. Without a text it lists your notes.

    See also: aimemory/facts
    """

    key = "airemember"
    locks = "cmd:all();admin:perm(Admin)"
    switches_known = ("private", "forget")

    def do(self) -> None:
        """Take a note, or list them."""
        script = self.assistant()
        if self.rhs:
            self._take(script, self.rhs, PUBLIC)
        else:
            self._list(script)

    def do_private(self) -> None:
        """Take a note for the two of them."""
        text = self.words("airemember/private <assistant> = <text>")
        self._take(self.assistant(), text, private([stable_id(self.caller)]))

    def do_forget(self) -> None:
        """Take a note back."""
        wanted = self.words("airemember/forget <assistant> = <id>")
        script = self.assistant()
        entry = note_called(ledger.living_of(script.ledger.entries(), self._own_id), wanted)
        script.ledger.change(entry["id"], ledger.WITHDRAWN, speaker_of(self.caller).to_dict())
        self.viewer.tell(f"{escaped(script.obj.key)} puts note {entry['id']} away.")

    @property
    def _own_id(self) -> str:
        return stable_id(self.caller)

    def _take(self, script: Assistant, text: str, audience: str) -> None:
        own = self._own_id
        people = {**script.game.people_in(text), own: Profile(own, self.caller.key, "person")}
        concern = ledger.concern_of(text, own, people)
        only_own = ledger.binds_only_giver(text, concern)
        as_staff = not only_own and not concern.others and self.access(self.caller, "admin")
        entry = script.ledger.add(
            text,
            speaker_of(self.caller).to_dict(),
            state=ledger.APPROVED if only_own or as_staff else ledger.PROPOSED,
            staff=as_staff,
            about=[*([own] if concern.own else ()), *concern.others],
            audience=audience,
        )
        if entry["state"] == ledger.PROPOSED:
            tell_of_proposal(script, script.obj, entry)
        names = [people[who].name for who in concern.others]
        self.viewer.tell(escaped(_answer(script.obj.key, entry, _why(concern, names))))

    def _list(self, script: Assistant) -> None:
        name = escaped(script.obj.key)
        notes = ledger.living_of(script.ledger.entries(), self._own_id)
        mine = [note for note in notes if _may_read(note, self._own_id)]
        head = f"What {name} never forgets about you ({len(mine)}):"
        self.viewer.listing(mine[::-1], note_text, head, f"{name} has no notes about you.")


def _may_read(note: Any, person: str) -> bool:
    """Somebody may read their own notes and those about them that are meant for them."""
    return note["by"]["id"] == person or visible(note["audience"], private([person]))


def _why(concern: ledger.Concern, names: list[str]) -> str:
    """Why a note waits for approval."""
    if names:
        return f"it is about {', '.join(names)}"
    if not concern.own:
        return "it does not say that it is about you"
    return "it speaks of others, too" if concern.unnamed else "it is a rule"


def _answer(name: str, entry: Any, why: str) -> str:
    """What the giver of a note is told."""
    shown = f"({entry['id']}, {entry['type']}): {entry['text']}"
    if entry["state"] == ledger.APPROVED:
        between = "" if entry["audience"] == PUBLIC else " It stays between the two of you."
        told = f"{name} will keep this before its eyes {shown}{between}"
    else:
        told = f"Noted as a proposal {shown}\nAs {why}, it waits until staff approve it."
    return f"{told} {ledger.replaces(entry)}".rstrip()


class AllNotes:
    """A ledger as a sequence for a pager: what waits, what holds, then what is closed.

    Args:
        notes: The ledger.
        audience: Who looks; notes for others are left out. For staff, who see them all, closed
            ones are read page by page as they are shown.
    """

    def __init__(self, notes: Any, audience: str):
        self._notes, self._audience = notes, audience
        newest = sorted(notes.entries(), key=lambda entry: str(entry["at"]), reverse=True)
        newest.sort(key=lambda entry: ledger.STATES.index(entry["state"]))
        self._living = self._seen(newest)
        self._closed = None if audience == STAFF else self._seen(notes.closed())

    def __len__(self) -> int:
        closed = self._notes.closed_count() if self._closed is None else len(self._closed)
        return len(self._living) + int(closed)

    def __getitem__(self, wanted: slice) -> list[Any]:
        first, last, _ = wanted.indices(len(self))
        count = len(self._living)
        closed = self._notes.closed() if self._closed is None else self._closed
        shown = islice(closed, max(0, first - count), max(0, last - count))
        return [*self._living[first:last], *shown]

    def _seen(self, entries: Iterable[Any]) -> list[Any]:
        return [entry for entry in entries if visible(entry["audience"], self._audience)]


def note_text(entry: Any) -> str:
    """One note: id, state, type, weight, when, by whom, and its words."""
    head = f"{entry['id']} {entry['state']} {entry['type']}, weight {entry['weight']}"
    by = f"{moment(entry['at'])} by {entry['by']['key']}"
    if entry.get("decided_by"):
        by += f", {entry['state']} by {entry['decided_by']['key']}"
    if entry.get("superseded_by"):
        by += f" (now {entry['superseded_by']})"
    if entry.get("replaces"):
        by += f" (replaces {', '.join(entry['replaces'])})"
    return escaped(f"{head}, {by}: {audience_mark(entry['audience'])}{entry['text']}")


def note_called(entries: Any, text: str) -> Any:
    """The note of this id, or the only one whose id begins so.

    Raises:
        Refusal: If there is none, or more than one.
    """
    wanted = text.strip().lower()
    found = [entry for entry in entries if entry["id"].startswith(wanted)]
    found = [entry for entry in found if entry["id"] == wanted] or found
    if len(found) != 1:
        how = "More than one note begins with" if found else "There is no such note:"
        raise Refusal(f"{how} `{text.strip()}`.")
    return found[0]
