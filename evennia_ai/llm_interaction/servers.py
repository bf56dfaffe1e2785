"""Servers of models: which run on the game's own machine, and what their pages say of a window.

A window is what a server says, or what an overflow names. Usage figures say nothing about it: some
servers count thoughts and tools into a prompt, others leave out what they had in their cache.

::

    for server in find_servers():
        for model in server.models:
            print(*server.settings(model))
"""

import asyncio
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from evennia_ai.history.stored import as_dict, as_dicts, as_list, as_text

# Longest time that a server has to say its window.
LOOKUP_S = 2.0
LOOPBACK = "127.0.0.1"
# Longest time of the whole search.
LIMIT_S = 1.5
# A name that is longer is no model.
MOST_CHARS, MOST_MODELS = 200, 20
# Providers that LiteLLM looks for on this machine, unless a variable names another address.
_LOCAL = ("docker_model_runner", "lemonade", "llamafile", "ollama", "xinference")
# How the names of such variables end.
API_BASE = "_API_BASE"
# Numbers outside this range are no window of a model.
LEAST_TOKENS, MOST_TOKENS = 128, 100_000_000
# A model with a smaller window can only talk. A guess is smaller only where that was refused.
USABLE_TOKENS = 2_048

TABLE = "LiteLLM's table"
PROPS, MODELS = "the server's `/props`", "the server's `/v1/models`"
LOADED, SHOWN = "Ollama's `/api/ps`", "Ollama's `/api/show`"
STUDIO = "LM Studio's `/api/v0/models`"
KOBOLD = "KoboldCpp's `/api/extra/true_max_context_length`"
TABBY = "TabbyAPI's `/v1/model`"
# The pages that say it, each with its method and path. llama.cpp's router wants the model named.
PAGES = (
    (PROPS, "GET", "/props?model={model}"),
    (MODELS, "GET", "/v1/models"),
    (LOADED, "GET", "/api/ps"),
    (SHOWN, "POST", "/api/show"),
    (STUDIO, "GET", "/api/v0/models"),
    (KOBOLD, "GET", "/api/extra/true_max_context_length"),
    (TABBY, "GET", "/v1/model"),
)
NAMED = "an overflow error that names it"
HALVED = "half of a request that was refused as too large"


@dataclass(frozen=True)
class Window:
    """A window in tokens, and where the figure comes from, in words."""

    tokens: int
    source: str

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, by {self.source}"


