"""A started game whose Server kills itself with SIGKILL before a named step.

Three players and the admin are connected by telnet. They talk to the assistant, who uses the
offline model. The admin starts compactions, rolls them back, sends the assistant to sleep and
writes to its journal. The Server is killed in the middle of this by a module inside it
(`kill_server`). Then it is started with the command that Portal uses. Portal and the connections
stay, as in a game whose Server crashed. The new Server checks everything and continues.

A line counts as told when `aihistory` has shown it; the next Server must then have it once.
"""

import contextlib
import json
import random
import re
import time

from evennia_ai import processes
from tests.e2e import kill_steps
from tests.e2e.game import REPOSITORY
from tests.e2e.telnet import Timeout

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
LIFE_S, ANSWER_S, LOOK_S = 240.0, 20.0, 90.0
# Number of talks that grow a history by more than half of what a compaction leaves, at most.
TALKS = 4
DEEDS = {
    "rollback": ("roll_back",),
    "mask": ("mask",),
    "emergency": ("emergency",),
    "draft": ("talk", "compact"),
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

    def __init__(self, game, seed):
        self.game, self.rng = game, random.Random(seed)
        self.folder = game.folder / "kill"
        self.number = 0
        self.lines = set()
        self.told = set()
        self.admin = game.admin(60)
        self.players = {name: game.player(name, timeout_s=60) for name in PLAYERS}
        self.server = self._server()
        for name, value in kill_steps.CONFIG.items():
            self.admin.ask(f"aiconfig Aria {name} = {value}", "is now")
        self._call("shelve()", "is here")
        self.players["Alice"].ask("say Hello, Aria!", r"Aria says", ANSWER_S)

    # -- the Server ----------------------------------------------------------------------------

    def _server(self):
        return int(processes.pids(self.game.folder).get("server", 0))

    def is_alive(self):
        """Return whether the Server that runs the plan is still alive."""
        return self._server() == self.server

    def plan(self, step):
        """Let the Server die before this step."""
        (self.folder / "look.json").unlink(missing_ok=True)
        draft = self.folder / "plan.draft"
        draft.write_text(json.dumps({"step": step}))
        draft.rename(self.folder / "plan.json")

    def start(self):
        """Start the Server; return the result of its check."""
        self.server = self.game.start_server()
        found = self._look()
        for who in (self.admin, *self.players.values()):
            with contextlib.suppress(Timeout):  # a connection loses its character with its Server
                who.ask("ic", "You become", ANSWER_S)
        return found

    def _look(self):
        path, end = self.folder / "look.json", time.monotonic() + LOOK_S
        while time.monotonic() < end:
            if path.exists():
                found = json.loads(path.read_text())
                if found["pid"] == self.server:
                    return found
            time.sleep(0.03)
        return {"failed": "there was no look"}

    # -- actions in the game -------------------------------------------------------------------

    def live(self, step):
        """Do what leads to a step until the Server dies; return False if it survives."""
        end = time.monotonic() + LIFE_S
        try:
            while time.monotonic() < end:
                for deed in _deeds(step):
                    getattr(self, deed)()
        except Dead:
            return True
        return not self.is_alive()

    def talk(self):
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
        self._wait(self.players["Alice"], r"Aria (says|whispers)")
        self._see_stored(said)

    def _say(self, name, how, text):
        self.lines.add(text)
        self._send(self.players[name], how + text)

    def _see_stored(self, said):
        """Count lines as told once staff see them in the assistant's history."""
        shown = self._ask("aihistory Aria", r"newest first[\s\S]*" + re.escape(said[0]))
        shown = re.sub(r"\s+", " ", shown + self.admin.drain(0.15))
        self._send(self.admin, "q")
        self.told.update(text for text in said if text in shown)

    def compact(self):
        """Compact by command."""
        self._ask("compact Aria", r"Aria (compacted \d|did not compact)")

    def roll_back(self):
        """Compact, then roll the compaction back."""
        self.talk()
        self.compact()
        shown = self._ask("compact/rollback Aria", r"would be live again|There is no compaction")
        if "live again" not in shown:
            return
        self._ask("compact/rollback Aria = yes", r"Taken back|no longer fit")

    def journal(self):
        """Write many entries, so that the journal turns pages."""
        self._call(f"journal({self.rng.randrange(20, 60)})", "entries are written")

    def mask(self):
        """Produce large tool outputs and a trigger at night that masking them satisfies."""
        self.compact()  # ends any hold on automatic triggers
        alice = self.players["Alice"]
        for _ in range(READINGS):
            self._ask("say Aria, look at the chronicle.", r"Aria (says|whispers)", alice)
        self.talk()
        self._call("lower('compact_sleep_threshold')", "is low")
        self.dream()
        self._call("restore()", "as ever")

    def emergency(self):
        """Fill the context before a tick begins; after each talk, or a lull would make room."""
        self.compact()  # ends any hold on automatic triggers
        for _ in range(TALKS):
            self.talk()
            self._call("lower('compact_emergency_threshold')", "is low")
            self._pause(4.0)
        self._call("restore()", "as ever")

    def _call(self, what, shown):
        """Call a function of `kill_server` in the Server."""
        self._ask(f"py __import__('tests.e2e.kill_server').e2e.kill_server.{what}", shown)

    def dream(self):
        """Let the assistant sleep and dream, then wake it."""
        self._ask("ai/sleep Aria", r"falls asleep\.|asleep already")
        self._pause(2.0)
        self._ask("ai/wake Aria", r"wakes up|awake already")

    def _send(self, who, line):
        if not self.is_alive():
            raise Dead
        who.drain(0.02)
        who.send(line)

    def _ask(self, line, pattern, who=None):
        """Somebody, the admin if nobody else, types a line; wait for its answer."""
        self._send(who or self.admin, line)
        return self._wait(who or self.admin, pattern)

    def _wait(self, who, pattern):
        """Return the output up to a pattern, or none if it does not come."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            try:
                return who.read_until(pattern, 0.1)
            except Timeout:
                if not self.is_alive():
                    raise Dead from None
        return ""

    def _pause(self, seconds):
        if processes.wait_for(lambda: not self.is_alive(), seconds):
            raise Dead

    # -- said lines ---------------------------------------------------------------------------

    def faults_of_lines(self, stored):
        """Told lines that are gone, and lines that are stored twice."""
        return {
            "lost": [text for text in self.told if text not in stored],
            "doubled": [text for text in self.lines if stored.get(text, 0) > 1],
        }


def _deeds(step):
    """The actions that lead to a named step."""
    for start, deeds in DEEDS.items():
        if step.startswith(start):
            return deeds
    return ("journal",)
