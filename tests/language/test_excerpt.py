"""What is shown of a long text."""

import unittest

from evennia_ai.language.words import CUT
from evennia_ai.language.words import excerpt as shown_part

ROOM = 400


def excerpt(text, query):
    """As much as has room."""
    return shown_part(text, query, ROOM)


class TestExcerpt(unittest.TestCase):
    def test_lines_that_match(self):
        """Of a summary the lines that share words with the query are shown, whole, in order."""
        chatter = [f"Cora: The road to Ford was mud, day {day}." for day in range(40)]
        rows = ["Bob: Tomas keeps bees.", *chatter, "Alice: The bees of Tomas swarmed."]
        shown = excerpt("\n".join(rows), "Tomas bees").splitlines()
        self.assertEqual((shown[0], shown[-1]), (rows[0], rows[-1]))
        self.assertTrue(set(shown) <= set(rows))
        self.assertLessEqual(len("\n".join(shown)), ROOM)

    def test_in_every_script(self):
        """The part that is asked about is shown, in other forms of its words, too."""
        for fact, filler, query in (
            ("地窖的钥匙挂在炉子后面。", "昨天下了雨，明天开市。", "地窖钥匙在哪儿？"),
            ("Ключ от погреба висит за печкой. ", "Вчера шёл дождь. ", "Где ключи от погребов?"),
        ):
            self.assertIn(fact.strip(), excerpt(filler * 60 + fact + filler * 60, query))

    def test_one_long_line(self):
        """A line that does not fit is cut, and says so."""
        shown = excerpt("bees " * 200, "bees")
        self.assertTrue(ROOM >= len(shown) > ROOM - 9 and shown.endswith(f"bees{CUT}"), shown)

    def test_late_in_a_long_line(self):
        """The sentence with most of the query's words is shown, from its beginning on."""
        told = "Old Tomas keeps bees behind the mill."
        rain = "It rained on the bees. " * 40
        for text in (rain + told, rain + told + " " + rain):
            shown = excerpt(text, "Where does Tomas keep bees?")
            self.assertIn(told, shown)
            self.assertEqual(shown[:2], f"{CUT} ")
            self.assertEqual(shown.endswith(f". {CUT}"), text.endswith(rain))
            self.assertLessEqual(len(shown), ROOM)

    def test_without_sentences(self):
        """A line without an end to its sentences begins with a whole word, if it has words."""
        words = "rain and " * 90
        shown = excerpt(f"{words}bees {words}", "bees")
        self.assertIn(" bees ", shown)
        self.assertEqual({shown.split()[0]} & {f"{CUT}rain", f"{CUT}and"}, {shown.split()[0]})
        shown = excerpt("x" * 900 + "-bees-" + "x" * 900, "bees")
        self.assertIn("bees", shown)
        self.assertEqual(shown[0] + shown[-1], 2 * CUT)

    def test_a_line_with_just_the_room(self):
        """Of several lines the best is shown, though it takes all the room."""
        best = "bees " * 80
        self.assertEqual(excerpt(f"{best}\nrain", "bees"), best)
