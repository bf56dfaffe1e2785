"""The offline model on plain texts: facts told amid chatter, then asked for. Prints JSON.

    python -m benchmarks.offline benchmarks/offline_sets/carter.txt --seeds 2

A text holds blocks. A block tells one fact (``+`` lines, in order of time), asks for it (``?`` by
another player, ``me?`` by the one who told it, each with ``=>`` and the words an answer must hold)
and asks what nobody told (``-``). Slots in braces are filled from ``pools.json``: ``{S}`` tells,
``{O}`` is another player. Search is the package's recall index over everything said, the model's
own answers included.

Of the told questions: *answered* holds the expected words, *offered* too, but says that it is not
certain, *unknown* admits not knowing, *wrong* is any other reply. *never_told_admitted* is the
share of the never-told questions that it admits not to know. *wrong_of_all* counts both kinds.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import show, spread
from evennia_ai.history.messages import note, talk_line
from evennia_ai.llm_interaction.conversation import HERE, NOW
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.testing import call

PLAYERS = ("Alice", "Bob", "Cora", "Dunstan", "Edith", "Falk")
ADMITS = re.compile(r"can't say|don't know|not know", re.IGNORECASE)
MAX_ROUNDS = 8
RESULTS, OWN_LINES = 20, 3  # as `search_memory` limits them
TOOLS = [
    {"type": "function", "function": {"name": name}}
    for name in ("search_memory", "add_journal_entry", "noop", "emote", "move", "look", "whisper")
]
Search = Callable[[str], list[dict[str, Any]]]
Store = Callable[[str, str, str, str], None]
POOLS = Path(__file__).parent / "offline_sets" / "pools.json"
UNKNOWN = 20  # never-told questions of a seed
ADDRESSES = ("{t}", "{t}", "{t}", "Aria, {l}", "Aria, please remember that {l}", "By the way, {l}")
FRAMES = ("{t}", "{t}", "{t}", "Aria, {l}", "Tell me, {l}", "Do you remember? {t}")
CHATTER = (
    "What a night, eh?",
    "This stew needs salt.",
    "Another round over here!",
    "Did you see that dog run across the road?",
    "My feet are killing me.",
    "I could sleep for a week.",
    "Anyone up for dice?",
    "Have you ever seen so much mud?",
    "They say the winter will be hard.",
    "Who took my stool?",
)


@dataclass
class Block:
    """One fact of a text: how it is told and what is asked."""

    tells: list[str] = field(default_factory=list)
    asks: list[tuple[str, str, str]] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """One question of a script: ``expected`` is "" where nobody told the answer."""

    asker: str
    question: str
    expected: str


def read_blocks(text: str) -> list[Block]:
    """The blocks of a text."""
    blocks = []
    for part in re.split(r"\n\s*\n", text):
        block = Block()
        for line in part.splitlines():
            mark, _, rest = line.partition(" ")
            if mark == "+":
                block.tells.append(rest)
            elif mark == "-":
                block.misses.append(rest)
            elif mark in ("?", "me?"):
                question, _, expected = rest.partition(" => ")
                block.asks.append((mark, question, expected))
        if block.tells:
            blocks.append(block)
    return blocks


class Filler:
    """Fills slots from the pools; a value of names is used once in a script."""

    def __init__(self, rng: random.Random, pools: dict[str, list[str]]):
        self._rng, self._pools = rng, pools
        self._left = {name: rng.sample(pool, len(pool)) for name, pool in pools.items()}

    def values(self, block: Block) -> dict[str, str]:
        """A value for each slot of a block."""
        texts = [*block.tells, *block.misses, *(ask + value for _, ask, value in block.asks)]
        slots = sorted({slot for text in texts for slot in re.findall(r"{(\w+)}", text)})
        teller, other = self._rng.sample(PLAYERS, 2)
        fixed = {"S": teller, "O": other}
        return {slot: fixed.get(slot) or self._take(slot) for slot in slots} | fixed

    def _take(self, slot: str) -> str:
        pool = slot if slot in self._pools else slot.rstrip("0123456789")
        if not self._left[pool]:
            self._left[pool] = self._rng.sample(self._pools[pool], len(self._pools[pool]))
        return self._left[pool].pop()


@dataclass
class Game:
    """A stand-in for the game around the model: history, recall index, journal."""

    search: Search
    store: Store
    history: list[dict[str, Any]] = field(default_factory=list)
    clock: int = 0
    heard: int = 0

    def hear(self, who: str, text: str) -> str:
        """Somebody speaks; returns what the model says, "" for silence."""
        self.clock += 1
        self.heard = self.clock
        self.store(f"m{self.clock:05d}", who, text, "message")
        rows = (note(NOW, "evening"), note(HERE, ", ".join(PLAYERS)), talk_line(who, "say", text))
        self.history.append({"role": "user", "content": "\n".join(rows)})
        return self._turn()

    def _turn(self) -> str:
        start = len(self.history) - 1
        for _ in range(MAX_ROUNDS):
            reply = respond(self._prompt(self.history[start:]), TOOLS)
            if not reply.tool_calls:
                self._say(reply.content or "")
                return reply.content or ""
            if self._act(reply):
                return ""
        return "(no end of tool calls)"

    @staticmethod
    def _prompt(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
        place = "Where you are: The Gilded Lantern"
        system = f"You are Aria, in a game.\n\nA friendly barkeep.\n\n{place}"
        return [{"role": "system", "content": system}, *shown]

    def _say(self, text: str) -> None:
        if text:
            self.clock += 1
            self.store(f"m{self.clock:05d}", "Aria", text, "message")
            self.history.append({"role": "assistant", "content": text})

    def _act(self, reply: Any) -> bool:
        """Run the tool calls; returns whether the turn is over."""
        calls = [one for made in reply.tool_calls for one in call(made.name, **made.arguments)]
        self.history.append({"role": "assistant", "content": None, "tool_calls": calls})
        for one, made in zip(calls, reply.tool_calls, strict=True):
            result = {"name": made.name, "content": self._run(made.name, made.arguments)}
            self.history.append({"role": "tool", "tool_call_id": one["id"], **result})
        return any(made.name == "noop" for made in reply.tool_calls)

    def _run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "search_memory":
            current = f"m{self.heard:05d}"  # the game leaves out the turn's own messages
            found = [hit for hit in self.search(arguments["query"]) if hit["id"] != current]
            own = [hit for hit in found if hit["speaker"] == "Aria"][OWN_LINES:]
            return json.dumps({"results": [hit for hit in found if hit not in own][:RESULTS]})
        if name == "add_journal_entry":
            self.clock += 1
            self.store(f"j{self.clock:05d}", "Aria", arguments["content"], "journal")
        return json.dumps({"ok": True})


def recall_memory() -> tuple[Search, Store]:
    """Search and store over the package's recall index, in memory."""
    index = RecallIndex(":memory:")

    def store(turn_id: str, who: str, text: str, kind: str) -> None:
        at = time.gmtime(1_767_225_600 + 20 * int(turn_id[1:]))
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", at)
        index.add("bench", [Turn(turn_id, who, text, stamp, kind=kind)])

    def search(query: str) -> list[dict[str, Any]]:
        return [
            {"id": h.turn_id, "kind": h.kind, "speaker": h.speaker, "at": h.at, "text": h.text}
            for h in index.search("bench", query, limit=2 * RESULTS)
        ]

    return search, store


