"""What was told: the clauses of statements, each with what its pronouns stand for."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache

from evennia_ai.offline import kin, lexicon, naming, words
from evennia_ai.offline.lines import ECHO, SOURCES, SUMMARY, Line
from evennia_ai.offline.rewrite import LEADS, third_person
from evennia_ai.offline.words import Word

MAX_CLAIMS = 4000
_WORDS = re.compile(r"[^\W_]+(?:[-.:][^\W_]+)*")
_ASKS = re.compile(
    r"^(?:\W|\b(?:and|but|so|well|hey|oh|aria|please|then|ok|okay|now|tell me|say)\b)*"
    r"(?:(?:who|whom|whose|what|which|where|when|why|how)(?:['’]s|['’]re|['’]d)?\s+"
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|should|many|much|old|far|"
    r"long|on earth|colou?r|kind|sort)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|would|will|have|has) (?:you|i|we|anyone|anybody|"
    r"he|she|it|they|there|the|my|your)\b"
    r"|(?:tell|remind|ask|show) (?:me|us)\b|i (?:wonder|forget|forgot|can(?:'t|not) (?:remember|"
    r"recall))\b|any (?:idea|clue)\b|let me know\b"
    r"|(?:do you )?remember (?:when|how|where|what|who)\b)",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"^\W*(?:mark my words|true as i stand here|(?:but |well )?enough (?:of that|said)|anyway|"
    r"believe me|trust me|you can bet on it|that'?s (?:all|the truth|a fact)|just so you know|"
    r"but you didn'?t hear (?:it|that) from me|i swear|honest(?:ly)?|no lie|cheers|ha+|right then|"
    r"so there|there you have it|if you must know|or so (?:i'm told|they say|i hear))\W*$",
    re.IGNORECASE,
)
_TAILS = re.compile(
    r",?\s*\b(?:would you believe it|you know|i tell you|mark my words|so i hear|"
    r"so (?:they|people|folk) say|so (?:the )?\w+ (?:hears|told \w+|tells \w+)|"
    r"if you must know|believe me|you see|i think|i reckon|i believe|"
    r"as you know|mind you|or so i(?:'m told| hear)|truth be told|to be honest)(?=[,.!]|$)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"^(?P<who>[\w' -]{1,40}?) (?:told (?:me|us|everybody|everyone|people|folk|"
    r"\w+(?= (?:that )?(?:his|her|their) ))|says|said|tells me|swears(?! by\b)|claims|mentioned)"
    r"(?: that)?,? (?!to )(?P<rest>.+)$",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"^(?P<told>(?:[\w'’-]+,? ){2,}[\w'’-]+),\s+(?:(?:have|has|would|could|can|did|do|does|is|are|"
    r"was|were|will)(?:n['’]t)? (?:you|i|it|he|she|we|they|that)\b[\w' ]{0,24}|you know|eh|right|"
    r"see|understand|if you please)\?$",
    re.IGNORECASE,
)
_OPENER = re.compile(
    r"^\W*(?:(?:would|can|could) you believe (?:it|that)|guess what|you know what)\b"
    r"[\s,:!?]+(?=\w)",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"^\W*(?:sorry,? |well,? )*(?:i|i['’]m|we)\b.{0,24}"
    r"\b(?:don['’]t know|do not know|no idea|not sure|was never told|no memory of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One clause of a statement.

    Attributes:
        line: Where it was told.
        words: Its own words.
        near: Words of the sentence's other clauses.
        before: Words of the sentences its pronouns point back to.
        quote: What to quote: the sentence, with the one before it where a pronoun needs it.
        rank: Place in time: compare two claims by it, the later is the greater.
        pronoun: Whether it has a pronoun of the third person.
        whole: Whether it joins clauses that lean on one another, each told by itself too.
    """

    line: Line
    words: tuple[Word, ...]
    near: tuple[Word, ...]
    before: tuple[Word, ...]
    quote: str
    rank: tuple[int, str, int]
    pronoun: bool
    whole: bool = False

    def owners(self) -> set[str]:
        """Names that stand in it only as owners of something."""
        owning = {word.name for word in self.words if word.name and word.owner}
        return owning - {word.name for word in self.words if word.name and not word.owner}


@dataclass(slots=True)
class Evidence:
    """All that was told, in order of time.

    Attributes:
        claims: The clauses.
        names: Lower-case words known to be names.
        aliases: For a name, the (owner, folded noun) pairs that mean it, and the reverse.
    """

    claims: list[Claim] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    aliases: dict[tuple[str, str], set[str]] = field(default_factory=dict)


def is_question(sentence: str) -> bool:
    """Whether a sentence asks rather than tells."""
    sentence = untagged(sentence)
    if _ASKS.match(sentence):
        return True
    return sentence.rstrip(" \"'”’)").endswith("?")


def untagged(sentence: str) -> str:
    """A statement without the question put before it or tagged on: `would you believe it`."""
    sentence = _OPENER.sub("", sentence)
    told = _TAG.match(sentence)
    return told["told"] + "." if told and not _ASKS.match(told["told"]) else sentence


