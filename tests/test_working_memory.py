"""Working memory: conversations in progress."""

import unittest

from evennia_ai.core.audience import STAFF, private
from evennia_ai.helpers.working_memory import (
    clear_stale_conversations,
    conversation_key,
    note,
    visible_conversations,
    without,
)


class TestNote(unittest.TestCase):
    """Noting lines."""

    def test_a_conversation_grows(self):
        """Lines, time and topic follow the talk; the assistant's words set no topic."""
        first = note({}, "o1", "Do you  know the old mill?", 10.0)
        second = note(first, "o1", "I do.", 11.0, speaker="aria")
        talk = second["o1"]
        self.assertEqual(talk["topic"], "Do you know the old mill?")
        self.assertEqual([line["speaker"] for line in talk["lines"]], ["o1", "aria"])
        self.assertEqual(talk["last_at"], 11.0)
        self.assertEqual(len(first["o1"]["lines"]), 1)

    def test_only_the_newest_lines_are_kept(self):
        """A long talk keeps its end."""
        talks = {}
        for number in range(20):
            talks = note(talks, "o1", f"line {number}", float(number), max_lines=3)
        self.assertEqual([line["at"] for line in talks["o1"]["lines"]], [17.0, 18.0, 19.0])

    def test_a_late_line_does_not_turn_time_back(self):
        """Time of the last word never decreases."""
        talks = note(note({}, "o1", "b", 20.0), "o1", "a", 10.0)
        self.assertEqual(talks["o1"]["last_at"], 20.0)

    def test_private_talk_is_a_conversation_of_its_own(self):
        """What is whispered never stands among what was said aloud."""
        whisper = private(["o1"])
        talks = note(note({}, "o1", "hello", 1.0), "o1", "secret", 2.0, audience=whisper)
        self.assertEqual(set(talks), {"o1", conversation_key("o1", whisper)})
        self.assertEqual(len(visible_conversations(talks, "public")), 1)
        seen = visible_conversations(talks, whisper)
        self.assertEqual([talk["topic"] for talk in seen], ["secret", "hello"])
        self.assertEqual(len(visible_conversations(talks, STAFF)), 2)


class TestStale(unittest.TestCase):
    """Conversations that are over."""

    def setUp(self):
        self.talks = note(note({}, "o2", "b", 0.0), "o1", "a", 1000.0)

    def test_silence_ends_a_conversation(self):
        """More than the time of silence makes it stale, exactly that does not."""
        result = clear_stale_conversations(self.talks, now=3601.0)
        self.assertEqual(result, {"cleared": 1, "kept": 1, "stale": ["o2"]})
        result = clear_stale_conversations(self.talks, now=3600.0)
        self.assertEqual(result["stale"], [])

    def test_decides_without_touching(self):
        """The dict is left as it is; taking out is a step of its own."""
        result = clear_stale_conversations(self.talks, now=1e6, max_age_s=60)
        self.assertEqual(len(self.talks), 2)
        self.assertEqual(result["stale"], ["o1", "o2"])
        self.assertEqual(without(self.talks, result["stale"]), {})

    def test_a_conversation_without_a_time_is_stale(self):
        """A broken entry does not stay for ever."""
        self.assertEqual(clear_stale_conversations({"x": {}}, now=1e6)["cleared"], 1)
