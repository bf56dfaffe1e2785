"""Profiles of the people, places and things met: their storage, and their upkeep at night.

They are in one Attribute of the character. What is too much for a profile moves into pages of its
own, named under `archived`: kept, shown and forgotten like the rest, but not rewritten with every
observation.
"""

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any, TypeVar

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import speakers, utc_iso
from evennia_ai.history.pages import Cache, Pages
from evennia_ai.history.records import COMMITTED
from evennia_ai.history.stored import Stored, Unreadable
from evennia_ai.protocol import Assistant, Character, Store
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.observations import named_in, touched_on
from evennia_ai.rag_memory.profile import Observation, Profile, current

T = TypeVar("T")

PROFILES, ARCHIVE = "entity_profiles", "ai_entities_archive"
# Archived pages that a search reads.
PAGES_SEARCHED = 20
# Profiles or pages looked through in one turn of the reactor.
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
        self._profiles = Cache(store, None, _read_profiles, _stored_profiles)
        self._pages = Pages(store, ARCHIVE, lambda raw, odd: Profile.from_dict(raw), Stored.to_dict)

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
            self._profiles.set(PROFILES, after)

    def _cut_back(self, profile: Profile) -> Profile:
        """A profile whose surplus, if there is any, was archived as a page."""
        kept, old = entities.cut_back(profile)
        if not old:
            return profile
        page = Profile(profile.id, profile.name, observations=tuple(old))
        return replace(kept, archived=(*kept.archived, self._pages.add(page)))

    def archived(self, profile: Profile) -> list[Observation]:
        """The archived observations of a profile, oldest page first."""
        pages = self._pages.all(profile.archived)
        return [item for page in pages.values() for item in page.observations]

    def archived_pages(self) -> Iterator[Profile]:
        """Every archived page, as a profile with an entity's id, name and old observations."""
        return (page for _, page in self._pages.back())

    def profiles_for(self, query: str, audience: str) -> dict[str, Profile]:
        """All profiles by entity id, those in a query with their archived observations.

        The newest `PAGES_SEARCHED` pages of all are read, first those the query surely names.
        """
        profiles = self.profiles()
        held = {key: profile for key, profile in profiles.items() if profile.archived}
        named = named_in(held, query, audience)
        others = [key for key in touched_on(held, query, audience) if key not in named]
        wanted = [*_by_turns(held, named), *_by_turns(held, others)]
        pages = self._pages.all(wanted[:PAGES_SEARCHED])
        for key, profile in profiles.items():
            read = (pages[name].observations for name in profile.archived if name in pages)
            if old := tuple(chain.from_iterable(read)):
                profiles[key] = replace(profile, observations=(*old, *profile.observations))
        return profiles

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Take out every observation that rests on one of these ids, and profiles left bare."""
        gone = set(sources)

        def left(profile: Profile) -> Profile | None:
            kept = profile.without_sources(gone)
            return None if kept is not profile and kept.is_bare else kept

        with self.store.transaction():
            for _ in self.forget(left):
                pass

    def forget(self, left: Callable[[Profile], Profile | None]) -> Iterator[None]:
        """Replaces each profile and archived page by what `left` returns, a few at each step.

        None drops it. The profiles are written together at the end.
        """
        filled = yield from self._forget_in_pages(left)

        def judged(profile: Profile) -> Profile | None:
            archived = tuple(page for page in profile.archived if page in filled)
            is_same = archived == profile.archived
            return left(profile if is_same else replace(profile, archived=archived))

        seen = dict[str, tuple[Profile, Profile | None]]()
        for some in _batches(list(self.profiles().items())):
            seen.update((key, (each, judged(each))) for key, each in some)
            yield
        changed, gone = {}, []
        for key, profile in self.profiles().items():
            before, new = seen.get(key, (None, None))
            if before is not profile:  # somebody changed it meanwhile
                new = judged(profile)
            if new is None:
                gone.append(key)
            elif new is not profile:
                changed[key] = new
        if changed or gone:
            self.put(changed, gone)

    def _forget_in_pages(
        self, left: Callable[[Profile], Profile | None]
    ) -> Generator[None, None, set[str]]:
        """Do the same in archived pages; returns the keys of those that still hold something."""
        filled = set[str]()
        for keys in _batches(self._pages.keys()):
            with self.store.transaction():
                for key, page in self._pages.all(keys).items():
                    # A page keeps its number, or a later one would take its place.
                    kept = left(page) or Profile("", "")
                    if kept is not page:
                        self._pages.set(key, kept)
                    if kept.observations:
                        filled.add(key)
            yield
        return filled


def _stored_profiles(profiles: Mapping[str, Profile]) -> dict[str, Any]:
    return {key: profile.to_dict() for key, profile in profiles.items()}


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _by_turns(profiles: Mapping[str, Profile], ids: Iterable[str]) -> list[str]:
    newest = (reversed(profiles[key].archived) for key in ids)
    return [page for turn in zip_longest(*newest) for page in turn if page is not None]


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
            now[key] = entities.renamed(before, name, at)
        if before.last_seen < at:
            now[key] = replace(now[key], first_seen=before.first_seen or at, last_seen=at)
    names, met = entities.names_index(now, PUBLIC), dict(now)
    for key in sights:
        for unmet in entities.unmet_of(met, key, names):
            now[key] = entities.joined(now[key], met[unmet])
            gone.add(unmet)
    changed = {key: now[key] for key in sights if now[key] != known.get(key)}
    if changed:
        character.entities.put(changed, gone)
    new = len(sights.keys() - known.keys())
    return {"met": new, "seen_again": len(changed) - new, "joined": len(gone)}


def _sights(script: Assistant, character: Character) -> dict[str, tuple[str, str, str]]:
    """Name, kind and last time (ISO 8601) of the place and of each speaker since the last night.

    Speakers whose messages were archived since then are in the compactions' records.
    """
    since = utc_iso(script.state.last_sleep.get("at", 0.0))
    left = (
        record.speakers
        for record in script.history.compactions()
        if record.status == COMMITTED and record.at >= since
    )
    heard = ChainMap(speakers(script.history.messages()), *reversed(list(left)))
    sights = {
        key: (name, "person", at)
        for key, (name, at) in heard.items()
        if key != character.stable_id and name != UNSEEN
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
