"""Finding what is known of people, places and things by the words of a query.

Observations are few and change: a search reads the profiles as they are, so that what was
superseded, forgotten or taken back is never found.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from evennia_ai.core.entities import Observation, Profile, names_of, shown_observations
from evennia_ai.core.namewords import capitals, names_among
from evennia_ai.core.recalled import told_stems

# Most observations that a search finds, and the share of a query's words that one must have.
MOST_FOUND, LEAST_SHARE = 3, 0.5
# Observations that are read closely, of those that may be meant.
_LOOKED_AT = 40
_PARTS = ("text", "subject", "predicate", "value")


def found_observations(
    profiles: Mapping[str, Profile], query: str, audience: str, most: int = MOST_FOUND
) -> list[dict[str, Any]]:
    """The observations that still hold and have most of a query's telling words.

    Args:
        profiles: Profiles by entity id.
        query: What to look for.
        audience: Who will be told.
        most: Most observations.

    Returns:
        Hits ``{"id", "kind": "observation", "speaker": "", "at", "text", "score"}``, best first,
        of equal ones the newest; `score` is the share of the query's words.
    """
    names = _asked_names(profiles, query)
    wanted = told_stems(query, names)
    likely = _likely(profiles, wanted, audience)
    likely.sort(key=lambda each: each[:2], reverse=True)
    found = [
        (score, at, profile, item)
        for _, at, profile, item in likely[:_LOOKED_AT]
        if (score := _share(wanted, names, profile, item)) >= LEAST_SHARE
    ]
    found.sort(key=lambda each: each[:2], reverse=True)
    return [_hit(*each) for each in found[:most]]


def _asked_names(profiles: Mapping[str, Profile], query: str) -> frozenset[str]:
    """The query's words, in lower case, that mean somebody and else would tell nothing."""
    known = {word for profile in profiles.values() for word in map(_wordless, names_of(profile))}
    return names_among(query) | capitals(query) & known


@lru_cache(maxsize=4096)
def _wordless(name: str) -> str:
    """A name, in lower case, that is one word which tells nothing; empty for any other."""
    return "" if " " in name or told_stems(name) else name.lower()


def _likely(
    profiles: Mapping[str, Profile], wanted: frozenset[str], audience: str
) -> list[tuple[int, str, Profile, Observation]]:
    """Observations that hold parts of enough wanted words, and of how many: cheap to tell."""
    parts, people = [_part(word) for word in wanted], _people(profiles, wanted, audience)
    least = max(1.0, LEAST_SHARE * len(parts))

    def likeness(names: str, item: Mapping[str, Any]) -> int:
        """How many parts it holds; 0 if too few, or of nobody whom the query names."""
        text = f"{names} {_text(item)}"
        count = _count(text.lower(), parts)
        return count if count >= least and (not people or people & told_stems(text)) else 0

    found = []
    for profile in profiles.values():
        names = " ".join(names_of(profile))
        if not any(likeness(names, item) for item in profile.get("observations", ())):
            continue
        for item in shown_observations(profile, audience):
            if count := likeness(names, item):
                found.append((count, str(item.get("last_at") or item["at"]), profile, item))
    return found


def _people(
    profiles: Mapping[str, Profile], wanted: frozenset[str], audience: str
) -> frozenset[str]:
    """The wanted words that name people of whom the audience may know something."""
    named: set[str] = set()
    for profile in profiles.values():
        if profile.get("kind") == "person":
            called = wanted & told_stems(" ".join(names_of(profile)))
            if called - named and shown_observations(profile, audience):
                named |= called
    return frozenset(named)


def _part(word: str) -> str:
    """What a text holds in which a word of this stem stands: `bak` of `baker` and `baking`."""
    return word[:-1] if len(word) > 3 or word.endswith("i") else word  # `ami`: of Amy


def _count(text: str, parts: Sequence[str]) -> int:
    return sum(part in text for part in parts)


def _text(item: Mapping[str, Any]) -> str:
    if not item.get("predicate") and not item.get("subject"):
        return str(item.get("text"))
    return " ".join(str(item.get(part) or "") for part in _PARTS)


def _share(
    wanted: frozenset[str], names: frozenset[str], profile: Mapping[str, Any], item: Observation
) -> float:
    held = told_stems(" ".join((*names_of(profile), _text(item))), names)
    return len(wanted & held) / len(wanted)


def _hit(score: float, at: str, profile: Mapping[str, Any], item: Observation) -> dict[str, Any]:
    text = str(item["text"])
    names: Sequence[str] = names_of(profile)
    named = any(name.lower() in text.lower() for name in names)
    told = text if named or not names else f"About {names[0]}: {text}"
    shown = {"id": item["id"], "kind": "observation", "speaker": "", "at": at}
    return {**shown, "text": told, "score": round(score, 3)}
