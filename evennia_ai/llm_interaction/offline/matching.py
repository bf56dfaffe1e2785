"""Which sentence that somebody told fits a question, by its words, its names and its kind.

Matching is plain: the stems of words that both share. A question that names somebody is
only answered by sentences about them.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

from evennia_ai.language.names import capitals
from evennia_ai.language.script import folded, meets
from evennia_ai.language.tables import Table, language_of, spoken, table_of
from evennia_ai.language.words import content_words, same_word, words
from evennia_ai.llm_interaction.offline import prose
from evennia_ai.llm_interaction.offline.acts import is_fact, told_part, vocative
from evennia_ai.llm_interaction.offline.prose import frame_of, root, root_set, roots_of
from evennia_ai.llm_interaction.offline.transcript import SOURCES, SUMMARY, Line, without_echo

MAX_CLAIMS = 4000
# First hits of the search that may answer without a word of the question.
FOUND = 3
MAX_PASSAGE = 240  # characters of sentences that are quoted together
# Shares of a question's words that a sentence must hold to count as the answer: less where the
# kind of answer shows, as in a number or a time.
SURE, SURE_OF_KIND = 0.8, 0.67
NEAR = 0.3  # the least share of what is near a question that names nobody


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a statement, with those behind it that go on about the same."""

    line: Line  # where it was told
    quote: str
    roots: frozenset[str]  # stems of its words; `I` is the speaker's name
    names: frozenset[str]  # in lower case

    @property
    def words(self) -> frozenset[str]:
        """Stems of the words that were said."""
        return roots_of(self.quote, table_of(self.quote).code)

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
    table: Table  # of its language


@dataclass(frozen=True, slots=True)
class Match:
    """A claim that may answer, its place in the order, its share of what is asked about."""

    claim: Claim
    score: float
    share: float
    sure: bool  # whether it is the answer


def read_claims(lines: Iterable[Line], me: str, others: Iterable[str] = ()) -> list[Claim]:
    """The claims in the lines that people told `me` or `others`, oldest first, each once."""
    called = (me, *others)
    best: dict[tuple[str, ...], Claim] = {}
    for line in lines:
        for claim in _claims_of(line, called, spoken().code):
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
def _claims_of(line: Line, called: tuple[str, ...], language: str) -> tuple[Claim, ...]:
    """The claims of a line in a talk of this language; cached, as each turn asks again.

    `called` are the names of assistants, first of the one that was told.
    """
    me, text = called[0], reduce(vocative, called, without_echo(line.text))
    passages: list[str] = []
    back = table_of(line.text).expression("speech", "back")
    for part in prose.sentences(text):
        is_cut = line.source == SUMMARY and (part.startswith("…") or part.endswith("…"))
        if prose.is_question(part) or prose.is_nonsense(part) or is_cut:
            passages.append("")
        elif passages and 0 < len(passages[-1]) < MAX_PASSAGE and back.match(part):
            passages[-1] += f" {part}"
        elif is_fact(part):
            passages.append(part)
    told = (told_part(passage, me) for passage in passages if passage)
    return tuple(
        Claim(line, text, _roots(text, line.who, me), prose.names_in(text)) for text in told
    )


def _roots(text: str, speaker: str, listener: str) -> frozenset[str]:
    """Stems of the words of a text, and of the names that ``I`` and ``you`` stand for."""
    table = table_of(text)
    meant = {"first_person": speaker, "second_person": listener}
    names = (name for key, name in meant.items() if _says(text, table, key))
    return roots_of(" ".join((text, *names)), table.code)


def _says(text: str, table: Table, key: str) -> bool:
    """Whether a text holds a word of a list."""
    if table.data.get("unparted"):
        return any(word in folded(text) for word in table.words(key))
    return not table.words(key).isdisjoint(words(text))


def read_question(text: str, asker: str, me: str, known: Set[str]) -> Question:
    """Read a question: ``my`` is the asker's, ``your`` is `me`'s, `known` are lower-case names."""
    asked = " ".join(part for part in prose.sentences(text) if prose.is_question(part)) or text
    lower = asked.lower().replace("’", "'")
    table = table_of(asked)
    kinds = table.expressions("questions").items()
    kind = next((kind for kind, pattern in kinds if pattern.search(lower)), "")
    skipped = root_set(table.get("heads", kind)) | roots_of(me, table.code)
    skipped |= frame_of(table)
    people = known | capitals(asked)  # a question begins with the word that asks
    names: set[str] = set()
    terms: set[str] = set()
    told = {root(word, table.code): word for word in content_words(lower, table, ("stop",))}
    # `Where do I come from?` has nothing but words that only frame other questions.
    is_own = skipped.issuperset(told) and _says(lower, table, "first_person")
    if is_own or _says(lower, table, "first_person_owner"):
        names |= roots_of(asker, table.code)
    for stem, word in told.items():
        if is_own or stem not in skipped:
            named = any(same_word(word, name, table.code) for name in people)
            (names if named else terms).add(stem)
    return Question(kind, frozenset(names), frozenset(terms), _roots(lower, asker, me), table)


def _shared(asked: Set[str], told: Set[str], table: Table, language: str = "") -> frozenset[str]:
    """Which of some stems stand among others, in any form; as they are in another `language`."""
    if table.data.get("exact_stems") or (language and language != table.code):
        return frozenset(asked & told)
    return frozenset(a for a in asked if a in told or any(meets(a, t) for t in told))


def matches(question: Question, claims: Sequence[Claim], places: Mapping[str, int]) -> list[Match]:
    """The claims, given oldest first, that may answer a question, best first.

    `places` are those of memories' ids among the hits of the search, from 0.
    """
    names, terms = question.names, question.terms
    least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
    # A single word or name is too little to rest on, unless it is all that is asked about.
    is_enough = len(names | terms) > 1 or (not terms and question.kind in ("who", "what", ""))
    candidates, frame = [], frame_of(question.table)
    for number, claim in enumerate(claims):
        held = _shared(names, claim.roots, question.table)
        told = roots_of(claim.line.who, question.table.code)
        named = len(held | _shared(names, told, question.table)) / max(1, len(names))
        common = _shared(terms, claim.roots, question.table, language_of(claim.quote))
        share = len(common) / len(terms) if terms else float(bool(names))
        if named < 0.5 if names else share < NEAR:
            continue
        if terms and terms <= frame and not common:
            continue  # words that frame a question are too little without one of them
        # Who told it, or asks, is no word that both share: then the search must have found it.
        is_found = places.get(claim.line.id, FOUND) < FOUND
        if terms and not (common or is_found or _shared(names, claim.words, question.table)):
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
    signs_of = question.table.expressions("signs")
    sign = signs_of.get(question.kind)
    if sign is None:
        return True
    signs = {at[at.lastindex or 0] for at in sign.finditer(claim.quote)}
    if question.kind == "where":
        signs = {
            each for each in signs if not ("when" in signs_of and signs_of["when"].fullmatch(each))
        }
    if question.kind in ("why", "name"):
        return bool(signs)
    return any(roots_of(each) - question.roots for each in signs)
