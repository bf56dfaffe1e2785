"""Measure what an idle tick, a stored turn and a journal entry cost the reactor. Prints JSON.

For comparison, the naive way is measured in the same run: one Attribute that holds the whole list,
read and extended as a builder would.

    python -m benchmarks.storage
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.figures import show, spread
from benchmarks.world import world
from evennia_ai import services
from evennia_ai.history.messages import Message
from evennia_ai.rag_memory.journal import JournalHandler
from tests.waiting import wait_for

TALK = "the keeper of the lantern tells of ferries, mills and debts unpaid"
WORDS = TALK.split()
FILLED_TOGETHER = 1000


def timed(work: Callable[[], Any], times: int, apart: bool = False) -> dict[str, float]:
    """Return how long a call takes, in milliseconds.

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
    return spread(taken, 4)


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
    return {"history_tokens": script.history.tokens(), "ms": timed(script.at_tick, 400)}


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
    return {"ms": turns, "checkpoint_ms": timed(lambda: fill(script, 1, 40), 20)}


def naive_turn(make: Callable[[str], Any]) -> dict[str, Any]:
    """Measure the same in one Attribute that is extended in place."""
    script, _ = make("Naive")
    script.db.naive = [talk(165).to_dict() for _ in range(600)]

    def turn() -> None:
        script.db.naive.append(talk(40).to_dict())
        script.db.naive.append(talk(60).to_dict())

    return {"ms": timed(turn, 30)}


def journal(make: Callable[[str], Any], entries: int) -> dict[str, Any]:
    """Measure appending to a journal of this many entries.

    The entries bypass the recall index, which would take minutes to process 100,000.
    """
    from evennia_ai.game.evennia_internals import AttributeStore

    _, body = make(f"Diarist{entries}")
    filling = JournalHandler(AttributeStore(body))
    for start in range(0, entries, FILLED_TOGETHER):
        with filling.store.transaction():
            for number in range(start, min(entries, start + FILLED_TOGETHER)):
                filling.add(f"Entry {number}: somebody owes somebody a barrel.")
    assert body.journal.count() == entries
    settle()
    work = timed(lambda: body.journal.add("One more thing worth keeping."), 200, apart=True)
    return {"entries": entries, "ms": work}


def main() -> None:
    """Print the figures."""
    with world() as make:
        ours, naive = stored_turn(make), naive_turn(make)
        show(
            {
                "idle_tick": [idle_tick(make, 6), idle_tick(make, 600)],
                "stored_turn_ours": ours,
                "stored_turn_naive": naive,
                "naive_over_ours": round(naive["ms"]["median"] / ours["ms"]["median"], 1),
                "journal_append": [journal(make, count) for count in (100, 100_000)],
            }
        )


if __name__ == "__main__":
    main()
