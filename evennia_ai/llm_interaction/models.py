"""What is known of each model: when it is left alone, what it cannot do, and its window.

A model that failed where another one can answer is left alone for a while: calls go to the next one
at once instead of waiting for another timeout.
"""

import asyncio
import importlib
import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from twisted.logger import Logger

from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile
from evennia_ai.llm_interaction.windows import (
    HALVED,
    NAMED,
    PAGES,
    TABLE,
    USABLE_TOKENS,
    Window,
    window_in,
)

_log = Logger(namespace="evennia_ai.model")

# Longest time that a server has to say its window.
LOOKUP_S = 2.0
# Longest pause of a model because its server asked for one.
REST_CAP_S = 300.0


@dataclass
class Model:
    """What is known of one model; times are monotonic seconds."""

    now: Callable[[], float]
    profile: Profile = UNKNOWN
    served: Window | None = None  # the window that its server says
    refused: Window | None = None  # what an overflow told of it
    next_lookup: float = -math.inf
    rests_until: float = -math.inf

    def window(self, listed: int | None = None) -> Window | None:
        """What prompt and reply may hold by our count; None if nothing is known.

        `listed` is the window in LiteLLM's table.
        """
        in_table = Window(listed, TABLE) if listed else None
        known = filter(None, (self.refused, self.served, in_table))
        return min(known, key=lambda each: each.tokens, default=None)

    def serves(self, window: Window) -> None:
        """Note what the server says now; another figure than before replaces what was refused."""
        if self.served is not None and self.served.tokens != window.tokens:
            self.refused = None
        self.served = window

    def refuses(self, named: int | None, size: int) -> None:
        """Note the window that an overflow named: less than the size that was refused.

        The size is by our count, 0 for a request that nobody counted.
        """
        if named and (named < size or not size):
            self.refused = Window(named, NAMED)
        elif size:
            half = size // 2
            if half < USABLE_TOKENS < size:
                half = USABLE_TOKENS
            self.refused = Window(half, HALVED)

    @property
    def rest_s(self) -> float:
        """Seconds until a call may go out; 0 if it may now."""
        return max(0.0, self.rests_until - self.now())

    def rest(self, seconds: float) -> None:
        """Leave it alone for a while."""
        self.rests_until = max(self.rests_until, self.now() + min(seconds, REST_CAP_S))


class Models:
    """The models by LiteLLM's names of them.

    Args:
        clock: Monotonic seconds.
        path: Where their profiles are kept; None: only in memory. A file that cannot be read counts
            as none.
    """

    def __init__(self, clock: Callable[[], float], path: Path | None = None):
        self._path = path
        self._models = defaultdict[str, Model](lambda: Model(clock))
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
        if profile == self.of(name).profile:
            return
        self.of(name).profile = profile
        if self._path is None:
            return
        profiles = {name: model.profile for name, model in self._models.items()}
        shown = {k: v.to_dict() for k, v in profiles.items() if "guessed" not in v.flags}
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
