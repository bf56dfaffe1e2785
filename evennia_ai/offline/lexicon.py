"""Compiles the vocabulary: folded words, the concepts they stand for, phrases, kinds of things.

A *concept* is what words of the same meaning share: the name of a relation (``live``) or, with
an ``@``, a kind of thing (``@colour``). ``=sibling`` is on the wide word, ``<sibling`` on the
narrower ones (brother, sister). A word may stand for several.
"""

import re
from functools import lru_cache

from evennia_ai.offline import vocabulary as v

_SUFFIXES = (
    ("'s", ""),
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("zes", "z"),
    ("s", ""),
)
_VOWEL = re.compile(r"[aeiouy]")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, separated by blanks."""
    return frozenset(text.split())


def _irregular() -> dict[str, str]:
    forms: dict[str, str] = {}
    for item in v.IRREGULAR.replace("\n", " ").split("|"):
        base, _, words = item.partition(":")
        forms.update({word: base.strip() for word in words.split()})
    return forms


_IRREGULAR = _irregular()


def is_irregular(lower: str) -> bool:
    """Whether a word is an irregular form, as ``kept``."""
    return lower in _IRREGULAR


def _without_plural(word: str) -> str:
    if word.endswith(("ss", "us", "is")) or len(word) < 4:
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix):
            return word[: len(word) - len(suffix)] + instead
    return word


def _known_words() -> frozenset[str]:
    """The vocabulary as written, to tell ``hated`` (hate) from ``patted`` (pat)."""
    text = re.sub(r"^[\w]+(?: \[[^\]]*\])?:", " ", v.RELATIONS + v.KINDS + v.WIDER_KIN, flags=re.M)
    return frozenset(re.findall(r"[a-z]+", text)) | frozenset(_IRREGULAR.values())


_KNOWN = _known_words()
_AS_IT_IS = frozenset(v.AS_IT_IS.split())
_SHORT_E = re.compile(r"[^aeiou][aeiou][^aeiouwxy]$")


def _without_tense(word: str) -> str:
    for suffix in ("ing", "ed", "est"):
        stem = word[: -len(suffix)]
        if word.endswith(suffix) and len(stem) >= 3 and _VOWEL.search(stem):
            if word.endswith("ied"):
                return word[:-3] + "y"
            return _restored(stem, suffix)
    return word


def _restored(stem: str, suffix: str) -> str:
    """The base form of a stem whose ending was cut off."""
    doubled = len(stem) > 3 and stem[-1] == stem[-2]
    if doubled and (stem[-1] not in "lsz" or (stem[:-1] in _KNOWN and stem not in _KNOWN)):
        return stem[:-1]
    if suffix == "est" and stem not in _KNOWN and stem + "e" not in _KNOWN:
        return stem + suffix
    with_e = stem + "e"
    if with_e in _KNOWN and (stem not in _KNOWN or (len(stem) <= 4 and _SHORT_E.search(stem))):
        return with_e
    return with_e if len(stem) <= 4 and stem not in _KNOWN and _SHORT_E.search(stem) else stem


@lru_cache(maxsize=16384)
def fold(word: str) -> str:
    """A lower-case word without its endings, so that forms of one word are equal.

    Irregular forms come from a table; then plural and tense go.
    """
    word = word.replace("’", "'").removesuffix("'s").removesuffix("'")
    if word in _AS_IT_IS:
        return word
    word = _IRREGULAR.get(word, word)
    word = _without_plural(word)
    if word in _AS_IT_IS:
        return word
    word = _IRREGULAR.get(word, word)
    word = _without_tense(word)
    word = _IRREGULAR.get(word, word)
    return word[:-2] if len(word) > 5 and word.endswith("ly") else word


def _fold_number_names() -> dict[str, str]:
    return {fold(word): str(i) for i, word in enumerate(v.NUMBERS.split())}


DIGITS = _fold_number_names()
NUMBER_WORDS = frozenset(f"{v.NUMBERS} {v.TENS} {v.OTHER_NUMBERS}".split())
STOP = frozenset(v.STOP.split())
LIGHT = frozenset(fold(word) for word in v.LIGHT_VERBS.split())
GIVEN_NAMES = frozenset(v.GIVEN_NAMES.split())
FEMALE = frozenset(fold(word) for word in v.FEMALE.split())
MALE = frozenset(fold(word) for word in v.MALE.split())

Phrase = tuple[str, ...]


def _digit(folded: str) -> str:
    return DIGITS.get(folded, folded)


class _Tables:
    """The compiled vocabulary."""

    def __init__(self) -> None:
        self.strong: dict[str, set[str]] = {}
        self.weak: dict[str, set[str]] = {}
        self.phrases: dict[str, list[tuple[Phrase, str]]] = {}
        self.heads: dict[str, str] = {}
        self.relation_words: set[str] = set()
        for line in v.RELATIONS.strip().splitlines():
            self._add_relation(line)
        for line in v.KINDS.strip().splitlines():
            self._add_kind(line)
        for line in v.WIDER_KIN.strip().splitlines():
            self._add_wider(line)
        for found in self.phrases.values():
            found.sort(key=lambda item: -len(item[0]))

    def _add_relation(self, line: str) -> None:
        concept, _, words = line.partition(":")
        for word in words.split():
            table = self.weak if word.startswith("~") else self.strong
            parts = word.removeprefix("~").split("_")
            if len(parts) > 1:
                phrase = tuple(part if part == "*" else _digit(fold(part)) for part in parts)
                self.phrases.setdefault(phrase[0], []).append((phrase, concept))
                if "*" in phrase:
                    at = phrase.index("*")
                    wider = (*phrase[:at], "*", *phrase[at:])
                    self.phrases[phrase[0]].append((wider, concept))
            else:
                table.setdefault(fold(parts[0]), set()).add(concept)
                self.relation_words.add(fold(parts[0]))

    def _add_kind(self, line: str) -> None:
        head, _, words = line.partition(":")
        kind, _, askers = head.partition(" [")
        for word in askers.rstrip("]").split():
            self.heads.setdefault(fold(word), f"@{kind}")
        implied = v.KIND_HINTS.get(kind)
        for word in words.split():
            self.strong.setdefault(fold(word), set()).add(f"@{kind}")
            if implied:
                self.weak.setdefault(fold(word), set()).add(implied)

    def _add_wider(self, line: str) -> None:
        wide, _, words = line.partition(":")
        self.strong.setdefault(fold(wide), set()).add(f"={fold(wide)}")
        for word in words.split():
            self.strong.setdefault(fold(word), set()).add(f"<{fold(wide)}")


_TABLES = _Tables()
HEADS = _TABLES.heads


def _members() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in v.RELATIONS.strip().splitlines():
        concept, _, words = line.partition(":")
        plain = [word for word in words.split() if "*" not in word and word[0] != "~"]
        found[concept] = tuple(word.replace("_", " ") for word in plain)
    for line in v.KINDS.strip().splitlines():
        head, _, words = line.partition(":")
        found["@" + head.partition(" [")[0]] = tuple(words.split())
    return found


def _hinting() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in v.RELATIONS.strip().splitlines():
        concept, _, words = line.partition(":")
        found[concept] = tuple(word[1:] for word in words.split() if word[0] == "~")
    return found


MEMBERS = _members()
HINTING = _hinting()
PHRASES = _TABLES.phrases
EMPTY: frozenset[str] = frozenset()


@lru_cache(maxsize=16384)
def concepts(folded: str) -> frozenset[str]:
    """The concepts a folded word stands for."""
    return frozenset(_TABLES.strong.get(folded, EMPTY))


@lru_cache(maxsize=16384)
def hints(folded: str) -> frozenset[str]:
    """The concepts a folded word only hints at."""
    return frozenset(_TABLES.weak.get(folded, EMPTY))


def _compound_end(folded: str) -> str:
    """The known thing a compound ends with: ``tower`` of ``watchtower``; else ``""``."""
    for start in range(3, len(folded) - 3):
        if any(concept[0] == "@" for concept in _TABLES.strong.get(folded[start:], ())):
            return folded[start:]
    return ""


@lru_cache(maxsize=16384)
def compound_kinds(folded: str) -> frozenset[str]:
    """The kinds of things an unknown compound belongs to by its last part."""
    end = _compound_end(folded)
    return frozenset(concept for concept in concepts(end) if concept[0] == "@")


@lru_cache(maxsize=16384)
def compound_hints(folded: str) -> frozenset[str]:
    """What an unknown compound hints at by its last part."""
    return hints(_compound_end(folded))


@lru_cache(maxsize=16384)
def is_known(lower: str) -> bool:
    """Whether a lower-case word is in the vocabulary, and so is hardly a name."""
    folded = fold(lower)
    return lower in STOP or bool(concepts(folded) or hints(folded) or folded in LIGHT)


def is_number(lower: str) -> bool:
    """Whether a lower-case word names a number or an amount."""
    parts = lower.split("-")
    return lower[:1].isdigit() or any(part in NUMBER_WORDS for part in parts)
