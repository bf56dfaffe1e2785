"""An evening that goes wrong: memory asked for often, a model that is down, a flood of lines.

    python -m benchmarks.hard_evening

A started game is played over telnet. The model is a local server that answers in character, and
for a question from memory searches first. Printed are, as JSON:

- ``memory``: by how many tokens the stored history grew with each question, and the share of the
  context in use after all of them;
- ``down``: for each line said while the server refused every request, seconds until the first sign
  and until the first words; how often staff were alerted; whether the model spoke again after it;
- ``flood``: how many of a player's ten lines were heard and answered while others flooded the room.
"""

import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.evening import SETTINGS
from benchmarks.figures import asked_lines, model_at, show, spread
from tests.e2e.game import Game
from tests.e2e.kept import kept
from tests.e2e.telnet import Telnet, Timeout
from tests.loopback import RESET, Answer, LoopbackServer, call, calls, text

NAMES = ("Alma", "Berit", "Cord", "Dietmar", "Elin", "Falk", "Gesine")
THINGS = ("boat", "dog", "inn", "mill", "horse")
LINE_EVERY_S, FLOOD_LINES_PER_S, LINES = 5.0, 5.0, 10
ANSWERED_S = 60.0
ARIA = "evennia.search_object('Aria')[0].assistant"


class Model:
    """Answers whom it is asked to, after a search where memory is asked for; may be down."""

    def __init__(self) -> None:
        self.down = False
        # The lines that were to be answered, as the prompt names them.
        self.answered: list[str] = []

    def respond(self, body: Mapping[str, Any]) -> Answer:
        """The answer to a request."""
        if self.down:
            return RESET
        messages = body["messages"]
        rows = asked_lines(messages)
        if not rows:
            return text("They talked.")
        who, asked = rows[-1]
        if messages[-1]["role"] != "tool" and asked.endswith("called?"):
            return calls(call("search_memory", {"query": asked}))
        self.answered += [said for _, said in rows]
        subject = re.search(r"what is (.+) called", asked)
        result = str(messages[-1].get("content"))
        found = re.findall(rf"{subject[1]} is called (\w+)", result) if subject else []
        return text(f"{found[0]}, {who}." if found else f"I hear you, {who}: {asked[:40]}")


def memory(admin: Telnet, player: Telnet, questions: int) -> dict[str, Any]:
    """Tell facts, then ask for them; by how much the stored history grows with each question."""
    facts = [f"{name}'s {thing}" for name in NAMES for thing in THINGS][:questions]
    for number, fact in enumerate(facts):
        player.ask(f"say Aria, {fact} is called Num{number}x.", r"Aria says", ANSWERED_S)
    grown = []
    before = _tokens(admin)
    right = 0
    for number, fact in enumerate(facts):
        reply = player.ask(f"say Aria, what is {fact} called?", r"Aria says[^\n]*", ANSWERED_S)
        right += f"Num{number}x" in reply
        now = _tokens(admin)
        grown.append(now - before)
        before = now
    shown = admin.ask(f"py round({ARIA}.usage(), 4)", r"\n[0-9.]+")
    return {
        "questions": len(facts),
        "answered_right": right,
        "grown_tokens": spread(grown),
        "context_share_after": float(shown.split()[-1]),
    }


def _tokens(admin: Telnet) -> int:
    admin.drain(0.2)
    return int(admin.ask(f"py {ARIA}.history.tokens()", r"\n\d+\s").split()[-1])


def down(admin: Telnet, player: Telnet, model: Model, down_s: float) -> dict[str, Any]:
    """Talk on while the model is down, and after it."""
    admin.drain(0.5)
    seen = len(admin.transcript)
    model.down = True
    signs, words = [], []
    end = time.monotonic() + down_s
    while time.monotonic() < end:
        player.drain(0.3)
        begun = time.monotonic()
        player.send(f"say Aria, how are you? I came {len(signs)} miles.")
        try:
            shown = player.read_until(r"\nAria [^\n]+", ANSWERED_S)
            signs.append(time.monotonic() - begun)
            if "Aria says" not in shown:
                player.read_until(r"\nAria says[^\n]+", ANSWERED_S)
            words.append(time.monotonic() - begun)
        except Timeout:
            words.append(float("inf"))
        time.sleep(max(0.0, LINE_EVERY_S - (time.monotonic() - begun)))
    model.down = False
    time.sleep(35)  # the circuit breaker's pause
    player.drain(0.3)
    back = player.ask("say Aria, are you well again?", r"\nAria says[^\n]+", ANSWERED_S)
    admin.drain(0.5)
    return {
        "lines": len(signs),
        "seconds_to_sign": spread(signs),
        "seconds_to_words": spread(words),
        "alerts_to_staff": admin.transcript[seen:].count("no model answers"),
        "model_speaks_again": "I hear you" in back,
    }


def flood(
    game: Game, player: Telnet, model: Model, flooders: int, flood_s: float
) -> dict[str, Any]:
    """Ten lines of a player while others flood the room."""
    crowd = [game.player(f"Flood{n:02d}", timeout_s=60) for n in range(flooders)]
    over = threading.Event()

    def shout(one: Telnet, number: int) -> None:
        while not over.wait(1 / FLOOD_LINES_PER_S):
            one.send(f"say Aria, noise {number} {time.monotonic():.2f}!")
            one.drain(0.001)

    threads = [
        threading.Thread(target=shout, args=(one, number)) for number, one in enumerate(crowd)
    ]
    for thread in threads:
        thread.start()
    said = [f"my line number {n} of ten" for n in range(LINES)]
    for line in said:
        player.send(f"say Aria, {line}.")
        time.sleep(flood_s / LINES)
        player.drain(0.01)
    over.set()
    for thread in threads:
        thread.join()
    end = time.monotonic() + ANSWERED_S
    while time.monotonic() < end and not any(said[-1] in line for line in model.answered):
        time.sleep(0.5)
        player.drain(0.05)
    answered = [number for number, line in enumerate(said) if _places(line, model)]
    order = [min(_places(said[number], model)) for number in answered]
    for one in crowd:
        one.close()
    return {
        "flooders": flooders,
        "lines_of_flooders_answered": sum("noise" in line for line in model.answered),
        "answered": len(answered),
        "in_turn": order == sorted(order),
        "said": said,
    }


def _places(said: str, model: Model) -> list[int]:
    return [place for place, line in enumerate(model.answered) if said in line]


def heard(game: Game, said: list[str]) -> int:
    """How many lines stand exactly once in what is stored; the game is stopped."""
    times = kept(game)["times"].items()
    return sum(sum(count for text, count in times if line in text) == 1 for line in said)


def measure(
    questions: int = 35, down_s: float = 60.0, flooders: int = 20, flood_s: float = 20.0
) -> dict[str, Any]:
    """Play it and return the figures."""
    model = Model()
    found: dict[str, Any] = {}
    with (
        LoopbackServer(model.respond) as server,
        Game(env=model_at(server.url), settings=SETTINGS) as game,
    ):
        admin = game.admin(60)
        player = game.player("Alice", timeout_s=60)
        time.sleep(2)
        found["memory"] = memory(admin, player, questions)
        found["down"] = down(admin, player, model, down_s)
        found["flood"] = flood(game, player, model, flooders, flood_s)
        time.sleep(3)
        player.close()
        admin.close()
        game.stop()
        found["flood"]["heard_once"] = heard(game, found["flood"].pop("said"))
        found["tracebacks"] = game.log("server.log").count("Traceback")
    return found


if __name__ == "__main__":
    show(measure())
