"""Which sentence that somebody told fits a question, by its words, its names and its kind.

Matching is plain: the stems of words that both share, weighted by how rare they are. A question
that names somebody is only answered by sentences about them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from evennia_ai.language.words import STOP_WORDS, spoken_words, words
from evennia_ai.llm_interaction.offline import prose
from evennia_ai.llm_interaction.offline.acts import is_fact, told_part
from evennia_ai.llm_interaction.offline.prose import NUMBER, NUMBERS, root, root_set
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
_FIRST = spoken_words("i me my mine myself we us our ours i'm i've i'd i'll we're we've")
_SECOND = spoken_words("you your yours yourself you're you've")
_LIGHT = root_set(
    "keep put come use work name call set let want need turn old new good little big thing man "
    "woman people folk day time place way really now today one"
)
# How a sentence begins that says more of what the one before it told.
_BACK = re.compile(
    r"(?:[\w'’,]+ ){0,2}(?:he|she|it|they|his|her|their|its|this|that|these|those|both)\b", re.I
)
# The kinds of answers, in the order they are looked for, by what asks for them.
_KINDS = {
    "number": r"\bhow (?:many|much)\b",
    "measure": r"\bhow (?:old|far|long|tall|deep|high|heavy|wide|big)\b",
    "when": r"\bwhen\b|\bhow (?:often|soon|early|late)\b"
    r"|\b(?:what|which) (?:time|day|night|month|year|date|season|hour)\b",
    "where": r"\bwhere(?:abouts)?\b|\b(?:what|which) (?:place|town|village|street)\b",
    "why": r"\bwhy\b|\bwhat\b.*\bfor\W*$|\bhow come\b|\breason\b",
    "who": r"\bwho(?:m|se)?\b",
    "colour": r"\bcolou?rs?\b",
    "name": r"\bname\b|\bcalled\b|\bdo you call\b",
    "how": r"\bhow\b",
    "what": r"\bwhat\b|\bwhich\b",
}
# Words of a question that only say which kind of answer it wants.
_HEADS = {
    "when": "time date month year soon often early late hour night season",
    "where": "whereabouts place",
    "measure": "old far long tall deep high heavy wide big",
    "colour": "colour color",
    "name": "name called",
    "why": "reason come",
}
# What shows that a sentence holds that kind of answer.
_SIGNS = {
    "number": NUMBER,
    "measure": re.compile(
        rf"(?i)\b((?:{NUMBERS})[ -](?:\w+[ -])?(?:years?|months?|weeks?|days?|nights?|hours?|"
        r"minutes?|miles?|leagues?|feet|foot|inch\w*|fathoms?|yards?|paces?|pounds?|stones?|hands?|"
        r"acres?|old|long|deep|tall|high))\b"
    ),
    "how": re.compile(r"\b(?:by \w+ing|using|with an?)\b", re.I),
    "when": re.compile(
        rf"(?i)\b(?:\w+days?|jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|august|"
        r"(?:sept|octo|novem|decem)\w+|spring|summer|autumn|fall|winter|dawn|dusk|noon|midday|"
        r"midnight|morning|evening|night|tonight|tomorrow|yesterday|sun(?:rise|set|down|up)|"
        r"o['’]?clock|bells?|ago|since|weeks?|months?|years?|hours?|tides?|first light|"
        rf"every|daily|(?:{NUMBERS}) times|once|twice|always|never|until|before|after|when)\b"
    ),
    "why": re.compile(r"\b(?:because|since|so|as|for|due|account|thanks)\b", re.I),
    "colour": re.compile(
        r"(?i)\b(?:\w*(?:red|blue|green|yellow|white|black|brown|gr[ea]y)|purple|scarlet|crimson|"
        r"orange|pink|violet|turquoise|gold(?:en)?|silver|chestnut|blonde?|ginger|ivory|azure)\b"
    ),
}
_PLACED = re.compile(
    r"(?i)\b(?:in|at|on|under|beneath|below|behind|inside|into|near|by|beside|above|over|to|from|"
    r"of|about|through|between|across|around|along|outside|toward\w*)\s+(?:(?:the|an?|my|his|her|"
    r"our|their|its|your|some|that|this|old) )*([\w'’-]+)"
    r"|\b(upstairs|downstairs|indoors|home|abroad)\b"
)
# Names that are no people.
_SITES = re.compile(r"\b(?:in|at|near|around|about|over|outside|way to) ([A-Z][\w'’-]*)")
_RELATIVES = re.compile(
    r"(?i)\b(?:(?:grand|step)?(?:mother|father|son|daughter)s?(?:-in-law)?|mum|dad|brothers?|"
    r"sisters?|uncles?|aunts?|cousins?|nephews?|nieces?|wife|husband|friends?|"
    r"neighbours?|the [a-z]+er)\b"
)
_NEWS = re.compile(
    r"(?i)\b(?:now|no longer|any ?more|nowadays|these days|instead|after all|change\w*|moved|left|"
    r"dropped|raised|lowered|gave up|given up|quit|stopped|from now on|turns out|not|isn['’]t)\b"
)


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


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read; words are stems."""

    kind: str  # a key of `_KINDS`, or `""` where it asks for yes or no, or for anything
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
    best: dict[str, Claim] = {}
    for line in lines:
        for claim in _claims_of(line, me):
            key = " ".join(words(prose.third_person(claim.quote, line.who)))
            # The more original one is quoted.
            both = sorted(
                (best.get(key, claim), claim),
                key=lambda each: (not each.line.who, SOURCES.index(each.line.source)),
            )
            one, two = both[0].line, both[1].line
            same = replace(one, id=one.id or two.id, order=max(one.order, two.order))
            best[key] = replace(both[0], line=same)
        if len(best) > MAX_CLAIMS:
            break
    return sorted(best.values(), key=lambda claim: claim.rank)


