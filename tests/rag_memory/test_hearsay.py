"""What one player says of another is shown with who said it."""

import json

from evennia_ai.game.identity import stable_id
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.rag_memory.profile import Belief
from evennia_ai.rag_memory.provenance import attributed
from evennia_ai.recall.values import Hit
from evennia_ai.testing import call
from tests.base import AssistantTest


class TestHearsay(AssistantTest):
    """Char2 is Bram; Char speaks of nobody."""

    def setUp(self):
        super().setUp()
        self.char2.key, self.char2.location = "Bram", self.room1
        self.char2.sessions.add(self.session)

    def observed(self, entity, text, speaker, said="Char pinched the pewter spoons."):
        """A note of what somebody said; returns the observation."""
        self.model.answers = [
            call("update_entity_observation", entity=entity, observation=text),
            "",
        ]
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
        told = {
            "Char took all the spoons.": "Bram said",
            "Bram owns spoons.": "",
        }
        for text, who in told.items():
            entry = self.aria.journal.add(text, source_message_ids=(said.id,))
            hit = Hit(entry.id, 1.0, "", text, entry.timestamp, "journal")
            self.assertEqual(attributed(self.script, hit).speaker, who)
        message = Hit(said.id, 1.0, "Bram", said.content, 0, "message")
        self.assertIs(attributed(self.script, message), message)
