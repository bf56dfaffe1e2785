"""Which messages a note rests on, and who said what is told of others."""

import json
import unittest
from dataclasses import replace

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.messages import Speaker, ToolTraits
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.rag_memory.entities import Belief
from evennia_ai.rag_memory.provenance import attributed, hits_in, is_recalled, supporting
from evennia_ai.recall.values import Hit
from evennia_ai.testing import call
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests.base import AssistantTest
from tests.search_case import told
from tests.strategies import heard, marker, numbered, reply, result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})


class TestSupporting(unittest.TestCase):
    def test_who_said_so(self):
        """Much the same words, with their speaker, the best first and of equals the newer.

        Far words, tool results and summaries bear nothing out, nor is a note without words borne.
        """
        boat = heard("my boat is called Heron", speaker=Speaker("Alice", "o1"))
        debt, little = "Bob owes Alice 3 barrels of cider.", heard("Bob owes Alice barrels")
        bees = "Bob keeps bees in Norvik."
        for note, said, found in (
            ("Alice's boat is called Heron.", (heard("the weather is fine"), boat), ("m1",)),
            (debt, (little, heard(debt), little), ("m1", "m2", "m0")),
            (bees, (heard("Bob said hello"), result("c1", bees), marker(content=bees)), ()),
            ("Oh well, it is.", (reply("oh well, it is"),), ()),
        ):
            self.assertEqual(supporting(note, numbered(said)), found)


class TestRecalled(unittest.TestCase):
    """Whether a note of a turn only repeats memories."""

    DRINK = told("Alice: My favourite drink is plum brandy.")
    NOTE = "Alice's favourite drink is plum brandy."

    def is_recalled(self, note, *messages, memories=(DRINK,)):
        return is_recalled(note, numbered(messages), ("m0",), memories, TRAITS)

    def said(self, text):
        return heard(text, speaker=Speaker("Alice", "o1"))

    def test_asked(self):
        """A question tells nothing: what is noted then, in a memory's words, comes from it."""
        asked = self.said("Aria, is it so that my favourite drink is plum brandy?")
        self.assertTrue(self.is_recalled(self.NOTE, asked))
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
        kept = told("Alice: I keep plum brandy in a cellar.")
        look, found = (
            replace(result("c1", "Alice keeps plum brandy in a cellar"), name=name)
            for name in ("look", "search_memory")
        )
        self.assertFalse(self.is_recalled(note, asked, look, memories=[kept]))
        self.assertTrue(self.is_recalled(note, asked, found, memories=[kept]))

    def test_in_any_language(self):
        """A memory's wording is recalled; news of what it tells of is not, however short."""
        for memory, repeated, said, news in (
            (
                "My boat is called Heron and lies at the quay.",
                "Alice's boat is called Heron and lies at the quay.",
                "I sold it.",
                "Alice sold her boat, the Heron, that lay at the quay.",
            ),
            (
                "Mein Boot heißt Reiher und liegt am Kai.",
                "Annas Boot heißt Reiher und liegt am Kai.",
                "Ich habe es verkauft.",
                "Anna hat ihr Boot verkauft, den Reiher, der am Kai lag.",
            ),
            (
                "我的船名叫苍鹭，现在停在老码头边上。",
                "小明的船名叫苍鹭，现在停在老码头边上。",
                "卖掉了。",
                "小明卖掉了停在老码头的船苍鹭。",
            ),
            (
                "私の舟の名前はサギで、古い桟橋にあります。",
                "花子の舟の名前はサギで、古い桟橋にあります。",
                "売りました。",
                "花子は桟橋の舟サギを売りました。",
            ),
        ):
            with self.subTest(memory):
                heard = self.said(said)
                self.assertTrue(self.is_recalled(repeated, heard, memories=[told(memory)]))
                self.assertFalse(self.is_recalled(news, heard, memories=[told(memory)]))

    def test_hits_in(self):
        """Those of a search, of an opened text and what stands around it, or of plain words."""
        for text, texts in (
            ('{"results": [{"id": "m1", "text": "bees"}, {"id": "m2"}, 5]}', ["bees"]),
            ('{"id": "m1", "text": "bees", "around": [{"text": "ale"}]}', ["bees", "ale"]),
            ("bees", ["bees"]),
            ('{"results": true, "around": 5}', []),
            ("[5]", []),
        ):
            self.assertEqual([hit.text for hit in hits_in(text)], texts)


class TestHearsay(AssistantTest):
    """Char2 is Bram; Char speaks of nobody."""

    def setUp(self):
        super().setUp()
        self.char2.key, self.char2.location = "Bram", self.room1
        self.char2.sessions.add(self.session)

    def observed(self, entity, text, speaker, said="Char pinched the pewter spoons."):
        """A note of what somebody said; returns the observation."""
        noted = call("update_entity_observation", entity=entity, observation=text)
        self.model.answers = [noted, ""]
        self.say(f"Aria, listen! {said}", speaker)
        self.tick()
        profiles = self.aria.entities.profiles().values()
        return next(item for p in profiles for item in p.observations if item.text == text)

    def test_of_another(self):
        """In a profile it is what that player said, in the prompt and in searches."""
        item = self.observed("Char", "Pinched the pewter spoons.", self.char2)
        self.assertEqual(Belief(item).line, "Bram said: Pinched the pewter spoons")
        self.assertIn("Bram said: Pinched", str(build_llm_messages(self.script, self.aria)))
        self.model.answers = [call("search_memory", query="pewter spoons of Char"), ""]
        self.say("Aria, what of the pewter spoons?")
        self.tick()
        result = [m for m in self.model.requests[-1].messages if m["role"] == "tool"][-1]
        hits = json.loads(result["content"])["results"]
        (found,) = [hit for hit in hits if hit.get("kind") == "observation"]
        self.assertEqual(found["speaker"], "Bram said")

    def test_of_oneself(self):
        """What people say of themselves needs no such word."""
        item = self.observed("Bram", "Keeps bees.", self.char2, "I keep bees in the orchard.")
        self.assertEqual(Belief(item).line, "Keeps bees")

    def test_journal(self):
        """A journal entry that comes back in a prompt says whose words it rests on."""
        self.say("Char pinched the pewter spoons.", self.char2)
        self.tick()
        said = self.script.history.messages()[0]
        self.assertEqual(said.speaker_id, stable_id(self.char2))
        told = {"Char took all the spoons.": "Bram said", "Bram owns spoons.": ""}
        for text, who in told.items():
            entry = self.aria.journal.add(text, source_message_ids=(said.id,))
            hit = Hit(entry.id, 1.0, "", text, entry.timestamp, "journal")
            self.assertEqual(attributed(self.script.journal, self.script.history, hit).speaker, who)
        message = Hit(said.id, 1.0, "Bram", said.content, 0, "message")
        self.assertIs(attributed(self.script.journal, self.script.history, message), message)
