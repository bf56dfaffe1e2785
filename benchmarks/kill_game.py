"""Kill the Server of a started game with SIGKILL many times. Called by `kill.py`.

A game is made as by `evennia-ai new` and started by Evennia's launcher. Three players and the admin
are connected by telnet. They talk to the assistant, who uses the offline model. The admin starts
compactions, rolls them back, sends the assistant to sleep and writes to its journal. The Server is
killed in the middle of this: by a module inside it (`kill_server`), before a named step or at a
database statement, or from outside at a random moment, also while it starts. Then it is started
with the command that Portal uses. Portal and the connections stay, as in a game whose Server
crashed. The new Server checks everything and continues.

Besides the Server's own log there is a log of what the players said. A line counts as told when
`aihistory` has shown it; the next Server must then have it once. A line that was sent since the
last check and is nowhere counts as ``sent_and_gone``: it was in the Server's memory, or on its way.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import kill_look, kill_steps
from benchmarks.kill_steps import Log
from evennia_ai import processes
from tests import loopback
from tests.asked import source_of
from tests.e2e.game import Game
from tests.e2e.telnet import Telnet, Timeout
from tests.loopback import Answer, LoopbackServer, call, calls

SETTINGS = """
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "benchmarks.kill_server"]
CREATION_THROTTLE_LIMIT = None
LOGIN_THROTTLE_LIMIT = None
"""
PLAYERS = ("Alice", "Bob", "Carol")
STATEMENTS, MOMENT_S, START_S = 250, 8.0, 10.0
# Seconds that the slow model takes for a summary, and the latest moment of a kill behind the ticks.
SLOW_S, BEHIND_S = 2.0, 20.0
LIFE_S, ANSWER_S, LOOK_S = 60.0, 20.0, 90.0
GONE = "sent_and_gone"
# Lives of one assistant. Its archive grows, and with it the time of each check.
LIVES_EACH = 25
# Number of talks that grow a history by more than half of what a compaction leaves.
TALKS = 4
ALL_DEEDS = ("talk", "talk", "compact", "roll_back", "dream", "journal", "mask", "emergency")
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
        self.new: set[str] = set()  # lines since the last check
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

    def kill(self) -> None:
        """Kill the Server from outside."""
        os.kill(self.server, signal.SIGKILL)

    def plan(self, plan: dict[str, Any]) -> None:
        """Give the Server its plan, or carry it out from here."""
        (self.folder / "look.json").unlink(missing_ok=True)
        if "after_s" in plan:
            threading.Timer(plan["after_s"], self._kill_if_alive, [self.server]).start()
            return
        draft = self.folder / "plan.draft"
        draft.write_text(json.dumps(plan))
        draft.rename(self.folder / "plan.json")

    def _kill_if_alive(self, server: int) -> None:
        if self._server() == server:
            os.kill(server, signal.SIGKILL)

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

    def start_and_kill(self, after_s: float) -> None:
        """Start the Server and kill it after a number of seconds, however far it got."""
        self.game.spawn_server()
        end = time.monotonic() + after_s
        while time.monotonic() < end or not self._server():
            time.sleep(0.01)
        self.server = self._server()
        self.kill()
        self.game.wait_for_death()

    def _look(self) -> dict[str, Any]:
        path, end = self.folder / "look.json", time.monotonic() + LOOK_S
        while time.monotonic() < end:
            if path.exists():
                found: dict[str, Any] = json.loads(path.read_text())
                if found["pid"] == self.server:
                    return found
            time.sleep(0.03)
        return {"failed": "there was no look"}

    def begin_anew(self) -> None:
        """Restore the original assistant while no Server is running."""
        server = self.game.folder / "server"
        for path in server.glob("evennia.db3*"):
            path.unlink()
        shutil.copy(self.game.base / "pristine.db3", server / "evennia.db3")
        shutil.rmtree(server / "ai_memory", ignore_errors=True)
        (self.folder / "log.jsonl").unlink()
        for lines in (self.lines, self.told, self.new):
            lines.clear()

    def keep_pristine(self) -> None:
        """Save the original assistant while no Server is running."""
        server = self.game.folder / "server"
        shutil.copy(server / "evennia.db3", self.game.base / "pristine.db3")

    # -- actions in the game -------------------------------------------------------------------

    def live(self, plan: dict[str, Any]) -> bool:
        """Do what leads to the plan's step until the Server dies; return False if it survives."""
        end = time.monotonic() + LIFE_S
        try:
            while time.monotonic() < end:
                for deed in _deeds(plan) or (self.rng.choice(ALL_DEEDS),):
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
        self.new.add(text)
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

    def behind(self) -> None:
        """Let a compaction begin in the background, and talk while the model writes."""
        for _ in range(TALKS):
            self.talk()
        self._call("lower('compact_sleep_threshold')", "is low")
        for _ in range(2):
            self.talk()
        self._pause(2 * SLOW_S)
        self._call("restore()", "as ever")

    def better(self) -> None:
        """An emergency, and the better summary behind it."""
        self.emergency()
        self.talk()
        self._pause(2 * SLOW_S)

    def _call(self, what: str, shown: str) -> None:
        """Call a function of `kill_server` in the Server."""
        self._send(self.admin, f"py __import__('benchmarks.kill_server').kill_server.{what}")
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

    def faults_of_lines(self, kept: dict[str, int]) -> tuple[dict[str, int], list[str]]:
        """Count told lines that are gone and lines that are stored twice, with notes.

        Sent lines that are gone are counted once, in the first check after them.
        """
        gone, self.new = self.new - self.told - set(kept), set()
        lost = [text for text in self.told if text not in kept]
        doubled = [text for text in self.lines if kept.get(text, 0) > 1]
        notes = [f"lines lost: {lost[:3]}"] if lost else []
        notes += [f"lines doubled: {doubled[:3]}"] if doubled else []
        return {"lost": len(lost), "doubled": len(doubled), GONE: len(gone)}, notes


