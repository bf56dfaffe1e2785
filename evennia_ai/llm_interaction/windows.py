"""A model's context window, read from what servers answer and from overflow errors. No I/O.

A server says its window in the tokens of its own model. Our counter gives other figures for the
same text. `KnownWindow` keeps both apart and returns what a prompt may hold by our count.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from evennia_ai.history.records import as_dict, as_list

# Numbers outside this range are no window of a model.
LEAST_TOKENS, MOST_TOKENS = 128, 100_000_000
# A ratio of shorter prompts says more about the frame of a request than about its text.
RATIO_TOKENS, MOST_RATIO = 200, 8.0
# Ratios are rounded up to this step, so that the limit does not change with each reply.
RATIO_STEP = 0.05
# A server that refuses a request within its limit, without figures, may count more tokens than we
# do: the request is this many times too large then. A ratio over the second figure is less likely
# than a wrong window.
REFUSED_RATIO, MOST_GUESSED_RATIO = 1.25, 3.0

TABLE = "LiteLLM's table"
PROPS, MODELS = "the server's `/props`", "the server's `/v1/models`"
LOADED, SHOWN = "Ollama's `/api/ps`", "Ollama's `/api/show`"
NAMED = "an overflow error that names it"
HALVED = "half of a request that was refused as too large"
CUT = "the tokens that its server counts of longer prompts, which it cuts"

# A server that cuts prompts silently counts less than this part of the tokens that it usually
# counts, in so many prompts in a row, and about the same number each time.
CUT_PART, CUT_SEEN, CUT_SPREAD = 0.75, 3, 1.15
# Smaller counts are those of a server that leaves out what it had in its cache, or that guesses.
LEAST_CEILING = 1_500

# Addresses of providers whose windows LiteLLM's table has. They are never asked.
_PROVIDERS = (
    "openai.com",
    "anthropic.com",
    "googleapis.com",
    "azure.com",
    "amazonaws.com",
    "mistral.ai",
    "groq.com",
    "cohere.com",
    "openrouter.ai",
    "together.xyz",
    "together.ai",
    "deepseek.com",
    "x.ai",
    "fireworks.ai",
    "perplexity.ai",
    "huggingface.co",
    "cerebras.ai",
    "nvidia.com",
    "cloudflare.com",
)


@dataclass(frozen=True)
class Window:
    """A window in tokens, and where the figure comes from, in words."""

    tokens: int
    source: str

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, by {self.source}"


@dataclass(frozen=True)
class Overflow:
    """What an error says about a prompt that was too large, in the model's tokens.

    Args:
        window: The model's window, None if it is not named.
        prompt: Tokens of the prompt.
        total: Tokens of the prompt and the reply that was asked for.
    """

    window: int | None = None
    prompt: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class Refused:
    """A request that was refused as too large, by our count.

    Args:
        prompt_tokens: Tokens of the prompt; 0 if nobody counted.
        reply_tokens: Tokens reserved for the reply.
    """

    prompt_tokens: int
    reply_tokens: int


@dataclass(frozen=True)
class KnownWindow:
    """What is known of one model's window.

    Args:
        served: What the server says.
        refused: What an overflow told.
        ratio: The model's tokens for one of ours, at least 1.
        usual: The same ratio without that bound, the largest that was seen.
        ceilings: Suspiciously small counts of the newest prompts.
    """

    served: Window | None = None
    refused: Window | None = None
    ratio: float = 1.0
    usual: float = field(default=0.0, compare=False)
    ceilings: tuple[int, ...] = field(default=(), compare=False)

    def limit(self, listed: int | None = None) -> Window | None:
        """What prompt and reply may hold by our count; None if nothing is known.

        `listed` is the window in LiteLLM's table.
        """
        in_table = Window(listed, TABLE) if listed else None
        known = [each for each in (self.refused, self.served, in_table) if each]
        if not known:
            return None
        least = min(known, key=lambda each: each.tokens)
        if self.ratio <= 1:
            return least
        source = f"{least.source}, {least.tokens:,} of its own tokens, {self.ratio:.2f} for one "
        return Window(max(1, int(least.tokens / self.ratio)), f"{source}of ours")

    def told(self, served: Window | None) -> "KnownWindow":
        """With what the server says now; another figure than before replaces what was refused."""
        if served is None or served == self.served:
            return self
        is_new = self.served is not None and self.served.tokens != served.tokens
        return replace(self, served=served, refused=None if is_new else self.refused)

    def counted(self, ours: int, theirs: int) -> "KnownWindow":
        """With the two counts of one prompt: the ratio only grows."""
        if ours < RATIO_TOKENS:
            return self
        known = self._suspected(ours, theirs)
        if theirs <= ours:
            return known
        steps = math.ceil(round(theirs / ours / RATIO_STEP, 6))
        ratio = min(MOST_RATIO, round(steps * RATIO_STEP, 2))
        return replace(known, ratio=max(self.ratio, ratio))

    def _suspected(self, ours: int, theirs: int) -> "KnownWindow":
        """With the count of a prompt that the server may have cut."""
        usual = max(self.usual, theirs / ours)
        if not LEAST_CEILING <= theirs < CUT_PART * usual * ours:
            return replace(self, usual=usual, ceilings=())
        ceilings = (*self.ceilings, theirs)[-CUT_SEEN:]
        known, most = replace(self, usual=usual, ceilings=ceilings), max(ceilings)
        if len(ceilings) < CUT_SEEN or most > CUT_SPREAD * min(ceilings):
            return known
        return replace(known, ceilings=(), refused=Window(most, CUT))

    def overflowed(
        self, said: Overflow, request: Refused, listed: int | None = None
    ) -> "KnownWindow":
        """With what an overflow told: the limit becomes less than the refused request.

        A request that nobody counted changes only the window that is named.
        """
        known, size = self, request.prompt_tokens + request.reply_tokens
        before = self.refused
        if said.window and (
            before is None or before.source == HALVED or said.window < before.tokens
        ):
            known = replace(known, refused=Window(said.window, NAMED))
        if not request.prompt_tokens:
            return known
        prompt = said.prompt or (said.total or 0) - request.reply_tokens
        known = known.counted(request.prompt_tokens, prompt)
        limit = known.limit(listed)
        if limit is None:
            return replace(known, refused=Window(max(1, size // 2), HALVED))
        if limit.tokens < size:
            return known
        ratio = limit.tokens * known.ratio / size * REFUSED_RATIO
        if ratio <= MOST_GUESSED_RATIO:
            return replace(known, ratio=ratio)
        return replace(known, refused=Window(max(1, size // 2), HALVED))


_KEY = r"[\"']?{}[\"']?\s*[:=]\s*(\d+)"
_NUMBER = r"(\d[\d,]*)"
_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _KEY.format("n_ctx"),
        # "210000 tokens > 200000 maximum", "188240 + 21333 > 200000"
        rf"\d (?:tokens )?> {_NUMBER}(?![\d,]| -)",
        rf"context (?:length|size|window|limit)[^\d.;:]{{0,24}}{_NUMBER}",
        rf"model length[^\d.;]{{0,12}}{_NUMBER}",
        rf"maximum (?:number of )?(?:input )?tokens[^\d.;]{{0,16}}{_NUMBER}",
        rf"maximum input length[^\d.;]{{0,12}}{_NUMBER}",
        rf"{_NUMBER} (?:tokens? )?maximum context",
        rf"must be <= {_NUMBER}",
        rf"while limit is {_NUMBER}",
        rf"maximum prompt length is {_NUMBER}",
        rf"max_seq_len {_NUMBER}",
        rf"(?:cannot|must not) exceed {_NUMBER}",
        rf"should be \[\d+, ?{_NUMBER}\]",
        rf"\(TPM\): Limit {_NUMBER}",
    )
)
_PROMPTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _KEY.format("n_prompt_tokens"),
        rf"{_NUMBER} in the (?:messages|prompt)",
        rf"{_NUMBER} input tokens",
        rf"resulted in {_NUMBER} tokens",
        rf"prompt \(length {_NUMBER}\)",
        rf"token count \({_NUMBER}\)",
        rf"request \({_NUMBER} tokens\)",
        rf"contains {_NUMBER} tokens",
        rf"too long: {_NUMBER} tokens",
        rf"Given: {_NUMBER} `inputs`",
        rf"context limit: {_NUMBER} \+",
        rf"current length is {_NUMBER}",
        rf"first {_NUMBER} tokens",
        rf"prompt length {_NUMBER}",
        rf"Limit [\d,]+, Requested {_NUMBER}",
    )
)
_TOTAL = re.compile(rf"requested (?:about )?{_NUMBER} tokens", re.IGNORECASE)
# Words of an overflow.
_SAYS = re.compile(
    r"exceed_context_size|context_(?:length|window)_exceeded|string_above_max_length"
    r"|exceed\w*[\w\s'.,()]{0,30}\b(?:context|(?:max\w*|model) (?:prompt |input |sequence )?length)"
    r"|(?:prompt|input|request|message|text)s?(?: length| size| is| was| are)*"
    r" (?:too (?:long|large)|exceeds?|(?:longer|larger|greater) than)"
    r"|context (?:length|window|size|limit)[\w\s'()]{0,40}(?:exceed|reached|overflow)"
    r"|(?:longer|larger|greater) than (?:the |model's |its )*(?:context|max)"
    r"|maximum (?:context|model|prompt|input|sequence|allowed)[\w\s]{0,20}(?:length|size|tokens)"
    r"|maximum number of (?:input )?tokens|max_new_tokens` must be|while limit is"
    r"|too large for model|too many (?:input |prompt )?tokens|tokens in the prompt cannot"
    r"|prompt (?:is )?too long|reduce (?:the|your) (?:length|prompt|input|message|context)"
    r"|context length of only|(?:range of )?input length should be|context[_ ]?overflow"
    r"|n_keep|max_seq_len|token limit exceeded|tokens? exceeds? (?:the )?(?:limit|max)"
    r"|(?:not enough|insufficient) (?:space|room) in the (?:kv cache|context)",
    re.IGNORECASE,
)
# Words that name tokens and a limit, but a rate.
_RATE = re.compile(r"per (?:minute|day|hour)|\bTPM\b|rate.?limit|throttl", re.IGNORECASE)


def is_overflow(text: str, is_known: bool = False) -> bool:
    """Whether the text of an error, also a quoted JSON body, says that a prompt was too large.

    Args:
        text: What the server said.
        is_known: Whether LiteLLM took it for an overflow.
    """
    if _RATE.search(text):
        return "too large for model" in text.lower()
    return is_known or bool(_SAYS.search(text))


def figures_of(text: str) -> Overflow:
    """The figures in the text of an error that is known to be an overflow."""
    found = (_found(patterns, text) for patterns in (_WINDOWS, _PROMPTS, (_TOTAL,)))
    return Overflow(*found)


def _found(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    """The first figure that could be a count of tokens."""
    hits = (hit for pattern in patterns for hit in pattern.findall(text))
    return next((count for hit in hits if (count := _tokens(hit))), None)


def _tokens(value: object) -> int | None:
    """A number, or the digits of one, as a size in tokens; None if it cannot be one."""
    if isinstance(value, str) and len(value) < 15 and value.replace(",", "").isdecimal():
        value = int(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if LEAST_TOKENS <= value <= MOST_TOKENS else None


def may_be_asked(address: str) -> bool:
    """Whether a server may be asked for its window: no big provider is."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return bool(host) and not any(
        host == known or host.endswith("." + known) for known in _PROVIDERS
    )


