"""Tell a hundred facts, compact ten times and look for every fact again. Prints JSON.

The benchmark uses the real handlers, services and recall index, with the offline model as speaker
and as summariser. Each fact is searched for with `aihistory/search` and with the tool
`search_memory`, by a question in other words. Then a player asks for it.

    python -m benchmarks.compaction_facts --facts 100 --compactions 10

The exit code is 1 if either search does not find a fact, if a compaction has no coverage, or
if verification fails. The assistant's answers are only reported.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import talk  # noqa: E402

SEARCH_LIMIT = 20  # of `aihistory/search`
WINDOW = 6
TRIES = 60  # a relation without a new fact in this many draws is exhausted
HOMES = ("residence", "residence2")
# What the patrons say: ``pools`` of values, ``relations`` with statements and questions,
# ``chatter``, and ``tails`` of sentences. In a statement or question ``{P}`` is whom it is about,
# ``{X}`` the answer, ``{Y}`` a second thing that both name. ``self`` statements are told by P,
# ``other`` ones by somebody else. Each relation is told and asked in two sets of words.
PHRASES = json.loads((Path(__file__).parent / "phrases.json").read_text(encoding="utf-8"))
RELATIONS: dict[str, dict[str, Any]] = PHRASES["relations"]
WORDINGS = ("one", "two")  # a fact is told in the words of one and asked for in those of the other


@dataclass(frozen=True)
class Fact:
    """A fact: whom it is about, its relation, its value and one statement of it."""

    relation: str
    about: str
    second: str
    value: str
    teller: str
    text: str
    question: str

    def clashes(self, other: "Fact") -> bool:
        """Whether one could answer for the other: the same subject, or its home."""
        relations = {self.relation, other.relation}
        is_alike = len(relations) == 1 or relations <= set(HOMES)
        return is_alike and (self.about, self.second) == (other.about, other.second)


def make_fact(rng: random.Random, relation: str) -> Fact:
    """A fact of a relation."""
    spec = RELATIONS[relation]
    told_in, asked_in = rng.sample(WORDINGS, 2)
    said, whom, about = spec[told_in], spec.get("about"), ""
    if whom != "world":
        is_player = whom == "player" or rng.random() < 0.6
        about = rng.choice(talk.PLAYERS if is_player else PHRASES["pools"]["person"])
    second = _picked(rng, spec.get("y"), (about,))
    value = _picked(rng, spec["x"], (about, second))
    selves = bool(said.get("self")) and about in talk.PLAYERS and rng.random() < 0.6
    teller = about if selves else rng.choice([name for name in talk.PLAYERS if name != about])
    fill = {"P": about, "X": value, "Y": second}
    text = rng.choice(said["self" if selves else "other"]).format(**fill)
    question = rng.choice(spec[asked_in]["ask"]).format(**fill | {"X": ""})
    text = text[:1].upper() + text[1:] + rng.choice(PHRASES["tails"])
    return Fact(relation, about, second, value, teller, text, question)


def _picked(rng: random.Random, pool: str | None, but: Sequence[str]) -> str:
    values = PHRASES["pools"][pool] if pool else [""]
    return str(rng.choice([value for value in values if not pool or value not in but]))


def distinct_facts(rng: random.Random, count: int) -> list[Fact]:
    """Facts about different subjects, with the relations in turn.

    Raises:
        ValueError: There is less to tell than requested.
    """
    facts: list[Fact] = []
    left = rng.sample(list(RELATIONS), len(RELATIONS))
    while left and len(facts) < count:
        relation = left.pop(0)
        tries = (make_fact(rng, relation) for _ in range(TRIES))
        if fact := next((f for f in tries if not any(map(f.clashes, facts))), None):
            facts.append(fact)
            left.append(relation)
    if len(facts) < count:
        raise ValueError(f"Only {len(facts)} of {count} facts are possible; ask for fewer.")
    return facts


class OfflineClient:
    """The offline model behind the interface of the model client, without a thread."""

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: Any) -> Any:
        """Answer at once."""
        from twisted.internet.defer import succeed

        from evennia_ai.llm_interaction.offline.brain import respond
        from evennia_ai.llm_interaction.values import ModelReply

        self.calls += 1
        reply = respond(request.messages, request.tools)
        calls = tuple(
            talk.as_call(made.name, made.arguments, f"call_{self.calls}_{number}")
            for number, made in enumerate(reply.tool_calls)
        )
        name = "offline/extractive"
        answer = ModelReply(content=reply.content or "", tool_calls=calls, model=name, cost=0.0)
        return succeed(answer)

    def facts(self, model: str) -> Any:
        """Nothing but that it is free."""
        from evennia_ai.llm_interaction.values import ModelFacts

        return ModelFacts(price=(0.0, 0.0))


class Tavern:
    """An assistant in memory, with the benchmark's players.

    Args:
        seed: Seed of the conversation.
    """

    def __init__(self, seed: int):
        from evennia_ai.recall import RecallIndex
        from evennia_ai.testing import FakeAssistant, FakeGame
        from tests import memory_assistant
        from tests.waiting import wait_for

        people = {name: talk.stable_id(name) for name in talk.PLAYERS}
        FakeGame.people, FakeGame.active = people, tuple(people.values())
        present = ({"id": people[name], "key": name, "player": True} for name in people)
        here = {"here": dict.fromkeys(FakeGame.active, True), "present": tuple(present)}
        FakeGame.answers = {**FakeGame.answers, **here}
        FakeAssistant.model_name = "offline/extractive"
        self.world = memory_assistant.MemoryWorld(
            OfflineClient(), compact_preserve_window=WINDOW, reply_cooldown_s=0
        )
        self.world.index = RecallIndex(":memory:")
        self.world.restart()
        self.rng, self.wait_for = random.Random(seed), wait_for

    @property
    def script(self) -> Any:
        """The current script."""
        return self.world.script

    def hear(self, who: str, text: str) -> tuple[str, str]:
        """Let somebody speak; return the message's id and the assistant's answer."""
        from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
        from evennia_ai.turns.tick import Tick

        self.world.later(20)
        script, event_id = self.script, new_id("m")
        event = Message(
            "user",
            text,
            id=event_id,
            created_at=utc_iso(script.now()),
            speaker=Speaker(who, talk.stable_id(who)),
            channel="say",
            metadata={"assistant": False},
        )
        script.runtime.last_turn_at = 0.0
        script.runtime.hear(event, script.now())
        before = len(script.game.said)
        self.wait_for(Tick(script).run())
        return event_id, " ".join(text for _, text in script.game.said[before:])

    def compact(self) -> dict[str, Any]:
        """Run an extraction and a compaction, as the command does."""
        from evennia_ai.sleep.compaction import (
            compact_conversation_history,
            run_pre_compaction_extraction,
        )

        script, body = self.script, self.world.body
        self.wait_for(run_pre_compaction_extraction(script, body))
        return dict(self.wait_for(compact_conversation_history(script, body, force=True)))

    def searched(self, query: str, message_id: str) -> bool:
        """Return whether the staff search finds the message."""
        from evennia_ai.recall.values import Query

        hits = self.wait_for(
            self.script.memory.search(
                Query(query, SEARCH_LIMIT, "staff", own_name=self.world.body.key)
            )
        )
        return any(hit.turn_id == message_id for hit in hits)

    def tool_finds(self, query: str, fact: Any, message_id: str) -> bool:
        """Return whether the assistant's tool finds the message, or its fact in the journal."""
        from evennia_ai.turns.tools.base import ToolContext

        tool = self.script.tools.tools["search_memory"]
        found = self.wait_for(tool.run(ToolContext(self.script), query=query))
        return any(
            hit["id"] == message_id
            or (fact.value.lower() in hit["text"].lower() and fact.about in hit["text"])
            for hit in found["results"]
        )


