"""Features as such: each can be taken out, and what is left without one is named."""

import ast
import re
import sys
import unittest
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from unittest import mock

from django.test import SimpleTestCase, override_settings

from evennia_ai import conf
from evennia_ai.assistant_script import all_assistants
from evennia_ai.commands import all_commands
from evennia_ai.feature import Feature, listed_features, usable_tools
from evennia_ai.features.errands import open_errands, take
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Speaker, utc_iso
from evennia_ai.kinds import Values
from evennia_ai.options import OPTIONS
from evennia_ai.privacy.export import export_player
from evennia_ai.privacy.forget import forget_people
from evennia_ai.staff.doctor import check_settings, check_tools
from evennia_ai.testing import call
from tests.command_line import CommandLineTest, WholePagesTest
from tests.fake import FakeGame
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import alone, wait_for

ALICE, BOB = (Speaker(name, FakeGame.people[name]) for name in ("Alice", "Bob"))

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
        everything, features = usable_tools(listed_features()), listed_features()
        commands = {command.key for command in all_commands()}
        for path, feature in zip(conf.SHIPPED, features, strict=True):
            left = [each for each in conf.SHIPPED if each != path]
            with self.subTest(path), override_settings(EVENNIA_AI_FEATURES=left):
                tools = usable_tools(listed_features())
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


class Faulty(Feature):
    """Raises wherever it is asked for something."""

    name = "faulty"

    def fail(self, *about):
        raise RuntimeError("a fault of the game's own")

    lines = heard = due = forget = export = fail


class TestFaulty(MemoryWorldTest):
    def test_nobody_waits_for_it(self):
        """What a feature raises is logged; the line is answered, and the others do their work."""
        self.script.features = (Faulty(), *listed_features())
        take(self.script, ALICE, BOB, "the boat leaves")
        self.hear("Good evening, Aria.", ALICE)
        self.world.later(5)
        self.world.model.answers = ["Good evening, Alice."]
        wait_for(self.script.tick())
        self.assertIn("Good evening, Alice.", [text for _, text in self.script.game.said])
        self.assertEqual(open_errands(self.script).errands, ())
        self.assertEqual({what for what, _ in self.script.errors}, {"the feature faulty"})
        self.assertEqual(len(self.script.errors), 3)


class Documented:
    """Lists the feature of the developing page, in a package of its own."""

    def setUp(self):
        text = (Path(__file__).parents[2] / "docs" / "developing.md").read_text(encoding="utf-8")
        [code] = re.findall(r"```python\n(# world/drinks.py.*?)```", text, re.DOTALL)
        [setting] = re.findall(r"EVENNIA_AI_FEATURES = (\[.*?\])", text, re.DOTALL)
        module = ModuleType("world.drinks")
        module.__spec__ = ModuleSpec("world.drinks", None)  # by which checks find it
        modules = {"world": ModuleType("world"), "world.drinks": module}
        self.enterContext(mock.patch.dict(sys.modules, modules))
        exec(code, module.__dict__)
        listed = ast.literal_eval(setting)
        self.assertEqual(listed, [*conf.SHIPPED, "world.drinks.Drinks"])
        self.enterContext(override_settings(EVENNIA_AI_FEATURES=listed))
        self.enterContext(mock.patch.dict(OPTIONS))  # what it brings goes with it
        super().setUp()  # which makes an assistant with the features of the setting


