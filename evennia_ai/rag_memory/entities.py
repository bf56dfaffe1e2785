"""Entities: adding to what is known of a person, place or thing, and finding it.

All functions that add return new profiles. While dreaming, observations are read off journal
entries without a model: a sentence that begins with a known name is one of that entity. A model
states its observations itself, with property and value, by `update_entity_observation`.

A search reads the profiles that it names as they are: it never finds former or forgotten
observations.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from evennia_ai.history.audience import PUBLIC, STAFF, normalised
from evennia_ai.history.messages import new_id, utc_iso
from evennia_ai.history.stored import UNMET
from evennia_ai.language.words import asks, sentences, telling_words
from evennia_ai.rag_memory.journal import JournalEntry
from evennia_ai.rag_memory.profile import ALIAS, Observation, Profile, folded
from evennia_ai.recall.values import Hit

# A profile, read and written whole, with more observations than the first is cut to the second.
MOST_KEPT, CUT_BACK_TO = 150, 100
# Letters, at least, and words, at most, of a name that is looked for in running text.
SHORTEST_MENTION, LONGEST_MENTION = 3, 6

# Sentences of an entry that are read.
SENTENCES = 6
# Most observations that a search finds, each with more than this share of a query's words.
MOST_FOUND, LEAST_SHARE = 3, 0.5

# Gives the ids of the entities that an audience knows by a name, bare and folded.
NamesOf = Callable[[str], tuple[str, ...]]


class Names:
    """The names of profiles, kept up as these change.

    It may hold more than the profiles have, so whatever is found is compared with them: the value
    of a transaction that failed stays, and nothing is missing.
    """

    def __init__(self, profile_of: Callable[[str], Profile | None]):
        self._profile_of = profile_of
        self.shown: dict[str, str] = {}  # the name of each profile, by its id
        self._called: dict[str, dict[str, None]] = {}  # ids of the profiles with a name

    def add(self, profile: Profile) -> None:
        """Note the names of a profile, new or changed."""
        self.shown[profile.id] = profile.name
        for name in map(bare, profile.names(STAFF)):
            if name:
                self._called.setdefault(name, {})[profile.id] = None

    def drop(self, profile: Profile) -> None:
        """Forget the names of a profile that is gone, or is to lose some."""
        self.shown.pop(profile.id, None)
        for name in map(bare, profile.names(STAFF)):
            self._called.get(name, {}).pop(profile.id, None)

    def of(self, audience: str) -> NamesOf:
        """The names that an audience may know."""
        return partial(self._ids, audience)

    def _ids(self, audience: str, name: str) -> tuple[str, ...]:
        profiles = filter(None, map(self._profile_of, self._called.get(name, ())))
        return tuple(p.id for p in profiles if name in map(bare, p.names(audience)))


def new_profile(entity_id: str, name: str, at: float | str, kind: str = "person") -> Profile:
    """The profile of an entity first met at a time (seconds since the epoch or ISO 8601)."""
    return Profile(entity_id, name, kind, _iso(at), _iso(at))


def observe(
    profile: Profile,
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    *,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    told_by: str = "",
) -> Profile:
    """A profile with one more observation; the fields are those of `Observation`.

    `at` is in seconds since the epoch or ISO 8601, `source` one id or several.
    """
    names = (profile.id, *profile.names(STAFF))
    new = Observation(
        new_id("o"),
        " ".join(text.split()),
        _iso(at),
        "" if folded(subject or "") in map(folded, names) else subject or "",
        predicate or "",
        value or "",
        (source,) if isinstance(source, str) else tuple(source),
        normalised(audience),
        told_by,
    )
    return replace(profile, observations=(*profile.observations, new))


def with_alias(
    profile: Profile, alias: str, at: float | str, source: str | Sequence[str], audience: str
) -> Profile:
    """A profile that an audience finds by one more name."""
    if folded(alias) in {"", *map(folded, profile.names(audience))}:
        return profile
    name = " ".join(alias.split())
    text = f"{name} is another name."
    return observe(profile, text, at, source, audience, predicate=ALIAS, value=name)


def cut_back(profile: Profile) -> tuple[Profile, list[Observation]]:
    """A profile of over `MOST_KEPT` observations with the best `CUT_BACK_TO`, and those cut.

    First goes what names no property, the oldest first; other names go last.
    """
    surplus = len(profile.observations) - CUT_BACK_TO
    if surplus <= MOST_KEPT - CUT_BACK_TO:
        return profile, []
    by_worth = sorted(profile.observations, key=lambda o: (o.predicate == ALIAS, o.is_fact, o.at))
    gone = by_worth[:surplus]
    return profile.only(lambda item: item not in gone), gone


def unmet_id(name: str) -> str:
    """The id of somebody or something that was mentioned and never met."""
    return UNMET + " ".join(name.split()).lower()


def unmet_of(profile: Profile, names: NamesOf) -> list[str]:
    """The ids of profiles made for a mere name that now means this entity only, which was met.

    `names` are those that everybody may know.
    """
    name = bare(profile.name)
    called = names(name)
    if [each for each in called if not each.startswith(UNMET)] != [profile.id]:
        return []
    return [e for e in called if e.startswith(UNMET) and bare(e.removeprefix(UNMET)) == name]


def names_index(profiles: Mapping[str, Profile], audience: str) -> NamesOf:
    """The ids of the entities of each name that an audience may know."""
    names = Names(profiles.get)
    for profile in profiles.values():
        names.add(profile)
    return names.of(audience)


def find(profile_of: Callable[[str], Profile | None], wanted: str, names: NamesOf) -> str | None:
    """The id of the entity that a name or id means, in any case, with or without article.

    None if there is none or more than one, as a wrong person is worse than none.
    """
    if profile_of(wanted):
        return wanted
    ids = names(bare(wanted))
    return ids[0] if len(ids) == 1 else None


def mentioned(names: NamesOf, text: str, shortest: int = SHORTEST_MENTION) -> list[str]:
    """The ids of the entities with a name in a text as whole words, each once.

    Ordered by where their names first end. Names of fewer than `shortest` letters, mostly words of
    the language, and of more than six words are left out.
    """
    words = folded(text).split()
    ids: dict[str, None] = {}
    for end in range(1, len(words) + 1):
        for start in range(max(0, end - LONGEST_MENTION), end):
            name = " ".join(words[start:end])
            if len(name) >= shortest:
                ids.update(dict.fromkeys(names(name)))
    return list(ids)


def _iso(at: float | str) -> str:
    return at if isinstance(at, str) else utc_iso(at)


def bare(name: str) -> str:
    """A name for comparing, without a leading article."""
    return re.sub(r"^(the|a|an) (?=.)", "", folded(name))


def observed(profile: Profile, entry: JournalEntry, names: NamesOf) -> Profile:
    """A profile with what a journal entry says of the entity; the same if it was read before.

    `names` is the `names_index` of all profiles for the entry's audience: a name that two entities
    share tells of neither.
    """
    if any(entry.id in item.sources for item in profile.observations):
        return profile
    at, audience = entry.timestamp, entry.audience
    for text in sentences(entry.content)[:SENTENCES]:
        if not asks(text) and is_about(text, profile.id, names):
            profile = observe(profile, text, at, entry.id, audience)
    return profile


def is_about(sentence: str, entity_id: str, names: NamesOf) -> bool:
    """Whether a sentence begins with the name of an entity, of several the longest.

    A colon behind the name tells who speaks, not whom it is about.
    """
    words = bare(sentence.partition(":")[0]).split()
    for count in range(min(LONGEST_MENTION, len(words) - 1), 0, -1):
        if ids := names(" ".join(words[:count])):
            return ids == (entity_id,)
    return False


def found_observations(profiles: Iterable[Profile], query: str, audience: str) -> list[Hit]:
    """The beliefs that have more than half of a query's telling words, best first.

    At most `MOST_FOUND` that the audience may know, of equal ones the newest first; the score is
    the share of the query's words. `profiles` are those that the query names.
    """
    wanted, hits = telling_words(query), list[Hit]()
    for profile in profiles:
        names = telling_words(" ".join(profile.names(audience)))
        for item in (belief.observation for belief in profile.beliefs(audience)):
            share = len(wanted & (names | telling_words(item.words))) / max(1, len(wanted))
            if share > LEAST_SHARE:
                is_named = bool(names & telling_words(item.text)) or not profile.name
                text = item.text if is_named else f"About {profile.name}: {item.text}"
                who = f"{item.told_by} said" if item.told_by else ""
                hit = Hit(item.id, share, who, text, item.at, "observation", None, item.audience)
                hits.append(replace(hit, sources=item.sources))
    hits.sort(key=lambda hit: (hit.score, str(hit.at)), reverse=True)
    return hits[:MOST_FOUND]
