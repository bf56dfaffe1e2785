"""Tell a hundred facts, compact ten times and look for every fact again. Prints JSON.

The benchmark uses the real handlers, services and recall index, with the offline model as speaker
and as summariser. Each fact is searched for with `aihistory/search` and with the tool
`search_memory`, by its words and by a question in other words.

    python -m benchmarks.compaction_facts

The exit code is 1 if a search does not find a fact by its words, if a compaction has no coverage,
or if verification fails.
"""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import talk
from benchmarks.figures import show
from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
from evennia_ai.recall import RecallIndex
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.testing import FakeAssistant, FakeGame, ScriptedModel
from evennia_ai.turns.tick import Tick
from evennia_ai.turns.tools.base import ToolContext
from tests.asked import offline
from tests.memory_assistant import MemoryWorld
from tests.steps import verify_history
from tests.waiting import wait_for

SEARCH_LIMIT = 20  # of `aihistory/search`
WINDOW = 6
FACTS, COMPACTIONS, SEED = 100, 10, 1
BY_WORDS = ("history_by_words", "tool_by_words")
BY_QUESTION = ("history_by_question", "tool_by_question")
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


class Tavern:
    """An assistant in memory, with the benchmark's players."""

    def __init__(self) -> None:
        people = {name: talk.stable_id(name) for name in talk.PLAYERS}
        FakeGame.people, FakeGame.active = people, tuple(people.values())
        present = ({"id": people[name], "key": name, "player": True} for name in people)
        here = {"here": dict.fromkeys(FakeGame.active, True), "present": tuple(present)}
        FakeGame.answers = {**FakeGame.answers, **here}
        FakeAssistant.model_name = "offline/extractive"
        model = ScriptedModel(default=offline)
        model.price = (0.0, 0.0)
        self.world = MemoryWorld(model, compact_preserve_window=WINDOW, reply_cooldown_s=0)
        self.world.index = RecallIndex(":memory:")
        self.world.restart()
        self.rng = random.Random(SEED)

    @property
    def script(self) -> Any:
        """The current script."""
        return self.world.script

    def hear(self, who: str, text: str) -> str:
        """Let somebody speak; return the message's id."""
        self.world.later(20)
        script, event_id = self.script, new_id("m")
        speaker, at = Speaker(who, talk.stable_id(who)), utc_iso(script.now())
        event = Message("user", text, id=event_id, created_at=at, speaker=speaker, channel="say")
        script.runtime.last_turn_at = 0.0
        script.runtime.hear(event, script.now())
        wait_for(Tick(script).run())
        return event_id

    def compact(self) -> dict[str, Any]:
        """Run an extraction and a compaction, as the command does."""
        script, body = self.script, self.world.body
        wait_for(run_pre_compaction_extraction(script, body))
        return dict(wait_for(compact_conversation_history(script, body, force=True)))

    def searched(self, query: str, message_id: str) -> bool:
        """Return whether the staff search finds the message."""
        asked = Query(query, SEARCH_LIMIT, "staff", own_name=self.world.body.key)
        hits = wait_for(self.script.memory.search(asked))
        return any(hit.turn_id == message_id for hit in hits)

    def tool_finds(self, query: str, fact: Any, message_id: str) -> bool:
        """Return whether the assistant's tool finds the message, or its fact in the journal."""
        tool = self.script.tools.tools["search_memory"]
        found = wait_for(tool.run(ToolContext(self.script), query=query))
        return any(
            hit["id"] == message_id
            or (fact.value.lower() in hit["text"].lower() and fact.about in hit["text"])
            for hit in found["results"]
        )


def measure() -> dict[str, Any]:
    """Tell, compact and look; return the figures."""
    tavern = Tavern()
    told = distinct_facts(tavern.rng, FACTS)
    ids, results = _tell(tavern, told)
    return {
        "facts": FACTS,
        "compactions": sum(bool(result.get("compacted_messages")) for result in results),
        "messages_compacted": sum(result.get("compacted_messages", 0) for result in results),
        **_look(tavern, told, ids),
        "coverage_by_generation": [result.get("coverage") for result in results],
        "verified": verify_history(tavern.script) == (),
    }


def _tell(tavern: Tavern, told: list[Any]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Tell all facts amid small talk, with compactions at equal distances and one restart."""
    ids: dict[str, str] = {}
    results = []
    step = -(-len(told) // COMPACTIONS)
    for start in range(0, len(told), step):
        for fact in told[start : start + step]:
            ids[fact.text] = tavern.hear(fact.teller, fact.text)
            chatter = tavern.rng.choice(PHRASES["chatter"])
            tavern.hear(tavern.rng.choice(talk.PLAYERS), chatter)
        for _ in range(WINDOW):
            tavern.hear(tavern.rng.choice(talk.PLAYERS), tavern.rng.choice(PHRASES["chatter"]))
        results.append(tavern.compact())
        if len(results) == COMPACTIONS // 2:
            tavern.world.restart()
    return ids, results


def _look(tavern: Tavern, told: list[Any], ids: dict[str, str]) -> dict[str, Any]:
    """Every fact looked for by its words and by a question, by staff and by the assistant."""
    missed = []
    counts = dict.fromkeys((*BY_WORDS, *BY_QUESTION), 0)
    for fact in told:
        found = {}
        queries = (f"{fact.about} {fact.second} {fact.value}", f"Aria, {fact.question}")
        for names, query in zip((BY_WORDS, BY_QUESTION), queries, strict=True):
            by_staff = tavern.searched(query, ids[fact.text])
            by_tool = tavern.tool_finds(query, fact, ids[fact.text])
            found |= dict(zip(names, (by_staff, by_tool), strict=True))
        for name, is_found in found.items():
            counts[name] += is_found
        if not all(found.values()):
            missed.append({"told": fact.text, "asked": fact.question, **found})
    return {**counts, "missed": missed}


def shortfalls(figures: dict[str, Any]) -> list[str]:
    """Where the figures of `measure` fall short."""
    scores = figures["coverage_by_generation"]
    wanted = {**dict.fromkeys(BY_WORDS, FACTS), "compactions": COMPACTIONS, "verified": True}
    short = [name for name, least in wanted.items() if figures[name] < least]
    return short if len(scores) >= COMPACTIONS and None not in scores else [*short, "coverage"]


def main() -> None:
    """Print the figures. The exit code says whether they meet the requirements."""
    figures = measure()
    short = shortfalls(figures)
    show({**figures, "short_of": short})
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
