"""When a failed model call is made again, and after how long. No I/O."""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass

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
    """

    kind: str
    retryable: bool
    status: int | None = None
    retry_after_s: float | None = None
    detail: str = ""


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
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return max(0.0, millis / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, headers.get("date"), time.time() if now is None else now)
    return None if seconds is None else max(0.0, seconds)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) < 1e9 else None


def _until(date: str | None, server_date: str | None, now: float) -> float | None:
    """Seconds until an HTTP date by the server's own clock."""
    until = _epoch(date)
    return None if until is None else until - (_epoch(server_date) or now)


def _epoch(date: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None
