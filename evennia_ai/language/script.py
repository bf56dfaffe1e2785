"""Letters: how texts in any script are folded, parted into words and compared.

What needs a list of words stands in `language.tables`; nothing here knows a language.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import regex

# Scripts without spaces between words, and Hangul, whose particles are glued on: their words are
# compared by pairs of characters.
_EASTERN = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー々〆"
_SOUTHERN = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[\p{{L}}\p{{N}}--[{_EASTERN}{_SOUTHERN}]]"
_TOKEN = regex.compile(
    rf"(?P<run>(?:(?!\p{{Hangul}})[{_EASTERN}])+|\p{{Hangul}}+|[{_SOUTHERN}][{_SOUTHERN}\p{{M}}]*)"
    rf"|{_LETTER}[[\p{{L}}\p{{N}}\p{{M}}]--[{_EASTERN}{_SOUTHERN}]]*",
    regex.V1,
)
# A word, or a letter of a script without spaces and of Hangul.
UNIT = regex.compile(
    rf"{_LETTER}[[\p{{L}}\p{{N}}\p{{M}}]--[{_EASTERN}{_SOUTHERN}]]*"
    rf"|[{_EASTERN}{_SOUTHERN}]\p{{M}}*",
    regex.V1,
)
# More of a word behind a name: an ending or a particle.
JOINED = regex.compile(rf"['’-]?[\p{{L}}--[\p{{Han}}{_SOUTHERN}]]", regex.V1)
_ASCII = re.compile("[a-z0-9]+")
_PARTED = regex.compile(rf"[{_EASTERN}{_SOUTHERN}]")
_UNPARTED = regex.compile(
    rf"(?:(?!\p{{Hangul}})[{_EASTERN}{_SOUTHERN}])[{_EASTERN}{_SOUTHERN}\p{{M}}]*"
)
# What is compared by runs: words between blanks, and letters of scripts without.
_SPACED = regex.compile(
    rf"[[\p{{L}}\p{{N}}\p{{M}}]--[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー々〆{_SOUTHERN}]]+",
    regex.V1,
)
_GRAPHEME = regex.compile(r"\X")
# Marks are accents on these; elsewhere they are vowels. `й` is a letter.
_ACCENTS = regex.compile(
    r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}\p{Arabic}\p{Hebrew}])"
    r"(?:(?<=и)(?P<letter>\u0306)\p{M}*|\p{M}+)"
)
_ALIKE = str.maketrans(
    {**dict(zip("ıłøđðىةـ\u200c", "iloddيه  ", strict=True)), "ـ": "", "æ": "ae"}
)
_ALIKE |= str.maketrans({"œ": "oe", "þ": "th", "\u200c": "", "\u00ad": "", "’": "'", "ʼ": "'"})
_MARKS = regex.compile(r"(\p{M}{32})")
_DIGIT = regex.compile(r"[^\P{Nd}0-9]")
# Ends of sentences: before a blank, or, in scripts without, anywhere.
CLOSERS = "\"'”’»«›)\\]」』】"
SENTENCE_END = regex.compile(rf"(?<=[.!?…؟۔।॥՞።;])[{CLOSERS}]*\s+|(?<=[。！？])[{CLOSERS}]*\s*")
# Ends behind which nothing goes on: no pause.
FULL_STOP = regex.compile(
    rf"(?<=(?:[!?؟۔।॥՞።]|(?<!\.)\.)[{CLOSERS}]{{0,4}})\s+(?![\p{{Ll}}\s])"
    rf"|(?<=[。！？][{CLOSERS}]{{0,4}})(?![{CLOSERS}])\s*",
    regex.V1,
)
_BEHIND_MARK = regex.compile(rf"(?r)[^{CLOSERS}\s]")
_QUESTION_MARKS = tuple("?？؟⸮՞\u037e")
_LAST_LETTER, _GREEK = regex.compile(r"(?r)\w"), regex.compile(r"\p{Greek}")
# Least length of a word, and the share of the longer one, that forms of one word begin with alike.
FORM_LETTERS, FORM_SHARE = 3, 0.57
# So many words in a row, or letters of a script without spaces, are somebody's own wording.
RUN_WORDS, RUN_LETTERS = 5, 12


# Beside these a word of another script needs no blank, and words of theirs need none at all.
_RUNS = rf"[{_EASTERN}{_SOUTHERN}]"
BEFORE, BEHIND = rf"(?<![[\w'’]--{_RUNS}])", rf"(?![\w--{_RUNS}])"


def bordered(name: str) -> str:
    """A pattern (of `regex.V1`) for a name as a whole word, also in a line without spaces."""
    pattern: str = regex.escape(name)
    if not _PARTED.match(name):
        pattern = BEFORE + pattern
    if not _PARTED.match(name[-1]):
        pattern += BEHIND
    return pattern


def folded(text: str) -> str:
    """A text for comparing: without case, accents, full-width forms and digits of its own."""
    if text.isascii():
        return text.lower()
    text = normalized("NFKC", text).casefold().translate(_ALIKE)
    text = _ACCENTS.sub(r"\g<letter>", normalized("NFD", text))
    return normalized("NFC", with_digits(text))


def normalized(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """A text in a normal form of Unicode; of very many marks in a row each part by itself.

    Python puts marks into order in a time that grows with the square of their number.
    """
    if not _MARKS.search(text):
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in _MARKS.split(text))


def with_digits(text: str) -> str:
    """A text with the digits of all scripts as ours, but for those newer than Python's tables."""
    return str(_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0], digit[0])), text))


