"""Processes: whether one is alive and is the one that is meant."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

NAMES = ("portal", "server")


def pid_file(game_dir: str | os.PathLike[str], name: str) -> Path:
    """Where Evennia keeps the pid of ``portal`` or ``server``."""
    return Path(game_dir) / "server" / f"{name}.pid"


def pids(game_dir: str | os.PathLike[str]) -> dict[str, int]:
    """The living processes of a game, by name; stale pid files are ignored."""
    found = {}
    for name in NAMES:
        try:
            found[name] = int(pid_file(game_dir, name).read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            continue
    return {name: pid for name, pid in found.items() if pid and is_alive(pid)}


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


def is_alive(pid: int) -> bool:
    """Whether a process is alive and, where that can be seen, runs `twistd`.

    After a crash or a restart of the machine, another program may have the pid.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self/cmdline").exists()
    return b"twistd" in command  # a process that waits to be reaped has no command line
