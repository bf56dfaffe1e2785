"""Where a provider's prompt cache may end, for providers that want it marked.

Anthropic's models, wherever they are served, cache a prompt up to marked messages, four at most
(https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching); tools stand before the first
message and are cached with it. Other providers find the common beginning by themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.history.frames import MEMORIES_LABEL, MOMENT_LABEL

_MARK = {"type": "ephemeral"}
# Of what stands behind the history and differs from turn to turn.
_TAIL_LABELS = (MEMORIES_LABEL, MOMENT_LABEL)


def wants_marks(model: str) -> bool:
    """Whether a model's provider caches only what is marked, by the model's name."""
    return "claude" in model.lower()


def marks(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of the messages to mark, in order.

    The first, with rules and persona; the assistant's newest words before the volatile tail, as
    heard lines behind them may still grow; what stands right before the tail; and the last one, for
    the next request of the same turn.
    """
    tail = next((n for n, message in enumerate(messages) if _is_tail(message)), len(messages))
    spoken = (n for n in range(tail - 1, 0, -1) if messages[n].get("role") == "assistant")
    places = {0, next(spoken, 0), tail - 1, len(messages) - 1}.intersection(range(len(messages)))
    return sorted(place for place in places if messages[place].get("content"))


def marked(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chat messages with marks, in the form LiteLLM takes; texts become lists of one part."""
    shown = [dict(message) for message in messages]
    for place in marks(messages):
        part = {"type": "text", "text": shown[place]["content"], "cache_control": _MARK}
        shown[place]["content"] = [part]
    return shown


def _is_tail(message: Mapping[str, Any]) -> bool:
    lines = str(message.get("content")).partition("\n")
    return message.get("role") == "user" and lines[0] in _TAIL_LABELS
