"""A query read: who is asked about, which words carry it, which days it names, what it wants."""

import re
from dataclasses import dataclass
from datetime import date

from evennia_ai.language.names import names_among
from evennia_ai.language.words import MAX_QUERY_CHARACTERS, STOP_WORDS, storable, words
from evennia_ai.recall.speakers import Speakers, is_called
from evennia_ai.recall.values import MONTH_NUMBERS

MAX_WORDS = 24
_WHEN = re.compile(r"^(when|what (date|day|month|year|time)|which (month|year|day))\b|how long")
_COUNT = re.compile(r"^how (many|often|much|long)\b")
_WHO = re.compile(r"^who\b|\bname|\bwhich\b|\bcalled\b")
_WHERE = re.compile(r"^where\b|\bplaces?\b|\bcountr|\bcit(y|ies)\b")
_MAY = re.compile(r"\b(in|of|on|\d+(st|nd|rd|th)?) may\b|\bmay,? \d")
_TOGETHER = re.compile(r"\b(both|and|shared?|common|together)\b")
_AUXILIARIES = frozenset(
    ["did", "does", "do", "has", "have", "had", "is", "was", "will", "would", "can", "could"]
)
# The present tense asks for what holds; one of these asks for what was.
_NOW = re.compile(r"\b(is|are|does|do|has|have|lives?|s|'s|’s|now|current\w*|these days)\b")
_PAST = re.compile(
    r"\b(did|was|were|had|when|first|once|before|ago|last|used|original\w*|always|ever|(19|20)\d\d)\b"
)
# What may be asked about now for all that: in the tense of the past, where a thing was put.
_SURELY_PAST = re.compile(
    r"\b(did|was|were|had|first|once|before|ago|last|used|original\w*|always|ever|times"
    r"|(19|20)\d\d)\b"
)
_PUT = re.compile(
    r"^where (did|has|have)\b.*\b(hid|hide|hidden|put|stash\w*|leave|left|keep|kept|store\w*"
    r"|bury|buried|tuck\w*)\b"
)
# A capital that no query begins with.
_NAME = re.compile(r"(?<=\s)[\"'“‘]?([A-Z]\w+)")
_YEAR = re.compile(r"^(19|20)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(st|nd|rd|th)?$")


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart.

    Args:
        text: The query, cut to a length worth reading.
        content: Words that carry it, without stop words and speakers' names, in order, once.
        asked: Names of the speakers it names; who does something comes first.
        proper: Which words of `content` are written as names, in order.
        also_names: Words of `content` that name somebody here and else are stop words.
        name_words: Folded words of the speakers' names, and their short forms in the query.
        together: Whether it asks about several speakers together.
        months: Numbers 1-12 of the months it names.
        years: Years it names.
        days: Days of the month it names, if it names a month.
        wants: Which of `time`, `number`, `name`, `place` it asks for.
        asks_now: Whether it asks how things are, rather than what happened, when, or how often.
        may_ask_now: Whether it may ask so: nothing in it speaks of the past, unless it asks where
            something was put.
    """

    text: str
    content: tuple[str, ...]
    asked: tuple[str, ...]
    proper: tuple[bool, ...] = ()
    also_names: frozenset[str] = frozenset()
    name_words: frozenset[str] = frozenset()
    together: bool = False
    months: tuple[int, ...] = ()
    years: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    wants: frozenset[str] = frozenset()
    asks_now: bool = False
    may_ask_now: bool = False

    def dates(self, year: int) -> tuple[date, ...]:
        """The full dates it names; `year` is taken where it names none."""
        found = []
        for each_year in self.years or (year,):
            for month in self.months:
                found += [date(each_year, month, min(day, 28)) for day in self.days]
        return tuple(found)


def parsed_query(text: str, speakers: Speakers) -> Query:
    """Read a query.

    Args:
        text: Any text; never raises.
        speakers: Those who speak, as far as the asker may know.

    Returns:
        The query taken apart.
    """
    cut = storable(text[:MAX_QUERY_CHARACTERS]).strip()
    tokens = words(cut)
    names = speakers.called(tokens)
    asked = _in_order_of_doing(tokens, names)
    parts = {part for name in asked for part in names[name]}
    called = {token for token in tokens if any(is_called(token, part) for part in parts)}
    also_names = names_among(cut) - called
    unwanted = (STOP_WORDS - also_names) | called
    content = [token for token in dict.fromkeys(tokens) if token not in unwanted][:MAX_WORDS]
    capitals = {word for name in _NAME.findall(cut) for word in words(name)}
    lower = cut.lower()
    months = _months(tokens, lower)
    days = (_DAY.match(token) for token in tokens) if months else ()
    return Query(
        text=cut,
        content=tuple(content),
        asked=asked,
        proper=tuple(word in capitals for word in content),
        also_names=also_names,
        name_words=frozenset(parts | called),
        together=len(asked) > 1 and bool(_TOGETHER.search(lower)),
        months=months,
        years=tuple(int(token) for token in tokens if _YEAR.match(token)),
        days=tuple(int(day[1]) for day in days if day and 1 <= int(day[1]) <= 31),
        wants=_wants(lower),
        asks_now=bool(_NOW.search(lower)) and not _PAST.search(lower) and not months,
        may_ask_now=bool(_PUT.search(lower)) or not (_SURELY_PAST.search(lower) or months),
    )


def _in_order_of_doing(tokens: list[str], names: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names in the order they stand in, but first the one after an auxiliary: `did Alice`."""

    def place(name: str) -> tuple[bool, int, str]:
        at = [n for n, token in enumerate(tokens) if is_called(token, names[name][0])]
        does = any(n and tokens[n - 1] in _AUXILIARIES for n in at)
        return not does, at[0], name

    return tuple(sorted(names, key=place))


def _months(tokens: list[str], lower: str) -> tuple[int, ...]:
    found = [MONTH_NUMBERS[t] for t in tokens if t in MONTH_NUMBERS and t not in ("may", "mar")]
    return tuple(found + [5]) if _MAY.search(lower) else tuple(found)


def _wants(lower: str) -> frozenset[str]:
    kinds = {"time": _WHEN, "number": _COUNT, "name": _WHO, "place": _WHERE}
    return frozenset(kind for kind, pattern in kinds.items() if pattern.search(lower))
