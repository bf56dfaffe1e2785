"""LiteLLM itself: loading it, calling it, reading what it returns or raises.

Everything here runs on the client's background thread, never on the reactor's.
"""

import asyncio
import contextlib
import functools
import gc
import importlib
import json
import logging
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.background import DaemonExecutor
from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.retry import Failure, retry_after_s
from evennia_ai.llm_interaction.tokens import use_shipped_vocabularies

OFFLINE_PREFIX = "offline/"
# OpenAI's client insists on a key; local servers take any.
_NO_KEY = "none"
_MASK = "***"
_KEY_SHAPES = re.compile(r"(?i)(bearer\s+|://)(?:\S+(?=@)|(?<=\s)\S+)|\b(?:sk|pk|key)-[\w-]{6,}")
_DETAIL_CHARS = 300


@dataclass(frozen=True)
class Endpoint:
    """Where a model is reached.

    Args:
        model: The name LiteLLM takes, with its provider.
        provider: LiteLLM's name of the provider, empty if it knows none.
        api_base: Address of the server, None for the provider's own.
        api_key: Key, None to let LiteLLM find the provider's in the environment.
    """

    model: str
    provider: str = ""
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_offline(self) -> bool:
        """Whether this is the package's own rule-based model: no network, always there."""
        return self.model.startswith(OFFLINE_PREFIX)


def load() -> Any:
    """Import LiteLLM, quiet and without network, and register the offline model.

    Returns:
        The module. The import takes seconds: never call this on the reactor thread.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    use_shipped_vocabularies()
    with _without_collections():
        litellm: Any = importlib.import_module("litellm")
    _quieten(litellm)
    litellm.drop_params = True
    litellm.num_retries = 0
    importlib.import_module("evennia_ai.offline.provider").register(litellm)
    return litellm


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """No cyclic garbage collection meanwhile.

    An import makes hundreds of thousands of objects that stay. Looking through them all stops
    every thread, the reactor's too, for a tenth of a second and more, several times.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _quieten(litellm: Any) -> None:
    """Stop LiteLLM from printing: its messages can quote prompts."""
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.turn_off_message_logging = True
    # Pydantic quotes replies of an odd form in a warning; we judge those ourselves.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


async def rehearse(litellm: Any) -> None:
    """Make one call that never leaves the process: LiteLLM imports half of itself at the first.

    All objects there are then belong to modules for good. They are frozen: a full collection
    that looks at them stops the reactor for some 0.2 s each time, for nothing.
    """
    with _without_collections():
        importlib.import_module("litellm.llms.openai.openai")
        importlib.import_module("evennia_ai.llm_interaction.openai_client")
        said = [{"role": "user", "content": "ready?"}]
        tool = {"type": "function", "function": {"name": "noop", "parameters": {}}}
        await litellm.acompletion(
            model="openai/rehearsal", messages=said, tools=[tool], mock_response="ready"
        )
        gc.freeze()


def provider_of(litellm: Any, model: str) -> str:
    """The provider a model's prefix names, empty without a known prefix."""
    prefix, slash, _ = model.partition("/")
    known = slash and prefix in {str(getattr(one, "value", one)) for one in litellm.provider_list}
    return prefix if known or prefix + slash == OFFLINE_PREFIX else ""


def endpoint(
    litellm: Any, model: str, home: str, api_base: str | None, api_key: str | None
) -> Endpoint:
    """Where a model is reached, given the configured address and whose it is.

    The configured address and key belong to the home model's provider. A model of another
    provider goes to that provider's own address with its own key, so that no key is ever sent
    to a stranger. A name without a known provider goes to the configured address, spoken to in
    OpenAI's way.

    Args:
        litellm: The module.
        model: The model wanted.
        home: The model the address and key were configured for.
        api_base: The configured address.
        api_key: The configured key.
    """
    provider = provider_of(litellm, model)
    if provider + "/" == OFFLINE_PREFIX:
        return Endpoint(model, provider)
    if not provider and api_base:
        return Endpoint(f"openai/{model}", "openai", api_base, api_key or _NO_KEY)
    if _family(litellm, model, api_base) != _family(litellm, home, api_base):
        return Endpoint(model, provider)
    key = api_key or (_NO_KEY if api_base and provider == "openai" else None)
    return Endpoint(model, provider, api_base, key)


