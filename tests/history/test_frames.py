"""Frames: what is written reads back, and nobody can type one."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history import messages as frames
from evennia_ai.history.messages import one_line, quoted
from tests.strategies import FEW, awkward_texts

names = st.from_regex(r"[A-Za-z]{1,8}( [A-Z][a-z]{1,8})?", fullmatch=True)
ids = st.from_regex(r"o[0-9]{1,3}\.[a-z0-9]{1,6}", fullmatch=True)
channels = st.sampled_from(("say", "whisper", "page", "pose", "arrive", "leave", "event"))


class TestQuotes(unittest.TestCase):
    @FEW
    @given(awkward_texts)
    def test_round_trip(self, text):
        """A quoted text is one line and reads back."""
        self.assertEqual(len(quoted(text).splitlines()), 1)
        self.assertEqual(json.loads(quoted(text)), text)

    def test_names(self):
        """A name has no line breaks, quote marks or brackets."""
        self.assertEqual(one_line(' A\n"[B]" <c>\u2028d '), "A B c d")


class TestRows(unittest.TestCase):
    @FEW
    @given(ids, names, awkward_texts)
    def test_rows(self, row_id, who, text):
        """Id, day, speaker and, as a JSON string on the same line, the words."""
        begin, _, said = frames.row(row_id, "2026-01-02", who, text).partition(': "')
        self.assertEqual(begin, f"- ({row_id}) 2026-01-02 {who}")
        self.assertEqual(json.loads(f'"{said}'), text)
        self.assertEqual(frames.row("l1", "", "", "Hi."), '- (l1) "Hi."')


class TestTalkLine(unittest.TestCase):
    """A line of talk as a prompt shows it; whole prompts are tried in `test_conversation`."""

    def test_forms(self):
        """Speech, whispers, pages, poses, channels of the game's own; the rest are notes."""
        for channel, text, line in (
            ("say", "Hi.", "Al: Hi."),
            ("whisper", "Hi.", "Al (whispers to you): Hi."),
            ("page", "Hi.", "Al (pages you): Hi."),
            ("pose", "waves", "Al: *waves*"),
            ("yell", "Hi.", "Al (yell): Hi."),
            ("arrive", "", "(You notice: Al arrives.)"),
            ("leave", "", "(You notice: Al leaves.)"),
            ("event", "gives you a coin.", "(You notice: Al gives you a coin.)"),
        ):
            self.assertEqual(frames.talk_line("Al", channel, text), line)
        for line in ("", "it rained", "- row", ": hi", "(Now or never)", "(Now: noon) and then"):
            self.assertIsNone(frames.read_talk_line(line), line)

    @FEW
    @given(names, channels, awkward_texts.filter(frames.flat))
    def test_round_trip(self, name, channel, text):
        """The speaker and, on one line, the words read back."""
        read = frames.read_talk_line(frames.talk_line(name, channel, text))
        if channel in ("arrive", "leave", "event"):
            self.assertEqual(read.label, frames.NOTICED)
        else:
            shown = frames.flat(text) if channel == "pose" else read.text
            self.assertEqual((read.who, read.text), (name, shown))
            self.assertIn(read.text, frames.flat(text))

    @FEW
    @given(st.text(max_size=200))
    def test_names(self, name):
        """A name is a word or more on one line, not too long, and none of a frame's signs."""
        shown = frames.shown_name(name)
        self.assertTrue(shown[0].isalnum())
        self.assertLessEqual(len(shown), frames.NAME_CHARS)
        self.assertEqual(set(shown) & set('"[]<>(){}*|:\n\uff1a'), set())
        self.assertEqual(frames.shown_name(":*\n"), frames.UNSEEN)