@lru_cache(maxsize=4096)
def _claims_of(line: Line, me: str) -> tuple[Claim, ...]:
    """The claims of a line; cached, as each turn asks again."""
    passages: list[str] = []
    for part in prose.sentences(without_echo(line.text)):
        cut = line.source == SUMMARY and (part.startswith("…") or part.endswith("…"))
        back = bool(passages and passages[-1] and _BACK.match(part))
        if prose.is_question(part) or prose.is_nonsense(part) or cut:
            passages.append("")
        elif back and len(passages[-1]) < MAX_PASSAGE:
            passages[-1] += f" {part}"
        elif is_fact(part):
            passages.append(part)
    told = (told_part(passage, me) for passage in passages if passage)
    return tuple(
        Claim(line, text, _roots_of(text, line.who, me), prose.names_in(text)) for text in told
    )


def _roots_of(text: str, speaker: str, listener: str) -> frozenset[str]:
    """Stems of the words of a text; ``I`` and ``you`` stand for their names."""
    found: set[str] = set()
    for token in spoken_words(text):
        lower = token.lower().replace("’", "'")
        meant = speaker if lower in _FIRST else listener if lower in _SECOND else ""
        found.update(map(root, words(meant or lower.removesuffix("'s"))))
    return frozenset(found)


def read_question(text: str, asker: str, me: str, known: Set[str]) -> Question:
    """Read a question: ``my`` is the asker's, ``your`` is `me`'s, `known` are lower-case names."""
    asked = " ".join(part for part in prose.sentences(text) if prose.is_question(part)) or text
    lower = asked.lower().replace("’", "'")
    kind = next((name for name, pattern in _KINDS.items() if re.search(pattern, lower)), "")
    skipped = prose.FRAME | root_set(_HEADS.get(kind, "")) | set(map(root, words(me)))
    names = known | prose.names_in(asked)
    wanted: dict[str, str] = {}
    terms: dict[str, str] = {}
    for token in spoken_words(lower):
        if token in ("my", "mine", "our"):
            wanted.update({root(word): word for word in words(asker)})
        for word in words(token.removesuffix("'s")):
            if word not in STOP_WORDS and root(word) not in skipped:
                (wanted if word in names else terms)[root(word)] = word
    roots = _roots_of(lower, asker, me)
    asides = frozenset(map(root, words(f"{asker} {me}"))) & roots
    said = " ".join(dict.fromkeys([*wanted.values(), *terms.values()]))
    return Question(kind, tuple(wanted), tuple(terms), roots, asides, said)


