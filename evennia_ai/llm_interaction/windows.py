"""A model's context window: who says it, and what it is after an overflow. No I/O.

A window is what a server says, or what an overflow names. Usage figures say nothing about it: some
servers count thoughts and tools into a prompt, others leave out what they had in their cache.
"""

import re
from dataclasses import dataclass, replace

from evennia_ai.history.records import as_dict, as_list

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


@dataclass(frozen=True)
class KnownWindow:
    """What is known of one model's window."""

    served: Window | None = None  # what the server says
    refused: Window | None = None  # what an overflow told

    def limit(self, listed: int | None = None) -> Window | None:
        """What prompt and reply may hold by our count; None if nothing is known.

        `listed` is the window in LiteLLM's table.
        """
        in_table = Window(listed, TABLE) if listed else None
        known = [each for each in (self.refused, self.served, in_table) if each]
        if not known:
            return None
        return min(known, key=lambda each: each.tokens)

    def told(self, served: Window | None) -> "KnownWindow":
        """With what the server says now; another figure than before replaces what was refused."""
        if served is None or served == self.served:
            return self
        is_new = self.served is not None and self.served.tokens != served.tokens
        return replace(self, served=served, refused=None if is_new else self.refused)

    def overflowed(
        self, named: int | None, prompt_tokens: int, reply_tokens: int, listed: int | None = None
    ) -> "KnownWindow":
        """With the window that an overflow named: the limit becomes less than what was refused.

        The request is by our count; one that nobody counted (0) changes only the window that is
        named.
        """
        known, before = self, self.refused
        size = prompt_tokens + reply_tokens if prompt_tokens else 0
        if named and (before is None or before.source == HALVED or named < before.tokens):
            known = replace(known, refused=Window(named, NAMED))
        limit = known.limit(listed)
        if not size or limit is not None and limit.tokens < size:
            return known
        half = size // 2
        if half < USABLE_TOKENS < size:
            half = USABLE_TOKENS
        return replace(known, refused=Window(max(1, half), HALVED))


def as_window(value: object) -> int | None:
    """A number, or the digits of one, as a size in tokens; None if it cannot be one."""
    if isinstance(value, str) and len(value) < 15 and value.replace(",", "").isdecimal():
        value = int(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if LEAST_TOKENS <= value <= MOST_TOKENS else None


_KEYS = (
    *("max_model_len", "loaded_context_length", "context_window", "context_length", "n_ctx"),
    "max_seq_len",
)


def window_in(answer: object, model: str, source: str) -> Window | None:
    """The window of a model in a server's answer: of a list the model's entry, or the only one.

    llama.cpp has `n_ctx` of a slot in its settings and in `meta`; Ollama the configured window
    among its parameters, else the largest one of the model in its facts; TabbyAPI has it among its
    parameters; KoboldCpp answers with a value alone; others name it in the entry itself.
    """
    entry = as_dict(answer)
    if "data" in entry or "models" in entry:
        listed = [as_dict(each) for each in as_list(entry.get("data") or entry.get("models"))]
        names = (model, f"{model}:latest")  # a tag may be missing
        named = [e for e in listed for key in ("id", "name") if e.get(key) in names]
        entry = (named or listed if len(listed) == 1 else [*named, {}])[0]
    parts = (entry, as_dict(entry.get("meta")), as_dict(entry.get("default_generation_settings")))
    parameters, facts = entry.get("parameters"), as_dict(entry.get("model_info"))
    values = [part.get(key) for part in (*parts, as_dict(parameters)) for key in _KEYS]
    values += [entry.get("value")] if source == KOBOLD else []
    values += re.findall(r"^num_ctx\s+(\d+)", str(parameters or ""), re.MULTILINE)
    values += [value for name, value in facts.items() if str(name).endswith(".context_length")]
    return next((Window(tokens, source) for each in values if (tokens := as_window(each))), None)
