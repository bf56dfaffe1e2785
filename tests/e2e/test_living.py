"""Aria's life in a started game: told, asked, asleep, compacted, reloaded, killed."""

import random
import re
import unittest
from collections import Counter

import pytest

from tests.e2e.game import Game
from tests.e2e.kept import kept

pytestmark = pytest.mark.e2e

QUESTIONS = (
    ("Aria, what is my ferry called?", r"Aria says[^\n]*Heron"),
    ("Aria, where does my sister Marla live?", r"Aria says[^\n]*Oakhaven"),
)
TELLERS = ("Alice", "Bob")
# Who tells it, how, how the other asks for it, and what the answer holds.
FACTS = (
    ("Alice", "My uncle Rolf keeps fourteen goats.", "How many goats does Rolf keep?", "fourteen"),
    ("Bob", "The key to the attic is under the blue pot.", "Where is the attic key?", "blue pot"),
    ("Alice", "Old Henrik sold the mill for 300 crowns.", "What did Henrik sell?", "mill"),
    ("Bob", "I was born in Velmark.", "Where was Bob born?", "Velmark"),
    ("Alice", "Sabine plays the lute at weddings.", "What does Sabine play?", "lute"),
    ("Bob", "The coach to Ashby leaves at dawn.", "When does the coach to Ashby leave?", "dawn"),
    ("Alice", "I owe Petra nine ducats.", "How much does Alice owe Petra?", "nine"),
    ("Bob", "My horse is chestnut.", "What colour is Bob's horse?", "chestnut"),
    ("Alice", "Fenn is afraid of geese.", "What is Fenn afraid of?", "geese"),
    ("Bob", "The cellar password is nightjar.", "What is the cellar password?", "nightjar"),
)
CHATTER = (
    "The stew is better than yesterday's.",
    "They say the winter will be hard.",
    "The road to the north is muddy.",
    "Somebody has taken my stool.",
    "The boats were late again this morning.",
)
COMPACTIONS = 3
SETTINGS = "CREATION_THROTTLE_LIMIT = None\nLOGIN_THROTTLE_LIMIT = None"


class Tavern:
    """The started game, an admin and two players in it, and how often each line was said."""

    def __init__(self, game):
        self.game, self.rng, self.said = game, random.Random(1), Counter()
        self.admin = game.admin(60)
        self.players = {name: game.player(name, timeout_s=60) for name in TELLERS}

    def leave(self):
        for connection in (self.admin, *self.players.values()):
            connection.close()

    def tell(self, who, text, answer="You say"):
        """Say something; returns what was shown."""
        for player in self.players.values():
            player.drain(0.02)
        self.said[text] += 1
        return self.players[who].ask(f"say {text}", answer, 60)

    def ask(self, who, question):
        """What Aria answers."""
        shown = self.tell(who, question, r"Aria says, \"[^\n]*") + self.players[who].drain(1.5)
        return " ".join(re.findall(r"Aria says, \"(.*)\"", shown))


class TestLiving(unittest.TestCase):
    """One story, as a player, a builder and an owner would live it."""

    def type(self, player, line, pattern, timeout_s=30, quiet_s=2):
        """Type a line, wait for its answer and then for some quiet."""
        player.ask(line, pattern, timeout_s)
        player.drain(quiet_s)

    def ask_all(self, player, when):
        """Both facts are found again."""
        for question, pattern in QUESTIONS:
            with self.subTest(when=when, question=question):
                self.type(player, f"say {question}", pattern, 40)

    def facts_outlive_compactions(self, game):
        """Facts told and compacted away are answered in other words; every line is kept once."""
        tavern = Tavern(game)
        quick = (
            "from evennia_ai.assistant_script import AssistantScript as S; S.reply_cooldown_s = 0"
        )
        tavern.admin.ask(f"py {quick}; self.msg('quick now')", r"\nquick now")
        for number in range(COMPACTIONS):
            for teller, told, _, _ in FACTS[number::COMPACTIONS]:
                tavern.tell(teller, told)
            for _ in range(8):  # of fewer lines no summary is made
                tavern.tell(tavern.rng.choice(TELLERS), tavern.rng.choice(CHATTER))
            tavern.admin.drain(3)
            tavern.admin.ask("compact Aria", r"Aria compacted [1-9]", 60)
        tavern.admin.drain(3)
        for teller, told, question, value in FACTS:
            other = next(name for name in TELLERS if name != teller)
            with self.subTest(told=told, asked=question):
                self.assertIn(value, tavern.ask(other, f"Aria, {question}"))
        tavern.admin.ask("compact/verify Aria", "Aria: proven", 60)
        found = kept(game)
        times = {text: found["times"].get(text, 0) for text in tavern.said}
        self.assertEqual((times, found["doubled"], found["violations"]), (tavern.said, [], []))
        tavern.leave()

    def test_she_remembers_through_everything(self):
        """Told a thing, she finds it after sleep, compaction, reload, kill and restart."""
        with Game(settings=SETTINGS) as game:
            player = game.admin()
            self.type(player, "say Hello, Aria!", r"Aria says", 60)
            boat = "say Aria, please remember that my ferry is called Heron."
            self.type(player, boat, r"Aria says")
            self.type(player, "say Aria, my sister Marla lives in Oakhaven.", r"Aria \w+")
            self.ask_all(player, "told")
            unknown = r"(?i)Aria says[^\n]*(can't say|don't know)"
            player.ask("say Aria, what is the name of the king's horse?", unknown, 30)
            self.type(player, "ai/sleep Aria", r"(?i)asleep|sleep", quiet_s=8)
            self.type(player, "aistatus Aria", r"(?i)memory_links|memory links", quiet_s=1)
            player.ask("ai/wake Aria", r"(?i)wake")
            self.ask_all(player, "slept")
            window = "compact_preserve_window"
            player.ask(f"aiconfig Aria {window} = 2", rf"(?i){window}")
            self.type(player, "compact Aria", r"(?i)compacted|tokens", 40)
            self.ask_all(player, "compacted")
            player.close()
            self.facts_outlive_compactions(game)
            game.reload()
            player = game.admin()
            self.ask_all(player, "reloaded")
            player.close()
            game.kill_hard()
            game.start()
            player = game.admin()
            self.ask_all(player, "killed and restarted")
            self.assertNotIn("Traceback", game.log("server.log"))
            player.close()
