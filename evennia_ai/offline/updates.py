"""What was told later and may change an answer: `moved`, `no longer`, `change of plan`.

A rule cannot know whether the later words replace the earlier ones. Where they speak of the same
and sound like news, both are quoted in their order, and the asker knows what holds now.
"""

import re

from evennia_ai.offline import lexicon
from evennia_ai.offline.claims import Claim, Evidence
from evennia_ai.offline.kinds import kind_factor
from evennia_ai.offline.question import Query
from evennia_ai.offline.words import Word

_NEWS = re.compile(
    r"\b(?:now|no longer|any ?more|nowadays|these days|instead|after all|change of plans?|changed|"
    r"moved|left|dropped|raised|lowered|(?:came|come|gone|went|put) (?:up|down)|g[ai]ven? up|quit|"
    r"stopped|over between|from now on|turns out|isn['’]t|wasn['’]t|not)\b",
    re.IGNORECASE,
)

# Kinds of answers that show by themselves: where only the name is shared, the rest may be anything.
_SHOWN = frozenset({"where", "when", "number", "measure"})


def update_of(query: Query, answer: Claim, evidence: Evidence) -> Claim | None:
    """The latest claim that sounds like news of what an answer tells; None where there is none.

    Args:
        query: The question.
        answer: The claim that answers it.
        evidence: What was told.
    """
    own = (*answer.words, *answer.near)
    later = (
        claim
        for claim in evidence.claims
        if not claim.whole
        and claim.rank > answer.rank
        and claim.quote != answer.quote
        and _NEWS.search(claim.line.text)
        and _tells_of_same(query, answer, own, claim)
        and not _is_of_another(query, answer, claim)
    )
    return max(later, key=lambda claim: (claim.rank, kind_factor(query, claim)), default=None)


def _tells_of_same(query: Query, answer: Claim, own: tuple[Word, ...], claim: Claim) -> bool:
    """Whether a claim shares enough with an answer: two things, or one and who it is about."""
    words = (*claim.words, *claim.near)
    shared = len(_things(own) & _things(words))
    named = bool(_named(own) & _named(words))
    if shared >= 2 or (shared and (named or claim.line.who == answer.line.who)):
        return True
    shown = query.kind in _SHOWN and kind_factor(query, claim) > 0
    shown = shown or any(query.wanted in word.concepts for word in claim.words)
    return named and shown and not claim.owners()


def _is_of_another(query: Query, answer: Claim, claim: Claim) -> bool:
    """Whether a claim tells the same of somebody else, or of what is somebody else's."""
    asked = set(query.names)
    named = {word.name for word in claim.words if word.name and not word.owner}
    if asked and named and not claim.pronoun and not asked & named and asked & _named_all(answer):
        return True
    mine, theirs = _owned(answer.words), _owned(claim.words)
    return any(theirs.get(thing, owner) != owner for thing, owner in mine.items())


def _named_all(claim: Claim) -> set[str]:
    return {word.name for word in claim.words if word.name}


def _owned(words: tuple[Word, ...]) -> dict[str, str]:
    """The owner of each thing that is told to be somebody's: ``the mill's password``."""
    pairs = zip(words, words[1:], strict=False)
    return {thing.fold: owner.name or owner.fold for owner, thing in pairs if owner.owner}


def _things(words: tuple[Word, ...]) -> set[str]:
    return {
        word.fold
        for word in words
        if not word.name and word.lower not in lexicon.STOP and word.fold not in lexicon.LIGHT
    }


def _named(words: tuple[Word, ...]) -> set[str]:
    return {word.name for word in words if word.name and not word.pronoun}
