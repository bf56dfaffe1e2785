"""Measure what an idle tick, a stored turn and a journal entry cost the reactor. Prints JSON.

For comparison, the naive way is measured in the same run: one Attribute that holds the whole list,
read and extended as a builder would.

    python -m benchmarks.storage
"""

import gc
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from twisted.internet import reactor

from benchmarks.figures import show, spread
from benchmarks.world import world
from evennia_ai import services
from evennia_ai.history.archive import Segment, SummaryRecord
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.language import tables
from evennia_ai.llm_interaction.prompt import build_llm_messages
from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.privacy.forget import forget_people
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.compaction.behind import Remaking
from evennia_ai.sleep.compaction.rules import STALE_A_DAY
from tests.waiting import wait_for

TALK = "the keeper of the lantern tells of ferries, mills and debts unpaid"
WORDS = TALK.split()
FILLED_TOGETHER = 1000
AT = "2027-01-15T08:00:00.000+00:00"


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
    script.history.replace(script.history.messages())


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


def great_store(make: Callable[[str], Any]) -> dict[str, Any]:
    """Measure steps in a store of 1,000,000 tokens, 2,000 people, 500 circles, 20,000 tombstones.

    The steps are the longest that the reactor did in one go, in milliseconds: while lines were
    heard, in each step of an answer, while the most talkative guest was forgotten, and
    the commit of a compaction.
    """
    script, body = make("Great")
    script.attributes.add("max_context_tokens", 120_000)
    guests = [Speaker(f"Guest {n}", f"o{n}.x") for n in range(2_000)]
    fill_archive(script.history, guests)
    fill_life(script, body, guests)
    settle()
    script.mind.model.default = summary
    for _ in chain(tables.warm(), script.history.warm(), body.entities.warm()):
        pass  # as a game does at its start
    gc.collect()
    gc.freeze()  # and behind it
    heard, answered = list[float](), list[float]()
    for n in range(300):
        line = said(n, guests, private([guests[n % 500].id, guests[n % 500 + 1].id]))
        heard.append(timed(lambda m=line: script.history.append([m]), 1)["max"])
    for _ in range(10):
        answered += answer(script, body, guests)
    services.use(server=True)  # work is done in pieces, as where people play
    with steps() as compacting:
        wait_for(compact_conversation_history(script, body, force=True), 900)
    with steps() as forgetting:
        work = partial(forget_people, script, body, [guests[0].id], AT)
        wait_for(script.run_exclusive(work), 900)
    figures = {"heard": heard, "answered": answered, "compacting": compacting}
    spreads = {name: spread(each) for name, each in {**figures, "forgotten": forgetting}.items()}
    return {**spreads, "whole_again": whole_again(script)}


def whole_again(script: Any) -> dict[str, float]:
    """What it takes to make all summaries again that forgetting has emptied, a day's worth a day.

    Calls, tokens of their prompts as counted, and seconds of this process without the model's own.
    """
    model, began = script.mind.model, time.perf_counter()
    before, stale, made = len(model.requests), len(script.state.stale), 0
    while script.state.stale:
        made += 1
        wait_for(Remaking(script).run(), 900)
    requests = model.requests[before:]
    texts = (str(message["content"]) for each in requests for message in each.messages)
    return {
        "stale": stale,
        "made_again": made,
        "calls": len(requests),
        "prompt_tokens": sum(map(script.count, texts)),
        "seconds": round(time.perf_counter() - began, 1),
        "days": -(-made // STALE_A_DAY),
    }


def summary(request: ModelRequest) -> str:
    """A summary of what a request shows: it names somebody of that."""
    who = re.search(r"Guest \d+", str(request.messages[-1]["content"]))
    return f"{who[0] if who else 'Somebody'} talked of ferries, mills and debts."


def said(n: int, guests: list[Speaker], audience: str = PUBLIC) -> Message:
    """A line of a guest; every twentieth is of the first."""
    guest = guests[0] if n % 20 == 0 else guests[n % len(guests)]
    text = f"{guest.key} says for the {n}th time that {TALK}, and that {WORDS[n % 12]} is dear."
    return Message("user", text, speaker=guest, audience=audience, channel="say")


def fill_archive(history: Any, guests: list[Speaker]) -> None:
    """Archive 24,000 lines in segments of 100."""
    for start in range(0, 24_000, 100):
        history.append(said(n, guests) for n in range(start, start + 100))
        history.replace(history.messages())
        messages, key = history.messages(), new_id("s")
        with history.store.transaction():
            history.archive(Segment.sealed(key, key, messages))
            record = SummaryRecord(
                id=key,
                tier="recent",
                created_at=AT,
                audience=PUBLIC,
                text="They talked.",
                source_ids=tuple(m.id for m in messages),
                segments={key: 100},
            )
            history.save_summary(record)
            history.replace([])


def fill_life(script: Any, body: Any, guests: list[Speaker]) -> None:
    """Tombstones, profiles, a note on each guest, and live lines of 500 circles and of all."""
    for start in range(0, 20_000, 100):
        script.history.add_tombstones([f"x{n}" for n in range(start, start + 100)], AT)
    for start in range(0, len(guests), 100):
        profiles = {}
        for guest in guests[start : start + 100]:
            profile = new_profile(guest.id, guest.key, 0.0)
            for n in range(5):
                profile = observe(profile, f"{guest.key} likes {WORDS[n]}.", float(n), "m1")
            profiles[guest.id] = profile
        body.entities.put(profiles)
    for n in range(500):
        circle = private([guests[n].id, guests[n + 1].id])
        script.history.append(said(n, guests, circle) for n in range(2))
    script.history.append(said(n, guests) for n in range(600))


def answer(script: Any, body: Any, guests: list[Speaker]) -> list[float]:
    """What the reactor does for one answer: calls of a model and of threads lie in between."""
    known = body.entities.get(guests[7].id)
    profile = observe(known, "Guest 7 likes rum.", 1.0, "m2")
    reply = Message("assistant", "So you say.", speaker=Speaker(body.key, body.stable_id))
    each = (
        lambda: build_llm_messages(script, body),
        lambda: body.entities.put({known.id: profile}),
        lambda: script.history.append([reply]),
    )
    return [timed(step, 1)["max"] for step in each]


@contextmanager
def steps() -> Iterator[list[float]]:
    """Collect how long each turn of the reactor takes, in milliseconds."""
    taken, run = list[float](), reactor.runUntilCurrent

    def timed_run() -> None:
        began = time.perf_counter()
        run()
        taken.append((time.perf_counter() - began) * 1000)

    reactor.runUntilCurrent = timed_run
    try:
        yield taken
    finally:
        reactor.runUntilCurrent = run


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
                "great_store_steps_ms": great_store(make),
            }
        )


if __name__ == "__main__":
    main()
