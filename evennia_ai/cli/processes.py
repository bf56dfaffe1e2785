"""A game's processes, by its pid files: whether they are alive, and how to end them."""

import contextlib
import os
import signal
import time
from collections.abc import Callable

from evennia_ai.processes import GAME as NAMES
from evennia_ai.processes import game_pids as pids
from evennia_ai.processes import pid_file

__all__ = ["NAMES", "is_running", "kill", "pid_file", "pids", "tidy", "wait_for"]


def is_running(game_dir: str | os.PathLike[str]) -> bool:
    """Whether the game's Portal or Server is alive."""
    return bool(pids(game_dir))


def tidy(game_dir: str | os.PathLike[str]) -> None:
    """Remove stale pid files, which would prevent a start."""
    alive = pids(game_dir)
    for name in NAMES:
        if name not in alive:
            pid_file(game_dir, name).unlink(missing_ok=True)


def kill(game_dir: str | os.PathLike[str]) -> None:
    """End the game's processes with SIGKILL."""
    for pid in pids(game_dir).values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until a condition is true; False if it is not after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
