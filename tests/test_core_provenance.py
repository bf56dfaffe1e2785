"""Which messages a note rests on."""

import unittest

from evennia_ai.core.provenance import supporting
from tests.strategies import heard, marker, numbered, reply, result


class TestSupporting(unittest.TestCase):
    """Messages that bear a note out."""

    def found(self, note, *messages, **options):
        return supporting(note, numbered(messages), **options)

    def test_what_says_the_same(self):
        """What was said in much the same words is named, who said it counted in."""
        alice = {"key": "Alice", "id": "o1"}
        said = (heard("the weather is fine"), heard("my boat is called Heron", speaker=alice))
        self.assertEqual(self.found("Alice's boat is called Heron.", *said), ("m1",))

    def test_best_first_and_of_equals_the_newer(self):
        """The nearest comes first, and no more than wanted."""
        said = (
            heard("Bob owes Alice barrels"),
            heard("Bob owes Alice 3 barrels of cider"),
            heard("Bob owes Alice barrels"),
        )
        note = "Bob owes Alice 3 barrels of cider."
        self.assertEqual(self.found(note, *said), ("m1", "m2", "m0"))
        self.assertEqual(self.found(note, *said, most=1), ("m1",))

    def test_nothing_bears_it_out(self):
        """Far words, tool results and summaries name nothing; nor does a note without words."""
        note = "Bob keeps bees in Norvik."
        others = (heard("Bob said hello"), result("c1", note), marker(content=note))
        self.assertEqual(self.found(note, *others), ())
        self.assertEqual(self.found("Oh well, it is.", reply("oh well, it is")), ())
