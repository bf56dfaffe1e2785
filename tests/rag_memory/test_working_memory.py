"""Working memory: conversations in progress."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.rag_memory.working_memory import MAX_AGE_S, clear_stale_conversations, last_topics

NOW = 1.7e9


def line(text, ago, who="o1", **fields):
    """A line that somebody said so many seconds ago."""
    message = Message("user", text, created_at=utc_iso(NOW - ago), channel="say")
    return replace(message, **{"speaker": Speaker("Al", who), **fields})


class TestTopics(unittest.TestCase):
    """What people last spoke of."""

    def test_newest(self):
        """The first words of the newest line that has any, of each partner."""
        said = [line(" ", 1), line("Do you  know the old mill by the river?", 2), line("Hm", 3)]
        said += [line("ale", 4, "o2", channel="whisper")]
        topics = {"o1": "Do you know the old mill by the", "o2": "ale"}
        self.assertEqual(last_topics(said, NOW), topics)

    def test_only_what_goes_on(self):
        """What was said too long ago, or nobody knows when, is over."""
        old, new = line("ale", MAX_AGE_S + 1, "o2"), line("rum", MAX_AGE_S - 1)
        self.assertEqual(last_topics([new, old], NOW), {"o1": "rum"})
        self.assertEqual(last_topics([line("x", 0, created_at="soon")], NOW), {})
        self.assertEqual(clear_stale_conversations([new, old], NOW), {"cleared": 1, "kept": 1})
