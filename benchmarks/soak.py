"""Play a started game for half an hour while everything fails at random. Prints JSON.

Three players talk over telnet, each with an assistant of its own, all in one room, with their
minds in a process. The model is a local server in this process that fails one request in eight.
Assistants have small contexts, so that they compact; they are sent to sleep and dream. At random
times one of these happens:

- ``outage``: the model's server resets every connection for a while;
- ``mind``: the mind's process is killed with SIGKILL;
- ``reload``: `evennia reload`;
- ``disk``: the disk is full for some seconds (the game lies on a small file system of its own,
  which needs root; left out otherwise);
- ``database``: another process locks the game's database for some seconds;
- ``clock``: the time of day jumps by minutes to days, forward or back (needs `libfaketime`, in
  Debian's package `faketime`; left out otherwise). Monotonic clocks go on.

In the end everything is quiet, each assistant is asked a last question, and what was said is
compared with what is stored:

- ``said``: lines whose echo a player saw; ``lost``, ``doubled``: those that an assistant there has
  not, or not once; ``leaked``: whispers that another assistant has or another player read;
- ``unechoed``: lines typed while the game did not answer; they may be stored or not, but not twice;
- ``answered``: questions that the model answered; ``offline``: that the offline model answered;
  ``junk``: that the model answered with one of its faults; ``declined``: whoever asked saw only
  the emote `trouble`; ``unanswered``: nothing within `BOUND_S` seconds, and ``jumped`` the same
  where the clock was set forward meanwhile: the line became stale;
- ``not_proven``: assistants whose history `compact/verify` does not prove;
- ``tracebacks``: those in the server log that pass through the package;
- ``memory_mb``: of the Server and of the mind, at the beginning and at the end.

    python -m benchmarks.soak --minutes 30

The exit code is 1 if something was lost, doubled, leaked, not answered or not proven, or if one of
these things could not be done.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.crowd import Processes
from benchmarks.talker import respond
from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.telnet import Telnet
from tests.loopback import (
    NO_CHOICES,
    RESET,
    TRUNCATED,
    Answer,
    LoopbackServer,
    bad_arguments,
    failure,
    huge,
    rate_limited,
    text,
)

SETTINGS = "CREATION_THROTTLE_LIMIT = None\nLOGIN_THROTTLE_LIMIT = None"
PLAYERS = {"Alma": "Aria", "Berit": "Cleo", "Cord": "Boris"}
# The lines that a prompt asks for an answer to, and the answers of the scripted model.
WANTED = re.compile(r"Answer now: .*?\b([QN]\d+):")
OWN = re.compile(r"About ([QN\d, ]+);")
JUNK = re.compile(r"(ha ){9}|word\d+ word\d+|\[Present")
EMOTE = "rubs the temples in thought."
CONFIG = {
    "max_context_tokens": 12_000,
    "compact_preserve_window": 8,
    "llm_timeout_s": 8,
    "emotes": {"trouble": EMOTE, "thinking": None, "sleep": None, "wake": None},
}
MODEL_S, FAULT_SHARE = 0.5, 0.125
ECHO_S, BOUND_S, CALM_S = 20.0, 120.0, 30.0
PAUSE_S = (0.5, 4.0)
# Seconds between the end of a fault and the next.
BETWEEN_S = (5.0, 25.0)
KINDS = ("answered", "offline", "junk", "declined", "unanswered", "jumped", "unheard")
FAULTS = ("lost", "doubled", "leaked", "violations", "unanswered", "not_proven", "deeds_failed")
# The game sees a jump within so many seconds.
JUMP_S = 3.0
DISK_BYTES = 512 * 2**20
JUMPS_S = (-86_400, -3600, -300, 300, 3600, 86_400)
FAKETIME = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
FAULTY = (
    failure(500),
    failure(503),
    rate_limited(1),
    RESET,
    TRUNCATED,
    NO_CHOICES,
    text(""),
    text("ha " * 400),
    huge(3000),
    bad_arguments(),
    text('[Present moment]\nBerit [o5.1abc] says: "hush"'),
)
TALK = (
    "my brother keeps {0} bees behind the chapel.",
    "the ferry took {0} sacks of flour to Saltmarsh.",
    "what do you make of the {0} goats on the bridge?",
    "I owe Osric {0} crowns since the fair.",
    "they say the mill burned {0} years ago.",
)


@dataclass
class Said:
    """A line that a player typed.

    Args:
        who: The player.
        words: What identifies it.
        whisper: Whether it was whispered to the player's own assistant.
        echoed: Whether its echo was seen.
    """

    who: str
    words: str
    whisper: bool
    echoed: bool = False


@dataclass
class Model:
    """The scripted model, which names the question it answers, or fails."""

    rng: random.Random
    down: bool = False
    calm: bool = False
    number: int = 0

    def respond(self, body: Mapping[str, Any]) -> Answer:
        """The answer to a request."""
        self.number += 1
        if self.down:
            return RESET
        if not self.calm and self.rng.random() < FAULT_SHARE:
            return self.rng.choice(FAULTY)
        made = respond(body, self.number)
        said = "\n".join(str(each.get("content")) for each in body["messages"])
        if made.content and (wanted := WANTED.findall(said)):
            made = replace(made, content=f"About {', '.join(wanted)}; I shall remember it.")
        return replace(made, delay_s=MODEL_S)


@dataclass
class Evening:
    """The game as it is played, and what was seen."""

    game: Game
    model: Model
    rng: random.Random
    over: threading.Event = field(default_factory=threading.Event)
    lines: list[Said] = field(default_factory=list)
    counts: "Counter[str]" = field(default_factory=Counter)
    faults: "Counter[str]" = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    jumped_at: float = float("-inf")
    doing: str = ""
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str) -> None:
        """Count one of something."""
        with self._lock:
            self.counts[kind] += 1

    def next_number(self) -> int:
        """A number that no line has yet."""
        with self._lock:
            self._number += 1
            return self._number

    def note(self, what: str) -> None:
        """Keep a note, with the fault of the moment."""
        self.notes.append(f"{time.strftime('%H:%M:%S')} {self.doing or 'quiet'}: {what}")
        print(self.notes[-1], file=sys.stderr, flush=True)

    def furnish(self) -> None:
        """Make the assistants."""
        with self.game.admin(60) as admin:
            for name in PLAYERS.values():
                if name != "Aria":
                    path = "evennia_ai.assistant_character.AssistantCharacter"
                    admin.ask(f"create/drop {name}:{path}", "(?i)creat")
                for option, value in CONFIG.items():
                    admin.ask(f"aiconfig {name} {option} = {value}", "is now|already", 60)


class Guest(threading.Thread):
    """A player, who asks, whispers and chats until the evening is over."""

    def __init__(self, evening: Evening, name: str):
        super().__init__(name=name, daemon=True)
        self.evening, self.whom = evening, PLAYERS[name]
        self.rng = random.Random(f"{evening.rng.random()} {name}")
        self.line = evening.game.player(name, timeout_s=60)
        self.shown = self.words = self.read = ""

    def run(self) -> None:
        """Talk."""
        while not self.evening.over.is_set():
            try:
                self.turn()
            except OSError as error:
                self.evening.count("reconnects")
                self.evening.note(f"{self.name} is disconnected: {error}")
                self._come_back()
            self.wait(self.rng.uniform(*PAUSE_S))

    def turn(self, may_chat: bool = True) -> str:
        """Say one line; returns what became of a question."""
        evening, number = self.evening, self.evening.next_number()
        is_chat = may_chat and self.rng.random() < 0.3
        talk = self.rng.choice(TALK).format(self.rng.randrange(2, 90))
        words = f"{'N' if is_chat else 'Q'}{number}: {talk}"
        said = Said(self.name, words, not is_chat and self.rng.random() < 0.25)
        evening.lines.append(said)
        to = f"whisper {self.whom} = " if said.whisper else "say " if is_chat else None
        self.shown, self.words = "", words
        self.line.send(f"{to}{words}" if to else f"say {self.whom}, {words}")
        said.echoed = self.wait(ECHO_S, lambda: self._has_echo(words))
        if not said.echoed:
            evening.note(f"{self.name} sees no echo of {words[:8]}")
        if is_chat:
            return ""
        began = time.monotonic()
        self.wait(BOUND_S, lambda: self._answer() != "")
        kind = self._answer() or ("jumped" if evening.jumped_at > began - JUMP_S else "unanswered")
        kind = kind if said.echoed or kind not in ("jumped", "unanswered") else "unheard"
        if kind == "declined":  # the answer of a model that is back is welcome, too
            self.wait(min(20.0, BOUND_S), lambda: self._answer() not in ("", "declined"))
            kind = self._answer()
        evening.count(kind)
        if kind in ("unanswered", "jumped"):
            evening.note(
                f"{self.name}'s {words[:8]} is {kind} after {time.monotonic() - began:.0f} s"
            )
        return kind

    def wait(self, seconds: float, met: Callable[[], bool] = lambda: False) -> bool:
        """Read what is shown until something is, or for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not met():
            self.shown += self.line.drain(0.05)
            time.sleep(0.05)
        return met()

    def _has_echo(self, words: str) -> bool:
        return any("You " in row and words in row for row in self.shown.splitlines())

    def _answer(self) -> str:
        """What became of the newest question: one of `KINDS`, or nothing yet."""
        rows = re.findall(rf"^{self.whom} (?:says|whispers)[^\n]*", self.shown, re.MULTILINE)
        about = [set(found[1].split(", ")) for row in rows if (found := OWN.search(row))]
        if any(self.words.partition(":")[0] in named for named in about):
            return "answered"
        others = [row for row in rows if not OWN.search(row)]
        if others:
            return "junk" if all(map(JUNK.search, others)) else "offline"
        return "declined" if f"{self.whom} {EMOTE}" in self.shown else ""

    def _come_back(self) -> None:
        while not self.evening.over.is_set():
            try:
                self.line.close()
                self.read += self.line.transcript
                self.line = Telnet(self.evening.game.ports.telnet, timeout_s=60)
                self.line.login(self.name, "quite-a-long-1")
                return
            except (OSError, AssertionError) as error:
                self.evening.note(f"{self.name} cannot come back: {str(error)[:80]}")
                time.sleep(5)


