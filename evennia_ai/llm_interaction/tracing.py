"""Traces of model calls for OpenTelemetry and Langfuse, by LiteLLM's own callbacks; off by default.

Neither prompts nor replies are sent unless the setting says so.
"""

import importlib.util
from collections.abc import Collection
from dataclasses import dataclass
from types import ModuleType

_OTLP = ("opentelemetry.exporter.otlp.proto.http", "evennia-ai[otel]")
# LiteLLM's names of the callbacks, with the module that each needs and what pip must install.
CALLBACKS = {"otel": _OTLP, "langfuse": ("langfuse", "langfuse"), "langfuse_otel": _OTLP}


# The name that lets callbacks have prompts and replies.
TEXTS = "texts"


def missing_package(callback: str) -> str:
    """What pip must install for one of `CALLBACKS`; empty if nothing is missing."""
    module, package = CALLBACKS[callback]
    try:
        return "" if importlib.util.find_spec(module) else package
    except ImportError:
        return package


@dataclass(frozen=True)
class Tracing:
    """Who is told of each model call.

    Args:
        callbacks: Names of `CALLBACKS`; one that is unknown or whose package is missing is skipped.
        texts: Whether they get prompts and replies too.
    """

    callbacks: tuple[str, ...] = ()
    texts: bool = False

    @classmethod
    def from_setting(cls, names: Collection[str]) -> "Tracing":
        """By the names of callbacks, and `TEXTS`."""
        known = (name for name in names if name in CALLBACKS)
        return cls(tuple(name for name in known if not missing_package(name)), TEXTS in names)

    def switch_on(self, litellm: ModuleType) -> None:
        """Give LiteLLM the callbacks."""
        kept = vars(litellm)
        kept["turn_off_message_logging"] = not (self.callbacks and self.texts)
        kept["callbacks"] = [name for name in self.callbacks if name != "langfuse"]
        if "langfuse" in self.callbacks:
            kept["success_callback"] = kept["failure_callback"] = ["langfuse"]
