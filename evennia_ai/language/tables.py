"""What depends on a language: one file a language in `tables`, by its code, read on first use.

A missing key means that there is no such rule, never English's. The folder that the environment
names in ``EVENNIA_AI_LANGUAGES_DIR`` is laid over them, key by key; its other files are further
languages. `docs/languages.md` lists the keys.
"""

import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import regex

from evennia_ai.language.script import folded, words

FOLDER, OVER = Path(__file__).parent / "tables", "EVENNIA_AI_LANGUAGES_DIR"
OTHERS = Path(__file__).with_name("others.toml")
DEFAULT, AUTO = "en", "auto"
# Characters of a text by which its language is told, what a letter of its own counts beside a word,
# and the least score that tells one: more for a longer text, up to 1.
_READ, _MARK, _LEAST, _LEAST_A_WORD = 400, 0.6, 0.3, 0.05
_TIE = 1.0  # what the likely language counts more than another
_NEVER = regex.compile(r"(?!)")
_FORMATS = regex.compile(r"\{([a-z_]+)\}")
_LETTERS = regex.compile(r"\p{L}")


class Table:
    """The words, expressions and lines of one language.

    Expressions have an alternative a line, and case counts in none of them; ``{name}`` is the
    expression of that name in the section `words`.
    """

    def __init__(self, code: str, data: Mapping[str, Any]):
        gestures = "|".join(data.get("gestures", ()))
        self.code = code
        self.data = {**data, "words": {**data.get("words", {}), "gesture": gestures}}
        self.name: str = data.get("name", code)
        self.script = regex.compile(data.get("script", "(?!)"))

    @cached_property
    def plain_forms(self) -> dict[str, str]:
        """Irregular forms of words, folded, and the plain form of each."""
        rows = (row.split() for row in folded(self.get("lists", "irregular")).split("|"))
        return {form: plain for plain, *forms in filter(None, rows) for form in forms}

    @cached_property
    def starters(self) -> frozenset[str]:
        """Words that say nothing of a subject, and others that ordinarily begin sentences."""
        return self.words("stop") | self.words("small") | self.words("starters")

    def get(self, section: str, key: str, default: Any = "") -> Any:
        """A value as it stands in the file."""
        return self.data.get(section, {}).get(key, default)

    @cache  # noqa: B019  (tables are kept for good)
    def words(self, key: str) -> frozenset[str]:
        """The words of a list, folded."""
        return frozenset(map(folded, self.get("lists", key).split()))

    @cache  # noqa: B019
    def expression(self, section: str, key: str) -> regex.Pattern[str]:
        """One expression, which matches nothing where there is none."""
        text = self.get(section, key)
        return regex.compile(self._joined(text), regex.I) if text else _NEVER

    @cache  # noqa: B019
    def expressions(self, section: str) -> dict[str, regex.Pattern[str]]:
        """All expressions of a section, in its order."""
        return {key: self.expression(section, key) for key in self.data.get(section, {})}

    def _joined(self, text: str) -> str:
        parts = self.data["words"]
        joined = "|".join(text.strip().splitlines())
        return str(_FORMATS.sub(lambda at: f"(?:{self._joined(parts[at[1]])})", joined))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words by which a text is known to be in this language."""
        lists = ("stop", "small", "starters", "before", "you", "subject", "cardinals", "tens")
        return frozenset().union(*map(self.words, (*lists, "alike")))


@cache
def tables() -> Mapping[str, Table]:
    """All tables by their codes, English first."""
    merged: dict[str, dict[str, Any]] = {DEFAULT: {}}
    over = os.environ.get(OVER)
    for folder in (FOLDER, *([Path(over)] if over else [])):
        for path in sorted(folder.glob("*.toml")):
            data = merged.setdefault(path.stem, {})
            for key, value in tomllib.loads(path.read_text("utf-8")).items():
                data[key] = {**data.get(key, {}), **value} if isinstance(value, dict) else value
    return {code: Table(code, data) for code, data in merged.items()}


@lru_cache(maxsize=8_192)
def language_of(text: str, likely: str = "") -> str:
    """The code of the language a text is in, by its script and its little words; or ``""``.

    Of two that it shows about equally it is in the `likely` one.
    """
    text = text[:_READ]
    said, scores = set(words(text)), dict.fromkeys(tables(), 0.0)
    shown = set() if text.isascii() else {sign for sign in text.lower() if sign > "\x7f"}
    accents = {sign for sign in shown if sign.isalpha()}
    # What several languages have counts a part for each.
    for owners, unit, marks in zip(_owners(), (1.0, _MARK), (said, shown), strict=True):
        for codes in filter(None, map(owners.get, marks)):
            for code in codes:
                # A letter shows a language that has all the others.
                if unit == 1.0 or accents.issubset(tables()[code].data["letters"]):
                    scores[code] += unit / len(codes)
    letters = (shown and len(_LETTERS.findall(text))) or 1
    for code, table in tables().items() if shown else ():
        # Japanese has Chinese signs among its own.
        weight = table.data.get("script_weight", 1)
        scores[code] += weight * len(table.script.findall(text)) / letters
    best = max(scores, key=lambda code: scores[code] + _TIE * scores[code] * (code == likely))
    return best if scores[best] >= min(_LEAST + _LEAST_A_WORD * len(said), 1) else ""


def language_of_most(texts: Iterable[str], likely: str = "") -> str:
    """The code of the language that most of some texts show, as `language_of` tells it."""
    codes = Counter(filter(None, (language_of(text, likely) for text in texts)))
    return max(codes, key=lambda code: codes[code], default="")


@cache
def _owners() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The codes of the languages that have a word, and a letter of their own, by these."""
    by_word: dict[str, list[str]] = {}
    by_letter: dict[str, list[str]] = {}
    for code, table in tables().items():
        for word in table.vocabulary:
            by_word.setdefault(word, []).append(code)
        for letter in table.data.get("letters", ""):
            by_letter.setdefault(letter, []).append(code)
    return by_word, by_letter


