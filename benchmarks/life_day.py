"""A day of game time in the life of an innkeeper: what it costs, and when.

`python -m benchmarks.life_day` prints JSON. Nothing but the model and the game are stand-ins: an
assistant in memory with a routine, two errands and `initiative` 4 ticks through 24 hours of its
clock. Players are in earshot from 10 to 12, idle from 12 to 13, and in the tavern from 18 to 22,
where they talk now and then. A call that is made while no player is in earshot is counted apart;
there must be none.
"""

import json
import sys
from collections import Counter

from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.testing import FakeAssistant, FakeGame, ScriptedModel
from evennia_ai.turns.tick import Tick

TICK_S, DAY_S, HOUR_S = 30, 86_400, 3600
ROUTINE = "06:00 Kitchen: kneads dough.; 10:00 Market; 14:00 Taproom: wipes the bar.; 23:30 sleep"
# Hours with an active player; what is said at which of them, minutes after the hour.
COMPANY = ((10, 12), (18, 22))
TALK = {10: (5,), 18: (2, 10), 19: (30,), 21: (0, 20, 40)}
ALICE, BOB = (Speaker(name, FakeGame.people[name]) for name in ("Alice", "Bob"))


def main() -> int:
    """Live through the day and print what was called; 1 if a call was made to an empty room."""
    hour = 0.0
    calls: Counter[str] = Counter()
    alone: Counter[str] = Counter()

    def answer(request: ModelRequest) -> str:
        calls[request.purpose] += 1
        if not aria.game.active:
            alone[request.purpose] += 1
        return (
            f"The soup of hour {hour:.2f} is hot, and number {sum(calls.values())} is a good one."
        )

    aria = FakeAssistant(ScriptedModel(default=answer), initiative=4, routine=ROUTINE)
    aria.clock_time = lambda is_game: (int(hour), int(hour % 1 * 60))
    start, results, told = aria.now(), Counter[str](), 0
    aria.messenger.take(ALICE, BOB, "the boat leaves at dawn")
    aria.messenger.take(ALICE, ALICE, "feed the cat", "in 19h")
    for second in range(0, DAY_S, TICK_S):
        hour = second / HOUR_S
        aria.clock.advance(start + second - aria.now())
        is_near = any(begin <= hour < end for begin, end in COMPANY)
        aria.game.active = tuple(FakeGame.people.values()) if is_near else ()
        if second % 60 == 0 and second // 60 % 60 in TALK.get(int(hour), ()):
            line = Message("user", "Good day.", id=new_id("m"), speaker=ALICE, channel="say")
            aria.runtime.hear(line, aria.now())
        Tick(aria).run().addCallback(lambda done: results.update([done]))
        told += sum(audience.startswith("private") for audience, _ in aria.game.said)
        aria.game.said.clear()
    report = {
        "ticks": sum(results.values()),
        "what ticks did": dict(results.most_common()),
        "model calls by purpose": dict(calls.most_common()),
        "model calls without a player in earshot": dict(alone),
        "unasked turns": aria.runtime.counts["unasked"],
        "errands delivered": told,
        "errands open": len(aria.messenger.open()),
        "errors": [what for what, _ in aria.errors],
    }
    print(json.dumps(report, indent=1))
    return 1 if alone or aria.errors else 0


if __name__ == "__main__":
    sys.exit(main())
