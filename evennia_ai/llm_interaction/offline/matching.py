"""Which sentence that somebody told fits a question, by its words, its names and its kind.

Matching is plain: the stems of words that both share. A question that names somebody is
only answered by sentences about them.
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
# Shares of a question's words that a sentence must hold to count as the answer: less where the
# kind of answer shows, as in a number or a time.
SURE, SURE_OF_KIND = 0.8, 0.67
NEAR = 0.3  # the least share of what is near a question that names nobody
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
    names: frozenset[str]  # that an answer must hold
    terms: frozenset[str]  # what else it asks about
    roots: frozenset[str]  # all its words
    keywords: str  # the words of its names and terms, for a search


@dataclass(frozen=True, slots=True)
class Match:
    """A claim that may answer, its place in the order, its share of what is asked about."""

    claim: Claim
    score: float
    share: float
    sure: bool  # whether it is the answer


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
    keywords = " ".join(dict.fromkeys([*names.values(), *terms.values()]))
    roots = _roots(lower, asker, me)
    return Question(kind, frozenset(names), frozenset(terms), roots, keywords)


def matches(question: Question, claims: Sequence[Claim], places: Mapping[str, int]) -> list[Match]:
    """The claims, given oldest first, that may answer a question, best first.

    `places` are those of memories' ids among the hits of the search, from 0.
    """
    names, terms = question.names, question.terms
    least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
    # A single word or name is too little to rest on, unless it is all that is asked about.
    is_enough = len(names | terms) > 1 or (not terms and question.kind in ("who", "what", ""))
    candidates = []
    for number, claim in enumerate(claims):
        held = names & claim.roots
        named = len(held | (names & roots_of(claim.line.who))) / max(1, len(names))
        share = len(terms & claim.roots) / len(terms) if terms else float(bool(names))
        if named < 0.5 if names else share < NEAR:
            continue
        fits = fits_kind(question, claim)
        sure = held == names and share >= least and fits and is_enough
        place = places.get(claim.line.id, len(places) + 1)
        score = share + 0.6 * named + 0.3 * fits + sure + 0.5 / (1 + place / 3)
        score += number / (100 * len(claims))  # of equals the latest
        candidates.append(Match(claim, score, share, sure))
    return sorted(candidates, key=lambda match: -match.score)


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
        shared = (best.claim.roots & other.claim.roots) - STOP_WORDS - roots_of(who)
        is_same = shared & question.roots and len(shared) >= 2
        if is_same and (other.share >= best.share or SPEECH["news"].search(other.claim.quote)):
            last = other
    return last
