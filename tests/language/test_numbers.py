"""Numbers in a text and their values."""

import unittest

from evennia_ai.language.numbers import with_values
from evennia_ai.language.script import with_digits


class TestNumbers(unittest.TestCase):
    def test_digits_of_all_scripts(self):
        """Each becomes one of ours or stays, also one that Python's tables do not know yet."""
        every = "".join(map(chr, (n for n in range(0x110000) if not 0xD800 <= n < 0xE000)))
        for text in (every, "\U00016130", "\U0001ccf0"):
            self.assertEqual(len(with_digits(text)), len(text))
        self.assertEqual(with_digits("٣४๕"), "345")

    def test_same_value_same_word(self):
        """However a number is written, it becomes one word."""
        for code, one, other in (
            ("zh", "三百四十两银子", "340两银子"),
            ("zh", "二十三个人", "23个人"),
            ("ja", "一万二千円", "12000円"),
            ("ja", "羊を二頭", "羊を2頭"),
            ("ko", "삼백사십냥", "340냥"),
            ("ko", "염소 다섯 마리", "염소 5 마리"),
            ("th", "สามร้อยสี่สิบเหรียญ", "340เหรียญ"),
            ("es", "treinta y dos cabras", "32 cabras"),
            ("de", "zwölf", "12"),
        ):
            both = [" ".join(with_values(each, code).split()) for each in (one, other)]
            self.assertEqual(both[0].replace(" ", ""), both[1].replace(" ", ""), one)
        self.assertEqual(with_values("一起去", "zh"), "一起去")
        self.assertEqual(with_values("一三四〇年", "ja"), " 1340 年")
        self.assertEqual(with_values("two three").split(), ["2", "3"])
