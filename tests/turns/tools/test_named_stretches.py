"""Which stretches of a typed line name somebody or something."""

import unittest

from evennia_ai.life import Named
from evennia_ai.turns.tools.execution import named_stretches

ORDERS = ("give", "drop", "look", "get", "say")


def named(line, people=(), things=()):
    """The names that a line holds, in a place with these people and things."""
    here = [Named(name, (name,), "person") for name in people]
    here += [Named(name, (name,), "thing") for name in things]
    stretches = named_stretches(line, here, "Aria", ORDERS)
    return {name for owners in stretches for name in owners}


class TestNamedStretches(unittest.TestCase):
    """A name counts as a whole, outside of what somebody else said."""

    def test_the_ending_of_a_name_is_no_name(self):
        """What is joined to a name that was found belongs to it."""
        for line, thing, ending in (
            ("은반지은 예쁘네요", "은반지", "은"),
            ("은반지를 보세요", "은반지", "를"),
            ("gümüş yüzük, yüzüğe bak", "yüzüğ", "e"),
        ):
            with self.subTest(line=line):
                self.assertNotIn(ending, named(line, [ending], [thing]))
        self.assertEqual(named("은반지 은 보세요", ["은"], ["은반지"]), {"은", "은반지"})

    def test_apostrophes_join(self):
        """A part of a name is none behind any form of an apostrophe."""
        for sign in "'’‘`´-":
            with self.subTest(sign=sign):
                self.assertEqual(
                    named(f"give O{sign}Brien the ring", ["Brien"], ["ring"]), {"ring"}
                )

    def test_any_quotation(self):
        """What stands behind any sign that opens a quotation is not the speaker's own."""
        for sign in ['"', "“", "„", "«", "‹", "「", "『", "〝", "″", "<<", "＂", "《", " '", " `"]:
            with self.subTest(sign=sign):
                line = f"he said {sign}give Bram the ring"
                self.assertEqual(named(line, ["Bram"], ["ring"]), set())
        self.assertEqual(named("it's Bram's ring, 5 < 6", ["Bram"], ["ring"]), {"Bram", "ring"})

    def test_names_of_orders(self):
        """The word of an order is not a thing that is called like it."""
        for order in ORDERS:
            with self.subTest(order=order):
                self.assertEqual(named(f"{order} at Mallory", ["Mallory"], [order]), {"Mallory"})


if __name__ == "__main__":
    unittest.main()
