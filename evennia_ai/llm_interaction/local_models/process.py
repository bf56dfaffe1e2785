"""The program that runs one model and serves it on loopback by OpenAI's protocol.

The game starts it with its own Python; it imports neither Evennia nor Django. It chooses a free
port and a random key, and writes both into a state file that only the game's user can read. A
lock file, held as long as it lives, makes sure that each model has one process. It ends when the
game and whoever started it have ended, however they end.
"""

import argparse
import contextlib
import json
import logging
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.gguf import read_shape
from evennia_ai.processes import pids

LOOPBACK = "127.0.0.1"
# Requests served at a time; each has a window of its own.
SLOTS = 2
LOG_BYTES = 1_000_000
_WATCH_S = 0.5
# The game may be gone for this long: `evennia reboot` ends both its processes.
_GRACE_S = 2.0
# Exit codes.
TAKEN, UNUSABLE = 3, 4


@dataclass(frozen=True)
class Serving:
    """A model's process, as its state file holds it.

    Args:
        model: The name without ``local/``.
        pid: The process.
        port: On loopback.
        key: What a request must carry.
        window: Tokens of a conversation.
        memory: Bytes that it takes by its own estimate.
        error: Why it could not serve; empty if it does.
    """

    model: str
    pid: int
    port: int = 0
    key: str = field(default="", repr=False)
    window: int = 0
    memory: int = 0
    error: str = ""

    @property
    def address(self) -> str:
        """The base of its API."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    def write(self, path: Path) -> None:
        """Store it, readable to this user alone, by a rename."""
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".")
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        os.replace(draft, path)

    @classmethod
    def read(cls, path: Path) -> "Serving | None":
        """What is stored; None if there is nothing usable."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


@dataclass(frozen=True)
class Job:
    """What an engine is to serve."""

    model: str
    weights: Path
    window: int
    slots: int
    port: int
    key: str


# Serves a model from threads of its own; returns the port.
Engine = Callable[[Job], int]


def state_file(folder: Path, model: str) -> Path:
    """Where the process of a model keeps its state, in the folder of a game's models."""
    return folder / "running" / (re.sub(r"[^\w.-]", "_", model) + ".json")


def llama(job: Job) -> int:
    """Serve with llama.cpp."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(job.weights)
    params.model_alias = {job.model}
    # The library divides its context among the slots.
    params.n_ctx, params.n_parallel = job.window * job.slots, job.slots
    params.hostnames, params.port = [LOOPBACK], job.port
    params.api_keys = [job.key]
    params.use_jinja = True
    params.endpoint_metrics = True
    params.ui = False
    # Its threads wait for each other at each step: one that shares its core with the game would
    # hold up all.
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) - 1)
    server = Server(params)
    _kept.append(server)  # it serves as long as it is referenced
    return int(str(server.listening_address).rstrip("/").rpartition(":")[2])


_kept: list[object] = []


def main(argv: Sequence[str] | None = None, engine: Engine = llama) -> int:
    """Serve until the game ends; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve one local model for a game.")
    parser.add_argument("--model", required=True, help="its name without local/")
    parser.add_argument("--weights", required=True, type=Path)
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--log", type=Path, help="where to log (default: the terminal)")
    parser.add_argument("--game", type=Path, help="end with this game (default: never)")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args(argv)
    state: Path = args.state
    state.parent.mkdir(parents=True, exist_ok=True)
    parent = os.getppid()
    import fcntl  # not on Windows, where this module is imported all the same

    with open(state.with_suffix(".lock"), "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return TAKEN
        state.unlink(missing_ok=True)
        if args.log:
            _log_to(args.log, args.model)
        try:
            serving = _serve(args.model, args.weights, args.port, engine)
        except Exception as error:  # noqa: BLE001 - the library raises bare kinds
            why = str(error) or type(error).__name__
            print(f"cannot serve `{args.model}`: {why}", file=sys.stderr, flush=True)
            Serving(args.model, os.getpid(), error=why).write(state)
            return UNUSABLE
        serving.write(state)
        print(f"serving `{args.model}` on port {serving.port}", file=sys.stderr, flush=True)
        ended = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            ended.set()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        _wait(ended, args.game, parent)
        state.unlink(missing_ok=True)
        print(f"the process of `{args.model}` ends", file=sys.stderr, flush=True)
        return 0


def free_memory() -> int | None:
    """Bytes of memory that can be had without swapping; None where that is unknown."""
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        if found := re.search(r"MemAvailable:\s+(\d+) kB", text):
            return int(found[1]) * 1024
    return None


def _serve(model: str, weights: Path, port: int, engine: Engine) -> Serving:
    shape = read_shape(weights)
    window = shape.fitting_window(SLOTS, free_memory())
    key = secrets.token_urlsafe(24)
    found = engine(Job(model, weights, window, SLOTS, port, key))
    if not found:
        raise LocalModelError("it does not listen")
    memory = shape.memory(window, SLOTS)
    return Serving(model, os.getpid(), found, key, window, memory)


def _wait(ended: threading.Event, game: Path | None, parent: int) -> None:
    """Wait for a signal, or until the game and who started this process are gone."""
    last_alive = time.monotonic()
    while not ended.wait(_WATCH_S):
        if game is None or os.getppid() == parent or pids(game):
            last_alive = time.monotonic()
        elif time.monotonic() - last_alive >= _GRACE_S:
            return


def _log_to(path: Path, model: str) -> None:
    """Send what this process and its libraries print to a file that does not grow without end."""
    log = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    os.close(writer)

    def copy() -> None:
        with open(reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                text = f"{now} [{model}] {line.rstrip()}"
                log.emit(logging.LogRecord("model", logging.INFO, "", 0, text, None, None))

    threading.Thread(target=copy, name="log", daemon=True).start()


if __name__ == "__main__":
    code = main()
    time.sleep(0.1)  # the last line reaches the log
    os._exit(code)  # llama.cpp's threads are not joined
