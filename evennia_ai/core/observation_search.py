"""Finding what is known of people, places and things by the words of a query.

Observations are few and change: a search reads the profiles as they are, so that what was
superseded, forgotten or taken back is never found.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evennia_ai.core.entities import Observation, Profile, names_of, shown_observations
from evennia_ai.core.recalled import told_stems

# Most observations that a search finds, and the share of a query's words that one must have.
MOST_FOUND, LEAST_SHARE = 3, 0.5
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
    wanted = told_stems(query)
    found = [
        (score, str(item.get("last_at") or item["at"]), profile, item)
        for profile, item in _possible(profiles, wanted, audience)
        if (score := _share(wanted, profile, item)) >= LEAST_SHARE
    ]
    found.sort(key=lambda each: each[:2], reverse=True)
    return [_hit(*each) for each in found[:most]]


def _possible(
    profiles: Mapping[str, Profile], wanted: frozenset[str], audience: str
) -> Iterator[tuple[Profile, Observation]]:
    """Observations of profiles that hold a part of a wanted word: cheap, so that few remain."""
    for profile in profiles.values():
        names = " ".join(names_of(profile)).lower()
        texts = (_text(item).lower() for item in profile.get("observations", ()))
        if any(_holds(names, wanted) or _holds(text, wanted) for text in texts):
            for item in shown_observations(profile, audience):
                yield profile, item


def _holds(text: str, wanted: frozenset[str]) -> bool:
    # A stem may end otherwise than the word it is of: `bak` of `bakery`, `city` of `cities`.
    return any(word[:-1] in text for word in wanted)


def _text(item: Mapping[str, Any]) -> str:
    return " ".join(str(item.get(part) or "") for part in _PARTS)


def _share(wanted: frozenset[str], profile: Mapping[str, Any], item: Observation) -> float:
    held = told_stems(" ".join((*names_of(profile), _text(item))))
    return len(wanted & held) / len(wanted)


def _hit(score: float, at: str, profile: Mapping[str, Any], item: Observation) -> dict[str, Any]:
    text = str(item["text"])
    names: Sequence[str] = names_of(profile)
    named = any(name.lower() in text.lower() for name in names)
    told = text if named or not names else f"About {names[0]}: {text}"
    shown = {"id": item["id"], "kind": "observation", "speaker": "", "at": at}
    return {**shown, "text": told, "score": round(score, 3)}
