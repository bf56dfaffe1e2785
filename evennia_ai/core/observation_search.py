"""Finding what is known of people, places and things by the words of a query.

Observations are few and change: a search reads the profiles as they are, so that what was
superseded, forgotten or taken back is never found.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.core.entities import Observation, Profile, names_of, shown_observations
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
    wanted = told_stems(query)
    likely = _likely(profiles, wanted, audience)
    likely.sort(key=lambda each: each[:2], reverse=True)
    found = [
        (score, at, profile, item)
        for _, at, profile, item in likely[:_LOOKED_AT]
        if (score := _share(wanted, profile, item)) >= LEAST_SHARE
    ]
    found.sort(key=lambda each: each[:2], reverse=True)
    return [_hit(*each) for each in found[:most]]


def _likely(
    profiles: Mapping[str, Profile], wanted: frozenset[str], audience: str
) -> list[tuple[int, str, Profile, Observation]]:
    """Observations that hold parts of enough wanted words, and of how many: cheap to tell."""
    parts = [_part(word) for word in wanted]
    least = max(1.0, LEAST_SHARE * len(parts))
    found = []
    for profile, names in _meant(profiles, parts):
        texts = [f"{names} {_text(item).lower()}" for item in profile.get("observations", ())]
        if not any(_count(text, parts) >= least for text in texts):
            continue
        for item in shown_observations(profile, audience):
            count = _count(f"{names} {_text(item).lower()}", parts)
            if count >= least:
                found.append((count, str(item.get("last_at") or item["at"]), profile, item))
    return found


def _meant(profiles: Mapping[str, Profile], parts: Sequence[str]) -> list[tuple[Profile, str]]:
    """The profiles that a query names, or all where it names none; each with its names."""
    every = [(profile, " ".join(names_of(profile)).lower()) for profile in profiles.values()]
    named = [each for each in every if _count(each[1], parts)]
    return named or every


def _part(word: str) -> str:
    """What a text holds in which a word of this stem stands: `bak` of `baker` and `baking`."""
    return word[:-1] if len(word) > 3 else word


def _count(text: str, parts: Sequence[str]) -> int:
    return sum(part in text for part in parts)


def _text(item: Mapping[str, Any]) -> str:
    if not item.get("predicate") and not item.get("subject"):
        return str(item.get("text"))
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