class TestDocumented(Documented, MemoryWorldTest):
    """It does what the page says."""

    def say(self, text, speaker, *answers, **fields):
        """What the model reads of a line, after it has answered."""
        self.hear(text, speaker, **fields)
        self.world.later(5)
        self.world.model.answers = list(answers)
        wait_for(self.script.tick())
        return self.world.model.requests[-1].messages[-1]["content"]

    def test_what_the_page_says(self):
        """It notes what is said, tells it to those who may know, and forgets it."""
        noted, mind = (
            call("note_drink", drink="cider"),
            "(On your mind: Alice likes to drink cider)",
        )
        whispered = {"channel": "whisper", "audience": private([ALICE.id])}
        self.say("I like cider best.", ALICE, noted, "So do I.", **whispered)
        self.assertIn(mind, self.say("And now?", ALICE, "Cider!", **whispered))
        self.assertNotIn(mind, self.say("What does Alice drink, Aria?", BOB, "Who knows?"))
        self.say("Aria, I like cider best.", ALICE, noted, "So do I.")
        self.world.restart()
        self.assertIn(mind, self.say("What does Alice drink, Aria?", BOB, "Cider!"))
        self.world.configure(drinks_told=0)
        self.assertNotIn(mind, self.say("And what does Alice drink?", BOB, "Cider!"))
        [drinks] = [each for each in self.script.features if each.name == "drinks"]
        own = drinks.export(self.script, [ALICE.id], lambda audience: True)
        self.assertEqual(own, [{"name": "cider", "audience": PUBLIC}])
        at = utc_iso(self.script.now())
        wait_for(alone(forget_people, self.script, self.body, [ALICE.id], at))
        self.assertEqual(drinks.export(self.script, [ALICE.id], lambda audience: True), [])


class TestDocumentedOption(Documented, WholePagesTest):
    """The option that it brings is like any other."""

    def test_a_command_sets_it(self):
        """It is listed, explained, checked, set, and set back by an undo."""
        self.assertTold("aiconfig Aria", "Drinks\n", "drinks_told = 5 (default)")
        self.assertTold("aiconfig Aria drinks_told", "Guests whose", "whole number from 0 to 50")
        self.assertTold("aiconfig Aria drinks_told = 99", "`drinks_told` takes", "not '99'")
        self.assertTold("aiconfig Aria drinks_told = 2", "drinks_told is now 2", "It was: 5")
        self.assertEqual(self.script.config.drinks_told, 2)
        self.assertTold("aiconfig/undo Aria", "drinks_told is again")
        self.assertEqual(self.script.config.drinks_told, 5)

    def test_a_group_has_it(self):
        """The setting gives it to groups; the checks, which load no feature, say nothing of it."""
        groups = {self.aria.typeclass_path: {"drinks_told": 3}, "guard": {"drinks_told": 51}}
        with override_settings(EVENNIA_AI_OPTIONS=groups):
            self.assertEqual(self.script.config.drinks_told, 3)
            self.assertTold("aiconfig Aria drinks_told", "EVENNIA_AI_OPTIONS")
            self.assertEqual(len([*conf.wrong_options()]), 1)
            del OPTIONS["drinks_told"]
            self.assertEqual([*conf.wrong_options()], [])

    def test_a_name_that_nobody_brings(self):
        """The doctor, who loads the features, reports it; an option that one brings is none."""
        for groups, found in (
            ({"guard": {"drinks_tolled": 3}}, "There is no option `drinks_tolled`"),
            ({"guard": {"drinks_told": 51}}, "`drinks_told` takes"),
            ({"guard": {"drinks_told": 3, "post": False}}, ""),
        ):
            OPTIONS.pop("drinks_told", None)  # as before the features are loaded
            with self.subTest(found), override_settings(EVENNIA_AI_OPTIONS=groups):
                finding = check_settings(True)
                self.assertEqual(finding.ok, not found)
                self.assertIn(found, finding.detail)

    def test_a_name_that_is_taken(self):
        """A feature one of whose options has the name of another brings none, and is left out."""
        drinks = sys.modules["world.drinks"].Drinks
        kinds = {"drinks_free": bool, "post": bool}
        taken = type(
            "Taken", (Values,), {"__annotations__": kinds, "drinks_free": True, "post": True}
        )
        with mock.patch.object(drinks, "options", taken):
            problems = []
            left = listed_features(problems.append)
        self.assertEqual([each.name for each in left], ["errands", "bonds"])
        self.assertIn("there is an option `post` already", str(problems[0]))
        self.assertNotIn("drinks_free", [*OPTIONS])
