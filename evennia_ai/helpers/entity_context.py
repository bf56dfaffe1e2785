"""Entities in context: tidying what is known of them while the assistant dreams."""

from typing import Any

from evennia_ai.core import entities
from evennia_ai.core.entities import SUPERSEDED, Profile


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
