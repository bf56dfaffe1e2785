"""Profiles of the people, places and things met: their storage, and their upkeep at night.

They are in one Attribute of the character. Old observations of a profile that holds too many move
into an Attribute of their own under the entity's id: kept, shown and forgotten like the rest, but
not rewritten with every observation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import FACE, utc_iso
from evennia_ai.history.pages import KEPT, Cache, Store, records
from evennia_ai.history.records import COMMITTED
from evennia_ai.history.stored import Unreadable, as_plain
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.profile import Observation, Profile, current

PROFILES, ARCHIVE = "entity_profiles", "ai_entities_archive"
# Profiles looked through in one turn of the reactor.
BATCH = 20


def _read_profiles(key: str, raw: Any, odd: list[object]) -> dict[str, Profile]:
    if not isinstance(raw, Mapping):
        raise Unreadable("no dict of profiles")
    profiles = {}
    for entity_id, stored in raw.items():
        try:
            profiles[str(entity_id)] = Profile.from_dict(stored)
        except Unreadable:
            odd.append({entity_id: stored})
    return profiles


class EntityHandler:
    """Reads and writes entity profiles in the character's store."""

    def __init__(self, store: Store):
        self.store = store
        self._profiles = Cache(store, None, _read_profiles, as_plain)
        self._old = records(store, ARCHIVE, Profile, KEPT)

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id."""
        return dict(self._profiles.get(PROFILES) or {})

    def get(self, entity_id: str) -> Profile | None:
        """One profile, or None."""
        return (self._profiles.get(PROFILES) or {}).get(entity_id)

    def put(self, profiles: Mapping[str, Profile], gone: Iterable[str] = ()) -> None:
        """Store these profiles and drop the `gone` ones (others stay), in one write."""
        with self.store.transaction():
            changed = {key: self._cut_back(profile) for key, profile in profiles.items()}
            after = {**self.profiles(), **changed}
            for key in gone:
                after.pop(key, None)
                self.store.delete(key, ARCHIVE)
            self._profiles.set(PROFILES, after)

    def _cut_back(self, profile: Profile) -> Profile:
        """A profile whose surplus, if there is any, was archived."""
        left, surplus = entities.cut_back(profile)
        if surplus:
            old = (*self.archived(profile.id), *surplus)
            self._old.set(profile.id, replace(left, observations=old))
        return left

    def archived(self, entity_id: str) -> tuple[Observation, ...]:
        """The archived observations of an entity, the first archived first."""
        old = self._old.get(entity_id)
        return old.observations if old else ()

    def archived_profiles(self) -> Iterator[Profile]:
        """Each profile that has archived observations, with those only; one read at a time."""
        for key in self.store.keys(ARCHIVE):
            if old := self._old.get(key):
                yield old

    def whole(self, profile: Profile) -> Profile:
        """A profile with its archived observations."""
        old = self.archived(profile.id)
        return replace(profile, observations=(*old, *profile.observations)) if old else profile

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Take out every observation that rests on one of these ids, and profiles left bare."""
        gone = set(sources)

        def left(profile: Profile) -> Profile | None:
            rest = profile.only(lambda item: gone.isdisjoint(item.sources))
            is_bare = not (rest.observations or rest.first_seen)
            return None if rest is not profile and is_bare else rest

        with self.store.transaction():
            for _ in self.forget(left):
                pass

    def forget(self, left: Callable[[Profile], Profile | None]) -> Iterator[None]:
        """Replace each whole profile by what `left` returns, a few at each step; None drops it."""
        keys = list(self.profiles())
        for start in range(0, len(keys), BATCH):
            wholes = map(self.whole, filter(None, map(self.get, keys[start : start + BATCH])))
            rests = [(whole, rest) for whole in wholes if (rest := left(whole)) is not whole]
            if rests:
                with self.store.transaction():
                    for whole, _ in rests:
                        self.store.delete(whole.id, ARCHIVE)
                    changed = {rest.id: rest for _, rest in rests if rest}
                    self.put(changed, [whole.id for whole, rest in rests if rest is None])
            yield


def note_met(script: Assistant, character: Character) -> dict[str, int]:
    """Give everybody who spoke, and the present place, a profile; note when each was last seen.

    It runs in one write before memories are linked, so that those of a first evening find their
    profiles. A profile known by name only is merged into the one entity met by that name. Running
    it again changes nothing. Returns ``{"met", "seen_again", "joined"}``: profiles made, known ones
    seen since, and profiles merged.
    """
    known = character.entities.profiles()
    now, gone = dict(known), set[str]()
    sights = _sights(script, character)
    for key, (name, kind, at) in sights.items():
        before = known.get(key)
        if before is None:
            now[key] = entities.new_profile(key, name, at, kind)
            continue
        if before.name != name:
            now[key] = entities.with_alias(replace(before, name=name), before.name, at, (), PUBLIC)
        if before.last_seen < at:
            now[key] = replace(now[key], first_seen=before.first_seen or at, last_seen=at)
    names, met = entities.names_index(now, PUBLIC), dict(now)
    for key in sights:
        for unmet in entities.unmet_of(met, key, names):
            told = character.entities.whole(met[unmet]).observations
            both = sorted((*now[key].observations, *told), key=lambda item: item.at)
            now[key] = replace(now[key], observations=tuple(both))
            gone.add(unmet)
    changed = {key: now[key] for key in sights if now[key] != known.get(key)}
    if changed:
        character.entities.put(changed, gone)
    new = len(sights.keys() - known.keys())
    return {"met": new, "seen_again": len(changed) - new, "joined": len(gone)}


def _sights(script: Assistant, character: Character) -> dict[str, tuple[str, str, str]]:
    """Name, kind and last time (ISO 8601) of the place and of each speaker since the last night."""
    since, history = utc_iso(script.state.last_sleep.get("at", 0.0)), script.history
    left = (
        history.segment(key)
        for record in history.compactions()
        if record.status == COMMITTED and record.at >= since
        for key in record.segments
    )
    said = [*history.messages(), *(m for part in left if part for m in part.messages)]
    sights = {
        m.metadata.get(FACE, m.speaker_id): (m.speaker_name or m.speaker_id, "person", m.created_at)
        for m in sorted(said, key=lambda message: message.created_at)
        if m.speaker_id not in ("", character.stable_id) and m.speaker_name != UNSEEN
    }
    place = script.game.place()
    if place["id"]:
        sights[place["id"]] = (place["key"], "place", utc_iso(script.now()))
    return sights


def run_entity_consolidation_batch(script: Assistant, character: Character) -> dict[str, int]:
    """Count what is known of entities; what holds is worked out on reading, so nothing is changed.

    Returns ``{"checked", "observations", "current"}``: profiles, and the observations in them, and
    those that still hold.
    """
    profiles = character.entities.profiles().values()
    return {
        "checked": len(profiles),
        "observations": sum(len(profile.observations) for profile in profiles),
        "current": sum(len(current(profile.observations, STAFF)) for profile in profiles),
    }
