"""When a failed model call is made again, and when a model is left alone for a while. No I/O.

A circuit breaker stops calls to a model that keeps failing. Closed, it lets every call through.
After some failures in a row it opens: calls go to the next model at once instead of waiting for
another timeout. After a cool-down it is half-open: one call, the probe, may try. Success closes the
breaker, failure opens it again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from evennia_ai.llm_interaction.failures import Failure

# An unreadable reply is requested only once more: it costs as much as a good one.
_MOST_ATTEMPTS = {"bad_response": 2}
# A whole request, all models, takes at most this many times its `timeout_s`. 2 x 60 s is the
# default time of a turn. And the longest pause of a model because of a Retry-After.
TOTAL_FACTOR, REST_CAP_S = 2.0, 300.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long one request is tried."""

    attempts: int = 3  # most attempts at one model
    base_s: float = 0.5  # wait before the second attempt; it doubles for each one more
    # Longest wait, also for a Retry-After. If the server asks for more, the next model is tried at
    # once.
    max_wait_s: float = 30.0

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


@dataclass(frozen=True)
class BreakerPolicy:
    """After how many failures in a row a breaker opens, and for how long until a probe may try.

    Two calls of three attempts each would be 6; 5 lets one unlucky call pass and stops the second.
    """

    threshold: int = 5
    cooldown_s: float = 30.0


class Breaker:
    """The breaker of one model; `now` is monotonic seconds. For one thread."""

    def __init__(self, policy: BreakerPolicy, now: Callable[[], float]):
        self._policy = policy
        self._now = now
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether no call may go out now."""
        return self._open_until is not None and self._now() < self._open_until

    def admits(self) -> bool:
        """Whether a call may go out now; half-open, the first caller becomes the probe.

        After True, call `succeeded`, `failed` or `abandoned`.
        """
        if self.is_open or self._probing:
            return False
        self._probing = self._open_until is not None
        return True

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
