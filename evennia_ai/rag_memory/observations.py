"""Observations: read off journal entries without a model while dreaming, and found by a query.

A sentence that begins with a known name is an observation of that entity. Predicate and value are
read too if it tells a property of which there is one at a time (home, work, birthplace, spouse,
age), so that the latest value counts (`rag_memory.profile.current`). A model states its
observations itself, by `update_entity_observation`.

A search reads the profiles as they are, so former or forgotten observations are never found.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from evennia_ai.history.audience import STAFF
from evennia_ai.history.messages import new_id
from evennia_ai.language.names import capitals, lone_capitals, names_among
from evennia_ai.language.sentences import asks, sentences
from evennia_ai.rag_memory.entities import (
    LONGEST_MENTION,
    NamesIndex,
    mentioned,
    names_index,
    observe,
)
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.profile import Observation, Profile, current
from evennia_ai.rag_memory.recalled import telling_stem, telling_stems
from evennia_ai.recall.values import Hit

# Sentences of an entry that are read.
SENTENCES = 6
# From so many observations on a profile, read and written whole, takes only those of properties.
MOST_OBSERVATIONS = 100
# Most observations that a search finds, and the share of a query's words that one must have.
MOST_FOUND, LEAST_SHARE = 3, 0.5
# Observations that a search reads closely, of those that may be meant.
_LOOKED_AT = 40
# `Alice moved: Alice lives in the mill now.` is two.
_CLAUSE = re.compile(r"[:;]\s+")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
# What stands behind the name of its owner: up to three words, before the verb.
_OWNED = re.compile(
    r"^['’]s?\s+(?:[\w-]+\s){0,2}?[\w-]+\s+(?=(?:is|was|has|lives?|works?|moved)\b)"
)
# A colon behind a name tells who speaks, not whom it is about.
_ABOUT = re.compile(r"(?:['’]s?)?\s+\w")
_ADVERB = r"(?:(?:now|still|also|currently|recently|really|just)\s+)?"
_PROPERTIES: tuple[tuple[str, str], ...] = (
    ("lives in", r"(?:lives?|dwells?|resides?|(?:has )?settled) (?:over |just )?(?:in|at|on|near)"),
    ("lives in", r"(?:has )?moved (?:house )?to"),
    ("works as", r"works? as"),
    ("works at", r"works? (?:at|for|in)"),
    ("was born in", r"(?:was|is) born in"),
    ("is married to", r"(?:is |was |got )?(?:married to|married|wed)"),
    ("is called", r"is called"),
    ("age", r"is(?= (?:\d+|[\w-]+) years old)"),
)
_FACTS = tuple(
    (name, re.compile(rf"^{_ADVERB}{verb}\s+{_ADVERB}(?P<value>[^.,;:!?]+)", re.IGNORECASE))
    for name, verb in _PROPERTIES
)
_TAIL = re.compile(
    r"\s+(?:now|these days|nowadays|any ?more|today|again|by trade|years old|with .*|since .*|"
    r"because .*|and .*|but .*|where .*|who .*)$",
    re.IGNORECASE,
)


def observed(
    profile: Profile,
    entry: JournalEntry,
    names: NamesIndex,
    make_id: Callable[[str], str] = new_id,
) -> Profile:
    """A profile with what a journal entry says of the entity; the same if it says nothing new.

    `names` is the `names_index` of all profiles for the entry's audience: a name that two entities
    share tells of neither. `make_id` makes an observation's id from a prefix.
    """
    if any(entry.id in item.sources for item in profile.observations):
        return profile
    items = profile.observations
    is_full = len(items) >= MOST_OBSERVATIONS <= len(current(items, STAFF))
    for text, subject, predicate, value in _facts_in(profile.id, entry.content, names):
        if predicate or not is_full:  # a full profile takes only properties
            profile = observe(
                profile,
                text,
                entry.timestamp,
                entry.id,
                entry.audience,
                subject=subject,
                predicate=predicate,
                value=value,
                make_id=make_id,
            )
    return profile


def _facts_in(
    entity_id: str, content: str, names: NamesIndex
) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    """The sentences about an entity, each with subject, predicate and value if it has them."""
    for sentence in sentences(content)[:SENTENCES]:
        rest = _after_name(sentence, entity_id, names)
        if rest is None or asks(sentence):
            continue
        owned = _OWNED.match(rest)
        if owned is None:
            yield (sentence, None, *_own_property(sentence, entity_id, names))
        else:
            subject = sentence[: len(sentence) - len(rest)] + owned.group(0).rstrip()
            yield (sentence, subject, *_property(rest[owned.end() :]))


def _after_name(sentence: str, entity_id: str, names: NamesIndex) -> str | None:
    """What follows the entity's name at the beginning of a sentence; None if it is not there."""
    bare = _ARTICLE.sub("", sentence)
    found = list(re.finditer(r"\w+", bare))[:LONGEST_MENTION]
    for count in range(len(found), 0, -1):
        name = " ".join(word.group() for word in found[:count]).casefold()
        if names.get(name) == (entity_id,):
            rest = bare[found[count - 1].end() :]
            return rest if _ABOUT.match(rest) else None
    return None


def _own_property(
    sentence: str, entity_id: str, names: NamesIndex
) -> tuple[str | None, str | None]:
    """A property of an entity from the first clause about it that tells one."""
    for clause in _CLAUSE.split(sentence):
        rest = _after_name(clause, entity_id, names)
        predicate, value = _property((rest or "").strip())
        if predicate:
            return predicate, value
    return None, None


def _property(clause: str) -> tuple[str | None, str | None]:
    for predicate, pattern in _FACTS:
        if matched := pattern.match(clause):
            value = _TAIL.sub("", matched["value"].strip())
            return predicate, _ARTICLE.sub("", value) or None
    return None, None