def statements(text: str) -> list[str]:
    """The sentences of a text that tell something."""
    return [sentence for sentence in words.sentences(text) if _tells(sentence)]


def _tells(sentence: str) -> bool:
    if is_question(sentence) or words.is_nonsense(sentence):
        return False
    return not (_UNSURE.search(sentence) or _IDLE.match(sentence))


def evidence_of(lines: Iterable[Line], me: str, people: Iterable[str]) -> Evidence:
    """What can be known from lines, the assistant's own words left out.

    Args:
        lines: What was heard, noted and found, in any order, repetitions allowed.
        me: The assistant's name.
        people: Names of those known to be here.
    """
    mine = [line for line in lines if line.who != me and line.verb not in ("arrives", "leaves")]
    unique = _unique(mine)
    known = {line.who.lower() for line in unique} | {name.lower() for name in people}
    known.discard("")  # notes have no speaker
    kinds = naming.named_kinds((line.text for line in unique), known)
    found = Evidence(names=_names(unique, people, me))
    for line in unique:
        told = _read_line(line, me, frozenset(_WORDS.findall(line.text.lower())) & found.names)
        found.claims.extend(_typed(claim, kinds) for claim in told)
        if len(found.claims) > MAX_CLAIMS:
            break
    found.aliases = _aliases(found.claims)
    for pair, names in kin.inverses(found.aliases).items():
        found.aliases.setdefault(pair, set()).update(names)
    return found


def _typed(claim: Claim, kinds: Mapping[str, str]) -> Claim:
    """A claim whose names are marked as those of places or of people."""
    shown = (claim.words, claim.near, claim.before)
    own, near, before = (tuple(_marked(word, kinds) for word in part) for part in shown)
    return replace(claim, words=own, near=near, before=before)


def _marked(word: Word, kinds: Mapping[str, str]) -> Word:
    if word.name not in kinds:
        return word
    return replace(word, concepts=word.concepts | {kinds[word.name]})


def _names(lines: list[Line], people: Iterable[str], me: str) -> set[str]:
    names = {part for who in people for part in who.lower().split()}
    for line in lines:
        names.update(line.who.lower().split())
        names.update(words.names_in(line.text))
    return (names | {me.lower()}) - {""}


def _rank(line: Line) -> tuple[int, str, int]:
    if line.source in (SUMMARY, ECHO):
        return (-1, line.at, 0)
    return (1, "", line.order) if line.order >= 0 else (0, line.at, 0)


def _unique(lines: list[Line]) -> list[Line]:
    """One line for each thing told: a note of a line that is there too adds only its id."""
    best: dict[str, Line] = {}
    for line in lines:
        key = re.sub(r"\W+", " ", third_person(line.text, line.who)).strip().lower()
        other = best.get(key)
        best[key] = line if other is None else _merged(other, line)
    return sorted(best.values(), key=_rank)


def _merged(one: Line, two: Line) -> Line:
    """One line of two that say the same: the words as they were said, told first by themselves."""
    first, second = sorted((one, two), key=_originality)
    at = min(filter(None, (one.at, two.at)), default="")
    order = max(one.order, two.order)
    return Line(
        first.who or second.who,
        first.text,
        first.verb,
        first.id or second.id,
        at,
        order,
        first.who_id or second.who_id,
        first.source,
    )


def _originality(line: Line) -> tuple[bool, int]:
    return line.verb == "note", SOURCES.index(line.source)


@lru_cache(maxsize=4096)
def _read_line(line: Line, me: str, names: frozenset[str]) -> tuple[Claim, ...]:
    """The claims of a line; read once while it stays among the newest, as each turn asks anew."""
    return tuple(_claims(line, me, names))


def _claims(line: Line, me: str, names: Set[str]) -> Iterator[Claim]:
    before: tuple[Word, ...] = ()
    earlier = ""
    for sentence in words.sentences(line.text):
        if not _tells(sentence):
            if is_topic(named := _plain(sentence, me)):
                topic = words.read(named, line.who.lower() or "?", me.lower(), names)
                before, earlier = (*before, *topic)[-60:], sentence
            continue
        told = _plain(sentence, me)
        if (reported := _REPORTED.match(told)) and len(reported["rest"].split()) > 2:
            source = words.read(reported["who"], line.who.lower() or "?", me.lower(), names)
            before = (*before, *source)[-60:] if _points_back(source) else source
            told = reported["rest"]
        parts = [
            words.read(part, line.who.lower() or "?", me.lower(), names)
            for part in words.clauses(told)
        ]
        for i, part in enumerate(parts):
            near = tuple(word for j, other in enumerate(parts) if j != i for word in other)
            pronoun = _points_back(part)
            leans = bool(before) and _points_back(parts[0])  # what it points to must be quoted
            quote = f"{earlier} {sentence}" if leans else sentence
            yield Claim(line, part, near, before, quote.strip(), _rank(line), pronoun)
        whole = tuple(word for part in parts for word in part)
        goes_on = _points_back(whole)
        if joined := _joined(parts, before if goes_on else ()):
            quote = f"{earlier} {sentence}" if goes_on and before else sentence
            yield Claim(line, joined, (), before, quote.strip(), _rank(line), False, whole=True)
        before = (*before, *whole)[-60:] if goes_on else whole
        earlier = sentence


