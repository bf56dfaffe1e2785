"""A mind in a real process, over a real socket."""

import contextlib
import os
import signal
import tempfile
import time
import unittest
from pathlib import Path

from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.mind.remote import RemoteMind
from tests.loopback import LoopbackServer
from tests.rag_memory.tiny_backend import TinyBackend
from tests.waiting import pump_until, wait_for

KEY = "sk-loopback-secret-1"


def is_alive(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    with contextlib.suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


class DeadlyBackend(TinyBackend):
    """A memory that kills the process in which it is searched."""

    def search(self, scope, query, limit=10, audience=None):
        """Die."""
        os._exit(1)


class MindTest(unittest.TestCase):
    """`self.mind()` is the Server's side of the one process of this class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.base = Path(cls.folder.name)
        cls.server = LoopbackServer().start()
        cls.pids = set()

    @classmethod
    def tearDownClass(cls):
        cls.server.release()
        for pid in filter(is_alive, cls.pids):
            os.kill(pid, signal.SIGKILL)
        cls.server.stop()
        cls.folder.cleanup()

    def mind(self, game="game", models=(), **values):
        """A mind as a Server makes it; `values` are settings."""
        home = self.base / game
        address = {"LLM_MODEL": "loopback", "LLM_API_BASE": self.server.url, "LLM_API_KEY": KEY}
        mind = RemoteMind(
            home / "server" / "mind",
            {"DATA_DIR": str(home / "data"), **address, **values},
            home / "server" / "logs" / "mind.log",
            models,
        )
        self.addCleanup(mind.close)
        return mind

    def reach(self, mind):
        """Wait for the process; returns its id."""
        wait_for(mind.recall.count("nobody"))
        pid = mind.facts["pid"]
        self.pids.add(pid)
        return pid

    def wait_for_end(self, pid):
        """Wait until a process is gone, with the reactor running."""
        pump_until(lambda: not is_alive(pid))

    def asked(self, count):
        """Wait until the model's server has got so many requests in all."""
        pump_until(lambda: len(self.server.requests) >= count)

    def ask_model(self, mind, *answers, **fields):
        """Ask a model that will answer so; returns the Deferred once the request has come."""
        before = len(self.server.requests)
        self.server.script(*answers)
        asked = mind.model.complete(request(**fields))
        self.asked(before + 1)
        return asked

    def log(self, game="game"):
        """The process's log."""
        return (self.base / game / "server" / "logs" / "mind.log").read_text()


def request(text="Hello", **fields):
    """A request to the loopback server."""
    fields = {"model": "loopback", "timeout_s": 30.0, **fields}
    return ModelRequest(messages=({"role": "user", "content": text},), **fields)


def pump(seconds):
    """Let the reactor run for a while."""
    until = time.monotonic() + seconds
    pump_until(lambda: time.monotonic() >= until, seconds + 5)
