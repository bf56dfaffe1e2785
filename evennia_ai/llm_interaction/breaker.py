"""A circuit breaker: calls to a model that keeps failing pause for a while.

Closed, it lets every call through. After `threshold` failures in a row it opens: calls go to the
next model at once instead of waiting for another timeout. After `cooldown_s` it is half-open: one
call, the probe, may try. Success closes the breaker, failure opens it again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half-open"


@dataclass(frozen=True)
class BreakerPolicy:
    """When a breaker opens, and for how long.

    Args:
        threshold: Failures in a row that open it. Two calls of three attempts each would be 6;
            5 lets one unlucky call pass and stops the second.
        cooldown_s: Seconds until a probe may try.
    """

    threshold: int = 5
    cooldown_s: float = 30.0


class Breaker:
    """The breaker of one model at one address, for several threads; `now` is monotonic seconds."""

    def __init__(self, policy: BreakerPolicy, now: Callable[[], float]):
        self._policy = policy
        self._now = now
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        with self._lock:
            return self._state()

    def admits(self) -> bool:
        """Whether a call may go out now; half-open, the first caller becomes the probe.

        After True, call `succeeded`, `failed` or `abandoned`.
        """
        with self._lock:
            state = self._state()
            if state == HALF_OPEN and not self._probing:
                self._probing = True
                return True
            return state == CLOSED

    def succeeded(self) -> None:
        """The model answered: close."""
        with self._lock:
            self._failures, self._open_until, self._probing = 0, None, False

    def failed(self) -> None:
        """The model did not answer."""
        with self._lock:
            self._failures += 1
            if self._probing or self._failures >= self._policy.threshold:
                self._open_for(self._policy.cooldown_s)
            self._probing = False

    def rest(self, seconds: float) -> None:
        """Open for a while because the server asked for it (Retry-After)."""
        with self._lock:
            self._open_for(seconds)

    def abandoned(self) -> None:
        """The call was cancelled: nothing is known of the model, and another call may probe."""
        with self._lock:
            self._probing = False

    def _state(self) -> str:
        if self._open_until is None:
            return CLOSED
        return HALF_OPEN if self._now() >= self._open_until else OPEN

    def _open_for(self, seconds: float) -> None:
        self._open_until = max(self._open_until or 0.0, self._now() + seconds)


class Breakers:
    """The breakers of all models at their addresses, made on first use."""

    def __init__(self, policy: BreakerPolicy, now: Callable[[], float]):
        self._policy = policy
        self._now = now
        self._lock = threading.Lock()
        self._breakers: dict[tuple[str, str | None], Breaker] = {}

    def of(self, model: str, api_base: str | None = None) -> Breaker:
        """The breaker of a model at an address."""
        with self._lock:
            return self._breakers.setdefault((model, api_base), Breaker(self._policy, self._now))

    def states(self) -> dict[str, str]:
        """The state of each model's breaker by the model's name."""
        with self._lock:
            breakers = dict(self._breakers)
        return {model: breaker.state for (model, _), breaker in breakers.items()}
