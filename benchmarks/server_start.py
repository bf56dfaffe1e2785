"""Measure how long a game takes to start with and without the package. Prints JSON.

There are two games as `evennia --init` makes them; one has the package and an assistant. They are
started and stopped in turn. A start lasts from the command until the game greets on its telnet
port, which it does once the Server is up.

    python -m benchmarks.server_start --times 5
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evennia_ai import processes
from evennia_ai.cli.install import install
from tests.e2e.game import PASSWORD
from tests.e2e.ports import free_ports
from tests.e2e.telnet import Telnet

PORTS = """
TELNET_PORTS = [{}]
WEBSERVER_PORTS = [({}, {})]
WEBSOCKET_CLIENT_PORT = {}
AMP_PORT = {}
"""
CREATE = """
import django; django.setup(); import evennia; evennia._init()
from evennia import create_object
create_object("evennia_ai.assistant_character.AssistantCharacter", key="Aria",
              location=evennia.search_object("#2")[0])
"""
LAUNCH = "from evennia.server.evennia_launcher import main; main()"


class PlainGame:
    """A game as Evennia makes it.

    Args:
        base: Folder in which to make it.
        name: Name of the game.
        package: Whether to install the package into it.
    """

    def __init__(self, base: Path, name: str, package: bool):
        self.folder, self.ports = base / name, free_ports(5)
        self._evennia("--init", name, cwd=base)
        with open(self.folder / "server/conf/settings.py", "a", encoding="utf-8") as file:
            file.write(PORTS.format(*self.ports))
        if package:
            install(self.folder, apply=True, say=lambda line: None)
        self._evennia("migrate")
        self.start()  # the first start creates the admin and the first room, and restarts
        time.sleep(8)
        if package:
            self._run([sys.executable, "-W", "ignore", "-c", CREATE], self.folder)
        self.stop()

    def start(self) -> float:
        """Start it; return the seconds until it greets."""
        began = time.monotonic()
        self._evennia("start")
        end = began + 120
        while time.monotonic() < end:
            if self._greets():
                return time.monotonic() - began
            time.sleep(0.05)
        raise TimeoutError(f"{self.folder.name} did not start")

    def stop(self) -> None:
        """Stop it."""
        self._evennia("stop")
        processes.wait_for(lambda: not processes.is_running(self.folder), 30)

    def _greets(self) -> bool:
        try:
            with Telnet(self.ports[0], timeout_s=5) as guest:
                return bool(guest.read_until("connect <username>|connect", 5))
        except (OSError, AssertionError):
            return False

    def _evennia(self, *args: str, cwd: Path | None = None) -> None:
        self._run([sys.executable, "-W", "ignore", "-c", LAUNCH, *args], cwd or self.folder)

    def _run(self, command: list[str], cwd: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        repository = str(Path(__file__).resolve().parent.parent)
        names = {
            "EVENNIA_SUPERUSER_USERNAME": "admin",
            "EVENNIA_SUPERUSER_PASSWORD": PASSWORD,
            "DJANGO_SETTINGS_MODULE": "server.conf.settings",
            # Evennia's launcher overwrites the second entry of sys.path, hence the first one.
            "PYTHONPATH": os.pathsep.join([str(cwd), repository]),
            "PATH": path,
        }
        subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **names},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=180,
            check=False,
        )


def measure(times: int) -> dict[str, object]:
    """Start both games `times` times in turn; return seconds, medians and the difference."""
    with tempfile.TemporaryDirectory(prefix="evennia-ai-start-") as folder:
        games = {
            name: PlainGame(Path(folder), name, package=name == "with_package")
            for name in ("without", "with_package")
        }
        seconds: dict[str, list[float]] = {name: [] for name in games}
        for _ in range(times):
            for name, game in games.items():
                seconds[name].append(round(game.start(), 2))
                time.sleep(5)  # wait for background work after the start
                game.stop()
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    return {
        "seconds": seconds,
        "median": medians,
        "more_with_package_s": round(medians["with_package"] - medians["without"], 2),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    print(json.dumps(measure(parser.parse_args().times), indent=2))


if __name__ == "__main__":
    main()
