"""Judges the offline model: facts told in plain prose, asked again in other words.

    python benchmarks/offline_model.py --seed 7 --facts 50 --unknown 20

A script is generated from the seed: several players tell facts amid chatter, some facts change
later, then they are asked in other words, mixed with questions on what nobody told. The model
runs in its tool loop; `search_memory` is served by the recall index over all that was said.
Prints one JSON object. A told question is *answered* when the expected words stand in the reply,
an untold one when the reply admits not knowing.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import offline_phrases as phrases  # noqa: E402
from evennia_ai.history.messages import heard_line  # noqa: E402
from evennia_ai.offline.brain import Reply, respond  # noqa: E402

PLAYERS = ("Alice", "Bob", "Cora", "Dunstan", "Edith", "Falk")
ADMITS = re.compile(r"don't know|not know|no memory of", re.IGNORECASE)
VISIBLE = 40
MAX_ROUNDS = 8
RESULTS, OWN_LINES = 20, 3  # as `search_memory` limits them
TOOLS = [
    {"type": "function", "function": {"name": name}}
    for name in ("search_memory", "add_journal_entry", "noop", "emote", "move", "look", "whisper")
]


@dataclass(frozen=True)
class Told:
    """A fact as somebody tells it, with the ways to ask for it."""

    relation: str
    about: str
    second: str
    value: str
    teller: str
    text: str
    asks: tuple[str, ...]


@dataclass
class Result:
    """One question's outcome."""

    relation: str
    question: str
    expected: str
    reply: str
    outcome: str
    fact: str = ""


@dataclass
class Game:
    """A stand-in for the game around the model: history, recall index, journal."""

    search: Callable[[str], list[dict[str, Any]]]
    store: Callable[[str, str, str, str], None]
    visible: bool
    history: list[dict[str, Any]] = field(default_factory=list)
    clock: int = 0
    heard: int = 0

    def hear(self, who: str, text: str) -> str:
        """Somebody speaks; returns what the model says, "" for silence."""
        self.clock += 1
        self.heard = self.clock
        self.store(f"m{self.clock:05d}", who, text, "message")
        line = {"role": "user", "content": heard_line(who, _id(who), "say", text)}
        self.history.append(line)
        return self._turn()

    def _turn(self) -> str:
        start = len(self.history) - 1
        for _ in range(MAX_ROUNDS):
            reply = respond(self._prompt(start), TOOLS)
            if not reply.tool_calls:
                self._say(reply.content or "")
                return reply.content or ""
            if self._act(reply):
                return ""
        return "(no end of tool calls)"

    def _prompt(self, start: int) -> list[dict[str, Any]]:
        shown = self.history[-VISIBLE:] if self.visible else self.history[start:]
        here = ", ".join(f"{name} [{_id(name)}]" for name in PLAYERS)
        moment = f"[Present moment]\nTime: evening\nPlace: The Gilded Lantern\nPresent: {here}"
        return [
            {"role": "system", "content": "Rules.\nYou are Aria\nA friendly barkeep."},
            *shown,
            {"role": "user", "content": moment},
        ]

    def _say(self, text: str) -> None:
        if text:
            self.clock += 1
            self.store(f"m{self.clock:05d}", "Aria", text, "message")
            self.history.append({"role": "assistant", "content": text})

    def _act(self, reply: Reply) -> bool:
        """Run the tool calls; returns whether the turn is over."""
        calls = [
            _as_call(call.name, call.arguments, f"c{len(self.history)}_{i}")
            for i, call in enumerate(reply.tool_calls)
        ]
        self.history.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call, wanted in zip(calls, reply.tool_calls, strict=True):
            result = self._run(wanted.name, wanted.arguments)
            self.history.append(
                {"role": "tool", "tool_call_id": call["id"], "name": wanted.name, "content": result}
            )
        return any(call.name == "noop" for call in reply.tool_calls)

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