# The language of texts that do not show theirs, while a talk is read; what is said is in it.
_spoken: ContextVar[tuple[str, str]] = ContextVar("language", default=("", ""))


@contextmanager
def speaking(code: str, said: str = "") -> Iterator[None]:
    """Take a language for that of the talk, in which `said` was the last reply."""
    token = _spoken.set((code if code in tables() else "", said))
    try:
        yield
    finally:
        _spoken.reset(token)


def spoken() -> Table:
    """The table of the language of the talk, English outside of one."""
    return tables()[_spoken.get()[0] or DEFAULT]


def last_said() -> str:
    """The last reply in the talk, whose lines are not said again at once."""
    return _spoken.get()[1]


def table_of(text: str) -> Table:
    """The table of a text's language, or that of the talk where the text does not show it."""
    code = language_of(text, _spoken.get()[0])
    return tables()[code] if code else spoken()


@cache
def _languages() -> Mapping[str, tuple[str, str]]:
    """Code and English name of each language by its code and its names, folded."""
    names = tomllib.loads(OTHERS.read_text("utf-8")) | {c: t.name for c, t in tables().items()}
    return {
        folded(form): (code, all.partition(",")[0])
        for code, all in names.items()
        for form in (code, *all.split(", "))
    }


def code_of(language: str) -> str:
    """The code of a language with a table, given by its code or any of its names; else ``""``."""
    code, _ = _languages().get(folded(language.strip()), ("", ""))
    return code if code in tables() else ""


def english_name(language: str) -> str:
    """The English name of a language given by its code or any of its names; ``""`` if unknown."""
    return _languages().get(folded(language.strip()), ("", ""))[1]


def each_words(key: str) -> frozenset[str]:
    """The words of a list in all languages together."""
    return frozenset(word for table in tables().values() for word in table.words(key))


def says(key: str, text: str, section: str = "speech") -> bool:
    """Whether a text fits an expression of a section in any language."""
    return any(table.expression(section, key).search(text) for table in tables().values())


def each_line(key: str) -> list[str]:
    """The variants of a line in all languages."""
    return [line for table in tables().values() for line in table.get("lines", key, ())]


def line_in(language: str, key: str, **slots: str) -> str:
    """A notice to players in a language, which is a code, a name or unknown."""
    table = tables()[code_of(language) or DEFAULT]
    notice = str(table.get("notices", key) or tables()[DEFAULT].get("notices", key))
    return notice.format(**slots)
