"""Entities: what is known of a person, place or thing, as plain profile dicts.

A profile holds observations, each with its time, source and audience. Nothing known is thrown
away: a newer value of the same subject and predicate marks the older as superseded, and two
observations that say the same become one that remembers both. All functions return new profiles
and leave their arguments as they are. Times are UTC ISO 8601 (`history.messages.utc_iso`), which
sorts as text.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from evennia_ai.history.audience import PUBLIC, STAFF, normalised, visible
from evennia_ai.history.messages import new_id, one_line, utc_iso

SCHEMA_VERSION = 1
CURRENT = "current"
SUPERSEDED = "superseded"
# Observations named in the stored summary line of a profile; more would not be one short line.
SUMMARY_FACTS = 3

# A profile with more observations than the first is cut back to the second: it is read and written
# whole, with all others.
MOST_KEPT, CUT_BACK_TO = 150, 100

# Links to memories kept in a profile; profiles are read and written whole.
MOST_LINKS = 200

# The predicate whose value is what somebody is to the assistant.
RELATIONSHIP = "relationship"
# Begins the id of what was told of and never met; stable ids begin with the kind of an object.
UNMET = "n."
# Letters, at least, and words, at most, of a name that is looked for in running text.
SHORTEST_MENTION, LONGEST_MENTION = 3, 6

Profile = dict[str, Any]
NamesIndex = Mapping[str, tuple[str, ...]]
Observation = dict[str, Any]


def new_profile(entity_id: str, name: str, at: float | str, kind: str = "person") -> Profile:
    """An empty profile of an entity met for the first time.

    Args:
        entity_id: Its stable id.
        name: Its name as met.
        at: When, seconds since the epoch or ISO 8601.
        kind: ``person``, ``place`` or ``thing``.
    """
    when = _iso(at)
    profile = {
        "version": SCHEMA_VERSION,
        "id": entity_id,
        "name": name,
        "kind": kind,
        "aliases": [],
        "first_seen": when,
        "last_seen": when,
        "relationship": "",
        "observations": [],
        "memory_links": [],
    }
    return tidy(profile)


def observe(
    profile: Mapping[str, Any],
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    **fields: Any,
) -> Profile:
    """A profile with one more observation, older values of the same thing superseded.

    Args:
        profile: The profile before.
        text: What was observed.
        at: When.
        source: Where it comes from.
        audience: Who may know it.
        **fields: The rest of what `new_observation` takes.

    Returns:
        A new profile; unchanged but for `last_seen` if it held this very observation.
    """
    return tidy(with_observation(profile, new_observation(text, at, source, audience, **fields)))


def new_observation(
    text: str,
    at: float | str,
    source: str | Sequence[str],
    audience: str = PUBLIC,
    subject: str | None = None,
    predicate: str | None = None,
    value: str | None = None,
    make_id: Callable[[str], str] = new_id,
) -> Observation:
    """An observation in its stored form.

    Args:
        text: What was observed, one sentence.
        at: When, seconds since the epoch or ISO 8601.
        source: Where it comes from, the id of a message or journal entry, or several.
        audience: Who may know it.
        subject: What it is about; the entity itself where it is None.
        predicate: Which property, as ``lives in``.
        value: The property's value, as ``the mill``.
        make_id: Makes the observation's id from a prefix.
    """
    sources = [source] if isinstance(source, str) else list(source) or [""]
    observation: Observation = {
        "id": make_id("o"),
        "text": " ".join(text.split()),
        "subject": subject,
        "predicate": predicate,
        "value": value,
        "at": _iso(at),
        "source": sources[0],
        "audience": normalised(audience),
        "status": CURRENT,
        "superseded_by": None,
    }
    return {**observation, "sources": sources} if len(sources) > 1 else observation


def with_observation(profile: Mapping[str, Any], observation: Observation) -> Profile:
    """A profile with one more observation, not tidied yet: for many of them at once."""
    return {**profile, "observations": [*profile.get("observations", ()), observation]}


def sources_of(observation: Mapping[str, Any]) -> list[str]:
    """The ids of the messages and journal entries that an observation rests on."""
    return list(observation.get("sources") or [observation.get("source") or ""])


def audience_of_observation(observation: Mapping[str, Any]) -> str:
    """Who may know an observation."""
    # One without an audience was stored by hand: nobody but staff, until somebody says so.
    return normalised(observation.get("audience", STAFF))


def supersede(profile: Mapping[str, Any]) -> Profile:
    """A profile in which each outdated value points to the one that took its place.

    An observation is outdated when a later one with the same subject and predicate has another
    value and everyone who may know the older may know the newer: a secret never takes what was
    said aloud from those who heard it.
    """
    observations = [dict(observation) for observation in profile.get("observations", ())]
    groups: dict[tuple[str, str], list[Observation]] = {}
    own = _own_names(profile)
    for observation in observations:
        if (key := _fact_key(own, observation)) is not None:
            groups.setdefault(key, []).append(observation)
    for group in groups.values():
        _supersede_group(sorted(group, key=_latest))
    return {**profile, "observations": observations}


def _supersede_group(group: list[Observation]) -> None:
    """Mark the outdated among observations of one property, oldest first, in place."""
    for index, older in enumerate(group):
        if older.get("status") == SUPERSEDED:
            continue
        newer = next((later for later in group[index + 1 :] if _replaces(later, older)), None)
        if newer is not None:
            older["status"] = SUPERSEDED
            older["superseded_by"] = newer["id"]
            older["superseded_at"] = newer["at"]


def _replaces(newer: Observation, older: Observation) -> bool:
    differs = _plain(newer.get("value")) != _plain(older.get("value"))
    return differs and visible(audience_of_observation(newer), audience_of_observation(older))


def merge(profile: Mapping[str, Any]) -> Profile:
    """A profile in which current observations that say the same to the same people are one.

    The oldest stays, with its id and time, and gains `last_at`, `times`, all `sources` and, where
    the same fact was put in other words, `other_texts`. Observations that were superseded stay as
    they are: a value that came back is not the old one.
    """
    kept: dict[tuple[Any, ...], Observation] = {}
    rest: dict[str, str] = {}
    result: list[Observation] = []
    own = _own_names(profile)
    for observation in profile.get("observations", ()):
        key = _same_key(own, observation)
        if observation.get("status") == SUPERSEDED:
            result.append(dict(observation))
        elif key in kept:
            rest[observation["id"]] = kept[key]["id"]
            _absorb(kept[key], observation)
        else:
            kept[key] = dict(observation)
            result.append(kept[key])
    for observation in result:
        _point_to_kept(observation, rest)
    return {**profile, "observations": result}


def _absorb(kept: Observation, twin: Observation) -> None:
    """Let one observation stand for another that says the same, in place."""
    kept["times"] = kept.get("times", 1) + twin.get("times", 1)
    sources = [*sources_of(kept), *sources_of(twin)]
    kept["sources"] = list(dict.fromkeys(sources))
    if wordings := _other_wordings(kept, twin):
        kept["other_texts"] = wordings
    kept["last_at"] = max(_latest(kept), _latest(twin))
    kept["at"] = min(kept["at"], twin["at"])


def _other_wordings(kept: Observation, twin: Observation) -> list[str]:
    texts = [*kept.get("other_texts", ()), twin.get("text", ""), *twin.get("other_texts", ())]
    said = {_plain(kept.get("text")): ""}
    for text in texts:
        said.setdefault(_plain(text), text)
    return [text for text in said.values() if text]


def _point_to_kept(observation: Observation, rest: Mapping[str, str]) -> None:
    target = str(observation.get("superseded_by"))
    if target in rest:
        observation["superseded_by"] = rest[target]


def refresh(profile: Mapping[str, Any]) -> Profile:
    """A profile whose sights, relationship and summary line fit its observations.

    The relationship is the latest value of the predicate `RELATIONSHIP` that everyone may know;
    one set by hand stays where nothing was observed.
    """
    observations = profile.get("observations", ())
    times = [observation["at"] for observation in observations if observation.get("at")]
    times += [_latest(observation) for observation in observations if _latest(observation)]
    seen = [str(profile[key]) for key in ("first_seen", "last_seen") if profile.get(key)]
    every = [*times, *seen]
    result = {**profile}
    if every:
        result["first_seen"], result["last_seen"] = min(every), max(every)
    result["relationship"] = _relationship(result)
    result["summary"] = summary_line(result)
    return result


def _relationship(profile: Mapping[str, Any]) -> str:
    for item in shown_observations(profile, PUBLIC):
        if _plain(str(item.get("predicate") or "")) == RELATIONSHIP and item.get("value"):
            return str(item["value"])
    return str(profile.get("relationship") or "")


def tidy(profile: Mapping[str, Any]) -> Profile:
    """A profile superseded, merged and refreshed; tidying it again changes nothing."""
    result = refresh(merge(supersede(profile)))
    return {**result, "tidied": _mark(result)}


def cut_back(profile: Mapping[str, Any]) -> tuple[Profile, list[Observation]]:
    """A profile without what is too much for it, and that, in the order it stood.

    First what was superseded goes, then what tells no property, of each the oldest.

    Returns:
        The profile as it is and nothing, up to `MOST_KEPT` observations.
    """
    held: list[Observation] = list(profile.get("observations") or ())
    if len(held) <= MOST_KEPT:
        return {**profile}, []

    def worth(item: Observation) -> tuple[bool, bool, str]:
        is_fact = bool(item.get("predicate") and item.get("value"))
        return item.get("status") != SUPERSEDED, is_fact, _latest(item)

    gone = {id(item) for item in sorted(held, key=worth)[: len(held) - CUT_BACK_TO]}
    kept = [item for item in held if id(item) not in gone]
    return tidy({**profile, "observations": kept}), [item for item in held if id(item) in gone]


def is_tidy(profile: Mapping[str, Any]) -> bool:
    """Whether a profile has been tidied since observations were added or taken out."""
    return bool(profile.get("tidied") == _mark(profile))


def _mark(profile: Mapping[str, Any]) -> str:
    """How many observations there are and which is the newest added, as one text."""
    observations: list[Observation] = list(profile.get("observations") or ())
    return f"{len(observations)} {observations[-1].get('id', '')}" if observations else "0"


def summary_line(profile: Mapping[str, Any]) -> str:
    """One short line about an entity, of what everyone may know.

    Returns:
        As ``Alice (person), the miller: keeps bees; lives in the mill (+2 more)``.
    """
    facts = [_fact_text(item) for item in shown_observations(profile, PUBLIC)]
    line = _heading(profile)
    if facts:
        line += ": " + "; ".join(facts[:SUMMARY_FACTS])
    more = len(facts) - SUMMARY_FACTS
    return line + (f" (+{more} more)" if more > 0 else "")


def profile_lines(profile: Mapping[str, Any], audience: str, limit: int = 8) -> list[str]:
    """What may be shown of a profile in a turn for an audience.

    Args:
        profile: A profile.
        audience: Audience of the turn.
        limit: Most observations to show.

    Returns:
        The heading, then one line an observation with its id: first those that have a
        predicate and a value, each kind newest first. Of one property only the latest value
        that the audience may know is shown.
    """
    holding = shown_observations(profile, audience)
    holding.sort(key=lambda item: not (item.get("predicate") and item.get("value")))
    shown = holding[: max(limit, 0)]
    return [_heading(profile), *(f"- {_fact_text(item)} [{item['id']}]" for item in shown)]


def shown_observations(profile: Mapping[str, Any], audience: str) -> list[Observation]:
    """The observations an audience may know and that still hold for it, newest first."""
    allowed = [
        dict(item)
        for item in profile.get("observations", ())
        if visible(audience_of_observation(item), audience)
    ]
    ids = {item["id"] for item in allowed}
    # Superseded counts only for those who may know by what.
    holding = [
        item
        for item in allowed
        if item.get("status") != SUPERSEDED or item.get("superseded_by") not in ids
    ]
    holding.sort(key=lambda item: (_latest(item), item["id"]), reverse=True)
    return _latest_of_each(profile, holding)


def _latest_of_each(
    profile: Mapping[str, Any], newest_first: list[Observation]
) -> list[Observation]:
    taken: set[tuple[str, str]] = set()
    result = []
    own = _own_names(profile)
    for item in newest_first:
        key = _fact_key(own, item)
        if key in taken:
            continue
        if key is not None:
            taken.add(key)
        result.append(item)
    return result


def without_sources(profile: Mapping[str, Any], sources: Iterable[str]) -> Profile:
    """A profile without what rests on these sources alone, and what it had superseded restored.

    Equal to the profile where nothing rests on them.
    """
    gone, kept = set(sources), []
    if not any(gone.intersection(sources_of(item)) for item in profile.get("observations", ())):
        return {**profile}
    for observation in profile.get("observations", ()):
        left = [source for source in sources_of(observation) if source not in gone]
        if left:
            kept.append({**observation, "source": left[0]})
            if "sources" in observation:
                kept[-1]["sources"] = left
    ids = {observation["id"] for observation in kept}
    for observation in kept:
        if observation.get("superseded_by") and observation["superseded_by"] not in ids:
            observation.update(status=CURRENT, superseded_by=None)
            observation.pop("superseded_at", None)
    return tidy({**profile, "observations": kept})


def link_memories(profile: Mapping[str, Any], memory_ids: Iterable[str]) -> Profile:
    """A profile with links to these memories too, each once; the newest `MOST_LINKS` stay.

    A link only leads to a memory sooner: the memory itself is found without it.
    """
    links = list(dict.fromkeys([*profile.get("memory_links", ()), *memory_ids]))
    return {**profile, "memory_links": links[-MOST_LINKS:]}


def unlink_memories(profile: Mapping[str, Any], held: Iterable[str]) -> Profile:
    """A profile with links only to memories that are held."""
    alive = set(held)
    return {**profile, "memory_links": [i for i in profile.get("memory_links", ()) if i in alive]}


def unmet_id(name: str) -> str:
    """The id of somebody or something that was told of and never met."""
    return UNMET + " ".join(name.split()).lower()


def unmet_of(
    profiles: Mapping[str, Mapping[str, Any]], entity_id: str, names: NamesIndex
) -> list[str]:
    """The ids of profiles made for a name alone that mean an entity which was met.

    Args:
        profiles: Profiles by entity id.
        entity_id: Who was met.
        names: Their `names_index`.

    Returns:
        Those called by the entity's present name; none if another that was met has that name too.
    """
    called = names.get(_bare(str(profiles[entity_id].get("name") or "")), ())
    if [each for each in called if not each.startswith(UNMET)] != [entity_id]:
        return []
    return [each for each in called if each.startswith(UNMET)]


def joined(profile: Mapping[str, Any], other: Mapping[str, Any]) -> Profile:
    """One profile of two that are of the same entity: the first's id and name, what both hold."""
    others = [_of_itself(other, item) for item in other.get("observations", ())]
    both = [*profile.get("observations", ()), *others]
    result: Profile = {**profile, "observations": sorted(both, key=_latest)}
    for name in names_of(other):
        result = with_alias(result, name)
    result = link_memories(result, other.get("memory_links", ()))
    result["relationship"] = profile.get("relationship") or other.get("relationship") or ""
    if archived := [*profile.get("archived", ()), *other.get("archived", ())]:
        result["archived"] = archived
    seen = [str(each["first_seen"]) for each in (profile, other) if each.get("first_seen")]
    return tidy({**result, "first_seen": min(seen, default="")})


