"""Processes of local models: started, found again, started again, ended."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from evennia_ai.errors import LocalModelError, ModelError
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.local_models.process import LOG_BYTES, Serving, state_file
from evennia_ai.llm_interaction.local_models.supervisor import LocalModels
from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.processes import is_alive, wait_for
from tests.gguf_files import write_model
from tests.waiting import wait_for as wait_for_deferred

ROOT = Path(__file__).resolve().parents[3]
FAKE = (sys.executable, "-m", "tests.fake_engine")
ENDS_S = 10.0


class LocalCase(unittest.TestCase):
    """A game's folder with the model `x.gguf`, which a stand-in serves."""

    def setUp(self):
        self.game = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, PYTHONPATH=str(ROOT)))
        self.models = self.local_models()
        write_model(self.models.folder / "x.gguf")
        self.addCleanup(self.end_all)

    def local_models(self):
        return LocalModels(self.game, program=FAKE)

    def end_all(self):
        """End them and see them gone: one that still logs would keep the folder from going."""
        if serving := self.models.running("x.gguf"):
            self.kill(serving)

    def kill(self, serving):
        os.kill(serving.pid, signal.SIGKILL)
        self.assertTrue(wait_for(lambda: not self.lives(serving), ENDS_S))

    def lives(self, serving):
        return is_alive(serving.pid, str(state_file(self.models.folder, serving.model)))

    def log(self):
        return self.models.log.read_text(encoding="utf-8")


class TestLocalModels(LocalCase):
    def test_one_process_serves_a_model(self):
        """Started at first need, and kept; others can see it."""
        found = [self.models.reach("local/x.gguf") for _ in range(2)]
        self.assertEqual(found[0], found[1])
        self.assertEqual(self.local_models().running("x.gguf"), found[0])
        self.assertEqual(self.models.window("local/x.gguf"), 8192)

    def test_the_key_is_secret(self):
        """It is in a file for the game's user alone, in no argument and no log."""
        serving = self.models.reach("local/x.gguf")
        path = state_file(self.models.folder, "x.gguf")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertGreater(len(serving.key), 20)
        self.assertNotIn(serving.key, repr(serving))
        command = Path(f"/proc/{serving.pid}/cmdline")
        if command.exists():
            self.assertNotIn(serving.key, command.read_text())
        self.assertTrue(wait_for(lambda: "loaded" in self.log(), ENDS_S))
        self.assertNotIn(serving.key, self.log())

    def test_a_dead_process_is_started_again(self):
        """The next request starts one, with another key; a stale state is not believed."""
        first = self.models.reach("local/x.gguf")
        self.kill(first)
        self.assertIsNone(self.models.running("x.gguf"))
        second = self.models.reach("local/x.gguf")
        self.assertNotEqual(second.pid, first.pid)
        self.assertNotEqual(second.key, first.key)
        self.kill(second)
        path = state_file(self.models.folder, "x.gguf")
        Serving("x.gguf", os.getpid(), second.port, second.key).write(path)
        self.assertIsNone(self.models.running("x.gguf"))
        path.write_text("{")
        self.assertNotIn(self.models.reach("local/x.gguf").pid, (first.pid, second.pid))

    def test_what_cannot_be_loaded_says_why(self):
        """The library's own reason reaches the one who asks."""
        for name in ("broken", "mute"):
            write_model(self.models.folder / f"{name}.gguf")
        for name, says in (
            ("broken", "cannot be loaded"),
            ("mute", "does not start"),
            ("none", "does not exist"),
        ):
            with self.assertRaisesRegex(LocalModelError, says):
                self.models.reach(f"local/{name}.gguf")
        self.assertIsNone(self.models.window("local/none.gguf"))

    def test_it_ends_with_whoever_started_it(self):
        """Killed hard, its starter leaves no process behind."""
        code = (
            "import sys, time; from pathlib import Path;"
            "from evennia_ai.llm_interaction.local_models.supervisor import LocalModels;"
            "fake = (sys.executable, '-m', 'tests.fake_engine');"
            "LocalModels(Path(sys.argv[1]), program=fake)"
            ".reach('local/x.gguf'); print('up', flush=True); time.sleep(60)"
        )
        command = [sys.executable, "-c", code, str(self.game)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as starter:
            self.assertEqual(starter.stdout.readline(), b"up\n")
            serving = self.models.running("x.gguf")
            starter.kill()
        self.assertTrue(wait_for(lambda: not self.lives(serving), ENDS_S))
        self.assertFalse(state_file(self.models.folder, "x.gguf").exists())

    def test_the_log_does_not_grow_without_end(self):
        """A full log is renamed when the process writes to it."""
        self.models.log.parent.mkdir(parents=True)
        self.models.log.write_text("x" * LOG_BYTES)
        self.models.reach("local/x.gguf")
        self.assertTrue(wait_for(lambda: self.models.log.stat().st_size < LOG_BYTES, ENDS_S))
        self.assertTrue(self.models.log.with_suffix(".log.1").exists())


class TestClient(LocalCase):
    """The model client asks a local model as any other."""

    def setUp(self):
        super().setUp()
        self.client = ModelClient(home_model="local/x.gguf", local_models=self.models)
        self.said = ModelRequest(
            model="local/x.gguf", messages=({"role": "user", "content": "Hi"},), timeout_s=30
        )

    def test_a_local_model_answers_and_costs_nothing(self):
        """Under its own name, before and after its process was killed, one process for all."""
        for starts in (1, 2):
            calls = [self.client.complete(self.said) for _ in range(3)]
            for reply in (wait_for_deferred(call, 60) for call in calls):
                self.assertEqual(reply.content, "Good evening.")
                self.assertEqual((reply.model, reply.cost), ("local/x.gguf", 0.0))
            self.assertTrue(wait_for(lambda n=starts: self.log().count("serving") == n, ENDS_S))
            serving = self.models.running("x.gguf")
            self.kill(serving)
        self.assertEqual(self.client.facts("local/x.gguf").window.tokens, 8192)
        self.assertEqual(self.client.facts("local/x.gguf").price, (0.0, 0.0))

    def test_the_game_s_own_model_is_loaded_before_the_first_line(self):
        """The warm-up starts it and does not wait for it."""
        wait_for_deferred(self.client.warm_up(), 60)
        self.assertTrue(wait_for(lambda: self.models.running("x.gguf"), 30))

    def test_what_is_missing_is_said_in_the_probe(self):
        """The doctor's line holds the reason and no word about addresses."""
        with self.assertRaisesRegex(ModelError, "does not exist") as caught:
            wait_for_deferred(self.client.probe("local/none.gguf"), 60)
        self.assertEqual(caught.exception.kind, "local_model")
