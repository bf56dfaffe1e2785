"""Time as people say it: by the clock, to a quarter of an hour, and by the day.

A spoken time is ``<clock>, <day>``; a game may have words of its own, without a comma.
"""

from collections.abc import Mapping
from datetime import datetime

_HOURS = "twelve one two three four five six seven eight nine ten eleven".split()  # noqa: SIM905
_QUARTERS = ("{}", "a quarter past {}", "half past {}", "a quarter to {}")
_TIMES_OF_DAY = ((4, "at night"), (12, "in the morning"), (18, "in the afternoon"))
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Units of a game's calendar that are counted from one, as Evennia's contrib does.
_FROM_ONE = ("day", "week", "month")


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
        quarter = next((n for n in range(96) if _clock(n // 4, n % 4 * 15) == told), None)
        return (
            told
            if quarter is None
            else clock.format(hour=quarter // 4, minute=f"{quarter % 4 * 15:02}")
        )
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
