"""What staff can do on the pages: checked as the commands do, with a line in the audit log."""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.commands.base import Refusal
from evennia_ai.commands.ledger import note_called
from evennia_ai.commands.privacy import people_called
from evennia_ai.game.identity import find, speaker_of
from evennia_ai.rag_memory.entities import without_observation
from evennia_ai.rag_memory.indexing import forget_entry
from evennia_ai.rag_memory.ledger import APPROVED, WITHDRAWN
from evennia_ai.staff.configuration import change_option, take_preset
from evennia_ai.web.site import Visit

# The source of an entry that staff wrote in place of another.
CORRECTION = "correction"


def change_memory(visit: Visit) -> Any:
    """Change what an assistant remembers. Returns, or fires with, a sentence.

    The acts decide on notes, forget or correct entries, drop observations, and put players into
    quarantine or release them.
    """
    acts = {
        "approve": lambda: _decide(visit, APPROVED),
        "reject": lambda: _decide(visit, WITHDRAWN),
        "forget": lambda: visit.assistant.run_exclusive(lambda: _forget(visit)),
        "correct": lambda: visit.assistant.run_exclusive(lambda: _correct(visit)),
        "drop": lambda: visit.assistant.run_exclusive(lambda: _drop(visit)),
        "quarantine": lambda: _quarantine(visit),
        "release": lambda: _release(visit),
    }
    act = acts.get(visit.sent.get("act", ""))
    if act is None:
        raise Refusal("There is no such act.")
    return act()


def _decide(visit: Visit, state: str) -> str:
    seen = visit.seen
    note = note_called([*seen.notes(), *seen.closed_notes()], visit.sent.get("id", ""))
    done = visit.assistant.ledger.change(note.id, state, speaker_of(visit.account))
    visit.assistant.audit("ledger", note=done.id, state=state, by=visit.account.key)
    return f"Note {done.id} is {done.state}."


@inlineCallbacks
def _forget(visit: Visit) -> Generator[Deferred[Any], Any, str]:
    script, wanted = visit.assistant, visit.sent.get("id", "")
    entry = visit.seen.entry(wanted)
    if entry is None:
        raise Refusal(f"There is no journal entry `{wanted}`.")
    found = yield forget_entry(script, script.obj, entry.id)
    script.audit("forget", entry=entry.id, by=visit.account.key)
    return f"Entry {entry.id} is withdrawn; {found} of its memories left semantic memory."


@inlineCallbacks
def _correct(visit: Visit) -> Generator[Deferred[Any], Any, str]:
    """Withdraw an entry, and write another in its place that rests on the same."""
    script, text = visit.assistant, visit.sent.get("text", "").strip()
    old = visit.seen.entry(visit.sent.get("id", ""))
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
    script.audit("corrected", entry=old.id, now=new.id, by=visit.account.key)
    return f"Entry {new.id} takes the place of {old.id}."


def _drop(visit: Visit) -> str:
    """Take an observation out of a profile."""
    script, sent = visit.assistant, visit.sent
    profile = script.obj.entities.get(sent.get("profile", ""))
    left = profile and without_observation(profile, sent.get("id", ""))
    if profile is None or left is None or len(left.observations) == len(profile.observations):
        raise Refusal("There is no such observation.")
    script.obj.entities.put({profile.id: left})
    script.audit("dropped", profile=profile.id, observation=sent["id"], by=visit.account.key)
    return f"{script.obj.key} no longer believes this of {profile.name}."


def _quarantine(visit: Visit) -> str:
    script, player = visit.assistant, visit.sent.get("player", "").strip()
    people = people_called(player)
    names = {each: str(getattr(find(each), "key", player)) for each in people}
    if not script.memory.quarantine.add(names):
        raise Refusal(f"{player} is in quarantine already.")
    script.audit("quarantine", people=list(people), by=visit.account.key)
    return f"{script.obj.key} uses nothing any more of what {player} said."


def _release(visit: Visit) -> str:
    script, player = visit.assistant, visit.sent.get("player", "").strip()
    if not script.memory.quarantine.release(people_called(player)):
        raise Refusal(f"{player} is not in quarantine.")
    script.audit("released", people=player, by=visit.account.key)
    return f"{script.obj.key} uses again what {player} said."


def change_options(visit: Visit) -> str:
    """Set an option or take a preset; by the rules of `aiconfig`."""
    script, sent, by = visit.assistant, visit.sent, visit.account.key
    if not script.may_change(visit.account):
        raise Refusal(f"You may not change {script.obj.key}: it belongs to somebody else.")
    act = sent.get("act", "")
    if act == "preset":
        lines = take_preset(script, sent.get("preset", ""), by)
    elif act in ("set", "default"):
        text = "default" if act == "default" else sent.get("value", "")
        lines = change_option(script, sent.get("option", ""), text, by, visit.is_admin)
    else:
        raise Refusal("There is no such act.")
    return " ".join(lines)
