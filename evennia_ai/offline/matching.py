"""Which sentence that somebody told fits a question, by its words, its names and its kind.

Matching is plain: the stems of words that both share, weighted by how rare they are. A question
that names somebody is only answered by sentences about them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache

from evennia_ai.offline.acts import told_part
from evennia_ai.offline.prose import (
    NUMBER,
    NUMBERS,
    TOKEN,
    content_roots,
    is_nonsense,
    is_question,
    names_in,
    root,
    sentences,
    third_person,
    word_set,
)
from evennia_ai.offline.transcript import SOURCES, SUMMARY, Line, without_echo
from evennia_ai.recall.text import STOP_WORDS, words

MAX_CLAIMS = 4000
MAX_PASSAGE = 240  # characters of sentences that are quoted together
MAX_PLACE = 3  # of a search that asked for nobody by name
# Shares of a question's weight that a sentence must hold to count as the answer: less where the
# kind of answer shows, as in a number or a time.
SURE, SURE_OF_KIND = 0.8, 0.67
# The least share to be offered as near where the question names nobody.
NEAR = 0.3
_ASIDE = 0.6  # what a word counts that stands in a neighbouring sentence
_ALIKE = 0.8  # what a word counts that only begins like the one asked for
_LIGHT_WEIGHT, _COMMON_WEIGHT = 0.4, 0.5
_FIRST = word_set("i me my mine myself we us our ours i'm i've i'd i'll we're we've")
_SECOND = word_set("you your yours yourself you're you've")
# How a sentence begins that says more of what the one before it told.
_BACK = re.compile(
    r"(?:[\w'’,]+ ){0,2}(?:he|she|it|they|his|her|their|its|this|that|these|those|both)\b", re.I
)
# Words that only frame a question.
_FRAME = frozenset(
    content_roots(
        "know remember recall tell remind say mention hear idea clue forget wonder please again ever "
        "think find guess exactly still sort kind"
    )
)
_LIGHT = frozenset(
    content_roots(
        "do make take get have give keep put come go use work name call set let want need turn old new "
        "good little big thing man woman people folk day time place way really now today one"
    )
)
_KINDS = (
    ("number", re.compile(r"\bhow (?:many|much|old|far|long|tall|deep|high|heavy|wide|big)\b")),
    ("when", re.compile(r"\bwhen\b|\bhow (?:often|soon|early|late)\b|\b(?:what|which) (?:time|day|"
                        r"night|month|year|date|season|hour)\b")),
    ("where", re.compile(r"\bwhere(?:abouts)?\b|\b(?:what|which) (?:place|town|village|street)\b")),
    ("why", re.compile(r"\bwhy\b|\bwhat for\b|\bhow come\b|\breason\b")),
    ("who", re.compile(r"\bwho(?:m|se)?\b")),
    ("colour", re.compile(r"\bcolou?rs?\b")),
    ("name", re.compile(r"\bname\b|\bcalled\b|\bdo you call\b")),
    ("how", re.compile(r"\bhow\b")),
    ("what", re.compile(r"\bwhat\b|\bwhich\b")),
)  # fmt: skip
_SIGNS = {
    "number": NUMBER,
    "when": re.compile(
        rf"\b(?:\w+days?|jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|august|"
        r"(?:sept|octo|novem|decem)\w+|spring|summer|autumn|fall|winter|dawn|dusk|noon|midday|"
        r"midnight|morning|evening|night|tonight|tomorrow|yesterday|sun(?:rise|set|down|up)|"
        r"o['’]?clock|bells?|ago|since|weeks?|months?|years?|hours?|tides?|first light|"
        rf"every|daily|(?:{NUMBERS}) times|once|twice|always|never|until|before|after|when)\b",
        re.I,
    ),
    "how": re.compile(r"\b(?:by|with|without|because|through|using|like|as|when)\b", re.I),
    "why": re.compile(r"\b(?:because|since|so|as|for|due|account|thanks|after|to|from|of)\b", re.I),
    "colour": re.compile(
        r"\b(?:\w*(?:red|blue|green|yellow|white|black|brown|gr[ea]y)|purple|scarlet|crimson|"
        r"orange|pink|violet|turquoise|gold(?:en)?|silver|chestnut|blonde?|ginger|ivory|azure)\b",
        re.I,
    ),
}
_RELATIVES = re.compile(
    r"\b((?:grand|step)?(?:mother|father|son|daughter)s?(?:-in-law)?|mum|dad|brothers?|sisters?|"
    r"uncles?|aunts?|cousins?|nephews?|nieces?|wife|husband|friends?|neighbours?|the [a-z]+er)\b",
    re.I,
)
# Words of a question that only say which kind of answer it wants.
_HEADS = {
    "when": frozenset(
        content_roots("time date month year soon often early late hour night season")
    ),
    "where": frozenset(content_roots("whereabouts place")),
    "colour": frozenset(content_roots("colour color")),
    "name": frozenset(content_roots("name called")),
    "why": frozenset(content_roots("reason come")),
}
# What tells a measure that is asked for: `how old` by years, `how far` by miles.
_MEASURES = {
    "old": "old year age summer winter born birthday turn",
    "far": "far mile league step day hour walk away",
    "long": "long year month week day hour minute night foot mile",
    "tall": "tall foot inch hand high head",
    "high": "high foot tall fathom yard",
    "deep": "deep fathom foot yard",
    "heavy": "heavy weigh pound stone",
    "wide": "wide foot yard pace broad",
    "big": "big large foot acre yard",
}
# What is told of a speaker's relative, unless the speaker says `I` or `me` too.
_OF_RELATIVE = re.compile(rf"^(?!.*\b(?:I|me)\b).*\b[Mm]y (?:\w+ )?{_RELATIVES.pattern}")
_PLACED = re.compile(
    r"\b(?:in|at|on|under|beneath|below|behind|inside|into|near|by|beside|above|over|to|from|of|"
    r"through|between|across|around|along|outside|toward\w*)\s+(?:(?:the|an?|my|his|her|our|their|"
    r"its|your|some|that|this|old) )*([\w'’-]+)|\b(upstairs|downstairs|indoors|home|abroad)\b",
    re.IGNORECASE,
)
_NEWS = re.compile(
    r"\b(?:now|no longer|any ?more|nowadays|these days|instead|after all|change\w*|moved|left|"
    r"dropped|raised|lowered|gave up|given up|quit|stopped|from now on|turns out|not|isn['’]t)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a statement.

    Attributes:
        line: Where it was told.
        quote: The sentence, with the one before it where a pronoun points back.
        roots: Stems of its words and lower-case names; ``I`` is the speaker's.
        aside: The same of the sentences around it.
        names: Lower-case names in it.
    """

    line: Line
    quote: str
    roots: frozenset[str]
    aside: frozenset[str]
    names: frozenset[str]

    @property
    def rank(self) -> tuple[int, str, int]:
        """Place in time: of two claims the later has the greater."""
        if self.line.source == SUMMARY:
            return (-1, self.line.at, 0)
        return (1, "", self.line.order) if self.line.order >= 0 else (0, self.line.at, 0)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read.

    Attributes:
        text: As asked.
        kind: ``number when where why who colour name what``, or ``""``: of yes or no.
        names: Lower-case names that an answer must hold.
        terms: What else it asks about: stems with the stems that may stand for them.
        roots: Stems of all its words.
        asides: Those whom ``I`` and ``you`` may mean; an answer need not name them.
    """

    text: str
    kind: str
    names: tuple[str, ...]
    terms: Mapping[str, frozenset[str]]
    roots: frozenset[str]
    asides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A claim with how well it fits.

    Attributes:
        claim: The claim.
        score: What it is ordered by.
        share: The share of the question's weight that it holds, 0 to 1.
        sure: Whether it is the answer rather than near to it.
    """

    claim: Claim
    score: float
    share: float
    sure: bool


