"""Features as such: each can be taken out, and what is left without one is named."""

import unittest

from django.test import SimpleTestCase, override_settings

from evennia_ai import conf
from evennia_ai.assistant_script import all_assistants
from evennia_ai.commands import all_commands
from evennia_ai.features.errands import open_errands, take
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.messages import Speaker
from evennia_ai.privacy.export import export_player
from evennia_ai.staff.doctor import check_tools
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

# Tests of the core: hearing, answering, remembering, forgetting, commands.
CORE = (
    "tests.turns.test_tick",
    "tests.turns.test_turns.TestModelDown",
    "tests.turns.test_turns.TestKeptNotes",
    "tests.game.test_hearing.TestHeard",
    "tests.privacy.test_forget.TestForgotten",
    "tests.rag_memory.test_ledger",
    "tests.commands.test_commands.TestLookup",
)


class TestTakenOut(SimpleTestCase):
    databases = ("default",)

    def test_the_core_works_without(self):
        """Without any one of the features that ship, and without all, the core's tests pass."""
        for left in ([], *([each for each in conf.SHIPPED if each != out] for out in conf.SHIPPED)):
            with self.subTest(left=left), override_settings(EVENNIA_AI_FEATURES=left):
                tests = unittest.defaultTestLoader.loadTestsFromNames(CORE)
                self.assertGreater(tests.countTestCases(), 60)
                result = unittest.TestResult()
                tests.run(result)
                self.assertEqual((result.errors, result.failures), ([], []))

    def test_what_it_brings_goes(self):
        """Its tools and commands are gone with it, and nothing else is."""
        everything, features = conf.usable_tools(conf.features()), conf.features()
        commands = {command.key for command in all_commands()}
        for path, feature in zip(conf.SHIPPED, features, strict=True):
            left = [each for each in conf.SHIPPED if each != path]
            with self.subTest(path), override_settings(EVENNIA_AI_FEATURES=left):
                tools = conf.usable_tools(conf.features())
                self.assertEqual({*everything} - {*tools}, {*feature.tools})
                gone = commands - {command.key for command in all_commands()}
                self.assertEqual(len(gone), len(feature.commands))


class TestWhatIsLeft(CommandLineTest):
    def forget(self):
        self.typed("aiforget me")
        return self.typed("aiforget me = yes", until="Forgotten:")

    @override_settings(EVENNIA_AI_FEATURES=[])
    def test_of_one_that_ships(self):
        """What a feature stored before it was taken out is exported and forgotten."""
        own = Speaker(self.char1.key, stable_id(self.char1))
        take(self.script, own, own, "feed the cat", "in 2h")
        path = wait_for(export_player(all_assistants(), [own.id]))
        self.assertIn("feed the cat", path.read_text())
        path.unlink()
        self.assertNotIn("errands", self.forget())
        self.assertEqual(open_errands(self.script).errands, ())

    def test_of_one_that_nobody_knows(self):
        """What somebody else's feature left is named, with its assistant."""
        self.script.store.set("x", {"said": "it rains"}, "ai_feature_weather")
        self.assertIn("Not looked at is what weather left with Aria", self.forget())


class TestBroken(CommandLineTest):
    @override_settings(EVENNIA_AI_FEATURES=["world.gone.Feature", *conf.SHIPPED])
    def test_a_path_that_leads_nowhere(self):
        """It is reported, and the others work."""
        self.assertEqual(len(self.script.features), len(conf.SHIPPED))
        self.assertIn("world.gone.Feature", self.typed("aistatus Aria"))
        self.assertTold("aierrand Aria", "has nothing to tell for you")
        self.assertIn("`EVENNIA_AI_FEATURES` names `world.gone.Feature`", check_tools(True).detail)