def _of_itself(profile: Mapping[str, Any], item: Mapping[str, Any]) -> Observation:
    """An observation that names no subject where it is about the profile's own entity."""
    own = _plain(item.get("subject")) in _own_names(profile)
    return {**item, "subject": None if own else item["subject"]}


def renamed(profile: Mapping[str, Any], name: str) -> Profile:
    """A profile under a new name; the old one becomes an alias."""
    aliases = [*profile.get("aliases", ()), profile.get("name")]
    kept = [alias for alias in dict.fromkeys(aliases) if alias and _plain(alias) != _plain(name)]
    return refresh({**profile, "name": name, "aliases": kept})


def names_of(profile: Mapping[str, Any]) -> tuple[str, ...]:
    """The name and the aliases of an entity."""
    return tuple(str(name) for name in (profile.get("name"), *profile.get("aliases", ())) if name)


def with_alias(profile: Mapping[str, Any], alias: str) -> Profile:
    """A profile that is found by one more name."""
    known = {_plain(name) for name in names_of(profile)}
    if _plain(alias) in known or not _plain(alias):
        return {**profile}
    return {**profile, "aliases": [*profile.get("aliases", ()), alias.strip()]}


def names_index(profiles: Mapping[str, Mapping[str, Any]]) -> NamesIndex:
    """The ids of the entities of each name or alias, as compared by `find` and `mentioned`.

    Worth making once where many names are looked up.
    """
    index: dict[str, list[str]] = {}
    for entity_id, profile in profiles.items():
        for name in dict.fromkeys(_bare(name) for name in names_of(profile)):
            if name:
                index.setdefault(name, []).append(entity_id)
    return {name: tuple(found) for name, found in index.items()}


