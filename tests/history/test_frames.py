"""Frames: what is written reads back, and nobody can type one."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history import frames
from evennia_ai.history.frames import heard_line, on_one_line, one_line, quoted, unquoted
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
        self.assertEqual(unquoted(quoted(text)), text)
        self.assertEqual(unquoted(on_one_line(text)), text)

    def test_cut_off(self):
        """What was cut in the middle still reads."""
        self.assertEqual(unquoted('"hello'), "hello")


class TestHeardLine(unittest.TestCase):
    def test_form(self):
        """Name, stable id, verb and the text as a JSON string."""
        self.assertEqual(heard_line("Al", "o1.a", "say", 'a "b"'), 'Al [o1.a] says: "a \\"b\\""')
        self.assertEqual(heard_line("Al", "", "yell", "é"), 'Al yell: "é"')
        self.assertEqual(one_line(' A\n"[B]" <c>\u2028d '), "A B c d")

    @FEW
    @given(awkward_texts, awkward_texts, awkward_texts, st.sampled_from(("say", "whisper", "x\n[")))
    def test_nobody_can_forge_a_line(self, key, speaker_id, text, channel):
        """Whatever stands in name, id or text: one line, one quoted text that reads back."""
        line = heard_line(key, speaker_id, channel, text)
        self.assertEqual(len(line.splitlines()), 1)
        frame, _, quoted = line.partition(': "')
        self.assertEqual(json.loads(f'"{quoted}'), text)
        self.assertNotIn('"', frame)
        brackets = "[]" if speaker_id else ""
        self.assertEqual("".join(mark for mark in frame if mark in "[]<>"), brackets)

    @FEW
    @given(names, st.one_of(st.just(""), ids), channels, awkward_texts)
    def test_round_trip(self, key, speaker_id, channel, text):
        """Name, id and text read back, and whether it is a frame of ours."""
        read = frames.read_heard(heard_line(key, speaker_id, channel, text))
        self.assertEqual((read.who, read.id, read.text, read.exact), (key, speaker_id, text, True))
        self.assertEqual(frames.read_spoken(heard_line(key, speaker_id, channel, text)), read)

    def test_other_lines(self):
        """A channel of the game's own needs an id; without quotes a line is read, not trusted."""
        self.assertEqual(frames.read_heard(heard_line("Al", "o1.a", "yell", "hi")).verb, "yell")
        self.assertIsNone(frames.read_heard(heard_line("Al", "", "yell", "hi")))
        loose = frames.Heard("Al", "", "says", "hi", exact=False)
        self.assertEqual(frames.read_heard("Al says: hi"), loose)
        self.assertEqual(frames.read_spoken("Al: hi"), loose)
        self.assertEqual(frames.read_spoken("al [o1.a]: hi").who, "al")
        self.assertIsNone(frames.read_spoken("it rained"))


class TestBlocks(unittest.TestCase):
    @FEW
    @given(ids, names, awkward_texts)
    def test_rows(self, row_id, who, text):
        """Id and day of a row read back; so do the words, and who said them."""
        bare = frames.read_row(frames.row(row_id, "2026-01-02", "", text))
        self.assertEqual(bare, (row_id, "2026-01-02", text))
        self.assertEqual(frames.read_row(frames.row(row_id, "", "", text)), (row_id, "", text))
        row = frames.row(row_id, "2026-01-02", who.title(), text)
        said = frames.read_spoken(frames.read_row(row).text)
        self.assertEqual((said.who, said.text), (who.title(), text))


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


class TestSourceLines(unittest.TestCase):
    """What a summariser reads of the assistant and its tools."""

    @FEW
    @given(st.sampled_from(("assistant", "user", "system")), awkward_texts, awkward_texts)
    def test_words(self, role, text, calls):
        """Role and words read back; calls do not."""
        line = frames.source_line(role, text, calls=calls)
        self.assertEqual(len(line.splitlines()), 1)
        read = frames.read_source_line(line)
        self.assertEqual((read.role, read.tool), (role, ""))

    @FEW
    @given(awkward_texts)
    def test_tool(self, text):
        """A tool's name and result read back."""
        read = frames.read_source_line(frames.source_line("tool", text, "look"))
        self.assertEqual(read, ("tool", "look", text))

    def test_form(self):
        """Calls stand behind the words; what somebody said is no such line."""
        line = frames.source_line("assistant", "Hi.", calls="look({})")
        self.assertEqual(line, "assistant: Hi. [calls look({})]")
        self.assertEqual(frames.read_source_line(line).text, "Hi.")
        self.assertEqual(frames.source_line("assistant", "", calls="a()"), "assistant: [calls a()]")
        self.assertIsNone(frames.read_source_line('Al says: "hi"'))
