"""Check that `evennia reload` comes back while model calls hang. Prints JSON.

The benchmark starts a game whose model is a local server that never answers. It talks to the
assistant so that calls are in flight, reloads, and waits for the new Server, a number of times.

    python -m benchmarks.reload --times 20
"""

import argparse
import json
import statistics
import time

from tests.e2e.game import Game
from tests.loopback import HANG, LoopbackServer

# After a reload the new Server loads LiteLLM first, which takes half a minute on a busy machine.
WAIT_S = 90


def measure(times: int) -> dict[str, object]:
    """Reload a game `times` times with a call in flight.

    Returns:
        ``{"times", "came_back", "calls_in_flight", "seconds": {"median", "max"}}``.
    """
    seconds, in_flight = [], 0
    with LoopbackServer(lambda body: HANG) as server:
        env = {
            "EVENNIA_AI_LLM_MODEL": "loopback",
            "EVENNIA_AI_LLM_API_BASE": server.url,
            "EVENNIA_AI_LLM_API_KEY": "sk-test",
        }
        with Game(env=env) as game:
            for _ in range(times):
                in_flight += _hang_a_call(game, server)
                started = time.monotonic()
                game.reload()
                seconds.append(time.monotonic() - started)
    return {
        "times": times,
        "came_back": len(seconds),
        "calls_in_flight": in_flight,
        "seconds": {"median": round(statistics.median(seconds), 2), "max": round(max(seconds), 2)},
    }


def _hang_a_call(game: Game, server: LoopbackServer) -> bool:
    """Speak to the assistant until a request hangs on the server; return whether one does."""
    before = len(server.requests)
    with game.admin() as player:
        for _ in range(WAIT_S):
            player.send("say Aria, are you there?")
            player.drain(1)
            if len(server.requests) > before:
                return not server.requests[-1].client_left
    return False


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    print(json.dumps(measure(parser.parse_args().times), indent=2))


if __name__ == "__main__":
    main()
