"""Numbers in a text and their values."""

import unittest

from evennia_ai.language.numbers import numbers_in, with_values
from evennia_ai.language.script import with_digits


class TestNumbers(unittest.TestCase):
    """Digits and words."""

    def test_found(self):
        """Each stands once, in digits and in words; what is as often no number does not."""
        found = numbers_in("Three of 1,200 coins at 17:30; three more, no one at first, the 3rd.")
        self.assertEqual(list(found), ["1,200", "17:30", "3rd", "three"])

    def test_digits_of_all_scripts(self):
        """Each becomes one of ours or stays, also one that Python's tables do not know yet."""
        every = "".join(map(chr, (n for n in range(0x110000) if not 0xD800 <= n < 0xE000)))
        for text in (every, "\U00016130", "\U0001ccf0"):
            self.assertEqual(len(with_digits(text)), len(text))
        self.assertEqual(with_digits("٣४๕"), "345")

    def test_same_value_same_word(self):
        """However a number is written, it becomes one word."""
        for one, other in (
            ("1,200", "1200"),
            ("three", "3"),
            ("05:30", "5:30"),
            ("2.50", "2.5"),
            ("two hundred and five", "205"),
            ("twenty one", "21"),
            ("three thousand two hundred", "3200"),
            ("third", "3rd"),
        ):
            self.assertEqual(with_values(one).split(), with_values(other).split(), one)
        self.assertEqual(with_values("two three").split(), ["2", "3"])
