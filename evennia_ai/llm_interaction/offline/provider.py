"""The offline model as a LiteLLM provider: `register` it, then call ``offline/extractive``."""

import importlib
import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.tool_calls import tool_call
from evennia_ai.llm_interaction.values import OFFLINE_MODEL

PROVIDER = "offline"


def register(litellm: ModuleType) -> Any:
    """Make ``offline/extractive`` callable through LiteLLM; returns the handler. Idempotent."""
    for entry in litellm.custom_provider_map:
        if entry["provider"] == PROVIDER:
            return entry["custom_handler"]

    class OfflineModel(litellm.CustomLLM):  # type: ignore[misc, name-defined]
        """Answers chat requests by `brain.respond`, in the calling thread."""

        def completion(self, *args: object, **kwargs: object) -> Any:
            """Answer a request; takes what LiteLLM hands a custom provider."""
            return _answer(kwargs, litellm)

        async def acompletion(self, *args: object, **kwargs: object) -> Any:
            """Answer a request; a few milliseconds of work, so nothing is awaited."""
            return _answer(kwargs, litellm)

    handler = OfflineModel()
    litellm.custom_provider_map.append({"provider": PROVIDER, "custom_handler": handler})
    # LiteLLM finds the provider by the model's name then.
    importlib.import_module("litellm.utils").custom_llm_setup()
    facts: dict[str, Any] = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    facts |= {"max_tokens": 200_000, "max_input_tokens": 200_000, "max_output_tokens": 4096}
    facts |= {"litellm_provider": PROVIDER, "mode": "chat", "supports_function_calling": True}
    litellm.register_model({OFFLINE_MODEL: facts})
    respond([{"role": "user", "content": "hello"}])  # reads its tables, which takes a moment
    return handler


def _answer(kwargs: Mapping[str, Any], litellm: ModuleType) -> Any:
    """LiteLLM's response; nobody is billed for its tokens, which are not counted here."""
    messages: Sequence[Mapping[str, Any]] = kwargs.get("messages") or ()
    options = kwargs.get("optional_params") or {}
    reply = respond(messages, options.get("tools") or ())
    calls = []
    for index, call in enumerate(reply.tool_calls):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        calls.append(tool_call(f"call_{len(messages)}_{index}", call.name, arguments))
    content = reply.content if calls else reply.content or ""
    message = {"role": "assistant", "content": content, "tool_calls": calls or None}
    reason = "tool_calls" if calls else "stop"
    return litellm.ModelResponse(
        model=OFFLINE_MODEL,
        choices=[{"index": 0, "finish_reason": reason, "message": message}],
        usage=litellm.Usage(),
    )
