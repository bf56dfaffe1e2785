"""Time as people say it and type it.

A spoken time is ``<clock>, <day>``, to a quarter of an hour; a game may have words of its own,
without a comma. Typed ones are ``in 2h``, ``21:00``, ``tomorrow 9:00``, a date: figures mean the
same everywhere, the few words beside them come from the lists of all languages.
"""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cache

import regex

from evennia_ai.language.script import BEFORE, bordered, folded, words
from evennia_ai.language.tables import each_words, language_of, says

_HOURS = "twelve one two three four five six seven eight nine ten eleven".split()  # noqa: SIM905
_QUARTERS = ("{}", "a quarter past {}", "half past {}", "a quarter to {}")
_TIMES_OF_DAY = ((4, "at night"), (12, "in the morning"), (18, "in the afternoon"))
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Units of a game's calendar that are counted from one, as Evennia's contrib does.
_FROM_ONE = ("day", "week", "month")
# What is understood, for those who typed something else.
EXAMPLES = "in 2h, 21:00, tomorrow 9:00, 2026-12-01 09:00"
MORNING = time(9)
_UNITS = ("days", "hours", "minutes")
_DATE = regex.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_HOUR_FIGURE = r"(?<!\d)(?P<hour>\d{1,2})"
_CLOCK = regex.compile(
    _HOUR_FIGURE + r"(?:\s*(?:[:.]|h(?=\d\d))(?P<minute>\d{2})(?!\s*m(?![\w.]))|(?=\s*[ap]\.?m)"
    r"|\s*(?:uhr|時(?!間)|点|點|시(?!간))(?:(?P<minutes>\d{1,2})[分분])?)"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?"
)
# Beside a day the hour alone will do: `tomorrow at 9`.
_BARE = regex.compile(_HOUR_FIGURE + r"(?P<minute>(?!))?(?P<minutes>(?!))?(?P<half>(?!))?(?!\d)")
# Letters of other words that may stand beside the figures: `in`, `um`, `через`.
_BESIDE = 12
# Words of a line that may be too short to show its language.
SHORT = 3


def spoken_time(at: datetime) -> str:
    """``about a quarter past nine in the evening, Sunday 22 November 2026``."""
    return f"{_clock(at.hour, at.minute)}, {at:%A} {at.day} {at:%B} {at.year}"


def spoken_units(seconds: float, units: Mapping[str, int]) -> str:
    """A time in a game's own calendar: ``about noon, day 3, week 2, month 5, year 1203``.

    Args:
        seconds: Game time.
        units: Lengths of the calendar's units in seconds by name, as in ``TIME_UNITS``. Of several
            names the longest is used. Without hours and days of the usual length, each unit longer
            than the smallest is told by its number.
    """
    names: dict[int, str] = {}
    for name, length in units.items():
        names[length] = max(name, names.get(length, ""), key=len)
    left, parts = int(seconds), list[str]()
    usual = {_HOUR, _DAY} <= names.keys()
    clock = [_clock(left % _DAY // _HOUR, left % _HOUR // _MINUTE)] if usual else []
    for length in sorted(names, reverse=True)[:-1]:
        number, left = divmod(left, length)
        if not usual or length >= _DAY:
            parts.append(f"{names[length]} {number + (names[length] in _FROM_ONE)}")
    return ", ".join([*clock, *reversed(parts)])


def read_time(spoken: str) -> tuple[str, str]:
    """The clock and the day of a spoken time; a time without a comma is both."""
    clock, _, day = spoken.strip().rstrip(".").partition(", ")
    return clock, day or clock


def told_time(spoken: str, clock: str = "", day: str = "") -> str:
    """The clock or the day of a spoken time as another language tells it.

    Args:
        spoken: What `spoken_time` gave; a game's own words are returned as they are.
        clock: How the language tells the clock: ``gegen {hour}:{minute} Uhr``; empty for the day.
        day: How it tells the day: ``{day}.{month}.{year}``.
    """
    told, date = read_time(spoken)
    if clock:
        quarters = [n for n in range(96) if _clock(n // 4, n % 4 * 15) == told]
        figures = [clock.format(hour=n // 4, minute=f"{n % 4 * 15:02}") for n in quarters]
        return (*figures, told)[0]
    try:
        at = datetime.strptime(date, "%A %d %B %Y")
    except ValueError:
        return date
    return day.format(day=at.day, month=at.month, year=at.year)


def _clock(hour: int, minute: int) -> str:
    quarter = (hour * 60 + minute + 7) // 15
    hour, part = (quarter + 1) // 4, _QUARTERS[quarter % 4]
    if hour % 12 == 0:
        return f"about {part.format('noon' if hour % 24 else 'midnight')}"
    late = "in the evening" if hour < 22 else "at night"
    time_of_day = next((words for end, words in _TIMES_OF_DAY if hour < end), late)
    return f"about {part.format(_HOURS[hour % 12])} {time_of_day}"


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
        at = _time_of(clock) if clock else MORNING
        if at is None or not _is_little(_without(rest, clock)):
            return None
        then = datetime.combine(day or now.date(), at, now.tzinfo)
        return then if day or then > now else then + timedelta(days=1)
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


def _time_of(found: "regex.Match[str]") -> time | None:
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
