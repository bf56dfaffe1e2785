"""Working memory: conversations in progress."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.rag_memory.working_memory import MAX_AGE_S, clear_stale_conversations

NOW = 1.7e9


def line(text, ago, who="o1", **fields):
    """A line that somebody said so many seconds ago."""
    message = Message("user", text, created_at=utc_iso(NOW - ago), channel="say")
    return replace(message, **{"speaker": Speaker("Al", who), **fields})


class TestTopics(unittest.TestCase):
    """Who is in the middle of a conversation."""

    def test_only_what_goes_on(self):
        """What was said too long ago is over."""
        old, new = line("ale", MAX_AGE_S + 1, "o2"), line("rum", MAX_AGE_S - 1)
        self.assertEqual(clear_stale_conversations([new, old], NOW), {"cleared": 1, "kept": 1})