@dataclass(slots=True)
class Evidence:
    """What people told: claims, and the names among their words."""

    claims: list[Claim] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def read_evidence(lines: Iterable[Line], me: str, people: Iterable[str]) -> Evidence:
    """The claims in lines, each once, the most original source kept.

    Args:
        lines: What was heard, noted and found, the assistant's own words left out.
        me: The assistant's name.
        people: Names of those present.
    """
    known = list(lines)
    speakers = [line.who for line in known] + list(people)
    evidence = Evidence(names={part for who in speakers for part in words(who)})
    best: dict[str, Claim] = {}
    for line in known:
        for claim in _claims_of(line, me):
            key = " ".join(words(third_person(claim.quote, line.who)))
            best[key] = _merged(best[key], claim) if key in best else claim
        if len(best) > MAX_CLAIMS:
            break
    evidence.claims = sorted(best.values(), key=lambda claim: claim.rank)
    for claim in evidence.claims:
        evidence.names |= claim.names
    return evidence


def _merged(one: Claim, two: Claim) -> Claim:
    """Of two claims that say the same, the more original one, with the id and the later time."""
    first, second = sorted((one, two), key=lambda c: (not c.line.who, SOURCES.index(c.line.source)))
    order = max(first.line.order, second.line.order)
    line = replace(first.line, id=first.line.id or second.line.id, order=order)
    return replace(first, line=line)