def as_window(value: object) -> int | None:
    """A number, or the digits of one, as a size in tokens; None if it cannot be one."""
    if isinstance(value, str) and len(value) < 15 and value.replace(",", "").isdecimal():
        value = int(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if LEAST_TOKENS <= value <= MOST_TOKENS:
        return int(value)
    return None


_KEYS = (
    *("max_model_len", "loaded_context_length", "context_window", "context_length", "n_ctx"),
    *("max_seq_len", "value"),
)


def window_in(answer: object, model: str, source: str) -> Window | None:
    """The window of a model in a server's answer: of a list the model's entry, or the only one.

    It stands under one of some names in the entry or in one of its parts, in Ollama's facts behind
    the family's name; the window that Ollama is configured for is in the text of its parameters.
    """
    entry = as_dict(answer)
    if "data" in entry or "models" in entry:
        listed = [as_dict(each) for each in as_list(entry.get("data") or entry.get("models"))]
        names = (model, f"{model}:latest")  # a tag may be missing
        if len(listed) > 1:
            listed = [each for each in listed if each.get("id", each.get("name")) in names]
        entry = next(iter(listed), {})
    values = re.findall(r"^num_ctx\s+(\d+)", str(entry.get("parameters")), re.MULTILINE)
    for part in (entry, *map(as_dict, entry.values())):
        values += [part[name] for name in part if str(name).rpartition(".")[2] in _KEYS]
    return next((Window(tokens, source) for each in values if (tokens := as_window(each))), None)


async def _page(client: Any, method: str, url: str, limit_s: float, body: object = None) -> Any:
    """What a server's page says, as a value of JSON; None without such an answer in time."""
    httpx = importlib.import_module("httpx")
    try:
        async with asyncio.timeout(limit_s):
            response = await client.request(method, url, json=body)
        if response.is_success:
            return response.json()
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
    return None


async def ask_server(address: str, api_key: str | None, model: str) -> Window | None:
    """Ask a server for the window of a model, by the name that the server knows, for `LOOKUP_S`.

    Returns the least that its pages say; None if it says nothing.
    """
    if api_key and not api_key.isascii():
        return None  # the first request says so
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def asked(source: str, method: str, path: str) -> Window | None:
        page = address.rstrip("/").removesuffix("/v1") + path.format(model=quote(model, safe=""))
        body = {"model": model} if method == "POST" else None
        return window_in(await _page(client, method, page, LOOKUP_S, body), model, source)

    httpx = importlib.import_module("httpx")
    # A context for TLS takes long to make.
    verify = address.startswith("https:")
    async with httpx.AsyncClient(headers=headers, timeout=None, verify=verify) as client:
        windows = await asyncio.gather(*(asked(*page) for page in PAGES))
    return min(filter(None, windows), key=lambda each: each.tokens, default=None)


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
        base = f"EVENNIA_AI_LLM_API_BASE = {self.api_base!r}"
        return f"EVENNIA_AI_LLM_MODEL = {model!r}", base


def find_servers() -> list[LocalServer]:
    """The servers that answer with a list of models, in the order of `KINDS`.

    Blocks for `LIMIT_S` at most: never call it on the reactor thread. No key is sent, no proxy is
    used and no redirect is followed.
    """
    return asyncio.run(_find_servers())


async def _find_servers() -> list[LocalServer]:
    httpx = importlib.import_module("httpx")  # it takes long to load
    hosts = [f"http://{LOOPBACK}:{kind.port}" for kind in KINDS]
    # A context for TLS takes long to make.
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=None) as client:
        pages = (_page(client, "GET", f"{host}/v1/models", LIMIT_S) for host in hosts)
        answers = await asyncio.gather(*pages)
    servers = []
    for kind, host, answer in zip(KINDS, hosts, map(as_dict, answers), strict=True):
        if isinstance(answer.get("data", ""), list | None):
            names = [as_text(entry.get("id")) for entry in as_dicts(answer["data"])]
            usable = [name for name in names if 0 < len(name) <= MOST_CHARS and name.isprintable()]
            models = tuple(f"{kind.provider}/{name}" for name in usable[:MOST_MODELS])
            servers.append(LocalServer(kind.name, f"{host}{kind.path}", models))
    return servers


@lru_cache(maxsize=100)  # each model call asks several times
def runs_here(
    model: str, home: str, api_base: str | None, environ: tuple[tuple[str, str], ...] = ()
) -> bool:
    """Whether a model is the offline one, or on a server at this machine's loopback address.

    Args:
        model: LiteLLM's name of it.
        home: The model that `api_base` was configured for: it serves those of the same provider.
        api_base: The configured address; None for each provider's own.
        environ: Variables of the environment in which LiteLLM finds providers' addresses.
    """
    provider, slash, _ = model.partition("/")
    if provider == "offline":
        return True
    name = provider.removesuffix("_chat")
    address = dict(environ).get(f"{name.upper()}{API_BASE}", "")
    if name in _LOCAL:
        address = address or "http://localhost"
    if api_base and (not slash or provider == home.partition("/")[0]):
        address = api_base
    return _is_at(address, "is_loopback", "localhost")


def is_near(address: str) -> bool:
    """Whether an address is of this machine or of its own network: nobody else's server."""
    return _is_at(address, "is_private", "localhost", "local", "internal", "lan")


def _is_at(address: str, kind: str, *ends: str) -> bool:
    """Whether an address is a number of a kind, or a name that ends so."""
    host = urlsplit(address).hostname or ""
    try:
        return bool(getattr(ip_address(host), kind))
    except ValueError:
        return host.rpartition(".")[2] in ends


def without_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which no proxy of an environment stands before this machine's servers.

    Libraries read the one or the other spelling.
    """
    hosts = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    every = dict.fromkeys([*filter(None, map(str.strip, hosts)), "localhost", "127.0.0.1", "::1"])
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(every))
