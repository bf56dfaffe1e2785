"""Whether a claim answers a question: names, coverage, the kind of answer, who does what to whom.

A claim must hold the names asked about, the living things asked about, enough of the remaining
words (or words of the same meaning), and something of the kind asked for that the question does
not hold itself. The thresholds were set on the tuning half of ``benchmarks/offline_model.py``.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from evennia_ai.offline.claims import Claim, Evidence
from evennia_ai.offline.coverage import coverage, shared_share
from evennia_ai.offline.kinds import kind_factor
from evennia_ai.offline.question import Query
from evennia_ai.offline.roles import polarity, reversed_roles
from evennia_ai.offline.subjects import names_factor, owner_conflict

ACCEPT = 0.63
TIE = 0.08
_WHOLE, _WHOLE_COVERED, _WHOLE_KIND = 0.9, 0.85, 0.85  # for clauses taken together
_ASIDE = 0.75
_LIGHT_ACCEPT = 0.8  # where a question has no weighty word at all
# For what is only offered as the nearest: what it takes, and what it counts, of 1, that those
# one whom the question names is there, and that it holds anything, if not the kind asked for.
_NEAR_ACCEPT, _NAMED, _ANY_KIND = 0.25, 0.4, 0.4
# What seems told the other way round may only be put in a way the rules misread.
_TURNED = 0.7
_NAMELESS = 0.55  # what a claim must share with a question that names nobody
_FOUND, MAX_PLACE = 0.2, 5  # what it adds to be among the first that a search found
# What a question must share with what the search for its very words put on top, and what the
# names count where only the asker is missing: `what would the cutter cost me`.
_TOP_SHARE, _WITHOUT_ASKER = 0.5, 0.8
_NEAR_SHARE, MAX_NEAR = 0.6, 2  # how near a second one must come to the first


@dataclass(frozen=True, slots=True)
class Match:
    """A claim with how well it answers, 0 to 1."""

    claim: Claim
    score: float


def best_matches(query: Query, evidence: Evidence) -> list[Match]:
    """Claims that answer a question, best first; among near equals the latest comes first."""
    found = [Match(claim, score(query, claim, evidence)) for claim in evidence.claims]
    good = [match for match in found if match.score >= ACCEPT]
    if not good:
        return []
    top = max(match.score for match in good)
    near = [match for match in good if match.score >= top - TIE]
    rest = [match for match in good if match.score < top - TIE]
    near.sort(key=lambda match: (match.claim.rank, match.score), reverse=True)
    return near + sorted(rest, key=lambda match: -match.score)


def nearest(
    query: Query, evidence: Evidence, hits: Mapping[str, int], top: Set[str] = frozenset()
) -> list[Match]:
    """The claims that come nearest to a question that none answers, best first; few, or none.

    They speak of whom or what the question names, and hold something of the kind asked for, or
    the search put them on top; but the rules know too little of their words to call one the
    answer.

    Args:
        query: The question.
        evidence: What was told.
        hits: The best place of a memory's id in the searches, from 0.
        top: The ids that the search for the question itself put first.
    """
    found = []
    for claim in evidence.claims:
        near = _nearness(query, claim, evidence, claim.line.id in top)
        place = hits.get(claim.line.id, MAX_PLACE)
        found.append(Match(claim, near and near + _FOUND * max(0.0, 1 - place / MAX_PLACE)))
    found.sort(key=lambda match: (match.score, match.claim.rank), reverse=True)
    least = max(_NEAR_ACCEPT, _NEAR_SHARE * found[0].score) if found else 0.0
    quotes: dict[str, Match] = {}
    for match in found:
        if match.score >= least:
            quotes.setdefault(match.claim.quote, match)
    return list(quotes.values())[:MAX_NEAR]


def _nearness(query: Query, claim: Claim, evidence: Evidence, top: bool) -> float:
    names = names_factor(query, claim, evidence)
    if not names and (others := query.without_pronouns()) != query:
        query, names = others, _WITHOUT_ASKER * names_factor(others, claim, evidence)
    if claim.whole or not names or owner_conflict(query, claim, evidence):
        return 0.0
    turned = _TURNED if reversed_roles(query, claim) else 1.0
    shared = shared_share(query, claim, evidence)
    least = _TOP_SHARE if top and query.terms else _NAMELESS
    if not query.names and shared < least:
        return 0.0
    named = 1 - (1 - _NAMED) ** len(query.names)
    shared = named + (1 - named) * shared
    kind = _ANY_KIND + (1 - _ANY_KIND) * kind_factor(query, claim)
    return names * kind * shared * turned * polarity(query, claim)


def score(query: Query, claim: Claim, evidence: Evidence) -> float:
    """How well a claim answers a question: 0 (not at all) to about 1."""
    if claim.whole and not _may_be_whole(query, claim):
        return 0.0
    names = names_factor(query, claim, evidence)
    if not names or owner_conflict(query, claim, evidence):
        return 0.0
    covered = coverage(query, claim, evidence)
    if covered < (ACCEPT if any(term.weight > 0.5 for term in query.terms) else _LIGHT_ACCEPT):
        return 0.0
    kind = kind_factor(query, claim)
    if not kind or reversed_roles(query, claim) or _is_sight(query, claim):
        return 0.0
    if claim.whole and (covered < _WHOLE_COVERED or kind < _WHOLE_KIND):
        return 0.0
    said = _WHOLE if claim.whole else _ASIDE if _is_aside(query, claim) else 1.0
    return names * covered * kind * polarity(query, claim) * said


def _is_sight(query: Query, claim: Claim) -> bool:
    """Whether somebody saw, dreamed or gambled what is asked of them: `I saw five geese today`."""
    told = _told(claim)
    if query.has("want") and {"dream", "night"} <= {word.fold for word in claim.words}:
        return True
    return any(
        concept in told and not query.has(concept)
        for asked, concepts in _SIGHTS
        if query.kind == asked or query.has(asked)
        for concept in concepts
    )


# By the kind of question, or what it asks: what tells of something else.
_SIGHTS = (("number", ("see", "meet")), ("lose", ("bet",)))


def _is_aside(query: Query, claim: Claim) -> bool:
    """Whether a claim tells what is asked only by the way: who taught it, asked what is played."""
    return "teach" in _told(claim) and not query.has("teach")


def _told(claim: Claim) -> frozenset[str]:
    """All that the words of a claim stand for."""
    return frozenset[str]().union(*(word.concepts for word in claim.words))


def _may_be_whole(query: Query, claim: Claim) -> bool:
    """Whether clauses may be taken together: not where a relative could be taken for another."""
    if any(term.hard for term in query.terms):
        return False
    kin = any("@kin" in word.concepts for word in claim.words)
    return bool(query.names or query.terms) and (not kin or query.kind in ("who", "why"))