def _deeds(plan: dict[str, Any]) -> tuple[str, ...]:
    """Return the actions that lead to a named step, or any actions for other plans."""
    step = str(plan.get("step", ""))
    if step.startswith("rollback"):
        return ("roll_back",)
    if step.startswith("mask"):
        return ("mask",)
    if step.startswith(("background", "better")):
        return ("behind",) if step.startswith("background") else ("better",)
    if plan.get("behind"):
        return ("behind", "better")
    if step.startswith("emergency"):
        return ("emergency",)
    if step.startswith("commit"):
        return ("talk", "compact")
    if step.startswith("consolidation"):
        return ("journal", "dream")
    return ("journal",) if step else ()


def plan_of(number: int, rng: random.Random, behind: bool = False) -> dict[str, Any]:
    """Like `kill_steps.plan_of`, but every second random moment is during a start.

    With `behind` all is about compactions in the background.
    """
    if behind:
        plan = kill_steps.plan_of(number, rng, STATEMENTS, BEHIND_S, kill_steps.BEHIND)
        return {**plan, "behind": True}
    if number % 8 == 7:
        return {"kind": "start", "start_s": round(rng.uniform(0.5, START_S), 3)}
    return kill_steps.plan_of(number, rng, STATEMENTS, MOMENT_S)


def measure(kills: int, seed: int, keep: bool = False, behind: bool = False) -> dict[str, Any]:
    """Kill a started game's Server a number of times.

    With `behind` the model is one on loopback that takes time for summaries and extractions, and
    the kills come while the assistant compacts in the background.

    Returns:
        The figures of `kill.measure`, and ``sent_and_gone``, ``looks``, ``settled_s``, ``said``,
        ``told``, ``deeds``, ``tracebacks`` and ``seconds_a_kill``. A life that was killed during
        its start has no check of its own.
    """
    server = LoopbackServer(_slow) if behind else None
    env = {}
    if server is not None:
        env = {
            "EVENNIA_AI_LLM_MODEL": "openai/loopback",
            "EVENNIA_AI_LLM_API_BASE": server.start().url,
            "EVENNIA_AI_LLM_API_KEY": "none",
        }
    game = Game(settings=SETTINGS, start=False, keep=keep, env=env)
    with contextlib.ExitStack() as stack, game:
        if server is not None:
            stack.callback(server.stop)
        (game.folder / "kill").mkdir()
        game.start()
        tavern = Tavern(game, seed)
        tavern.kill()
        game.wait_for_death()
        tavern.keep_pristine()
        tavern.start()
        return _Tally(tavern, seed, behind).run(kills)


