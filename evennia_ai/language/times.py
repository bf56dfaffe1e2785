"""Time as people say it and type it.

A spoken time is ``<clock>, <day>``, to a quarter of an hour; a game may have words of its own,
without a comma. Typed ones are ``in 2h``, ``21:00``, ``tomorrow 9:00``, a date: figures mean the
same everywhere, the few words beside them come from the lists of all languages.
"""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cache

import regex

from evennia_ai.language.script import BEFORE, bordered, folded
from evennia_ai.language.tables import tables

_HOURS = "twelve one two three four five six seven eight nine ten eleven".split()  # noqa: SIM905
_QUARTERS = ("{}", "a quarter past {}", "half past {}", "a quarter to {}")
_TIMES_OF_DAY = (
    *((4, "at night"), (12, "in the morning"), (18, "in the afternoon")),
    *((22, "in the evening"), (24, "at night")),
)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Units of a game's calendar that are counted from one, as Evennia's contrib does.
_FROM_ONE = ("day", "week", "month")
# What is understood, for those who typed something else.
EXAMPLES = "in 2h, 21:00, tomorrow 9:00, 2026-12-01 09:00"
MORNING = time(9)
# Places in the list of units of a language.
_UNITS, _TOMORROW, _TODAY, _DAY_AFTER, _EVENING = ("minutes", "hours", "days"), 3, 4, 5, 6
# From this hour to noon, in the evening means after noon.
_FIRST_EVENING_HOUR = 4
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


def spoken_time(at: datetime, with_date: bool) -> str:
    """``about a quarter past nine in the evening, Sunday``, and ``22 November 2026`` if asked."""
    said = f"{_clock(at.hour, at.minute)}, {at:%A}"
    if with_date:
        said += f" {at.day} {at:%B} {at.year}"
    return said


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
    clock = _clock(left % _DAY // _HOUR, left % _HOUR // _MINUTE)
    for length in sorted(names, reverse=True)[:-1]:
        number, left = divmod(left, length)
        if not usual or length >= _DAY:
            parts.append(f"{names[length]} {number + (names[length] in _FROM_ONE)}")
    if usual:
        parts.append(clock)
    return ", ".join(reversed(parts))


def _clock(hour: int, minute: int) -> str:
    quarter = (hour * 60 + minute + 7) // 15
    hour, part = (quarter + 1) // 4, _QUARTERS[quarter % 4]
    if hour % 24 == 0:
        return f"about {part.format('midnight')}"
    if hour % 12 == 0:
        return f"about {part.format('noon')}"
    time_of_day = next(words for end, words in _TIMES_OF_DAY if hour < end)
    return f"about {part.format(_HOURS[hour % 12])} {time_of_day}"


def due(text: str, now: datetime) -> datetime | None:
    """The time that a text means, seen from `now`, in whose time zone it is; None for no time.

    A clock time is the next one of that day or the following; a day without a time is its morning.
    """
    rest, day = folded(text), None
    try:
        if found := _DATE.search(rest):
            day = date(*map(int, found.groups()))
        elif found := _days_ahead().search(rest):
            day = now.date() + timedelta(days=1 + bool(found["later"]))
        rest, at = _without(rest, found), MORNING
        clock = _CLOCK.search(rest)
        if day is None and clock is None:
            return _after(rest, now)
        if clock := clock or _BARE.search(rest):
            rest = _without(rest, clock)
            at = time(_hour(clock, rest), int(clock["minute"] or clock["minutes"] or 0))
            rest = regex.sub(_any_of(_TODAY), " ", rest, flags=regex.V1)
        if not _is_little(rest):
            return None
        then = datetime.combine(day or now.date(), at, now.tzinfo)
        if not day and then <= now:
            then += timedelta(days=1)
        return then
    except (ValueError, OverflowError):
        return None


def _hour(clock: "regex.Match[str]", beside: str) -> int:
    """The hour of a clock time with `a` or `p` for a half of the day, or with words `beside` it.

    Raises:
        ValueError: There is no such hour of that half.
    """
    hour, half = int(clock["hour"]), clock["half"]
    if not half and _FIRST_EVENING_HOUR <= hour < 12 and regex.search(_any_of(_EVENING), beside):
        half = "p"  # as in `this evening at 8:00`
    if half and not 1 <= hour <= 12:
        raise ValueError(f"there is no hour {hour} of that half of the day")
    if half:
        hour = hour % 12 + 12 * (half == "p")
    return hour


def _after(rest: str, now: datetime) -> datetime | None:
    """The time after a span, as ``in 2 hours``, ``1h30m``, ``3 Tage``."""
    span, found = timedelta(), False
    for place, unit in reversed(list(enumerate(_UNITS))):
        pattern = _span(place)
        for match in pattern.finditer(rest):
            span += timedelta(**{unit: float(match[1].replace(",", "."))})
            found = True
        rest = pattern.sub(" ", rest)
    if found and _is_little(rest):
        return now + span
    return None


def _without(text: str, found: "regex.Match[str] | None") -> str:
    if found:
        text = f"{text[: found.start()]} {text[found.end() :]}"
    return text


def _is_little(rest: str) -> bool:
    """Whether what stands beside the figures holds none itself, and is no sentence."""
    return not regex.search(r"\d", rest) and len("".join(rest.split())) <= _BESIDE


@cache
def _unit_words(place: int) -> list[str]:
    """Words of all languages at a place of their units, the longest first."""
    rows = (table.get("words", "units").split("|") for table in tables().values())
    words = {folded(word) for row in rows if row[place:] for word in row[place].split()}
    return sorted(words, key=len, reverse=True)


@cache
def _any_of(place: int) -> str:
    """A pattern for the words at a place; a hyphen of theirs stands for a blank, too."""
    return "|".join(map(bordered, _unit_words(place))).replace(r"\-", r"[\s\-]")


@cache
def _days_ahead() -> "regex.Pattern[str]":
    return regex.compile(f"(?P<later>{_any_of(_DAY_AFTER)})|{_any_of(_TOMORROW)}", regex.V1)


@cache
def _span(place: int) -> "regex.Pattern[str]":
    """A number and a word for a unit, which may be glued to it: ``2h``."""
    words = "|".join(
        regex.escape(word) + (r"(?![\p{L}\p{M}])" if bordered(word).startswith(BEFORE) else "")
        for word in _unit_words(place)
    )
    return regex.compile(rf"(?<![\d:.-])(\d{{1,4}}(?:[.,]\d)?)\s*(?:{words})", regex.V1)
