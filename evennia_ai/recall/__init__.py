"""The recall index: finds again what was said, by words, by meaning and by conversation.

It imports nothing of Evennia or Twisted, is synchronous and thread-safe, and keeps everything in
one SQLite file that can be rebuilt at any time.
"""

from evennia_ai.recall.index import RecallIndex
from evennia_ai.recall.values import Hit, Turn

__all__ = ["Hit", "RecallIndex", "Turn"]
