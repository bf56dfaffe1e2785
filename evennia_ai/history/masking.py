"""Masking: a large old tool result is shown as one line that says how to bring it back.

JetBrains' study of agents' context found that hiding old observations is as good as summarising
them at half the cost. Masking is a flag in a message's metadata and a rule of `rendered`: the
raw text stays stored, and taking the flag away gives back the message as it was, byte for byte.

The decision is made in batches, at a compaction, and never made again, so that the prefix of
the prompt stays the same from turn to turn and a provider's cache keeps hitting.
"""

import re
from dataclasses import replace

from evennia_ai.history.frames import one_line
from evennia_ai.history.messages import Counter, Message, mask_of

PLACEHOLDER = "[TOOL OUTPUT ARCHIVED - search history for details]"
# A tool's name is letters, digits, `_` and `-`, 64 at most, in the chat format.
_NAME_CHARS = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
# Results of tools that are larger than this are masked; a placeholder takes a quarter of it.
MASKED_TOKENS = 200


def placeholder(message: Message, at_iso: str) -> str:
    """One line for a masked tool result: the tool, the time, the id that brings the text back."""
    name = _NOT_IN_NAMES.sub("_", message.name or "unknown")[:_NAME_CHARS]
    found_by = one_line(message.id)
    return f"{PLACEHOLDER} original_tool={name} archived_at={one_line(at_iso)} id={found_by}"


def is_maskable(message: Message) -> bool:
    """Whether it is a tool's result large enough to mask, and not masked yet."""
    is_large = message.role == "tool" and message.tokens > MASKED_TOKENS
    return is_large and "masked" not in message.metadata


def masked(message: Message, at_iso: str, count: Counter) -> Message:
    """A tool result that is shown as a placeholder from now on.

    Its content is still the raw text, its `tokens` are those of what is shown. One that is masked
    already, or has somebody's own `masked` in place of the flag, is returned as it is.
    """
    if "masked" in message.metadata:
        return message
    flag = {
        "original_tool": message.name,
        "archived_at": at_iso,
        "placeholder": placeholder(message, at_iso),
        "raw_tokens": message.tokens,
    }
    return replace(message, metadata={**message.metadata, "masked": flag}).counted(count)


def unmasked(message: Message) -> Message:
    """The message as it was before `masked`; others as they are."""
    flag = mask_of(message)
    if not flag:
        return message
    metadata = {k: v for k, v in message.metadata.items() if k != "masked"}
    return replace(message, metadata=metadata, tokens=flag.get("raw_tokens") or 0)
