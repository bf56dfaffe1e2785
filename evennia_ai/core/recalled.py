"""Telling what was lived through from what was only found again.

A model that writes into its journal what it was shown from memory makes a memory of a memory;
fed back so, one repeated text has filled whole stores. What merely repeats shown memories is
marked, and never searched or consolidated.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

# Tools whose results are memories.
RECALLING_TOOLS = ("search_memory", "expand_memory")
# Share of a text's words that a memory must hold, in their order, to be the same.
SAME_SHARE = 0.85
# Newest results looked at; older ones have left the prompt or will soon.
_RESULTS, _WORDS = 40, 400
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# Words that frame a report and say nothing of its content.
_FRAME = frozenset(
    ["a", "an", "the", "that", "said", "say", "tell", "told", "me", "recall", "remember", "memory"]
)
_NEGATIONS = frozenset(["no", "not", "never", "none", "nobody", "nothing", "without", "cannot"])


def is_recalled(text: str, memories: Iterable[str]) -> bool:
    """Whether a text says, nearly word for word, what one of these memories says.

    Numbers, and words of denial in either, must agree: ``owes 4 coins`` does not repeat ``owes 3
    coins``.

    Args:
        text: What is to be written down.
        memories: Texts that were found in memory.
    """
    words = _words(text)
    return bool(words) and any(_repeats(words, _words(memory)) for memory in memories)


def _repeats(words: Sequence[str], memory: Sequence[str]) -> bool:
    held = set(memory)
    if sum(word in held for word in words) < SAME_SHARE * len(words):
        return False
    matcher = SequenceMatcher(None, memory, words, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    if sum(block.size for block in blocks) < SAME_SHARE * len(words):
        return False
    span = memory[blocks[0].a : blocks[-1].a + blocks[-1].size]
    return _weighty(words) <= _weighty(memory) and _denials(span) <= _denials(words)


def _weighty(words: Iterable[str]) -> set[str]:
    """Words that change all: numbers and denials."""
    return {word for word in words if word.isdigit()} | _denials(words)


def _denials(words: Iterable[str]) -> set[str]:
    return {word for word in words if word in _NEGATIONS or word.endswith(("n't", "n’t"))}


def _words(text: str) -> list[str]:
    found = (_stem(word) for word in _WORD.findall(text.lower())[:_WORDS])
    return [word for word in found if word not in _FRAME]


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def shown_memories(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Texts of memories that tool results in a history hold, newest results first."""
    results = [m for m in reversed(messages) if m.get("name") in RECALLING_TOOLS]
    return [text for message in results[:_RESULTS] for text in _texts(str(message["content"]))]


def _texts(result: str) -> Iterator[str]:
    """The texts in a result of one of `RECALLING_TOOLS`."""
    try:
        loaded = json.loads(result)
    except ValueError:
        yield result
        return
    if not isinstance(loaded, dict):
        return
    for item in (loaded, *(loaded.get("results") or ()), *(loaded.get("around") or ())):
        if isinstance(item, dict) and item.get("text"):
            yield f"{item.get('speaker') or ''} {item['text']}"
