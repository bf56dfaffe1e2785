"""Finding what is known of people, places and things by the words of a query.

Observations are few and change: a search reads the profiles as they are, so that what was
superseded, forgotten or taken back is never found.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from evennia_ai.language.names import capitals, lone_capitals, names_among
from evennia_ai.rag_memory.entities import mentioned
from evennia_ai.rag_memory.profile import Observation, Profile, shown_observations
from evennia_ai.rag_memory.recalled import telling_stem, telling_stems
from evennia_ai.recall.values import Hit

# Most observations that a search finds, and the share of a query's words that one must have.
MOST_FOUND, LEAST_SHARE = 3, 0.5
# Observations that are read closely, of those that may be meant.
_LOOKED_AT = 40


def found_observations(
    profiles: Mapping[str, Profile], query: str, audience: str, most: int = MOST_FOUND
) -> list[Hit]:
    """The observations that still hold and have most of a query's telling words.

    Returns:
        At most `most` hits of the kind ``observation`` that the audience may know, best first, of
        equal ones the newest; the score is the share of the query's words.
    """
    asked = _Asked.of(profiles, query, audience)
    likely: list[tuple[int, str, Profile, Observation]] = []
    for profile in profiles.values():
        likeness = asked.likeness_in(" ".join(profile.names))
        if any(likeness(_text(item)) for item in profile.observations):
            for item in shown_observations(profile, audience):
                if count := likeness(_text(item)):
                    likely.append((count, item.latest, profile, item))
    likely.sort(key=lambda each: each[:2], reverse=True)
    found = [
        (score, at, profile, item)
        for _, at, profile, item in likely[:_LOOKED_AT]
        if (score := asked.share_in(" ".join((*profile.names, _text(item))))) >= LEAST_SHARE
    ]
    found.sort(key=lambda each: each[:2], reverse=True)
    return [_hit(*each) for each in found[:most]]


@dataclass(frozen=True)
class _Asked:
    """What a query asks for.

    Args:
        wanted: The stems of its telling words.
        names: Its words, in lower case, that tell something as they mean somebody.
        people: Those of `wanted` that name people of whom the audience may know something.
    """

    wanted: frozenset[str]
    names: frozenset[str]
    people: frozenset[str]

    @classmethod
    def of(cls, profiles: Mapping[str, Profile], query: str, audience: str) -> "_Asked":
        """A query read."""
        names = _asked_names(profiles, query)
        return cls(telling_stems(query, names), names, _people(profiles, query, audience))

    @cached_property
    def _parts(self) -> list[str]:
        """What a text holds, in lower case, in which the wanted words stand."""
        return [_part(word) for word in self.wanted]

    @cached_property
    def _calls(self) -> re.Pattern[str]:
        """Finds the words, in lower case, that may name the people."""
        parts = sorted(re.escape(_part(word)) for word in self.people)
        return re.compile(rf"\b(?:{'|'.join(parts)})[^\W_]*")

    def likeness_in(self, names: str) -> Callable[[str], int]:
        """What tells how many parts a text of an entity of these names holds.

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
        """The share of the wanted words that a text holds; 0 if it names none of the people."""
        held = telling_stems(text, self.names)
        if self.people and self.people.isdisjoint(held):
            return 0.0
        return len(self.wanted & held) / len(self.wanted)


def _asked_names(profiles: Mapping[str, Profile], query: str) -> frozenset[str]:
    """The query's words, in lower case, that mean somebody and else would tell nothing."""
    known = {word for profile in profiles.values() for word in map(_wordless, profile.names)}
    return names_among(query) | capitals(query) & known


@lru_cache(maxsize=4096)
def _wordless(name: str) -> str:
    """A name, in lower case, that is one word which tells nothing; empty for any other."""
    return "" if " " in name or telling_stems(name) else name.lower()


def named_in(profiles: Mapping[str, Profile], query: str) -> dict[str, frozenset[str]]:
    """The entities that a query names: by a whole name, or by a word with a capital in both.

    Returns:
        The stems of the words that name each, by entity id.
    """
    names = _asked_names(profiles, query)
    wanted, alone = telling_stems(query, names), lone_capitals(query)
    whole = set(mentioned(profiles, query))
    found = {}
    for entity_id, profile in profiles.items():
        called = profile.names
        proper = alone & frozenset(word for name in called for word in _proper(name))
        if entity_id in whole or proper:
            words = called if entity_id in whole else sorted(proper)
            found[entity_id] = wanted & telling_stems(" ".join(words), names)
    return {entity_id: stems for entity_id, stems in found.items() if stems}


def touched_on(profiles: Mapping[str, Profile], query: str) -> list[str]:
    """The ids of entities of whose names a telling word stands in a query."""
    wanted = telling_stems(query)

    def is_touched(profile: Profile) -> bool:
        return not all(wanted.isdisjoint(_name_stems(name)) for name in profile.names)

    return [entity_id for entity_id, profile in profiles.items() if is_touched(profile)]


_name_stems = lru_cache(maxsize=4096)(telling_stems)


@lru_cache(maxsize=4096)
def _proper(name: str) -> frozenset[str]:
    """The words of a name that have a capital."""
    return frozenset(word for word in re.findall(r"\w+", name) if word[0].isupper())


def _people(profiles: Mapping[str, Profile], query: str, audience: str) -> frozenset[str]:
    """The stems of words that name people of whom the audience may know something."""
    named: set[str] = set()
    for entity_id, stems in named_in(profiles, query).items():
        profile = profiles[entity_id]
        is_news = profile.kind == "person" and stems - named
        if is_news and shown_observations(profile, audience):
            named |= stems
    return frozenset(named)


def _part(word: str) -> str:
    """What a text holds in which a word of this stem stands: `bak` of `baker` and `baking`."""
    return word[:-1] if len(word) > 3 or word.endswith("i") else word  # `ami`: of Amy


def _text(item: Observation) -> str:
    if not item.predicate and not item.subject:
        return item.text
    return " ".join(part or "" for part in (item.text, item.subject, item.predicate, item.value))


def _hit(score: float, at: str, profile: Profile, item: Observation) -> Hit:
    is_named = any(name.lower() in item.text.lower() for name in profile.names)
    text = item.text if is_named or not profile.names else f"About {profile.names[0]}: {item.text}"
    return Hit(item.id, score, "", text, at, kind="observation", audience=item.audience)
