"""What is learned of models' windows: asked of their servers, read from replies and refusals."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from evennia_ai.llm_interaction.windows import (
    LOADED,
    MODELS,
    PROPS,
    SHOWN,
    KnownWindow,
    Window,
    figures_of,
    window_in,
)

TIMEOUT_S = 2.0
# A server is asked for its window again after this long: it may have been started anew.
ASK_AGAIN_S = 300.0
# An unknown refusal of a prompt with more tokens may be about its length.
LARGE_TOKENS = 2_000


class Answer(NamedTuple):
    """What a server says of a model's window.

    Args:
        window: None if it says nothing.
        is_final: Whether asking again soon would give the same answer. Not so where nobody
            listens, and where the model is not loaded yet.
    """

    window: Window | None
    is_final: bool


class Windows:
    """The windows of models by their names; `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._known: dict[str, KnownWindow] = {}
        self._asked_until: dict[str, float] = {}
        self._doubted: dict[str, KnownWindow] = {}

    def of(self, model: str) -> KnownWindow:
        """What is known of a model's window."""
        return self._known.get(model, KnownWindow())

    def forget(self, model: str) -> None:
        """Begin anew with a model."""
        for kept in (self._known, self._asked_until, self._doubted):
            kept.pop(model, None)

    async def look_up(self, model: str, address: str, api_key: str | None, name: str) -> None:
        """Ask a server for a model's window, by the server's name of it, if that is due."""
        now, is_final = self._clock(), False
        if now < self._asked_until.get(model, now):
            return
        self._asked_until[model] = now + ASK_AGAIN_S
        try:
            window, is_final = await ask_server(address, api_key, name)
        finally:
            if not is_final:
                self._asked_until.pop(model, None)
        self._known[model] = self.of(model).told(window)

    def counted(self, model: str, ours: int, theirs: int) -> None:
        """Note the two counts of a prompt that was answered."""
        self._known[model] = self.of(model).counted(ours, theirs)

    def overflowed(self, model: str, said: str, sizes: tuple[int, int], listed: int | None) -> None:
        """Note a refusal as too large: its text, and our count of the prompt and of the reply."""
        self._known[model] = self.of(model).overflowed(figures_of(said), *sizes, listed)

    def is_doubtful(self, model: str, prompt_tokens: int) -> bool:
        """Whether an unknown refusal is taken for an overflow: of a large prompt, once a model.

        If the smaller prompt is refused, too, it was none: the window is as it was.
        """
        if model in self._doubted:
            self._known[model] = self._doubted[model]
            return False
        if prompt_tokens > LARGE_TOKENS:
            self._doubted[model] = self.of(model)
        return prompt_tokens > LARGE_TOKENS

    def lost(self, model: str) -> None:
        """Note that the server is gone: one that comes back may have another window."""
        self._asked_until.pop(model, None)


async def ask_server(address: str, api_key: str | None, model: str) -> Answer:
    """Ask a server for the window of a model, by the name that the server knows.

    Takes at most `TIMEOUT_S`.
    """
    httpx = importlib.import_module("httpx")
    root, headers = address.rstrip("/").removesuffix("/v1"), {}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    is_reached = False

    async def asked(source: str, path: str, method: str = "GET", **options: Any) -> Window | None:
        nonlocal is_reached
        try:
            response = await client.request(method, root + path, **options)
            is_reached |= response.status_code < 500  # llama.cpp is still loading
            if response.status_code == 200:
                return window_in(response.json(), model, source)
        except httpx.TimeoutException:
            is_reached = True  # it listens; another wait would be as long
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            pass
        return None

    # A context for TLS takes long to make.
    verify = address.startswith("https:")
    async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, verify=verify) as client:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                windows = await asyncio.gather(asked(PROPS, "/props"), asked(MODELS, "/v1/models"))
                if is_reached and not any(windows):
                    shown = asked(SHOWN, "/api/show", "POST", json={"model": model})
                    windows = await asyncio.gather(asked(LOADED, "/api/ps"), shown)
        except TimeoutError:
            return Answer(None, True)
    window = min(filter(None, windows), key=lambda each: each.tokens, default=None)
    is_guess = window is not None and window.source == SHOWN
    return Answer(window, is_reached and not is_guess)
