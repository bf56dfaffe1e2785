"""Profiles of the people, places and things met: storage, names, and upkeep at night.

While dreaming, observations are read off journal entries without a model: a sentence that begins
with a known name is one of that entity.

Each profile is in an Attribute of the character, under the entity's id. Old observations of one
that holds too many move into another Attribute: kept, shown and forgotten like the rest, but not
rewritten with every observation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Protocol

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import FACE, UNSEEN, utc_iso
from evennia_ai.history.stored import KEPT, UNMET, Store, records
from evennia_ai.language.words import asks, sentences
from evennia_ai.life import Body
from evennia_ai.rag_memory.entities import (
    Observation,
    Profile,
    bare,
    current,
    cut_back,
    folded,
    new_profile,
    observe,
    unmet_id,
    with_alias,
)
from evennia_ai.rag_memory.journal import JournalEntry, JournalHandler

PROFILES, ARCHIVE = "ai_entities", "ai_entities_archive"
# Profiles looked through in one turn of the reactor.
BATCH = 20
# Letters, at least, and words, at most, of a name that is looked for in running text.
SHORTEST_MENTION, LONGEST_MENTION = 3, 6
# Sentences of an entry that are read.
SENTENCES = 6


class Character(Body, Protocol):
    """The assistant's body with what it has kept; `stable_id` survives a rename."""

    stable_id: str
    journal: JournalHandler
    entities: "EntityHandler"


