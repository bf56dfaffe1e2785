"""`evennia ai`, as far as it needs no game."""

import contextlib
import io
import unittest

from evennia_ai.cli import launcher


class TestMain(unittest.TestCase):
    def test_usage(self):
        """Without a word, or asked for help, it shows its usage; an unknown word is a fault."""
        for *words, code in ((0,), ("help", 0), ("--help", 0), ("-h", 0), ("frobnicate", 2)):
            shown = io.StringIO()
            with (
                self.subTest(words=words),
                contextlib.redirect_stdout(shown),
                self.assertRaises(SystemExit) as ended,
            ):
                launcher.main(*words)
            self.assertIn("evennia ai doctor", shown.getvalue())
            self.assertEqual(ended.exception.code, code)