def _joined(parts: list[tuple[Word, ...]], before: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words of clauses that lean on one another, or none where each speaks for itself."""
    leaning = [part for part in parts[1:] if _leans(part)]
    if not before and not leaning:
        return ()
    return (*before, *(word for part in parts for word in part))


def _leans(part: tuple[Word, ...]) -> bool:
    """Whether a clause looks back: by a pronoun, or as nobody is named before its verb."""
    named = any(word.name and not word.owner and not word.pronoun for word in part[:4])
    elliptic = any(word.lower in ("instead", "too", "over") for word in part[-4:])
    return _points_back(part) or elliptic or not named


def _aliases(claims: list[Claim]) -> dict[tuple[str, str], set[str]]:
    """Names that stand for somebody's relative: ``my brother Tomas``, ``my brother is Tomas``."""
    found: dict[tuple[str, str], set[str]] = {}
    for claim in claims:
        if claim.whole:
            continue
        for i, word in enumerate(claim.words):
            if word.owner and word.name:
                _add_alias(found, word.name, claim.words[i + 1 : i + 7])
            elif word.name and not word.owner:
                _add_listed(found, word.name, claim.words[i + 1 :])
    return found


def _add_listed(
    found: dict[tuple[str, str], set[str]], owner: str, after: tuple[Word, ...]
) -> None:
    """Relatives that follow a `has`: ``Cuthbert has three sons: Ingmar, Fenn and Wystan``."""
    has = next((i for i, word in enumerate(after[:4]) if word.lower in ("has", "have")), -1)
    bond = next((w.fold for w in after[has + 1 : has + 4] if "@kin" in w.concepts), "")
    if has < 0 or not bond or any(word.name for word in after[:has]):
        return
    for word in after[has + 2 :]:
        if word.name and not word.owner and not word.pronoun and "@place" not in word.concepts:
            found.setdefault((owner, bond), set()).add(word.name)
        elif word.lower not in _LINKS and word.fold != bond:
            return


def _plain(sentence: str, me: str) -> str:
    """A sentence without calling the assistant and without `you know` and the like."""
    told = LEADS.sub("", re.sub(rf"^{re.escape(me)}\b[,:!]\s*", "", untagged(sentence)))
    return _TAILS.sub("", told) or sentence


def _points_back(part: tuple[Word, ...]) -> bool:
    """Whether a clause leans on what was said before: a pronoun, or `the name is ...`."""
    if any(word.lower in words.THIRD for word in part):
        return True
    start = [word.lower for word in part[:2]]
    if start in _REMAINDERS or start[:1] in (["both"], ["neither"], ["each"]):
        return True
    return (
        start[:1] in (["that"], ["those"], ["these"], ["this"])
        or start[:1] == ["called"]
        or start[:2] == ["the", "name"]
    )


_REMAINDERS = (["one", "half"], ["one", "of"], ["the", "other"], ["the", "rest"], ["half", "of"])
# Questions that only bring somebody up: `Have you met Ann? She is the new smith.`
_OPENING = re.compile(
    r"^(?:(?:have|did) you (?:ever )?(?:met|meet|seen|see|heard of|hear about)"
    r"|ever (?:met|heard of)"
    r"|(?:do )?you (?:know|remember)|remember|did i (?:ever )?(?:tell you about|mention)"
    r"|you know) (?:my |our |the |old |that )*[\w' -]{2,40}\?$",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:do|does|did|is|are|was|were|has|have|can|will)(?:n['’]t| not)\b", re.I)
_QUESTION_WORDS = lexicon.word_set(
    "who whom whose what which where when why how whereabouts do does did is are was were can "
    "could will would should have has had know remember any"
)


def is_topic(sentence: str) -> bool:
    """Whether a question only names what comes next, as `but the dark? I fear it` does."""
    if _OPENING.match(sentence):
        return not re.search(r"\b(?:who|what|where|when|why|how|which)\b", sentence, re.I)
    sentence = _DENIED.sub("", LEADS.sub("", sentence))
    found = sentence.lower().replace("’", "'").rstrip("?").split()
    if not sentence.endswith("?") or len(found) > 12 or _ASKS.match(sentence):
        return False
    return not any(word.strip(",").removesuffix("'s") in _QUESTION_WORDS for word in found)


_LINKS = lexicon.word_set(
    "is was called named s name who's we call goes by answers to a an the and in "
    "two three four five six"
)


def _add_alias(found: dict[tuple[str, str], set[str]], owner: str, after: tuple[Word, ...]) -> None:
    bond = ""
    for word in after:
        if word.concepts & {"@kin", "@animal", "friend"}:
            bond = word.fold
        elif word.name and bond and not word.owner and not word.pronoun:
            found.setdefault((owner, bond), set()).add(word.name)
            return
        elif bond and word.lower not in _LINKS:
            return