def find(
    profiles: Mapping[str, Mapping[str, Any]], wanted: str, names: NamesIndex | None = None
) -> str | None:
    """The id of the entity somebody means by a name, alias or id.

    Args:
        profiles: Profiles by entity id.
        wanted: What was said, case and a leading article aside.
        names: Their `names_index`; made where it is None.

    Returns:
        The entity's id; None if there is none or more than one of that name, as a wrong person
        is worse than none.
    """
    if wanted in profiles:
        return wanted
    found = (names_index(profiles) if names is None else names).get(_bare(wanted), ())
    return found[0] if len(found) == 1 else None


def mentioned(
    profiles: Mapping[str, Mapping[str, Any]], text: str, names: NamesIndex | None = None
) -> list[str]:
    """The ids of the entities whose name or alias stands in a text as whole words.

    Names of one or two letters are left out, as they are words of the language more often, and
    so are names of more than six words.

    Args:
        profiles: Profiles by entity id.
        text: Any text.
        names: Their `names_index`; made where it is None.

    Returns:
        Ids in the order in which their names first end in the text, each once; all of those
        who share a name.
    """
    index = names_index(profiles) if names is None else names
    words = _plain(text).split()
    found: dict[str, None] = {}
    for end in range(1, len(words) + 1):
        for start in range(max(0, end - LONGEST_MENTION), end):
            name = " ".join(words[start:end])
            if len(name) >= SHORTEST_MENTION:
                found.update(dict.fromkeys(index.get(name, ())))
    return list(found)


