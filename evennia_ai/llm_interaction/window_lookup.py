"""Asks servers for the windows of their models."""

import asyncio
import importlib
from typing import Any

from evennia_ai.llm_interaction.windows import (
    LOADED,
    MODELS,
    PROPS,
    SHOWN,
    Window,
    window_in,
)

TIMEOUT_S = 2.0


async def ask_server(address: str, api_key: str | None, model: str) -> tuple[Window | None, bool]:
    """Ask a server for the window of a model, by the name that the server knows, for `TIMEOUT_S`.

    Returns it, None if the server says nothing, and whether asking again soon would give the same.
    Not so where nobody listens, and where the model is not loaded yet.
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
            return None, True
    window = min(filter(None, windows), key=lambda each: each.tokens, default=None)
    is_guess = window is not None and window.source == SHOWN
    return window, is_reached and not is_guess