class EntityHandler:
    """Reads and writes entity profiles in the character's store, and finds them by their names.

    The index of names may hold more than the profiles have, so whatever is found is compared with
    them: the value of a transaction that failed stays, and nothing is missing.
    """

    def __init__(self, store: Store):
        self.store = store
        self._profiles = records(store, PROFILES, Profile)
        self._old = records(store, ARCHIVE, Profile, KEPT)
        self.changed: set[str] = set()  # ids of the profiles that were put since the last night
        self._shown: dict[str, str] = {}  # the name of each profile, by its id
        self._called: dict[str, dict[str, None]] = {}  # ids of the profiles with a name

    @cached_property
    def _known(self) -> dict[str, None]:
        """The ids of all profiles, and maybe of some that are not stored any more."""
        return dict.fromkeys(self.store.keys(PROFILES))

    @cached_property
    def _unread(self) -> list[str]:
        """The ids of the profiles whose names are not in the index yet."""
        return list(self._known)

    @cached_property
    def _aged(self) -> set[str]:
        """The ids of the profiles with archived observations, and maybe of some that had them."""
        return set(self.store.keys(ARCHIVE))

    def warm(self) -> Iterator[None]:
        """Reads all profiles and their names in advance, a few at each step."""
        while self._unread:
            batch = self._unread[-BATCH:]
            for profile in self._profiles.all(batch).values():
                self._index(profile)
            del self._unread[-len(batch) :]
            yield

    def _index(self, profile: Profile) -> None:
        """Note the names of a profile, new or changed."""
        self._shown[profile.id] = profile.name
        for name in filter(None, map(bare, profile.names(STAFF))):
            self._called.setdefault(name, {})[profile.id] = None

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id."""
        known = ((key, self._profiles.get(key)) for key in self._known)
        return {key: profile for key, profile in known if profile is not None}

    def get(self, entity_id: str) -> Profile | None:
        """One profile, or None."""
        return self._profiles.get(entity_id)

    def named(self, name: str, audience: str) -> tuple[str, ...]:
        """The ids of the entities that an audience knows by a name, bare and folded."""
        for _ in self.warm():  # what it has not read
            pass
        profiles = filter(None, map(self.get, self._called.get(name, ())))
        return tuple(p.id for p in profiles if name in map(bare, p.names(audience)))

    def everybody(self) -> list[str]:
        """The names of all profiles, without reading these; maybe of some that are gone."""
        for _ in self.warm():
            pass
        return list(self._shown.values())

    def find(self, wanted: str, audience: str) -> str | None:
        """The id of the entity that a name or id means, in any case, with or without article.

        None if there is none or more than one, as a wrong person is worse than none.
        """
        if self.get(wanted):
            return wanted
        ids = self.named(bare(wanted), audience)
        if len(ids) == 1:
            return ids[0]
        return None

    def mentioned(self, text: str, audience: str, shortest: int = SHORTEST_MENTION) -> list[str]:
        """The ids of the entities with a name in a text as whole words, each once.

        Ordered by where their names first end. Names of fewer than `shortest` letters, mostly words
        of the language, and of more than six words are left out.
        """
        words = folded(text).split()
        ids: dict[str, None] = {}
        for end in range(1, len(words) + 1):
            for start in range(max(0, end - LONGEST_MENTION), end):
                name = " ".join(words[start:end])
                if len(name) >= shortest:
                    ids |= dict.fromkeys(self.named(name, audience))
        return list(ids)

    def called(self, text: str, audience: str = STAFF) -> list[Profile]:
        """The profiles that a text names, as an audience may, or of which it is the id."""
        ids = self.mentioned(text, audience, 1)
        if text in self._known:
            ids.insert(0, text)
        return list(filter(None, map(self.get, ids)))

    def told_of(self, sentence: str, audience: str) -> tuple[str, ...]:
        """The ids of the entities with whose name a sentence begins, of several the longest.

        A colon behind the name tells who speaks, not whom it is about.
        """
        words = bare(sentence.partition(":")[0]).split()
        for count in range(min(LONGEST_MENTION, len(words) - 1), 0, -1):
            if ids := self.named(" ".join(words[:count]), audience):
                return ids
        return ()

    def observed(self, profile: Profile, entry: JournalEntry) -> Profile:
        """A profile with what a journal entry says of the entity; the same if it was read before.

        A name that two entities share tells of neither.
        """
        if any(entry.id in item.sources for item in profile.observations):
            return profile
        at, audience = entry.timestamp, entry.audience
        for text in sentences(entry.content)[:SENTENCES]:
            if not asks(text) and self.told_of(text, audience) == (profile.id,):
                profile = observe(profile, text, at, entry.id, audience)
        return profile

    def met(
        self,
        here: Profile | None,
        name: str,
        at: float,
        sources: Sequence[str],
        audience: str,
    ) -> Profile:
        """The profile of somebody `here` (as the game names them), or of a name, or a new one.

        Whoever is here is known by this name from now on, to those who may know what it rests on.
        """
        if here is None:
            entity_id = self.find(name, audience) or unmet_id(name)
            return self.get(entity_id) or Profile(entity_id, " ".join(name.split()), "unknown")
        profile = self.get(here.id) or here
        if name == here.id:
            return profile
        return with_alias(profile, name, at, sources, audience)

    def put(self, profiles: Mapping[str, Profile], gone: Iterable[str] = ()) -> None:
        """Store these profiles and drop the `gone` ones (others stay), in one transaction."""
        with self.store.transaction():
            for key, profile in profiles.items():
                left, surplus = cut_back(profile)
                if surplus:
                    old = (*self.archived(key), *surplus)
                    self._old.set(key, replace(left, observations=old))
                    self._aged.add(key)
                self._profiles.set(key, left)
                self._known[key] = None
                self._index(left)
                self.changed.add(key)
            for key in gone:
                self.store.delete(key, PROFILES)
                self.store.delete(key, ARCHIVE)

    def archived(self, entity_id: str) -> tuple[Observation, ...]:
        """The archived observations of an entity, the first archived first."""
        old = self._old.get(entity_id) if entity_id in self._aged else None
        if old:
            return old.observations
        return ()

    def archived_profiles(self) -> Iterator[Profile]:
        """Each profile that has archived observations, with those only; one read at a time."""
        for key in self.store.keys(ARCHIVE):
            if old := self._old.get(key):
                yield old

    def whole(self, profile: Profile) -> Profile:
        """A profile with its archived observations."""
        old = self.archived(profile.id)
        if old:
            return replace(profile, observations=(*old, *profile.observations))
        return profile

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Take out every observation that rests on one of these ids, and profiles left bare."""
        gone = set(sources)

        def left(profile: Profile) -> Profile | None:
            rest = profile.only(lambda item: gone.isdisjoint(item.sources))
            is_bare = not (rest.observations or rest.first_seen)
            if rest is not profile and is_bare:
                return None
            return rest

        with self.store.transaction():
            for _ in self.forget(left):
                pass

    def forget(
        self, left: Callable[[Profile], Profile | None], ids: Iterable[str] | None = None
    ) -> Iterator[None]:
        """Replace each whole profile by what `left` returns, a few at each step; None drops it.

        With `ids` only these profiles.
        """
        keys = list(self._known if ids is None else ids)
        for start in range(0, len(keys), BATCH):
            with self.store.transaction():
                for profile in filter(None, map(self.get, keys[start : start + BATCH])):
                    whole = self.whole(profile)
                    rest = left(whole)
                    if rest is whole:
                        continue
                    self.store.delete(whole.id, ARCHIVE)
                    self._shown.pop(whole.id, None)
                    for name in map(bare, whole.names(STAFF)):
                        self._called.get(name, {}).pop(whole.id, None)
                    if rest is None:
                        self.put({}, [whole.id])
                    else:
                        self.put({whole.id: rest})
            yield


