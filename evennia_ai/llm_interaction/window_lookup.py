"""Asking a model's server for its window, on the client's background thread."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from evennia_ai.llm_interaction.windows import (
    SHOWN,
    Window,
    from_loaded,
    from_models,
    from_props,
    from_shown,
    least,
    may_be_asked,
    root_of,
)

TIMEOUT_S = 2.0


class Answer(NamedTuple):
    """What a server says of a model's window.

    Args:
        window: None if it says nothing.
        is_final: Whether asking again soon would give the same answer. Not so where nobody
            listens, and where the model is not loaded yet.
    """

    window: Window | None
    is_final: bool


async def ask_server(address: str, api_key: str | None, model: str) -> Answer:
    """Ask a server for the window of a model, by the name that the server knows.

    Takes at most `TIMEOUT_S`. A big provider is not asked.
    """
    if not may_be_asked(address):
        return Answer(None, True)
    httpx = importlib.import_module("httpx")
    root, headers = root_of(address), {"Authorization": f"Bearer {api_key}"} if api_key else {}
    is_reached = False

    async def asked(method: str, path: str, **options: object) -> object:
        """The JSON of an answer; None for anything else."""
        nonlocal is_reached
        try:
            response = await client.request(method, root + path, **options)
            is_reached |= response.status_code < 500  # llama.cpp is still loading
            return response.json() if response.status_code == 200 else None
        except httpx.TimeoutException:
            is_reached = True  # it listens; another wait would be as long
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            pass
        return None

    async def read(
        answer: Awaitable[object], reader: Callable[..., Window | None], *args: str
    ) -> Window | None:
        return reader(await answer, *args)

    # A context for TLS takes long to make.
    verify = address.startswith("https:")
    async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, verify=verify) as client:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await asyncio.gather(
                    read(asked("GET", "/props"), from_props),
                    read(asked("GET", "/v1/models"), from_models, model),
                )
                if is_reached and not any(found):
                    found = await asyncio.gather(
                        read(asked("GET", "/api/ps"), from_loaded, model),
                        read(asked("POST", "/api/show", json={"model": model}), from_shown),
                    )
        except TimeoutError:
            return Answer(None, True)
    window = least(found)
    is_guess = window is not None and window.source == SHOWN
    return Answer(window, is_reached and not is_guess)
