"""Reads prose: sentences, words, names, and who ``I`` and ``you`` are."""

import re
from collections.abc import Set
from dataclasses import dataclass, replace

from evennia_ai.language.names import ALSO_NAMES
from evennia_ai.offline import lexicon

MAX_WORDS = 400  # of one line; what is longer is cut, so that no line costs unbounded work
_WORD = re.compile(r"[A-Za-z0-9À-ɏ]+(?:[-'’.:][A-Za-z0-9À-ɏ]+)*['’]?")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_ABBREVIATION = re.compile(r"\b(mr|mrs|ms|dr|st|capt|sgt|no|vs)\.$", re.IGNORECASE)
_CLAUSES = re.compile(
    r";\s+|\s+[-–—]+\s+|,?\s+(?:but|while|whereas|although|though|yet)\s+|,\s+(?:and|so)\s+"
    r"|\s+and\s+(?=(?:my|his|her|our|their|the|i|i'm|i've|he|she|it|they|we)\s)",
    re.IGNORECASE,
)
_KIN = "|".join(sorted(lexicon.MEMBERS["@kin"], key=len, reverse=True))
_CONTRACTED = (
    (re.compile(r"\b(ca)n['’]t\b", re.I), r"\1n not"),
    (re.compile(r"\bcannot\b", re.I), "can not"),
    (re.compile(r"\bwon['’]t\b", re.I), "will not"),
    (re.compile(r"n['’]t\b", re.I), " not"),
    (re.compile(r"['’]m\b", re.I), " am"),
    (re.compile(r"['’]re\b", re.I), " are"),
    (re.compile(r"['’]ve\b", re.I), " have"),
    (re.compile(r"['’]ll\b", re.I), " will"),
    (re.compile(r"['’]d\b", re.I), " would"),
    (re.compile(r"\b(what|who|where|when|how|it|he|she|that|there|here)['’]s\b", re.I), r"\1 is"),
    (
        re.compile(
            r"['’]s(?=\s+(?:the|a|an|been|got|not|gone|going|in|on|at|from|always|never|just|my|his|"
            r"her|our|their|very|so|too|off|bound|due|coming|called|named)\b)",
            re.I,
        ),
        " is",
    ),
    (re.compile(r"\bo['’]clock\b", re.I), "oclock"),
    (re.compile(rf"\b(?:[Tt]he|[Aa]) ({_KIN}) of ([A-Z][\w’'-]*\w)(?! [A-Z])"), r"\2's \1"),
)
_LIVING = "|".join((_KIN, *lexicon.MEMBERS["@animal"]))
_SAID_WHO = re.compile(rf"([A-Z][\w’'-]*\w), (?:my|our|his|her|their) (?:[a-z-]+ )?(?:{_LIVING}),")
FIRST = lexicon.word_set("i me myself")
FIRST_OWNER = lexicon.word_set("my mine our ours")
FIRST_MANY = lexicon.word_set("we us")
SECOND = lexicon.word_set("you yourself")
SECOND_OWNER = lexicon.word_set("your yours")
THIRD = lexicon.word_set("he she him her his hers they them their theirs it its")
THIRD_OWNER = lexicon.word_set("his her hers their theirs its")


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the matching sees it.

    Attributes:
        text: As written.
        lower: In lower case, without a possessive ending.
        fold: Folded (see `lexicon.fold`).
        name: The lower-case name it stands for (``i`` told by Alice: ``alice``) or ``""``.
        owner: Whether it is possessive.
        concepts: What it stands for, its phrase included.
        hints: What it only hints at.
        part: Whether it is a later word of a phrase whose first word carries the concepts.
        pronoun: Whether ``I``, ``you`` and the like made it a name.
    """

    text: str
    lower: str
    fold: str
    name: str = ""
    owner: bool = False
    concepts: frozenset[str] = lexicon.EMPTY
    hints: frozenset[str] = lexicon.EMPTY
    part: bool = False
    pronoun: bool = False


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, empty ones left out."""
    parts: list[str] = []
    for piece in _ENDS.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += " " + piece
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, joined again where one is too short to stand alone."""
    parts: list[str] = []
    start, joint = 0, ""
    for found in [*_CLAUSES.finditer(sentence), None]:
        end = found.start() if found else len(sentence)
        piece = sentence[start:end]
        if parts and (len(piece.split()) < 3 or len(parts[-1].split()) < 3):
            parts[-1] += joint + piece
        elif piece.strip():
            parts.append(piece)
        joint, start = (found[0], found.end()) if found else ("", end)
    return parts


def expanded(text: str) -> str:
    """A text with its contractions written out, as far as they change its words."""
    for pattern, instead in _CONTRACTED:
        text = pattern.sub(instead, text)
    return text


_NO_NAMES = lexicon.word_set("nobody somebody anybody everybody nothing something everything")


def names_in(text: str) -> set[str]:
    """Lower-case words that are written as names: capitals amid a sentence.

    A capital at a sentence's start counts only when the word is not in the vocabulary, or where
    it is said who that is: `Biscuit, my old dog`.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        if (first := _SAID_WHO.match(sentence)) and first[1].lower() not in lexicon.STOP:
            found.add(first[1].lower())
        for i, word in enumerate(_WORD.findall(expanded(sentence))[:MAX_WORDS]):
            lower = _bare(word)
            if lower in _NO_NAMES:
                continue
            if i > 0 and lower in ALSO_NAMES and word[0].isupper() and not word.isupper():
                found.add(lower)
            if word[0].isupper() and lower not in lexicon.STOP and len(lower) > 1:
                known = lexicon.is_known(lower) or lexicon.is_number(lower)
                known = known and lower not in lexicon.GIVEN_NAMES
                if not known or (i > 0 and not word.isupper()):
                    found.add(lower)
    return found


