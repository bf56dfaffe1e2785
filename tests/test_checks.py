"""The Django system checks of the package's settings."""

import os
import unittest
from unittest import mock

from django.conf import settings
from django.core import checks as django_checks
from django.test import override_settings

from evennia_ai import checks, conf
from evennia_ai.apps import START_STOP
from evennia_ai.conf import PREFIX
from evennia_ai.errors import ConfigError
from evennia_ai.turns.spend_book import CLOSED

CAPS = '{"player": {"calls_minute": 5}}'


def ids():
    """The numbers of all problems found now."""
    return [problem.id.rpartition(".")[2] for problem in checks.check_settings()]


class TestCheckSettings(unittest.TestCase):
    def setUp(self):
        self.enterContext(mock.patch.dict(os.environ))
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            del os.environ[name]

    def test_a_bare_game_has_no_problem(self):
        """With nothing set, which is the offline model, no check finds anything."""
        self.assertEqual(ids(), [])

    def test_valid_settings_have_no_problem(self):
        """A full and valid configuration passes."""
        with override_settings(
            EVENNIA_AI_LLM_MODEL="openai/gpt-4o",
            EVENNIA_AI_LLM_API_BASE="http://127.0.0.1:11434/v1",
            EVENNIA_AI_LLM_API_KEY="sk-test",
            EVENNIA_AI_TOOLS=["evennia_ai.turns.tools.Noop"],
            EVENNIA_AI_MEMORY_BACKEND="tests.rag_memory.tiny_backend.TinyBackend",
            EVENNIA_AI_MEM0_CONFIG={"vector_store": {"provider": "qdrant", "config": {}}},
            EVENNIA_AI_SPEND_CAPS={"game": {"cost_month": 20.0}, "call": {"tokens": 20_000}},
        ):
            self.assertEqual(ids(), [])

    def test_wrong_values(self):
        """A value of the wrong kind and a module that does not exist are reported by name."""
        wrong = (
            ("LLM_MODEL", 5, "E001"),
            ("LLM_MODEL", "  ", "E001"),
            ("LLM_API_BASE", "localhost:11434", "E001"),
            ("LLM_API_KEY", 5, "E001"),
            ("TOOLS", [5], "E001"),
            ("TOOLS", ["Open"], "E001"),
            ("TOOLS", ["no_such_module.Open"], "E002"),
            ("MODELS", ["x/http://h"], "E001"),
            ("OPTIONS", {"guards": {"post": "maybe"}}, "E001"),
            ("OPTIONS", {"guards": {"colour": "red"}}, "E001"),
            ("OPTIONS", {"guards": 5}, "E001"),
            ("MEM0_CONFIG", ["qdrant"], "E001"),
            ("MEM0_CONFIG", {"llm": "openai"}, "E001"),
            ("SPEND_CAPS", "5", "E001"),
            ("SPEND_CAPS", {"game": {"tokens_day": -1}}, "E001"),
            ("SPEND_CAPS", {"player": {"calls_minute": "many"}}, "E001"),
            ("DATA_DIR", 5, "E001"),
            ("MODERATE", 5, "E001"),
            ("MODERATE", "moderate", "E001"),
            ("MODERATE", "no_such_module.moderate", "E002"),
            ("METRICS_TOKEN", 5, "E001"),
            ("LISTENING_NOTICE", "perhaps", "E001"),
            ("MEMORY_BACKEND", "Backend", "E001"),
            ("MEMORY_BACKEND", "no_such_module.Backend", "E002"),
        )
        for name, value, number in wrong:
            with (
                self.subTest(name=name, value=value),
                override_settings(**{f"EVENNIA_AI_{name}": value}),
            ):
                [problem] = checks.check_settings()
                self.assertEqual(problem.id, f"evennia_ai.{number}")
                self.assertIn(f"`EVENNIA_AI_{name}`", problem.msg)

    def test_what_stands_in_for_a_wrong_value(self):
        """The default, or what allows nothing where the default would allow too much."""
        with override_settings(
            EVENNIA_AI_LLM_MODEL=5,
            EVENNIA_AI_TOOLS=5,
            EVENNIA_AI_OPTIONS=5,
            EVENNIA_AI_LISTENING_NOTICE="perhaps",
            EVENNIA_AI_MODERATE=5,
            EVENNIA_AI_SPEND_CAPS=5,
        ):
            self.assertEqual(conf.model_name(), "offline/extractive")
            self.assertEqual((conf.setting("TOOLS"), conf.setting("OPTIONS")), ((), {}))
            self.assertTrue(conf.listening_notice())
            self.assertEqual(conf.setting("SPEND_CAPS"), CLOSED)
            with self.assertRaises(ConfigError):
                conf.moderate_function()

    def test_an_address_without_a_model_is_a_warning(self):
        """The owner learns that the server they named will not be asked."""
        with override_settings(EVENNIA_AI_LLM_API_BASE="http://127.0.0.1:1/v1"):
            self.assertEqual(ids(), ["W001"])

    def test_a_misspelt_setting_is_found_with_the_right_name(self):
        """A name that is nearly right is warned about, with the name that was meant."""
        with override_settings(EVENNIA_AI_LLM_MODLE="x"):
            (problem,) = checks.check_settings()
        self.assertEqual(problem.id, "evennia_ai.W002")
        self.assertIn("EVENNIA_AI_LLM_MODEL", problem.hint)

    def test_a_key_is_never_shown(self):
        """The text of a refused key stands in no message."""
        with override_settings(EVENNIA_AI_LLM_API_KEY=" sk-secret-1 "):
            text = str(checks.check_settings())
        self.assertNotIn("sk-secret-1", text)

    def test_the_environment_counts_too(self):
        """A variable of the environment is checked as a setting is, and wins over it."""
        os.environ["EVENNIA_AI_LLM_API_BASE"] = "not an address"
        self.assertEqual(ids(), ["E001"])

    def test_lists_and_dicts_from_the_environment(self):
        """Lists are written with commas or as JSON, dicts as JSON, truth values as words."""
        for text in ("a.B, c.D,", '["a.B", "c.D"]'):
            with mock.patch.dict(os.environ, {"EVENNIA_AI_TOOLS": text}):
                self.assertEqual(conf.setting("TOOLS"), ("a.B", "c.D"))
        for name, text, wanted in (
            ("MEM0_CONFIG", '{"llm": {}, "infer": true}', {"llm": {}, "infer": True}),
            ("LISTENING_NOTICE", "off", False),
            ("LLM_API_KEY", "123", "123"),
        ):
            with mock.patch.dict(os.environ, {f"EVENNIA_AI_{name}": text}):
                self.assertEqual(conf.setting(name), wanted)
                self.assertEqual(ids(), [])
        with (
            mock.patch.dict(os.environ, {"EVENNIA_AI_TOOLS": ""}),
            override_settings(EVENNIA_AI_TOOLS=["a.B"]),
        ):
            self.assertEqual(conf.setting("TOOLS"), ("a.B",))
        with mock.patch.dict(os.environ, {"EVENNIA_AI_SPEND_CAPS": CAPS}):
            self.assertEqual(conf.setting("SPEND_CAPS").player, {"calls_minute": 5})
        for name in ("TOOLS", "MEM0_CONFIG"):
            with mock.patch.dict(os.environ, {f"EVENNIA_AI_{name}": "{broken"}):
                self.assertEqual(ids(), ["E001"])

    def test_django_runs_them_once_registered(self):
        """Django's own check command reports our problems."""
        with override_settings(EVENNIA_AI_LLM_MODEL=5):
            found = django_checks.run_checks(tags=["evennia_ai"])
        self.assertEqual([problem.id for problem in found], ["evennia_ai.E001"])


class TestStart(unittest.TestCase):
    def test_called_first(self):
        """An error in the game's own start hook, which ends the calls, comes behind ours."""
        modules = list(settings.AT_SERVER_STARTSTOP_MODULE)
        self.assertEqual(modules.index(START_STOP), 0)
        self.assertGreater(len(modules), 1)