@lru_cache(maxsize=4096)
def _claims_of(line: Line, me: str) -> tuple[Claim, ...]:
    """The claims of a line: its statements, each with what points back to it; cached."""
    passages: list[str] = []
    for part in sentences(without_echo(line.text)):
        if is_question(part) or is_nonsense(part):
            passages.append("")
        elif passages and passages[-1] and _BACK.match(part) and len(passages[-1]) < MAX_PASSAGE:
            passages[-1] += f" {part}"
        elif line.source != SUMMARY or not (part.startswith("…") or part.endswith("…")):
            passages.append(part)
    told = [told_part(passage, me) for passage in passages if passage]
    read = [_roots_of(passage, line.who, me) for passage in told]
    claims = []
    for i, passage in enumerate(told):
        aside = frozenset[str]().union(*read[max(0, i - 1) : i], *read[i + 1 : i + 2])
        claims.append(Claim(line, passage, read[i], aside, names_in(passage)))
    return tuple(claims)


def _roots_of(text: str, speaker: str, listener: str) -> frozenset[str]:
    """Stems of the words of a text; ``I`` and ``you`` stand for their names."""
    found: set[str] = set()
    for token in TOKEN.findall(text):
        lower = token.lower().replace("’", "'")
        meant = speaker if lower in _FIRST else listener if lower in _SECOND else ""
        found.update(map(root, words(meant or lower.removesuffix("'s"))))
    return frozenset(found)


def read_question(text: str, asker: str, me: str, names: Set[str]) -> Question:
    """Read a question.

    Args:
        text: The question as asked, without calling the assistant by name.
        asker: Name of the one who asks: what ``my`` stands for.
        me: The assistant's name: what ``your`` stands for.
        names: Lower-case words known to be names.
    """
    asked = [part for part in sentences(text) if is_question(part)]
    lower = " ".join(asked or [text]).lower().replace("’", "'")
    kind = next((name for name, pattern in _KINDS if pattern.search(lower)), "")
    wanted: dict[str, None] = {}
    asides: dict[str, None] = {}
    terms: dict[str, frozenset[str]] = {}
    capitals = names_in(" ".join(asked or [text]))
    for token in TOKEN.findall(lower):
        if token in ("my", "mine", "our"):
            wanted.update(dict.fromkeys(map(root, words(asker))))
        elif token in _FIRST | _SECOND:
            asides.update(dict.fromkeys(map(root, words(me if token in _SECOND else asker))))
        for word in words(token.removesuffix("'s").removesuffix("s'")):
            base = root(word)
            if word in capitals or (word in names and word not in STOP_WORDS):
                wanted[base] = None
            elif word not in STOP_WORDS and base not in _FRAME | _HEADS.get(kind, _FRAME):
                terms[base] = frozenset({base})
    if found := re.search(r"\bhow (old|far|long|tall|high|deep|heavy|wide|big)\b", lower):
        terms.pop(root(found[1]), None)
        terms[found[1]] = frozenset(content_roots(_MEASURES[found[1]]))
    for name in map(root, words(me)):
        wanted.pop(name, None)
        terms.pop(name, None)
    return Question(text, kind, tuple(wanted), terms, _roots_of(lower, asker, me), tuple(asides))


def matches(question: Question, evidence: Evidence, places: Mapping[str, int]) -> list[Match]:
    """The claims that may answer a question, best first.

    Args:
        question: The question.
        evidence: What was told.
        places: Place of each memory's id among the hits of the first search, from 0.
    """
    weights = _weights(question, evidence)
    found = []
    for number, claim in enumerate(evidence.claims):
        share = _share(question, claim, weights)
        named = _named(question, claim)
        place = places.get(claim.line.id, 99)
        known = any(name in claim.roots for name in question.asides)
        near = named >= 0.5 if question.names else share >= NEAR
        if not near and not (not question.names and place < MAX_PLACE and (share or known)):
            continue
        fits = fits_kind(question, claim)
        score = share + 0.6 * named + 0.3 * fits + 0.1 * known + 0.5 / (1 + place / 3)
        score += number / (100 * len(evidence.claims))  # of equals the latest
        least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
        anchors = len(question.names) + len(question.terms)
        enough = anchors > 1 or not question.terms and question.kind in ("who", "what", "")
        sure = named == 1.0 and share >= least and fits and enough
        found.append(Match(claim, score + sure, share, sure))
    return sorted(found, key=lambda match: -match.score)


