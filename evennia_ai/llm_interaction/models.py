"""What is known of each model: when it is left alone, what it cannot do, and its window.

A circuit breaker stops calls to a model that keeps failing. Closed, it lets every call through.
After some failures in a row it opens: calls go to the next model at once instead of waiting for
another timeout. After a cool-down it is half-open: one call, the probe, may try. Success closes the
breaker, failure opens it again.
"""

import asyncio
import importlib
import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from twisted.logger import Logger

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile, learned, plainest
from evennia_ai.llm_interaction.values import FORM, ModelReply, ModelRequest
from evennia_ai.llm_interaction.windows import PAGES, SHOWN, KnownWindow, Window, window_in

_log = Logger(namespace="evennia_ai.model")

# Longest time that a server has to say its window.
LOOKUP_S = 2.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long one request is tried, and when a model is left alone.

    Two calls of three attempts each would be 6 failures; a threshold of 5 lets one unlucky call
    pass and stops the second.
    """

    attempts: int = 3  # most attempts at one model
    base_s: float = 0.5  # wait before the second attempt; it doubles for each one more
    # Longest wait, also for a Retry-After. If the server asks for more, the next model is tried at
    # once.
    max_wait_s: float = 30.0
    threshold: int = 5  # failures in a row after which a breaker opens
    cooldown_s: float = 30.0  # until a probe may try

    def wait_s(self, failure: Failure, attempt: int, jitter: float) -> float | None:
        """Seconds to wait after attempt number `attempt` (from 1), None for no further one.

        The back-off is ``base_s * 2 ** (attempt - 1)``, half of it random (`jitter` is in 0..1),
        so that many assistants do not retry at the same moment.
        """
        most = min(self.attempts, failure.row.get("tries", self.attempts))
        asked = failure.retry_after_s or 0.0
        if not failure.retryable or attempt >= most or asked > self.max_wait_s:
            return None
        backoff = self.base_s * 2.0 ** (attempt - 1) * (0.5 + jitter / 2)
        return max(asked, min(backoff, self.max_wait_s))


@dataclass
class Model:
    """What is known of one model, its breaker included; times are monotonic seconds."""

    policy: RetryPolicy
    now: Callable[[], float]
    profile: Profile = UNKNOWN
    window: KnownWindow = KnownWindow()  # noqa: RUF009 - frozen
    next_lookup: float = -math.inf
    is_stubborn: bool = False  # whether it refused the plainest shape, too
    failures: int = 0  # in a row
    open_until: float = -math.inf  # of the breaker; in the past without end while it is closed
    is_probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether no call may go out now."""
        return self.now() < self.open_until

    def admits(self) -> bool:
        """Whether a call may go out now; half-open, the first caller becomes the probe.

        After True, call `succeeded`, `failed` or `abandoned`.
        """
        if self.is_open or self.is_probing:
            return False
        self.is_probing = self.open_until > -math.inf
        return True

    def succeeded(self) -> None:
        """The model answered: close."""
        self.failures, self.open_until, self.is_probing = 0, -math.inf, False

    def failed(self) -> None:
        """The model did not answer."""
        self.failures += 1
        if self.is_probing or self.failures >= self.policy.threshold:
            self.rest(self.policy.cooldown_s)
        self.is_probing = False

    def rest(self, seconds: float) -> None:
        """Open for a while, also because the server asked for it (Retry-After)."""
        self.open_until = max(self.open_until, self.now() + seconds)

    def abandoned(self) -> None:
        """The call was cancelled: nothing is known of the model, and another call may probe."""
        self.is_probing = False

    def taught(
        self, profile: Profile, request: ModelRequest, outcome: ModelReply | Failure
    ) -> Profile:
        """A profile with what an outcome teaches; the same one if it teaches nothing.

        An unknown refusal teaches the plainest shape, once.
        """
        if isinstance(outcome, ModelReply):
            if not outcome.is_empty:
                return profile
            return replace(profile, thinks=True, thinks_less=profile.thinks)
        if not outcome.row.get("of_shape"):
            return profile
        sent = {profile.limit_field, *request.extra, *(["stop"] if request.stop else ())}
        if FORM in (request.speech, profile.speech):
            sent.add("response_format")
        if request.thinking != "default":
            sent |= {"reasoning_effort", "chat_template_kwargs"}
        new = learned(profile, outcome.said, sent)
        if new == profile and outcome.kind == "bad_request" and not self.is_stubborn:
            self.is_stubborn = True
            new = plainest(profile)
        return new


class Models:
    """The models by LiteLLM's names of them.

    Args:
        policy: When their breakers open.
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
            model.profile, model.is_stubborn = profile, False
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        profiles = ((name, model.profile) for name, model in sorted(self._models.items()))
        shown = {k: v.to_dict() for k, v in profiles if v != UNKNOWN and not v.guessed}
        try:
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warn("`{path}` cannot be written: {why}", path=self._path, why=error)


async def ask_server(address: str, api_key: str | None, model: str) -> tuple[Window | None, bool]:
    """Ask a server for the window of a model, by the name that the server knows, for `LOOKUP_S`.

    Returns it, None if the server says nothing, and whether asking again soon would give the same.
    Not so where nobody listens, and where the model is not loaded yet.
    """
    httpx = importlib.import_module("httpx")
    root = address.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    is_reached = False
    if api_key and not api_key.isascii():
        return None, True  # the first request says so

    async def asked(source: str, method: str, path: str) -> Window | None:
        nonlocal is_reached
        body = {"model": model} if method == "POST" else None
        try:
            async with asyncio.timeout(LOOKUP_S):
                page = root + path.format(model=quote(model, safe=""))
                response = await client.request(method, page, json=body)
            is_reached |= response.status_code < 500  # llama.cpp is still loading
            return window_in(response.json(), model, source) if response.is_success else None
        except TimeoutError:
            is_reached = True  # it listens; another wait would be as long
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            pass
        return None

    # A context for TLS takes long to make.
    verify = address.startswith("https:")
    async with httpx.AsyncClient(headers=headers, timeout=None, verify=verify) as client:
        windows = await asyncio.gather(*(asked(*page) for page in PAGES))
    window = min(filter(None, windows), key=lambda each: each.tokens, default=None)
    return window, is_reached and (window is None or window.source != SHOWN)
