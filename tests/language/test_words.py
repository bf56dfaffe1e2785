"""Words: their stems, and what a text is about."""

import unittest

from evennia_ai.language.words import (
    bare,
    singular,
    stem,
    telling_stem,
    telling_words,
)


class TestTellingWords(unittest.TestCase):
    """What a line is about."""

    def test_small_talk_has_none(self):
        """Greetings, thanks, the weather and names heard all the time say nothing."""
        for text in (
            "Good evening, how are you?",
            "thanks a lot",
            "lovely day, isn't it?",
            "Aria!",
        ):
            self.assertEqual(telling_words(text, ["Aria"]), frozenset(), text)

    def test_forms_are_one(self):
        """Endings do not part a question from its answer."""
        self.assertTrue(telling_words("who keeps a bee?") & telling_words("keeping bees"))
        self.assertEqual(telling_words("the baker's debt"), {"baker", "debt"})

    def test_names_heard_all_the_time(self):
        """A name left out is left out in each form; one that is a common word counts."""
        self.assertEqual(telling_words("Aria's bees", ["Aria"]), {"bee"})
        self.assertEqual(telling_words("My cousin Will", ["Will"]), {"cousin"})
        self.assertEqual(telling_words("My cousin Will"), {"cousin", "will"})


class TestForms(unittest.TestCase):
    """One word in several forms."""

    def test_plurals(self):
        """Singular and plural are one word."""
        for one, many in (
            ("party", "parties"),
            ("glass", "glasses"),
            ("box", "boxes"),
            ("torch", "torches"),
            ("house", "houses"),
            ("key", "keys"),
            ("bus", "bus"),
        ):
            self.assertEqual(singular(many), one)
            self.assertEqual(stem(many), stem(one))

    def test_verbs_and_derivations(self):
        """Forms of one word share a stem."""
        for forms in (
            ("dance", "dances", "danced", "dancing"),
            ("stop", "stopped", "stopping"),
            ("quick", "quickly"),
            ("inform", "information", "informs"),
            ("happi", "happiness", "happy"),
        ):
            self.assertEqual(len({stem(form) for form in forms}), 1, forms)

    def test_left_alone(self):
        """Short words and words in other letters have no endings."""
        self.assertEqual([stem(word) for word in ("sky", "naïves")], ["sky", "naïves"])

    def test_contractions(self):
        """Endings behind an apostrophe come off; a denial is one."""
        found = [bare(word) for word in ("bob's", "i’ve", "don't", "can’t", "it", "mat't")]
        self.assertEqual(found, ["bob", "i", "not", "not", "it", "mat"])

    def test_telling(self):
        """Common words, and their plurals, tell nothing; numbers do."""
        found = [telling_stem(word) for word in ("things", "don't", "x", "3", "baker's")]
        self.assertEqual(found, ["", "", "", "3", "baker"])
