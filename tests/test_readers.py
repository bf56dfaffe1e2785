"""No text that players, models or files bring takes a reader long: its work grows as the text."""

import unittest

from tests.growth import assert_not_square
from tests.readers import FORMS, UNITS, functions, mass, patterns
from tests.thoroughness import SHARE, sampled

# The characters of the longest line that a telnet client sends; fewer show the growth of steps.
CHARS = 6_000 if SHARE == 1 else 2_400
# Each reader tries these, and a share of all.
FIRST = ("1 ", "No. ", ";", "? ", "你好，")
TEXTS = [(form, unit) for form in FORMS for unit in UNITS]


class TestReaders(unittest.TestCase):
    def test_functions(self):
        """All readers, each with its share of the hostile texts."""
        for place, (name, work) in enumerate(functions()):
            self.check(name, work, place)

    @unittest.skipIf(SHARE < 1, "what patterns do takes time, no steps")
    def test_patterns(self):
        """All patterns of modules, asked as their modules ask them."""
        for place, (name, work) in enumerate(patterns()):
            self.check(name, work, place)

    def check(self, name, work, place):
        place %= len(TEXTS)
        others = sampled([*TEXTS[place:], *TEXTS[:place]])
        for form, unit in {*((FORMS[0], unit) for unit in FIRST), *others}:
            with self.subTest(name, form=form, unit=unit):
                assert_not_square(work, mass(form, unit), CHARS)
