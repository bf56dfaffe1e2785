"""What staff do with an assistant's memory, for `aimemory` and the page of the same name.

Each act notes in the audit log who did it, and raises `Refusal` if it cannot be done.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from evennia import AccountDB
from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError, Refusal, only_one
from evennia_ai.game.seeing import STABLE_ID, find, player_ids, speaker_of, stable_id
from evennia_ai.rag_memory.ledger import APPROVED, WITHDRAWN, Note
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.staff.lines import LineActs
from evennia_ai.staff.status import stored_lines

# The source of an entry that staff wrote in place of another.
CORRECTION = "correction"
# What becomes of a note.
DECISIONS = {"approve": APPROVED, "reject": WITHDRAWN}


def note_called(notes: Iterable[Note], text: str) -> Note:
    """The note with this id, or the only one whose id begins with it; otherwise `Refusal`."""
    wanted = text.strip().lower()
    found = [note for note in notes if note.id.startswith(wanted)]
    found = [note for note in found if note.id == wanted] or found
    shown = f"`{text.strip()}`."
    none, several = f"There is no such note: {shown}", f"More than one note begins with {shown}"
    return only_one(found, none, several)


def people_called(name: str) -> tuple[str, ...]:
    """The stable ids of the player that a name or id means; `Refusal` if it means none, or more."""
    if STABLE_ID.fullmatch(name):
        known = find(name)
        return player_ids(known) if known is not None else (name,)
    found = [
        account
        for account in AccountDB.objects.all()
        if name.lower() in {each.key.lower() for each in (account, *account.characters.all())}
    ]
    none = f"There is no player called `{name}`."
    several = f"More than one player is called `{name}`; give an id."
    return player_ids(only_one(found, none, several))


@dataclass(frozen=True)
class MemoryActs:
    """What can be done to a memory, by `aimemory` or the page; each act returns a sentence."""

    script: AssistantScript  # the assistant
    seen: Seen  # what whoever does it may see
    by: TypedObject  # who does it
    wanted: str  # what it is done to: the id of a note or an entry, or a player
    text: str = ""  # what is put there

    def do(self, name: str) -> "Deferred[str]":
        """Do what a switch or a button names."""
        if name in DECISIONS:
            return maybeDeferred(self._decide, DECISIONS[name])
        if name in ("quarantine", "release"):
            return maybeDeferred(getattr(self, name))
        if name in ("forget", "correct"):  # they change the body: no tick may run then
            return self.script.run_exclusive(getattr(self, name))
        raise Refusal("There is no such act.")

    def _decide(self, state: str) -> str:
        notes = [*self.seen.notes(), *self.seen.closed_notes()]
        note = note_called(notes, self.wanted)
        decided = self.script.ledger.change(note.id, state, speaker_of(self.by))
        self._audit("ledger", note=decided.id, state=state)
        return f"Note {decided.id} is {decided.state} by {self.by.key}: {decided.text}"

    @inlineCallbacks
    def forget(self) -> Steps[str]:
        """Take a journal entry out of all searches, also a second time."""
        entry = self.seen.entry(self.wanted)
        if entry is None:
            raise Refusal(f"There is no journal entry `{self.wanted}`.")
        yield self.script.memory.forget_entry(entry.id)
        self._audit("forget", entry=entry.id)
        return (
            f"{self.script.obj.key} no longer finds journal entry {entry.id}. The journal keeps "
            "it, withdrawn."
        )

    @inlineCallbacks
    def correct(self) -> Steps[str]:
        """Withdraw an entry and write another in its place that rests on the same."""
        old, text = self.seen.entry(self.wanted), self.text.strip()
        if old is None or old.withdrawn:
            raise Refusal("There is no such entry, or it is withdrawn.")
        if not text or text == old.content:
            raise Refusal("Write what the entry should say.")
        yield self.script.memory.forget_entry(old.id)
        new = self.script.obj.journal.add(
            text,
            importance=old.importance,
            source_type=CORRECTION,
            tags=(*old.tags, f"corrects {old.id}"),
            entities=old.entities,
            source_message_ids=old.source_message_ids,
            audience=old.audience,
        )
        self._audit("corrected", entry=old.id, now=new.id)
        return f"Entry {new.id} takes the place of {old.id}."

    def quarantine(self) -> str:
        """Use nothing any more of what a player said, with all their characters."""
        player, name = self.wanted, self.script.obj.key
        people = people_called(player)
        names = {each: str(getattr(find(each), "key", player)) for each in people}
        if not self.script.memory.quarantine.add(names):
            raise Refusal(f"{player} is in quarantine already.")
        self._audit("quarantine", people=list(people))
        kept = f"All of it is kept: aimemory/release {name} = {player}"
        return f"{name} uses nothing any more of what {player} said. {kept}"

    def release(self) -> "str | Deferred[str]":
        """Use again what a player said, or a line that was removed."""
        player, held = self.wanted, self.script.memory.quarantine
        if player in held.lines:
            return LineActs(self.script, self.seen, self.by).restore(player)
        people = (player,) if player in held.sources else people_called(player)
        if not held.release(people):
            raise Refusal(f"{player} is not in quarantine.")
        self._audit("released", people=list(people))
        return f"{self.script.obj.key} uses again what {player} said."

    def _audit(self, kind: str, **fields: object) -> None:
        self.script.audit(kind, **fields, by=stable_id(self.by))


@inlineCallbacks
def memory_status(script: AssistantScript) -> Steps[list[str]]:
    """Counts of every kind of memory; fires with lines of text."""
    indexed = yield script.memory.count()
    try:
        status = yield script.mind.memories.status()
        own = yield script.mind.memories.ids(script.scope)
    except AssistantError as error:
        semantic = f"does not work: {error}"
    else:
        works = "works" if status["ok"] else "does not work"
        semantic = f"{works} ({status['detail']}); {len(own)} memories"
    return [
        f"Memory of {script.obj.key}",
        f"Search index: {'cannot be read' if indexed is None else f'{indexed} items'}",
        f"Semantic memory: {semantic}",
        *stored_lines(script),
    ]
