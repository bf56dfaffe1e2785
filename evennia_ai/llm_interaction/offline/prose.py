"""Prose: sentences, questions, nonsense, word stems, names; and the lines that the model says."""

from collections.abc import Sequence
from functools import cache, lru_cache
from zlib import crc32

import regex

from evennia_ai.language.script import SENTENCE_END, folded, is_unparted, size
from evennia_ai.language.tables import (
    DEFAULT,
    Table,
    each_line,
    language_of,
    last_said,
    spoken,
    table_of,
    tables,
)
from evennia_ai.language.words import asks, capitals, content_words, spoken_words, stem, words

LINES: dict[str, list[str]] = tables()[DEFAULT].data["lines"]
# Lines that quote what was told, and the name of who told it.
QUOTING = ("told", "told_by_you", "asked_by_you", "noted", "seen", "said")
_SPEAKER = r"(?P<speaker>[^\s\".!?:][^\".!?:\n]{0,60}?)"
_NAMED = regex.compile(r"[^.!?。！？।\n]{1,60}")
_SLOTS = regex.compile(r"\{(?!who\})\w+\}")
# A name and what sets it off from the line: it goes where nobody is named.
_UNNAMED = regex.compile(r"[,،、，]? ?\{who\}[、，]?")

_ENDS = regex.compile(rf"{SENTENCE_END.pattern}|\n+")
_WORDLIKE = regex.compile(
    r"^[\"'“”„‘’«»(*¿¡]*\p{L}[\p{L}\p{M}]*(?:['’./-]\p{L}[\p{L}\p{M}]*|\p{Nd}{0,3})*"
    r"[\"'“”‘’«»).,;:!?…*؟،؛।॥۔]*$"
    r"|^[\"'(£$€#]*\p{Nd}[\p{Nd}.,:/-]*(?:\w{1,3}|%)?[\"').,;:!?…؟،؛।॥۔]*$|^[-–—&+]+$"
)
_HELD = regex.compile(r"(\p{L})\1{2,}", regex.I)
# Of the letters of a word, and of a script with vowels among its letters.
_VOWEL = regex.compile(r"[aeiouyæøœı0-9]|[^\p{Latin}]")
MAX_LETTERS, ARTICLE_LETTERS = 40, 3  # of a word, of a language's little words
ABBREVIATION_LETTERS = 12  # of the longest abbreviation, and what stands before it
_BREAKS = regex.compile(r"[\s。，、！？：；…「」『』・“”]+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, empty ones left out."""
    parts: list[str] = []
    table = table_of(text)
    for piece in _ENDS.split(text):
        end = parts[-1][-ABBREVIATION_LETTERS:] if parts else ""
        if end and table.expression("speech", "abbreviation").search(end):
            parts[-1] += " " + piece
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def beginning(text: str, most: int) -> str:
    """A text, or the whole sentences that it begins with in `most` characters; if none, words."""
    if len(text) <= most:
        return text
    return " ".join(sentences(text[:most])[:-1]) or text[:most].rpartition(" ")[0] or text[:most]


def is_question(sentence: str) -> bool:
    """Whether a sentence asks rather than tells."""
    table = table_of(sentence)
    sentence = table.expression("speech", "lead").sub("", sentence)
    tag = table.expression("speech", "tag").search(sentence)
    # `It is cold, is it?` tells; before `are you well?` a name alone stands.
    is_marked = asks(sentence) and not (tag and size(sentence[: tag.start()]) > 1)
    return is_marked or asks(sentence.rstrip("?\"'”’) "))


def is_nonsense(sentence: str) -> bool:
    """Whether a sentence is mostly no words: symbols, codes, keys in a row or held down."""
    parts = [part for part in _BREAKS.split(sentence) if part]
    return bool(parts) and sum(map(_is_odd, parts)) * 2 > len(parts)


def _is_odd(part: str) -> bool:
    repeated = sum(len(run[0]) for run in _HELD.finditer(part))
    if is_unparted(part):
        return repeated * 2 > len(part)
    keyboards = (table.expression("speech", "keyboard") for table in tables().values())
    return (
        len(part) > MAX_LETTERS
        or not _WORDLIKE.match(part)
        or repeated * 2 > len(part)
        or (part.islower() and len(part) > 3 and not _VOWEL.search(folded(part)))
        or any(keyboard.search(part) for keyboard in keyboards)
    )


@lru_cache(maxsize=16_384)
def root(word: str, code: str = DEFAULT) -> str:
    """A folded word's stem, irregular forms included, so that `kept` meets `keep`."""
    return stem(tables()[code].plain_forms.get(word, word), code)


def root_set(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    table = table_of(text)
    return frozenset(root(word, table.code) for word in content_words(text, table, ("stop",)))


def roots_of(name: str, code: str = "") -> frozenset[str]:
    """The stems of all words of a name, in the language of the talk if no other is named."""
    return frozenset(root(word, code or spoken().code) for word in words(name))


def names_in(text: str) -> frozenset[str]:
    """Lower-case words that a text writes as names: with a capital, not to begin a sentence."""
    if table_of(text).data.get("nouns_have_capitals"):
        return frozenset()
    # In an unknown language a short word that begins a sentence is more often an article.
    least = 1 if language_of(text) else ARTICLE_LETTERS + 1
    firsts = (spoken_words(sentence)[:1] for sentence in sentences(text))
    begins = {
        word.lower()
        for word, *_ in filter(None, firsts)
        if word[0].isupper() and len(word) >= least
    }
    return (capitals(text) | begins) - table_of(text).starters


def frame_of(table: Table) -> frozenset[str]:
    """Stems of words that only frame a question, as in `do you remember`."""
    return frozenset(root(word, table.code) for word in table.words("frame"))


def line_for(kind: str, seed: str = "", who: str = "", **slots: str) -> str:
    """A line in the language of the talk, said to `who`; the same `seed` gives the same.

    It is another than the last reply holds, where there is one.
    """
    variants = spoken().get("lines", kind) or LINES[kind]
    lines = [(v if who else _UNNAMED.sub("", v)).format(who=who, **slots) for v in variants]
    lines = [line for line in lines if line not in last_said()] or lines
    return lines[crc32(seed.encode("utf-8", "replace")) % len(lines)]


def listed(names: Sequence[str]) -> str:
    """Names as they are told: ``up, down and out``."""
    if not names[1:]:
        return "".join(names)
    return line_for("names", names=", ".join(names[:-1]), last=names[-1])


@cache
def fixed_lines() -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """The sentences of lines of the tables in all languages, and the halves around a name."""
    lines = [each for kind in LINES for each in each_line(kind) if not _SLOTS.search(each)]
    parts = {part for line in lines for part in sentences(line)}
    named = {tuple(part.split("{who}")) for part in parts if part.count("{who}") == 1}
    return frozenset(_UNNAMED.sub("", part) for part in parts), frozenset(named)


@cache
def quote_lead() -> regex.Pattern[str]:
    """What stands before a quotation in a line of the tables, in any language."""
    leads = [line.partition('"{words}"')[0] for kind in QUOTING for line in each_line(kind)]
    leads.sort(key=lambda lead: "{speaker}" in lead)  # `You` is nobody's name
    either = "|".join(
        regex.escape(lead, special_only=True).replace(r"\{speaker\}", _SPEAKER)
        for lead in dict.fromkeys(leads)
    )
    return regex.compile(rf'(?:^|(?<=[.!?:"”…。।؟] )|(?<=[。：" ]))(?:{either})(?=")')


def holds_word(text: str, table: Table, key: str) -> bool:
    """Whether a text holds a word of a list."""
    if table.data.get("unparted"):
        return any(word in folded(text) for word in table.words(key))
    return not table.words(key).isdisjoint(words(text))


@lru_cache(maxsize=4096)
def is_fixed(sentence: str) -> bool:
    """Whether a sentence is a line of the tables, or part of one, said to anybody.

    `Hello, I am Tom.` is said by somebody of themselves.
    """
    sentence = " ".join(sentence.split())
    plain, named = fixed_lines()
    slots = (
        sentence[len(before) : len(sentence) - len(behind)]
        for before, behind in named
        if sentence.startswith(before) and sentence.endswith(behind)
    )
    table = tables()[language_of(sentence) or DEFAULT]  # whatever is spoken, as it is cached
    return sentence in plain or any(
        _NAMED.fullmatch(slot)
        and not ((" " in slot or is_unparted(slot)) and holds_word(slot, table, "first_person"))
        for slot in slots
    )