def words(text: str) -> list[str]:
    """The words of a text in order, folded; runs of characters where words have no spaces."""
    return words_of(folded(text))


def words_of(text: str) -> list[str]:
    """The words of a text that is folded."""
    if text.isascii():
        return _ASCII.findall(text)
    return [word for _, word in _tokens(text)]


def places(text: str) -> list[tuple[int, str]]:
    """Where each word of a text begins, and the word, folded; pairs where there are no spaces."""
    return [(at, folded(word)) for at, word in _tokens(text)]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for match in _TOKEN.finditer(text):
        parts = [*_GRAPHEME.finditer(match["run"] or "")]
        for part, after in itertools.pairwise(parts):
            yield match.start() + part.start(), part[0] + after[0]
        if len(parts) < 2:
            yield match.start(), match[0]


def size(text: str) -> int:
    """How many words a text has, a run without spaces counting one for two characters."""
    if text.isascii() or not (runs := _UNPARTED.findall(text)):
        return len(text.split())
    rest = _UNPARTED.sub(" ", text).split()
    return sum((len(_GRAPHEME.findall(run)) + 1) // 2 for run in runs) + sum(
        any(map(str.isalnum, word)) for word in rest
    )


def runs(text: str) -> set[str]:
    """Each five words in a row of a text, and each twelve letters of scripts without spaces.

    They are folded; what stands between words or letters does not matter.
    """
    text = folded(text)
    spaced = _SPACED.findall(text)
    letters = _GRAPHEME.findall("".join(_UNPARTED.findall(text)))
    starts = range(len(spaced) - RUN_WORDS + 1)
    found = {" ".join(spaced[start : start + RUN_WORDS]) for start in starts}
    starts = range(len(letters) - RUN_LETTERS + 1)
    return found | {"".join(letters[start : start + RUN_LETTERS]) for start in starts}


def is_asked(sentence: str) -> bool:
    """Whether a sentence ends with a question mark of any script."""
    end = _BEHIND_MARK.search(sentence)
    if end is None or end[0] != ";":
        return end is not None and end[0] in _QUESTION_MARKS
    letter = _LAST_LETTER.search(sentence)  # the semicolon is the question mark of Greek
    return letter is not None and _GREEK.match(letter[0]) is not None


def is_unparted(text: str) -> bool:
    """Whether a text has letters of a script without spaces."""
    return _UNPARTED.search(text) is not None


@lru_cache(maxsize=65_536)
def akin(one: str, other: str) -> bool:
    """Whether two folded words seem to be forms of one: ``Прохора`` is ``Прохор``.

    One begins with the other, or both begin alike for the most part.
    """
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < FORM_LETTERS or short.isdigit() or is_unparted(short):
        return False
    alike = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    return begins_alike(one, other) or alike >= max(FORM_LETTERS, FORM_SHARE * len(long))


def begins_alike(one: str, other: str) -> bool:
    """Whether two folded words are one, or one begins with the other: `Keller`, `Kellerraum`."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and (short == long or len(short) > FORM_LETTERS)
