"""Tell facts in a started game, then live through thousands of lines, nights and restarts.

    python -m tests.e2e.long_life --facts 20 --lines 2000 --nights 4

Six players log in by telnet and tell facts at the beginning. Then they talk about other things.
Each night the assistant sleeps, dreams and, because its context is small, compacts. Halfway the
game is killed with SIGKILL and started again; at the end it is reloaded. Then the players ask for
every fact in other words, mixed with questions about things nobody told, and after each answer how
the assistant knows.

The result is one JSON object: how many told facts were answered, offered (with "I don't know that
for certain"), unknown or wrong; how many untold ones were admitted; and for how many answers the
assistant named the id of a message that contains the answer. The exit code is 1 if a line is
missing or stored twice, if verification fails, or if the log contains a traceback.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from typing import Any

from benchmarks import talk
from benchmarks.mudlife import RELATIONS, Fact, distinct_facts, small_talk
from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.telnet import Telnet

SETTINGS = """
CREATION_THROTTLE_LIMIT = None
LOGIN_THROTTLE_LIMIT = None
"""
CONTEXT_TOKENS = 20_000
BURST = 60  # lines before a pause, well below the limit of the queue
ANSWER_S = 60
SAID = re.compile(r"Aria says, \"(.*)\"")


class Tavern:
    """The started game and the players in it.

    Args:
        game: A running game.
        seed: Seed of the conversation.
        names: Names of the players.
        made: Whether they have their accounts already.
    """

    def __init__(
        self, game: Game, seed: int, names: tuple[str, ...] = talk.PLAYERS, made: bool = False
    ):
        self.game, self.rng, self.names = game, random.Random(seed), names
        self.made, self.said = made, Counter[str]()
        self.enter()

    def enter(self) -> None:
        """Log everybody in, the first time with a new account."""
        self.admin = self.game.admin(60)
        self.players: dict[str, Telnet] = {}
        for name in self.names:
            self.players[name] = self._player(name)
        self.made = True

    def _player(self, name: str) -> Telnet:
        if not self.made:
            return self.game.player(name, timeout_s=60)
        player = Telnet(self.game.ports.telnet, timeout_s=60)
        player.login(name, "quite-a-long-1")
        return player

    def leave(self) -> None:
        """Log everybody out."""
        for connection in (self.admin, *self.players.values()):
            connection.close()

    def tell(self, who: str, text: str) -> None:
        """Say something to the assistant, which may answer or not."""
        self.said[text] += 1
        self.players[who].ask(f"say {text}", "You say")
        self._hush()

    def ask(self, who: str, question: str) -> str:
        """Ask the assistant; return the answer."""
        self._hush()
        self.said[question] += 1
        shown = self.players[who].ask(f"say {question}", r"Aria says, \"[^\n]*", ANSWER_S)
        shown += self.players[who].drain(1.5)
        return " ".join(SAID.findall(shown))

    def _hush(self) -> None:
        for player in self.players.values():
            player.drain(0.02)

    def chat(self, lines: int) -> None:
        """Say other lines, in bursts that the assistant can hear completely."""
        for number in range(1, lines + 1):
            who, line = self.rng.choice(self.names), small_talk(self.rng)
            self.said[line] += 1
            self.players[who].send(f"say {line}")
            if number % BURST == 0:
                time.sleep(2.0)
                self._hush()
        self.admin.drain(6)

    def night(self) -> None:
        """Let the assistant sleep until it has dreamt, then wake it."""
        self.admin.drain(1)
        self.admin.ask("ai/sleep Aria", r"(?i)asleep")
        end = time.monotonic() + 300
        while time.monotonic() < end:
            self.admin.drain(3)
            shown = self.admin.ask("aistatus Aria", r"Last trouble[^\n]*", ANSWER_S)
            if re.search(r"Mode: sleep, sleeping[\s\S]*context_compaction:", shown):
                break
        self.admin.ask("ai/wake Aria", r"(?i)wake|awake")

    def faults(self) -> dict[str, Any]:
        """Return lines that are not stored as often as they were said, and other faults."""
        found = kept(self.game)
        times = Counter(found["times"])
        return {
            "lost": sorted((self.said - times).elements()),
            "doubled": sorted(text for text in self.said if times[text] > self.said[text])
            + found["doubled"],
            "violations": found["violations"],
        }

    def evidence(self, value: str) -> str:
        """Return what staff find for a value: lines that begin with ids."""
        self.admin.drain(0.5)
        self.admin.send(f"aihistory/search Aria = {value}")
        shown = self.admin.drain(2)
        self.admin.send("q")
        return shown


def measure(facts: int, untold: int, lines: int, nights: int, seed: int) -> Any:
    """Play it all; returns the figures."""
    rng = random.Random(seed)
    relations = rng.sample(list(RELATIONS), len(RELATIONS))
    told = distinct_facts(rng, relations, facts, patrons=talk.PLAYERS)
    never = distinct_facts(rng, relations, untold, told, talk.PLAYERS)
    with Game(settings=SETTINGS) as game:
        tavern = Tavern(game, seed)
        tavern.admin.ask(f"aiconfig Aria max_context_tokens = {CONTEXT_TOKENS}", "is now")
        tavern.ask("Alice", "Hello, Aria!")
        for fact in told:
            tavern.tell(fact.teller, fact.text)
        for night in range(1, nights + 1):
            tavern.chat(lines // nights)
            tavern.night()
            if night == nights // 2:
                tavern.leave()
                game.kill_hard()
                game.start()
                tavern.enter()
        tavern.leave()
        game.reload()
        tavern.enter()
        asked = [(fact, True) for fact in told] + [(fact, False) for fact in never]
        rng.shuffle(asked)
        figures = _questions(tavern, rng, asked)
        verified = tavern.admin.ask("compact/verify Aria", r"Aria: [^\n]+", ANSWER_S)
        figures["verify"] = re.sub(r"\s+", " ", verified[verified.rfind("Aria:") :])
        figures["compactions"] = _compactions(tavern)
        figures["faults"] = tavern.faults()
        figures["tracebacks"] = game.log("server.log").count("Traceback")
        tavern.leave()
    return {"lines": lines, "nights": nights, "restarts": 2, **figures}


def _compactions(tavern: Tavern) -> int:
    """Return how many segments left the prompt, according to `aistatus`."""
    shown = tavern.admin.ask("aistatus Aria", r"Last trouble[^\n]*", ANSWER_S)
    found = re.search(r"archived in (\d+)", shown)
    return int(found.group(1)) if found else 0


def _questions(
    tavern: Tavern, rng: random.Random, asked: list[tuple[Fact, bool]]
) -> dict[str, Any]:
    told, untold, named = Counter(), Counter(), Counter()
    missed: list[Any] = []
    unsourced: list[Any] = []
    for fact, known in asked:
        question = f"Aria, {fact.question}"
        asker = rng.choice([name for name in talk.PLAYERS if name != fact.about])
        reply = tavern.ask(asker, question)
        admitted = bool(talk.ADMITS.search(reply))
        if not known:
            untold["admitted" if admitted else "wrong"] += 1
        elif fact.value.lower() in reply.lower():
            told["offered as nearest" if admitted else "answered"] += 1
            source, said = _source(tavern, asker, fact)
            named[source] += 1
            if source != "right id":
                unsourced.append({"told": fact.text, "asked": question, "reply": reply, "id": said})
        else:
            told["unknown" if admitted else "wrong"] += 1
        if known and fact.value.lower() not in reply.lower() or not (known or admitted):
            missed.append({"told": fact.text, "asked": question, "reply": reply})
    return {
        "told": told,
        "untold": untold,
        "asked_how_she_knows": named,
        "missed": missed,
        "without_right_id": unsourced,
    }


def _source(tavern: Tavern, asker: str, fact: Any) -> tuple[str, str]:
    """Return whether the assistant names the id of a source of the answer, and what it says."""
    reply = tavern.ask(asker, "Aria, how do you know that?")
    found = re.search(r"\b([me]1\w{8,})\b", reply)
    if not found:
        return "names no id", reply
    # A search may not show all hits for a common value; then search for the assistant's words.
    shown = "\n".join(tavern.evidence(wanted) for wanted in (fact.value, _quote(reply)))
    line = next((x for x in shown.split("\n") if found.group(1) in x), "")
    return ("right id" if fact.value.lower() in line.lower() else "another id"), reply


def _quote(reply: str) -> str:
    """Return the words that the assistant quotes, or else all it says."""
    quoted = re.search(r': "([^"]+)"', reply)
    return quoted.group(1) if quoted else reply


def main() -> None:
    """Print the figures. The exit code says whether something was lost or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=20)
    parser.add_argument("--untold", type=int, default=8)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--nights", type=int, default=4)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    figures = measure(options.facts, options.untold, options.lines, options.nights, options.seed)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    proven = "Aria: proven" in figures["verify"]
    sys.exit(not proven or bool(figures["tracebacks"]) or any(figures["faults"].values()))


if __name__ == "__main__":
    main()
