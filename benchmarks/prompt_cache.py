"""Measure how much of a prompt repeats the previous prompt's prefix. Prints JSON.

Providers charge less for a repeated prefix if it is identical. For comparison, the naive order is
measured in the same run: retrieved memories and the present moment in the system message.

    python -m benchmarks.prompt_cache --turns 60
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.world import world
from evennia_ai.testing import ScriptedModel
from tests.waiting import wait_for

LINES = (
    "The ferry was late again and the miller is cross about it.",
    "They say the duke has raised the toll on the old bridge to nine pence.",
    "Have you heard how my sister's goats got into the chapel garden?",
    "I would like another mug of the dark ale, please.",
)


def as_text(request: Any) -> str:
    """Return a request as one text, tools first, as providers hash it."""
    return json.dumps(list(request.tools)) + "".join(json.dumps(m) for m in request.messages)


def naive_text(request: Any) -> str:
    """Return the same request with the volatile blocks in the system message."""
    system, *rest = request.messages
    volatile = [m for m in rest if str(m.get("content")).startswith(("[Memories]", "[Present"))]
    others = [m for m in rest if m not in volatile]
    tail = "\n".join(m["content"] for m in volatile)
    first = {**system, "content": f"{system['content']}\n{tail}"}
    return json.dumps(list(request.tools)) + "".join(json.dumps(m) for m in (first, *others))


def repeated(texts: Sequence[str], count: Any) -> list[float]:
    """Return the share of each text's tokens that repeat the beginning of the previous one."""
    shares = []
    for before, now in zip(texts, texts[1:], strict=False):
        same = next(
            (i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b),
            min(len(before), len(now)),
        )
        shares.append(count(now[:same]) / count(now))
    return shares


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    turns = parser.parse_args().turns
    model = ScriptedModel(default="So I have heard. Tell me more of it, and sit down a while.")
    with world(model) as make:
        script, body = make("Aria")
        from evennia import create_object

        player = create_object(
            "evennia.objects.objects.DefaultCharacter", key="Mira", location=body.location
        )
        type(player).has_account = property(lambda self: self.key == "Mira")
        clock = [script.now()]
        script.now = lambda: clock[0]
        for turn in range(turns):
            clock[0] += 20.0
            player.at_say(f"{LINES[turn % len(LINES)]} That is what I say, {turn}.")
            wait_for(script.at_tick(), 60)
        asked = [r for r in model.requests if r.purpose == "awake"]
        ours = repeated([as_text(r) for r in asked], script.count)
        naive = repeated([naive_text(r) for r in asked], script.count)
    later = slice(len(ours) // 2, None)
    print(
        json.dumps(
            {
                "turns": len(asked),
                "repeated_share_median": {
                    "ours": round(statistics.median(ours[later]), 3),
                    "naive": round(statistics.median(naive[later]), 3),
                },
                "repeated_share_mean_all": {
                    "ours": round(statistics.mean(ours), 3),
                    "naive": round(statistics.mean(naive), 3),
                },
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