def _family(litellm: Any, model: str, api_base: str | None) -> str:
    """The provider a model belongs to, also for bare names as ``gpt-4o``."""
    provider = provider_of(litellm, model)
    if provider or api_base:
        return provider or "openai"
    try:
        return str(litellm.get_llm_provider(model)[1])
    except Exception:  # noqa: BLE001 - LiteLLM raises several kinds for names it does not know
        return ""


class Caller:
    """Makes single calls, without retries, through LiteLLM.

    Args:
        litellm: The module.
    """

    def __init__(self, litellm: Any):
        self._litellm = litellm
        self._clients: dict[Endpoint, Any] = {}
        # The offline model computes instead of waiting: on the loop it would hold up the HTTP
        # calls, and on several threads the reactor would get too small a share of the lock.
        self._offline = DaemonExecutor("evennia-ai-offline", max_workers=1)

    async def call(self, where: Endpoint, request: Any) -> Any:
        """One HTTP call; returns LiteLLM's response or raises what LiteLLM raises.

        Args:
            where: The endpoint.
            request: A `ModelRequest`.
        """
        options = _options(where, request)
        if request.api == "completion" and not where.is_offline:
            return await self._complete_text(where, request, options)
        if request.tools:
            options["tools"] = list(request.tools)
        options["messages"] = [dict(one) for one in request.messages] or [_as_message(request)]
        if where.provider == "openai" and where.api_base:
            options["client"] = self._client(where)
        if where.is_offline:
            work = functools.partial(self._litellm.completion, **options)
            return await asyncio.get_running_loop().run_in_executor(self._offline, work)
        return await self._litellm.acompletion(**options)

    async def _complete_text(self, where: Endpoint, request: Any, options: dict[str, Any]) -> Any:
        if where.provider == "openai":
            options["client"] = self._client(where)
        return await self._litellm.atext_completion(prompt=request.prompt or "", **options)

    def _client(self, where: Endpoint) -> Any:
        """A kept client: LiteLLM would make a new one for each text completion and leak it."""
        if where not in self._clients:
            module = importlib.import_module("evennia_ai.llm_interaction.openai_client")
            self._clients[where] = module.PlainClient(
                api_key=where.api_key, base_url=where.api_base, max_retries=0
            )
        return self._clients[where]


def _as_message(request: Any) -> dict[str, Any]:
    return {"role": "user", "content": request.prompt or ""}


def _options(where: Endpoint, request: Any) -> dict[str, Any]:
    """Arguments both ways of calling share; what is unset is not sent at all."""
    optional = {
        "api_base": where.api_base,
        "api_key": where.api_key,
        "temperature": request.temperature,
        "stop": list(request.stop) or None,
    }
    return {
        "model": where.model,
        "max_tokens": request.max_tokens,
        # The request's own timeout, not the time left: LiteLLM keeps one client per value.
        "timeout": request.timeout_s,
        "max_retries": 0,
        "num_retries": 0,
        **{name: value for name, value in optional.items() if value is not None},
    }


def check(response: Any) -> None:
    """Raise `ModelError` unless a reply can be read from a response."""
    try:
        content_of(response)
        tool_calls_of(response, ())
        usage_of(response)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelError("the response has not the form of a reply") from error


def content_of(response: Any) -> str:
    """The reply's text, from a chat or a text completion."""
    choice = response.choices[0]
    message = getattr(choice, "message", None)
    raw = getattr(choice, "text", None) if message is None else message.content
    if isinstance(raw, list):
        return "".join(str(part.get("text", "")) for part in raw if isinstance(part, dict))
    return "" if raw is None else str(raw)


