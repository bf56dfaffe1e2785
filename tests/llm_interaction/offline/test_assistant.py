"""An assistant on the offline model in a real game database: told, compacted, asked."""

import re

from evennia import create_object

from evennia_ai import services
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from tests.base import PLAYED, AssistantTest
from tests.waiting import wait_for

TOLD = (
    ("Alice", "Aria, please remember that my brother Tomas lives in Oakhaven and keeps 14 goats."),
    ("Bob", "The key to the cellar is under the blue pot."),
    ("Alice", "Old Henrik sold his mill for 300 crowns."),
    ("Bob", "I was born in Velmark in the year 812."),
    ("Alice", "My boat is called Heron."),
)
CHATTER = ("What a night.", "The rain won't stop.", "Another round over here!", "Cheers, all.")
ASKED = (
    ("Bob", "Aria, how many goats does Tomas have?", "14"),
    ("Alice", "Aria, where would I find the cellar key?", "blue pot"),
    ("Bob", "Aria, what did Henrik get for the mill?", "300"),
    ("Alice", "Aria, when was Bob born?", "812"),
    ("Alice", "Aria, what's my boat called?", "Heron"),
    ("Bob", "Aria, do you remember where Alice's brother lives?", "Oakhaven"),
)
UNTOLD = (
    ("Bob", "Aria, where is the attic?"),
    ("Bob", "Aria, who rules Burgundy?"),
    ("Alice", "Aria, what is the capital of Ys?"),
)


class TestOffline(AssistantTest):
    """The real script, model client and recall index; the model is the offline one."""

    def setUp(self):
        super().setUp()
        client = ModelClient()
        wait_for(client.warm_up())
        services.use(model=client)
        self.configure(llm_model="offline/extractive", compact_preserve_window=4)
        self.people = {}
        for name in ("Alice", "Bob"):
            self.people[name] = create_object(PLAYED, key=name, location=self.room1)
            self.people[name].permissions.add("Player")

    def heard(self, who, text):
        """Somebody says something; returns what Aria said to it."""
        before = {message.id for message in self.script.history.messages()}
        self.say(text, self.people[who])
        self.tick()
        new = [m for m in self.script.history.messages() if m.id not in before]
        return " ".join(m.content for m in new if m.role == "assistant").strip()

    def test_told_compacted_asked(self):
        """What was told is quoted after compaction, with who told it; nothing else is known."""
        for n, (who, text) in enumerate(TOLD):
            self.heard(who, text)
            self.heard("Bob", CHATTER[n % len(CHATTER)])
        done = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(done["success"], done)
        live = " ".join(m.content for m in self.script.history.messages() if m.role == "user")
        self.assertNotIn("blue pot", re.sub(r"(?s)\[CONTEXT SUMMARY\].*", "", live))
        for who, question, want in ASKED:
            with self.subTest(question=question):
                said = self.heard(who, question)
                self.assertIn(want, said)
                self.assertNotIn("Aria", said)
        for who, question in UNTOLD:
            with self.subTest(question=question):
                self.assertRegex(self.heard(who, question), r"can.t say")
