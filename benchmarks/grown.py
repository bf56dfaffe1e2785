"""Two games for an evening on servers, beside the same games with the defaults. Prints JSON.

Two started games with an assistant to each ten players. The players sit in the assistants' rooms,
over telnet, and talk: a share of their lines is for the assistant, and waits for its answer. In the
middle of the evening one model server is killed, and started again later. At the end all assistants
sleep once, and dream. The models are scripted servers that answer a few requests at a time, each in
half a second.

- `grown`: both games on one PostgreSQL, long-term memory in pgvector, LiteLLM's proxy before two
  model servers.
- `defaults`: SQLite, embedded Qdrant, one model server without a proxy.
- `postgresql`, `pgvector`, `proxy`: the defaults, with that step alone.

    python -m benchmarks.grown --litellm /path/to/bin/litellm
    python -m benchmarks.grown --setups defaults --games 1 --players 5 --lines 60 --kill-s 0
    python -m benchmarks.grown --memories 200 2000 10000

`lost` and `doubled` are lines that are not stored once in their own game, live or archived;
`silent` are lines for an assistant that no reply answers, `offline` those that the offline model
answered. `spend` is the games' own record of calls, by purpose. `--memories` measures searches in
both stores of long-term memory instead. PostgreSQL comes as for `make test-postgres`; the proxy's
program from a virtual environment of its own (`pip install 'litellm[proxy]'`).
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.crowd import FILL, PASSWORD, Player, Processes, used_s
from benchmarks.crowd import SETTINGS as CROWDED
from benchmarks.engines import KEY, MODEL, Database, ModelServers, Proxy
from benchmarks.figures import show, spread
from benchmarks.talker import MARK
from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.rag_memory.mem0 import Mem0Backend
from evennia_ai.recall.values import Turn
from tests.e2e.game import Game
from tests.waiting import wait_for

TALK = Path(__file__).with_name("conversation.txt")
# Players to an assistant, the longest wait for an answer, and how long a killed server stays away.
TO_EACH, ANSWER_S, AWAY_S = 10, 20.0, 30.0
# What is under way at the end is answered by then, and dreams are over once nobody calls.
SETTLE_S, QUIET_S = 15.0, 20.0
# What an evening came to, from the database alone.
QUERY = """
import json, re
from collections import Counter
from django.db.models import Sum
from evennia_ai.assistant_script import all_assistants
from evennia_ai.llm_interaction.budget import ReplyTrace
from evennia_ai.models import Spend
from tests.e2e.kill_look import kept_lists
from tests.steps import verify_history

MARK = re.compile({mark!r})
heard, models, violations, compactions = Counter(), {{}}, [], 0
for script in all_assistants():
    messages = [m for kept in kept_lists(script) for m in kept]
    lines = [m for m in messages if m.role == "user"] + script.state.load_queue()
    marks = {{m.id: MARK.findall(m.content) for m in lines}}
    heard.update(mark for line in lines for mark in marks[line.id])
    for m in messages:
        trace = ReplyTrace.of(m)
        for mark in (mark for known in trace.answers for mark in marks[known]) if trace else ():
            models[mark] = m.metadata["model"]
    violations += map(str, verify_history(script))
    compactions += len(script.history.compactions())
sums = Spend.objects.values("purpose").annotate(
    **{{"sum_" + name: Sum(name) for name in ("calls", "prompt", "cached", "reply")}})
spend = {{
    row.pop("purpose"): {{name[4:]: count for name, count in row.items()}} for row in sums}}
