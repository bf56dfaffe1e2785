"""What a compaction costs, what it leaves, and what is found after ten of them. Prints JSON.

    python -m benchmarks.compaction [--limits 6000 8000]

``limits``: twenty rounds of six speakers, four of whom whisper as well, are told to an assistant in
memory, then `compact` is asked of it. The model is a script: it summarises the lines that it is
shown, and notes the one thing in them that was said aloud and is worth noting. For each limit of
tokens: model calls, their prompt tokens, lines of talk kept of those that a window asks for,
journal entries that hold the fact and for whom they are, the usage before and after, and what was
told to staff.

``facts``: a hundred facts are told amid small talk, with ten compactions and a restart. The real
handlers, services and recall index are used, with the offline model as speaker and as summariser.
Each fact is searched for with `aihistory/search` and with the tool `search_memory`, by its words
and by a question.

The exit code is 1 if a search does not find a fact by its words, if a compaction has no coverage,
or if verification fails.
"""

import argparse
import json
import random
import re
import sys
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.figures import show
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, Speaker, is_talk, new_id, utc_iso
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.recall import RecallIndex
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import Compaction, Done
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.turns.tools.base import ToolContext
from tests.asked import offline
from tests.fake import FakeAssistant, FakeGame
from tests.memory_assistant import MemoryWorld
from tests.models import ScriptedModel
from tests.steps import verify_history
from tests.waiting import wait_for

LIMITS = (4096, 6000, 8000, 10_000, 12_000, 16_000, 100_000)
SPEAKERS = ("Alice", "Bram", "Cora", "Dirk", "Esme", "Fitz")
WHISPERERS = SPEAKERS[:4]
ROUNDS = 20
FACT = "Cora's boat is called Windhover."
TALK = (
    "I was down at the harbour this morning, and the boats were late again; nobody there could "
    "say why, not even the old man at the crane.",
    "They say the bridge will be closed for a week from Monday on, so whoever wants to go to the "
    "market had better leave before that.",
    "Have you tried the stew? It is better than yesterday's, though I would have put in less salt "
    "and let it stand for another hour or two.",
    "My brother means to sell the mill, if he finds somebody who buys it for what he paid himself, "
    "and I do not think that he ever will.",
    "The road to the north is muddy from the rain; I would not take a cart there before the wind "
    "has dried it, and that may well take days.",
    "I owe the smith four coins for the hinges, and he will not let me forget it as long as I walk "
    "past his door every single morning.",
)

SEARCH_LIMIT = 20  # of `aihistory/search`
WINDOW = 6
COMPACTIONS, SEED = 10, 1
BY_WORDS = ("history_by_words", "tool_by_words")
BY_QUESTION = ("history_by_question", "tool_by_question")
# Of each person one fact of each kind is told: a statement and a question.
KINDS = (
    ("{0} has a boat that is called {1}.", "What is {0}'s boat called?"),
    ("{0} was born in {1}, far up the river.", "Where was {0} born?"),
    ("The master who taught {0} the lute was old {1}.", "Who taught {0} to play the lute?"),
    ("{0} owes the innkeeper {1} the price of a roof.", "Whom does {0} owe money?"),
    ("{0} keeps a goat that answers to {1}.", "Which name does {0}'s goat answer to?"),
    ("The bridge that {0} built last year stands at {1}.", "Where did {0} build a bridge?"),
    ("{0} sold the mill to {1} before the winter.", "Who bought the mill of {0}?"),
    ("The password of {0}'s cellar is {1}.", "What opens the cellar of {0}?"),
    ("{0} is afraid of the ghost of {1}.", "What does {0} fear?"),
    ("{0} married the weaver {1} in spring.", "Whose husband or wife is {0}?"),
)
PEOPLE = ("Anselm", "Brigid", "Corwin", "Drusilla", "Edmund", "Freya", "Gareth", "Hedwig")
PEOPLE += ("Ingram", "Jocosa")
SYLLABLES = ("bar", "dol", "fen", "gul", "hes", "kor", "lim", "mav", "nor", "pel", "rus", "tiv")


def speaker(name: str) -> Speaker:
    """A speaker of that name."""
    return Speaker(name, f"o{SPEAKERS.index(name)}.{name.lower()}")


def scene() -> list[Message]:
    """The messages of the talk, about two hundred."""
    messages = []
    for number in range(ROUNDS):
        for place, name in enumerate(SPEAKERS):
            text = FACT if (number, name) == (2, "Cora") else TALK[(number + place) % len(TALK)]
            aside = name in WHISPERERS and (number + place) % 2 == 0
            audience = private([speaker(name).id]) if aside and text != FACT else PUBLIC
            channel = "whisper" if audience != PUBLIC else "say"
            heard = Message("user", text, speaker=speaker(name), audience=audience, channel=channel)
            messages.append(heard)
            if (number + place) % 3 == 0:
                answer = f"So it is, {name}."
                messages.append(Message("assistant", answer, audience=audience, channel=channel))
        if number % 5 == 0:
            messages.append(Message("user", "", speaker=speaker("Fitz"), channel="leave"))
    return messages


def answer(request: Any) -> str:
    """What the scripted model says."""
    shown = str(request.messages[-1]["content"])
    summary = "They spoke of the harbour, the bridge, the stew, the mill and the road."
    line, notes = re.search(r"^(\d+)\. .*Windhover", shown, re.MULTILINE), list[dict[str, Any]]()
    if line is not None:
        notes.append({"lines": [int(line[1])], "text": FACT, "about": "Cora"})
    return json.dumps({"summary": summary, "notes": notes})


