"""Starts the processes of local models, and starts them again when they die.

They are children of the mind's process, which outlives `evennia reload`, and end with it.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.files import (
    MISSING_EXTRA,
    MOST_WINDOW,
    PREFIX,
    has_engine,
    installed,
    models_folder,
    place_of,
    read_shape,
    weights_of,
)
from evennia_ai.llm_interaction.local_models.process import Serving, state_file
from evennia_ai.processes import is_alive

LOG = "model.log"
# Weights of three billion parameters, of four bits each, take about this many bytes.
SMALL_BYTES = 1_800_000_000
# `-P` keeps the game's folder, where the process starts, from hiding modules of the same name.
PROGRAM = (sys.executable, "-P", "-m", "evennia_ai.llm_interaction.local_models.process")
# Loading a large model from a slow disk takes minutes.
_LOAD_S = 600.0
_POLL_S = 0.05


class LocalModels:
    """The local models of a game. Its methods may block, but for `window`.

    Args:
        game_dir: The game's folder.
        log_dir: Where `model.log` is written; by default the game's logs.
        program: The command that serves a model; `process.main` names its arguments.
    """

    def __init__(
        self,
        game_dir: Path,
        log_dir: Path | None = None,
        program: Sequence[str] = PROGRAM,
    ):
        self.game_dir = game_dir
        self.folder = models_folder(game_dir)
        self.log = (log_dir or game_dir / "server" / "logs") / LOG
        self._program = tuple(program)
        self._serving: dict[str, Serving] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def reach(self, model: str) -> Serving:
        """A model's process, started if need be; waits until it answers. Not for two at a time.

        Raises `LocalModelError` with the reason and the remedy.
        """
        name = model.removeprefix(PREFIX)
        child, path = self._children.get(name), str(state_file(self.folder, name))
        # One that is ending has no command line any more, before it can be waited for.
        lives = child and child.poll() is None and is_alive(child.pid, path)
        if not lives or name not in self._serving:
            self._serving[name] = self._started(name)
        return self._serving[name]

    def running(self, name: str) -> Serving | None:
        """A model's process, whoever started it, if it is alive and serves."""
        path = state_file(self.folder, name)
        found = Serving.read(path)
        return found if found and found.port and is_alive(found.pid, str(path)) else None

    def window(self, model: str) -> int | None:
        """The window of a model in tokens; None if it is not installed. Reads little of a file."""
        name = model.removeprefix(PREFIX)
        if name in self._serving:
            return self._serving[name].window
        try:
            return min(read_shape(weights_of(name, self.folder)).window, MOST_WINDOW)
        except LocalModelError:
            return None

    def is_small(self, model: str) -> bool:
        """Whether its weights are those of fewer than three billion parameters, by their size."""
        path = place_of(model.removeprefix(PREFIX), self.folder)
        return path is not None and path.is_file() and path.stat().st_size < SMALL_BYTES

    def installed(self) -> tuple[str, ...]:
        """The names of the installed models, with ``local/``."""
        return tuple(PREFIX + name for name in installed(self.folder))

    def _started(self, name: str) -> Serving:
        """Start a model's process and wait until it serves."""
        if self._program is PROGRAM and not has_engine():
            raise LocalModelError(MISSING_EXTRA)
        weights = weights_of(name, self.folder)
        state = state_file(self.folder, name)
        state.parent.mkdir(parents=True, exist_ok=True)
        arguments = {"--model": name, "--weights": weights, "--state": state, "--log": self.log}
        words = [str(word) for pair in arguments.items() for word in pair]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            child = self._children[name] = subprocess.Popen(
                [*self._program, *words],
                cwd=self.game_dir,
                stdin=subprocess.PIPE,  # which the process watches
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + _LOAD_S
        while time.monotonic() < end:
            is_over = child.poll() is not None
            found = Serving.read(state)
            if found and found.pid == child.pid:
                if found.error:
                    raise LocalModelError(found.error)
                return found
            if is_over:
                raise LocalModelError(f"its process does not start. `{self.log}` says why.")
            time.sleep(_POLL_S)
        child.kill()
        raise LocalModelError(f"it did not load in {_LOAD_S / 60:.0f} minutes.")
