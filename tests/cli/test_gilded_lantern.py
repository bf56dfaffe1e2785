"""The world of the template: built once, with a barrel to draw from."""

import importlib
import sys
import tempfile
from pathlib import Path

from django.test import override_settings
from evennia import ObjectDB, create_object
from evennia.server.models import ServerConfig

from evennia_ai.cli.new import create_game
from evennia_ai.language.tables import tables
from tests.asked import offline
from tests.base import AssistantTest


class TestGildedLantern(AssistantTest):
    """The world around `self.room1`, where `self.char2`, a player, stands at the bar."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as base:
            sys.path.insert(0, str(create_game(Path(base) / "game")))
            try:
                for name in ("npcs", "rooms", "tap"):
                    importlib.import_module(f"typeclasses.{name}")
                cls.world = importlib.import_module("world.build")
            finally:
                sys.path.pop(0)

    def setUp(self):
        super().setUp()
        self.aria.delete()
        self.enterContext(override_settings(START_LOCATION=f"#{self.room1.id}"))
        self.world.build_world()
        self.aria = self.world.find("aria")
        self.script = self.aria.assistant
        self.script.stop()
        self.tap = self.world.find("tap")
        self.account2.permissions.clear()
        self.account2.permissions.add("Player")
        self.char2.account = self.account2
        self.char2.sessions.add(self.session)  # so that a player speaks, not a scripted character
        self.char2.location = self.room1
        self.lines = self.lines_of(self.char2)

    def tearDown(self):
        self.world.find("villager").delete()  # its ticker ends with it
        super().tearDown()

    def ask(self, text):
        """The player says something to Aria, who thinks with the offline model."""
        self.model.default = offline
        self.configure(llm_model="offline/extractive")
        self.talk(text, speaker=self.char2)

    def drawn(self):
        """A mug that Aria draws."""
        self.tap.at_pre_get(self.aria)
        return self.aria.contents[0] if self.aria.contents else None

    def keys(self):
        """The names of everything there is."""
        return sorted(ObjectDB.objects.values_list("db_key", flat=True))

    def test_an_ale_is_asked_for_and_handed_over(self):
        """In plain words, to the offline model: a mug of ale ends in the player's hand."""
        self.ask("Aria, give me an ale")
        (mug,) = self.char2.contents
        self.assertEqual(mug.key, "mug of ale")
        self.assertIn("Aria draws a mug of ale.", self.lines)
        self.assertIn("Aria gives you a mug of ale.", self.lines)
        self.assertIn('Aria says, "Very well."', self.lines)

    def test_what_guests_ask_for(self):
        """Each of its names, with the verb of its language, brings it."""
        for code, named in self.world.plan.ASKED_FOR.items():
            self.configure(language=code)
            verb = tables()[code].get("words", "give").split("|")[0]
            for key, names in zip(("mug of ale", "bowl of soup"), named, strict=True):
                for name in names:
                    with self.subTest(code, name=name):
                        self.assertEqual(self.brought(f"Aria, {verb} {name}"), [key])

    def test_words_beside_what_is_asked_for(self):
        """A few little ones, and what follows a `please`; another thing is not given."""
        for text, keys in (
            ("A mug of ale, please, Aria", ["mug of ale"]),
            ("Aria, a bowl of soup please, whatever is hot", ["bowl of soup"]),
            ("Aria, give me ale money", []),
            ("Aria, give me the soup recipe, please", []),
            ("Aria, are you in pain?", []),
        ):
            with self.subTest(text):
                self.assertEqual(self.brought(text), keys)

    def brought(self, text):
        """The names of what the player has after asking for something."""
        before = {*self.char2.contents}
        self.ask(text)
        brought = [thing for thing in self.char2.contents if thing not in before]
        names = [thing.key for thing in brought]
        for thing in brought:
            thing.delete()
        return names

    def test_the_first_time_and_afterwards(self):
        """A world built by an older version gets what is new once; another start adds nothing."""
        new = {"tap", "coin_1", "coin_2", "coin_3"}
        before = self.keys()
        for name in new:
            self.world.find(name).delete()
        done = set(ServerConfig.objects.conf(self.world.DONE))
        ServerConfig.objects.conf(self.world.DONE, sorted(done - new))
        self.assertEqual(self.world.build_world(), len(new))
        self.assertEqual(self.keys(), before)
        self.assertEqual(self.world.build_world(), 0)

    def test_players_ask_at_the_bar(self):
        """A player cannot draw; whoever keeps the bar can, with the command `get` as well."""
        self.char2.execute_cmd("get ale")
        self.assertIn("Ask for an ale", self.lines[-1])
        self.aria.execute_cmd("get ale")
        self.assertEqual([thing.key for thing in self.aria.contents], ["mug of ale"])
        self.assertIs(self.tap.location, self.room1)

    def test_twelve_mugs(self):
        """The oldest mug that nobody carries is filled again; with none left the barrel is dry.

        Each barrel counts its own mugs.
        """
        mugs = []
        for _ in range(12):
            mugs.append(self.drawn())
            mugs[-1].location = self.char2
        self.assertEqual(len({mug.id for mug in mugs}), 12)
        self.assertIsNone(self.drawn())
        mugs[7].location = self.room1
        mugs[3].location = self.room2
        self.assertEqual(self.drawn(), mugs[3])
        self.assertEqual(self.keys().count("mug of ale"), 12)
        other = create_object("typeclasses.tap.Tap", key="cider barrel", location=self.room1)
        other.at_pre_get(self.aria)
        self.assertEqual(len(self.aria.contents), 2)

    def test_looks(self):
        """Aria sees barrel, mug and coin by the names people use."""
        self.drawn()
        game = self.script.game
        for name, want in (
            ("tap", "brass tap"),
            ("ale barrel", "brass tap"),
            ("mug", "foam"),
            ("mug of ale", "foam"),
            ("coin", "bridge"),
            ("me", "ink on her thumb"),
        ):
            self.assertIn(want, game.look(name), name)
