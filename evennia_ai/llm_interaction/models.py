"""What is known of each model: when it is left alone, what it cannot do, and its window.

A model that fails some times in a row is left alone for a while: calls go to the next model at once
instead of waiting for another timeout. After that, one more failure leaves it alone again.
"""

import asyncio
import importlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from twisted.logger import Logger

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile
from evennia_ai.llm_interaction.windows import PAGES, KnownWindow, Window, window_in

_log = Logger(namespace="evennia_ai.model")

# Longest time that a server has to say its window.
LOOKUP_S = 2.0
# Longest pause of a model because its server asked for one.
REST_CAP_S = 300.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long one request is tried, and when a model is left alone.

    Two calls of three attempts each would be 6 failures; a threshold of 5 lets one unlucky call
    pass and stops the second.
    """

    attempts: int = 3  # most attempts at one model
    base_s: float = 0.5  # wait before the second attempt; it doubles for each one more
    # Longest wait. If the server asks for more, the next model is tried at once.
    max_wait_s: float = 30.0
    threshold: int = 5  # failures in a row after which a model is left alone
    cooldown_s: float = 30.0  # for so long

    def wait_s(self, failure: Failure, attempt: int) -> float | None:
        """Seconds to wait after attempt number `attempt` (from 1), None for no further one.

        Half of the back-off is random, so that assistants do not retry at the same moment.
        """
        most = min(self.attempts, failure.row.get("tries", self.attempts))
        backoff = self.base_s * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)
        wait_s = max(failure.retry_after_s or 0.0, backoff)
        return (
            wait_s if failure.retryable and attempt < most and wait_s <= self.max_wait_s else None
        )


@dataclass
class Model:
    """What is known of one model; times are monotonic seconds."""

    policy: RetryPolicy
    now: Callable[[], float]
    profile: Profile = UNKNOWN
    window: KnownWindow = KnownWindow()  # noqa: RUF009 - frozen
    next_lookup: float = -math.inf
    failures: int = 0  # in a row
    rests_until: float = -math.inf

    @property
    def is_resting(self) -> bool:
        """Whether no call may go out now."""
        return self.now() < self.rests_until

    def succeeded(self) -> None:
        """The model answered."""
        self.failures, self.rests_until = 0, -math.inf

    def failed(self) -> None:
        """The model did not answer."""
        self.failures += 1
        if self.failures >= self.policy.threshold:
            self.rest(self.policy.cooldown_s)

    def rest(self, seconds: float) -> None:
        """Leave it alone for a while."""
        self.rests_until = max(self.rests_until, self.now() + min(seconds, REST_CAP_S))


class Models:
    """The models by LiteLLM's names of them.

    Args:
        policy: When they are left alone.
        clock: Monotonic seconds.
        path: Where their profiles are kept; None: only in memory. A file that cannot be read counts
            as none.
    """

    def __init__(self, policy: RetryPolicy, clock: Callable[[], float], path: Path | None = None):
        self._path = path
        self._models = defaultdict[str, Model](lambda: Model(policy, clock))
        if path is not None and path.exists():
            try:
                for name, value in dict(json.loads(path.read_text(encoding="utf-8"))).items():
                    self.of(name).profile = Profile.if_readable(value) or UNKNOWN
            except (OSError, ValueError, TypeError) as error:
                _log.warn("`{path}` cannot be read: {why}", path=path, why=error)

    def of(self, name: str) -> Model:
        """What is known of a model."""
        return self._models[name]

    def keep(self, name: str, profile: Profile) -> None:
        """Keep a profile with which a model answered."""
        model = self.of(name)
        if profile != model.profile:
            model.profile = profile
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        profiles = ((name, model.profile) for name, model in sorted(self._models.items()))
        shown = {k: v.to_dict() for k, v in profiles if v != UNKNOWN and "guessed" not in v.flags}
        try:
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warn("`{path}` cannot be written: {why}", path=self._path, why=error)


async def ask_server(address: str, api_key: str | None, model: str) -> Window | None:
    """Ask a server for the window of a model, by the name that the server knows, for `LOOKUP_S`.

    Returns the least that its pages say; None if it says nothing.
    """
    httpx = importlib.import_module("httpx")
    if api_key and not api_key.isascii():
        return None  # the first request says so
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def asked(source: str, method: str, path: str) -> Window | None:
        page = address.rstrip("/").removesuffix("/v1") + path.format(model=quote(model, safe=""))
        body = {"model": model} if method == "POST" else None
        try:
            async with asyncio.timeout(LOOKUP_S):
                response = await client.request(method, page, json=body)
            return window_in(response.json(), model, source) if response.is_success else None
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            return None

    # A context for TLS takes long to make.
    verify = address.startswith("https:")
    async with httpx.AsyncClient(headers=headers, timeout=None, verify=verify) as client:
        windows = await asyncio.gather(*(asked(*page) for page in PAGES))
    return min(filter(None, windows), key=lambda each: each.tokens, default=None)
