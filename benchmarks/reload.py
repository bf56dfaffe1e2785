"""Check that `evennia reload` comes back while model calls are in flight. Prints JSON.

The benchmark starts a game whose model is a local server. It talks to the assistant so that calls
are in flight, reloads, and waits for the new Server, a number of times.

    python -m benchmarks.reload --times 20

The model answers after `ANSWER_S` seconds and names the question. The
answer to the call in flight must reach the player after the reload: ``answered`` counts these,
``asked_again`` the questions for which the model got more than one request, ``answered_twice``
those that were answered more than once. ``late_s`` lasts from the end of the reload, or of the
model's wait if that is later, until the player reads the answer.
"""

import argparse
import contextlib
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.e2e.game import Game
from tests.e2e.telnet import Timeout
from tests.loopback import Answer, LoopbackServer, slow

# After a reload the new Server loads LiteLLM first, which takes half a minute on a busy machine.
WAIT_S = 90
# How long the model takes, and how long after a reload an answer may come.
ANSWER_S, LATE_S = 8.0, 60.0
MARK = re.compile(r"\bQ(\d+)\b")


def measure(times: int) -> dict[str, Any]:
    """Reload a game, each time with a call in flight that is answered.

    Returns:
        ``{"times", "came_back", "calls_in_flight", "answered", "asked_again",
        "answered_twice", "minds", "seconds", "late_s"}``; ``minds`` is the number of processes.
    """
    seconds, late, in_flight = [], [], 0
    with LoopbackServer(_named) as server:
        env = {
            "EVENNIA_AI_LLM_MODEL": "loopback",
            "EVENNIA_AI_LLM_API_BASE": server.url,
            "EVENNIA_AI_LLM_API_KEY": "sk-test",
        }
        with Game(env=env) as game, game.admin(WAIT_S) as player:
            player.ask("say Aria, Q0: are you there?", r"About Q0\b")
            for number in range(1, times + 1):
                player.send(f"say Aria, Q{number}: what do you make of this?")
                in_flight += _is_asked(server, number)
                started = time.monotonic()
                game.reload()
                seconds.append(time.monotonic() - started)
                due = max(started + ANSWER_S, time.monotonic())
                with contextlib.suppress(Timeout):
                    player.read_until(rf"About Q{number}\b", LATE_S)
                    late.append(max(0.0, time.monotonic() - due))
            player.drain(ANSWER_S + 2)
            said = Counter(re.findall(r"About (Q\d+)", player.transcript))
            minds = game.log("mind.log").count("serves the game")
        asked = Counter(_newest(record.body) for record in server.requests)
    return {
        "times": times,
        "came_back": len(seconds),
        "calls_in_flight": in_flight,
        "answered": len(late),
        "asked_again": sum(count > 1 for number, count in asked.items() if number > 0),
        "answered_twice": sum(count > 1 for count in said.values()),
        "minds": minds,
        "seconds": _spread(seconds),
        "late_s": _spread(late),
    }


def _newest(body: Mapping[str, Any]) -> int:
    """The newest question in a request; -1 if there is none."""
    return max(map(int, MARK.findall(json.dumps(body.get("messages", [])))), default=-1)


def _named(body: Mapping[str, Any]) -> Answer:
    return slow(ANSWER_S, f"About Q{_newest(body)}: I have to think of the sea.")


def _is_asked(server: LoopbackServer, number: int) -> bool:
    """Wait until the model has the request of a question; return whether it still works on it."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = [record for record in list(server.requests) if _newest(record.body) == number]
        if found:
            return not found[-1].answered
        time.sleep(0.05)
    return False


def _spread(seconds: list[float]) -> dict[str, float]:
    ends = {"median": statistics.median(seconds or [0.0]), "max": max(seconds, default=0.0)}
    return {name: round(value, 2) for name, value in ends.items()}


def main() -> None:
    """Print the figures. The exit code says whether an answer or the game did not come back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    figures = measure(options.times)
    print(json.dumps(figures, indent=2))
    wanted = min(figures["came_back"], figures["answered"])
    sys.exit(wanted < options.times or bool(figures["answered_twice"]))


if __name__ == "__main__":
    main()
