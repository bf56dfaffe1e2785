"""Observations: read off journal entries without a model while dreaming, and found by a query.

A sentence that begins with a known name is an observation of that entity. A model states its
observations itself, with property and value, by `update_entity_observation`.

A search reads the profiles as they are, so former or forgotten observations are never found.
"""

from collections.abc import Mapping
from functools import lru_cache

from evennia_ai.language.words import asks, sentences, telling_words
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.profile import Observation, Profile
from evennia_ai.recall.values import Hit

# Sentences of an entry that are read.
SENTENCES = 6
# Most observations that a search finds, and the share of a query's words that one must have.
MOST_FOUND, LEAST_SHARE = 3, 0.5

_telling = lru_cache(maxsize=8192)(telling_words)  # all profiles are read at each search


def observed(profile: Profile, entry: JournalEntry, names: entities.NamesIndex) -> Profile:
    """A profile with what a journal entry says of the entity; the same if it was read before.

    `names` is the `names_index` of all profiles for the entry's audience: a name that two entities
    share tells of neither.
    """
    if any(entry.id in item.sources for item in profile.observations):
        return profile
    at, audience = entry.timestamp, entry.audience
    for text in sentences(entry.content)[:SENTENCES]:
        if not asks(text) and is_about(text, profile.id, names):
            profile = entities.observe(profile, text, at, entry.id, audience)
    return profile


def is_about(sentence: str, entity_id: str, names: entities.NamesIndex) -> bool:
    """Whether a sentence begins with the name of an entity, of several the longest.

    A colon behind the name tells who speaks, not whom it is about.
    """
    words = entities.bare(sentence.partition(":")[0]).split()
    for count in range(min(entities.LONGEST_MENTION, len(words) - 1), 0, -1):
        if ids := names.get(" ".join(words[:count])):
            return ids == (entity_id,)
    return False


def found_observations(profiles: Mapping[str, Profile], query: str, audience: str) -> list[Hit]:
    """The beliefs that have most of a query's telling words, best first.

    At most `MOST_FOUND` that the audience may know, of equal ones the newest first; the score is
    the share of the query's words. Where the query names people, only what names one of them.
    """
    wanted, hits = telling_words(query), list[Hit]()
    named = [
        profiles[each]
        for each in entities.mentioned(entities.names_index(profiles, audience), query)
    ]
    people = [p for p in named if p.kind == "person" and p.beliefs(audience)]
    called = [_telling(" ".join(p.names(audience))) for p in people]
    for profile in profiles.values():
        names = " ".join(profile.names(audience))

        def share(item: Observation, names: str = names) -> float:
            words = _telling(names) | _telling(item.words)
            is_named = not people or any(each <= words for each in called)
            return len(wanted & words) / len(wanted) if wanted and is_named else 0.0

        if any(share(item) >= LEAST_SHARE for item in profile.observations):
            items = (belief.observation for belief in profile.beliefs(audience))
            hits += [_hit(s, profile, i, names) for i in items if (s := share(i)) >= LEAST_SHARE]
    hits.sort(key=lambda hit: (hit.score, str(hit.at)), reverse=True)
    return hits[:MOST_FOUND]


def _hit(score: float, profile: Profile, item: Observation, names: str) -> Hit:
    is_named = bool(_telling(names) & _telling(item.text)) or not profile.name
    text = item.text if is_named else f"About {profile.name}: {item.text}"
    who = f"{item.told_by} said" if item.told_by else ""
    return Hit(item.id, score, who, text, item.at, kind="observation", audience=item.audience)