def tool_calls_of(response: Any, taken: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """The reply's tool calls in the chat format, each with an id of its own.

    Args:
        response: LiteLLM's response.
        taken: Ids already used in the conversation: some servers number from 0 in each reply.
    """
    message = getattr(response.choices[0], "message", None)
    seen = set(taken)
    return tuple(_tool_call(raw, seen) for raw in getattr(message, "tool_calls", None) or ())


def _tool_call(raw: Any, seen: set[str]) -> dict[str, Any]:
    call_id = str(getattr(raw, "id", None) or "")
    if not call_id or call_id in seen:
        call_id = "call_" + secrets.token_hex(12)
    seen.add(call_id)
    function = getattr(raw, "function", None)
    name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": call_id, "type": "function", "function": {"name": name or "", "arguments": text}}


def call_ids(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The ids of all tool calls in a conversation."""
    for message in messages:
        for made in message.get("tool_calls") or ():
            yield str(made.get("id", ""))


def usage_of(response: Any) -> tuple[int, int]:
    """Tokens of the prompt and of the reply as the provider counted, 0 where it did not."""
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens", 0) or 0
    return int(prompt), int(getattr(usage, "completion_tokens", 0) or 0)


def cost_of(litellm: Any, response: Any, where: Endpoint) -> float | None:
    """Price of a call in US dollars by LiteLLM's list, None for models not in it."""
    if where.is_offline:
        return 0.0
    try:
        return float(litellm.completion_cost(completion_response=response, model=where.model))
    except Exception:  # noqa: BLE001 - LiteLLM raises a bare Exception for models without a price
        return None


def failure_of(error: BaseException) -> Failure:
    """What an exception of LiteLLM, of the HTTP client or of a time limit means."""
    chain = tuple(_chain(error))
    status = next((code for link in chain if (code := _status(link))), None)
    kind = _kind(chain, status)
    retryable = kind in ("timeout", "rate_limit", "server", "connection", "bad_response")
    wait_s = next((s for link in chain if (s := retry_after_s(_headers(link))) is not None), None)
    return Failure(kind, retryable, status, wait_s, str(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it, outermost first."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int | None:
    """The HTTP status a server sent; LiteLLM's own exceptions carry invented ones."""
    if _package(error) == "litellm":
        return None
    code = getattr(error, "status_code", None)
    code = code or getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int) else None


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _headers(error: BaseException) -> dict[str, str]:
    for source in (getattr(error, "response", None), error):
        for name in ("headers", "litellm_response_headers"):
            headers = getattr(source, name, None)
            if headers:
                return {str(key).lower(): str(value) for key, value in headers.items()}
    return {}


# Names of exception classes anywhere in the chain, most telling first.
_KIND_BY_CLASS: tuple[tuple[str, str], ...] = (
    ("ModelError", "bad_response"),
    ("JSONDecodeError", "bad_response"),
    ("APIResponseValidationError", "bad_response"),
    ("ValidationError", "bad_response"),
    ("ContextWindowExceededError", "context_window"),
    ("ContentPolicyViolationError", "refused"),
    ("RateLimitError", "rate_limit"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("NotFoundError", "not_found"),
    ("Timeout", "timeout"),
    ("TimeoutError", "timeout"),
    ("APITimeoutError", "timeout"),
    ("APIConnectionError", "connection"),
    ("TransportError", "connection"),
    ("ClientError", "connection"),
    ("OSError", "connection"),
    # LiteLLM or the client stumbled over a body of the wrong form, and calls that a 500.
    ("AttributeError", "bad_response"),
    ("LookupError", "bad_response"),
    ("TypeError", "bad_response"),
    ("ValueError", "bad_response"),
)
_KIND_BY_STATUS = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
}


def _kind(chain: Sequence[BaseException], status: int | None) -> str:
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    told = next((kind for name, kind in _KIND_BY_CLASS if name in names), None)
    if status is None or status < 400:
        return told or _without_status(names)
    # A 400 may be about the window or the content; elsewhere the status says more than a name.
    if status in (400, 413, 422):
        return told if told in ("context_window", "refused") else "bad_request"
    return _KIND_BY_STATUS.get(status, "server" if status >= 500 else "bad_request")


def _without_status(names: set[str]) -> str:
    if "BadRequestError" in names:
        return "bad_request"
    return "server" if "APIError" in names else "bad_response"


def masked(text: str, *keys: str | None) -> str:
    """A provider's text made fit to show: no keys, one line, not long."""
    for key in filter(None, keys):
        text = text.replace(key, _MASK)
    text = _KEY_SHAPES.sub(lambda found: (found.group(1) or "") + _MASK, text)
    return " ".join(text.split())[:_DETAIL_CHARS]


def window_of(litellm: Any, model: str) -> int | None:
    """Most tokens a model takes in, from LiteLLM's list; None if it is not in it.

    Reads the table only: LiteLLM's own function may ask a server, which must not happen on
    the reactor thread.
    """
    for name in (model, model.partition("/")[2]):
        known = litellm.model_cost.get(name) if name else None
        limit = known and (known.get("max_input_tokens") or known.get("max_tokens"))
        if limit:
            return int(limit)
    return None


Count = Callable[[str], int]


def prompt_tokens(request: Any, count: Count) -> int:
    """Tokens of a request by our own counter, for servers that report no usage."""
    parts = [json.dumps(message, ensure_ascii=False) for message in request.messages]
    return sum(count(part) for part in parts) + count(request.prompt or "")
