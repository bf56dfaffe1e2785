"""Words: their stems, and what a text is about."""

import unittest

from evennia_ai.language.words import (
    bare,
    same_word,
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

    def test_small_talk(self):
        """Greetings say nothing."""
        for text in ("Guten Abend zusammen!", "¡Buenas noches!", "大家好！", "Добрый вечер!"):
            self.assertEqual(telling_words(text), frozenset(), text)

    def test_stems_of_a_language_without_a_stemmer(self):
        """Words stay as they are; forms of one are the same all the same."""
        self.assertEqual(stem("磨坊", "zh"), "磨坊")
        self.assertTrue(same_word("прохора", "прохор", "ru"))
        self.assertFalse(same_word("bakers", "baker", "en"))


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
