"""Profiles of the people, places and things met: their storage, and their upkeep at night.

They are in one Attribute of the character. What is too much for a profile moves into pages of its
own, named under `archived`: kept, shown and forgotten like the rest, but not rewritten with every
observation.
"""

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

from twisted.internet.defer import inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, pause
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import speakers, utc_iso
from evennia_ai.history.records import COMMITTED, next_number, page_key
from evennia_ai.protocol import Assistant, Character, Store
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.observations import named_in, touched_on
from evennia_ai.rag_memory.profile import SCHEMA_VERSION, SUPERSEDED, Observation, Profile

T = TypeVar("T")

PROFILES, ARCHIVE = "entity_profiles", "ai_entities_archive"
# Archived pages that a search reads, and pages that stay in memory after that.
PAGES_SEARCHED, PAGES_KEPT = 20, 60
# Profiles tidied in one turn of the reactor and one write.
BATCH = 20


class EntityHandler:
    """Reads and writes entity profiles in the character's store."""

    def __init__(self, store: Store):
        self.store = store
        self._stamp: object = None
        self._profiles: dict[str, Profile] | None = None
        # The stored form of each, so that a write renders only what changed.
        self._stored: dict[str, dict[str, Any]] = {}
        # Archived pages with their stamps, the last ones read, the latest last.
        self._pages: dict[str, tuple[object, Profile]] = {}

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id."""
        return dict(self._load())

    def get(self, entity_id: str) -> Profile | None:
        """One profile, or None."""
        return self._load().get(entity_id)

    def put(self, profiles: Mapping[str, Profile], gone: Iterable[str] = ()) -> None:
        """Store these profiles and drop the `gone` ones (others stay), in one write."""
        dropped = set(gone)
        with self.store.transaction():
            changed = {k: self._cut_back(p) for k, p in profiles.items() if k not in dropped}
            self._save({**self._load(), **changed}, dropped, changed)

    def remove(self, entity_ids: Iterable[str]) -> None:
        """Drop profiles, in one write; unknown ids are ignored."""
        gone, profiles = set(entity_ids), self._load()
        if not gone.isdisjoint(profiles):
            self._save(profiles, gone)

    def _save(
        self, profiles: Mapping[str, Profile], gone: set[str], changed: Iterable[str] = ()
    ) -> None:
        kept = {key: profile for key, profile in profiles.items() if key not in gone}
        written = {key: kept[key].to_dict() for key in changed}
        stored = {key: written.get(key) or self._stored[key] for key in kept}
        self.store.set(PROFILES, {"version": SCHEMA_VERSION, "profiles": stored})
        self._profiles, self._stored = kept, stored
        self._stamp = self.store.stamp(PROFILES)

    def _cut_back(self, profile: Profile) -> Profile:
        """A profile whose surplus, if there is any, was archived as a page."""
        kept, old = entities.cut_back(profile)
        if not old:
            return profile
        key = page_key(next_number(self.store.keys(ARCHIVE)))
        self._set_page(key, replace(kept, observations=tuple(old)))
        return replace(kept, archived=(*kept.archived, key))

    def archived(self, profile: Profile) -> list[Observation]:
        """The archived observations of a profile, oldest page first."""
        return [item for key in profile.archived for item in self._page(key).observations]

    def archived_pages(self) -> Iterator[Profile]:
        """Every archived page, as a profile with an entity's id, name and old observations.

        First those that a search has read or may read; each the newest first.
        """
        every = self.store.keys(ARCHIVE)[::-1]
        profiles = self._load().values()
        searched = {key for profile in profiles for key in profile.archived[-PAGES_SEARCHED:]}
        likely = (key for key in every if key in searched)
        yield from map(self._page, dict.fromkeys([*reversed(self._pages), *likely, *every]))

    def profiles_for(self, query: str) -> dict[str, Profile]:
        """All profiles by entity id, those in a query with their archived observations.

        The newest `PAGES_SEARCHED` pages of all are read, first those the query surely names.
        """
        found = self.profiles()
        held = {key: profile for key, profile in found.items() if profile.archived}
        named = named_in(held, query)
        others = [key for key in touched_on(held, query) if key not in named]
        wanted = [*_by_turns(held, named), *_by_turns(held, others)]
        pages = self._read(wanted[:PAGES_SEARCHED])
        for key, profile in found.items():
            old = [item for name in profile.archived if name in pages for item in pages[name]]
            if old:
                found[key] = replace(profile, observations=(*old, *profile.observations))
        return found

    def _read(self, keys: Sequence[str]) -> dict[str, tuple[Observation, ...]]:
        self.store.preload(keys, category=ARCHIVE)
        stamps = self.store.stamps(keys, category=ARCHIVE)
        for key, stamp in zip(keys, stamps, strict=True):
            known, page = self._pages.pop(key, (None, None))
            if page is None or known is not stamp:
                page = self._page(key)
            self._pages[key] = stamp, page
        for key in list(self._pages)[:-PAGES_KEPT]:
            del self._pages[key]
        return {key: self._pages[key][1].observations for key in keys}

    def _page(self, key: str) -> Profile:
        value = self.store.get(key, category=ARCHIVE)
        return Profile.from_dict(value if isinstance(value, Mapping) else {})

    def _set_page(self, key: str, page: Profile) -> None:
        observations = [item.to_dict() for item in page.observations]
        head = {"version": SCHEMA_VERSION, "id": page.id, "name": page.name}
        self.store.set(key, {**head, "observations": observations}, category=ARCHIVE)

    def forget_sources(self, sources: Iterable[str], cited: Iterable[str] = ()) -> None:
        """Take out the observations that rest on these sources alone, in one write.

        `cited` are messages that these rest on in turn.
        """
        gone, below, profiles = set(sources), set(cited), self._load()
        changed = {
            key: entities.without_sources(profile, gone, below) for key, profile in profiles.items()
        }
        changed = {key: new for key, new in changed.items() if new is not profiles[key]}
        with self.store.transaction():
            if changed:
                self.put(changed)
            for key in self.store.keys(ARCHIVE):
                page = self._page(key)
                kept = [item for item in page.observations if not item.rests_on(gone, below)]
                if len(kept) < len(page.observations):
                    self._set_page(key, replace(page, observations=tuple(kept)))

    def remove_bare(self, entity_ids: Iterable[str]) -> None:
        """Drop those of these profiles that hold nothing but a name."""
        profiles = filter(None, map(self.get, entity_ids))
        self.remove([each.id for each in profiles if each.is_bare])

    def forget(self, left: Callable[[Profile], Profile | None]) -> Iterator[None]:
        """Replaces each profile and archived page by what `left` returns, a few at each step.

        None drops it. The profiles are written together at the end.
        """
        filled = yield from self._forget_in_pages(left)

        def judged(profile: Profile) -> Profile | None:
            archived = tuple(page for page in profile.archived if page in filled)
            return left(replace(profile, archived=archived))

        seen = dict[str, tuple[Profile, Profile | None]]()
        for some in _batches(list(self._load().items())):
            seen.update((key, (each, judged(each))) for key, each in some)
            yield
        changed, gone = {}, []
        for key, profile in self._load().items():
            before, new = seen.get(key, (None, None))
            if before is not profile:  # somebody changed it meanwhile
                new = judged(profile)
            if new is None:
                gone.append(key)
            elif new != profile:
                changed[key] = new
        if changed or gone:
            self.put(changed, gone)

    def _forget_in_pages(
        self, left: Callable[[Profile], Profile | None]
    ) -> Generator[None, None, set[str]]:
        """Do the same in archived pages; returns the keys of those that still hold something."""
        filled = set[str]()
        for keys in _batches(self.store.keys(ARCHIVE)):
            with self.store.transaction():
                for key in keys:
                    page = self._page(key)
                    # A page keeps its number, or a later one would take its place.
                    kept = left(page) or replace(page, id="", name="", observations=())
                    if kept is not page:
                        self._set_page(key, kept)
                    if kept.observations:
                        filled.add(key)
            yield
        return filled

    def _load(self) -> dict[str, Profile]:
        stamp = self.store.stamp(PROFILES)
        if self._profiles is None or stamp is not self._stamp:
            value = self.store.get(PROFILES, default={})
            raw = value.get("profiles", value) if isinstance(value, Mapping) else {}
            held = raw if isinstance(raw, Mapping) else {}
            self._profiles = {
                str(key): Profile.from_dict(profile, str(key))
                for key, profile in held.items()
                if isinstance(profile, Mapping)
            }
            self._stored = {key: profile.to_dict() for key, profile in self._profiles.items()}
            self._stamp = stamp
        return self._profiles


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
            now[key] = entities.renamed(before, name)
        if before.last_seen < at:
            now[key] = entities.refresh(replace(now[key], last_seen=at))
    names, met = entities.names_index(now), dict(now)
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


@inlineCallbacks
def run_entity_consolidation_batch(
    script: Assistant, character: Character, reactor: IReactorTime | None = None
) -> Steps[dict[str, int]]:
    """Tidy entity profiles: one observation a fact, outdated values marked, sights refreshed.

    Deterministic, without a model; a write for each `BATCH` profiles, those seen last first, until
    none needs it. `reactor` is where to pause between batches, Twisted's by default.

    Fires with ``{"checked", "changed", "merged", "superseded", "left"}``: profiles looked at and
    changed, observations merged away and newly outdated, profiles that still need it.
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
            for profile, sign in ((new, 1), (old, -1)):
                outdated = sum(item.status == SUPERSEDED for item in profile.observations)
                counts["superseded"] += sign * outdated
        if not counts["left"]:
            return counts
        yield pause(reactor)
