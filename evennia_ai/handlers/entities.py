"""Profiles of the people, places and things met, in one Attribute of the character."""

from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.core.messages import SCHEMA_VERSION
from evennia_ai.handlers.store import Store

PROFILES = "entity_profiles"
Profile = dict[str, Any]


class EntityHandler:
    """Reads and writes entity profiles.

    Args:
        store: Where the character's values are kept.
    """

    def __init__(self, store: Store):
        self.store = store
        self._stamp: object = None
        self._profiles: dict[str, Profile] | None = None

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id, as shallow copies."""
        return {key: dict(profile) for key, profile in self._load().items()}

    def get(self, entity_id: str) -> Profile | None:
        """One profile as a shallow copy, or None."""
        profile = self._load().get(entity_id)
        return None if profile is None else dict(profile)

    def put(self, profiles: Mapping[str, Profile]) -> None:
        """Store these profiles (others stay) in one write."""
        merged = {**self._load(), **profiles}
        self.store.set(PROFILES, {"version": SCHEMA_VERSION, "profiles": merged})
        self._profiles, self._stamp = merged, self.store.stamp(PROFILES)

    def remove(self, entity_ids: Iterable[str]) -> None:
        """Drop profiles, in one write; ids that are not there are passed over."""
        gone, profiles = set(entity_ids), self._load()
        if gone & set(profiles):
            kept = {key: profile for key, profile in profiles.items() if key not in gone}
            self.store.set(PROFILES, {"version": SCHEMA_VERSION, "profiles": kept})
            self._profiles, self._stamp = kept, self.store.stamp(PROFILES)

    def _load(self) -> dict[str, Profile]:
        stamp = self.store.stamp(PROFILES)
        if self._profiles is None or stamp is not self._stamp:
            value = self.store.get(PROFILES, default={})
            stored = value.get("profiles", value) if isinstance(value, Mapping) else {}
            self._profiles = _sound(stored)
            self._stamp = stamp
        return self._profiles


def _sound(stored: Any) -> dict[str, Profile]:
    """Profiles of which each has an id and a list of observations; the rest is left out."""
    if not isinstance(stored, Mapping):
        return {}
    return {
        str(key): {**profile, "id": str(profile.get("id") or key), "observations": _dicts(profile)}
        for key, profile in stored.items()
        if isinstance(profile, Mapping)
    }


def _dicts(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    observations = profile.get("observations")
    if not isinstance(observations, list | tuple):
        return []
    return [dict(one) for one in observations if isinstance(one, Mapping) and one.get("id")]
