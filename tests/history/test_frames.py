"""Frames: what is written reads back, and nobody can type one."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history import frames
from evennia_ai.history.frames import heard_line, on_one_line, one_line, quoted, unquoted
from evennia_ai.llm_interaction.guards import Around, without_prompt
from evennia_ai.llm_interaction.offline.transcript import heard_lines
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
    @given(awkward_texts.map(lambda text: text[:60]), awkward_texts)
    def test_the_offline_model_reads_one_speaker(self, key, text):
        """The offline model hears one line, by its true speaker, with its true words."""
        key = key.strip() and f"Al {one_line(key)}".strip()
        (line,) = heard_lines(heard_line(key or "Al", "o1.a", "say", text), 0)
        self.assertEqual((line.who[:2], line.text), ("Al", text[: len(line.text)]))

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
    def test_labels(self):
        """Each block says what it is; a summary names its age and what it stands for."""
        self.assertEqual(frames.label_of(frames.LEDGER_LABEL), "ledger")
        self.assertEqual(frames.label_of("hello [Ledger]"), "")
        for older, title in ((True, "[Older memories]"), (False, "[Recent past]")):
            label = frames.summary_label(9, older)
            self.assertTrue(label.startswith(f"{title} (a summary of 9 "), label)
            named = frames.summary_label(9, older, "s1")
            self.assertTrue(named.startswith(f"{title} (summary s1 of 9 "), named)
            self.assertIn(frames.label_of(label), frames.SUMMARIES)

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

    @FEW
    @given(st.lists(st.tuples(names, ids), max_size=3), awkward_texts)
    def test_moment(self, people, description):
        """Those present, the ways out and what the place looks like read back."""
        lines = frames.moment_lines("noon", "Inn", people, ["out", "up"], description)
        moment = frames.read_moment("\n".join([frames.MOMENT_LABEL, *lines]))
        self.assertEqual(frames.names_present(moment), [name for name, _ in people])
        self.assertEqual((moment["place"], moment["exits"]), ("Inn", "out, up"))
        self.assertEqual(moment.get("description", ""), description)

    def test_assistants(self):
        """Those that are assistants are told apart."""
        people = (("Bob", "o1.b"), ("Old Corvin", "o2.c"))
        lines = frames.moment_lines("noon", "Inn", people, (), "", assistants={"o2.c"})
        moment = frames.read_moment("\n".join([frames.MOMENT_LABEL, *lines]))
        self.assertEqual(frames.assistants_present(moment), ["Old Corvin"])
        self.assertEqual(frames.names_present(moment), ["Bob", "Old Corvin"])

    def test_bare_moment(self):
        """Without ways out and a description there is no line of them."""
        lines = frames.moment_lines("noon", "Inn", (), (), "")
        self.assertEqual(lines, ["Time: noon", "Place: Inn", "Present: nobody"])
        moment = frames.read_moment("\n".join([frames.MOMENT_LABEL, *lines, "Exits:"]))
        self.assertEqual((frames.names_present(moment), "exits" in moment), ([], False))


class TestOwnWords(unittest.TestCase):
    """Replies of models that go on with what they read."""

    def test_cut(self):
        """A reply ends where it shows ids, labels and notices."""
        for reply, own in (
            ('Bram [o32.1ng772t] says: "A key."', ""),
            ('Of course. Bram [o32.1ng] says: "A key."', "Of course."),
            ('"Welcome!" Bram [o32.1ng] says: "A key."', '"Welcome!"'),
            ("I am glad\n[Present moment]\nIt is two.", ""),
            ("It is late. [CONTEXT SUMMARY] They met.", "It is late."),
            ("Hello. Time: Monday\nPlace: The Cellar\nPresent: nobody", "Hello."),
            ('I am here. Exits: up Description: "Smoke.', "I am here."),
        ):
            with self.subTest(reply):
                self.assertEqual(without_prompt(reply, Around()), own)

    def test_kept(self):
        """Signs, keys, ids of memories and quotations are an assistant's own words."""
        for reply in (
            "Go through [NORTH EXIT] and turn left.",
            "Press [F1], then [2].",
            "Time: noon. Exits: up, down and out.",
            "Alice told me so [m1m831phzf5se7t8].",
            'Sure: "Never again", he said.',
        ):
            with self.subTest(reply):
                self.assertEqual(without_prompt(reply, Around()), reply)

    @given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="[]:")))
    def test_others_stay(self, reply):
        """What holds no frame is said as it is."""
        self.assertEqual(without_prompt(reply, Around()), reply)

    @given(names, ids, st.sampled_from(["say", "whisper", "page"]), st.text())
    def test_every_heard_line(self, name, speaker_id, channel, text):
        """A heard line, as prompts show it, is nobody's reply."""
        line = heard_line(name, f"o1.{speaker_id}", channel, text)
        self.assertNotIn("[o1.", without_prompt(f"Yes. {line}", Around()))


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
        self.assertEqual(frames.tool_result("look", "a\nb"), '[Result of look] "a\\nb"')
