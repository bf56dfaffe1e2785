"""Model servers that run on this machine, found at their usual ports by their lists of models.

::

    for server in find_servers():
        for model in server.models:
            print(*server.settings(model))
"""

import asyncio
import importlib
from dataclasses import dataclass

from evennia_ai.history.stored import as_dicts, as_text

LOOPBACK = "127.0.0.1"
# Longest time of the whole search.
LIMIT_S = 1.5
# A name that is longer is no model.
MOST_CHARS, MOST_MODELS = 200, 20


@dataclass(frozen=True)
class ServerKind:
    """A program that serves models."""

    name: str
    port: int  # where it listens unless it is told otherwise
    provider: str  # LiteLLM's name of its protocol
    path: str = "/v1"  # of the address that LiteLLM takes


KINDS = (
    ServerKind("Ollama", 11434, "ollama_chat", path=""),
    ServerKind("llama.cpp's server", 8080, "openai"),
    ServerKind("LM Studio", 1234, "openai"),
    ServerKind("vLLM", 8000, "hosted_vllm"),
)


@dataclass(frozen=True)
class LocalServer:
    """A server that answered."""

    name: str  # of the program that usually has its port
    api_base: str  # the address that LiteLLM takes
    models: tuple[str, ...]  # LiteLLM's names of its models, `MOST_MODELS` at most

    def settings(self, model: str) -> tuple[str, str]:
        """The two lines of a game's settings that choose one of its models."""
        names = {"EVENNIA_AI_LLM_MODEL": model, "EVENNIA_AI_LLM_API_BASE": self.api_base}
        model_line, base_line = (f"{name} = {value!r}" for name, value in names.items())
        return model_line, base_line


def find_servers() -> list[LocalServer]:
    """The servers that answer with a list of models, in the order of `KINDS`.

    Blocks for `LIMIT_S` at most: never call it on the reactor thread. No key is sent, no proxy is
    used and no redirect is followed.
    """
    return asyncio.run(_find_servers())


async def _find_servers() -> list[LocalServer]:
    httpx = importlib.import_module("httpx")  # it takes long to load

    async def ask(kind: ServerKind) -> LocalServer | None:
        """The server at a port; None if nobody answers, or not with a list of models."""
        host = f"http://{LOOPBACK}:{kind.port}"
        try:
            async with asyncio.timeout(LIMIT_S):
                response = await client.get(f"{host}/v1/models")
            listed = response.json()["data"]
        except (TimeoutError, httpx.HTTPError, ValueError, LookupError, TypeError, RecursionError):
            return None
        if not isinstance(listed, list | None):
            return None
        names = [as_text(entry.get("id")) for entry in as_dicts(listed)]
        usable = [name for name in names if 0 < len(name) <= MOST_CHARS and name.isprintable()]
        models = tuple(f"{kind.provider}/{name}" for name in usable[:MOST_MODELS])
        return LocalServer(kind.name, f"{host}{kind.path}", models)

    # A context for TLS takes long to make.
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=None) as client:
        servers = await asyncio.gather(*map(ask, KINDS))
    return [server for server in servers if server is not None]
