"""Measure a game full of assistants: idle, and while many players talk. Prints JSON.

A started game with its mind in a process, as it is by default. Each assistant has a room of its
own; in some of them a player sits, over telnet, and talks with it: a line, the answer, a pause, the
next line. The model is a local server in a process of its own that answers after half a second.

- ``all``: with one player online who does nothing; ``talking``: while players talk.
- ``cpu_percent``: processor time of the Server and of the mind, in per cent of one core.
- ``look_ms``: how long `look` takes for somebody who stands apart.
- ``memory_mb``: resident memory of the Server and of the mind.

    python -m benchmarks.crowd --assistants 1000 --talking 200
"""

import argparse
import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import model_at, show, spread
from benchmarks.talker import running
from evennia_ai import processes
from tests.e2e.game import Game

# Seconds between two looks, and between an answer and the next line.
LOOK_EVERY_S, PAUSE_S = 0.25, 2.0
# What a start leaves to do is done by then, and who hears nothing ticks as rarely as ever.
SETTLE_S = 150.0
MEASURED_S = ANSWER_S = 30.0
PASSWORD = "a-crowd-of-players-1"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
LINES = (
    "good evening, how are you?",
    "did you hear what they say about the mill bridge?",
    "my brother Osric keeps bees behind the chapel.",
    "what would you drink on a cold night like this?",
)
SETTINGS = """
# Players log in without the 0.2 s that a safe hash takes, and all at once.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_THROTTLE_LIMIT = 100000
MAX_CONNECTION_RATE = 1000
"""
# Makes assistants, players in their rooms, and the one who looks.
FILL = """
from django.conf import settings
from evennia import create_account, create_object
ROOM = "evennia.objects.objects.DefaultRoom"
BODY = "evennia_ai.assistant_character.AssistantCharacter"

def player(name, room):
    account = create_account(name, None, {password!r}, typeclass=settings.BASE_ACCOUNT_TYPECLASS)
    body = create_object(settings.BASE_CHARACTER_TYPECLASS, name, location=room, home=room)
    body.locks.add(f"puppet:id({{body.id}}) or pid({{account.id}})")
    account.characters.add(body)
    account.db._last_puppet = body

player("Looker", create_object(ROOM, "The Quiet Room"))
rooms = [create_object(ROOM, f"Room {{number}}") for number in range({assistants})]
for number, room in enumerate(rooms):
    create_object(BODY, f"Aria{{number}}", location=room)
for number in range({talking}):
    player(f"Guest{{number}}", rooms[number % len(rooms)])
"""


class Player:
    """A player's connection, which reads all the time.

    Args:
        name: The account's name.
    """

    def __init__(self, name: str):
        self.name = name
        self.seen = b""
        self._came = asyncio.Event()
        self._sent_at = 0.0

    async def login(self, port: int) -> None:
        """Connect and log in."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._reading = asyncio.create_task(self._read())
        # The screen itself: who comes too fast is first told that they are queued to connect.
        await self.shown(rb"connect <", 60)
        self.send(f"connect {self.name} {PASSWORD}")
        await self.shown(rb"You become", 120)

    async def _read(self) -> None:
        while data := await self._reader.read(65536):
            self.seen = (self.seen + data)[-20_000:]
            self._came.set()

    def send(self, line: str) -> None:
        """Type a line; what was shown before is forgotten."""
        self.seen, self._sent_at = b"", time.perf_counter()
        self._writer.write(line.encode() + b"\r\n")

    async def shown(self, pattern: bytes, timeout_s: float) -> float:
        """Wait until something is shown; returns the seconds since the line typed last.

        `TimeoutError`, with what was shown instead, if it is not shown.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while not re.search(pattern, self.seen):
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise TimeoutError(f"{self.name} saw {self.seen[-500:]!r}") from None
        return time.perf_counter() - self._sent_at

    async def talk(self, until: float, taken: list[float]) -> None:
        """Talk with the assistant in the room until a moment; notes the milliseconds of answers."""
        number = int(self.name.removeprefix("Guest"))
        await asyncio.sleep(PAUSE_S * (number % 10) / 10)
        said = number
        while time.monotonic() < until:
            self.send(f"say Aria{number}, {LINES[said % len(LINES)]}")
            said += 1
            try:
                taken.append(await self.shown(rb"Aria\d+ says", ANSWER_S) * 1000)
            except TimeoutError:
                taken.append(ANSWER_S * 1000)
            await asyncio.sleep(PAUSE_S)

    async def look(self) -> list[float]:
        """Look again and again; returns the milliseconds that each took."""
        taken, until = [], time.monotonic() + MEASURED_S
        while time.monotonic() < until:
            self.send("look")
            taken.append(await self.shown(rb"The Quiet Room", ANSWER_S) * 1000)
            await asyncio.sleep(LOOK_EVERY_S)
        return taken