def found_observations(
    profiles: Mapping[str, Profile], query: str, audience: str, most: int = MOST_FOUND
) -> list[Hit]:
    """The beliefs that have most of a query's telling words, best first.

    At most `most` hits that the audience may know, of equal ones the newest first; the score is the
    share of the query's words.
    """
    asked = _Asked(profiles, query, audience)
    likely: list[tuple[int, str, Profile, Observation]] = []
    for profile in profiles.values():
        likeness = asked.likeness_in(" ".join(profile.names(audience)))
        if any(likeness(_text(item)) for item in profile.observations):
            for item in (belief.observation for belief in profile.beliefs(audience)):
                if count := likeness(_text(item)):
                    likely.append((count, item.at, profile, item))
    likely.sort(key=lambda each: each[:2], reverse=True)
    scored = [
        (score, at, profile, item)
        for _, at, profile, item in likely[:_LOOKED_AT]
        if (score := asked.share_in(" ".join((*profile.names(audience), _text(item)))))
        >= LEAST_SHARE
    ]
    scored.sort(key=lambda each: each[:2], reverse=True)
    return [_hit(score, profile, item, audience) for score, _, profile, item in scored[:most]]


class _Asked:
    """What a query asks for.

    Args:
        wanted: The stems of its telling words.
        names: Its words, in lower case, that tell something because they mean somebody.
        people: Those of `wanted` that name people of whom the audience may know something.
    """

    def __init__(self, profiles: Mapping[str, Profile], query: str, audience: str):
        self.names = _asked_names(profiles, query, audience)
        self.wanted = telling_stems(query, self.names)
        self.people = set[str]()
        for entity_id, stems in named_in(profiles, query, audience).items():
            profile = profiles[entity_id]
            is_news = profile.kind == "person" and stems - self.people
            if is_news and profile.beliefs(audience):
                self.people |= stems
        self._parts = [_part(word) for word in self.wanted]
        people = "|".join(sorted(re.escape(_part(word)) for word in self.people))
        self._calls = re.compile(rf"\b(?:{people})[^\W_]*")

    def likeness_in(self, names: str) -> Callable[[str], int]:
        """A function that counts the wanted parts in a text of an entity of these names.

        It gives 0 if those are too few, or of nobody whom the query names.
        """
        lowered = names.lower()
        rest = [part for part in self._parts if part not in lowered]
        there = len(self._parts) - len(rest)
        least = max(1.0, LEAST_SHARE * len(self._parts))
        is_named = not self.people or self._calls_people(lowered)

        def likeness(text: str) -> int:
            lowered = text.lower()
            count = there + sum(part in lowered for part in rest)
            return count if count >= least and (is_named or self._calls_people(lowered)) else 0

        return likeness

    def _calls_people(self, lowered: str) -> bool:
        """Whether one of the words names the people: cheap, and too generous to names like Will."""
        words = self._calls.findall(lowered)
        return any(word in self.people or telling_stem(word) in self.people for word in words)

    def share_in(self, text: str) -> float:
        """The share of the wanted words that a text has; 0 if it names none of the people."""
        stems = telling_stems(text, self.names)
        if self.people and self.people.isdisjoint(stems):
            return 0.0
        return len(self.wanted & stems) / len(self.wanted)


def _asked_names(profiles: Mapping[str, Profile], query: str, audience: str) -> frozenset[str]:
    """The query's words, in lower case, that mean somebody and else would tell nothing."""
    names = (name for profile in profiles.values() for name in profile.names(audience))
    return names_among(query) | capitals(query) & set(map(_wordless, names))


@lru_cache(maxsize=4096)
def _wordless(name: str) -> str:
    """A name, in lower case, that is one word and tells nothing; empty for any other."""
    return "" if " " in name or telling_stems(name) else name.lower()


def named_in(
    profiles: Mapping[str, Profile], query: str, audience: str
) -> dict[str, frozenset[str]]:
    """The stems of a query's words that name each entity: a whole name or capitalised word."""
    names = _asked_names(profiles, query, audience)
    wanted, alone = telling_stems(query, names), lone_capitals(query)
    whole = set(mentioned(names_index(profiles, audience), query))
    stems = {}
    for entity_id, profile in profiles.items():
        called = profile.names(audience)
        proper = alone & frozenset(word for name in called for word in _proper(name))
        if entity_id in whole or proper:
            words = called if entity_id in whole else sorted(proper)
            stems[entity_id] = wanted & telling_stems(" ".join(words), names)
    return {entity_id: each for entity_id, each in stems.items() if each}


def touched_on(profiles: Mapping[str, Profile], query: str, audience: str) -> list[str]:
    """The ids of entities with a telling word of their names in a query."""
    wanted = telling_stems(query)
    return [
        entity_id
        for entity_id, profile in profiles.items()
        if any(wanted & _name_stems(name) for name in profile.names(audience))
    ]


_name_stems = lru_cache(maxsize=4096)(telling_stems)


@lru_cache(maxsize=4096)
def _proper(name: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", name) if word[0].isupper())


def _part(word: str) -> str:
    """What any form of a word of this stem holds: `bak` of `baker` and `baking`."""
    return word[:-1] if len(word) > 3 or word.endswith("i") else word  # `ami`: of Amy


def _text(item: Observation) -> str:
    return " ".join(filter(None, (item.text, item.subject, item.predicate, item.value)))


def _hit(score: float, profile: Profile, item: Observation, audience: str) -> Hit:
    is_named = any(name.lower() in item.text.lower() for name in profile.names(audience))
    text = item.text if is_named or not profile.name else f"About {profile.name}: {item.text}"
    who = f"{item.told_by} said" if item.told_by else ""
    return Hit(item.id, score, who, text, item.at, kind="observation", audience=item.audience)
