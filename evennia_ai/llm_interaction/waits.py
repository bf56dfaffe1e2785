"""How long a server asks to wait, in a header or in words. No I/O."""

import re


def header_wait_s(error: BaseException) -> float | None:
    """Seconds that the header `Retry-After` of an error asks to wait; None without such a number.

    The header may also be a date, which no provider is known to send.
    """
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        headers = headers or getattr(holder, "litellm_response_headers", None) or {}
        value = str(headers.get("retry-after"))
        if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value):
            return float(value)
    return None


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