def matches(question: Question, claims: Sequence[Claim], places: Mapping[str, int]) -> list[Match]:
    """The claims, given oldest first, that may answer a question, best first.

    `places` are the places of memories' ids among the hits of the first search, from 0.
    """
    weights = {}
    for term in question.terms:
        holding = sum(term in claim.roots for claim in claims)
        weight = 1.0 - _COMMON_WEIGHT * holding / max(len(claims), 1)
        weights[term] = weight * (_LIGHT_WEIGHT if term in _LIGHT else 1.0)
    least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
    # A single word or name is too little to rest on, unless it is all that is asked about.
    enough = len(question.names) + len(weights) > 1
    enough = enough or (not weights and question.kind in ("who", "what", ""))
    found = []
    for number, claim in enumerate(claims):
        share, named = _share(weights, claim, bool(question.names)), _named(question, claim)
        place = places.get(claim.line.id, len(places) + 1)
        known = bool(question.asides & claim.roots)
        if question.names and named < 0.5:
            continue
        on_top = place < MAX_PLACE and (share or known)
        if not question.names and share < NEAR and not on_top:
            continue
        fits = fits_kind(question, claim)
        score = share + 0.6 * named + 0.3 * fits + 0.1 * known + 0.5 / (1 + place / 3)
        score += number / (100 * len(claims))  # of equals the latest
        sure = named == 1.0 and share >= least and fits and enough
        found.append(Match(claim, score + sure, share, sure))
    return sorted(found, key=lambda match: -match.score)


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
    speaker = set(map(root, words(claim.line.who)))
    held = [1.0 if n in claim.roots else _SPEAKER * (n in speaker) for n in question.names]
    return sum(held) / len(held) if held else 1.0


def fits_kind(question: Question, claim: Claim) -> bool:
    """Whether a claim holds something of the kind asked for that the question does not hold."""
    if question.kind in ("who", "name"):
        people = claim.names - {site.lower() for site in _SITES.findall(claim.quote)}
        fresh = set(map(root, people)) - question.roots
        if question.kind == "name":
            told = list(map(root, words(claim.quote)))
            pairs = set(zip(told, told[1:], strict=False))
            beside = any({(a, b), (b, a)} & pairs for a in question.terms for b in fresh)
            return beside or bool(re.search(r"\b(?:called|named?)\b|[\"“]", claim.quote))
        speaker = set(map(root, words(claim.line.who))) & claim.roots - question.roots
        after = (words(claim.quote[at.end() :])[:1] for at in _RELATIVES.finditer(claim.quote))
        unnamed = any(not set(map(root, word)) & set(question.names) for word in after)
        return bool(fresh or speaker or unnamed)
    if question.kind == "where":
        placed = {place or adverb for place, adverb in _PLACED.findall(claim.quote)}
        sites = {place for place in placed if not _SIGNS["when"].fullmatch(place)}
        return any(root_set(site) - question.roots for site in sites)
    if sign := _SIGNS.get(question.kind):
        asked = question.roots if question.kind != "why" else ()
        return any(root(found.lower()) not in asked for found in sign.findall(claim.quote))
    return True


def latest(question: Question, best: Match, found: Sequence[Match]) -> Match:
    """What the person who told the best match told last about the same thing.

    A later telling counts where it shares two words with the earlier one, and either answers the
    question just as well or sounds like news.
    """
    last = best
    for other in sorted(found, key=lambda match: match.claim.rank):
        who = other.claim.line.who
        if who != best.claim.line.who or other.claim.rank <= last.claim.rank:
            continue
        shared = best.claim.roots & other.claim.roots - STOP_WORDS - _LIGHT
        shared -= set(map(root, words(who)))
        same = shared & question.roots and len(shared) >= 2
        if same and (other.share >= best.share or _NEWS.search(other.claim.quote)):
            last = other
    return last
