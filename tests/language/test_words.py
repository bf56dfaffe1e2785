"""Words: their stems, and what a text is about."""

import unittest

from evennia_ai.language.words import (
    singular,
    stem,
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

    def test_names_heard_all_the_time(self):
        """A name left out is left out in each form; one that is a common word counts."""
        self.assertEqual(telling_words("Aria's bees", ["Aria"]), {"bee"})
        self.assertEqual(telling_words("My cousin Will", ["Will"]), {"cousin"})
        self.assertEqual(telling_words("My cousin Will"), {"cousin", "will"})


class TestElsewhere(unittest.TestCase):
    """What lines in other languages are about."""

    def test_question_and_statement_meet(self):
        """In their telling words, in whatever form; names heard all the time are none."""
        for told, asked in (
            ("Der Schlüssel hängt hinter dem Ofen.", "Wo sind die Schlüssel?"),
            ("Ключ от погреба висит за печкой.", "Где ключи от погребов?"),
            ("地窖的钥匙挂在炉子后面。", "我在哪儿能找到地窖钥匙？"),
            ("지하실 열쇠는 난로 뒤에 있다.", "열쇠를 어디에서 찾나요?"),
        ):
            self.assertTrue(telling_words(told) & telling_words(asked), told)
        self.assertNotIn("jurgen", telling_words("Wo schläft Jürgen, der Müller?", ["Jürgen"]))


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
