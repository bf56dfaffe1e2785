"""The episodic index: what leaves retrieval."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker, ToolTraits, utc_iso
from evennia_ai.rag_memory.journal import DAY_S, RECALLED, JournalEntry, bounded
from evennia_ai.rag_memory.memory import (
    MAX_AGE_S,
    clear_stale_conversations,
    prune_low_importance_entries,
    turn_of_message,
)

NOW = 1_800_000_000.0


def entry(entry_id, days_ago, importance=5, timestamp=None):
    at = utc_iso(NOW - days_ago * DAY_S) if timestamp is None else timestamp
    return JournalEntry(entry_id, at, "x", bounded(importance))


class TestEpisodicIndex(unittest.TestCase):
    def turns(self, *messages):
        """The texts that stand in the index."""
        traits = ToolTraits(speaks=frozenset({"say"}))
        turns = (turn_of_message(message, traits) for message in messages)
        return [turn.text for turn in turns if turn]

    def test_what_was_said(self):
        """A line and the text of a call that speaks; not what cannot be read or was dreamt."""
        line = Message("user", "Hello.", channel="say")
        self.assertEqual(self.turns(line, replace(line, metadata={"context": "sleep"})), ["Hello."])
        for arguments, said in (('{"text": " Ha. "}', ["Ha."]), ("{", []), ("[]", [])):
            calls = ({"function": {"name": "say", "arguments": arguments}},)
            self.assertEqual(self.turns(Message("assistant", "", tool_calls=calls)), said)

    def test_entries_in_retrieval(self):
        """Entries that are pruned, withdrawn, recalled or empty are left out."""
        kept = entry("kept", 1)
        self.assertTrue(kept.is_indexed(NOW))
        self.assertFalse(entry("old", 40, 1).is_indexed(NOW))
        for odd in ({"withdrawn": True}, {"source_type": RECALLED}, {"content": " "}):
            self.assertFalse(replace(kept, **odd).is_indexed(NOW))

    def test_only_the_old_and_unimportant_leave(self):
        """Either newness or importance keeps an entry; so does a time or rank that is none."""
        entries = [
            entry("old-low", 40, 2),
            entry("old-high", 40, 8),
            entry("new-low", 3, 1),
            entry("older-low", 400, 3),
            entry("senseless", 0, 1, timestamp="long ago"),
            entry("unrated", 90, None),
        ]
        result = prune_low_importance_entries(entries, NOW)
        self.assertEqual(result, {"pruned": 2, "kept": 4, "pruned_ids": ["old-low", "older-low"]})

    def test_only_what_goes_on(self):
        """What was said too long ago is over."""
        lines = [
            Message("user", "ale", who, utc_iso(NOW - ago), Speaker(who, who), channel="say")
            for ago, who in ((MAX_AGE_S - 1, "o1"), (MAX_AGE_S + 1, "o2"))
        ]
        self.assertEqual(clear_stale_conversations(lines, NOW), {"cleared": 1, "kept": 1})