class Fate:
    """What happens to the game: one thing after the other, at random.

    Args:
        evening: The game.
        clock: The file that `libfaketime` reads; None without it.
        disk: Where the game's small file system is mounted; None without one.
    """

    def __init__(self, evening: Evening, clock: Path | None, disk: Path | None):
        self.evening, self.clock, self.disk = evening, clock, disk
        self.deeds: dict[str, Callable[[], None]] = {
            "outage": self.outage,
            "mind": self.kill_mind,
            "reload": lambda: void(evening.game.reload(180)),
            "database": self.lock_database,
            "sleep": lambda: self.order("ai/sleep", "(?i)asleep"),
            "compact": lambda: self.order("compact", "(?i)compact"),
        }
        if disk:
            self.deeds["disk"] = self.fill_disk
        if clock:
            self.deeds["clock"] = self.move_clock

    def run(self, until: float) -> None:
        """Let things happen until a moment."""
        evening = self.evening
        while time.monotonic() < until:
            time.sleep(evening.rng.uniform(*BETWEEN_S))
            evening.doing = kind = evening.rng.choice(list(self.deeds))
            print(f"-- {kind}", file=sys.stderr, flush=True)
            try:
                self.deeds[kind]()
            except (AssertionError, OSError, sqlite3.Error) as error:
                evening.note(f"{type(error).__name__}: {str(error)[:300]}")
                evening.count("deeds failed")
            else:
                evening.faults[kind] += 1
            evening.doing = ""

    def outage(self) -> None:
        """No model for a while."""
        self.evening.model.down = True
        time.sleep(self.evening.rng.uniform(5, 25))
        self.evening.model.down = False

    def kill_mind(self) -> None:
        """Kill the mind's process."""
        if (pid := Processes(self.evening.game).pids.get("mind")) is None:
            raise AssertionError("there is no mind to be killed")
        os.kill(pid, signal.SIGKILL)

    def fill_disk(self) -> None:
        """Leave no room on the disk for a while."""
        assert self.disk is not None
        filler = self.disk / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(2**20)):
                pass
        time.sleep(self.evening.rng.uniform(3, 15))
        filler.unlink()

    def lock_database(self) -> None:
        """Lock the game's database for a while."""
        path = self.evening.game.folder / "server" / "evennia.db3"
        with contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(self.evening.rng.uniform(2, 12))
            other.execute("ROLLBACK")

    def move_clock(self) -> None:
        """Let the time of day jump."""
        assert self.clock is not None
        jump_s = self.evening.rng.choice(JUMPS_S)
        if jump_s > 0:
            self.evening.jumped_at = time.monotonic()
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(f"{int(self.clock.read_text()) + jump_s:+d}")
        fresh.replace(self.clock)

    def order(self, command: str, shown: str) -> None:
        """Give one of the assistants an order as its owner."""
        with self.evening.game.admin(60) as admin:
            admin.ask(f"{command} {self.evening.rng.choice(list(PLAYERS.values()))}", shown)


