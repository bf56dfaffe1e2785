"""Working memory: conversations in progress."""

import unittest
from dataclasses import replace

from evennia_ai.history.audience import STAFF, private
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.rag_memory.working_memory import (
    MAX_AGE_S,
    clear_stale_conversations,
    conversation_key,
    from_history,
    note,
    visible_conversations,
)

NOW = 1.7e9


class TestNote(unittest.TestCase):
    """Noting lines."""

    def test_a_conversation_goes_on(self):
        """Time and topic follow the talk; a line without words changes no topic."""
        first = note({}, "o1", "Do you  know the old mill?", 10.0)
        second = note(first, "o1", " ", 11.0)
        talk = {"partner": "o1", "audience": "public", "last_at": 11.0}
        self.assertEqual(second, {"o1": {**talk, "topic": "Do you know the old mill?"}})
        self.assertEqual(first["o1"]["last_at"], 10.0)

    def test_private_talk_is_a_conversation_of_its_own(self):
        """What is whispered never stands among what was said aloud."""
        whisper = private(["o1"])
        talks = note(note({}, "o1", "hello", 1.0), "o1", "secret", 2.0, audience=whisper)
        self.assertEqual(set(talks), {"o1", conversation_key("o1", whisper)})
        self.assertEqual(len(visible_conversations(talks, "public", 3.0)), 1)
        seen = visible_conversations(talks, whisper, 3.0)
        self.assertEqual([talk["topic"] for talk in seen], ["secret", "hello"])
        self.assertEqual(len(visible_conversations(talks, STAFF, 3.0)), 2)


class TestFromHistory(unittest.TestCase):
    """Conversations after a start."""

    def line(self, text, ago, **fields):
        speaker = Speaker("Al", "o1")
        message = Message(
            "user", text, created_at=utc_iso(NOW - ago), speaker=speaker, channel="say"
        )
        return replace(message, **fields)

    def talks(self, *messages):
        found = from_history(messages, NOW)
        return {key: talk["topic"] for key, talk in found.items()}

    def test_as_if_heard(self):
        """They are those that were noted before the stop, each audience apart."""
        circle = private(["o1"])
        secret = self.line("a secret", 50, channel="whisper", audience=circle)
        found = from_history([self.line("the mill", 60), secret], NOW)
        heard = note(note({}, "o1", "the mill", NOW - 60), "o1", "a secret", NOW - 50, circle)
        self.assertEqual(found, heard)

    def test_only_what_others_said(self):
        """Neither her own words, nor arrivals, nor what has no speaker is a talk."""
        lines = (
            self.line("Welcome", 9, role="assistant"),
            self.line("", 8, channel="arrive"),
            self.line("Rain falls", 7, speaker=None),
        )
        self.assertEqual(self.talks(*lines), {})

    def test_only_what_goes_on(self):
        """What was said too long ago, or nobody knows when, is over."""
        old, new = self.line("ale", MAX_AGE_S + 1), self.line("rum", MAX_AGE_S - 1)
        self.assertEqual(self.talks(old, new), {"o1": "rum"})
        self.assertEqual(self.talks(self.line("x", 0, created_at="soon")), {})
        plain = utc_iso(NOW - 1).removesuffix("+00:00").removesuffix("Z")
        self.assertEqual(self.talks(self.line("x", 0, created_at=plain)), {"o1": "x"})


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

    def test_not_shown(self):
        """What is over is shown to nobody, also before a dream clears it."""
        shown = visible_conversations(self.talks, STAFF, now=3601.0)
        self.assertEqual([talk["partner"] for talk in shown], ["o1"])