def _weights(question: Question, evidence: Evidence) -> dict[str, float]:
    """What each term of a question counts: rare words more than common ones."""
    total = max(len(evidence.claims), 1)
    weights = {}
    for term, accepted in question.terms.items():
        holding = sum(bool(accepted & claim.roots) for claim in evidence.claims)
        weight = 1.0 - _COMMON_WEIGHT * holding / total
        weights[term] = weight * (_LIGHT_WEIGHT if term in _LIGHT else 1.0)
    return weights


def _share(question: Question, claim: Claim, weights: Mapping[str, float]) -> float:
    """The share of a question's weight that a claim holds; 1 where it asks for a name alone."""
    held = 0.0
    for term, accepted in question.terms.items():
        if accepted & claim.roots:
            held += weights[term]
        elif accepted & claim.aside:
            held += _ASIDE * weights[term]
        elif len(term) > 4 and any(_begins_like(term, other) for other in claim.roots):
            held += _ALIKE * weights[term]
    return held / sum(weights.values()) if weights else float(bool(question.names))


def _begins_like(term: str, other: str) -> bool:
    return len(other) > 4 and (term.startswith(other[:5]) and abs(len(term) - len(other)) < 4)


def _named(question: Question, claim: Claim) -> float:
    """The share of the names asked about that a claim holds, 1 where none is."""
    held = 0.0
    speaker = set(map(root, words(claim.line.who)))
    relative = _OF_RELATIVE.search(claim.quote)
    for name in question.names:
        of_another = (
            name in speaker and relative and root(relative[1].lower()) not in question.roots
        )
        if name in claim.roots and not of_another:
            held += 1
        elif name in claim.aside or name in speaker:
            held += 0.8
    return held / len(question.names) if question.names else 1.0


def fits_kind(question: Question, claim: Claim) -> bool:
    """Whether a claim holds something of the kind asked for that the question does not hold."""
    if question.kind == "name":
        told = content_roots(claim.quote)
        fresh = set(map(root, claim.names)) - question.roots
        pairs = [*zip(told, told[1:], strict=False), *zip(told[1:], told, strict=False)]
        beside = any(one in question.terms and two in fresh for one, two in pairs)
        return beside or bool(re.search(r"\b(?:called|named?)\b|[\"“]", claim.quote))
    placed = {a or b for a, b in _PLACED.findall(claim.quote)}
    if question.kind == "who":
        people = claim.names - {place.lower() for place in placed}
        people |= set(words(claim.line.who)) & claim.roots
        relatives = _RELATIVES.finditer(claim.quote)
        others = any(_asks_not(question, claim.quote[found.end() :]) for found in relatives)
        return others or bool({root(name) for name in people} - question.roots)
    if question.kind == "where":
        found = {place for place in placed if not _SIGNS["when"].fullmatch(place)}
        return any(set(content_roots(place)) - question.roots for place in found)
    if sign := _SIGNS.get(question.kind):
        asked = question.roots if question.kind not in ("how", "why") else ()
        return any(root(found.lower()) not in asked for found in sign.findall(claim.quote))
    return True


def _asks_not(question: Question, after: str) -> bool:
    """Whether what follows a relative in a claim is not the name of one who was asked about."""
    return not set(map(root, words(after)[:1])) & set(question.names)


def latest(question: Question, best: Match, found: Sequence[Match]) -> Claim:
    """What the person who told the best match told last about the same thing.

    A later telling counts where it shares two words with the earlier one, and either answers the
    question just as well or sounds like news.
    """
    claim = best.claim
    for other in sorted(found, key=lambda match: match.claim.rank):
        later = other.claim
        if later.line.who != claim.line.who or later.rank <= claim.rank:
            continue
        shared = best.claim.roots & later.roots - STOP_WORDS - _LIGHT
        shared -= set(map(root, words(later.line.who)))
        same = shared & question.roots and len(shared) >= 2
        if same and (other.share >= best.share or _NEWS.search(later.quote)):
            claim = later
    return claim
