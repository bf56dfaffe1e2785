"""Entities: changing what is known of a person, place or thing, and finding it by name.

Nothing known is thrown away: a newer value of the same subject and predicate supersedes the older,
and two observations that say the same become one that remembers both. All functions return new
profiles.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evennia_ai.history.audience import PUBLIC, normalised, visible
from evennia_ai.history.forgetting import OwnWords
from evennia_ai.history.messages import new_id, utc_iso
from evennia_ai.history.sealed import UNMET
from evennia_ai.rag_memory.profile import (
    CURRENT,
    SUPERSEDED,
    Observation,
    Profile,
    folded,
    own_names,
    property_of,
    shown_observations,
    summary_line,
)

# A profile, read and written whole, with more observations than the first is cut to the second.
MOST_KEPT, CUT_BACK_TO = 150, 100
# Links to memories kept in a profile; profiles are read and written whole.
MOST_LINKS = 200
# The predicate whose value is what somebody is to the assistant.
RELATIONSHIP = "relationship"
# Letters, at least, and words, at most, of a name that is looked for in running text.
SHORTEST_MENTION, LONGEST_MENTION = 3, 6

NamesIndex = Mapping[str, tuple[str, ...]]


def new_profile(entity_id: str, name: str, at: float | str, kind: str = "person") -> Profile:
    """An empty profile of an entity first met at a time (seconds since the epoch or ISO 8601)."""
    when = _iso(at)
    return tidy(Profile(entity_id, name, kind, first_seen=when, last_seen=when))


def profile_met(
    profiles: Mapping[str, Profile], here: Mapping[str, Any] | None, name: str, at: float
) -> Profile:
    """The profile of somebody present (as the game names them), or known, or a new one."""
    if here is not None:
        profile = profiles.get(here["id"]) or new_profile(here["id"], here["key"], at, here["kind"])
        return profile if name == here["id"] else with_alias(profile, name)
    if (known := find(profiles, name)) is not None:
        return profiles[known]
    unmet = unmet_id(name)
    return profiles.get(unmet) or new_profile(unmet, " ".join(name.split()), at, "unknown")


def observe(
    profile: Profile,
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    **fields: Any,
) -> Profile:
    """A profile with one more observation (see `new_observation`), tidied."""
    new = new_observation(text, at, source, audience, **fields)
    return tidy(replace(profile, observations=(*profile.observations, new)))


def new_observation(
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    make_id: Callable[[str], str] = new_id,
    told_by: str = "",
) -> Observation:
    """An observation.

    `at` is in seconds since the epoch or ISO 8601, `source` the id of a message or journal entry,
    or several, `told_by` the name of who said it of somebody else; `make_id` makes the
    observation's id from a prefix.
    """
    sources = (source,) if isinstance(source, str) else tuple(source) or ("",)
    return Observation(
        make_id("o"),
        " ".join(text.split()),
        _iso(at),
        subject,
        predicate,
        value,
        sources[0],
        normalised(audience),
        sources=sources if len(sources) > 1 else (),
        extra={"told_by": told_by} if told_by else {},
    )


def supersede(profile: Profile) -> Profile:
    """A profile in which each outdated value points to its successor.

    An observation is outdated when a later one with the same subject and predicate has another
    value and everyone who may know the older may know the newer: a secret never takes away what was
    said aloud.
    """
    groups: dict[tuple[str, str], list[Observation]] = {}
    own = own_names(profile)
    for observation in profile.observations:
        if (key := property_of(own, observation)) is not None:
            groups.setdefault(key, []).append(observation)
    outdated: dict[int, Observation] = {}
    for group in groups.values():
        group.sort(key=lambda item: item.latest)
        for index, older in enumerate(group):
            newer = (
                later
                for later in group[index + 1 :]
                if folded(later.value) != folded(older.value)
                and visible(later.audience, older.audience)
            )
            if older.status != SUPERSEDED and (first := next(newer, None)):
                outdated[id(older)] = replace(
                    older, status=SUPERSEDED, superseded_by=first.id, superseded_at=first.at
                )
    return replace(
        profile, observations=tuple(outdated.get(id(item), item) for item in profile.observations)
    )


def merge(profile: Profile) -> Profile:
    """A profile in which current observations that say the same to the same people are one.

    The oldest stays, with its id and time, and gains `last_at`, `times`, all `sources` and
    `other_texts`. Superseded observations stay as they are: a value that came back is not the old
    one.
    """
    own = own_names(profile)
    places: dict[tuple[str, ...], int] = {}
    merged_into: dict[str | None, str] = {}
    result: list[Observation] = []
    for item in profile.observations:
        said = property_of(own, item)
        what = (*said, folded(item.value)) if said else (folded(item.text),)
        key = (item.audience, *what)
        if item.status == SUPERSEDED:
            result.append(item)
        elif key in places:
            place = places[key]
            merged_into[item.id] = result[place].id
            result[place] = _absorbed(result[place], item)
        else:
            places[key] = len(result)
            result.append(item)
    pointed = (
        replace(item, superseded_by=merged_into[item.superseded_by])
        if item.superseded_by in merged_into
        else item
        for item in result
    )
    return replace(profile, observations=tuple(pointed))


def _absorbed(kept: Observation, twin: Observation) -> Observation:
    """An observation that stands for its twin too."""
    wordings = {folded(kept.text): ""}
    for text in (*kept.other_texts, twin.text, *twin.other_texts):
        wordings.setdefault(folded(text), text)
    return replace(
        kept,
        times=kept.times + twin.times,
        sources=tuple(dict.fromkeys((*kept.source_ids, *twin.source_ids))),
        other_texts=tuple(text for text in wordings.values() if text),
        last_at=max(kept.latest, twin.latest),
        at=min(kept.at, twin.at),
    )


def refresh(profile: Profile) -> Profile:
    """A profile whose sights, relationship and summary line fit its observations.

    The relationship is the latest value of the predicate `RELATIONSHIP` that everyone may know; one
    set by hand stays if nothing was observed.
    """
    times = (time for item in profile.observations for time in (item.at, item.latest))
    every = [time for time in (*times, profile.first_seen, profile.last_seen) if time]
    observed = (
        item.value
        for item in shown_observations(profile, PUBLIC)
        if folded(item.predicate) == RELATIONSHIP and item.value
    )
    result = replace(
        profile,
        first_seen=min(every, default=profile.first_seen),
        last_seen=max(every, default=profile.last_seen),
        relationship=next(observed, profile.relationship),
    )
    return replace(result, summary=summary_line(result))


def tidy(profile: Profile) -> Profile:
    """A profile superseded, merged and refreshed; tidying it again changes nothing."""
    result = refresh(merge(supersede(profile)))
    return replace(result, tidied=_mark(result))


def is_tidy(profile: Profile) -> bool:
    """Whether a profile has been tidied since observations were added or taken out."""
    return profile.tidied == _mark(profile)


def _mark(profile: Profile) -> str:
    """The number of observations and the id of the newest."""
    held = profile.observations
    return f"{len(held)} {held[-1].id}" if held else "0"


def cut_back(profile: Profile) -> tuple[Profile, list[Observation]]:
    """A profile of over `MOST_KEPT` observations with the best `CUT_BACK_TO`, and those cut.

    Superseded observations go first, then those that name no property, each oldest first.
    """
    held = profile.observations
    if len(held) <= MOST_KEPT:
        return profile, []
    by_worth = sorted(held, key=lambda item: (item.status != SUPERSEDED, item.is_fact, item.latest))
    gone = {id(item) for item in by_worth[: len(held) - CUT_BACK_TO]}
    kept = tuple(item for item in held if id(item) not in gone)
    return tidy(replace(profile, observations=kept)), [item for item in held if id(item) in gone]


def without_sources(
    profile: Profile, sources: Iterable[str], cited: Collection[str] = ()
) -> Profile:
    """A profile without what rests on these sources alone; what that superseded holds again.

    `cited` are messages that these rest on in turn.
    """
    gone = set(sources)
    if not any(gone.intersection(item.source_ids) for item in profile.observations):
        return profile
    kept = []
    for item in profile.observations:
        if not item.rests_on(gone, cited):
            left = tuple(source for source in item.source_ids if source not in gone)
            kept.append(replace(item, source=left[0], sources=left if item.sources else ()))
    return _with_only(profile, kept)


def without_observation(profile: Profile, observation_id: str) -> Profile:
    """A profile without one observation; what that superseded holds again."""
    return _with_only(profile, [o for o in profile.observations if o.id != observation_id])


def forgotten(
    profile: Profile, sources: Collection[str], own: OwnWords, people: Collection[str]
) -> Profile | None:
    """A profile without what people said who are forgotten; the same if it holds nothing of it.

    What also rests on the words of others goes too, as nobody can tell whose wording it has.

    Args:
        profile: What is known of anybody or anything.
        sources: Ids of their messages, and of the journal entries made from these.
        own: The words that only they used.
        people: Their stable ids.

    Returns:
        The profile, or None where nothing but a name is left of one of these people, or of
        somebody whom only they mentioned.
    """
    kept = [
        item
        for item in profile.observations
        if not any(source in sources for source in item.source_ids)
        and not own.are_in([item.text, item.subject, item.predicate, item.value, item.other_texts])
    ]
    values = {item.value for item in profile.observations} - {item.value for item in kept}
    is_theirs = profile.relationship in values or own.are_in(profile.relationship)
    cleared = replace(
        profile,
        relationship="" if is_theirs else profile.relationship,
        aliases=tuple(alias for alias in profile.aliases if not own.are_in(alias)),
        extra=own.redacted(profile.extra),
    )
    if len(kept) < len(profile.observations):
        result = _with_only(cleared, kept)
    else:
        result = profile if cleared == profile else refresh(cleared)
    is_unmet = profile.id.startswith(UNMET)
    is_bare = not (result.observations or result.archived)
    if is_bare and (profile.id in people or (is_unmet and result != profile)):
        return None
    return None if is_unmet and own.are_in(profile.name) else result


def _with_only(profile: Profile, kept: Sequence[Observation]) -> Profile:
    """A profile with only these observations; what others superseded holds again."""
    ids = {item.id for item in kept}
    restored = (
        replace(item, status=CURRENT, superseded_by=None, superseded_at="")
        if item.superseded_by and item.superseded_by not in ids
        else item
        for item in kept
    )
    return tidy(replace(profile, observations=tuple(restored)))


def link_memories(profile: Profile, memory_ids: Iterable[str]) -> Profile:
    """A profile with links to these memories too, each once; the newest `MOST_LINKS` stay."""
    links = tuple(dict.fromkeys((*profile.memory_links, *memory_ids)))
    return replace(profile, memory_links=links[-MOST_LINKS:])


def unmet_id(name: str) -> str:
    """The id of somebody or something that was mentioned and never met."""
    return UNMET + " ".join(name.split()).lower()


def unmet_of(profiles: Mapping[str, Profile], entity_id: str, names: NamesIndex) -> list[str]:
    """The ids of profiles made for a mere name that now means this entity only, which was met."""
    called = names.get(_bare(profiles[entity_id].name), ())
    if [each for each in called if not each.startswith(UNMET)] != [entity_id]:
        return []
    return [each for each in called if each.startswith(UNMET)]


def joined(profile: Profile, other: Profile) -> Profile:
    """One profile of two of the same entity: the first's id and name, the contents of both."""
    own = own_names(other)
    # What was about the other entity itself is about this one.
    others = (
        replace(item, subject=None) if folded(item.subject) in own else item
        for item in other.observations
    )
    both = sorted((*profile.observations, *others), key=lambda item: item.latest)
    result = replace(profile, observations=tuple(both))
    for name in other.names:
        result = with_alias(result, name)
    result = link_memories(result, other.memory_links)
    seen = [each.first_seen for each in (profile, other) if each.first_seen]
    return tidy(
        replace(
            result,
            relationship=profile.relationship or other.relationship,
            archived=(*profile.archived, *other.archived),
            first_seen=min(seen, default=""),
        )
    )


