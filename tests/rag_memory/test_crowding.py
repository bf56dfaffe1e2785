"""Questions, echoes and repetitions among what a search found."""

import unittest

from evennia_ai.rag_memory.crowding import asks, echoes_last, once, repeats_last, worth_quoting
from tests.search_case import ECHO, FACT, MOVED, QUESTION, hit, ids


class TestAsks(unittest.TestCase):
    """Which texts only ask."""

    def test_questions(self):
        """Marked or not, with somebody's name before them, with little told beside them."""
        for text in (
            QUESTION,
            "Where is the forge, Aria? I need a blade.",
            "where is the forge",
            "what's the way to the mill",
            "Aria, how many cows does Bob own",
            "Aria, can you tell me the way to the mill",
            "'Who goes there?'",
        ):
            self.assertTrue(asks(text), text)

    def test_statements(self):
        """What tells more than it asks, exclaims, or only begins like a question."""
        for text in (
            FACT,
            ECHO,
            "Do you know Bram? He has his forge at the harbour.",
            "What I have is gold.",
            "What a day!",
            "He paid 3.5 crowns for it.",
            "",
        ):
            self.assertFalse(asks(text), text)


class TestOnce(unittest.TestCase):
    """Identical texts."""

    def test_last_said_at_the_best_place(self):
        """A speaker's text stands once, with its newest id, where the first of them stood."""
        found = once([hit("m1", "I live here."), hit("m2", "Ha."), hit("m3", " i live HERE.")])
        self.assertEqual(ids(found), ["m3", "m2"])
        self.assertEqual(ids(once([hit("m3", "Ha."), hit("m1", "Ha.")])), ["m3"])

    def test_by_speaker(self):
        """The same words of two people are two things told, but one thing asked."""
        self.assertEqual(len(once([hit("m1", "I live here."), hit("m2", "I live here.", "Bo")])), 2)
        self.assertEqual(len(once([hit("m1", "Who is it?"), hit("m2", "Who is it?", "Bo")])), 1)


class TestRepeatsLast(unittest.TestCase):
    """The same words of many."""

    def test_few_first(self):
        """The first two that say it stand where they stood, the others last."""
        cheers = [hit(f"m{n}", "Cheers!", f"Guest{n}") for n in (1, 2, 3, 4)]
        self.assertEqual(
            ids(repeats_last([*cheers, hit("m5", FACT)])), ["m1", "m2", "m5", "m3", "m4"]
        )


class TestEchoesLast(unittest.TestCase):
    """The assistant's own lines."""

    def test_nobody_speaks_in_a_journal(self):
        """Without a name to look for, entries of the journal are nobody's echoes."""
        entries = [hit(f"e{n}", f"Entry {n}.", "", kind="journal") for n in range(1, 6)]
        self.assertEqual(ids(echoes_last([*entries, hit("m9", "Ha.")], ""))[-1], "m9")


class TestWorthQuoting(unittest.TestCase):
    """What a prompt may quote."""

    def quoted(self, *hits):
        """Ids of those among the hits that may be quoted to who asks for the forge."""
        return ids(worth_quoting(hits, "Aria", QUESTION))

    def test_questions_only_without_answers(self):
        """An earlier asking is quoted where nothing else was found."""
        asked, told = hit("m1", QUESTION, "Cole"), hit("m2", FACT)
        self.assertEqual(self.quoted(asked, told), ["m2"])
        self.assertEqual(self.quoted(asked), ["m1"])

    def test_one_own_line(self):
        """Of her own lines the first only."""
        own = [hit(f"m{n}", f"The smith has his forge, {n}.", "Aria") for n in (5, 4, 3)]
        self.assertEqual(self.quoted(hit("m1", FACT), *own), ["m1", "m5"])

    def test_no_own_line_on_what_changed(self):
        """None where others spoke of it later; a later line on another thing takes away none."""
        echo = hit("m2", ECHO, "Aria")
        self.assertEqual(self.quoted(echo, hit("m3", MOVED)), ["m3"])
        self.assertEqual(self.quoted(echo, hit("m3", "Rain again.")), ["m2", "m3"])
        beside = hit("m2", "Nothing of that.", "Aria")
        self.assertEqual(self.quoted(beside, hit("m3", MOVED)), ["m2", "m3"])

    def test_what_was_told_later(self):
        """A later line that shares as much scores as well as the earlier; no other line does."""
        old, new = hit("m1", FACT, score=0.4), hit("m3", MOVED, score=0.001)
        scores = [each["score"] for each in worth_quoting([old, new], "Aria", QUESTION)]
        self.assertEqual(scores, [0.4, 0.4])
        for other in (
            hit("m3", "The forge is hot.", score=0.001),
            hit("m3", MOVED, kind="memory", score=0.001),
        ):
            kept = worth_quoting([old, other], "Aria", QUESTION)[1]
            self.assertEqual(kept["score"], 0.001)
