"""Kill a running assistant with SIGKILL many times and count the damage. Prints JSON.

Each life is a separate process: Evennia on an SQLite file, Mem0 and the recall index on disk, a
reactor, and an assistant that hears, thinks, writes its journal, dreams, compacts and rolls back.
It is killed before a named step, at a random database statement, or at a random moment by its
parent. The next life begins with the server's start hooks and checks everything.

What the assistant is going to hear is logged and synced to disk before it hears it. What it stored
is logged after the store returned. A message is lost if it was logged as stored and is nowhere. It
is duplicated if it is in more than one place.

What an assistant hears stays in memory until the next tick stores it or saves the queue. A heard
line is therefore also lost if a tick began after it and the line is neither stored, archived nor
queued after the restart. A line that no tick followed may vanish with the process. ``unsaved``
counts those lines; they were heard within one tick of the kill.

    python -m benchmarks.kill --kills 200
    python -m benchmarks.kill --kills 200 --started
    python -m benchmarks.kill --kills 20 --started --behind

With ``--started`` the Server of a started game is killed, see `kill_game`. That takes about ten
seconds per kill; the forked lives take one or two.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LIFE_S = 60.0
STATEMENTS, MOMENT_S = 600, 2.5
# Lives of one assistant. Its archive grows, and with it the time of each check.
LIVES_EACH = 25


def measure(kills: int, seed: int, folder: Path, behind: bool = False) -> dict[str, Any]:
    """Kill an assistant a number of times, if `behind` while it compacts in the background.

    Returns:
        ``{"kills", "by_step", "heard", "stored", "unsaved", "lost", "doubled", "changed",
        "misplaced", "violations", "timer_stopped", "ghosts", "recovered", "lives
        that ended unkilled", "notes", "seconds"}``.
    """
    from benchmarks import kill_life, kill_look, kill_steps

    rng, began = random.Random(seed), time.monotonic()
    figures: Counter[str] = Counter()
    by_step: Counter[str] = Counter()
    notes: list[str] = []
    number = killed = 0
    kill_life.prepare(folder)
    while killed < kills and number < 3 * kills:
        steps = kill_steps.BEHIND if behind else kill_steps.STEPS
        plan = {**kill_steps.plan_of(number, rng, STATEMENTS, MOMENT_S, steps), "behind": behind}
        if number % LIVES_EACH == 0:
            kill_life.begin_anew(folder)
        outcome = _live(kill_life.live, folder, plan, seed * 100_000 + number)
        number += 1
        if outcome != -signal.SIGKILL:
            figures["lives that ended unkilled"] += 1
            if outcome != 0:
                notes.append(f"life {number} ({plan}) ended with {outcome}")
            continue
        killed += 1
        by_step[plan.get("step", plan["kind"])] += 1
        if _live(kill_life.look, folder, {}, 0) != 0:
            notes.append(f"after {plan}: the look failed")
            continue
        found = json.loads((folder / "look.json").read_text())
        figures.update({key: value for key, value in found.items() if isinstance(value, int)})
        notes += [f"after {plan}: {note}" for note in found["notes"]]
        if killed % 10 == 0:
            print(f"{killed} kills: {dict(figures)} {notes[-3:]}", file=sys.stderr, flush=True)
    return {
        "kills": killed,
        "by_step": dict(sorted(by_step.items())),
        **{name: figures[name] for name in kill_look.FIGURES},
        "lives that ended unkilled": figures["lives that ended unkilled"],
        "notes": notes[:50],
        "seconds": round(time.monotonic() - began, 1),
    }


def _live(function: Any, folder: Path, plan: dict[str, Any], seed: int) -> int:
    """Run a function in a forked process; return its exit code, -9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(folder, plan, seed)
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must not return
            import traceback

            with open(folder / "errors.log", "a", encoding="utf-8") as file:
                traceback.print_exc(file=file)
        finally:
            os._exit(code)
    return _waited(pid, plan.get("after_s"))


def _waited(pid: int, after_s: float | None) -> int:
    """Wait for a process; kill it some time after its first sign of life."""
    end = time.monotonic() + LIFE_S
    due = None if after_s is None else time.monotonic() + after_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        now = time.monotonic()
        if due is not None and now >= due:
            os.kill(pid, signal.SIGKILL)
            due = None
        if now >= end:
            os.kill(pid, signal.SIGTERM)
            end = now + 5
        time.sleep(0.005)


def forked(options: argparse.Namespace) -> dict[str, Any]:
    """Kill forked processes, in a folder of their own."""
    # The system completes the writes of a killed process, so a disk in memory is good enough.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="evennia-ai-kill-", dir=memory))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
            figures = measure(options.kills, options.seed, folder, options.behind)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return {**figures, "folder": str(folder)} if options.keep else figures


def started(options: argparse.Namespace) -> dict[str, Any]:
    """Kill the Server of a started game."""
    from benchmarks import kill_game

    return kill_game.measure(options.kills, options.seed, options.keep, options.behind)


def main() -> None:
    """Print the figures. The exit code says whether something was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--started", action="store_true", help="kill a started game instead of forked lives"
    )
    parser.add_argument(
        "--behind", action="store_true", help="kill while the assistant compacts in the background"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    options = parser.parse_args()
    from benchmarks import kill_look

    figures = (started if options.started else forked)(options)
    print(json.dumps(figures, indent=2))
    bad = (*kill_look.FAULTS, "looks that failed")
    sys.exit(any(figures.get(name) for name in bad) or figures["kills"] < options.kills)


if __name__ == "__main__":
    main()
