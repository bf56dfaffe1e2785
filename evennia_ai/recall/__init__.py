"""The recall index: finds again what was said, by words, by meaning and by conversation.

It imports nothing of Evennia or Twisted, is synchronous and thread-safe, and keeps everything in
one SQLite file that can be rebuilt at any time. The public names are looked up on first use, so
that importing a module of this package costs nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Hit": "evennia_ai.recall.values",
    "RecallIndex": "evennia_ai.recall.index",
    "Turn": "evennia_ai.recall.values",
}

__all__ = ["Hit", "RecallIndex", "Turn"]  # noqa: F822 - see `__getattr__`


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
