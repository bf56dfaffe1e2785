"""Entities in context: tidying what is known of them while the assistant dreams."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.core import entities
from evennia_ai.core.entities import SUPERSEDED, Profile
from evennia_ai.core.messages import utc_iso


def note_met(script: Any, character: Any) -> dict[str, int]:
    """Give everybody who spoke, and the place she is in, a profile; note when each was last seen.

    In one write, before memories are linked, so that those of a first evening have somebody to
    be linked to. Running it again changes nothing.

    Args:
        script: The assistant's script; `history` and `game` are used.
        character: Its body; `entities` and `stable_id` are used.

    Returns:
        ``{"met", "seen_again"}``: profiles made, and known ones seen since.
    """
    known, changed, met = character.entities.profiles(), {}, 0
    for entity_id, (name, kind, at) in _sights(script, character).items():
        before = known.get(entity_id)
        if before is None:
            met += 1
            changed[entity_id] = entities.new_profile(entity_id, name, at, kind)
        elif str(before.get("last_seen") or "") < at:
            changed[entity_id] = entities.refresh({**before, "last_seen": at})
    if changed:
        character.entities.put(changed)
    return {"met": met, "seen_again": len(changed) - met}


def _sights(script: Any, character: Any) -> dict[str, tuple[str, str, str]]:
    """Name, kind and last time (ISO 8601) of each speaker of the live history and of the place."""
    sights: dict[str, tuple[str, str, str]] = {}
    for message in script.history.messages():
        speaker: Mapping[str, Any] = message.get("speaker") or {}
        if speaker.get("id") and speaker["id"] != character.stable_id:
            name = str(speaker.get("key") or speaker["id"])
            sights[speaker["id"]] = (name, "person", str(message.get("created_at") or ""))
    place = script.game.place()
    if place["id"]:
        sights[place["id"]] = (place["key"], "place", utc_iso(script.now()))
    return sights


def run_entity_consolidation_batch(script: Any, character: Any, limit: int = 20) -> dict[str, int]:
    """Tidy entity profiles: one observation a fact, outdated values marked, sights refreshed.

    Deterministic, without a model, in one write; running it again changes nothing.

    Args:
        script: The assistant's script; unused, for the common signature of sleep steps.
        character: Its body; `entities` is used.
        limit: Most profiles to change, those seen last first.

    Returns:
        ``{"checked", "changed", "merged", "superseded", "left"}``: profiles looked at and
        changed, observations merged away and newly marked as outdated, profiles that still
        need it.
    """
    profiles = character.entities.profiles()
    untidy = [profile for profile in profiles.values() if not entities.is_tidy(profile)]
    untidy.sort(key=lambda item: (str(item.get("last_seen") or ""), item["id"]), reverse=True)
    chosen = [(old, entities.tidy(old)) for old in untidy[: max(limit, 0)]]
    if chosen:
        character.entities.put({new["id"]: new for _, new in chosen})
    return {
        "checked": len(profiles),
        "changed": len(chosen),
        "merged": sum(_size(old) - _size(new) for old, new in chosen),
        "superseded": sum(_outdated(new) - _outdated(old) for old, new in chosen),
        "left": len(untidy) - len(chosen),
    }


def _size(profile: Profile) -> int:
    return len(profile.get("observations") or ())


def _outdated(profile: Profile) -> int:
    observations = profile.get("observations") or ()
    return sum(observation.get("status") == SUPERSEDED for observation in observations)