def _bare(word: str) -> str:
    lower = word.lower().replace("’", "'")
    return lower.removesuffix("'s").strip("'.:")


def read(text: str, speaker: str, listener: str, names: Set[str]) -> tuple[Word, ...]:
    """The words of a text.

    Args:
        text: A clause, a sentence or a question.
        speaker: Lower-case name of the one who says it: what ``I`` and ``my`` stand for.
        listener: Lower-case name of the one it is said to: what ``you`` stands for.
        names: Lower-case words known to be names.
    """
    raw = _WORD.findall(expanded(text))[:MAX_WORDS]
    people = {"speaker": speaker, "listener": listener}
    found = [_word(item, i, people, names) for i, item in enumerate(raw)]
    _unown_pits(found)
    return tuple(_without_compounds(_without_simile(_with_phrases(found))))


def _unown_pits(found: list[Word]) -> None:
    """Makes ``the mine`` a place, nothing of the speaker's, and ``the well`` no exclamation."""
    for i, word in enumerate(found):
        before = found[i - 1].lower if i else ""
        if word.lower in ("mine", "well") and before in _PIT_LEADS:
            lower = "draw-well" if word.lower == "well" else word.lower  # `well` says nothing
            found[i] = Word(word.text, lower, word.lower, concepts=lexicon.concepts(word.lower))


_PIT_LEADS = lexicon.word_set("the a this that old abandoned castle village town dry deep")


def _word(text: str, index: int, people: dict[str, str], names: Set[str]) -> Word:
    lower = _bare(text)
    owner = text.endswith(("'s", "’s", "s'", "s’"))
    folded = lexicon.fold(lower)
    folded = lexicon.DIGITS.get(folded, folded)
    if lower in FIRST | FIRST_OWNER | FIRST_MANY:
        return Word(text, lower, folded, people["speaker"], lower in FIRST_OWNER, pronoun=True)
    if lower in SECOND | SECOND_OWNER:
        return Word(text, lower, folded, people["listener"], lower in SECOND_OWNER, pronoun=True)
    name = lower if _is_name(text, lower, index, names) else ""
    return Word(
        text,
        lower,
        folded,
        name,
        owner,
        lexicon.concepts(folded) or (lexicon.EMPTY if name else lexicon.compound_kinds(folded)),
        lexicon.hints(folded) or (lexicon.EMPTY if name else lexicon.compound_hints(folded)),
    )


