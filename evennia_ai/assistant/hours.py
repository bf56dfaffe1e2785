"""Hours of the day, as `23:00-06:00` or `game 23:00-06:00`."""

from collections.abc import Callable


def within_hours(schedule: str, clock: Callable[[bool], tuple[int, int]]) -> bool:
    """Whether it is now within a span of hours; one that ends before it begins spans midnight.

    `clock` returns hour and minute now: of game time if its argument is True, which it is for a
    `schedule` that begins with ``game``.
    """
    words = schedule.split()
    start, end = (_minutes(part) for part in words[-1].replace(" ", "").split("-"))
    hour, minute = clock(words[0] == "game")
    now = hour * 60 + minute
    return start <= now < end if start <= end else now >= start or now < end


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
