"""The page of what an assistant remembers, and what staff can do there."""

from itertools import islice
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.history.audience import STAFF
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.ledger import STATES
from evennia_ai.rag_memory.profile import Profile, current
from evennia_ai.staff.memory import MemoryActs, memory_status
from evennia_ai.staff.show import moment
from evennia_ai.web.one import MOST_ROWS, note_look, page_head
from evennia_ai.web.site import Visit, number, plain

JOURNAL_LINES = 50


@inlineCallbacks
def memory(visit: Visit) -> Steps[dict[str, Any]]:
    """Journal, profiles, pinned notes, who is in quarantine, and how the stores do."""
    script, seen = visit.assistant, visit.seen
    status, count = (yield memory_status(script)), script.obj.journal.count()
    last = number(visit.asked.get("before"), count, count)
    entries = seen.stretch(count - last, count - last + JOURNAL_LINES)
    notes = sorted(seen.notes(), key=lambda note: (STATES.index(note.state), note.at))
    by_time = sorted(seen.profiles(), key=lambda p: p.last_seen, reverse=True)
    profiles = list(islice(by_time, MOST_ROWS))
    facts = (item for profile in profiles for item in profile.observations)
    note_look(visit, "memory", [each.audience for each in (*entries, *notes, *facts)])
    return {
        **page_head(visit),
        "status": status[1:],
        "entries": [_entry(each) for each in entries],
        "entry_count": count,
        "older": last - JOURNAL_LINES if last > JOURNAL_LINES else 0,
        "notes": [plain(note, by=note.by.key) for note in notes],
        "profiles": [_profile(each) for each in profiles],
        "quarantine": [
            {"id": each, **about, "at": moment(about["at"])}
            for each, about in script.memory.quarantine.people.items()
        ],
    }


def _entry(entry: JournalEntry) -> dict[str, Any]:
    return plain(entry, sources=[each for each in entry.source_message_ids if each[:1] == "m"])


def _profile(profile: Profile) -> dict[str, Any]:
    stated = {belief.observation.statement for belief in current(profile.observations, STAFF)}
    facts = [plain(item, old=item.statement not in stated) for item in profile.observations]
    return plain(profile, relationship=profile.relationship(STAFF), facts=facts)


def change_memory(visit: Visit) -> "Deferred[str]":
    """Change what an assistant remembers; fires with a sentence."""
    acts = MemoryActs(visit.assistant, visit.seen, visit.account, visit.sent)
    return acts.do(visit.sent.get("act", ""))
