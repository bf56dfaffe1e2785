"""First looks at the offline model: sets of facts that were written before the rules were read.

    python benchmarks/offline_rounds.py plain --seed 1 --seeds 6 --missed

Each set in ``benchmarks/offline_sets`` is a text: a block tells one fact (``+`` lines, in order of
time), asks for it (``?`` by another player, ``me?`` by the one who told it, each with the words an
answer must hold) and asks what nobody told (``-``). Slots in braces are filled from pools; what is
answered, wrong and admitted is counted as in `offline_model.py`, whose game is used.
"""

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.offline_model import ADMITS, PLAYERS, Game, recall_memory  # noqa: E402
from benchmarks.offline_phrases import CHATTER  # noqa: E402

SETS = Path(__file__).resolve().parent / "offline_sets"
ADDRESSES = ("{t}", "{t}", "{t}", "Aria, {l}", "Aria, please remember that {l}", "By the way, {l}")
FRAMES = ("{t}", "{t}", "{t}", "Aria, {l}", "Tell me, {l}", "Do you remember? {t}")


@dataclass
class Block:
    """One fact of a set: how it is told and what is asked."""

    tells: list[str] = field(default_factory=list)
    asks: list[tuple[str, str, str]] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """One question of a script: ``expected`` is "" where nobody told the answer."""

    asker: str
    question: str
    expected: str
    told: str


def read_blocks(text: str) -> list[Block]:
    """The blocks of a set's text."""
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
        self._rng = rng
        self._pools = pools
        self._left = {name: rng.sample(pool, len(pool)) for name, pool in pools.items()}

    def values(self, block: Block) -> dict[str, str]:
        """A value for each slot of a block."""
        texts = [*block.tells, *block.misses, *(ask + value for _, ask, value in block.asks)]
        slots = sorted({slot for text in texts for slot in re.findall(r"{(\w+)}", text)})
        teller, other = self._rng.sample(PLAYERS, 2)
        return {slot: {"S": teller, "O": other}.get(slot) or self._take(slot) for slot in slots} | {
            "S": teller,
            "O": other,
        }

    def _take(self, slot: str) -> str:
        pool = slot if slot in self._pools else slot.rstrip("0123456789")
        if not self._left[pool]:
            self._left[pool] = self._rng.sample(self._pools[pool], len(self._pools[pool]))
        return self._left[pool].pop()


def play(name: str, seed: int, visible: bool, unknown: int) -> dict[str, Any]:
    """Tell every fact of a set, ask one question of each and `unknown` others; the figures."""
    rng = random.Random(f"{name} {seed}")
    pools = json.loads((SETS / "pools.json").read_text())
    filler = Filler(rng, pools)
    names = {value for pool in ("M", "F", "T") for value in pools[pool]} | {*PLAYERS, "I", "I'm"}
    names |= {"I've", "Mount", "Old", "Don't"}
    game = Game(*recall_memory(), visible)
    scripted = [
        (block, filler.values(block)) for block in read_blocks((SETS / f"{name}.txt").read_text())
    ]
    rng.shuffle(scripted)
    for number in range(max(len(block.tells) for block, _ in scripted)):
        for block, values in scripted:
            if number < len(block.tells):
                _tell(rng, game, values["S"], block.tells[number].format(**values), names)
    asked = _questions(rng, scripted, unknown)
    results, times = [], []
    for item in asked:
        frame = rng.choice(FRAMES)
        question = frame.format(t=item.question, l=_lowered(item.question, names))
        started = time.process_time()
        reply = game.hear(item.asker, question)
        times.append((time.process_time() - started) * 1000)
        results.append((item, question, reply, outcome_of(item, reply)))
    return _figures(results, times)


def _tell(rng: random.Random, game: Game, who: str, text: str, names: set[str]) -> None:
    if rng.random() < 0.3:
        game.hear(rng.choice(PLAYERS), rng.choice(CHATTER))
    game.hear(who, rng.choice(ADDRESSES).format(t=text, l=_lowered(text, names)))


def _lowered(text: str, names: set[str]) -> str:
    first = text.split()[0].rstrip(",").removesuffix("'s")
    return text if first in names else text[:1].lower() + text[1:]


def _questions(
    rng: random.Random, scripted: list[tuple[Block, dict[str, str]]], unknown: int
) -> list[Asked]:
    found, misses = [], []
    for block, values in scripted:
        told = " / ".join(block.tells).format(**values)
        mark, ask, expected = rng.choice(block.asks)
        asker = rng.choice([name for name in PLAYERS if name not in (values["S"], values["O"])])
        who = values["S"] if mark == "me?" else asker
        found.append(Asked(who, ask.format(**values), expected.format(**values), told))
        misses.extend(Asked(asker, miss.format(**values), "", told) for miss in block.misses)
    found.extend(rng.sample(misses, min(unknown, len(misses))))
    rng.shuffle(found)
    return found


def outcome_of(item: Asked, reply: str) -> str:
    """What a reply was: answered, offered, unknown, wrong, silent; admitted for what nobody told.

    Offered is what holds the answer but says that it is not sure of it.
    """
    admits = bool(ADMITS.search(reply))
    if item.expected and item.expected.lower() in reply.lower():
        return "offered" if admits else "answered"
    if admits:
        return "unknown" if item.expected else "admitted"
    return "wrong" if reply else "silent"


def _figures(results: list[tuple[Asked, str, str, str]], times: list[float]) -> dict[str, Any]:
    told = Counter(outcome for item, _, _, outcome in results if item.expected)
    untold = Counter(outcome for item, _, _, outcome in results if not item.expected)
    missed = [
        {
            "outcome": outcome,
            "told": item.told,
            "question": question,
            "asker": item.asker,
            "expected": item.expected,
            "reply": reply,
        }
        for item, question, reply, outcome in results
        if outcome not in ("answered", "offered", "admitted")
    ]
    return {"told": told, "untold": untold, "times": times, "missed": missed}


def summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over several runs."""
    told, untold = Counter[str](), Counter[str]()
    for run in runs:
        told.update(run["told"])
        untold.update(run["untold"])
    asked, others = told.total(), untold.total()
    times = sorted(value for run in runs for value in run["times"])
    return {
        "answered": round(told["answered"] / asked, 3),
        "offered_as_nearest": round(told["offered"] / asked, 3),
        "honestly_unknown": round(told["unknown"] / asked, 3),
        "wrong": round((told["wrong"] + untold["wrong"]) / (asked + others), 3),
        "wrong_of_told": round(told["wrong"] / asked, 3),
        "untold_admitted": round(untold["admitted"] / others, 3),
        "questions": asked + others,
        "cpu_ms_mean": round(statistics.fmean(times), 1),
        "cpu_ms_p95": round(times[int(len(times) * 0.95)], 1),
    }


def main() -> None:
    """Print the figures of a set, and what was missed if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", help="names of sets, as plain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--unknown", type=int, default=20)
    parser.add_argument("--visible", action="store_true", help="show the history in the prompt")
    parser.add_argument("--missed", action="store_true")
    options = parser.parse_args()
    for name in options.sets:
        seeds = range(options.seed, options.seed + options.seeds)
        runs = [play(name, seed, options.visible, options.unknown) for seed in seeds]
        print(json.dumps({"set": name, **summed(runs)}))
        for item in [item for run in runs for item in run["missed"] if options.missed]:
            print("\n".join(f"  {key}: {value}" for key, value in item.items()), end="\n\n")


if __name__ == "__main__":
    main()
