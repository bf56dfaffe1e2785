"""`evennia ai`, as far as it needs no game."""

import contextlib
import io
import unittest

from evennia_ai import llm_interaction
from evennia_ai.cli import launcher


class TestMain(unittest.TestCase):
    """The words after `evennia ai`."""

    def run_with(self, *words):
        """What is printed, and the exit code."""
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), self.assertRaises(SystemExit) as ended:
            launcher.main(*words)
        return shown.getvalue(), ended.exception.code

    def test_usage(self):
        """Without a word, or asked for help, it shows its usage and is content."""
        for words in ((), ("help",), ("--help",), ("-h",)):
            with self.subTest(words=words):
                shown, code = self.run_with(*words)
                self.assertIn("evennia ai doctor", shown)
                self.assertEqual(code, 0)

    def test_unknown_word(self):
        """A word it does not know shows the usage and is a fault of the caller."""
        shown, code = self.run_with("frobnicate")
        self.assertIn("evennia ai doctor", shown)
        self.assertEqual(code, 2)


class TestHelpers(unittest.TestCase):
    """The lazily imported names of `llm_interaction`."""

    def test_lends_the_counter(self):
        """`count_conversation_tokens` can be had from the package; nothing else is made up."""
        self.assertEqual(llm_interaction.count_conversation_tokens([]), 0)
        with self.assertRaisesRegex(AttributeError, "no attribute `nonsense`"):
            llm_interaction.nonsense  # noqa: B018