def _is_name(text: str, lower: str, index: int, names: Set[str]) -> bool:
    named = lower in ALSO_NAMES and index > 0 and text[0].isupper()
    if lower in _NO_NAMES or lexicon.is_number(lower) or (lower in lexicon.STOP and not named):
        return False
    if named:
        return True
    if lower in names:
        return text[0].isupper() or not lexicon.is_known(lower)
    known = lexicon.is_known(lower) and lower not in lexicon.GIVEN_NAMES
    return text[0].isupper() and not known and len(lower) > 1


def _with_phrases(found: list[Word]) -> list[Word]:
    folds = [word.fold for word in found]
    none = lexicon.EMPTY
    own = [none for _ in found]  # what phrases alone make of a word
    for i, first in enumerate(folds):
        for phrase, concept in lexicon.PHRASES.get(first, ()):
            if _fits(phrase, folds[i : i + len(phrase)]):
                said = found[i].concepts if concept in lexicon.concepts(first) else own[i]
                plain = first in lexicon.STOP or first in lexicon.LIGHT
                folded = "_".join(phrase) if plain else first
                found[i] = replace(found[i], concepts=said | {concept}, fold=folded)
                own[i] = found[i].concepts
                for j in range(i + 1, i + len(phrase)):
                    if phrase[j - i] != "*":
                        found[j] = replace(found[j], part=True, concepts=none, hints=none)
    return found


_NOT_LIKING = lexicon.word_set(
    "look sound feel smell taste be is are was were seem just something anything much nothing"
)


def _without_simile(found: list[Word]) -> list[Word]:
    """Takes the meaning off a `like` that compares."""
    for i, word in enumerate(found):
        before = lexicon.fold(found[i - 1].lower) if i else ""
        if word.lower == "like" and (before in _NOT_LIKING or (i and _compares(found[i - 1]))):
            found[i] = replace(word, concepts=lexicon.EMPTY)
    return found


def _compares(before: Word) -> bool:
    """Whether a `like` after this word compares: `swells like`; as a verb it would be `likes`."""
    does = before.lower.endswith("s") and not before.name and bool(before.concepts)
    return before.part or (does and not any(c[0] in "@=<" for c in before.concepts))


_MODIFIED = lexicon.word_set(
    "contest shop market race maker seller case lesson teacher player store stall merchant string"
)


def _without_compounds(found: list[Word]) -> list[Word]:
    """Takes the meaning off a thing that only says which shop or contest: `fiddle contest`."""
    for i, word in enumerate(found[:-1]):
        if found[i + 1].lower in _MODIFIED and any(c[0] == "@" for c in word.concepts):
            found[i] = replace(word, concepts=lexicon.EMPTY, hints=lexicon.EMPTY)
    return found


def _fits(phrase: tuple[str, ...], folds: list[str]) -> bool:
    return len(phrase) == len(folds) and all(
        want in ("*", have) for want, have in zip(phrase, folds, strict=True)
    )


def is_nonsense(sentence: str) -> bool:
    """Whether a sentence is mostly no words: symbols, codes, one letter held down."""
    parts = sentence.split()
    odd = sum(not _WORDLIKE.match(part) or bool(_HELD.search(part)) for part in parts)
    return bool(parts) and odd * 2 > len(parts)


_WORDLIKE = re.compile(
    r"^[\"'“”‘’(*]*[^\W\d_]+(?:['’./-][^\W\d_]+|\d{0,3})*[\"'“”‘’).,;:!?…*]*$"
    r"|^[\"'(£$€#]*\d[\d.,:/-]*(?:st|nd|rd|th|[ap]m|h|%)?[\"').,;:!?…]*$|^[-–—&+]+$"
)
_HELD = re.compile(r"([^\W\d_])\1{4}|\S{41}", re.IGNORECASE)