def renamed(profile: Profile, name: str) -> Profile:
    """A profile under a new name; the old one becomes an alias."""
    aliases = dict.fromkeys((*profile.aliases, profile.name))
    kept = tuple(alias for alias in aliases if alias and folded(alias) != folded(name))
    return refresh(replace(profile, name=name, aliases=kept))


def with_alias(profile: Profile, alias: str) -> Profile:
    """A profile that is found by one more name."""
    if folded(alias) in {"", *map(folded, profile.names)}:
        return profile
    return replace(profile, aliases=(*profile.aliases, alias.strip()))


def names_index(profiles: Mapping[str, Profile]) -> NamesIndex:
    """The ids of the entities of each name or alias; make it once to look up many names."""
    index: dict[str, list[str]] = {}
    for entity_id, profile in profiles.items():
        for name in dict.fromkeys(map(_bare, profile.names)):
            if name:
                index.setdefault(name, []).append(entity_id)
    return {name: tuple(found) for name, found in index.items()}


def find(
    profiles: Mapping[str, Profile], wanted: str, names: NamesIndex | None = None
) -> str | None:
    """The id of the entity that a name, alias or id means, in any case, with or without article.

    None if there is none or more than one, as a wrong person is worse than none.
    """
    if wanted in profiles:
        return wanted
    found = (names_index(profiles) if names is None else names).get(_bare(wanted), ())
    return found[0] if len(found) == 1 else None


def mentioned(
    profiles: Mapping[str, Profile], text: str, names: NamesIndex | None = None
) -> list[str]:
    """The ids of the entities whose name or alias is in a text as whole words, each once.

    Ordered by where their names first end. Names of one or two letters, mostly words of the
    language, and of more than six words are left out. `names` is the `names_index` of the profiles.
    """
    index = names_index(profiles) if names is None else names
    words = folded(text).split()
    found: dict[str, None] = {}
    for end in range(1, len(words) + 1):
        for start in range(max(0, end - LONGEST_MENTION), end):
            name = " ".join(words[start:end])
            if len(name) >= SHORTEST_MENTION:
                found.update(dict.fromkeys(index.get(name, ())))
    return list(found)


def _iso(at: float | str) -> str:
    return at if isinstance(at, str) else utc_iso(at)


def _bare(name: str) -> str:
    """A name for comparing, without a leading article."""
    return re.sub(r"^(the|a|an) (?=.)", "", folded(name))
