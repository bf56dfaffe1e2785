"""`evennia-ai model …` and `evennia-ai new --model`."""

import tempfile
import unittest
from pathlib import Path

from evennia_ai.cli.model import keep_model
from evennia_ai.llm_interaction.local_models.files import models_folder, place_of
from tests.cli.test_cli import run
from tests.gguf_files import write_model

NAME = "hf:owner/Small-GGUF:Q4_K_M"


class TestModelCommand(unittest.TestCase):
    def setUp(self):
        self.game = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.game / "server" / "conf").mkdir(parents=True)
        (self.game / "server" / "conf" / "settings.py").write_text("")
        self.folder = models_folder(self.game)

    def run_model(self, *words):
        return run("model", *words, "--game", str(self.game))

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
