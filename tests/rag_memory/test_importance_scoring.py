"""Importance scoring: chatter low, what is asked for later high."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.rag_memory.importance_scoring import BASE, score_importance


class TestScore(unittest.TestCase):
    """The scale."""

    def test_order_of_things(self):
        """Nothing told, question, remark, fact about somebody, what is to be remembered."""
        for text in ("", "   ", "Hello there!", "Thank you!", "?"):
            self.assertEqual(score_importance(text), 1, text)
        texts = [
            "Do you like the music here?!?",
            "We saw a cat.",
            "Alice lives in Riga.",
            "Bob promised to return the silver key to Alice.",
        ]
        scores = [score_importance(text) for text in texts]
        self.assertEqual(scores, sorted(set(scores)))
        self.assertEqual(scores[1], BASE)

    def test_a_fact_about_somebody_stays_in_retrieval(self):
        """Names and numbers count, in every language."""
        for text in ("Alice keeps bees.", "Anna hat drei Katzen.", "There are 7 of them."):
            self.assertGreaterEqual(score_importance(text), 4, text)

    @given(st.text(max_size=300))
    def test_any_text_has_a_score(self, text):
        """Whatever is written, the score is a whole number from 1 to 10."""
        self.assertIn(score_importance(text), range(1, 11))
