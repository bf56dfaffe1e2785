"""An evening in a tavern: three players, five assistants, two scripted characters, one model.

A started game is played over telnet from a seed: lines that name somebody, lines of a talk that
goes on, talk among players, poses, whispers, two players at once, arrivals and departures. The
model is a local server that answers in character, sometimes after a search of memory. For each
line the script knows who should answer it.

    python -m benchmarks.evening --lines 200 [--through-tools]

With `--through-tools` the model speaks by the tool `say`. Printed are shares of lines with the
right answerers, model calls a public line, the longest run of replies among characters nobody
plays, answers to people who had left, and lines that an assistant heard but did not store exactly
once. `line_to_request_ms` is measured from the line's way into the telnet connection to the
request's arrival at the model server.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figures import asked_lines, model_at, show, spread
from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.telnet import Telnet
from tests.loopback import Answer, LoopbackServer, call, calls, text

ASSISTANTS = {
    "Ada": "A smith. You forge nails, hinges and knives.",
    "Boris": "A ferryman. You know the river, its boats and its fish.",
    "Cleo": "A bard. You know songs, lutes and old tales.",
    "Dara": "A healer. You know herbs, wounds and fevers.",
    "Egon": "A miller. You know grain, flour and bread.",
}
PLAYERS = ("Alice", "Bob", "Carol")
NPCS = '''
"""Two characters with a script: one repeats what is said, one cries the news."""

from typeclasses.characters import Character


class Parrot(Character):
    """Answers each say, now and then by name."""

    def at_msg_receive(self, text=None, from_obj=None, **kwargs):
        if isinstance(text, tuple) and text[1].get("type") == "say" and from_obj is not self:
            heard = self.db.heard = (self.db.heard or 0) + 1
            if from_obj.is_typeclass("typeclasses.npcs_of_the_evening.Parrot"):
                return super().at_msg_receive(text, from_obj, **kwargs)
            name = f"{from_obj.key}, " if heard % 12 == 0 else ""
            from evennia.utils import delay

            delay(0.2, self.execute_cmd, f"say {name}squawk!")
        return super().at_msg_receive(text, from_obj, **kwargs)


class Crier(Character):
    """Cries the news when somebody comes."""

    def at_msg_receive(self, text=None, from_obj=None, **kwargs):
        if isinstance(text, tuple) and text[1].get("type") in ("move", "traverse"):
            from evennia.utils import delay

            delay(0.2, self.execute_cmd, "say Hear ye, hear ye! Fresh herring at the quay!")
        return super().at_msg_receive(text, from_obj, **kwargs)
'''
SETTINGS = "CREATION_THROTTLE_LIMIT = None\nLOGIN_THROTTLE_LIMIT = None"
DELAY_S, QUIET_S, MOST_S = 0.25, 1.0, 20.0
ORDERS = (
    "{0}, what is new today?",
    "Hello {0}!",
    "{0} can you tell me a tale",
    "hey {0}",
    "Tell me, {0}, how do you fare?",
    "what do you think of that, {0}?",
    "Thanks, {0}.",
)
FOLLOW_UPS = (
    "And since when?",
    "What else?",
    "I did not know that.",
    "Is it far from here?",
    "My brother says the same.",
    "How do you remember all that?",
)
ASIDES = ("{0}, did you sleep well?", "Look at my new boots, {0}.", "{0}, who paid for the soup?")
GESTURES = ("nods to {0}.", "raises a cup to {0}.", "smiles at {0}.")
IDLE_GESTURES = ("sits down by the fire.", "yawns.", "looks out of the window.")
WORDS = ("ale", "bread", "river", "song", "nail", "herb", "mill", "night")
SPEECH = re.compile(r'^(\w+) (?:says|whispers)\b[^"\n]*"', re.MULTILINE)


@dataclass
class Step:
    """Something players do in one moment.

    Args:
        kind: What it tests.
        acts: Player and line, in order.
        expected: Names of the assistants that should answer.
        gone: A player who leaves with the line and comes back after it.
    """

    kind: str
    acts: list[tuple[str, str]]
    expected: list[str] = field(default_factory=list)
    gone: str = ""


def plan(lines: int, rng: random.Random) -> list[Step]:  # noqa: C901 - one branch a kind of step
    """An evening's steps, with at least `lines` lines of players."""
    steps: list[Step] = []
    partner: dict[str, str] = {}
    kinds = ["addressed"] * 8 + ["talk"] * 5 + ["aside"] * 4 + ["pose", "pose", "idle pose"]
    kinds += ["whisper"] * 2 + ["two"] * 2 + ["left", "come and go"]
    while sum(len(step.acts) for step in steps) < lines:
        kind = rng.choice(kinds) if len(steps) % 100 != 50 else "everyone"
        who, other = rng.sample(PLAYERS, 2)
        one, two = rng.sample(sorted(ASSISTANTS), 2)
        number = f" ({len(steps)})"
        if kind == "talk" and partner.get(who) not in ASSISTANTS:
            kind = "addressed"
        if kind in ("addressed", "left"):
            said = rng.choice(ORDERS).format(one)
            steps.append(Step(kind, [(who, f"say {said}{number}")], [one]))
            partner[who] = one
            if kind == "left":
                steps[-1].gone, steps[-1].expected = who, []
        elif kind == "talk":
            line = f"say {rng.choice(FOLLOW_UPS)}{number}"
            # Whom one last spoke with is sure only straight after it.
            steps.append(Step("addressed", [(who, f"say {one}, a word!{number}")], [one]))
            steps.append(Step(kind, [(who, line)], [one]))
            partner[who] = one
        elif kind == "aside":
            steps.append(Step(kind, [(who, f"say {rng.choice(ASIDES).format(other)}{number}")]))
            steps.append(Step(kind, [(other, f"say {who}, never mind.{number}")]))
            partner[who], partner[other] = other, who
        elif kind == "pose":
            line = f"pose {rng.choice(GESTURES).format(one)}{number}"
            steps.append(Step(kind, [(who, line)], [one]))
        elif kind == "idle pose":
            steps.append(Step(kind, [(who, f"pose {rng.choice(IDLE_GESTURES)}{number}")]))
        elif kind == "whisper":
            line = f"whisper {one} = Where is the key?{number}"
            steps.append(Step(kind, [(who, line)], [one]))
        elif kind == "two":
            said = [(who, f"say {one}, an ale!{number}"), (other, f"say {one}, a bed!{number}")]
            steps.append(Step(kind, said, [one, one]))
            partner[who] = partner[other] = one
        elif kind == "everyone":
            every = sorted(ASSISTANTS)
            steps.append(Step(kind, [(who, f"say Good evening everyone!{number}")], every))
        else:
            steps.append(Step(kind, [(who, "out"), (who, "hall")]))
    return steps


