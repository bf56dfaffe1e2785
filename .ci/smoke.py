"""Check a running demo: `python .ci/smoke.py <telnet port> <password>`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.e2e.telnet import Telnet  # noqa: E402


def main(port, password):
    """Log in, look, greet Aria and print the output. Raise if something is missing."""
    with Telnet(int(port), timeout_s=30) as player:
        player.login("admin", password)
        player.ask("look", r"The Gilded Lantern[\s\S]*Aria")
        player.ask("say Hello, Aria!", r"Aria says[^\n]+")
        print(player.transcript)


main(*sys.argv[1:])
