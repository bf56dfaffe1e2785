"""A started game whose Server kills itself with SIGKILL before a named step.

Three players and the admin are connected by telnet. They talk to the assistant, who uses the
offline model. The admin starts compactions, rolls them back, sends the assistant to sleep and
writes to its journal. The Server is killed in the middle of this by a module inside it
(`kill_server`). Then it is started with the command that Portal uses. Portal and the connections
stay, as in a game whose Server crashed. The new Server checks everything and continues.

Besides the Server's own log there is a log of what the players said. A line counts as told when
`aihistory` has shown it; the next Server must then have it once.
"""

import json
import random
import re
import time
from collections import Counter
from typing import Any

from evennia_ai import processes
from tests.e2e import kill_steps
from tests.e2e.game import REPOSITORY, Game
from tests.e2e.kill_steps import Log
from tests.e2e.telnet import Telnet, Timeout

# An installed package may bring `tests` of its own.
SETTINGS = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "tests.e2e.kill_server"]
CREATION_THROTTLE_LIMIT = None
LOGIN_THROTTLE_LIMIT = None
"""
PLAYERS = ("Alice", "Bob", "Carol")
LIFE_S, ANSWER_S, LOOK_S = 60.0, 20.0, 90.0
# Number of talks that grow a history by more than half of what a compaction leaves.
TALKS = 4
DEEDS = {
    "rollback": ("roll_back",),
    "mask": ("mask",),
    "emergency": ("emergency",),
    "commit": ("talk", "compact"),
    "consolidation": ("journal", "dream"),
}
READINGS = 3  # of the chronicle, before its texts are masked


class Dead(Exception):
    """The Server is gone."""


class Tavern:
    """A started game with its players and what they said.

    Args:
        game: The game. It is started.
        seed: Seed of what happens.
    """

    def __init__(self, game: Game, seed: int):
        self.game, self.rng = game, random.Random(seed)
        self.folder = game.folder / "kill"
        self.said = Log(game.base / "said.jsonl")
        self.number = 0
        self.lines: set[str] = set()
        self.told: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.admin = game.admin(60)
        self.players = {name: game.player(name, timeout_s=60) for name in PLAYERS}
        self.everybody: tuple[Telnet, ...] = (self.admin, *self.players.values())
        self.server = self._server()
        for name, value in kill_steps.CONFIG.items():
            self.admin.ask(f"aiconfig Aria {name} = {value}", "is now")
        self._call("shelve()", "is here")
        self.player("Alice").ask("say Hello, Aria!", r"Aria says", ANSWER_S)

    def player(self, name: str) -> Telnet:
        """Return a player's connection."""
        return self.players[name]

    # -- the Server ----------------------------------------------------------------------------

    def _server(self) -> int:
        return int(processes.pids(self.game.folder).get("server", 0))

    def is_alive(self) -> bool:
        """Return whether the Server that runs the plan is still alive."""
        return self._server() == self.server

    def plan(self, plan: dict[str, Any]) -> None:
        """Give the Server its plan."""
        (self.folder / "look.json").unlink(missing_ok=True)
        draft = self.folder / "plan.draft"
        draft.write_text(json.dumps(plan))
        draft.rename(self.folder / "plan.json")

    def start(self) -> dict[str, Any]:
        """Start the Server; return the result of its check."""
        self.server = self.game.start_server()
        found = self._look()
        for who in self.everybody:
            self._enter(who)
        return found

    def _enter(self, who: Telnet) -> None:
        """Enter the character again, which a connection that outlived its Server has lost."""
        try:
            who.ask("ic", "You become", ANSWER_S)
        except Timeout:
            self.counts["not let in"] += 1

    def _look(self) -> dict[str, Any]:
        path, end = self.folder / "look.json", time.monotonic() + LOOK_S
        while time.monotonic() < end:
            if path.exists():
                found: dict[str, Any] = json.loads(path.read_text())
                if found["pid"] == self.server:
                    return found
            time.sleep(0.03)
        return {"failed": "there was no look"}

    # -- actions in the game -------------------------------------------------------------------

    def live(self, plan: dict[str, Any]) -> bool:
        """Do what leads to the plan's step until the Server dies; return False if it survives."""
        end = time.monotonic() + LIFE_S
        try:
            while time.monotonic() < end:
                for deed in _deeds(plan["step"]):
                    getattr(self, deed)()
        except Dead:
            return True
        return not self.is_alive()

    def talk(self) -> None:
        """Let everybody speak, and the assistant answer."""
        said = []
        for _ in range(self.rng.randrange(3, 8)):
            self.number += 1
            name = self.rng.choice(PLAYERS)
            crowns = self.rng.randrange(999)
            said.append(f"Line {self.number}: {crowns} crowns for the barrel of {name}.")
            how = "say " if self.rng.random() < 0.8 else "whisper Aria = "
            self._say(name, how, said[-1])
        self.number += 1
        said.append(f"Aria, remember that in line {self.number} Bob owes Alice a barrel.")
        self._say("Alice", "say ", said[-1])
        self._wait(self.player("Alice"), r"Aria (says|whispers)")
        self._see_stored(said)

    def _say(self, name: str, how: str, text: str) -> None:
        self.said.note("said", {"text": text})
        self.lines.add(text)
        self._send(self.player(name), how + text)

    def _see_stored(self, said: list[str]) -> None:
        """Count lines as told once staff see them in the assistant's history."""
        self._send(self.admin, "aihistory Aria")
        shown = self._wait(self.admin, r"newest first[\s\S]*" + re.escape(said[0])) or ""
        shown = re.sub(r"\s+", " ", shown + self.admin.drain(0.15))
        self._send(self.admin, "q")
        for text in said:
            if text in shown:
                self.said.note("told", {"text": text})
                self.told.add(text)

    def compact(self) -> None:
        """Compact by command."""
        self._send(self.admin, "compact Aria")
        shown = self._wait(self.admin, r"Aria (compacted \d|did not compact)") or ""
        self.counts["compactions"] += "compacted" in shown

    def roll_back(self) -> None:
        """Compact, then roll the compaction back."""
        self.talk()
        self.compact()
        self._send(self.admin, "compact/rollback Aria")
        shown = self._wait(self.admin, r"would be live again|There is no compaction") or ""
        if "live again" not in shown:
            return
        self._send(self.admin, "compact/rollback Aria = yes")
        shown = self._wait(self.admin, r"Taken back|no longer fit") or ""
        self.counts["rollbacks"] += "Taken back" in shown

    def journal(self) -> None:
        """Write many entries, so that the journal turns pages."""
        self._call(f"journal({self.rng.randrange(20, 60)})", "entries are written")

    def mask(self) -> None:
        """Produce large tool outputs and a trigger at night that masking them satisfies."""
        self.compact()  # ends any hold on automatic triggers
        for _ in range(READINGS):
            self._send(self.player("Alice"), "say Aria, look at the chronicle.")
            self._wait(self.player("Alice"), r"Aria (says|whispers)")
        self.talk()
        self._call("lower('compact_sleep_threshold')", "is low")
        self.dream()
        self._call("restore()", "as ever")

    def emergency(self) -> None:
        """Fill the context before a tick begins."""
        self.compact()  # ends any hold on automatic triggers
        for _ in range(TALKS):
            self.talk()
        self._call("lower('compact_emergency_threshold')", "is low")
        self._pause(3.0)
        self._call("restore()", "as ever")

    def _call(self, what: str, shown: str) -> None:
        """Call a function of `kill_server` in the Server."""
        self._send(self.admin, f"py __import__('tests.e2e.kill_server').e2e.kill_server.{what}")
        self._wait(self.admin, shown)

    def dream(self) -> None:
        """Let the assistant sleep and dream, then wake it."""
        self._send(self.admin, "ai/sleep Aria")
        self._wait(self.admin, r"falls asleep\.|asleep already")
        self._pause(2.0)
        self._send(self.admin, "ai/wake Aria")
        shown = self._wait(self.admin, r"wakes up|awake already") or ""
        self.counts["nights"] += "wakes up" in shown

    def _send(self, who: Telnet, line: str) -> None:
        if not self.is_alive():
            raise Dead
        who.drain(0.02)
        who.send(line)

    def _wait(self, who: Telnet, pattern: str) -> str | None:
        """Return the output up to a pattern, or None if the Server dies first."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            try:
                return str(who.read_until(pattern, 0.1))
            except Timeout:
                if not self.is_alive():
                    raise Dead from None
        self.counts["unanswered"] += 1
        return None

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.is_alive():
                raise Dead
            time.sleep(0.03)

    # -- said lines ---------------------------------------------------------------------------

    def faults_of_lines(self, stored: dict[str, int]) -> dict[str, list[str]]:
        """Told lines that are gone, and lines that are stored twice."""
        return {
            "lost": [text for text in self.told if text not in stored],
            "doubled": [text for text in self.lines if stored.get(text, 0) > 1],
        }


def _deeds(step: str) -> tuple[str, ...]:
    """The actions that lead to a named step."""
    for start, deeds in DEEDS.items():
        if step.startswith(start):
            return deeds
    return ("journal",)