print(json.dumps([heard, models, violations, compactions, spend]))
"""


@dataclass(frozen=True)
class Setup:
    """What two games run on."""

    on_postgresql: bool = False
    on_pgvector: bool = False
    servers: int = 1
    has_proxy: bool = False


SETUPS = {
    "grown": Setup(True, True, 2, True),
    "defaults": Setup(),
    "postgresql": Setup(on_postgresql=True),
    "pgvector": Setup(on_pgvector=True),
    "proxy": Setup(servers=2, has_proxy=True),
}


@dataclass
class Evening:
    """One game's evening, as its players see it.

    Args:
        game: The started game.
        name: Its name.
        players: How many there are.
        options: The command's options.
    """

    game: Game
    name: str
    options: Any
    said: Counter[str] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    answers_s: list[float] = field(default_factory=list)

    async def arrive(self) -> None:
        """Let all players log in."""
        self.players = [Player(f"Guest{number}") for number in range(self.options.players)]
        for start in range(0, len(self.players), 10):
            some = self.players[start : start + 10]
            await asyncio.gather(*(player.login(self.game.ports.telnet) for player in some))

    async def play(self) -> None:
        """Let all of them talk to their last line."""
        rng = random.Random(self.options.seed)
        talks = [
            self._talk(number, random.Random(rng.random())) for number in range(len(self.players))
        ]
        await asyncio.gather(*talks)

    async def _talk(self, number: int, rng: random.Random) -> None:
        player, assistants = self.players[number], assistants_for(self.options.players)
        own = f"Aria{number % assistants}"
        others = [n for n in range(len(self.players)) if n % assistants == number % assistants]
        orders, chat = lines_of(own)
        await asyncio.sleep(rng.uniform(0, self.options.pause))
        for line in range(self.options.lines):
            mark, is_order = f"({number}-{line})", rng.random() < self.options.asked
            said = (
                rng.choice(orders) if is_order else f"Guest{rng.choice(others)}, {rng.choice(chat)}"
            )
            player.send(f"say {said} {mark}")
            self.said[mark] += 1
            began = time.monotonic()
            if is_order:
                self.asked.append(mark)
                try:
                    taken = await player.shown(rf"{own} [^\n]*{re.escape(mark)}".encode(), ANSWER_S)
                    self.answers_s.append(taken)
                except TimeoutError:
                    pass  # counted from the database: unanswered, or answered in other words
            pause = rng.uniform(0.5, 1.5) * self.options.pause
            await asyncio.sleep(max(1.0, pause - (time.monotonic() - began)))

    def figures(self) -> dict[str, Any]:
        """What the stopped game holds, and how its players were answered."""
        source = QUERY.format(mark=MARK.pattern)
        read = json.loads(self.game.python(source, 900).splitlines()[-1])
        heard, models, violations, compactions, spend = read
        offline = sum(models.get(mark) == OFFLINE_MODEL for mark in self.asked)
        return {
            "lines": self.said.total(),
            "asked": len(self.asked),
            "answer_s": spread(self.answers_s),
            "offline": offline,
            "silent": sum(mark not in models for mark in self.asked),
            "lost": sum(mark not in heard for mark in self.said),
            "doubled": sum(heard.get(mark, 0) > 1 for mark in self.said),
            "violations": violations,
            "compactions": compactions,
            "spend": spend,
            "tracebacks": self.game.log().count("Traceback"),
        }


def assistants_for(players: int) -> int:
    """How many assistants there are for so many players."""
    return max(1, players // TO_EACH)


def lines_of(assistant: str) -> tuple[list[str], list[str]]:
    """What players say to an assistant, and to each other."""
    said = [line.partition(": ")[2] for line in TALK.read_text(encoding="utf-8").splitlines()]
    orders = [line.replace("Aria", assistant) for line in said if "Aria" in line]
    return orders, [line for line in said if "Aria" not in line]


class Stage:
    """All servers of a setup, and its games.

    Args:
        setup: What the games run on.
        options: The command's options.
    """

    def __init__(self, setup: Setup, options: Any):
        self.setup, self.options = setup, options
        self.models = ModelServers(setup.servers, options.slots)
        self.proxy: Proxy | None = None
        self.database: Database | None = None
        self.evenings: list[Evening] = []
        self.used: dict[str, Any] = {}

    @contextmanager
    def open(self) -> Iterator["Stage"]:
        """Start everything; it all ends with the block."""
        with ExitStack() as stack:
            stack.callback(self.models.stop)
            if self.setup.has_proxy:
                self.proxy = Proxy(self.options.litellm, self.models.urls)
                stack.callback(self.proxy.stop)
            if self.setup.on_postgresql or self.setup.on_pgvector:
                self.database = Database()
                stack.callback(self.database.stop)
            for number in range(self.options.games):
                name = f"town{number}"
                game = stack.enter_context(self._game(name))
                game.start(900)
                fields = {"talking": self.options.players, "password": PASSWORD}
                game.stop()
                assistants = assistants_for(self.options.players)
                game.python(FILL.format(assistants=assistants, **fields), 900)
                game.start(900)
                # Once the model was tried: until then it is not offered tools.
                game.wait_until((game.folder / "server/ai_memory/profiles.json").exists, 600)
                self.evenings.append(Evening(game, name, self.options))
            yield self

    def _game(self, name: str) -> Game:
        lines = [CROWDED]
        if self.options.context:
            assistant = "evennia_ai.assistant_character.AssistantCharacter"
            context = {"max_context_tokens": self.options.context}
            lines.append(f"EVENNIA_AI_OPTIONS = { ({assistant: context})!r}")
        if self.database is not None:
            on = self.setup.on_postgresql, self.setup.on_pgvector
            lines.append(self.database.settings(name, *on))
        url = self.proxy.url if self.proxy else self.models.urls[0]
        model = {"MODEL": f"openai/{MODEL}", "API_BASE": url, "API_KEY": KEY}
        env = {f"EVENNIA_AI_LLM_{key}": value for key, value in model.items()}
        return Game(env=env, settings="\n".join(lines), start=False)

    async def play(self) -> dict[str, Any]:
        """Play the evening in all games at once; returns what their processes used."""
        await asyncio.gather(*(evening.arrive() for evening in self.evenings))
        found = [Processes(evening.game) for evening in self.evenings]
        before, began = [each.used_s() for each in found], time.monotonic()
        proxy_s = used_s(self.proxy.pid) if self.proxy else 0.0
        playing = asyncio.gather(*(evening.play() for evening in self.evenings))
        fault = asyncio.create_task(self._fault())
        while not playing.done():
            if self.database is not None:
                self.database.look()
            await asyncio.wait([playing], timeout=5)
        await asyncio.gather(playing, fault)
        took = time.monotonic() - began
        used: dict[str, Any] = {"played_s": round(took)}
        for evening, each, was in zip(self.evenings, found, before, strict=True):
            now = each.used_s()
            share = {name: round(100 * (now[name] - was[name]) / took, 1) for name in now}
            used[evening.name] = {"cpu_percent": share, "memory_mb": each.memory_mb()}
        if self.proxy:
            share_of_proxy = 100 * (used_s(self.proxy.pid) - proxy_s) / took
            used["proxy"] = {"cpu_percent": round(share_of_proxy, 1)}
        return used

    async def _fault(self) -> None:
        """Kill a model server in the middle of the evening, and start it again later."""
        if not self.options.kill_s:
            return
        await asyncio.sleep(self.options.lines * self.options.pause / 2)
        await asyncio.to_thread(self.models.kill, 0)
        await asyncio.sleep(self.options.kill_s)
        await asyncio.to_thread(self.models.restart, 0)

    def sleep(self) -> None:
        """Let all assistants sleep until nobody asks a model any more."""
        for evening in self.evenings:
            admin = evening.game.admin(60)
            for number in range(assistants_for(self.options.players)):
                admin.ask(f"ai/sleep Aria{number}", f"Aria{number}", 60)
            admin.close()
        before = -1
        while before != (now := sum(each["requests"] for each in self.models.figures())):
            before = now
            time.sleep(QUIET_S)

    def figures(self) -> dict[str, Any]:
        """What the evening came to, in the games and in each server."""
        games = {evening.name: evening.figures() for evening in self.evenings}
        engines: dict[str, Any] = {"model_servers": self.models.figures()}
        for evening in self.evenings:
            if self.database is not None:
                engines[evening.name] = self.database.figures(evening.name)
            engines[f"{evening.name}_files_mb"] = files_mb(evening.game.folder)
        if self.database is not None:
            engines["most_connections"] = self.database.most_connections
        answers = [taken for evening in self.evenings for taken in evening.answers_s]
        return {"answer_s": spread(answers), "games": games, "engines": engines}


def files_mb(folder: Path) -> dict[str, float]:
    """Sizes of what a game keeps in files."""
    parts = {"database": "evennia.db3*", "memory": "ai_memory/**/*"}
    sizes = {
        name: sum(path.stat().st_size for path in (folder / "server").glob(pattern))
        for name, pattern in parts.items()
    }
    return {name: round(size / 1e6, 1) for name, size in sizes.items()}


def measure(name: str, options: Any) -> dict[str, Any]:
    """Play the evening in a setup; returns its figures."""
    began = time.monotonic()
    with Stage(SETUPS[name], options).open() as stage:
        print(f"{name}: started after {time.monotonic() - began:.0f} s", file=sys.stderr)
        used = asyncio.run(stage.play())
        time.sleep(SETTLE_S)
        stage.sleep()
        for evening in stage.evenings:
            evening.game.stop()
        return {**stage.figures(), "used": used, "took_s": round(time.monotonic() - began)}


def searches(counts: Sequence[int]) -> list[dict[str, Any]]:
    """How long searches take in both stores, by how many memories they hold."""
    rng, database = random.Random(1), Database()
    words = sorted(set(re.findall(r"[a-z]{4,}", TALK.read_text(encoding="utf-8"))))
    address = f"{database.server.url()}&options=-c%20hnsw.iterative_scan%3Dstrict_order"
    pgvector = {"provider": "pgvector", "config": {"connection_string": address}}
    figures = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        stores = {
            "qdrant": Mem0Backend(Path(folder, "qdrant")),
            "pgvector": Mem0Backend(Path(folder, "pgvector"), {"vector_store": pgvector}),
        }
        held = 0
        for count in counts:
            turns = [
                Turn(f"j{number}", "Mira", " ".join(rng.sample(words, 12)), 0, kind="journal")
                for number in range(held, count)
            ]
            held, row = count, dict[str, Any](memories=count)
            for name, store in stores.items():
                began = time.monotonic()
                wait_for(store.add("aria", turns), 3600)
                added_ms = 1000 * (time.monotonic() - began) / max(1, len(turns))
                row[name] = {
                    "add_ms": round(added_ms, 1),
                    "search_ms": _searched(store, words, rng),
                }
            figures.append(row)
        for store in stores.values():
            wait_for(store.close())
    database.stop()
    return figures


def _searched(store: Mem0Backend, words: list[str], rng: random.Random) -> dict[str, float]:
    taken = []
    for _ in range(40):
        began = time.monotonic()
        wait_for(store.search("aria", " ".join(rng.sample(words, 4))), 60)
        taken.append(1000 * (time.monotonic() - began))
    return spread(taken, 1)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setups", nargs="+", choices=SETUPS, default=["grown", "defaults"])
    parser.add_argument("--games", type=int, default=2)
    parser.add_argument("--players", type=int, default=50, help="in each game")
    parser.add_argument("--lines", type=int, default=30, help="of each player")
    parser.add_argument("--pause", type=float, default=8.0, help="seconds from line to line")
    parser.add_argument("--asked", type=float, default=0.3, help="share of lines for an assistant")
    parser.add_argument(
        "--slots", type=int, default=4, help="requests a model server takes at once"
    )
    parser.add_argument("--kill-s", type=float, default=AWAY_S, help="how long a server is away; 0")
    parser.add_argument("--context", type=int, default=0, help="`max_context_tokens`, if not ours")
    parser.add_argument("--litellm", default="litellm", help="the proxy's program")
    parser.add_argument("--memories", type=int, nargs="+", help="measure searches in so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.memories:
        show(searches(options.memories))
        return
    figures = vars(options)
    for name in options.setups:
        figures[name] = measure(name, options)
        print(f"{name}: {json.dumps(figures[name]['answer_s'])}", file=sys.stderr, flush=True)
    show(figures)


if __name__ == "__main__":
    main()