def _iso(at: float | str) -> str:
    return at if isinstance(at, str) else utc_iso(at)


def _latest(observation: Mapping[str, Any]) -> str:
    return str(observation.get("last_at") or observation.get("at") or "")


def _heading(profile: Mapping[str, Any]) -> str:
    name, kind = str(profile.get("name") or profile.get("id")), profile.get("kind") or "entity"
    relationship = " ".join(str(profile.get("relationship") or "").split())
    return f"{one_line(name)} ({kind})" + (f", {relationship}" if relationship else "")


def _fact_text(observation: Mapping[str, Any]) -> str:
    return " ".join(str(observation.get("text") or "").split()).rstrip(".")


def _own_names(profile: Mapping[str, Any]) -> frozenset[str]:
    """What the entity itself is called as the subject of an observation; nothing means it too."""
    return frozenset({"", _plain(profile.get("id")), *map(_plain, names_of(profile))})


def _fact_key(own: frozenset[str], observation: Mapping[str, Any]) -> tuple[str, str] | None:
    """Which property an observation is of; None where it names no property or no value."""
    predicate, value = _plain(observation.get("predicate")), _plain(observation.get("value"))
    if not predicate or not value:
        return None
    subject = _plain(observation.get("subject"))
    return ("" if subject in own else subject, predicate)


def _same_key(own: frozenset[str], observation: Mapping[str, Any]) -> tuple[Any, ...]:
    """Equal for observations that say the same to the same people."""
    fact = _fact_key(own, observation)
    said = (*fact, _plain(observation.get("value"))) if fact else (_plain(observation.get("text")),)
    return (audience_of_observation(observation), *said)


def _plain(text: object) -> str:
    """Case, punctuation and spacing taken out, for comparing."""
    return _folded(str(text or ""))


# A profile's texts are compared at every observation of it.
@lru_cache(maxsize=8192)
def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _bare(name: str) -> str:
    """A name for comparing, without a leading article."""
    return re.sub(r"^(the|a|an) (?=.)", "", _plain(name))
