"""How large a prompt is, by part and situation, in a started demo. Prints JSON.

    python -m benchmarks.prompt_size

Two players and the demo's admin talk to Aria; the model is a server of our own that takes tools,
and then one that does not. For each situation the tokens of the newest request are counted by part:
the system text, tools, examples, the talk so far, and the newest turn. `fixed` are the first three.
"""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.figures import model_at, show
from evennia_ai.llm_interaction.tokens import counter_for
from tests.e2e.game import Game
from tests.loopback import LoopbackServer, text

EXAMPLES = 8  # messages of the four exchanges
ANSWER = r"So I have heard"
# Who says or whispers what; the first line of a situation is counted.
SITUATIONS = (
    ("a player's first line", "Mira", "say Good evening, Aria!"),
    ("a player who has talked", "Mira", "say Aria, my boat is called Heron."),
    ("another player", "Tobin", "say Aria, what is new in town?"),
    ("a whisper", "Tobin", "whisper Aria = What is new in the cellar?"),
    ("something carried", "Mira", "say Aria, what do you hold?"),
    ("the admin", "admin", "say Aria, what do you see?"),
    ("the admin, in a long talk", "admin", "say Aria, and what else?"),
)


def parts_of(body: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of a request's parts."""
    count = counter_for("gpt-4")

    def tokens(messages: Sequence[Any]) -> int:
        return sum(count(str(each.get("content") or "")) for each in messages)

    messages = body["messages"]
    sizes = {
        "system": tokens(messages[:1]),
        "tools": sum(count(json.dumps(each)) for each in body.get("tools", ())),
        "examples": tokens(messages[1 : 1 + EXAMPLES]),
        "talk": tokens(messages[1 + EXAMPLES : -1]),
        "newest": tokens(messages[-1:]),
    }
    fixed = sizes["system"] + sizes["tools"] + sizes["examples"]
    return {**sizes, "fixed": fixed, "offered": len(body.get("tools", ()))}


def play(drops_tools: bool) -> dict[str, dict[str, int]]:
    """The sizes by situation, with a model that takes tools or not."""
    answers = (f"So I have heard, for the {number}th time." for number in range(1, 1_000))
    sizes = {}
    with (
        LoopbackServer(lambda body: text(next(answers)), drops_tools=drops_tools) as server,
        Game(env=model_at(server.url)) as game,
    ):
        people = {"admin": game.admin(60)}
        people |= {name: game.player(name, timeout_s=60) for name in ("Mira", "Tobin")}
        for situation, who, line in SITUATIONS:
            if situation == "something carried":
                people["Mira"].ask("get coin", "coin")
                people["Mira"].ask("give coin to Aria", "coin")
            if situation.endswith("long talk"):
                for number in range(10):
                    people["Mira"].ask(f"say Aria, this is line {number} of a talk.", ANSWER)
            people[who].ask(line, ANSWER)
            sizes[situation] = parts_of(server.requests[-1].body)
        for person in people.values():
            person.close()
        game.stop()
    return sizes


def main() -> None:
    """Print the sizes."""
    figures = {}
    for name, drops_tools in (("with tools", False), ("words alone", True)):
        sizes = play(drops_tools)
        fixed = [each["fixed"] for each in sizes.values()]
        figures[name] = {"fixed": {"median": median(fixed), "worst": max(fixed)}, "sizes": sizes}
    show(figures)


if __name__ == "__main__":
    main()
