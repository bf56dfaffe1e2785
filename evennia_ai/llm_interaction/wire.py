"""LiteLLM itself: loading it, calling it, reading what it returns or raises.

Everything here runs on the client's background thread, never on the reactor's.
"""

import functools
import importlib
import json
import logging
import os
import re
import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from evennia_ai.history.stored import as_amount, as_count, as_dict, as_dicts, as_list, as_text
from evennia_ai.language.words import storable, storable_json, storable_value
from evennia_ai.llm_interaction.bodies import plain_body
from evennia_ai.llm_interaction.dialects import MOST_CALLS, Read, read, repaired
from evennia_ai.llm_interaction.failures import Failure, failure_of_end, sorted_failure
from evennia_ai.llm_interaction.profiles import UNKNOWN, ModelProfile, reshaped
from evennia_ai.llm_interaction.servers import without_proxy
from evennia_ai.llm_interaction.tokens import TokenCounter, use_shipped_vocabularies
from evennia_ai.llm_interaction.tool_calls import ChatToolCall, tool_call
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest

_OFFLINE = "offline"
OFFLINE_PREFIX = f"{_OFFLINE}/"
# OpenAI's client insists on a key; local servers accept any.
_NO_KEY = "none"
_MASK = "***"
_KEY_SHAPES = re.compile(r"(?i)(bearer\s+|://)(?:\S+(?=@)|(?<=\s)\S+)|\b(?:sk|pk|key)-[\w-]{6,}")
_DETAIL_CHARS = 300
# Anthropic's models, wherever they are served, cache a prompt up to marked messages: the rules,
# what stands before the volatile newest message, and that one, for the next request of the same
# turn. The newer ones refuse a request with both a temperature and `top_p`; LiteLLM sends both.
_CLAUDE = "claude"
_CACHED = [
    {"location": "message", "role": "system"},
    {"location": "message", "index": -2},
    {"location": "message", "index": -1},
]
_OWN_SERVERS_ONLY = ("min_p", "repeat_penalty", "repetition_penalty")
_EFFORTS = {"off": "none", "low": "low", "high": "high"}
# For what a provider did not count.
_count = TokenCounter("gpt-4")


@dataclass(frozen=True)
class Endpoint:
    """Where a model is reached."""

    model: str  # the name LiteLLM takes, with its provider
    provider: str = ""  # LiteLLM's name of the provider, empty if it knows none
    api_base: str | None = None  # address of the server, None for the provider's own
    # None to let LiteLLM find the provider's in the environment.
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_offline(self) -> bool:
        """Whether this is the package's own rule-based model: no network, always there."""
        return self.model.startswith(OFFLINE_PREFIX)


def load() -> ModuleType:
    """Import LiteLLM, quiet and without network, and register the offline model.

    The import takes seconds: never call this on the reactor thread.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.update(without_proxy(os.environ))
    use_shipped_vocabularies()
    litellm = importlib.import_module("litellm")
    # Its messages can quote prompts, and Pydantic quotes replies of an odd form in a warning.
    vars(litellm).update(suppress_debug_info=True, set_verbose=False, turn_off_message_logging=True)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    vars(litellm).update(drop_params=True, num_retries=0)
    importlib.import_module("evennia_ai.llm_interaction.offline.provider").register(litellm)
    return litellm


async def rehearse(litellm: ModuleType) -> None:
    """Make one call that never leaves the process: LiteLLM imports half of itself at the first."""
    importlib.import_module("litellm.llms.openai.openai")
    said = [{"role": "user", "content": "ready?"}]
    tool = {"type": "function", "function": {"name": "noop", "parameters": {}}}
    await litellm.acompletion(
        model="openai/rehearsal", messages=said, tools=[tool], mock_response="ready"
    )


def provider_of(litellm: ModuleType, model: str) -> str:
    """The provider a model's prefix names, empty without a known prefix."""
    prefix, slash, _ = model.partition("/")
    known = {str(getattr(one, "value", one)) for one in litellm.provider_list}
    return prefix * bool(slash and prefix in {*known, _OFFLINE})


def endpoint(
    litellm: ModuleType, model: str, home: str, api_base: str | None, api_key: str | None
) -> Endpoint:
    """Where a model is reached.

    The configured address and key belong to the provider of `home`, the model they were
    configured for. A model of another provider goes to that provider's own address with its own
    key, so that no provider ever gets another's key. A name without a known provider goes to the
    configured address, by OpenAI's protocol; beside the offline model that address is for such.
    """
    provider = provider_of(litellm, model)
    if provider == _OFFLINE:
        return Endpoint(model, provider)
    if not provider and api_base:
        return Endpoint(f"openai/{model}", "openai", api_base, api_key or _NO_KEY)
    if _family(litellm, model, api_base) != _family(litellm, home, api_base):
        return Endpoint(model, provider)
    if api_base and provider == "openai":
        api_key = api_key or _NO_KEY
    return Endpoint(model, provider, api_base, api_key)


