"""What staff do with an assistant's memory, for `aimemory` and the page of the same name.

Each act notes in the audit log who did it (`by`), and raises `Refusal` if it cannot be done.
"""

import re
from collections.abc import Iterable

from evennia import AccountDB
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError, Refusal, only_one
from evennia_ai.game.identity import find, player_ids
from evennia_ai.history.messages import Speaker
from evennia_ai.rag_memory.indexing import forget_entry
from evennia_ai.rag_memory.ledger import Note
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.staff.status import unconsolidated

# The source of an entry that staff wrote in place of another.
CORRECTION = "correction"
# A stable id of a character or an account, as `aihistory/raw` shows it.
_ID = re.compile(r"[oa]\d+\.\w+")


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
    if _ID.fullmatch(name):
        known = find(name)
        return player_ids(known) if known is not None else (name,)
    found = [each for each in AccountDB.objects.all() if _is_called(each, name)]
    none = f"There is no player called `{name}`."
    several = f"More than one player is called `{name}`; give an id."
    return player_ids(only_one(found, none, several))


def _is_called(account: AccountDB, name: str) -> bool:
    """Whether an account or one of its characters has this name."""
    characters = account.db._playable_characters or ()
    known = (account, *(character for character in characters if character))
    return any(each.key.lower() == name.lower() for each in known)


def decide(script: AssistantScript, seen: Seen, wanted: str, state: str, by: Speaker) -> Note:
    """Approve or withdraw the note that an id, or the beginning of one, means."""
    note = note_called([*seen.notes(), *seen.closed_notes()], wanted)
    decided = script.ledger.change(note.id, state, by)
    script.audit("ledger", note=decided.id, state=state, by=by.key)
    return decided


@inlineCallbacks
def forget(script: AssistantScript, seen: Seen, wanted: str, by: str) -> Steps[str]:
    """Take a journal entry out of all searches, also a second time. Call it under the turn lock."""
    entry = seen.entry(wanted)
    if entry is None:
        raise Refusal(f"There is no journal entry `{wanted}`.")
    count = yield forget_entry(script, script.obj, entry.id)
    script.audit("forget", entry=entry.id, by=by)
    return (
        f"{script.obj.key} no longer finds journal entry {entry.id}; {count} of its memories left "
        "semantic memory. The journal keeps it, withdrawn."
    )


@inlineCallbacks
def correct(script: AssistantScript, seen: Seen, wanted: str, text: str, by: str) -> Steps[str]:
    """Withdraw an entry and write another in its place that rests on the same, as `forget`."""
    old = seen.entry(wanted)
    if old is None or old.withdrawn:
        raise Refusal("There is no such entry, or it is withdrawn.")
    if not text or text == old.content:
        raise Refusal("Write what the entry should say.")
    yield forget_entry(script, script.obj, old.id)
    new = script.obj.journal.add(
        text,
        importance=old.importance,
        source_type=CORRECTION,
        tags=(*old.tags, f"corrects {old.id}"),
        entities=old.entities,
        source_message_ids=old.source_message_ids,
        audience=old.audience,
    )
    script.audit("corrected", entry=old.id, now=new.id, by=by)
    return f"Entry {new.id} takes the place of {old.id}."


def drop(script: AssistantScript, profile_id: str, wanted: str, by: str) -> str:
    """Take an observation out of a profile, under the turn lock."""
    profile = script.obj.entities.get(profile_id)
    left = profile and profile.only(lambda item: item.id != wanted)
    if profile is None or left is None or left is profile:
        raise Refusal("There is no such observation.")
    script.obj.entities.put({profile.id: left})
    script.audit("dropped", profile=profile.id, observation=wanted, by=by)
    return f"{script.obj.key} no longer believes this of {profile.name}."


def quarantine(script: AssistantScript, player: str, by: str) -> str:
    """Use nothing any more of what a player said, with all their characters."""
    people = people_called(player)
    if not script.memory.quarantine.add(
        {each: str(getattr(find(each), "key", player)) for each in people}
    ):
        raise Refusal(f"{player} is in quarantine already.")
    script.audit("quarantine", people=list(people), by=by)
    name = script.obj.key
    kept = f"All of it is kept: aimemory/release {name} = {player}"
    return f"{name} uses nothing any more of what {player} said. {kept}"


def release(script: AssistantScript, player: str, by: str) -> str:
    """Use again what a player said."""
    people = people_called(player)
    if not script.memory.quarantine.release(people):
        raise Refusal(f"{player} is not in quarantine.")
    script.audit("released", people=list(people), by=by)
    return f"{script.obj.key} uses again what {player} said."


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
    journal = script.obj.journal
    return [
        f"Memory of {script.obj.key}",
        f"Search index: {'cannot be read' if indexed is None else f'{indexed} items'}",
        f"Semantic memory: {semantic}",
        f"Journal: {journal.count()} entries, {unconsolidated(journal)} not yet consolidated",
        f"Entity profiles: {len(script.obj.entities.profiles())}",
    ]