def _slow(body: Mapping[str, Any]) -> Answer:
    """What the offline model says; summaries and extractions take time."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if not tools:
        words = source_of(body["messages"]).split()
        return loopback.text(f"They spoke of barrels: {' '.join(words[-60:])}", delay_s=SLOW_S)
    if "say" not in tools:
        is_first = body["messages"][-1]["role"] != "tool"
        made = call("add_journal_entry", {"content": "Bob owes Alice a barrel."})
        return replace(calls(made if is_first else call("noop")), delay_s=SLOW_S / 2)
    return loopback.text(f"So it is, and I shall keep number {len(body['messages'])} in mind.")


class _Tally:
    """Counts the results of the kills."""

    def __init__(self, tavern: Tavern, seed: int, behind: bool = False):
        self.tavern, self.rng, self.behind = tavern, random.Random(seed), behind
        self.figures: Counter[str] = Counter()
        self.by_step: Counter[str] = Counter()
        self.notes: list[str] = []
        self.settled: list[float] = []
        self.killed = 0

    def run(self, kills: int) -> dict[str, Any]:
        """Kill until the number is reached; give up after three times as many lives."""
        began = time.monotonic()
        for number in range(3 * kills):
            if self.killed >= kills:
                break
            try:
                self._one(number)
            except AssertionError as error:  # the game does not start
                self.notes.append(f"life {number}: {error}")
                break
            took = round((time.monotonic() - began) / max(1, self.killed), 1)
            now = f"{self.killed} kills, {took} s each: {dict(self.figures)} {self.notes[-3:]}"
            print(now, file=sys.stderr, flush=True)
        return self._result(time.monotonic() - began)

    def _one(self, number: int) -> None:
        """Run one life to its end and check what it left."""
        plan = plan_of(number, self.rng, self.behind)
        tavern, end = self.tavern, plan
        starts = plan["kind"] == "start"
        if starts:
            end = {"kind": "moment", "after_s": round(self.rng.uniform(0.05, MOMENT_S), 3)}
        tavern.plan(end)
        if not tavern.live(end):
            self.figures["lives that ended unkilled"] += 1
            self.notes.append(f"life {number} ({plan}) did not end")
            tavern.kill()
        else:
            self._count(end)
        tavern.game.wait_for_death()
        if starts:
            tavern.start_and_kill(plan["start_s"])
            self._count(plan)
        elif (number + 1) % LIVES_EACH == 0:
            self._look(plan)
            tavern.kill()
            tavern.game.wait_for_death()
            tavern.begin_anew()
            tavern.start()
            return
        self._look(plan)

    def _count(self, plan: dict[str, Any]) -> None:
        self.killed += 1
        self.by_step[plan.get("step", plan["kind"])] += 1

    def _look(self, plan: dict[str, Any]) -> None:
        found = self.tavern.start()
        self.figures["looks"] += 1
        if "failed" in found:
            self.figures["looks that failed"] += 1
            self.notes.append(f"after {plan}: {found['failed']}")
            return
        self.settled.append(found["settled_s"])
        faults, notes = self.tavern.faults_of_lines(found["lines"])
        for name, count in faults.items():
            found[name] = found.get(name, 0) + count
        found = kill_look.verdict(found)
        self.figures.update({name: found[name] for name in (*kill_look.FIGURES, GONE)})
        self.notes += [f"after {plan}: {note}" for note in (*found["notes"], *notes)]

    def _result(self, seconds: float) -> dict[str, Any]:
        entries = self.tavern.said.entries()
        kinds = Counter(entry["kind"] for entry in entries)
        named = (GONE, "looks", "lives that ended unkilled", "looks that failed")
        return {
            "kills": self.killed,
            "by_step": dict(sorted(self.by_step.items())),
            **{name: self.figures[name] for name in (*kill_look.FIGURES, *named)},
            "settled_s": _spread(self.settled),
            "said": kinds["said"],
            "told": kinds["told"],
            "deeds": dict(self.tavern.counts),
            "tracebacks": _tracebacks(self.tavern.game.folder / "server" / "logs"),
            "notes": self.notes[:50],
            "seconds": round(seconds, 1),
            "seconds_a_kill": round(seconds / max(1, self.killed), 1),
        }


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "max": max(values)} if values else {}


def _tracebacks(folder: Path) -> int:
    texts: Iterable[str] = (
        path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("server.log*")
    )
    return sum(text.count("Traceback") for text in texts)
