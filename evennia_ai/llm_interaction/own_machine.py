"""Which models run on the game's own machine: nobody is billed for them, no proxy leads there."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

# Providers that LiteLLM looks for on this machine, unless a variable names another address.
_LOCAL = ("docker_model_runner", "lemonade", "llamafile", "ollama", "xinference")


def runs_here(model: str, home: str, api_base: str | None, environ: Mapping[str, str] = {}) -> bool:
    """Whether a model is the offline one, or on a server at this machine's loopback address.

    Args:
        model: LiteLLM's name of it.
        home: The model that `api_base` was configured for: it serves those of the same provider.
        api_base: The configured address; None for each provider's own.
        environ: The environment, in which LiteLLM finds providers' addresses.
    """
    provider, slash, _ = model.partition("/")
    if provider == "offline":
        return True
    name = provider.removesuffix("_chat")
    address = environ.get(f"{name.upper()}_API_BASE", "")
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
