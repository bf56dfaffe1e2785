"""Measure what the reactor does in one piece, the plain way beside ours. Prints JSON.

Milliseconds of processor time of the reactor thread, so that a busy machine changes little.

    python -m benchmarks.bursts
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.compaction_facts import OfflineClient
from benchmarks.world import world
from evennia_ai.history.messages import Message, Speaker, rendered
from tests.waiting import wait_for

PEOPLE = ["Alice", "Bob", "Carla", "Dunn", "Edda", "Finn", "Greta", "Hugo"]
PLACES = ["Brindle", "Harrow", "Mossford", "Tarn", "Kestrel"]
THINGS = ["boat", "mill", "barrel", "lantern", "ferry", "sword", "coat", "goat"]


def heard(count: int, seed: int = 1) -> list[Message]:
    """Return lines of some 30 tokens, spoken by eight people."""
    rng = random.Random(seed)
    return [
        Message(
            "user",
            f"My {rng.choice(THINGS)} lies at {rng.choice(PLACES)} {rng.randrange(99)} and "
            f"{rng.choice(PEOPLE)} owes me {rng.randrange(2, 900)} coins for it, they say.",
            channel="say",
            speaker=Speaker(PEOPLE[n % 8], f"o{n % 8}.abc"),
        )
        for n in range(count)
    ]


def piece(work: Callable[[], Any], times: int = 5) -> float:
    """Return the least processor time of a call, in milliseconds."""
    taken = []
    for _ in range(times):
        started = time.thread_time()
        work()
        taken.append(time.thread_time() - started)
    return round(min(taken) * 1000, 2)


def joined(lines: int) -> dict[str, float]:
    """Measure joining heard lines to one message."""
    from evennia_ai.llm_interaction.regions import joined_lines

    messages = heard(lines)

    def plain() -> str:
        text = ""
        parts: list[dict[str, str]] = [{"content": text}]
        for message in messages:
            parts[-1] = {"content": f"{parts[-1]['content']}\n{rendered(message)['content']}"}
        return parts[-1]["content"]

    return {"lines": lines, "plain": piece(plain), "ours": piece(lambda: joined_lines(messages))}


def new_attributes(script: Any, count: int = 8) -> dict[str, float]:
    """Measure making Attributes in one transaction."""
    from evennia_ai.game.evennia_internals import transaction

    names = (f"bench_{n}" for n in range(100_000))

    def plain() -> None:
        with transaction():
            for _ in range(count):
                script.attributes.add(name := next(names), None, category="bench")
                script.attributes.add(name, {"a": 1}, category="bench")

    def ours() -> None:
        with transaction():
            for _ in range(count):
                script.history.store.set(next(names), {"a": 1}, "bench")

    return {"attributes": count, "plain": piece(plain), "ours": piece(ours)}


def compactions(script: Any, count: int) -> dict[str, Any]:
    """Compact 600 messages, then 30 at a time; measure the commit, and sealing apart from it."""
    from evennia_ai.history.records import Segment
    from evennia_ai.sleep.compaction import commit, compact_conversation_history

    commits: list[float] = []

    class Timed(commit.CompactionCommit):
        def __call__(self, *args: Any) -> None:
            started = time.thread_time()
            super().__call__(*args)
            commits.append(round((time.thread_time() - started) * 1000, 1))

    from evennia_ai.sleep.compaction import compact

    compact.CompactionCommit = Timed  # type: ignore[misc]
    for number in range(count + 1):
        script.history.append(heard(30 if number else 600, number))
        if not number:
            sealing = piece(lambda: Segment.sealed("g", "s", script.history.messages()))
        done = wait_for(compact_conversation_history(script, script.obj, force=True))
        assert done["success"], done
    compact.CompactionCommit = commit.CompactionCommit  # type: ignore[misc]
    return {
        "sealing_600_off_the_reactor": sealing,
        "commit_600": commits[0],
        "commit_30_first": sorted(commits[1:6])[2],
        "commit_30_last": sorted(commits[-5:])[2],
        "compactions": count,
    }


def proof(script: Any) -> dict[str, float]:
    """Measure gathering the evidence of the proof: the longest slice, and all in one piece."""
    slices: list[float] = []
    steps, known = script.history.warm(), {}
    for _ in steps:
        pass
    more = True
    while more:
        started = time.thread_time()
        more = script.history._read_slice(known)
        slices.append((time.thread_time() - started) * 1000)
    return {"plain": round(sum(slices), 1), "ours": round(max(slices), 1)}


def offline(characters: int) -> dict[str, float]:
    """Measure an answer of the offline model without tools."""
    from evennia_ai.llm_interaction.offline.brain import respond
    from evennia_ai.llm_interaction.regions import joined_lines

    messages = heard(characters // 80)
    asked = Message("user", "Aria, where does my goat lie?", speaker=Speaker("Bob", "o1.abc"))
    system = {"role": "system", "content": "You are Aria."}
    request = [system, *joined_lines(messages), rendered(asked)]
    return {"characters": characters, "ours": piece(lambda: respond(request), 1)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compactions", type=int, default=20)
    options = parser.parse_args()
    with world(OfflineClient()) as make:
        figures: dict[str, Any] = {"joined_lines": [joined(1000), joined(4000)]}
        talker, _ = make("Talker")
        talker.attributes.add("max_context_tokens", 1_000_000)
        figures["new_attributes"] = new_attributes(talker)
        talker.history.append(heard(4000))
        packer, _ = make("Packer")
        packer.attributes.add("max_context_tokens", 200_000)
        packer.attributes.add("llm_model", "offline/extractive")
        figures["compaction"] = compactions(packer, options.compactions)
        figures["proof"] = proof(packer)
        figures["offline"] = offline(1_500_000)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
