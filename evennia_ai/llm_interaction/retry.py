"""When a failed model call is made again, and when a model is left alone for a while. No I/O.

A circuit breaker stops calls to a model that keeps failing. Closed, it lets every call through.
After some failures in a row it opens: calls go to the next model at once instead of waiting for
another timeout. After a cool-down it is half-open: one call, the probe, may try. Success closes the
breaker, failure opens it again.
"""

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evennia_ai.llm_interaction.windows import Overflow

CLOSED, OPEN, HALF_OPEN = "closed", "open", "half-open"
# An unreadable reply is requested only once more: it costs as much as a good one.
_MOST_ATTEMPTS = {"bad_response": 2}


@dataclass(frozen=True)
class Failure:
    """Why one model did not answer.

    Args:
        kind: Short machine name, see `ModelError`; also `context_window`, `bad_request`,
            `not_found`.
        retryable: Whether the same call may succeed later.
        status: HTTP status, None where there was none.
        retry_after_s: Seconds the server asked to wait, None if it did not.
        detail: The provider's own words. They may quote the prompt: never logged.
        overflow: The figures of a failure of kind `context_window`.
        said: All texts of the failure, also the server's body. Never logged.
    """

    kind: str
    retryable: bool
    status: int | None = None
    retry_after_s: float | None = None
    detail: str = field(default="", repr=False)
    overflow: Overflow | None = None
    said: str = field(default="", repr=False)


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long one request is tried.

    Args:
        attempts: Most attempts at one model.
        base_s: Wait before the second attempt; it doubles for each one more.
        max_wait_s: Longest wait, also for a Retry-After. If the server asks for more, the next
            model is tried at once.
        total_factor: The whole request, all models, takes at most this many times its
            `timeout_s`. 2 x 60 s is the default time of a turn.
        rest_cap_s: Longest pause of a model because of a Retry-After.
    """

    attempts: int = 3
    base_s: float = 0.5
    max_wait_s: float = 30.0
    total_factor: float = 2.0
    rest_cap_s: float = 300.0

    def wait_s(self, failure: Failure, attempt: int, jitter: float) -> float | None:
        """Seconds to wait after attempt number `attempt` (from 1), None for no further one.

        The back-off is ``base_s * 2 ** (attempt - 1)``, half of it random (`jitter` is in 0..1),
        so that many assistants do not retry at the same moment.
        """
        most = min(self.attempts, _MOST_ATTEMPTS.get(failure.kind, self.attempts))
        if not failure.retryable or attempt >= most:
            return None
        asked = failure.retry_after_s or 0.0
        if asked > self.max_wait_s:
            return None
        backoff = self.base_s * 2.0 ** (attempt - 1) * (0.5 + jitter / 2)
        return max(asked, min(backoff, self.max_wait_s))


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server wants the client to wait, never negative; None without such a header.

    Header names are in lower case. ``retry-after-ms`` is OpenAI's own; ``retry-after`` is seconds
    or an HTTP date (RFC 9110, 10.2.3), read by the response's own date or `now` (epoch seconds).
    Of limits that are used up, ``x-ratelimit-reset…`` says when they are whole again: in seconds,
    as ``1m2s``, or as an epoch in seconds or milliseconds.
    """
    clock = _epoch(headers.get("date")) or (time.time() if now is None else now)
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return max(0.0, millis / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and (until := _epoch(value)) is not None:
        seconds = until - clock
    if seconds is None:
        resets = [_reset_s(headers[name], clock) for name in headers if _is_used_up(name, headers)]
        seconds = max((each for each in resets if each is not None), default=None)
    return None if seconds is None else max(0.0, seconds)


_RESET = "x-ratelimit-reset"


def _is_used_up(name: str, headers: Mapping[str, str]) -> bool:
    """Whether a header names the reset of a limit of which nothing remains."""
    remaining = headers.get(name.replace("reset", "remaining"), "0")
    return name.startswith((_RESET, _RESET[2:])) and remaining.strip() in ("0", "0.0")


def _reset_s(value: str, now: float) -> float | None:
    number = _number(value)
    if number is None:
        return _spoken_s(value) if _SPOKEN.fullmatch(value.strip()) else None
    if number > 1e11:
        number /= 1000
    return number - now if number > 1e9 else number


_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = (
    r"\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|days?)"
    r"(?![a-z])"
)
_SPOKEN = re.compile(rf"(?:{_PART}\s*)+", re.I)
_ASKED = re.compile(
    r"(?:retry.?delay|(?:re)?try(?:ing)?(?: again)?|wait|available)\W{1,5}"
    rf"(?:(?:in|after|for|at least)\W{{1,3}})*(?P<time>{_SPOKEN.pattern})"
    r"|retry.?after\W{1,5}(?P<seconds>\d+(?:\.\d+)?)",
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
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])", text, re.I)
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


@dataclass(frozen=True)
class BreakerPolicy:
    """After how many failures in a row a breaker opens, and for how long until a probe may try.

    Two calls of three attempts each would be 6; 5 lets one unlucky call pass and stops the second.
    """

    threshold: int = 5
    cooldown_s: float = 30.0


class Breaker:
    """The breaker of one model at one address; `now` is monotonic seconds. For one thread."""

    def __init__(self, policy: BreakerPolicy, now: Callable[[], float]):
        self._policy = policy
        self._now = now
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        if self._open_until is None:
            return CLOSED
        return HALF_OPEN if self._now() >= self._open_until else OPEN

    def admits(self) -> bool:
        """Whether a call may go out now; half-open, the first caller becomes the probe.

        After True, call `succeeded`, `failed` or `abandoned`.
        """
        if self.state == HALF_OPEN and not self._probing:
            self._probing = True
            return True
        return self.state == CLOSED

    def succeeded(self) -> None:
        """The model answered: close."""
        self._failures, self._open_until, self._probing = 0, None, False

    def failed(self) -> None:
        """The model did not answer."""
        self._failures += 1
        if self._probing or self._failures >= self._policy.threshold:
            self.rest(self._policy.cooldown_s)
        self._probing = False

    def rest(self, seconds: float) -> None:
        """Open for a while, also because the server asked for it (Retry-After)."""
        self._open_until = max(self._open_until or 0.0, self._now() + seconds)

    def abandoned(self) -> None:
        """The call was cancelled: nothing is known of the model, and another call may probe."""
        self._probing = False
