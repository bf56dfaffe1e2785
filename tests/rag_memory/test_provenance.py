"""Which messages a note rests on."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Speaker
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.rag_memory.provenance import grounds_of_turn, supporting
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests.search_case import told
from tests.strategies import heard, marker, numbered, reply, result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})


class TestSupporting(unittest.TestCase):
    """Messages that bear a note out."""

    def found(self, note, *messages, **options):
        return supporting(note, numbered(messages), **options)

    def test_what_says_the_same(self):
        """What was said in much the same words is named, who said it counted in."""
        alice = Speaker("Alice", "o1")
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


ALICE = Speaker("Alice", "o1")


def dated(*messages):
    """Messages m0, m1, ..., each a day later than the one before."""
    days = (f"2026-01-0{day}T00:00:00.000+00:00" for day in range(1, 10))
    pairs = zip(numbered(messages), days, strict=False)
    return [replace(message, created_at=day) for message, day in pairs]


class TestGrounds(unittest.TestCase):
    """What a note rests on, and whether it is only recalled."""

    DRINK = told("Alice: My favourite drink is plum brandy.")
    NOTE = "Alice's favourite drink is plum brandy."

    def test_of_a_turn(self):
        """What the turn answers is the source; told anew, or found by a tool, is not recalled."""
        asked = heard("Aria, what do I drink?", speaker=ALICE)
        found = grounds_of_turn(self.NOTE, dated(asked), ("m0",), [self.DRINK], TRAITS)
        self.assertEqual((found.sources, found.at), (("m0",), None))
        self.assertEqual((found.stated, found.recalled), (False, True))
        again = heard("It is. My favourite drink is plum brandy.", speaker=ALICE)
        self.assertTrue(
            grounds_of_turn(self.NOTE, dated(again), ("m0",), [self.DRINK], TRAITS).stated
        )
        note = "Alice keeps plum brandy, her drink, in a cellar."
        looked = replace(result("c1", "a cellar where a cask is keeping"), name="look")
        for messages, recalled in ((dated(asked), True), (dated(asked, looked), False)):
            found = grounds_of_turn(note, messages, ("m0",), [self.DRINK], TRAITS)
            self.assertEqual(found.recalled, recalled)
