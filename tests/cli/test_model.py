"""`evennia-ai model …` and `evennia-ai new --model`."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from django.test import TestCase, override_settings

from evennia_ai.cli.model import keep_model
from evennia_ai.llm_interaction.local_models.files import models_folder, place_of
from evennia_ai.llm_interaction.local_models.process import Serving, state_file
from evennia_ai.staff import doctor
from evennia_ai.staff.doctor import run_checks
from tests.cli.test_cli import run
from tests.gguf_files import engine_module, write_model
from tests.waiting import wait_for

NAME = "hf:owner/Small-GGUF:Q4_K_M"


class ModelCase(unittest.TestCase):
    def setUp(self):
        self.game = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.game / "server" / "conf").mkdir(parents=True)
        (self.game / "server" / "conf" / "settings.py").write_text("")
        self.folder = models_folder(self.game)

    def run_model(self, *words):
        return run("model", *words, "--game", str(self.game))


class TestModelCommand(ModelCase):
    def test_installed_models_are_listed_with_what_they_need(self):
        """Name, size, window and memory; a damaged file is one line too."""
        write_model(place_of(NAME, self.folder))
        (self.folder / "bad.gguf").write_text("no model")
        code, shown, _ = self.run_model("list")
        self.assertEqual(code, 0)
        self.assertRegex(shown, rf"local/{NAME}: 0 MB, window 8,192 tokens, \d+ MB memory")
        self.assertRegex(shown, r"local/bad\.gguf: .*not a complete GGUF file")

    def test_mistakes_are_one_line(self):
        """No game here."""
        self.assertEqual(run("model", "list", "--game", str(self.folder))[0], 2)

    def test_the_choice_is_kept_in_the_secret_settings(self):
        """Set, changed and taken back, beside what the owner wrote."""
        secret = self.game / "server" / "conf" / "secret_settings.py"
        secret.write_text('SECRET_KEY = "x"\n')
        self.assertTrue(keep_model(self.game, "smollm2"))
        self.assertFalse(keep_model(self.game, "local/smollm2"))
        self.assertIn('EVENNIA_AI_LLM_MODEL = "local/smollm2"', secret.read_text())
        keep_model(self.game, NAME)
        values = {}
        exec(secret.read_text(), values)
        self.assertEqual(values["EVENNIA_AI_LLM_MODEL"], f"local/{NAME}")
        self.assertEqual(secret.read_text().count("EVENNIA_AI_LLM_MODEL"), 1)
        keep_model(self.game, "offline")
        self.assertEqual(secret.read_text(), 'SECRET_KEY = "x"\n')


class TestDoctorsLine(ModelCase, TestCase):
    def line(self, model, engine=True):
        with (
            override_settings(EVENNIA_AI_LLM_MODEL=model, GAME_DIR=str(self.game)),
            mock.patch.dict(sys.modules, {"xllamacpp": engine_module() if engine else None}),
        ):
            return wait_for(run_checks(False, [doctor.check_local_model]))[0].line()

    def test_each_state_is_a_line_with_its_remedy(self):
        """No extra, no weights, no memory, not started, dead, not answering."""
        self.assertIn("ok   local_model: none is set", self.line("openai/gpt-4o"))
        shown = self.line("local/x.gguf", engine=False)
        self.assertRegex(shown, r"BAD .*-> Run `pip install 'evennia-ai\[local\]'`")
        self.assertRegex(self.line("local/x.gguf"), r"BAD .*does not exist -> Put the file there")
        self.assertRegex(self.line(f"local/{NAME}"), r"BAD .* -> Run `evennia-ai model pull hf:")
        large = {"llama.context_length": 2048, "llama.block_count": 2**31}
        write_model(self.folder / "large.gguf", **large)
        self.assertRegex(self.line("local/large.gguf"), r"BAD .*MB of memory.*are free")
        write_model(self.folder / "x.gguf")
        self.assertRegex(self.line("local/x.gguf"), r"note .*started when it is needed; small: ")
        state = state_file(self.folder, "x.gguf")
        state.parent.mkdir()
        Serving("x.gguf", 999_999_999, 1, "k").write(state)
        shown = self.line("local/x.gguf")
        self.assertRegex(shown, r"BAD .*does not answer -> The next line starts it")
        Serving("x.gguf", 999_999_999, error="no room").write(state)
        self.assertRegex(self.line("local/x.gguf"), r"BAD .*did not start: no room")