def cost(limit: int) -> dict[str, Any]:
    """The figures at one limit."""
    model = ScriptedModel(default=answer)
    aria = FakeAssistant(model, max_context_tokens=limit)
    measure_fixed(aria)
    aria.history.append(scene())
    before, talk = aria.usage(), sum(map(is_talk, scene()))
    outcomes = list[Any]()
    Compaction(aria, MANUAL, noted=True).run().addCallback(outcomes.append)
    kept = [m for m in aria.history.messages() if is_talk(m)]
    entries = [e for e in aria.journal.recent() if "Windhover" in e.content]
    facts = [e for e in entries if e.source_type == "assistant"]
    return {
        "limit": limit,
        "success": bool(outcomes) and isinstance(outcomes[0], Done),
        "history_tokens": outcomes[0].record.report.original_tokens,
        "calls": len(model.requests),
        "prompt_tokens": sum(request.prompt_tokens for request in model.requests),
        "talk_kept": len(kept),
        "talk": talk,
        "entries_of_the_fact": [entry.audience for entry in facts],
        "usage_before": round(before, 2),
        "usage_after": round(aria.usage(), 2),
        "verified": verify_history(aria) == (),
        "told": [text for kind, text in aria.audits if kind == "log" and "hardly room" in text],
    }


@dataclass(frozen=True)
class Fact:
    """A fact: whom it is about, its value, who tells it, its statement and a question."""

    about: str
    value: str
    teller: str
    text: str
    question: str


def all_facts(rng: random.Random) -> list[Fact]:
    """A fact of each kind about each person, each with a value of its own, in random order."""
    values = ["".join(parts).title() for parts in product(SYLLABLES, SYLLABLES)]
    facts = []
    pairs = list(product(PEOPLE, KINDS))
    for (about, (told, asked)), value in zip(pairs, rng.sample(values, len(pairs)), strict=True):
        text, question = told.format(about, value), asked.format(about)
        facts.append(Fact(about, value, rng.choice(SPEAKERS), text, question))
    rng.shuffle(facts)
    return facts


class Tavern:
    """An assistant in memory, with the benchmark's players."""

    def __init__(self) -> None:
        people = {name: speaker(name).id for name in SPEAKERS}
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
        at, by = utc_iso(script.now()), speaker(who)
        event = Message("user", text, id=event_id, created_at=at, speaker=by, channel="say")
        script.runtime.last_turn_at = 0.0
        script.runtime.hear(event, script.now())
        wait_for(script.tick())
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

    def tool_finds(self, query: str, fact: Fact, message_id: str) -> bool:
        """Return whether the assistant's tool finds the message, or its fact in the journal."""
        tool = self.script.tools.tools["search_memory"]
        found = wait_for(tool.run(ToolContext(self.script, self.script.tools), query=query))
        return any(
            hit["id"] == message_id
            or (fact.value.lower() in hit["text"].lower() and fact.about in hit["text"])
            for hit in found["results"]
        )


def facts() -> dict[str, Any]:
    """Tell, compact and look; return the figures."""
    tavern = Tavern()
    told = all_facts(tavern.rng)
    ids, results = _tell(tavern, told)
    return {
        "told": len(told),
        "compactions": sum(bool(result.get("compacted_messages")) for result in results),
        "messages_compacted": sum(result.get("compacted_messages", 0) for result in results),
        **_look(tavern, told, ids),
        "coverage_by_generation": [result.get("coverage") for result in results],
        "verified": verify_history(tavern.script) == (),
    }


def _tell(tavern: Tavern, told: list[Fact]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Tell all facts amid small talk, with compactions at equal distances and one restart."""
    ids: dict[str, str] = {}
    results = []
    step = -(-len(told) // COMPACTIONS)
    for start in range(0, len(told), step):
        for fact in told[start : start + step]:
            ids[fact.text] = tavern.hear(fact.teller, fact.text)
            tavern.hear(tavern.rng.choice(SPEAKERS), tavern.rng.choice(TALK))
        for _ in range(WINDOW):
            tavern.hear(tavern.rng.choice(SPEAKERS), tavern.rng.choice(TALK))
        results.append(tavern.compact())
        if len(results) == COMPACTIONS // 2:
            tavern.world.restart()
    return ids, results


def _look(tavern: Tavern, told: list[Fact], ids: dict[str, str]) -> dict[str, Any]:
    """Every fact looked for by its words and by a question, by staff and by the assistant."""
    missed = []
    counts = dict.fromkeys((*BY_WORDS, *BY_QUESTION), 0)
    for fact in told:
        found = {}
        queries = (f"{fact.about} {fact.value}", f"Aria, {fact.question}")
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
    """Where the figures of `facts` fall short."""
    scores = figures["coverage_by_generation"]
    wanted = {
        **dict.fromkeys(BY_WORDS, figures["told"]),
        "compactions": COMPACTIONS,
        "verified": True,
    }
    short = [name for name, least in wanted.items() if figures[name] < least]
    return short if len(scores) >= COMPACTIONS and None not in scores else [*short, "coverage"]


def main() -> None:
    """Print the figures. The exit code says whether they meet the requirements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--limits", type=int, nargs="*", default=LIMITS)
    options = parser.parse_args()
    limits = [cost(limit) for limit in options.limits]
    found = facts()
    short = shortfalls(found)
    show({"limits": limits, "facts": found, "short_of": short})
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
