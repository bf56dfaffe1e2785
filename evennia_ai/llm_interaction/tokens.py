"""Counting tokens, by the best counter available.

That is tiktoken with the vocabulary of the model's family, or else bytes / 4 x 1.3. With that
factor the estimate is above tiktoken's count for English, code and JSON; text in other scripts is
overestimated, which is the safe side.
"""

import functools
import importlib
import importlib.util
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evennia_ai.history.messages import Counter, Message, message_tokens

SAFETY_FACTOR = 1.3
BYTES_PER_TOKEN = 4
_O200K = ("gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4", "chatgpt")
# Longer texts are counted in pieces: tiktoken's time grows with the longest word.
_PIECE_CHARS = 50_000
# Counts of this many shorter texts are cached: prompts repeat rules, names and lines.
_KNOWN_TEXTS, _SHORT_CHARS = 1024, 10_000


def estimate(text: str) -> int:
    """Tokens by bytes: bytes / 4 x 1.3, rounded up."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN * SAFETY_FACTOR)


def encoding_name(model: str) -> str:
    """The tiktoken vocabulary of a model's family; `cl100k_base` for unknown ones."""
    if model.rsplit("/", 1)[-1].lower().startswith(_O200K):
        return "o200k_base"
    return "cl100k_base"


def use_shipped_vocabularies() -> bool:
    """Point tiktoken at the vocabularies litellm ships, without importing it: no downloads.

    Returns whether `TIKTOKEN_CACHE_DIR` is set.
    """
    spec = importlib.util.find_spec("litellm")
    folder = Path(str(spec and spec.origin)).parent / "litellm_core_utils" / "tokenizers"
    if folder.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    return "TIKTOKEN_CACHE_DIR" in os.environ


@functools.lru_cache(maxsize=_KNOWN_TEXTS)
def _short_tokens(encoding: Any, text: str) -> int:
    return len(encoding.encode_ordinary(text))


@functools.cache
def _tiktoken_counter(name: str) -> Counter | None:
    if not use_shipped_vocabularies():
        return None
    try:
        encoding: Any = importlib.import_module("tiktoken").get_encoding(name)
    except (ImportError, OSError, ValueError):
        return None
    encoding._mergeable_ranks = {}  # 14 MB that it was made of, and needs no more

    def count(text: str) -> int:
        if len(text) <= _SHORT_CHARS:
            return _short_tokens(encoding, text)
        pieces = range(0, len(text), _PIECE_CHARS)
        return sum(len(encoding.encode_ordinary(text[i : i + _PIECE_CHARS])) for i in pieces)

    return count


def counter_for(model: str = "gpt-4") -> Counter:
    """The best counter for a model: text in, tokens out.

    The first call for a family reads its vocabulary (about half a second); `evennia_ai` does
    that on a background thread before an assistant's first tick.
    """
    return _tiktoken_counter(encoding_name(model)) or estimate


@dataclass(frozen=True)
class TokenCounter:
    """The token counter of a model, as a value: it can be sent to the mind's process."""

    model: str

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        return counter_for(self.model)(text)


def count_tokens(text: str, count: Counter) -> int:
    """Tokens of a text, for `Mind.work`."""
    return count(text)


def count_conversation_tokens(
    history: Sequence[Message | Mapping[str, Any]] | None, model: str = "gpt-4"
) -> int:
    """Tokens of a conversation: the messages' own counts, counted where they have none.

    `history` holds messages, stored ones or hand-written ``{role, content}``; None is none.
    """
    count = counter_for(model)
    total = 0
    for each in history or ():
        if not isinstance(each, Message):
            values = {key: value for key, value in each.items() if value is not None}
            each = Message.from_dict({"role": "user", "content": "", **values})
        total += each.tokens or message_tokens(each, count)
    return total