def root_of(address: str) -> str:
    """The address of a server without the path of its API."""
    return address.rstrip("/").removesuffix("/v1")


def from_props(answer: object) -> Window | None:
    """llama.cpp's ``/props``: the window of one slot."""
    settings = as_dict(as_dict(answer).get("default_generation_settings"))
    return _window(settings.get("n_ctx"), PROPS)


def from_models(answer: object, model: str) -> Window | None:
    """``/v1/models`` of vLLM, llama.cpp and servers that name a window in another usual way."""
    listed = [as_dict(each) for each in as_list(as_dict(answer).get("data"))]
    for entry in _named(listed, model, "id"):
        values = (
            entry.get("max_model_len"),
            as_dict(entry.get("meta")).get("n_ctx"),
            entry.get("loaded_context_length"),
            entry.get("context_window"),
            entry.get("context_length"),
        )
        return next((found for value in values if (found := _window(value, MODELS))), None)
    return None


def from_loaded(answer: object, model: str) -> Window | None:
    """Ollama's ``/api/ps``: the window with which a model was loaded."""
    listed = [as_dict(each) for each in as_list(as_dict(answer).get("models"))]
    for entry in _named(listed, model, "name"):
        return _window(entry.get("context_length"), LOADED)
    return None


def from_shown(answer: object) -> Window | None:
    """Ollama's ``/api/show``: the configured window, or else the largest one of the model.

    Ollama may load the model with less.
    """
    shown = as_dict(answer)
    parameters = shown.get("parameters")
    text = parameters if isinstance(parameters, str) else ""
    configured = re.search(r"^num_ctx\s+(\d+)", text, re.MULTILINE)
    if configured and (window := _window(configured[1], SHOWN)):
        return window
    facts = as_dict(shown.get("model_info")).items()
    largest = (value for name, value in facts if str(name).endswith(".context_length"))
    return next((found for value in largest if (found := _window(value, SHOWN))), None)


def least(windows: Iterable[Window | None]) -> Window | None:
    """The smallest of the windows that are known."""
    return min(filter(None, windows), key=lambda each: each.tokens, default=None)


def _window(value: object, source: str) -> Window | None:
    tokens = _tokens(value)
    return Window(tokens, source) if tokens else None


def _named(
    entries: Iterable[Mapping[str, object]], model: str, key: str
) -> Iterator[Mapping[str, object]]:
    """The entry of a model, or the only one there is; a tag ``:latest`` may be missing."""
    listed, names = list(entries), {model, f"{model}:latest"}
    named = [entry for entry in listed if entry.get(key) in names]
    yield from (named or (listed if len(listed) == 1 else ()))[:1]
