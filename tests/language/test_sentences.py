"""Sentences, and which texts only ask."""

import unittest

from evennia_ai.language.words import asks
from tests.search_case import ECHO, FACT, QUESTION


class TestAsks(unittest.TestCase):
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
