"""The recall index: finds what was said, by words, by meaning and by conversation.

It imports nothing of Evennia or Twisted, is synchronous and thread-safe, and keeps everything in
an SQLite file, which can be rebuilt at any time. Public names are imported on first use.
"""

from evennia_ai import lazy_names

_HOMES = {"Hit": "recall.values", "RecallIndex": "recall.index", "Turn": "recall.values"}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
