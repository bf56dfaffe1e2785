"""How long a server asks to wait, in headers or in words. No I/O."""

import email.utils
import re
import time
from collections.abc import Mapping
from datetime import datetime


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server wants the client to wait, never negative; None without such a header.

    Header names are in lower case. ``retry-after-ms`` is OpenAI's own; ``retry-after`` is seconds
    or an HTTP date (RFC 9110, 10.2.3), read by the response's own date or `now` (epoch seconds).
    Of limits that are used up, ``…ratelimit…reset…`` says when they are whole again: in seconds, as
    ``1m2s``, as an epoch in seconds or milliseconds, or as a date (RFC 3339).
    """
    clock = _epoch(headers.get("date")) or (time.time() if now is None else now)
    millis, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    seconds = _number(value) if millis is None else millis / 1000
    if seconds is None and (until := _epoch(value)) is not None:
        seconds = until - clock
    if seconds is None:
        resets = (
            _reset_s(value, clock)
            for name, value in headers.items()
            if re.search("ratelimit.*reset", name)
            and _number(headers.get(name.replace("reset", "remaining"), "0")) == 0
        )
        seconds = max((each for each in resets if each is not None), default=None)
    return None if seconds is None else max(0.0, seconds)


def _reset_s(value: str, now: float) -> float | None:
    number = _number(value)
    if number is None:
        if _SPOKEN.fullmatch(value.strip()):
            return _spoken_s(value)
        try:
            return datetime.fromisoformat(value).timestamp() - now
        except ValueError:
            return None
    if number > 1e11:
        number /= 1000
    return number - now if number > 1e9 else number


_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = (
    r"\d{1,15}(?:\.\d{1,15})?\s{0,9}(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|days?)"
    r"(?![a-z])"
)
_SPOKEN = re.compile(rf"(?:{_PART}\s*)+", re.I)
_ASKED = re.compile(
    r"(?:retry.?delay|(?:re)?try(?:ing)?(?: again)?|wait|available(?: again)?|resets?)\W{1,5}"
    rf"(?:(?:in|after|for|at least)\W{{1,3}})*(?P<time>{_SPOKEN.pattern})"
    r"|(?:retry.?after|reset\w*in|estimated_time)(?:_?seconds)?\W{1,5}(?P<seconds>\d{1,15}(?:\.\d{1,15})?)",
    re.I,
)


def told_wait_s(text: str) -> float | None:
    """Seconds that the text of an error asks to wait, as "retry in 38.4s"; None if it does not."""
    found = [
        float(each["seconds"]) if each["seconds"] else _spoken_s(each["time"])
        for each in _ASKED.finditer(text)
    ]
    return max(found, default=None)


def _spoken_s(text: str) -> float:
    """Seconds of a time as ``1m26.4s`` or ``20 seconds``."""
    parts = re.findall(r"(\d{1,15}(?:\.\d{1,15})?)\s{0,9}(ms|milli|[smhd])", text, re.I)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) < 1e14 else None


def _epoch(date: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None