class Processes:
    """The Server and the mind of a game."""

    def __init__(self, game: Game):
        mind = int((game.folder / "server" / "mind" / "lock").read_text(encoding="ascii"))
        self.pids = {"server": processes.pids(game.folder)["server"], "mind": mind}

    def used_s(self) -> dict[str, float]:
        """Processor seconds used so far."""
        return {name: used_s(pid) for name, pid in self.pids.items()}

    def memory_mb(self) -> dict[str, int]:
        """Resident memory."""
        pages = {
            n: Path(f"/proc/{pid}/statm").read_text().split()[1] for n, pid in self.pids.items()
        }
        found = {
            name: int(size) * os.sysconf("SC_PAGE_SIZE") // 2**20 for name, size in pages.items()
        }
        return {**found, "together": sum(found.values())}

    async def share(self) -> dict[str, float]:
        """Per cent of one core used in a measurement."""
        before, began = self.used_s(), time.monotonic()
        await asyncio.sleep(MEASURED_S)
        took = time.monotonic() - began
        return {n: round(100 * (u - before[n]) / took, 2) for n, u in self.used_s().items()}


def used_s(pid: int) -> float:
    """Processor seconds that a process used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


async def quiet(game: Game) -> dict[str, Any]:
    """One player is online: what the game costs, and how long `look` takes."""
    looker = Player("Looker")
    await looker.login(game.ports.telnet)
    looker.send("say Nobody hears this.")
    await asyncio.sleep(SETTLE_S)
    found = Processes(game)
    share = await found.share()
    taken = await looker.look()
    return {"cpu_percent": share, "look_ms": spread(taken), "memory_mb": found.memory_mb()}


async def busy(game: Game, talking: int) -> dict[str, Any]:
    """Many talk, one looks."""
    guests = [Player(f"Guest{number}") for number in range(talking)]
    for start in range(0, talking, 10):
        await asyncio.gather(
            *(guest.login(game.ports.telnet) for guest in guests[start : start + 10])
        )
    looker = Player("Looker")
    await looker.login(game.ports.telnet)
    answers: list[float] = []
    until = time.monotonic() + MEASURED_S + 10
    talks = [asyncio.create_task(guest.talk(until, answers)) for guest in guests]
    await asyncio.sleep(10)
    found = Processes(game)
    share, taken = await asyncio.gather(found.share(), looker.look())
    await asyncio.gather(*talks)
    return {
        "cpu_percent": share,
        "look_ms": spread(taken),
        "answer_ms": spread(answers),
        "memory_mb": found.memory_mb(),
    }


def measure(url: str, options: Any) -> dict[str, Any]:
    """Play in the game of the module's docstring; returns the figures."""
    with Game(env=model_at(url), settings=SETTINGS) as game:
        game.stop()
        fields = {"assistants": options.assistants, "talking": options.talking}
        game.python(FILL.format(**fields, password=PASSWORD), 900)
        game.start(600)
        return {
            **vars(options),
            "all": asyncio.run(quiet(game)),
            "talking": asyncio.run(busy(game, options.talking)),
            "tracebacks": game.log().count("Traceback"),
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assistants", type=int, default=100)
    parser.add_argument("--talking", type=int, default=50, help="players who talk")
    options = parser.parse_args()
    with running() as url:
        show(measure(url, options))


if __name__ == "__main__":
    main()
