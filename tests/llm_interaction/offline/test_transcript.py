"""What frames what people told: never quoted, never told by anybody; and the plain prose below."""

import re
import unittest

from evennia_ai.history.frames import MESSAGES_LABEL, heard_line, source_line
from evennia_ai.history.messages import Speaker, utc_iso
from evennia_ai.llm_interaction.conversation import LEDGER, summary_text
from evennia_ai.llm_interaction.offline.prose import LINES, QUOTING, is_question, line_for, listed
from evennia_ai.llm_interaction.offline.summary import summarise
from evennia_ai.llm_interaction.offline.transcript import SUMMARY, read_talk, told_lines
from evennia_ai.llm_interaction.regions import note_line


def read(row, source=SUMMARY):
    return [(line.who, line.text) for line in told_lines(row, source=source)]


class TestTranscript(unittest.TestCase):
    def test_stamps_and_speaker(self):
        """The times in front of a summary's line are no part of it; its speaker is found."""
        row = "[2026-11-20 14:51] [2026-11-20 14:50] Alice: Marla is devoted to Veshna."
        for shown in (row, f"[CONTEXT SYNTHESIS] {row}"):
            self.assertEqual(read(shown), [("Alice", "Marla is devoted to Veshna.")])

    def test_echoes_tell_nothing(self):
        """What an assistant quoted, its fixed lines and bare lists of names are no evidence."""
        for row in (
            'Bob told me: "It was Tomas who taught me."',
            'Aria: Bob told me: "It was Tomas who taught me."',
            'Cleo: Bob told me: "It was Tomas." And later: Bob told me: "Or not."',
            'You asked me to keep in mind: "I like rum."',
            'I have it noted: "Bob keeps bees."',
            "Also mentioned: Entry, Noted.",
            *(line_for(kind, "x", "Mira") for kind in ("fact", "greeting", "unknown", "staff")),
        ):
            with self.subTest(row):
                self.assertEqual(read(row), [])

    def test_raw_outputs(self):
        """What a tool gave out is in no extract, though it has more names than what was said."""
        told = heard_line("Alice", "o1.a", "say", "My boat is called Heron and lies at the quay.")
        output = source_line("tool", "The Tower of Ash near Oldtown. Exits: gate.", "look")
        text = summarise("\n".join([MESSAGES_LABEL, told, output, told.replace("boat", "barge")]))
        self.assertIn("Heron", text)
        self.assertNotIn("Oldtown", text)

    def test_ledger(self):
        """Notes of the ledger are read with their giver, written small or not."""
        for name in ("Bob", "bob"):
            by = Speaker(name, "o29.1ng0pb1")
            shown = note_line("l1abc", utc_iso(0.0), by, "I like plum brandy")
            system = f"You are Aria.\n\nA barkeep.\n\n{LEDGER}:\nPreferences:\n{shown}"
            line = read_talk([{"role": "system", "content": system}]).notes[-1]
            self.assertEqual((line.who, line.text, line.id), (name, "I like plum brandy", "l1abc"))

    def test_lore(self):
        """A heading in a fact of the game's lore is nobody's name."""
        for row in (
            "(w12) Bessie: a cow.",
            '(help:ale) The Mayor says: "Drink!"',
            "(room:4) The Cellar: Dry. The way from The Inn: down.",
        ):
            [line] = told_lines(row)
            self.assertEqual(line.who, "")
            self.assertTrue(row.endswith(line.text))

    def test_many_lines_of_one_memory(self):
        """A memory of several lines, quoted on one, is read line by line, all under its id."""
        text = "[2026-11-20 14:50] Alice: I live in Ford.\nBob: I keep bees."
        block = {"role": "user", "content": summary_text(text, "s1abc", True)}
        lines = read_talk([block]).notes
        self.assertEqual([(x.who, x.id) for x in lines], [("Alice", "s1abc"), ("Bob", "s1abc")])

    def test_slots(self):
        """All variants of a line have the same slots; what is told is in double quotes."""
        for kind, variants in LINES.items():
            slots = [set(re.findall(r"{(\w+)}", line)) - {"who"} for line in variants]
            self.assertEqual(slots, slots[:1] * len(slots), kind)
        for kind in QUOTING:
            for line in LINES[kind]:
                self.assertTrue(line.endswith('"{words}"'), line)

    def test_nobody_named(self):
        """Without a name a line stands without its slot."""
        self.assertEqual(line_for("given", who="Bob"), "Here you are, Bob.")
        self.assertEqual(line_for("given"), "Here you are.")
        self.assertEqual(listed(["up", "down", "out"]), "up, down and out")

    def test_questions(self):
        """A tag makes no question; a question needs no mark."""
        asked = ("where do you live", "Tell me who did it.", "Bees?")
        asked += ("Wren, have you heard of it?", "Aria, are you well today?", "Aria, is it you?")
        for text in (*asked, "It's cold, isn't it?", "Who dares wins.", "I live in Ford."):
            self.assertEqual(is_question(text), text in asked, text)

    def test_echoes_stay_out(self):
        """A summary holds what was told, neither quotes of it, nor noise, nor lists of names."""
        text = summarise(
            f"{MESSAGES_LABEL}\n[2026-11-20 14:51] Alice: Marla is devoted to Veshna.\n"
            'Also mentioned: Entry, Noted. \nassistant: Bob told me: "It was Tomas."\n'
            "assistant: I'm sorry, I don't know. I was never told.\nBob: |r{0} $rand(1,2) %s\n"
            'Bob [o1.b] says: "Quill lent me eight florins and wants it back."'
        )
        self.assertIn("Alice: Marla is devoted to Veshna.", text)
        self.assertNotRegex(text, r"Tomas|Entry|2026|rand")