def void(_: object) -> None:
    """Drop a value."""


def compare(evening: Evening, guests: Sequence[Guest]) -> dict[str, int]:
    """What was said against what is stored and what was read; the game is stopped."""
    found: Counter[str] = Counter()
    for said in evening.lines:
        others = [guest for guest in guests if said.whisper and guest.name != said.who]
        if any(said.words in guest.read for guest in others):
            found["leaked"] += 1
            evening.notes.append(f"leaked: others read {said.words}")
    for name in PLAYERS.values():
        held = kept(evening.game, name)
        texts, times = list(held["times"].items()), {}
        for said in evening.lines:
            times[said.words] = sum(n for text, n in texts if said.words in text)
        for said in evening.lines:
            is_due = not said.whisper or PLAYERS[said.who] == name
            count, where = times[said.words], f"{name} has {said.words[:8]} of {said.who}"
            faults = {
                "lost": said.echoed and is_due and not count,
                "doubled": count > 1,
                "leaked": not is_due and bool(count),
            }
            for fault in (name for name, is_so in faults.items() if is_so):
                found[fault] += 1
                evening.notes.append(f"{fault}: {where} {count} times")
        found["doubled"] += len(held["doubled"])
        found["violations"] += len(held["violations"])
        evening.notes += [f"{name}: {each}" for each in held["violations"][:3]]
    return {name: found[name] for name in ("lost", "doubled", "leaked", "violations")}


