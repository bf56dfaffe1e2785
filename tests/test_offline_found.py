"""What `search_memory` shows of a long text."""

import unittest

from evennia_ai.tools.memory import CUT, RESULT_CHARS, excerpt


class TestExcerpt(unittest.TestCase):
    def test_short(self):
        """A text that fits is shown as it is, one of nothing but space cut."""
        self.assertEqual(excerpt("Bob: I keep bees.\n", "bees"), "Bob: I keep bees.\n")
        self.assertEqual(len(excerpt(" " * 900, "bees")), RESULT_CHARS)

    def test_lines_that_match(self):
        """Of a summary the lines that share words with the query are shown, whole, in order."""
        chatter = [f"Cora: The road to Ford was mud, day {day}." for day in range(40)]
        rows = ["Bob: Tomas keeps bees.", *chatter, "Alice: The bees of Tomas swarmed."]
        shown = excerpt("\n".join(rows), "Tomas bees").splitlines()
        self.assertEqual((shown[0], shown[-1]), (rows[0], rows[-1]))
        self.assertTrue(set(shown) <= set(rows))
        self.assertLessEqual(len("\n".join(shown)), RESULT_CHARS)

    def test_one_long_line(self):
        """A line that does not fit is cut, and says so."""
        shown = excerpt("bees " * 200, "bees")
        self.assertEqual((len(shown), shown[-1]), (RESULT_CHARS, CUT))
