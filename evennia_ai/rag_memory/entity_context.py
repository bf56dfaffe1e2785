"""Entities in context: tidying what is known of them while the assistant dreams."""

from collections import ChainMap
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import pause
from evennia_ai.history.messages import speakers, utc_iso
from evennia_ai.history.records import COMMITTED
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.profile import SUPERSEDED, Profile

# Profiles tidied in one turn of the reactor and one write.
BATCH = 20


def note_met(script: Assistant, character: Character) -> dict[str, int]:
    """Give everybody who spoke, and the place she is in, a profile; note when each was last seen.

    It runs in one write before memories are linked, so that those of a first evening find their
    profiles. A profile known by name only is merged into the one entity met by that name. Running
    it again changes nothing.

    Returns:
        ``{"met", "seen_again", "joined"}``: profiles made, known ones seen since, and profiles
        merged into somebody's.
    """
    known, sights = character.entities.profiles(), _sights(script, character)
    met = {key: _met(known.get(key), key, *sight) for key, sight in sights.items()}
    now, gone = _joined({**known, **met}, met)
    changed = {key: now[key] for key in met if now[key] != known.get(key)}
    if changed:
        character.entities.put(changed, gone)
    new = len(met.keys() - known.keys())
    return {"met": new, "seen_again": len(changed) - new, "joined": len(gone)}


def _met(before: Profile | None, entity_id: str, name: str, kind: str, at: str) -> Profile:
    """The profile of an entity seen at a time (ISO 8601) under a name."""
    if before is None:
        return entities.new_profile(entity_id, name, at, kind)
    result = before if before.name == name else entities.renamed(before, name)
    if before.last_seen < at:
        result = entities.refresh(replace(result, last_seen=at))
    return result


def _joined(
    profiles: dict[str, Profile], met: Iterable[str]
) -> tuple[dict[str, Profile], set[str]]:
    """The profiles with those of mere names joined to who was met; the ids of the former."""
    names, result, gone = entities.names_index(profiles), dict(profiles), set()
    for entity_id in met:
        for unmet in entities.unmet_of(profiles, entity_id, names):
            result[entity_id] = entities.joined(result[entity_id], profiles[unmet])
            gone.add(unmet)
    return result, gone


def _sights(script: Assistant, character: Character) -> dict[str, tuple[str, str, str]]:
    """Name, kind and last time (ISO 8601) of each speaker since the last night and of the place.

    Speakers whose messages were archived since then stand in the compactions' records.
    """
    since = utc_iso(script.state.last_sleep.get("at", 0.0))
    left = (
        record.speakers
        for record in script.history.compactions()
        if record.status == COMMITTED and record.at >= since
    )
    heard = ChainMap(speakers(script.history.messages()), *reversed(list(left)))
    sights = {
        key: (name, "person", at) for key, (name, at) in heard.items() if key != character.stable_id
    }
    place = script.game.place()
    if place["id"]:
        sights[place["id"]] = (place["key"], "place", utc_iso(script.now()))
    return sights


@inlineCallbacks
def run_entity_consolidation_batch(
    script: Assistant, character: Character, reactor: Any = None
) -> Generator[Deferred[Any], Any, dict[str, int]]:
    """Tidy entity profiles: one observation a fact, outdated values marked, sights refreshed.

    Deterministic, without a model, a write for each `BATCH` profiles, those seen last first, until
    none needs it; running it again changes nothing.

    Args:
        script: Unused, for the common signature of sleep steps.
        character: The assistant's body.
        reactor: Where to pause between batches; Twisted's by default.

    Returns:
        A Deferred that fires with ``{"checked", "changed", "merged", "superseded", "left"}``:
        profiles looked at and changed, observations merged away and newly marked as outdated,
        profiles that still need it.
    """
    counts = {"checked": 0, "changed": 0, "merged": 0, "superseded": 0, "left": 0}
    while True:
        profiles = character.entities.profiles()
        untidy = [profile for profile in profiles.values() if not entities.is_tidy(profile)]
        untidy.sort(key=lambda item: (item.last_seen, item.id), reverse=True)
        chosen = [(old, entities.tidy(old)) for old in untidy[:BATCH]]
        if chosen:
            character.entities.put({new.id: new for _, new in chosen})
        counts["checked"], counts["left"] = len(profiles), len(untidy) - len(chosen)
        counts["changed"] += len(chosen)
        for old, new in chosen:
            counts["merged"] += len(old.observations) - len(new.observations)
            counts["superseded"] += _outdated(new) - _outdated(old)
        if not counts["left"]:
            return counts
        yield pause(reactor)


def _outdated(profile: Profile) -> int:
    return sum(item.status == SUPERSEDED for item in profile.observations)
