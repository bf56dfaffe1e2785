"""The program that runs one model and serves it on loopback by OpenAI's protocol.

The game starts it with its own Python; it imports neither Evennia nor Django. It chooses a free
port and a random key, and writes both into a state file that only the game's user can read. It ends
with whoever started it, however that one ends: its standard input is closed then.
"""

import argparse
import contextlib
import json
import logging
import os
import re
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from logging.handlers import RotatingFileHandler
from pathlib import Path

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.files import read_shape

LOOPBACK = "127.0.0.1"
# Requests served at a time; each has a window of its own.
SLOTS = 2
LOG_BYTES = 1_000_000
UNUSABLE = 4  # exit code


@dataclass(frozen=True)
class Serving:
    """A model's process, as its state file holds it."""

    model: str  # the name without ``local/``
    pid: int  # the process
    port: int = 0  # on loopback
    key: str = field(default="", repr=False)  # what a request must carry
    window: int = 0  # tokens of a conversation
    error: str = ""  # why it could not serve; empty if it does

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


# Serves a model with these weights, from threads of its own; returns the port.
Engine = Callable[[Serving, Path], int]


def state_file(folder: Path, model: str) -> Path:
    """Where the process of a model keeps its state, in the folder of a game's models."""
    return folder / "running" / (re.sub(r"[^\w.-]", "_", model) + ".json")


def llama(job: Serving, weights: Path) -> int:
    """Serve with llama.cpp."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(weights)
    params.model_alias = {job.model}
    # The library divides its context among the slots.
    params.n_ctx, params.n_parallel = job.window * SLOTS, SLOTS
    params.hostnames, params.port = [LOOPBACK], 0
    params.api_keys = [job.key]
    params.use_jinja = True
    params.ui = False
    # Its threads wait for each other at each step: one that shares its core with the game would
    # hold up all.
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) - 1)
    server = Server(params)
    _kept.append(server)  # it serves as long as it is referenced
    return int(str(server.listening_address).rstrip("/").rpartition(":")[2])


_kept: list[object] = []


def main(argv: Sequence[str] | None = None, engine: Engine = llama) -> int:
    """Serve until standard input ends; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve one local model for a game.")
    parser.add_argument("--model", required=True, help="its name without local/")
    parser.add_argument("--weights", required=True, type=Path)
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--log", required=True, type=Path)
    args = parser.parse_args(argv)
    _log_to(args.log, args.model)
    try:
        window = read_shape(args.weights).fitting_window(SLOTS, free_memory())
        job = Serving(args.model, os.getpid(), 0, secrets.token_urlsafe(24), window)
        if not (port := engine(job, args.weights)):
            raise LocalModelError("it does not listen")
    except Exception as error:  # noqa: BLE001 - the library raises bare kinds
        why = str(error) or type(error).__name__
        print(f"cannot serve `{args.model}`: {why}", file=sys.stderr, flush=True)
        Serving(args.model, os.getpid(), error=why).write(args.state)
        return UNUSABLE
    serving = replace(job, port=port)
    serving.write(args.state)
    print(f"serving `{args.model}` on port {serving.port}", file=sys.stderr, flush=True)
    sys.stdin.buffer.read()
    if Serving.read(args.state) == serving:  # not that of a later process
        args.state.unlink()
    print(f"the process of `{args.model}` ends", file=sys.stderr, flush=True)
    return 0


def free_memory() -> int | None:
    """Bytes of memory that can be had without swapping; None where that is unknown."""
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        if found := re.search(r"MemAvailable:\s+(\d+) kB", text):
            return int(found[1]) * 1024
    return None


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
