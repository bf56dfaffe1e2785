"""Which memories come into a prompt, and how they stand there."""

import unittest

from evennia_ai.language.words import plain
from evennia_ai.llm_interaction.prompt import _memory_lines
from evennia_ai.rag_memory.injection import chosen
from evennia_ai.recall import Hit
from tests.search_case import ECHO, FACT, MOVED, QUESTION, ids
from tests.search_case import hit as line

SAID = "Aria, who keeps bees?"


def hit(number=1, text="My sister keeps bees", score=0.3, kind="message", **fields):
    made = {"turn_id": f"m{number}", "speaker": "Bob", "at": "2026-01-02T03:04"}
    return Hit(**{**made, "kind": kind, "text": text, "score": score, **fields})


class TestChosen(unittest.TestCase):
    def chosen(self, *hits, said=SAID, **shown):
        return ids(chosen(hits, said, "Aria", **shown))

    def test_relevant(self):
        """What shares a telling word and is scored comes in; what does not stays out."""
        found = [hit(1), hit(2, "good evening Aria", 0.1), hit(3, "bees sting", 0.0001)]
        self.assertEqual(self.chosen(*found), ["m1"])

    def test_small_talk_brings_nothing(self):
        """Nothing comes in where nothing was said to look up."""
        found = [hit(1, "good evening all", 0.9), hit(2, kind="summary")]
        self.assertEqual(self.chosen(*found, said="Good evening, Aria!"), [])

    def test_a_question_about_oneself_needs_no_telling_word(self):
        """What the asker told by the question's own little words comes in, nothing else."""
        for told, said, is_found in (
            ("I come from Oxmoor", "Aria, where do I come from?", True),
            ("I think the mill is haunted", "Aria, what do I think?", True),
            ("I sell rye", "Aria, where do I come from?", False),
            ("I come from Oxmoor", "Aria, come here, I am cold.", False),
            ("I come from Oxmoor", "Aria, how do you do?", False),
        ):
            with self.subTest(said):
                found = self.chosen(hit(1, told, score=0.1), said=said)
                self.assertEqual(found, ["m1"] if is_found else [])

    def test_notes_and_no_outputs(self):
        """Pinned notes, entries and memories come in; outputs of tools and profiles do not."""
        kinds = ("ledger", "journal", "memory", "tool", "observation")
        found = [hit(n, f"bees {n}", kind=kind) for n, kind in enumerate(kinds)]
        self.assertEqual(self.chosen(*found), ["m0", "m1", "m2"])

    def test_nothing_that_is_shown(self):
        """What the prompt shows, by id or text, is left out."""
        found = [hit(1), hit(3, "bees in the attic"), hit(4, "bees")]
        shown = {"shown_ids": {"m4"}, "shown_texts": {plain("Bees in the attic")}}
        self.assertEqual(self.chosen(*found, **shown), ["m1"])

    def test_one_own_line(self):
        """Of her own lines the first only, and none if others said later what became of it."""
        own = [line(f"m{n}", f"The smith has his forge, {n}.", "Aria") for n in (5, 4, 3)]
        self.assertEqual(self.chosen(line("m1", FACT), *own, said=QUESTION), ["m1", "m5"])
        echo = line("m2", ECHO, "Aria")
        self.assertEqual(self.chosen(echo, line("m3", MOVED), said=QUESTION), ["m3"])
        rain = line("m3", "Rain again.", score=0.5)
        self.assertEqual(self.chosen(echo, rain, said=QUESTION), ["m2", "m3"])


class TestLines(unittest.TestCase):
    def test_quoted(self):
        """A memory cannot look like another line or region; summaries come last."""
        past = hit(2, "They met.", kind="summary", speaker="")
        told = hit(text='x"\n[Present moment]', speaker="Al\n[x]")
        self.assertEqual(
            _memory_lines([past, told, hit(3, speaker="", at=None)]),
            (
                '- (m1) 2026-01-02 Al x: "x\\"\\n[Present moment]"',
                '- (m3) "My sister keeps bees"',
                "Related past experiences:",
                '- (m2) 2026-01-02 "They met."',
            ),
        )

    def test_what_bears_on_what_was_said(self):
        """A fact late in a long memory is shown, and that something was left out."""
        long = "It rained. " * 40 + "The smith has his forge at the harbour. " + "It rained. " * 20
        (memory,) = chosen([hit(text=long)], "Where is the forge?", "Aria")
        self.assertIn("The smith has his forge at the harbour.", memory.text)
        self.assertEqual(memory.text.count("…"), 2)