class Model:
    """A model in character: it answers whom it is asked to, sometimes after a search."""

    def __init__(self, seed: int, through_tools: bool):
        self.rng, self.through_tools = random.Random(seed), through_tools
        self.asked: list[tuple[str, float]] = []

    def respond(self, body: Mapping[str, Any]) -> Answer:
        """The answer to a request."""
        messages = body["messages"]
        name = re.match(r"You are (\w+)", str(messages[0]["content"]))
        self.asked.append((name.group(1) if name else "", time.monotonic()))
        if not body.get("tools"):
            return text("They talked.", delay_s=DELAY_S)
        last = messages[-1]
        if last["role"] != "tool" and self.rng.random() < 0.2:
            return calls(call("search_memory", {"query": "what was said"}))
        asked = asked_lines(messages)
        to = asked[-1][0] if asked else "friend"
        other = self.rng.choice(sorted(ASSISTANTS))
        aside = f" {other}, is it not so?" if self.rng.random() < 0.05 else ""
        words = " ".join(self.rng.sample(WORDS, 3))
        line = f"Well, {to}, {words}.{aside}"
        if self.through_tools:
            return calls(call("say", {"text": line}))
        return text(line, delay_s=DELAY_S)


class Evening:
    """The game as it is played, and what is counted."""

    def __init__(self, game: Game, model: Model):
        self.game, self.model = game, model
        self.counts: Counter[str] = Counter()
        self.wrong: list[dict[str, Any]] = []
        self.latencies: list[float] = []
        self.longest = 0
        self.players: dict[str, Telnet] = {}
        self._furnish()

    def _furnish(self) -> None:
        admin = self.game.admin(60)
        admin.ask("dig Hall = hall, out", "(?i)created")
        admin.ask("hall", "Hall")
        for name, persona in ASSISTANTS.items():
            admin.ask(
                f"create/drop {name}:evennia_ai.assistant_character.AssistantCharacter", "(?i)creat"
            )
            admin.ask(f"aiconfig {name} persona = {persona}", "persona")
        for kind in ("Parrot", "Crier"):
            admin.ask(f"create/drop {kind}:typeclasses.npcs_of_the_evening.{kind}", "(?i)creat")
        admin.ask("out", "Lantern")
        for name in PLAYERS:
            self.players[name] = self.game.player(name, timeout_s=60)
            self.players[name].ask("hall", "Hall")
        admin.close()
        for name in ASSISTANTS:  # the first answer of a started game is slow
            self.players["Alice"].ask(f"whisper {name} = Are you there?", rf"{name} whispers", 60)
        time.sleep(3)
        self.model.asked.clear()

    def play(self, steps: list[Step]) -> None:
        """Play all steps, one after the other."""
        for step in steps:
            for player in self.players.values():
                player.drain(0.05)
            before = len(self.model.asked)
            begun = time.monotonic()
            for who, line in step.acts:
                self.players[who].send(line)
            if step.gone:
                self.players[step.gone].send("out")
            self._settle()
            self._judge(step, before, begun)
            if step.gone:
                self.players[step.gone].ask("hall", "Hall")
                self._settle()

    def _settle(self) -> None:
        """Wait until nobody has asked the model for a while."""
        end = time.monotonic() + MOST_S
        seen = -1
        while time.monotonic() < end and seen != len(self.model.asked):
            seen = len(self.model.asked)
            time.sleep(QUIET_S + DELAY_S)

    def _judge(self, step: Step, before: int, begun: float) -> None:
        shown = {name: player.drain(0.1) for name, player in self.players.items()}
        watcher = next(name for name in PLAYERS if name != step.gone)
        if step.kind == "whisper":
            watcher = step.acts[0][0]
        spoken = [name for name in SPEECH.findall(shown[watcher]) if name in ASSISTANTS]
        asked = self.model.asked[before:]
        public = step.kind not in ("whisper", "come and go")
        self.counts["public lines"] += len(step.acts) if public else 0
        self.counts["calls"] += len(asked) if public else 0
        self.counts["steps"] += 1
        extra = Counter(spoken) - Counter(step.expected)
        missing = Counter(step.expected) - Counter(spoken)
        self.longest = max(self.longest, extra.total())
        # Whom an assistant or the parrot calls may answer, and be answered once.
        provoked = bool(re.search(r"(?:\w+), (?:is it not so|squawk)", shown[watcher]))
        unasked = extra.total() > (2 if provoked else 0)
        if step.gone:
            self.counts["answered who left"] += len(spoken)
        if missing or unasked:
            self.wrong.append(
                {"kind": step.kind, "acts": step.acts, "expected": step.expected, "spoke": spoken}
            )
        else:
            self.counts["right"] += 1
        if asked and step.expected and step.kind != "two":
            self.latencies.append((asked[0][1] - begun) * 1000)

    def stored(self, steps: list[Step]) -> dict[str, int]:
        """How many public lines each assistant should have heard, and how many it has not once."""
        lines = [
            line.split(" ", 1)[1]
            for step in steps
            for _, line in step.acts
            if line.startswith(("say ", "pose "))
        ]
        faults = Counter[str]()
        for name in ASSISTANTS:
            heard = kept(self.game, name)["times"].items()
            for line in lines:
                times = sum(count for text, count in heard if line in text)
                faults["lost" if times == 0 else "doubled" if times > 1 else "once"] += 1
        return {name: faults[name] for name in ("once", "lost", "doubled")}


def measure(lines: int, seed: int = 1, through_tools: bool = False) -> dict[str, Any]:
    """Play an evening and return its figures."""
    model = Model(seed, through_tools)
    steps = plan(lines, random.Random(seed))
    with LoopbackServer(model.respond) as server:
        files = {"typeclasses/npcs_of_the_evening.py": NPCS}
        with Game(env=model_at(server.url), files=files, settings=SETTINGS) as game:
            evening = Evening(game, model)
            evening.play(steps)
            for player in evening.players.values():
                player.close()
            time.sleep(3)
            game.stop()
            stored = evening.stored(steps)
            tracebacks = game.log("server.log").count("Traceback")
    return {
        "seed": seed,
        "lines": sum(len(step.acts) for step in steps),
        "right_answerers": round(evening.counts["right"] / evening.counts["steps"], 3),
        "calls_per_public_line": round(evening.counts["calls"] / evening.counts["public lines"], 2),
        "longest_chain": evening.longest,
        "answers_to_people_who_left": evening.counts["answered who left"],
        "stored": stored,
        "line_to_request_ms": spread(evening.latencies, 1),
        "tracebacks": tracebacks,
        "wrong": evening.wrong[:20],
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--through-tools", action="store_true")
    show(measure(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
