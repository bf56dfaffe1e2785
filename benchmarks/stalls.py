"""The longest stall of the reactor with many assistants talking, compacting and dreaming.

Prints JSON. Assistants talk to a server on loopback (in a process of its own) that answers after
half a second. A heartbeat every 5 ms measures how late the reactor comes to it. Beside the talk
stands an idle phase of the same process, as the machine's own noise.

    python -m benchmarks.stalls --assistants 100 --seconds 60
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from typing import Any

from benchmarks.world import world

BEAT_S = 0.005
WORDS = ("the", "keeper", "of", "lanterns", "tells", "ferries", "mills", "debts", "Mirabel")


class Heartbeat:
    """Measures how late the reactor is, in milliseconds."""

    def __init__(self, reactor: Any):
        self.reactor = reactor
        self.late: list[float] = []
        self._due = 0.0

    def start(self) -> None:
        """Begin."""
        self._due = time.perf_counter() + BEAT_S
        self.reactor.callLater(BEAT_S, self._beat)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.late.append(max(0.0, (now - self._due) * 1000))
        self._due = now + BEAT_S
        self.reactor.callLater(BEAT_S, self._beat)

    def take(self) -> dict[str, float]:
        """The figures since the last take."""
        late, self.late = sorted(self.late), []
        return {
            "beats": len(late),
            "p50_ms": round(late[len(late) // 2], 2),
            "p99_ms": round(late[int(0.99 * (len(late) - 1))], 2),
            "p999_ms": round(late[int(0.999 * (len(late) - 1))], 2),
            "max_ms": round(late[-1], 2),
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assistants", type=int, default=100)
    parser.add_argument("--lines", type=float, default=10.0, help="lines heard in a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.loopback", "--mode", "offline", "--delay", "0.5"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        port = server.stdout.readline().strip()
        print(json.dumps(run(f"http://127.0.0.1:{port}/v1", options), indent=2))
    finally:
        server.kill()


def run(url: str, options: Any) -> dict[str, Any]:
    """The phases: quiet, then talk with compactions and dreams."""
    from evennia_ai.llm_interaction.client import ModelClient

    figures: dict[str, Any] = dict(vars(options))
    with world(ModelClient(api_base=url, api_key="sk-bench", home_model="scripted/model")) as make:
        from twisted.internet import reactor

        os.environ["EVENNIA_AI_LLM_MODEL"] = "loopback"
        from evennia_ai import services

        heart, rng = Heartbeat(reactor), random.Random(7)
        crew = [make(f"Aria{number}")[0] for number in range(options.assistants)]
        for script in crew:
            script.attributes.add("max_context_tokens", 6000)
            script.attributes.add("reply_cooldown_s", 0)
            script.attributes.add("llm_timeout_s", 30.0)

        def talk() -> None:
            script = rng.choice(crew)
            script.hear(
                {
                    "id": f"m{rng.random()}",
                    "content": " ".join(rng.choices(WORDS, k=40)),
                    "channel": "whisper",
                    "audience": "private:o9.x",
                    "speaker": {"key": "Mira", "id": "o9.x"},
                    "metadata": {},
                    "created_at": "2026-01-01T00:00:00.000+00:00",
                }
            )
            reactor.callLater(1.0 / options.lines, talk)

        def tick(number: int) -> None:
            script = crew[number % len(crew)]
            script.at_tick()
            if rng.random() < 0.003:
                script.fall_asleep()
            reactor.callLater(2.0 / options.assistants, tick, number + 1)

        def quiet_over(_: Any) -> None:
            figures["quiet"] = heart.take()
            talk()
            tick(0)
            reactor.callLater(options.seconds, over)

        def over() -> None:
            figures["talking"] = heart.take()
            figures["turns"] = sum(s.runtime.counts["turns"] for s in crew)
            figures["compactions"] = sum(len(s.history.compactions()) for s in crew)
            figures["errors"] = sum(s.runtime.counts["errors"] for s in crew)
            reactor.stop()

        def begin(_: Any) -> None:
            heart.start()
            reactor.callLater(5.0, quiet_over, None)

        services.model().warm_up().addBoth(begin)
        reactor.run()
    return figures


if __name__ == "__main__":
    main()
