"""Which messages a note rests on."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Speaker
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.rag_memory.provenance import hits_in, is_recalled, supporting
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests.search_case import told
from tests.strategies import heard, marker, numbered, reply, result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})


class TestSupporting(unittest.TestCase):
    """Messages that bear a note out."""

    def found(self, note, *messages):
        return supporting(note, numbered(messages))

    def test_what_says_the_same(self):
        """What was said in much the same words is named, who said it counted in."""
        alice = Speaker("Alice", "o1")
        said = (heard("the weather is fine"), heard("my boat is called Heron", speaker=alice))
        self.assertEqual(self.found("Alice's boat is called Heron.", *said), ("m1",))

    def test_best_first_and_of_equals_the_newer(self):
        """The nearest comes first."""
        said = (
            heard("Bob owes Alice barrels"),
            heard("Bob owes Alice 3 barrels of cider"),
            heard("Bob owes Alice barrels"),
        )
        note = "Bob owes Alice 3 barrels of cider."
        self.assertEqual(self.found(note, *said), ("m1", "m2", "m0"))

    def test_nothing_bears_it_out(self):
        """Far words, tool results and summaries name nothing; nor does a note without words."""
        note = "Bob keeps bees in Norvik."
        others = (heard("Bob said hello"), result("c1", note), marker(content=note))
        self.assertEqual(self.found(note, *others), ())
        self.assertEqual(self.found("Oh well, it is.", reply("oh well, it is")), ())


class TestRecalled(unittest.TestCase):
    """Whether a note of a turn only repeats memories."""

    DRINK = told("Alice: My favourite drink is plum brandy.")
    NOTE = "Alice's favourite drink is plum brandy."

    def is_recalled(self, note, *messages, memories=(DRINK,)):
        return is_recalled(note, numbered(messages), ("m0",), memories, TRAITS)

    def said(self, text):
        return heard(text, speaker=Speaker("Alice", "o1"))

    def test_asked(self):
        """A question tells nothing: what is noted then comes from memory, in whatever words."""
        asked = self.said("Aria, is my drink plum brandy?")
        self.assertTrue(self.is_recalled(self.NOTE, asked))
        self.assertTrue(self.is_recalled("Plum brandy: Alice drinks it.", asked))
        self.assertFalse(self.is_recalled("Bob keeps bees.", asked))
        self.assertFalse(self.is_recalled("Oh well.", asked))
        self.assertFalse(self.is_recalled(self.NOTE, asked, memories=()))

    def test_told(self):
        """What is told anew, or with another value, is news."""
        for text in ("It is. My favourite drink is plum brandy.", "Now my favourite is cider."):
            self.assertFalse(self.is_recalled(f"Alice: {text}", self.said(text)))
        self.assertTrue(self.is_recalled(self.NOTE, self.said("Hello Aria. What do I drink?")))

    def test_found_by_a_tool(self):
        """What a tool saw elsewhere is news; what it found in memory is not."""
        note, asked = "Alice keeps plum brandy in a cellar.", self.said("What do I keep?")
        look, found = (
            replace(result("c1", "Alice keeps plum brandy in a cellar"), name=name)
            for name in ("look", "search_memory")
        )
        self.assertFalse(self.is_recalled(note, asked, look))
        self.assertTrue(self.is_recalled(note, asked, found))


class TestHits(unittest.TestCase):
    """Memories in tools' results and replies."""

    def test_hits_in(self):
        """Those of a search, of an opened text and what stands around it, or of plain words."""
        for text, texts in (
            ('{"results": [{"id": "m1", "text": "bees"}, {"id": "m2"}, 5]}', ["bees"]),
            ('{"id": "m1", "text": "bees", "around": [{"text": "ale"}]}', ["bees", "ale"]),
            ("bees", ["bees"]),
            ("[5]", []),
        ):
            self.assertEqual([hit.text for hit in hits_in(text)], texts)
