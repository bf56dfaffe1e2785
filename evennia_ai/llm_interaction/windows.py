"""A model's context window: who says it, and what it is after an overflow. No I/O.

A window is what a server says, or what an overflow names. Usage figures say nothing about it: some
servers count thoughts and tools into a prompt, others leave out what they had in their cache.
"""

import re
from dataclasses import dataclass

from evennia_ai.history.stored import as_dict, as_list

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
    return int(value) if LEAST_TOKENS <= value <= MOST_TOKENS else None


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
        named = [each for each in listed if each.get("id", each.get("name")) in names]
        entry = (named or listed if len(listed) == 1 else [*named, {}])[0]
    values = re.findall(r"^num_ctx\s+(\d+)", str(entry.get("parameters")), re.MULTILINE)
    for part in (entry, *map(as_dict, entry.values())):
        values += [part[name] for name in part if str(name).rpartition(".")[2] in _KEYS]
    return next((Window(tokens, source) for each in values if (tokens := as_window(each))), None)
