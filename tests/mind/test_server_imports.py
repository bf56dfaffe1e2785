"""What the Server loads where the mind is a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A Server's work with everything that goes to the mind, from a folder of a game.
SCRIPT = """
import json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
from tests import settings as game
game.GAME_DIR = game.LOG_DIR = os.getcwd()
import django, evennia
django.setup()
evennia._init()
from evennia_ai import services
from evennia_ai import startstop
from evennia_ai.llm_interaction.tokens import TokenCounter, count_tokens
from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.recall.values import Query, Turn
from tests.waiting import wait_for
startstop.at_server_init()
mind = services.mind()
wait_for(services.warm_up())
wait_for(mind.recall.add("a", [Turn("1", "Bob", "I keep bees", 1.0)]))
hits = wait_for(mind.recall.search("a", Query("bees")))
wait_for(mind.memories.search("a", "bees"))
reply = wait_for(mind.model.complete(ModelRequest(model="offline/extractive", prompt="Hi")))
wait_for(mind.work(count_tokens, "one two", TokenCounter("gpt-4")))
names = ("litellm", "mem0", "numpy", "openai", "model2vec", "qdrant_client")
loaded = [name for name in names if name in sys.modules]
startstop.at_server_cold_stop()
wait_for(services.close())
wait_for(__import__("evennia_ai.background").background.pause(None, 0.5))
print(json.dumps([type(mind).__name__, len(hits), bool(reply.content), loaded]))
"""


class TestServerImports(unittest.TestCase):
    def test_nothing_heavy_is_loaded(self):
        """The Server talks, searches and counts without LiteLLM, Mem0 and NumPy."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1]), ["RemoteMind", 1, True, []])