def _family(litellm: ModuleType, model: str, api_base: str | None) -> str:
    """The provider a model belongs to, also for bare names as ``gpt-4o``."""
    provider = provider_of(litellm, model).removeprefix(_OFFLINE)  # which has no address
    if provider or api_base:
        return provider or "openai"
    try:
        return str(litellm.get_llm_provider(model)[1])
    except Exception:  # noqa: BLE001 - LiteLLM raises several kinds for names it does not know
        return ""


def texts_of(request: ModelRequest) -> str:
    """The texts of a request as a server may quote them: plain, and as JSON."""
    texts = (str(message.get("content") or "") for message in request.messages)
    plain = "\n".join([*texts, request.prompt or ""])
    return f"{plain}\n{json.dumps(plain)}\n{json.dumps(plain, ensure_ascii=False)}"


def further_fields(request: ModelRequest, where: Endpoint) -> dict[str, Any]:
    """How thinking and the further fields of a request are sent.

    LiteLLM translates `reasoning_effort` for each provider. Templates of models at a configured
    address read `enable_thinking`; such servers know more ways to choose words than providers do.
    """
    fields = {k: v for k, v in request.extra.items() if v is not None}
    if "temperature" in fields and _CLAUDE in where.model:
        fields.pop("top_p", None)
    local = {name: fields.pop(name) for name in _OWN_SERVERS_ONLY if name in fields}
    if request.thinking != "default":
        fields["reasoning_effort"] = _EFFORTS[request.thinking]
        local["chat_template_kwargs"] = {"enable_thinking": request.thinking != "off"}
    if where.api_base and local:
        if request.thinking == "off":
            del fields["reasoning_effort"]
        fields["extra_body"] = {**local, **fields.get("extra_body", {})}
    return fields


async def call(
    litellm: ModuleType, where: Endpoint, request: ModelRequest, profile: ModelProfile = UNKNOWN
) -> ModelReply | Failure:
    """Make one HTTP call through LiteLLM, in the shape of a profile.

    Raises whatever LiteLLM raises; see `failure_of`.
    """
    request = reshaped(request, profile)
    options: dict[str, Any] = {
        "model": where.model,
        "api_base": where.api_base,
        "api_key": where.api_key,
        "stop": request.stop or None,
        profile.limit_field: request.max_tokens,
        # The request's own timeout, not the time left: LiteLLM keeps one client per value.
        "timeout": request.timeout_s,
        "max_retries": 0,
        "num_retries": 0,
        **further_fields(request, where),
    }
    if "names_thinking" in profile.flags:
        options.setdefault("extra_body", {})["enable_thinking"] = False
    for name in profile.flags:
        options.pop(name, None)
        options.get("extra_body", {}).pop(name, None)
    is_completion, ask = request.api == "completion" and not where.is_offline, litellm.acompletion
    if is_completion:
        options["prompt"], ask = request.prompt or "", litellm.atext_completion
    else:
        prompt = {"role": "user", "content": request.prompt or ""}
        options |= {"messages": request.messages or (prompt,), "tools": request.tools or None}
        if _CLAUDE in where.model.lower():
            options["cache_control_injection_points"] = _CACHED
    options = storable_value(options)
    if where.provider == "openai" and (is_completion or where.api_base):
        options["client"] = _client(where)
    return _read(litellm, await ask(**options), where, request)


@functools.lru_cache(maxsize=64)
def _client(where: Endpoint) -> Any:
    """A kept client: LiteLLM would make a new one for each text completion and leak it.

    It gives odd bodies of replies as plain JSON, see `bodies`.
    """
    openai, httpx = importlib.import_module("openai"), importlib.import_module("httpx")

    class Client(openai.DefaultAsyncHttpxClient):  # type: ignore[name-defined,misc]
        async def send(self, request: Any, **options: Any) -> Any:
            response = await super().send(request, **options)
            if not response.is_success:
                return response
            body = plain_body(await response.aread())
            headers = {"content-type": "application/json"}
            return httpx.Response(200, headers=headers, content=body, request=request)

    return openai.AsyncOpenAI(
        api_key=where.api_key,
        base_url=where.api_base,
        max_retries=0,
        http_client=Client(base_url=where.api_base),
    )


