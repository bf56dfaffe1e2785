"""What a failing database and a killed Server cost in a started game.

Three parts, each repeated: a commit that raises while a turn ends (the n-th from the line on, so
that each of the turn's steps fails in its time), the database file locked from outside for some
seconds, and a kill of the Server right behind ten lines. After each, the assistant must answer; at
the end every line must be stored once.

    python -m benchmarks.robust_turn --times 20
"""

import argparse
import json
import os
import random
import re
import sqlite3
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from evennia_ai import processes
from tests.e2e.game import Game
from tests.e2e.telnet import Timeout

SETTINGS = """
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "benchmarks.robust_server"]
"""
LOCKED_S, ANSWER_S, IDLE_S = 7.0, 60.0, 5.0
# Commits of a turn from the line to its end, about; later ones are those of the next tick.
COMMITS = 8
LINES_BEFORE_KILL = 10
STORED = """
from evennia_ai.assistant_script import all_assistants
import json, re
script = all_assistants()[0]
texts = [m.content for m in script.history.messages()]
texts += [m["content"] for m in script.state.store.get("event_queue") or ()]
print(json.dumps(re.findall(r"mark[a-z]+", " ".join(dict.fromkeys(texts)))))
"""


def word(number: int) -> str:
    """A word of letters that no other number has."""
    return "mark" + "".join(chr(97 + int(digit)) for digit in f"{number:05}")


class Trial:
    """One game, its player, and the lines said in it."""

    def __init__(self, game: Game):
        self.game = game
        self.player = game.player("Alice", timeout_s=60)
        self.lines: list[str] = []
        self.player.ask("say Hello, Aria!", "Aria says", ANSWER_S)

    def say(self) -> str:
        """Say something new to the assistant; returns its mark."""
        mark = word(len(self.lines))
        self.lines.append(mark)
        self.player.send(f"say Aria, my boat number {len(self.lines)} is called {mark}.")
        return mark

    def answers(self) -> bool:
        """Whether it answers a question now."""
        try:
            self.player.ask("say Aria, what is your name?", "Aria says", ANSWER_S)
        except Timeout:
            return False
        return True

    def stored(self) -> Counter[str]:
        """How often each mark is in the history or the queue."""
        heard = json.loads(self.game.python(STORED).splitlines()[-1])
        return Counter(heard)

    def processor_share(self) -> float:
        """The share of a core that the Server uses while nobody speaks."""

        def used() -> float:
            pid = processes.pids(self.game.folder)["server"]
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
            fields = stat.rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = used()
        time.sleep(IDLE_S)
        return (used() - before) / IDLE_S


def failing_commits(trial: Trial, times: int) -> dict[str, Any]:
    """A commit that raises at one of the steps of a turn, in turn."""
    answered, shares = 0, []
    for number in range(times):
        (trial.game.folder / "fail_commit").write_text(str(1 + number % COMMITS))
        trial.say()
        time.sleep(2.0)
        (trial.game.folder / "fail_commit").unlink(missing_ok=True)
        shares.append(trial.processor_share())
        answered += trial.answers()
    return {"answered": answered, "of": times, "idle_cpu_max": round(max(shares), 3)}


def locked_file(trial: Trial, times: int, rng: random.Random) -> dict[str, Any]:
    """The database file locked from outside while a turn ends."""
    answered, shares = 0, []
    for _ in range(times):
        trial.say()
        time.sleep(rng.uniform(0, 0.3))
        path = trial.game.folder / "server" / "evennia.db3"
        connection = sqlite3.connect(path, timeout=10, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(LOCKED_S)
        connection.execute("ROLLBACK")
        connection.close()
        time.sleep(1.0)
        shares.append(trial.processor_share())
        answered += trial.answers()
    return {"answered": answered, "of": times, "idle_cpu_max": round(max(shares), 3)}


def kills(trial: Trial, times: int) -> dict[str, Any]:
    """A kill of the Server as soon as ten lines have been heard."""
    lost, back = [], 0
    for _ in range(times):
        marks = [trial.say() for _ in range(LINES_BEFORE_KILL)]
        trial.player.read_until(f"You say, .*{marks[-1]}", ANSWER_S)
        trial.game.kill_server()
        seen = set(re.findall("mark[a-z]+", trial.player.transcript))
        stored = trial.stored()
        lost.append(sum(mark not in stored for mark in marks if mark in seen))
        trial.game.start_server()
        time.sleep(3.0)
        trial.player.ask("ic", "You become", ANSWER_S)
        back += trial.answers()
    return {"lost_each": lost, "lost_most": max(lost), "answered_after": back, "of": times}


def main() -> None:
    """Print the results as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with Game(settings=SETTINGS) as game:
        trial = Trial(game)
        results["failing_commits"] = failing_commits(trial, options.times)
        results["locked_file"] = locked_file(trial, options.times, random.Random(options.seed))
        results["kills"] = kills(trial, options.times)
        time.sleep(10)
        counts = trial.stored()
        results["lines"] = len(trial.lines)
        results["missing"] = [mark for mark in trial.lines if not counts[mark]]
        results["median_times_stored"] = median(counts.values())
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
