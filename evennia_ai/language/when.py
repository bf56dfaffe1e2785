"""When something is to be done, as people type it: ``in 2h``, ``21:00``, ``tomorrow 9:00``, a date.

Figures mean the same everywhere; the few words beside them come from the lists of all languages.
"""

from datetime import date, datetime, time, timedelta
from functools import cache

import regex

from evennia_ai.language.script import BEFORE, bordered, folded, words
from evennia_ai.language.tables import each_words, language_of, says

# What is understood, for those who typed something else.
EXAMPLES = "in 2h, 21:00, tomorrow 9:00, 2026-12-01 09:00"
MORNING = time(9)
_UNITS = ("days", "hours", "minutes")
_DATE = regex.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_HOUR = r"(?<!\d)(?P<hour>\d{1,2})"
_CLOCK = regex.compile(
    _HOUR + r"(?:\s*(?:[:.]|h(?=\d\d))(?P<minute>\d{2})(?!\s*m(?![\w.]))|(?=\s*[ap]\.?m)"
    r"|\s*(?:uhr|時(?!間)|点|點|시(?!간))(?:(?P<minutes>\d{1,2})[分분])?)"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?"
)
# Beside a day the hour alone will do: `tomorrow at 9`.
_BARE = regex.compile(_HOUR + r"(?P<minute>(?!))?(?P<minutes>(?!))?(?P<half>(?!))?(?!\d)")
# Letters of other words that may stand beside the figures: `in`, `um`, `через`.
_BESIDE = 12
# Words of a line that may be too short to show its language.
SHORT = 3


def due(text: str, now: datetime) -> datetime | None:
    """The time that a text means, seen from `now`, in whose time zone it is; None for no time.

    A clock time is the next one of that day or the following; a day without a time is its morning.
    """
    rest, day = folded(text), None
    try:
        if found := _DATE.search(rest):
            day = date(*map(int, found.groups()))
        elif found := _words("tomorrow").search(rest):
            day = now.date() + timedelta(days=1)
        rest = _without(rest, found)
        clock = _CLOCK.search(rest) or (_BARE.search(rest) if day else None)
        if clock is None and day is None:
            return _after(rest, now)
        at = _clock(clock) if clock else MORNING
        if at is None or not _is_little(_without(rest, clock)):
            return None
        then = datetime.combine(day or now.date(), at, now.tzinfo)
        return (
            then
            if day or then > now
            else datetime.combine(now.date() + timedelta(days=1), at, now.tzinfo)
        )
    except (ValueError, OverflowError):
        return None


def is_coming(text: str) -> bool:
    """Whether a text says that somebody comes, as ``when he comes``, and no time."""
    return bool(_words("comes").search(folded(text))) and not regex.search(r"\d", text)


def leaves_words(text: str) -> bool:
    """Whether a line may ask to tell somebody something, or to be reminded of something.

    A sentence in a language without a table may always.
    """
    if len(words(text)) > SHORT and not language_of(text):
        return True
    return says("errand", text)


def _after(rest: str, now: datetime) -> datetime | None:
    """The time after a span, as ``in 2 hours``, ``1h30m``, ``3 Tage``."""
    span, found = timedelta(), False
    for unit in _UNITS:
        pattern = _span(unit)
        for match in pattern.finditer(rest):
            span += timedelta(**{unit: float(match[1].replace(",", "."))})
            found = True
        rest = pattern.sub(" ", rest)
    return now + span if found and _is_little(rest) else None


def _clock(found: "regex.Match[str]") -> time | None:
    hour, half = int(found["hour"]), found["half"]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, int(found["minute"] or found["minutes"] or 0))


def _without(text: str, found: "regex.Match[str] | None") -> str:
    return f"{text[: found.start()]} {text[found.end() :]}" if found else text


def _is_little(rest: str) -> bool:
    """Whether what stands beside the figures holds none itself, and is no sentence."""
    return not regex.search(r"\d", rest) and len("".join(rest.split())) <= _BESIDE


@cache
def _words(key: str) -> "regex.Pattern[str]":
    return regex.compile("|".join(map(bordered, _longest(key))), regex.V1)


@cache
def _span(unit: str) -> "regex.Pattern[str]":
    """A number and a word for a unit, which may be glued to it: ``2h``."""
    words = "|".join(
        regex.escape(word) + (r"(?![\p{L}\p{M}])" if bordered(word).startswith(BEFORE) else "")
        for word in _longest(unit)
    )
    return regex.compile(rf"(?<![\d:.-])(\d{{1,4}}(?:[.,]\d)?)\s*(?:{words})", regex.V1)


def _longest(key: str) -> list[str]:
    return sorted(each_words(key), key=len, reverse=True)