def play(path: Path, seed: int) -> dict[str, Any]:
    """Tell every fact of a text, ask one question of each and some others; the figures."""
    rng = random.Random(f"{path.stem} {seed}")
    pools = json.loads(POOLS.read_text())
    filler = Filler(rng, pools)
    names = {value for pool in ("M", "F", "T") for value in pools[pool]} | {*PLAYERS}
    names |= {"I", "I'm", "I've", "Mount", "Old", "Don't"}
    game = Game(*recall_memory())
    scripted = [(block, filler.values(block)) for block in read_blocks(path.read_text())]
    rng.shuffle(scripted)
    for number in range(max(len(block.tells) for block, _ in scripted)):
        for block, values in scripted:
            if number < len(block.tells):
                if rng.random() < 0.3:
                    game.hear(rng.choice(PLAYERS), rng.choice(CHATTER))
                told = block.tells[number].format(**values)
                told = rng.choice(ADDRESSES).format(t=told, l=_lowered(told, names))
                game.hear(values["S"], told)
    results, times = [], []
    for item in _questions(rng, scripted):
        question = rng.choice(FRAMES).format(t=item.question, l=_lowered(item.question, names))
        started = time.process_time()
        reply = game.hear(item.asker, question)
        times.append((time.process_time() - started) * 1000)
        results.append((item, outcome_of(item.expected, reply)))
    return {"results": results, "times": times}


def _lowered(text: str, names: set[str]) -> str:
    first = text.split()[0].rstrip(",").removesuffix("'s")
    return text if first in names else text[:1].lower() + text[1:]


def _questions(rng: random.Random, scripted: list[tuple[Block, dict[str, str]]]) -> list[Asked]:
    found, misses = [], []
    for block, values in scripted:
        mark, ask, expected = rng.choice(block.asks)
        asker = rng.choice([name for name in PLAYERS if name not in (values["S"], values["O"])])
        who = values["S"] if mark == "me?" else asker
        found.append(Asked(who, ask.format(**values), expected.format(**values)))
        misses.extend(Asked(asker, miss.format(**values), "") for miss in block.misses)
    found.extend(rng.sample(misses, min(UNKNOWN, len(misses))))
    rng.shuffle(found)
    return found


def outcome_of(expected: str, reply: str) -> str:
    """What a reply was: answered, offered, unknown, wrong, silent; admitted for what nobody told.

    Offered is what holds the answer but says that it is not sure of it.
    """
    admits = bool(ADMITS.search(reply))
    if expected and expected.lower() in reply.lower():
        return "offered" if admits else "answered"
    if admits:
        return "unknown" if expected else "admitted"
    return "wrong" if reply else "silent"


def summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over several runs."""
    results = [result for run in runs for result in run["results"]]
    told = Counter(outcome for item, outcome in results if item.expected)
    untold = Counter(outcome for item, outcome in results if not item.expected)
    return {
        **{
            name: round(told[name] / told.total(), 3)
            for name in ("answered", "offered", "unknown", "wrong", "silent")
        },
        "answered_or_offered": round((told["answered"] + told["offered"]) / told.total(), 3),
        "never_told_admitted": round(untold["admitted"] / max(1, untold.total()), 3),
        "wrong_of_all": round((told["wrong"] + untold["wrong"]) / len(results), 3),
        "questions": len(results),
        "cpu_ms": spread((value for run in runs for value in run["times"]), 1),
    }


def main() -> None:
    """Print the figures of each text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", type=Path, help="files of facts and questions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from --seed on")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.seeds)
    texts = {path.stem: summed([play(path, seed) for seed in seeds]) for path in options.texts}
    show({"texts": texts})


if __name__ == "__main__":
    main()
