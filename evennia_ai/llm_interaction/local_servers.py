"""Model servers that run on this machine, found at their usual ports by their lists of models.

::

    for server in find_servers():
        for model in server.models:
            print(*server.settings(model))
"""

import json
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from threading import Thread

from evennia_ai.history.stored import as_dicts, as_text

LOOPBACK = "127.0.0.1"
# Longest time of the whole search.
LIMIT_S = 1.5
# A page or a name that is longer is no list of models, or no model.
MOST_BYTES, MOST_CHARS = 1_000_000, 200
MOST_MODELS = 20


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
    found: dict[ServerKind, LocalServer] = {}

    def ask(kind: ServerKind) -> None:
        if (names := _model_names(kind.port)) is not None:
            models = tuple(f"{kind.provider}/{name}" for name in names)
            address = f"http://{LOOPBACK}:{kind.port}{kind.path}"
            found[kind] = LocalServer(kind.name, address, models)

    # Who sends a byte now and then is left to its thread, which does not delay the process's end.
    threads = [Thread(target=ask, args=[kind], daemon=True) for kind in KINDS]
    ends = time.monotonic() + LIMIT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return [found[kind] for kind in KINDS if kind in found]


def _model_names(port: int) -> list[str] | None:
    """The models that a server lists; None if nobody answers, or not with a list of models."""
    try:
        with closing(HTTPConnection(LOOPBACK, port, timeout=LIMIT_S)) as connection:
            connection.request("GET", "/v1/models")
            answer = json.loads(connection.getresponse().read(MOST_BYTES))
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    if not isinstance(answer, Mapping) or not isinstance(answer.get("data", ""), list | None):
        return None
    names = (as_text(entry.get("id")) for entry in as_dicts(answer["data"]))
    usable = [name for name in names if 0 < len(name) <= MOST_CHARS and name.isprintable()]
    return usable[:MOST_MODELS]