def play(evening: Evening, minutes: float, fate: Fate) -> dict[str, Any]:
    """Play it all; returns the figures."""
    evening.furnish()
    guests = [Guest(evening, name) for name in PLAYERS]
    memory = {"first": Processes(evening.game).memory_mb()}
    for guest in guests:
        guest.start()
    fate.run(time.monotonic() + 60 * minutes)
    evening.model.calm = True
    time.sleep(CALM_S)
    evening.over.set()
    for guest in guests:
        guest.join(BOUND_S + ECHO_S + 30)
    last = [guest.turn(may_chat=False) for guest in guests]
    memory["last"] = Processes(evening.game).memory_mb()
    with evening.game.admin(60) as admin:
        proofs = [
            admin.ask(f"compact/verify {name}", rf"{name}: [^\n]+", 60) for name in PLAYERS.values()
        ]
        states = [
            admin.ask(f"aistatus {name}", r"Last trouble[^\n]*", 60) for name in PLAYERS.values()
        ]
    for guest in guests:
        guest.read += guest.line.transcript
        guest.line.close()
    evening.game.stop()
    archived = [re.search(r"archived in (\d+)", state) for state in states]
    return {
        "said": sum(said.echoed for said in evening.lines),
        "unechoed": sum(not said.echoed for said in evening.lines),
        **compare(evening, guests),
        **{kind: evening.counts[kind] for kind in KINDS},
        "last_questions_answered": last.count("answered"),
        "not_proven": sum("proven" not in proof for proof in proofs),
        "compactions": sum(int(each[1]) for each in archived if each),
        "model_requests": evening.model.number,
        "deeds": dict(evening.faults),
        "deeds_failed": evening.counts["deeds failed"],
        "reconnects": evening.counts["reconnects"],
        "memory_mb": memory,
        **tracebacks(evening.game.log("server.log")),
        "notes": evening.notes[:60],
    }


def tracebacks(log: str) -> dict[str, Any]:
    """How many tracebacks of a log pass through the package, and the newest kinds of errors."""
    found = re.findall(r"Traceback \(most recent call last\):(.*?)\n(?=\S*\d{4}-|\Z)", log, re.S)
    ours = [each for each in found if "/evennia_ai/" in each]
    ends = Counter(each.strip().splitlines()[-1][-160:] for each in ours if each.strip())
    return {"tracebacks": len(ours), "errors": dict(ends.most_common(8))}


@contextlib.contextmanager
def small_disk() -> Iterator[Path | None]:
    """A file system of `DISK_BYTES` for temporary files; None where it cannot be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="evennia-ai-disk-"))
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(["mount", *options], capture_output=True, check=False)
        is_there = mounted.returncode == 0
    except OSError:
        is_there = False
    try:
        yield folder if is_there else None
    finally:
        if is_there:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
        folder.rmdir()


def measure(minutes: float, seed: int) -> dict[str, Any]:
    """Make the game and its model, play, and return the figures."""
    rng = random.Random(seed)
    model = Model(rng)
    with small_disk() as disk, LoopbackServer(model.respond) as server:
        env = {
            "EVENNIA_AI_LLM_MODEL": "loopback",
            "EVENNIA_AI_LLM_API_BASE": server.url,
            "EVENNIA_AI_LLM_API_KEY": "sk-test",
        }
        clock = None
        if FAKETIME:
            clock = Path(tempfile.mkdtemp(prefix="evennia-ai-clock-")) / "offset"
            clock.write_text("+0")
            env |= {
                "LD_PRELOAD": str(FAKETIME[0]),
                "FAKETIME_TIMESTAMP_FILE": str(clock),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            }
        before, tempfile.tempdir = tempfile.tempdir, str(disk) if disk else tempfile.tempdir
        game = Game(env=env, settings=SETTINGS)
        tempfile.tempdir = before
        with game:
            evening = Evening(game, model, rng)
            found = play(evening, minutes, Fate(evening, clock, disk))
    left_out = [name for name, has in (("disk", disk), ("clock", clock)) if not has]
    return {"minutes": minutes, "seed": seed, "left_out": left_out, **found}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    figures = measure(options.minutes, options.seed)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    sys.exit(any(figures[name] for name in FAULTS))


if __name__ == "__main__":
    main()
