"""Names, numbers and quotations: what a summary must neither lose of its source nor add to it.

A name is a word with a capital that does not begin a sentence, or a name that is known already.
Where every noun has a capital, as the table of German says, only a capital behind another one
counts: `Schwester Wilma`. In scripts without capitals, names are those that are known.

Facts are compared word by word. A name's word is present if a word begins like it, as inflected
forms do; a number by its value in the digits of any script; a quotation by its words in a row.
All patterns are linear: texts come from players.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from evennia_ai.history.messages import Counter, without_marks
from evennia_ai.language.script import (
    FORM_LETTERS,
    akin,
    bordered,
    folded,
    is_unparted,
    normalized,
    with_digits,
    words,
    words_of,
)
from evennia_ai.language.tables import DEFAULT, language_of_most, tables
from evennia_ai.llm_interaction.budget import capped

APPENDIX_TITLE = "Also mentioned:"
# Most of a summary's cap the line of lost facts may take.
APPENDIX_SHARE = 0.25
# So many names of a source are kept, by which it is found again.
NAMED = 3
# A longer quotation is speech: its names and numbers count.
QUOTE_WORDS = 8
# So many more facts than its source has, and a summary is asked for again.
MOST_INVENTED = 2
# Numbers that are often said in words, or count the rows of a list: never invented.
SPELLED = frozenset(map(str, range(13)))

_CAPITALISED = r"\p{Lu}(?:['’]\p{Lu})?[\p{L}\p{M}\p{N}]+(?:-[\p{L}\p{M}\p{N}]+)*+"
_RUN = regex.compile(rf"(?<![\w'’-]){_CAPITALISED}(?: {_CAPITALISED}){{0,5}}")
# What stands before the first word of a sentence.
_STARTS = frozenset('.!?:;…¿¡؟।。！？"“”„«»「『(*#-—\n')
# The value, then what is shown beside it: an ending, a unit, the next word.
_NUMBER = regex.compile(
    r"(?<![\p{Latin}\p{Nd}_.])(?P<value>\p{Nd}++(?:[.,:'’٫٬\u00a0\u202f]\p{Nd}++)*+)"
    r"(?!\p{Latin}*\p{Nd})[\p{L}\p{M}]{0,4}+(?: [\p{L}\p{M}]{1,20}+)?"
)
_SEPARATOR = regex.compile(r"[^0-9]")
_QUOTED = regex.compile(
    r'(?<![\w"])"([^"\n]{1,120})"(?!\w)|[“„]([^“-„\n]{1,120})[“”]|«([^«»\n]{1,120})»'
    r"|[「『]([^「-』\n]{1,120})[」』]"
)
# Headings of a model: a row that ends with a colon or begins with a hash, what is bold.
_HEADING = regex.compile(r"^#.*$|^[^\n]{1,80}[:：][*_ ]*$|\*\*[^*\n]{1,80}\*\*", regex.M)


@dataclass(frozen=True, slots=True)
class Fact:
    """One name, number or quotation of a text."""

    kind: Literal["name", "number", "quote"]
    text: str  # as the text has it, a number with the word behind it
    key: str  # what is compared: folded words, or a number's value


class Words:
    """A text as facts are looked for in it."""

    def __init__(self, text: str):
        self._folded = folded(text)
        parts = words_of(self._folded)
        self._row = f" {' '.join(parts)} "
        self._numbers = {fact.key for fact in numbers(text)}
        self._words = frozenset(parts)

    def has(self, fact: Fact) -> bool:
        """Whether a fact stands here."""
        if fact.kind == "number":
            return fact.key in self._numbers
        if f" {fact.key} " in self._row:
            return True
        if fact.kind != "name":
            return False
        for word in fact.key.split():
            if word in self._words or (is_unparted(word) and word in self._folded):
                continue
            alike = (other for other in self._words if other.startswith(word[:FORM_LETTERS]))
            if not any(akin(word, other) for other in alike):
                return False
        return True


def facts(text: str, known: Iterable[str] = (), nouns_have_capitals: bool = False) -> list[Fact]:
    """The facts of a text in order of their first mention, each once.

    Args:
        text: Any text. A line is a sentence at least.
        known: Names that count wherever they stand as they are written.
        nouns_have_capitals: Whether a capital does not make a name.
    """
    text = without_marks(text)
    found = [(match.start(), _number(match)) for match in _NUMBER.finditer(text)]
    text = normalized("NFKC", text)  # as texts are compared
    for match in _QUOTED.finditer(text):
        body = next(filter(None, match.groups())).strip()
        key = " ".join(words(body))
        if key and len(body.split()) <= QUOTE_WORDS:
            found.append((match.start(), Fact("quote", body, key)))
    for name in filter(None, (normalized("NFKC", name).strip() for name in known)):
        if name in text and (place := regex.search(bordered(name), text, regex.V1)):
            found.append((place.start(), Fact("name", name, " ".join(words(name)))))
    for run in _RUN.finditer(text):
        before = text[max(0, run.start() - 3) : run.start()].rstrip(" ")
        begins = not before or before[-1] in _STARTS
        parts = run[0].split(" ")[begins + nouns_have_capitals :]
        name = " ".join(parts)
        if name and not (parts[1:] and name.isupper()):  # somebody shouts
            found.append((run.start(), Fact("name", name, " ".join(words(name)))))
    first: dict[tuple[str, str], Fact] = {}
    for _, fact in sorted(found, key=lambda pair: pair[0]):
        first.setdefault((fact.kind, fact.key), fact)
    return list(first.values())


def numbers(text: str) -> list[Fact]:
    """The numbers in a text that are written in digits."""
    return [_number(match) for match in _NUMBER.finditer(text)]


def nouns_have_capitals(text: str) -> bool:
    """Whether a text is in a language in which a capital makes no name of a word."""
    language = language_of_most(without_marks(text).splitlines())
    return "noun_capitals" in tables()[language or DEFAULT].data


def source_facts(text: str, known: Sequence[str] = ()) -> list[Fact]:
    """The facts of a text that is summarised."""
    return facts(text, known, nouns_have_capitals(text))


def lost(wanted: Iterable[Fact], *texts: str) -> list[Fact]:
    """The facts that stand in none of some texts."""
    found = Words("\n".join(texts))
    return [fact for fact in wanted if not found.has(fact)]


def invented(text: str, source: str, known: Sequence[str] = ()) -> list[str]:
    """What a summary names that neither its source nor the known names hold."""
    ground = Words("\n".join((source, *known)))
    told = facts(_HEADING.sub("\n", text), (), nouns_have_capitals(source))
    return [
        fact.text
        for fact in told
        if not ground.has(fact) and not (fact.kind == "number" and fact.key in SPELLED)
    ]


@dataclass(frozen=True)
class Covered:
    """A summary with what it must not lose."""

    text: str  # the summary with its appended line
    # Share of the source's facts kept in summary, journal or ledger before anything was appended.
    share: float = 1.0
    lost: tuple[str, ...] = ()  # what was kept nowhere
    named: tuple[str, ...] = ()  # some names in the source, by which it is found again


def covered(
    wanted: Sequence[Fact], text: str, elsewhere: Sequence[str], cap: int, count: Counter
) -> Covered:
    """A summary's text with a line of what it lost, under the cap.

    The text is cut to leave room for the line; what stood in the part that was cut off counts as
    lost, too.

    Args:
        wanted: The facts of what was summarised.
        text: The summary.
        elsewhere: Texts in which a fact is kept besides.
        cap: Most tokens of the text with its line.
        count: Counts tokens.
    """
    room = int(cap * APPENDIX_SHARE)
    missing = lost(wanted, text, *elsewhere)
    if missing:
        text = capped(text, cap - room - 1, count)
        missing = lost(wanted, text, *elsewhere)
        line, before = "", f"{APPENDIX_TITLE} "
        for fact in missing:
            mark = '"' * (fact.kind == "quote")
            longer = f"{before}{mark}{fact.text}{mark}."
            if count(longer) > room:
                break
            line, before = longer, f"{longer.removesuffix('.')}, "
        if line:
            text = f"{text}\n{line}"
    names = [fact.text for fact in wanted if fact.kind == "name"][:NAMED]
    share = 1.0 - len(missing) / max(1, len(wanted))
    return Covered(text, share, tuple(fact.text for fact in missing), tuple(names))


def _number(match: regex.Match[str]) -> Fact:
    """A number by its digits: ``1,200`` and ``1.200`` are ``1200``, ``05:30`` is ``530``."""
    digits = _SEPARATOR.sub("", with_digits(match["value"]))
    return Fact("number", match[0].strip(), digits.lstrip("0") or "0")
