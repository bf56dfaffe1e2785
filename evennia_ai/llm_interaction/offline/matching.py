"""Which sentence that somebody told fits a question, by its words, its names and its kind.

Matching is plain: the stems of words that both share, weighted by how rare they are. A question
that names somebody is only answered by sentences about them.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from evennia_ai.language.words import STOP_WORDS, spoken_words, words
from evennia_ai.llm_interaction.offline import prose
from evennia_ai.llm_interaction.offline.acts import is_fact, told_part
from evennia_ai.llm_interaction.offline.prose import root, root_set, roots_of
from evennia_ai.llm_interaction.offline.table import LISTS, SPEECH, TABLE, expressions
from evennia_ai.llm_interaction.offline.transcript import SOURCES, SUMMARY, Line, without_echo

MAX_CLAIMS = 4000
MAX_PASSAGE = 240  # characters of sentences that are quoted together
# Shares of a question's weight that a sentence must hold to count as the answer: less where the
# kind of answer shows, as in a number or a time.
SURE, SURE_OF_KIND = 0.8, 0.67
# What is near a question that names nobody: the least share, or a place among the search's hits.
NEAR, MAX_PLACE = 0.3, 3
_ALIKE = 0.8  # what a word counts that only begins like the one asked for
_SPEAKER = 0.8  # what a name counts whose owner speaks, but not of themselves
_LIGHT_WEIGHT, _COMMON_WEIGHT = 0.4, 0.5
_LIGHT = frozenset(map(root, LISTS["light"]))
_KINDS, SIGNS = expressions("questions"), expressions("signs")
_HEADS = {kind: root_set(text) for kind, text in TABLE["heads"].items()}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a statement, with those behind it that go on about the same."""

    line: Line  # where it was told
    quote: str
    roots: frozenset[str]  # stems of its words; `I` is the speaker's name
    names: frozenset[str]  # in lower case

    @property
    def rank(self) -> tuple[int, str, int]:
        """Place in time: of two claims the later has the greater."""
        if self.line.source == SUMMARY:
            return (-1, self.line.at, 0)
        return (1, "", self.line.order) if self.line.order >= 0 else (0, self.line.at, 0)

    @property
    def originality(self) -> tuple[bool, int]:
        """The least has its words from nearest to who said them."""
        return not self.line.who, SOURCES.index(self.line.source)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read; words are stems."""

    kind: str  # of answer, or `""` where it asks for yes or no, or for anything
    names: tuple[str, ...]  # that an answer must hold
    terms: tuple[str, ...]  # what else it asks about
    roots: frozenset[str]  # all its words
    asides: frozenset[str]  # whom `I` and `you` may mean; an answer need not name them
    keywords: str  # the words of its names and terms, for a search


@dataclass(frozen=True, slots=True)
class Match:
    """A claim, its place in the order, its share of the question's weight, and if it answers it."""

    claim: Claim
    score: float
    share: float
    sure: bool


def read_claims(lines: Iterable[Line], me: str) -> list[Claim]:
    """The claims in the lines that others than `me` told, oldest first, each once."""
    best: dict[tuple[str, ...], Claim] = {}
    for line in lines:
        for claim in _claims_of(line, me):
            key = (line.who, *words(claim.quote))
            # The more original one is quoted.
            first, other = sorted((best.get(key, claim), claim), key=lambda each: each.originality)
            one, two = first.line, other.line
            same = replace(one, id=one.id or two.id, order=max(one.order, two.order))
            best[key] = replace(first, line=same)
        if len(best) > MAX_CLAIMS:
            break
    return sorted(best.values(), key=lambda claim: claim.rank)


@lru_cache(maxsize=4096)
def _claims_of(line: Line, me: str) -> tuple[Claim, ...]:
    """The claims of a line; cached, as each turn asks again."""
    passages: list[str] = []
    for part in prose.sentences(without_echo(line.text)):
        is_cut = line.source == SUMMARY and (part.startswith("…") or part.endswith("…"))
        if prose.is_question(part) or prose.is_nonsense(part) or is_cut:
            passages.append("")
        elif passages and 0 < len(passages[-1]) < MAX_PASSAGE and SPEECH["back"].match(part):
            passages[-1] += f" {part}"
        elif is_fact(part):
            passages.append(part)
    told = (told_part(passage, me) for passage in passages if passage)
    return tuple(
        Claim(line, text, _roots(text, line.who, me), prose.names_in(text)) for text in told
    )


def _roots(text: str, speaker: str, listener: str) -> frozenset[str]:
    """Stems of the words of a text; ``I`` and ``you`` stand for their names."""
    roots: set[str] = set()
    for token in spoken_words(text.lower().replace("’", "'")):
        first, second = token in LISTS["first_person"], token in LISTS["second_person"]
        meant = speaker if first else listener if second else ""
        roots |= roots_of(meant or token.removesuffix("'s"))
    return frozenset(roots)


