"""What holds for the requests to a model, as a value."""

import unittest

from evennia_ai.llm_interaction.limits import Limits
from evennia_ai.llm_interaction.regions import Caps
from evennia_ai.llm_interaction.values import ModelFacts
from evennia_ai.llm_interaction.windows import Window


class TestLimits(unittest.TestCase):
    def test_the_smallest_bound_sets_it(self):
        """The option, the model's window or the spend limit of a call; each names itself."""
        for option, window, call, tokens, by, remedy in (
            (8_000, None, None, 8_000, "max_context", "Raise"),
            (8_000, 4_000, 6_000, 4_000, "the window of m, by its server", "larger window"),
            (8_000, 9_000, 6_000, 6_000, "spend limit of a call", "Raise"),
        ):
            facts = ModelFacts(window=Window(window, "its server") if window else None)
            limits = Limits("m", facts, option, call, Caps(0, 0, 0, 0), 0, False)
            self.assertEqual(limits.tokens, tokens)
            self.assertIn(by, limits.source[0])
            self.assertIn(remedy, limits.source[1])