def note_met(
    handler: EntityHandler,
    history: HistoryHandler,
    place: Mapping[str, Any],
    me: str,
    since: float,
    now: float,
) -> dict[str, int]:
    """Give everybody who spoke, and the present place, a profile; note when each was last seen.

    It runs in one write before memories are linked, so that those of a first evening find their
    profiles. A profile known by name only is merged into the one entity met by that name. Running
    it again changes nothing. Returns ``{"met", "seen_again", "joined"}``: profiles made, known ones
    seen since, and profiles merged.
    """
    sights = _sights(history, me, utc_iso(since))
    if place["id"]:
        sights = {place["id"]: (place["key"], "place", utc_iso(now)), **sights}
    counts = {"met": 0, "seen_again": 0, "joined": 0}
    with handler.store.transaction():
        for key, (name, kind, at) in sights.items():
            before = handler.get(key)
            profile = before or new_profile(key, name, at, kind)
            if profile.name != name:
                named = replace(profile, name=name)
                profile = with_alias(named, profile.name, at, (), PUBLIC)
            if profile.last_seen < at:
                profile = replace(profile, first_seen=profile.first_seen or at, last_seen=at)
            if profile is not before:
                handler.put({key: profile})
                counts["seen_again" if before else "met"] += 1
        for profile in filter(None, map(handler.get, sights)):
            name = bare(profile.name)
            called = handler.named(name, PUBLIC)
            # Profiles made for a mere name that now means this entity only, which was met.
            unmet = [
                each
                for each in called
                if each.startswith(UNMET) and bare(each.removeprefix(UNMET)) == name
            ]
            if unmet and [e for e in called if not e.startswith(UNMET)] == [profile.id]:
                wholes = map(handler.whole, filter(None, map(handler.get, unmet)))
                told = [*profile.observations, *(o for each in wholes for o in each.observations)]
                told.sort(key=lambda item: item.at)
                handler.put({profile.id: replace(profile, observations=tuple(told))}, unmet)
                counts["joined"] += len(unmet)
    return counts


def _sights(history: HistoryHandler, me: str, since: str) -> dict[str, tuple[str, str, str]]:
    """Name, kind and last time (ISO 8601) of each speaker but `me` since then (ISO 8601)."""
    sights: dict[str, tuple[str, str, str]] = {}
    left = (
        history.segment(key)
        for record in takewhile(lambda record: record.at >= since, history.newest_compactions())
        for summary in filter(None, map(history.summary, record.summaries))
        for key in summary.segments
    )
    said = [*history.messages(), *(m for segment in left if segment for m in segment.messages)]
    for m in sorted(said, key=lambda message: message.created_at, reverse=True):
        if m.speaker_id not in ("", me) and m.speaker_name != UNSEEN:
            name, key = m.speaker_name or m.speaker_id, m.metadata.get(FACE, m.speaker_id)
            sights.setdefault(key, (name, "person", m.created_at))
    return sights


def run_entity_consolidation_batch(script: object, character: Character) -> dict[str, int]:
    """Count what is known of entities; what holds is worked out on reading, so nothing is changed.

    Returns ``{"checked", "observations", "current"}``: the profiles that were written since the
    last night, and the observations in them, and those that still hold.
    """
    changed, character.entities.changed = character.entities.changed, set()
    profiles = list(filter(None, map(character.entities.get, changed)))
    return {
        "checked": len(profiles),
        "observations": sum(len(profile.observations) for profile in profiles),
        "current": sum(len(current(profile.observations, STAFF)) for profile in profiles),
    }