def read_question(text: str, asker: str, me: str, known: Set[str]) -> Question:
    """Read a question: ``my`` is the asker's, ``your`` is `me`'s, `known` are lower-case names."""
    asked = " ".join(part for part in prose.sentences(text) if prose.is_question(part)) or text
    lower = asked.lower().replace("’", "'")
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(lower)), "")
    skipped = prose.FRAME | _HEADS.get(kind, frozenset()) | roots_of(me)
    people = known | prose.names_in(asked)
    names: dict[str, str] = {}
    terms: dict[str, str] = {}
    for token in spoken_words(lower):
        if token in LISTS["first_person_owner"]:
            names |= {root(word): word for word in words(asker)}
        for word in words(token.removesuffix("'s")):
            if word not in STOP_WORDS and root(word) not in skipped:
                (names if word in people else terms)[root(word)] = word
    roots = _roots(lower, asker, me)
    keywords = " ".join(dict.fromkeys([*names.values(), *terms.values()]))
    asides = roots_of(f"{asker} {me}") & roots
    return Question(kind, tuple(names), tuple(terms), roots, asides, keywords)


def matches(question: Question, claims: Sequence[Claim], places: Mapping[str, int]) -> list[Match]:
    """The claims, given oldest first, that may answer a question, best first.

    `places` are the places of memories' ids among the hits of the first search, from 0.
    """
    weights = {}
    for term in question.terms:
        common = sum(term in claim.roots for claim in claims) / max(len(claims), 1)
        weights[term] = (1.0 - _COMMON_WEIGHT * common) * (_LIGHT_WEIGHT if term in _LIGHT else 1.0)
    least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
    # A single word or name is too little to rest on, unless it is all that is asked about.
    enough = len(question.names) + len(weights) > 1
    enough = enough or (not weights and question.kind in ("who", "what", ""))
    candidates = []
    for number, claim in enumerate(claims):
        share, named = _share(weights, claim, bool(question.names)), _named(question, claim)
        place = places.get(claim.line.id, len(places) + 1)
        about_them = bool(question.asides & claim.roots)
        is_near = share >= NEAR or (place < MAX_PLACE and (share or about_them))
        if named < 0.5 or not (question.names or is_near):
            continue
        fits = fits_kind(question, claim)
        sure = named == 1.0 and share >= least and fits and enough
        score = share + 0.6 * named + 0.3 * fits + 0.1 * about_them + 0.5 / (1 + place / 3)
        score += sure + number / (100 * len(claims))  # of equals the latest
        candidates.append(Match(claim, score, share, sure))
    return sorted(candidates, key=lambda match: -match.score)


def _share(weights: Mapping[str, float], claim: Claim, named: bool) -> float:
    """The share of a question's weight that a claim holds; 1 where it asks for a name alone."""
    held = 0.0
    for term, weight in weights.items():
        if term in claim.roots:
            held += weight
        elif len(term) > 4 and any(
            other.startswith(term[:5]) and abs(len(term) - len(other)) < 4 for other in claim.roots
        ):
            held += _ALIKE * weight
    return held / sum(weights.values()) if weights else float(named)


def _named(question: Question, claim: Claim) -> float:
    """The share of the names asked about that a claim holds, 1 where none is."""
    speaker = roots_of(claim.line.who)
    held = [1.0 if n in claim.roots else _SPEAKER * (n in speaker) for n in question.names]
    return sum(held) / len(held) if held else 1.0


def fits_kind(question: Question, claim: Claim) -> bool:
    """Whether a claim holds something of the kind asked for that the question does not hold."""
    if question.kind == "who":
        speaker = roots_of(claim.line.who) & claim.roots
        if (roots_of(" ".join(claim.names)) | speaker) - question.roots:
            return True
    sign = SIGNS.get(question.kind)
    if sign is None:
        return True
    signs = {at[at.lastindex or 0] for at in sign.finditer(claim.quote)}
    if question.kind == "where":
        signs = {each for each in signs if not SIGNS["when"].fullmatch(each)}
    if question.kind in ("why", "name"):
        return bool(signs)
    return any(roots_of(each) - question.roots for each in signs)


def latest(question: Question, best: Match, candidates: Sequence[Match]) -> Match:
    """What the person who told the best match told last about the same thing.

    A later telling counts where it shares two words with the earlier one, and either answers the
    question just as well or sounds like news.
    """
    last, who = best, best.claim.line.who
    for other in sorted(candidates, key=lambda match: match.claim.rank):
        if other.claim.line.who != who or other.claim.rank <= last.claim.rank:
            continue
        shared = (best.claim.roots & other.claim.roots) - STOP_WORDS - _LIGHT - roots_of(who)
        is_same = shared & question.roots and len(shared) >= 2
        if is_same and (other.share >= best.share or SPEECH["news"].search(other.claim.quote)):
            last = other
    return last
