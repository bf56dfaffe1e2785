"""Check logged token budgets: within the limit, and equal to what a server receives. Prints JSON.

Random configurations and histories are drawn as by the tests. Then an assistant talks, is compacted
and talks on over HTTP with a server on loopback, which counts each request by itself.

    python -m benchmarks.budget_facts --configurations 1000 --turns 40
"""

import argparse
import json
import os
import sys
from collections import Counter
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from hypothesis import settings

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.prompt import build_prompt
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.recall.values import Hit
from evennia_ai.sleep.compaction import (
    compact_conversation_history,
    run_pre_compaction_extraction,
)
from tests import loopback
from tests.llm_interaction.test_budget_properties import (
    Counting,
    any_prompt,
    assistant,
)
from tests.loopback import LoopbackServer, count_tokens, encode_length
from tests.waiting import wait_for

TOLERANCE = 0.02
LIMIT = 6000


def drawn(number: int) -> dict[str, Any]:
    """Return what holds of the budgets of `number` random configurations and histories."""
    facts: Counter[str] = Counter()
    fullest = [0.0]

    @settings(max_examples=number, deadline=None, database=None)
    @any_prompt
    def each(config: Any, history: Any, pinned: Any, found: Any, viewer: str, context: str) -> None:
        aria = assistant(config, history, pinned)
        memories = [Hit("m1", 1.0, "Bob", text, None) for text in found]
        build_prompt(aria, aria.obj, viewer, context, retrieved=memories)
        event = aria.budgets.newest()
        facts["drawn"] += 1
        facts["over_limit"] += event.total > event.limit
        facts["left_something_out"] += bool(event.left_out or event.notes)
        fullest[0] = max(fullest[0], event.total / event.limit)

    each()
    names = ("drawn", "over_limit", "left_something_out")
    return {**{name: facts[name] for name in names}, "fullest": round(fullest[0], 4)}


def on_the_wire(turns: int) -> dict[str, Any]:
    """Return how far logged budgets differ from what a server received."""
    with LoopbackServer(lambda body: loopback.text("So they say.")) as server:
        client = ModelClient(api_base=server.url, api_key="sk-test")
        wait_for(client.warm_up(), 120)
        aria = Counting(client, max_context_tokens=LIMIT, compact_preserve_window=4)
        speaker = Speaker("Bob", "o2.b")
        for turn in range(turns):
            said = f"Aria, have you heard of the {turn * 7} goats by the mill? " * (1 + turn % 5)
            aria.history.append([Message("user", text, speaker=speaker) for text in (said, "So.")])
            if turn % 4 == 3:
                server.script(loopback.calls(loopback.call("look")))
            wait_for(aria.run_turn(TurnRequest()), 60)
            if turn % 20 == 10:
                wait_for(run_pre_compaction_extraction(aria, aria.obj), 60)
                wait_for(compact_conversation_history(aria, aria.obj, force=True), 60)
        bodies = server.bodies
    events = aria.budgets.events()
    pairs = list(zip(events, bodies[-len(events) :], strict=True))
    totals = [
        abs(event.total - event.regions["Reserve"] - count_tokens(body)) / count_tokens(body)
        for event, body in pairs
    ]
    tools = [
        abs(event.regions["Tools"] / encode_length(json.dumps(body["tools"])) - 1)
        for event, body in pairs
        if "tools" in body
    ]
    return {
        "requests": len(bodies),
        "compared": len(pairs),
        "purposes": dict(Counter(event.purpose for event in events)),
        "largest_difference": round(max(totals), 4),
        "largest_difference_tools": round(max(tools), 4),
    }


def main() -> None:
    """Print the figures; exit with code 1 if a budget is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configurations", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    facts = {"random": drawn(options.configurations), "wire": on_the_wire(options.turns)}
    print(json.dumps(facts, indent=2))
    wire = facts["wire"]
    is_off = max(wire["largest_difference"], wire["largest_difference_tools"]) > TOLERANCE
    sys.exit(1 if facts["random"]["over_limit"] or is_off else 0)


if __name__ == "__main__":
    main()