def measure(facts: int, compactions: int, seed: int) -> dict[str, Any]:
    """Tell, compact, look and ask.

    Returns:
        ``{"facts", "compactions", "found_by_history_search", "found_by_search_memory", "answered",
        "coverage_by_generation", "verified", "missed", "seconds"}``.
    """
    began = time.monotonic()
    tavern = Tavern(seed)
    told = distinct_facts(tavern.rng, facts)
    ids, results = _tell(tavern, told, compactions)
    figures = _look(tavern, told, ids)
    from tests.steps import verify_history

    scores = [result.get("coverage") for result in results]
    return {
        "facts": facts,
        "compactions": sum(bool(result.get("compacted_messages")) for result in results),
        "messages_compacted": sum(result.get("compacted_messages", 0) for result in results),
        **figures,
        "coverage_by_generation": scores,
        "verified": verify_history(tavern.script) == (),
        "seconds": round(time.monotonic() - began, 1),
    }


def _tell(
    tavern: Tavern, told: list[Any], compactions: int
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Tell all facts amid small talk, with compactions at equal distances and one restart."""
    ids: dict[str, str] = {}
    results = []
    step = -(-len(told) // compactions)
    for start in range(0, len(told), step):
        for fact in told[start : start + step]:
            ids[fact.text], _ = tavern.hear(fact.teller, fact.text)
            chatter = tavern.rng.choice(PHRASES["chatter"])
            tavern.hear(tavern.rng.choice(talk.PLAYERS), chatter)
        for _ in range(WINDOW):
            tavern.hear(tavern.rng.choice(talk.PLAYERS), tavern.rng.choice(PHRASES["chatter"]))
        results.append(tavern.compact())
        if len(results) == compactions // 2:
            tavern.world.restart()
    return ids, results


def _look(tavern: Tavern, told: list[Any], ids: dict[str, str]) -> dict[str, Any]:
    """Every fact looked for in three ways, in other words than it was told."""
    missed, offered = [], 0
    counts = dict.fromkeys(("by_words", "history", "tool_by_words", "tool", "answered"), 0)
    for fact in told:
        question = f"Aria, {fact.question}"
        words = f"{fact.about} {fact.second} {fact.value}"
        found = {
            "by_words": tavern.searched(words, ids[fact.text]),
            "history": tavern.searched(question, ids[fact.text]),
            "tool_by_words": tavern.tool_finds(words, fact, ids[fact.text]),
            "tool": tavern.tool_finds(question, fact, ids[fact.text]),
        }
        asker = tavern.rng.choice([name for name in talk.PLAYERS if name != fact.about])
        _, reply = tavern.hear(asker, question)
        found["answered"] = fact.value.lower() in reply.lower()
        offered += found["answered"] and bool(talk.ADMITS.search(reply))
        for name, good in found.items():
            counts[name] += bool(good)
        if not all(found.values()):
            missed.append({"told": fact.text, "asked": question, "reply": reply, **found})
    return {
        "found_by_history_search_with_its_words": counts["by_words"],
        "found_by_history_search_with_the_question": counts["history"],
        "found_by_search_memory_with_its_words": counts["tool_by_words"],
        "found_by_search_memory_with_the_question": counts["tool"],
        "answered": counts["answered"],
        "of_them_offered_as_nearest": offered,
        "missed": missed,
    }


def shortfalls(figures: dict[str, Any], compactions: int) -> list[str]:
    """List in plain words where the figures fall short.

    Args:
        figures: The result of `measure`.
        compactions: How many compactions were expected.
    """
    facts, scores = figures["facts"], figures["coverage_by_generation"]
    found = {
        name: figures[name]
        for name in (
            "found_by_history_search_with_its_words",
            "found_by_search_memory_with_its_words",
        )
    }
    short = [f"{name}: {count} of {facts}" for name, count in found.items() if count < facts]
    if figures["compactions"] < compactions:
        short.append(f"compactions: {figures['compactions']} of {compactions}")
    if len(scores) < compactions or None in scores:
        short.append(f"coverage: {scores}")
    return short if figures["verified"] else [*short, "verification failed"]


def main() -> None:
    """Print the figures. The exit code says whether they meet the requirements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=100)
    parser.add_argument("--compactions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    figures = measure(options.facts, options.compactions, options.seed)
    short = shortfalls(figures, options.compactions)
    print(json.dumps({**figures, "short_of": short}, indent=2, ensure_ascii=False))
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
