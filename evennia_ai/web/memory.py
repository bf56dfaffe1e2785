"""The page of what an assistant remembers."""

from itertools import islice
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.history.audience import STAFF
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.ledger import STATES, Note
from evennia_ai.rag_memory.profile import Profile, former
from evennia_ai.recall.values import Hit, Query
from evennia_ai.staff.memory import memory_status
from evennia_ai.staff.show import private_to
from evennia_ai.web.one import FOUND, MOST_ROWS, note_look, page_head
from evennia_ai.web.site import Visit, number

JOURNAL_LINES = 50


@inlineCallbacks
def memory(visit: Visit) -> Steps[dict[str, Any]]:
    """Journal, profiles, pinned notes, who is in quarantine, and how the stores do.

    With words in the address: what semantic memory and the journal hold on them, with scores.
    """
    script, words = visit.assistant, visit.asked.get("q", "").strip()
    seen = visit.seen
    status = yield memory_status(script)
    count, scores, memories = script.obj.journal.count(), dict[str, float](), list[dict[str, Any]]()
    last = number(visit.asked.get("before"), count, count)
    if words:
        if script.spend.may_embed([words]):
            found = yield script.mind.memories.search(script.scope, words, FOUND, visit.audience)
            memories = [_memory_row(each) for each in found]
        query = Query(words, 3 * FOUND, own_name=script.obj.key, observations=True, tools=True)
        hits = yield seen.search(query)
        scores = {hit.turn_id: hit.score for hit in hits if hit.kind == "journal"}
        entries, last = [], 0
        for each in reversed(scores):
            entry = seen.entry(each)  # it may read pages
            entries += [entry] if entry else []
            yield pause()
    else:
        entries = seen.stretch(count - last, count - last + JOURNAL_LINES)
    notes = sorted(seen.notes(), key=lambda note: (STATES.index(note.state), note.at))
    by_time = sorted(seen.profiles(), key=lambda p: p.last_seen, reverse=True)
    profiles = list(islice(by_time, MOST_ROWS))
    facts = (item for profile in profiles for item in profile.observations)
    audiences = [each.audience for group in (entries, notes, facts) for each in group]
    note_look(visit, "memory", [*audiences, *(each["audience"] for each in memories)])
    return {
        **page_head(visit),
        "status": status[1:],
        "q": words,
        "memories": memories,
        "entries": [_entry_row(each, scores.get(each.id)) for each in entries],
        "entry_count": count,
        "older": last - JOURNAL_LINES if last > JOURNAL_LINES else 0,
        "notes": [_note_row(each) for each in notes],
        "profiles": [_profile_row(each) for each in profiles],
        "quarantine": [
            {"id": each, **about} for each, about in script.memory.quarantine.people.items()
        ],
    }


def _memory_row(hit: Hit) -> dict[str, Any]:
    """A memory that a search found."""
    return {
        "id": hit.turn_id,
        "text": hit.text,
        "score": round(hit.score, 3),
        "audience": hit.audience,
        "private": private_to(hit.audience),
    }


def _entry_row(entry: JournalEntry, score: float | None) -> dict[str, Any]:
    return {
        "id": entry.id,
        "score": score,
        "at": entry.timestamp,
        "importance": entry.importance,
        "text": entry.content,
        "withdrawn": entry.withdrawn,
        "private": private_to(entry.audience),
        "sources": [each for each in entry.source_message_ids if each[:1] == "m"],
    }


def _note_row(note: Note) -> dict[str, Any]:
    return {
        "id": note.id,
        "text": note.text,
        "kind": note.kind,
        "state": note.state,
        "by": note.by.key,
        "at": note.at,
        "weight": note.weight,
        "private": private_to(note.audience),
    }


def _profile_row(profile: Profile) -> dict[str, Any]:
    old = former(profile.observations)
    return {
        "id": profile.id,
        "name": profile.name,
        "kind": profile.kind,
        "relationship": profile.relationship(STAFF),
        "seen": profile.last_seen,
        "facts": [
            {
                "id": item.id,
                "text": item.text,
                "old": item.id in old,
                "private": private_to(item.audience),
            }
            for item in profile.observations
        ],
    }
