"""Look at the staff's pages of a started game with headless Chromium. Prints JSON.

A game is made and filled through the package's own code (`pages_game`). Then `pages.mjs` loads each
page in light, dark and phone width, solves the complaints of ``pages_complaints.json``, and reloads
all pages while the reactor's heartbeat is measured. Needs node, Chromium (``CHROMIUM``), and
``npm install`` in this folder (or ``PAGES_MODULES``, a folder with ``node_modules``).

    python -m scripts.pages.pages
    python -m scripts.pages.pages --parts look --pictures docs/images
    python -m scripts.pages.pages --parts reload --assistants 100 --messages 100 --compactions 0
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.game import PASSWORD, Game

HERE = Path(__file__).resolve().parent
SETTINGS = """
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "scripts.pages.pages_game"]
CREATION_THROTTLE_LIMIT = None
LOGIN_THROTTLE_LIMIT = None
"""
FILL_S, ANSWER_S = 3600.0, 60.0
MOST_MS, MOST_CLICKS, MOST_STALL_MS = 1000, 3, 50.0


class Visited:
    """A started game whose pages are looked at.

    Args:
        game: The game. It is started.
    """

    def __init__(self, game: Game):
        self.game = game
        self.admin = game.admin(ANSWER_S)

    def call(self, what: str, shown: str) -> None:
        """Call a function of `pages_game` in the Server."""
        self.admin.ask(f"py __import__('scripts.pages.pages_game').pages.pages_game.{what}", shown)

    def answer(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Wait for a file that `pages_game` writes; return what it holds."""
        path, end = self.game.folder / "pages" / f"{name}.json", time.monotonic() + timeout_s
        while not path.exists():
            if time.monotonic() > end:
                raise TimeoutError(f"{path.name} does not appear.\n{self.game.logs()}")
            time.sleep(0.5)
        found: dict[str, Any] = json.loads(path.read_text())
        path.unlink()
        return found

    def fill(self, assistants: int, messages: int, compactions: int) -> dict[str, Any]:
        """Fill the game; return what it holds and how long it took."""
        began = time.monotonic()
        self.call(f"begin({assistants}, {messages}, {compactions})", "filling begins")
        return {**self.answer("filled", FILL_S), "seconds": round(time.monotonic() - began)}

    def play(self) -> None:
        """Let players and staff do what the complaints are about."""
        with self.game.player("Alice", timeout_s=ANSWER_S) as alice:
            alice.ask("say Aria, I own a boat. She is called the Grey Heron.", r"Aria says")
            alice.ask("say Aria, what do you know of the Grey Heron?", r"Aria says")
        self.game.player("Mallory", timeout_s=ANSWER_S).close()
        self.admin.ask("aiconfig Aria persona = A grumpy pirate.", "is now")
        self.call("seed()", "have their reasons")

    def browse(self, part: str, extra: str) -> Any:
        """Run one part of `pages.mjs`; return what it prints."""
        base = f"http://127.0.0.1:{self.game.ports.webserver}"
        command = ["node", str(HERE / "pages.mjs"), part, base, PASSWORD, extra]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def look(self, pictures: str) -> dict[str, Any]:
        """Load each page in three looks; return the worst and what is wrong."""
        rows = self.browse("look", pictures)
        wrong = [
            row
            for row in rows
            if row["ms"] >= MOST_MS
            or row["status"] != 200
            or any(row[each] for each in ("console", "foreign", "serious", "wide"))
        ]
        slowest = max(rows, key=lambda row: row["ms"])
        ms = {f"{row['look']} {row['page']}": row["ms"] for row in rows}
        return {"loads": len(rows), "slowest_ms": slowest["ms"], "wrong": wrong, "ms": ms}

    def complaints(self) -> dict[str, Any]:
        """Solve the complaints; return how many clicks each took, and what is wrong."""
        rows = self.browse("complaints", str(HERE / "pages_complaints.json"))
        wrong = [row for row in rows if row["trouble"] or row["clicks"] > MOST_CLICKS]
        return {"complaints": len(rows), "wrong": wrong, "clicks": [row["clicks"] for row in rows]}

    def reload(self, seconds: float) -> dict[str, Any]:
        """Reload all pages in turn; return the reactor's lateness, with that of a quiet time."""
        self.call(f"measure({MOST_STALL_MS})", "heart beats")
        time.sleep(10.0)
        self.call("measured()", "figures are written")
        quiet = self.answer("measured", 10.0)
        loads = self.browse("reload", str(seconds))
        self.call("measured()", "figures are written")
        busy = self.answer("measured", 10.0)
        return {"quiet": quiet, "reloading": busy, "browser": loads}


def measure(visited: Visited, options: argparse.Namespace) -> dict[str, Any]:
    """Run the chosen parts."""
    found: dict[str, Any] = {}
    parts: dict[str, Callable[[], Any]] = {
        "look": lambda: visited.look(options.pictures),
        "complaints": visited.complaints,
        "reload": lambda: visited.reload(options.seconds),
    }
    for name in options.parts:
        found[name] = parts[name]()
        print(f"{name} is done", file=sys.stderr)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assistants", type=int, default=20)
    parser.add_argument("--messages", type=int, default=1000, help="of each assistant")
    parser.add_argument("--compactions", type=int, default=3, help="of each assistant")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pictures", default=tempfile.gettempdir(), help="folder of pictures")
    parser.add_argument("--parts", nargs="+", default=["look", "complaints", "reload"])
    options = parser.parse_args()
    with Game(settings=SETTINGS) as game:
        visited = Visited(game)
        filled = visited.fill(options.assistants, options.messages, options.compactions)
        visited.play()
        found = {"filled": filled, "load": os.getloadavg()[0], **measure(visited, options)}
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
