"""Profiles of the people, places and things met, in one Attribute of the character.

What is too much for a profile moves into pages of its own, which the profile names under
`archived`: kept, shown and forgotten like the rest, but not written anew with every observation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from evennia_ai.history.messages import SCHEMA_VERSION
from evennia_ai.history.pages import next_number, page_key
from evennia_ai.history.records import Reader, as_count, as_list, as_text, as_texts, sound
from evennia_ai.protocol import Store
from evennia_ai.rag_memory.entities import cut_back, sources_of, without_sources
from evennia_ai.rag_memory.observation_search import named_in, touched_on

PROFILES, ARCHIVE = "entity_profiles", "ai_entities_archive"
# Archived pages that a search reads, and pages that stay in memory after that.
PAGES_SEARCHED, PAGES_KEPT = 20, 60
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
        # Archived pages with their stamps, the last ones read, the latest last.
        self._pages: dict[str, tuple[object, Profile]] = {}

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id, as shallow copies."""
        return {key: dict(profile) for key, profile in self._load().items()}

    def get(self, entity_id: str) -> Profile | None:
        """One profile as a shallow copy, or None."""
        profile = self._load().get(entity_id)
        return None if profile is None else dict(profile)

    def put(self, profiles: Mapping[str, Profile], gone: Iterable[str] = ()) -> None:
        """Store these profiles and drop those that are gone (others stay), in one write."""
        merged = {**self._load(), **profiles}
        for entity_id in gone:
            merged.pop(entity_id, None)
        with self.store.transaction():
            for entity_id in set(profiles) & set(merged):
                merged[entity_id] = self._cut_back(merged[entity_id])
            self.store.set(PROFILES, {"version": SCHEMA_VERSION, "profiles": merged})
        self._profiles, self._stamp = merged, self.store.stamp(PROFILES)

    def _cut_back(self, profile: Profile) -> Profile:
        """A profile of which a page was archived if it held too much."""
        kept, old = cut_back(profile)
        if not old:
            return profile
        key = page_key(next_number(self.store.keys(ARCHIVE)))
        page = {"version": SCHEMA_VERSION, "id": kept["id"], "name": kept["name"]}
        self.store.set(key, {**page, "observations": old}, category=ARCHIVE)
        return {**kept, "archived": [*kept.get("archived", ()), key]}

    def archived(self, profile: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What moved out of a profile into pages of its own, oldest page first."""
        pages = (self._page(key) for key in profile.get("archived", ()))
        return [item for page in pages for item in page["observations"]]

    def archived_pages(self) -> Iterator[Profile]:
        """Every archived page, ``{"id", "name", "observations"}`` of an entity.

        First those that the last searches read, then those that a search for somebody's name may
        read, then the others, of each the newest first.
        """
        every = self.store.keys(ARCHIVE)
        searched = {
            key
            for profile in self._load().values()
            for key in profile.get("archived", ())[-PAGES_SEARCHED:]
        }
        likely = (key for key in reversed(every) if key in searched)
        for key in dict.fromkeys([*reversed(self._pages), *likely, *reversed(every)]):
            yield self._page(key)

    def profiles_for(self, query: str) -> dict[str, Profile]:
        """All profiles by entity id, those named in a query with what was archived of them.

        Of all of them together the newest `PAGES_SEARCHED` pages are read, those of whom the query
        surely names first; a page that was read is read anew only when it has changed.
        """
        found = self.profiles()
        pages = self._read(_pages_on(found, query))
        for key, profile in found.items():
            old = [page for name in profile.get("archived", ()) if (page := pages.get(name))]
            if old:
                archived = [item for page in old for item in page["observations"]]
                found[key] = {**profile, "observations": [*archived, *profile["observations"]]}
        return found

    def _read(self, keys: Sequence[str]) -> dict[str, Profile]:
        """Archived pages by key, from the last ones read where they have not changed."""
        self.store.preload(keys, category=ARCHIVE)
        stamps = self.store.stamps(keys, category=ARCHIVE)
        for key, stamp in zip(keys, stamps, strict=True):
            known, page = self._pages.pop(key, (None, None))
            if page is None or known is not stamp:
                page = self._page(key)
            self._pages[key] = stamp, page
        for key in list(self._pages)[:-PAGES_KEPT]:
            del self._pages[key]
        return {key: self._pages[key][1] for key in keys}

    def _page(self, key: str) -> Profile:
        return _profile("", self.store.get(key, category=ARCHIVE)) or {"observations": []}

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Take out the observations that rest on these sources alone, in one write."""
        gone, profiles = list(sources), self._load()
        changed = {key: without_sources(profile, gone) for key, profile in profiles.items()}
        changed = {key: new for key, new in changed.items() if new != profiles[key]}
        with self.store.transaction():
            if changed:
                self.put(changed)
            for key in self.store.keys(ARCHIVE):
                self._forget_in(key, set(gone))

    def _forget_in(self, key: str, gone: set[str]) -> None:
        page = self._page(key)
        kept = [item for item in page["observations"] if not gone.issuperset(sources_of(item))]
        if len(kept) < len(page["observations"]):
            self.store.set(key, {**page, "observations": kept}, category=ARCHIVE)

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


def _pages_on(profiles: Mapping[str, Profile], query: str) -> list[str]:
    """The keys of archived pages of those a query is about: of each by turns, newest first."""
    held = {key: profile for key, profile in profiles.items() if profile.get("archived")}
    named = named_in(held, query)
    others = [key for key in touched_on(held, query) if key not in named]
    pages = [*_by_turns(held, named), *_by_turns(held, others)]
    return pages[:PAGES_SEARCHED]


def _by_turns(profiles: Mapping[str, Profile], ids: Iterable[str]) -> list[str]:
    newest = (reversed(profiles[key]["archived"]) for key in ids)
    return [page for turn in zip_longest(*newest) for page in turn if page is not None]


def _sound(stored: Any) -> dict[str, Profile]:
    """Profiles of which each has all its parts in their types; the rest is left out."""
    if not isinstance(stored, Mapping):
        return {}
    return {str(key): found for key, raw in stored.items() if (found := _profile(str(key), raw))}


def _profile(key: str, raw: Any) -> Profile | None:
    must: dict[str, Reader] = {
        "id": lambda value: str(value or key),
        "name": lambda value: str(value or key),
        "observations": _observations,
    }
    return sound(raw, must, _PROFILE_MAY)


def _observations(value: Any) -> list[dict[str, Any]]:
    """Observations of which each has an id, a text and a time."""
    found = (sound(each, _OBSERVATION, _OBSERVATION_MAY) for each in as_list(value))
    return [each for each in found if each is not None and each["id"]]


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


_PROFILE_MAY: Mapping[str, Reader] = {
    "kind": _shown,
    "aliases": as_texts,
    "memory_links": as_texts,
    "archived": as_texts,
    "first_seen": as_text,
    "last_seen": as_text,
    "relationship": _shown,
}
_OBSERVATION: Mapping[str, Reader] = {"id": _shown, "text": _shown, "at": as_text}
_OBSERVATION_MAY: Mapping[str, Reader] = {
    "last_at": as_text,
    "times": lambda value: as_count(value) or 1,
    "sources": as_texts,
    "other_texts": as_texts,
}