def _read(
    litellm: ModuleType, response: Any, where: Endpoint, request: ModelRequest
) -> ModelReply | Failure:
    """LiteLLM's response, of a chat or a text completion, as a reply."""
    raw = storable_value(response.model_dump())
    choice = as_dict(next(iter(as_list(raw.get("choices"))), None))
    message, usage = as_dict(choice.get("message")), as_dict(raw.get("usage"))
    if not message and "text" not in choice:
        return Failure("bad_response")
    if failure := _fault(choice, message):
        return failure
    text = as_text(message.get("content", choice.get("text"))).strip()
    for stop in request.stop:  # some servers know no stops
        text = text.partition(stop)[0]
    if request.stop:  # as prose has it: "Good evening," she says.
        text = text.rstrip(" ,")
    answer = Read(text)
    cost: float | None = 0.0
    if not where.is_offline:  # that one quotes what was said, marks and all
        answer = read(text, request.called, request.reported)
        try:
            cost = float(litellm.completion_cost(completion_response=response, model=where.model))
        except Exception:  # noqa: BLE001 - LiteLLM raises a bare Exception for unpriced models
            cost = None
    made = as_dicts(message.get("tool_calls"))
    thoughts = as_text(message.get("reasoning_content"))
    # Out of the provider's cache, as OpenAI or as Anthropic names them.
    cached = as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")
    return ModelReply(
        content=answer.text,
        tool_calls=_tool_calls(made[:MOST_CALLS], answer.calls, request),
        finish_reason=as_text(choice.get("finish_reason")) or "stop",
        prompt_tokens=as_count(usage.get("prompt_tokens")) or request.prompt_tokens,
        completion_tokens=as_count(usage.get("completion_tokens")) or _count(thoughts + text),
        cost=cost,
        cached_tokens=as_count(cached or usage.get("cache_read_input_tokens")),
    )


def _fault(choice: Mapping[str, Any], message: Mapping[str, Any]) -> Failure | None:
    """Why something is no reply that a filter or an error ended, or that is a refusal."""
    more = as_dict(choice.get("provider_specific_fields"))
    if error := more.get("error"):
        return sorted_failure("server", None, str(error))
    refused = "refusal" * bool(message.get("refusal"))
    return failure_of_end((choice.get("finish_reason"), more.get("native_finish_reason"), refused))


def _tool_calls(
    made: Sequence[Mapping[str, Any]], written: Sequence[tuple[str, str]], request: ModelRequest
) -> tuple[ChatToolCall, ...]:
    """A provider's calls, else those written as text, in the chat format.

    Each gets an id of its own: some servers number their calls from 0 in each reply.
    """
    used = {""}
    for message in request.messages:
        used.update(str(call["id"]) for call in as_dicts(message.get("tool_calls")))
    rows = [("", *call) for call in written]
    if made:
        rows = []
    for call in made:
        function = as_dict(call.get("function"))
        name, arguments = as_text(function.get("name")), as_text(function.get("arguments"))
        rows.append((as_text(call.get("id")), *repaired(name, arguments, request.called)))
    calls = []
    for call_id, name, arguments in rows:
        if call_id in used:
            call_id = "call_" + secrets.token_hex(12)
        used.add(call_id)
        calls.append(tool_call(call_id, name, storable_json(arguments)))
    return tuple(calls)


def masked(text: str, *keys: str | None) -> str:
    """A provider's text made fit to show: keys masked, one line, at most 300 characters."""
    for key in filter(None, keys):
        text = text.replace(key, _MASK)
    text = _KEY_SHAPES.sub(lambda found: (found.group(1) or "") + _MASK, text)
    return " ".join(storable(text).split())[:_DETAIL_CHARS]


def window_of(litellm: ModuleType, model: str) -> int | None:
    """Most tokens of a model's input by LiteLLM's list; None if it is not listed.

    Reads the table only: LiteLLM's own function may ask a server, which must not happen on
    the reactor thread.
    """
    known = _listed(litellm, model)
    return as_count(known.get("max_input_tokens") or known.get("max_tokens")) or None


def price_of(litellm: ModuleType, where: Endpoint) -> tuple[float, float] | None:
    """US dollars for a token of a model's prompt and of its reply; None if it is not listed."""
    if where.is_offline:
        return 0.0, 0.0
    known = _listed(litellm, where.model)
    if known.get("input_cost_per_token") is None:
        return None
    reply = as_amount(known.get("output_cost_per_token"))
    return as_amount(known["input_cost_per_token"]), reply


def _listed(litellm: ModuleType, model: str) -> dict[str, Any]:
    """What LiteLLM's list has of a model, by its full or its bare name."""
    table = litellm.model_cost
    return as_dict(table.get(model) or table.get(model.partition("/")[2]))
