"""What depends on a language: one file a language in `tables`, by its code, read on first use.

A missing key means that there is no such rule, never English's. The folder that the environment
names in ``EVENNIA_AI_LANGUAGES_DIR`` is laid over them, key by key; its other files are further
languages. `docs/life.md` lists the keys.
"""

import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import regex

from evennia_ai.language.script import folded, words

FOLDER, OVER = Path(__file__).parent / "tables", "EVENNIA_AI_LANGUAGES_DIR"
DEFAULT, AUTO = "en", "auto"
# Characters of a text by which its language is told.
_READ = 400
# So many words that no other language has show a language; so does a script that no other has,
# where it has this share of the letters.
SURE_WORDS, SURE_SHARE = 2, 0.5
# People whose language is remembered.
SPEAKERS_KEPT = 200
_LETTERS = regex.compile(r"\p{L}")
COURTESIES = ("greeting", "farewell", "thanks")
# Lists of what is said beside what somebody has to tell.
SMALL_TALK = (*COURTESIES, "yes", "please")


class Table:
    """The words and lines of one language."""

    def __init__(self, code: str, data: Mapping[str, Any]):
        self.code = code
        self.data = data
        self.name: str = data.get("name", code)
        self.script = regex.compile(data.get("script", "(?!)"))

    def get(self, section: str, key: str, default: Any = "") -> Any:
        """A value as it stands in the file."""
        return self.data.get(section, {}).get(key, default)

    @cache  # noqa: B019  (tables are kept for good)
    def phrases(self, key: str) -> tuple[str, ...]:
        """The words and phrases of a list with bars between, folded, the longest first."""
        phrases = {folded(phrase.strip()) for phrase in self.get("words", key).split("|")}
        return tuple(sorted(phrases - {""}, key=len, reverse=True))

    @cached_property
    def stop(self) -> frozenset[str]:
        """Words that say nothing of a subject, folded."""
        return frozenset(map(folded, self.get("words", "stop").split()))

    @cached_property
    def months(self) -> Mapping[str, int]:
        """The number of each month by its names and their forms, folded."""
        months = self.get("words", "months").split("|")
        return {folded(form): n for n, forms in enumerate(months, 1) for form in forms.split()}

    @cached_property
    def endings(self) -> regex.Pattern[str]:
        """Particles that it glues to words."""
        return regex.compile(self.data.get("endings", "(?!)"))

    @cached_property
    def fillers(self) -> regex.Pattern[str]:
        """Its words that say nothing, of a language without spaces, the longest first."""
        words = sorted(self.stop, key=len, reverse=True)
        return regex.compile("|".join(map(regex.escape, words)) or "(?!)")

    @cached_property
    def little(self) -> frozenset[str]:
        """Those, and words of courtesies and small talk: a text of these alone tells nothing."""
        phrases = (phrase for key in SMALL_TALK for phrase in self.phrases(key))
        small = map(folded, self.get("words", "small").split())
        return self.stop.union(small, *map(words, phrases))


@cache
def tables() -> Mapping[str, Table]:
    """All tables by their codes, English first."""
    merged: dict[str, dict[str, Any]] = {DEFAULT: {}}
    folders = filter(None, (str(FOLDER), os.environ.get(OVER)))
    for path in (path for folder in folders for path in sorted(Path(folder).glob("*.toml"))):
        data = merged.setdefault(path.stem, {})
        for key, value in tomllib.loads(path.read_text("utf-8")).items():
            if isinstance(value, dict):
                value = {**data.get(key, {}), **value}
            data[key] = value
    return {code: Table(code, data) for code, data in merged.items()}


@lru_cache(maxsize=8_192)
def language_of(text: str, talk: str = "") -> str:
    """The code of the language that a text shows without doubt; else ``""``.

    A script that only one language has shows it; else two little words of it that the language of
    the `talk` does not have, if the text has fewer of every other language. Of languages with as
    many that one counts of whose words more are its own alone.
    """
    text = text[:_READ]
    if not text.isascii():
        shares = {
            # Japanese has Chinese signs among its own.
            code: table.data.get("script_weight", 1) * len(table.script.findall(text))
            for code, table in tables().items()
        }
        code = max(shares, key=lambda each: shares[each])
        if shares[code] > SURE_SHARE * len(_LETTERS.findall(text)):
            return code
    owners = [codes for word in set(words(text)) if (codes := _owners().get(word))]
    counts = Counter(code for codes in owners for code in codes)
    alone = Counter(codes[0] for codes in owners if len(codes) == 1)
    others = Counter(code for codes in owners if talk not in codes for code in codes)
    ranked = sorted(((count, alone[code], code) for code, count in counts.items()), reverse=True)
    if not ranked or others[ranked[0][2]] < SURE_WORDS or counts[talk] >= ranked[0][0]:
        return ""
    if ranked[1:] and ranked[0][:2] == ranked[1][:2]:
        return ""
    return ranked[0][2]


def language_of_most(texts: Iterable[str], talk: str = "") -> str:
    """The code of the language that most of some texts show, as `language_of` tells it."""
    codes = Counter(filter(None, (language_of(text, talk) for text in texts)))
    return max(codes, key=lambda code: codes[code], default="")


@dataclass
class Languages:
    """The languages that people spoke last, as their lines told."""

    last: str = ""  # the code of the one that was heard last
    of: dict[str, str] = field(default_factory=dict)  # and of each speaker's, by stable id

    def hear(self, speaker: str, text: str) -> None:
        """Note which language a line is in: in doubt the one that its speaker spoke before."""
        before = self.of.pop(speaker, self.last)
        self.last = self.of[speaker] = language_of(text, before or DEFAULT) or before
        if len(self.of) > SPEAKERS_KEPT:
            del self.of[next(iter(self.of))]


@cache
def _owners() -> dict[str, list[str]]:
    """The codes of the languages that have a word among their little ones, by the word."""
    owners: dict[str, list[str]] = {}
    for code, table in tables().items():
        for word in table.little:
            owners.setdefault(word, []).append(code)
    return owners


def warm() -> Iterator[None]:
    """Reads the little words of all languages in advance, a table at each step."""
    for table in tables().values():
        table.little  # noqa: B018  (it is kept)
        yield
    _owners()
    yield


def table_of(text: str) -> Table:
    """The table of the language that a text shows, else English."""
    return tables()[language_of(text) or DEFAULT]


@cache
def _codes() -> Mapping[str, str]:
    """The code of each language by its code and its names, folded."""
    return {
        folded(form): code
        for code, table in tables().items()
        for form in (code, *table.name.split(", "))
    }


def code_of(language: str) -> str:
    """The code of a language with a table, given by its code or any of its names; else ``""``."""
    return _codes().get(folded(language.strip()), "")


def english_name(language: str) -> str:
    """The English name of a language with a table, by its code or any name; else as given."""
    if code := code_of(language):
        return tables()[code].name.partition(",")[0]
    return language


def each_phrase(key: str) -> frozenset[str]:
    """The words and phrases of a list in all languages together."""
    return frozenset(phrase for table in tables().values() for phrase in table.phrases(key))


def line_in(language: str, key: str, **slots: str) -> str:
    """A notice to players in a language, which is a code, a name or unknown."""
    table = tables()[code_of(language) or DEFAULT]
    notice = str(table.get("notices", key) or tables()[DEFAULT].get("notices", key))
    return notice.format(**slots)
