"""Measure how long a game takes to start with and without the package. Prints JSON.

There are two games as `evennia --init` makes them; one has the package and an assistant. They are
started and stopped in turn. A start lasts from the command until the game greets on its telnet
port, which it does once the Server is up.

    python -m benchmarks.server_start
"""

import time
from contextlib import ExitStack
from statistics import median

from benchmarks.figures import show
from evennia_ai import processes
from evennia_ai.cli.install import install
from tests.e2e.game import PASSWORD, Game
from tests.e2e.ports import free_ports
from tests.e2e.telnet import Telnet

STARTS = 5
OWNER = {"EVENNIA_SUPERUSER_USERNAME": "admin", "EVENNIA_SUPERUSER_PASSWORD": PASSWORD}
SETTINGS = """
TELNET_PORTS = [{}]
WEBSERVER_PORTS = [({}, {})]
WEBSOCKET_CLIENT_PORT = {}
AMP_PORT = {}
"""
CREATE = """
evennia.create_object("evennia_ai.assistant_character.AssistantCharacter", key="Aria",
                      location=evennia.search_object("#2")[0])
"""


class PlainGame(Game):
    """A game as Evennia makes it, which has been started once.

    Args:
        package: Whether to install the package into it.
    """

    def __init__(self, package: bool):
        self.public = free_ports(5)
        super().__init__(env=OWNER, settings=SETTINGS.format(*self.public), start=False)
        self.package = package

    def __enter__(self) -> "PlainGame":
        super().__enter__()
        if self.package:
            install(self.folder, apply=True, say=lambda line: None)
        self.evennia("migrate")
        self.start()  # the first start creates the admin and the first room, and restarts
        time.sleep(8)
        if self.package:
            self.python(CREATE)
        self.stop()
        return self

    def _make(self) -> None:
        folder, self.folder = self.folder, self.base
        self.evennia("--init", folder.name)
        self.folder = folder

    def start(self, timeout_s: float = 120.0) -> float:
        """Start it; return the seconds until it greets."""
        began = time.monotonic()
        self.evennia("start")
        while time.monotonic() < began + timeout_s:
            if self._greets():
                return time.monotonic() - began
            time.sleep(0.05)
        raise TimeoutError(f"{self.folder} did not start")

    def stop(self) -> None:
        """Stop it."""
        self.evennia("stop")
        processes.wait_for(lambda: not processes.is_running(self.folder), 30)

    def _greets(self) -> bool:
        try:
            with Telnet(self.public[0], timeout_s=5) as guest:
                return bool(guest.read_until("connect <username>|connect", 5))
        except (OSError, AssertionError):
            return False


def measure() -> dict[str, object]:
    """Start both games in turn; return seconds, medians and the difference."""
    seconds: dict[str, list[float]] = {"without": [], "with_package": []}
    with ExitStack() as stack:
        games = {name: stack.enter_context(PlainGame(name != "without")) for name in seconds}
        for _ in range(STARTS):
            for name, game in games.items():
                seconds[name].append(round(game.start(), 2))
                time.sleep(5)  # wait for background work after the start
                game.stop()
    medians = {name: median(figures) for name, figures in seconds.items()}
    more = round(medians["with_package"] - medians["without"], 2)
    return {"seconds": seconds, "median": medians, "more_with_package_s": more}


if __name__ == "__main__":
    show(measure())
