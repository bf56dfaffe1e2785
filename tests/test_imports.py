"""Importing the package changes nothing in the process that imports it."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What computes with arrays; loaded on the recall thread only.
WITH_NUMPY = [f"evennia_ai.recall.{name}" for name in ("index", "lexicon", "ranking", "view")]
SCRIPT = """
import atexit, importlib, json, logging, os, pkgutil, sys, threading
skipped = set(json.loads(sys.argv[1]))
from django.conf import settings
from twisted.internet import reactor
from tests import settings as game
game.INSTALLED_APPS = [app for app in game.INSTALLED_APPS if app != "evennia_ai"]
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django, evennia
django.setup()
evennia._init()
assert not any(name.startswith("evennia_ai") for name in sys.modules)

def state():
    loggers = {"": logging.root, **logging.root.manager.loggerDict}
    return {
        "environment": dict(os.environ),
        "finders": [repr(finder) for finder in sys.meta_path],
        "exit handlers": atexit._ncallbacks(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "logging": {
            name: (logger.level, [repr(handler) for handler in logger.handlers])
            for name, logger in loggers.items()
            if getattr(logger, "level", 0) or getattr(logger, "handlers", None)
        },
        "heavy": [name for name in ("litellm", "mem0", "numpy", "openai") if name in sys.modules],
    }

before = state()
import evennia_ai
for module in pkgutil.walk_packages(evennia_ai.__path__, "evennia_ai."):
    if module.name not in skipped:
        importlib.import_module(module.name)
print(json.dumps([before, state(), sorted(skipped & set(sys.modules))]))
"""


class TestImports(unittest.TestCase):
    maxDiff = None

    def test_no_module_changes_the_process(self):
        """No finder, exit handler, thread, logger, variable or heavy library comes with one."""
        command = [sys.executable, "-c", SCRIPT, json.dumps(WITH_NUMPY)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        before, after, loaded = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(before["heavy"], [])
        self.assertEqual(after, before)
        self.assertEqual(loaded, [], "imported by another module")
