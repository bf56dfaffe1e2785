"""Importance scoring: chatter low, what is asked for later high."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.rag_memory.importance_scoring import (
    BASE,
    importance_signals,
    score_importance,
)


def names(text):
    """The signals found in a text."""
    return set(importance_signals(text))


class TestScore(unittest.TestCase):
    """The scale."""

    def test_chatter_is_lowest(self):
        """Greetings, thanks, assent and nothing at all hold no fact."""
        for text in (
            "",
            "   ",
            "hi",
            "Hello there!",
            "How are you today?",
            "ok",
            "Thank you!",
            "?",
        ):
            self.assertEqual(score_importance(text), 1, text)
        self.assertEqual(importance_signals("  "), {})

    def test_a_plain_statement_is_the_base(self):
        """Nothing special, no signal."""
        self.assertEqual(score_importance("The weather is fine."), BASE)
        self.assertEqual(importance_signals("The weather is fine."), {})

    def test_what_is_asked_to_be_kept_is_high(self):
        """An explicit request beats any other single signal."""
        self.assertGreaterEqual(score_importance("Please remember this."), 7)
        self.assertGreaterEqual(score_importance("Never forget: the code is 4417."), 8)
        self.assertGreaterEqual(score_importance("Can you remember that I am allergic?"), 7)

    def test_order_of_things(self):
        """Chatter, question, remark, fact about somebody, promise: each above the last."""
        texts = [
            "Hello!",
            "Do you like the music here?!?",
            "We saw a cat.",
            "Alice lives in Riga.",
            "Bob promised to return the silver key on Friday.",
        ]
        scores = [score_importance(text) for text in texts]
        self.assertEqual(scores, sorted(scores))
        self.assertGreater(scores[-1], scores[2])

    def test_a_fact_about_somebody_stays_in_retrieval(self):
        """A short fact with a name is not below what the episodic index keeps."""
        self.assertGreaterEqual(score_importance("Alice keeps bees."), 4)

    def test_everything_at_once_is_ten(self):
        """The scale has an end."""
        text = "Remember: I promise my sister Tamsin 30 gold tomorrow, it is vital and secret."
        self.assertEqual(score_importance(text), 10)

    @given(st.text(max_size=300))
    def test_any_text_has_a_score(self, text):
        """Whatever is written, the score is a whole number from 1 to 10."""
        score = score_importance(text)
        self.assertIsInstance(score, int)
        self.assertTrue(1 <= score <= 10)

    def test_a_wall_of_text_is_judged_in_bounded_time(self):
        """Only the beginning of a very long text is read."""
        self.assertEqual(score_importance(" " * 5000 + "remember 1"), 1)
        wall = '"' * 4000
        self.assertEqual(score_importance(wall), score_importance(wall * 100))


class TestSignals(unittest.TestCase):
    """The reasons."""

    def test_each_kind_is_found(self):
        """One example for each signal."""
        examples = {
            "remember": "Keep in mind that it leaks.",
            "important": "The password is swordfish.",
            "promise": "I'll bring you the rope.",
            "preference": "He loves elderflower wine.",
            "relation": "My brother is a smith.",
            "emotion": "The old man died.",
            "time": "We leave tomorrow at first light.",
            "number": "There were thirty of them.",
            "name": "We met Tamsin there.",
            "greeting": "Good evening",
            "question": "Where is the cellar?",
            "short": "A cat",
            "long": "word " * 30,
        }
        for name, text in examples.items():
            self.assertIn(name, names(text), text)

    def test_typographic_apostrophes_count(self):
        """What a word processor makes of an apostrophe changes nothing."""
        self.assertEqual(names("I’ll bring rope and don’t forget"), {"promise", "remember"})

    def test_the_first_word_is_a_name_only_before_a_verb(self):
        """`Alice keeps` and `Alice's` name somebody, `Wine flows` cannot be told, `The` never."""
        self.assertIn("name", names("Alice keeps bees."))
        self.assertIn("name", names("Alice's bees are gone."))
        self.assertNotIn("name", names("Honey, please."))
        self.assertNotIn("name", names("He keeps bees. The end comes."))

    def test_signals_add_up_to_the_score(self):
        """The breakdown explains the number."""
        for text in ("Alice's favourite number is 7.", "Hello!", "I owe Bob ten gold."):
            total = BASE + sum(importance_signals(text).values())
            self.assertEqual(score_importance(text), max(1, min(10, total)))

    def test_more_of_a_kind_adds_up_to_a_cap(self):
        """Ten names are no more than two."""
        crowd = importance_signals("with Ann, Ben, Cid, Dora, Eli, Fay and Gus around")
        self.assertEqual(crowd["name"], 2)
