"""Measure what an idle tick, a stored turn and a journal entry cost the reactor. Prints JSON.

For comparison, the naive way is measured in the same run: one Attribute that holds the whole list,
read and extended as a builder would.

    python -m benchmarks.storage
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.world import world
from evennia_ai import services
from evennia_ai.history.messages import Message
from tests.waiting import wait_for

TALK = "the keeper of the lantern tells of ferries, mills and debts unpaid"
WORDS = TALK.split()
FILLED_TOGETHER = 1000


def timed(work: Callable[[], Any], times: int, apart: bool = False) -> dict[str, float]:
    """Return median, p95 and maximum of a call, in milliseconds.

    Args:
        work: The call.
        times: Number of repetitions.
        apart: Wait for the index's thread before each call, as conversation has pauses.
    """
    taken = []
    for _ in range(times):
        if apart:
            settle()
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    taken.sort()
    return {
        "median_ms": round(statistics.median(taken), 4),
        "p95_ms": round(taken[int(0.95 * (len(taken) - 1))], 4),
        "max_ms": round(taken[-1], 4),
    }


def settle() -> None:
    """Wait until the recall index has processed what was stored, on its own thread."""
    wait_for(services.mind().recall.worker.submit(int), 600)


def talk(tokens: int) -> Message:
    """Return a message of about this many tokens."""
    return Message("user", " ".join(WORDS[n % len(WORDS)] for n in range(tokens - 5)))


def fill(script: Any, messages: int, tokens: int) -> None:
    """Store a history."""
    script.history.append(talk(tokens) for _ in range(messages))
    script.history.checkpoint()


def idle_tick(make: Callable[[str], Any], messages: int) -> dict[str, Any]:
    """Measure an idle tick with a history of this many messages of 165 tokens."""
    script, _ = make(f"Idle{messages}")
    script.attributes.add("max_context_tokens", 1_000_000)
    fill(script, messages, 165)
    settle()
    assert wait_for(script.at_tick()) == "idle"
    return {"history_tokens": script.history.tokens(), **timed(script.at_tick, 400)}


def stored_turn(make: Callable[[str], Any]) -> dict[str, Any]:
    """Measure storing a heard line and a reply after a history of 600 messages."""
    script, _ = make("Storing")
    fill(script, 600, 165)

    def turn() -> None:
        script.history.append([talk(40)])
        script.history.append([replace(talk(60), role="assistant")])

    settle()
    turns = timed(turn, 200, apart=True)
    settle()
    return {**turns, "checkpoint": timed(lambda: _checkpoint(script), 20)}


def _checkpoint(script: Any) -> None:
    script.history.append([talk(40)])
    script.history.checkpoint()


def naive_turn(make: Callable[[str], Any]) -> dict[str, Any]:
    """Measure the same in one Attribute that is extended in place."""
    script, _ = make("Naive")
    script.db.naive = [talk(165).to_dict() for _ in range(600)]

    def turn() -> None:
        script.db.naive.append(talk(40).to_dict())
        script.db.naive.append(talk(60).to_dict())

    return timed(turn, 30)


def journal(make: Callable[[str], Any], entries: int) -> dict[str, Any]:
    """Measure appending to a journal of this many entries.

    The entries bypass the recall index, which would take minutes to process 100,000.
    """
    from evennia_ai.game.evennia_internals import AttributeStore
    from evennia_ai.rag_memory.journal import JournalHandler

    _, body = make(f"Diarist{entries}")
    filling = JournalHandler(AttributeStore(body))
    for start in range(0, entries, FILLED_TOGETHER):
        with filling.store.transaction():
            for number in range(start, min(entries, start + FILLED_TOGETHER)):
                filling.add(f"Entry {number}: somebody owes somebody a barrel.")
    assert body.journal.count() == entries
    settle()
    work = timed(lambda: body.journal.add("One more thing worth keeping."), 200, apart=True)
    return {"entries": entries, **work}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--journal", type=int, nargs="+", default=[100, 100_000])
    options = parser.parse_args()
    with world() as make:
        figures = {
            "idle_tick": [idle_tick(make, 6), idle_tick(make, 600)],
            "stored_turn_ours": stored_turn(make),
            "stored_turn_naive": naive_turn(make),
            "journal_append": [journal(make, count) for count in options.journal],
        }
    ours, naive = figures["stored_turn_ours"], figures["stored_turn_naive"]
    figures["naive_over_ours"] = round(naive["median_ms"] / ours["median_ms"], 1)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