def _as_call(name: str, arguments: dict[str, Any], call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def _id(name: str) -> str:
    return f"o{sum(name.encode())}.{name[:2].lower()}"


def _stamp(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(1_767_225_600 + 20 * number))


# -- memory --------------------------------------------------------------------------------------


def recall_memory() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Search and store over the package's recall index."""
    from evennia_ai.recall import RecallIndex, Turn

    index = RecallIndex(":memory:")

    def store(turn_id: str, who: str, text: str, kind: str) -> None:
        index.add("bench", [Turn(turn_id, who, text, _stamp(int(turn_id[1:])), kind=kind)])

    def search(query: str) -> list[dict[str, Any]]:
        return [
            {"id": h.turn_id, "kind": h.kind, "speaker": h.speaker, "at": h.at, "text": h.text}
            for h in index.search("bench", query, limit=2 * RESULTS)
        ]

    return search, store


# -- the script ----------------------------------------------------------------------------------


def _pick(rng: random.Random, pool: str, but: str = "") -> str:
    return rng.choice([value for value in phrases.POOLS[pool] if value != but])


def spec_of(half: str) -> dict[str, Any]:
    """The relations of a set of templates."""
    return phrases.FRESH if half == "held_out" else phrases.RELATIONS


def make_facts(rng: random.Random, half: str, count: int) -> list[Told]:
    """`count` facts, no two on the same relation of the same one; relations in turn."""
    relations = list(spec_of(half))
    facts: list[Told] = []
    taken: set[tuple[str, str, str]] = set()
    while len(facts) < count:
        rng.shuffle(relations)
        for relation in relations[: count - len(facts)]:
            fact = make_fact(rng, half, relation)
            if not _clashes(fact, taken):
                taken.add((relation, fact.about, _second_key(fact)))
                facts.append(fact)
    return facts


def _second_key(fact: Told) -> str:
    return "" if fact.relation == "residence" else fact.second


def _clashes(fact: Told, taken: set[tuple[str, str, str]]) -> bool:
    same_things = {"hidden", "price", "inherit"}
    if fact.relation in same_things and any(second == fact.second for _, _, second in taken):
        return True
    return (fact.relation, fact.about, _second_key(fact)) in taken


def make_fact(rng: random.Random, half: str, relation: str, like: Told | None = None) -> Told:
    """A fact with its telling; `like` another with a new value where one is given."""
    spec = spec_of(half)[relation]
    said = spec[half]
    selves = bool(said.get("self")) and rng.random() < 0.6
    about = like.about if like else _about(rng, spec, selves)
    selves = selves and about in PLAYERS
    second = like.second if like else _pick(rng, spec["y"], about) if "y" in spec else ""
    value = _pick(rng, spec["x"], like.value if like else about)
    while value in (about, second):
        value = _pick(rng, spec["x"], about)
    teller = about if selves else rng.choice([name for name in PLAYERS if name != about])
    text = rng.choice(said["self" if selves else "other"])
    fill = {"P": about, "X": value, "Y": second}
    text = _capital(text.format(**fill))
    lead = rng.choice(phrases.LEADS)
    text = lead + (_lowered(text) if lead else text) + rng.choice(phrases.TAILS)
    return Told(relation, about, second, value, teller, text, tuple(said["ask"]))


def _about(rng: random.Random, spec: dict[str, Any], selves: bool) -> str:
    if spec.get("about") == "world":
        return ""
    return rng.choice(PLAYERS) if selves or spec.get("about") == "player" else _pick(rng, "person")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lowered(text: str) -> str:
    first = text.split()[0]
    keep = first in ("I", "I'm", "I've") or first.strip("',?!").removesuffix("'s") in _NAMES
    return text if keep else text[:1].lower() + text[1:]


_NAMES = {
    *PLAYERS,
    *(
        part
        for pool in ("person", "town", "petname", "god", "ship", "month", "day", "street")
        for value in phrases.POOLS[pool]
        for part in value.split()
    ),
}


def ask_about(rng: random.Random, fact: Told, half: str) -> str:
    """A question for a fact, in a player's frame."""
    asked = rng.choice(spec_of(half)[fact.relation][half]["ask"])
    question = asked.format(P=fact.about, Y=fact.second, X="")
    return rng.choice(phrases.FRAMES).format(q=question, l=_lowered(question))


def make_untold(rng: random.Random, half: str, facts: list[Told], count: int) -> list[Told]:
    """Questions nobody told the answer of: known people and unknown, other owners, other things."""
    known = {(f.relation, f.about, _second_key(f)) for f in facts}
    told_people = sorted({f.about for f in facts if f.about})
    found: list[Told] = []
    while len(found) < count:
        fact = replace(make_fact(rng, half, rng.choice(list(spec_of(half)))), value="", text="")
        if fact.about and rng.random() < 0.7:
            like = rng.choice([f for f in facts if f.relation == fact.relation] or facts)
            second = like.second if like.relation == fact.relation else fact.second
            fact = replace(fact, about=rng.choice(told_people), second=second)
        spouse = any(f.relation == "marriage" and f.value == fact.about for f in facts)
        if not _is_told(fact, known) and not spouse and fact.about != fact.second:
            known.add((fact.relation, fact.about, _second_key(fact)))
            found.append(fact)
    return found


def _is_told(fact: Told, known: set[tuple[str, str, str]]) -> bool:
    if (fact.relation, fact.about, _second_key(fact)) in known:
        return True
    # Where somebody lives, is from or goes to may be guessed at from one another by a human too.
    return any(r == fact.relation and a == fact.about for r, a, _ in known)


# -- the run -------------------------------------------------------------------------------------


def run(seed: int, half: str, visible: bool, facts: int, unknown: int) -> dict[str, Any]:
    """Play one script; returns its figures."""
    rng = random.Random(f"{seed} {half}")
    search, store = recall_memory()
    game = Game(search, store, visible)
    told = make_facts(rng, half, facts)
    changed = [
        make_fact(rng, half, f.relation, f) for f in told[:60] if f.relation.startswith("residence")
    ]
    for fact in _with_chatter(rng, [*told, *changed]):
        game.hear(fact.teller, fact.text)
    latest = {(f.relation, f.about, _second_key(f)): f for f in [*told, *changed]}
    questions = [(f, True) for f in latest.values()]
    questions += [(f, False) for f in make_untold(rng, half, told, unknown)]
    rng.shuffle(questions)
    started = time.perf_counter()
    results = [_asked(rng, game, fact, known, half) for fact, known in questions]
    per_question = (time.perf_counter() - started) / len(results)
    return _figures(results, seed, half, visible, per_question)


def _with_chatter(rng: random.Random, facts: list[Told]) -> Iterator[Told]:
    pending = ""
    for fact in facts:
        if rng.random() < 0.4:
            yield Told("", "", "", "", rng.choice(PLAYERS), rng.choice(phrases.CHATTER), ())
        text = f"Aria, {_lowered(fact.text)}" if rng.random() < 0.3 else fact.text
        yield Told(fact.relation, fact.about, fact.second, fact.value, fact.teller, text, ())
    if pending:
        yield facts[-1]


def _asked(rng: random.Random, game: Game, fact: Told, known: bool, half: str) -> Result:
    asker = rng.choice([name for name in PLAYERS if name != fact.about])
    question = ask_about(rng, fact, half)
    reply = game.hear(asker, question)
    admits = bool(ADMITS.search(reply))
    if known:
        right = fact.value.lower() in reply.lower()
        if right:
            outcome = "offered" if admits else "answered"
        else:
            outcome = "unknown" if admits else "wrong" if reply else "silent"
    else:
        outcome = "admitted" if admits else "wrong" if reply else "silent"
    return Result(fact.relation, question, fact.value, reply, outcome, fact.text)


def _figures(
    results: list[Result], seed: int, half: str, visible: bool, seconds: float
) -> dict[str, Any]:
    told = [r for r in results if r.expected]
    untold = [r for r in results if not r.expected]
    good = ("answered", "offered", "admitted")
    misses = Counter(r.relation for r in results if r.outcome not in good)
    return {
        "seed": seed,
        "templates": half,
        "history_in_prompt": visible,
        "told": dict(Counter(r.outcome for r in told)) | {"asked": len(told)},
        "untold": dict(Counter(r.outcome for r in untold)) | {"asked": len(untold)},
        "misses": dict(misses),
        "ms_per_question": round(seconds * 1000, 1),
        "missed": [vars(r) for r in results if r.outcome not in good],
    }


def summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over several runs."""
    told, untold = Counter[str](), Counter[str]()
    for figures in runs:
        told.update(figures["told"])
        untold.update(figures["untold"])
    asked = told["asked"] + untold["asked"]
    return {
        "answered": round(told["answered"] / max(1, told["asked"]), 4),
        "offered_as_nearest": round(told["offered"] / max(1, told["asked"]), 4),
        "honestly_unknown": round(told["unknown"] / max(1, told["asked"]), 4),
        "untold_admitted": round(untold["admitted"] / max(1, untold["asked"]), 4),
        "wrong": round((told["wrong"] + untold["wrong"]) / max(1, asked), 4),
        "questions": asked,
    }


def main() -> None:
    """Run the script for each seed, both halves of the templates, with and without history."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from --seed on")
    parser.add_argument("--facts", type=int, default=50)
    parser.add_argument("--unknown", type=int, default=20)
    parser.add_argument("--half", choices=("tuning", "seen", "held_out"), default=None)
    parser.add_argument("--missed", action="store_true", help="list every missed question")
    options = parser.parse_args()
    halves = (options.half,) if options.half else ("tuning", "seen", "held_out")
    report: dict[str, Any] = {"summary": {}, "runs": []}
    for half in halves:
        for visible in (False, True):
            seeds = range(options.seed, options.seed + options.seeds)
            runs = [run(s, half, visible, options.facts, options.unknown) for s in seeds]
            where = "history in prompt" if visible else "search only"
            report["summary"][f"{half}, {where}"] = summed(runs)
            report["runs"].extend(runs)
    if not options.missed:
        for figures in report["runs"]:
            del figures["missed"]
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
