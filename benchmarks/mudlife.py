"""Weeks of tavern talk, then questions: what the recall index finds and what is answered.

    python benchmarks/mudlife.py --seed 1 --weeks 4 --lines 120

Everything is generated from the seed. Fourteen patrons talk every evening. In between they tell
facts; some facts change weeks later (the newer statement is the evidence), and some are never told.
Questions use other words than the statements.

The result is JSON. For each ranking it gives the share of questions whose evidence is among the
first 5 and 10 hits, and *latest fact*, the share of changed facts whose newest statement ranks
above the older one.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recall import bm25_ranking, vector_ranking  # noqa: E402
from benchmarks.talk import PLAYERS  # noqa: E402
from evennia_ai.recall import RecallIndex, Turn  # noqa: E402

PATRONS = (*PLAYERS, "Gwen", "Hob", "Ines", "Jarl", "Kit", "Lorna", "Mab", "Ned")
# Relations in which a newer statement replaces an older one.
CHANGEABLE = (
    *("residence", "trade", "fav_drink", "hidden", "debt", "herd", "weapon", "password"),
    *("market", "departure", "plan"),
)
CUTS = (5, 10)
TRIES = 60  # a relation without a new fact in this many draws is exhausted
DEEP = 50  # how deep in a ranking the statements of a changed fact are searched
START = 1_767_290_400  # 18:00
DAY = 86_400

# Small talk about the same people, places and things as the facts, without any of the facts.
SMALL_TALK = (
    "Did you hear {person} singing last night?",
    "The road to {town} was mud up to the axles.",
    "A pedlar from {town} tried to sell me a {thing} this morning.",
    "Remember the {contest}? I laughed till I cried.",
    "Somebody spilled {drink} all over the steps.",
    "They ran out of {food} before I got here.",
    "I saw {number} {animal} loose on the green today.",
    "A {pet} got into the kitchen again.",
    "The smell of {food} drifts right up to the {building}.",
    "{person} was asking for you at the {building}.",
    "Is that a {weapon} over the fireplace?",
    "A fellow with a {instrument} is playing by the bridge.",
    "What would you do with a {thing}?",
    "They painted the {building} {colour}, of all colours.",
    "I won {coins} at dice and lost it again.",
    "Nobody believes {person} any more.",
    "If it rains on {day} I am staying in bed.",
    "{person} and {person2} were arguing by the well.",
    "Have you ever been to {town}?",
    "A {trade} and a priest walk into a tavern, have you heard that one?",
    "They say the {vessel} ran aground near {town}.",
    "My back aches like an old {animal} cart.",
    "I dreamed of {town} last night, and of {animal}.",
    "Pass me the {food}, will you?",
    "The {building} wants a new roof before {month}.",
)


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

    @property
    def key(self) -> tuple[str, str, str]:
        """What a newer statement of the same fact replaces."""
        return self.relation, self.about, self.second


@dataclass(frozen=True)
class Asked:
    """A question with its answer and the ids of the newest and the older statement."""

    kind: str
    fact: Fact
    evidence: str = ""
    older: str = ""


@dataclass(frozen=True)
class Life:
    """Everything that was said, in order, and the questions about it."""

    turns: tuple[Turn, ...]
    asked: tuple[Asked, ...]


# -- facts ---------------------------------------------------------------------------------------


# What the patrons say: ``pools`` of values, ``relations`` with statements and questions,
# ``chatter``, and ``tails`` of sentences. In a statement or question ``{P}`` is whom it is about,
# ``{X}`` the answer, ``{Y}`` a second thing that both name. ``self`` statements are told by P,
# ``other`` ones by somebody else. Each relation is told and asked in two sets of words.
PHRASES = json.loads((Path(__file__).parent / "phrases.json").read_text(encoding="utf-8"))
RELATIONS: dict[str, dict[str, Any]] = PHRASES["relations"]
WORDINGS = ("one", "two")  # a fact is told in the words of one and asked for in those of the other


def make_fact(
    rng: random.Random,
    relation: str,
    like: Fact | None = None,
    patrons: Sequence[str] = PATRONS,
) -> Fact:
    """A fact of a relation; `like` another one, with a new value, where one is given."""
    spec = RELATIONS[relation]
    told_in, asked_in = rng.sample(WORDINGS, 2)
    said = spec[told_in]
    about = like.about if like else _about(rng, spec, patrons)
    second = like.second if like else _picked(rng, spec.get("y"), (about,))
    value = _picked(rng, spec["x"], (about, second, like.value if like else ""))
    selves = bool(said.get("self")) and about in patrons and rng.random() < 0.6
    teller = about if selves else rng.choice([name for name in patrons if name != about])
    fill = {"P": about, "X": value, "Y": second}
    text = rng.choice(said["self" if selves else "other"]).format(**fill)
    question = rng.choice(spec[asked_in]["ask"]).format(**fill | {"X": ""})
    tail = rng.choice(PHRASES["tails"])
    return Fact(
        relation, about, second, value, teller, text[:1].upper() + text[1:] + tail, question
    )


def _about(rng: random.Random, spec: dict[str, Any], patrons: Sequence[str]) -> str:
    whom = spec.get("about")
    if whom == "world":
        return ""
    return rng.choice(patrons if whom == "player" or rng.random() < 0.6 else _pool("person"))


def _pool(name: str) -> list[str]:
    return list(PHRASES["pools"][name])


def _picked(rng: random.Random, pool: str | None, but: Sequence[str]) -> str:
    return rng.choice([value for value in _pool(pool) if value not in but]) if pool else ""


def distinct_facts(
    rng: random.Random,
    relations: Sequence[str],
    count: int,
    taken: Sequence[Fact] = (),
    patrons: Sequence[str] = PATRONS,
) -> list[Fact]:
    """Return facts about different subjects, with the relations in turn.

    Raises:
        ValueError: There is less to tell than requested.
    """
    known = {fact.key: fact for fact in taken}
    found: list[Fact] = []
    left = list(relations)
    while len(found) < count:
        if not left:
            raise ValueError(f"Only {len(found)} of {count} facts are possible; ask for fewer.")
        relation = left.pop(0)
        fact = _fresh_fact(rng, relation, known, patrons)
        if fact:
            known[fact.key] = fact
            found.append(fact)
            left.append(relation)
    return found


def _fresh_fact(
    rng: random.Random,
    relation: str,
    known: dict[tuple[str, str, str], Fact],
    patrons: Sequence[str],
) -> Fact | None:
    """A fact that clashes with none; None where all that is told of a relation is told already."""
    tries = (make_fact(rng, relation, patrons=patrons) for _ in range(TRIES))
    return next((fact for fact in tries if not _clashes(fact, known)), None)


def _clashes(fact: Fact, known: dict[tuple[str, str, str], Fact]) -> bool:
    """Return whether a known fact could answer for this one (same subject or its home)."""
    homes = ("residence", "residence2")
    return any(
        (fact.relation == each.relation or (fact.relation in homes and each.relation in homes))
        and fact.about == each.about
        and fact.second == each.second
        for each in known.values()
    )


# -- evenings ------------------------------------------------------------------------------------


def make_life(seed: int, weeks: int, lines: int, questions: int) -> Life:
    """Make `lines` lines per evening; 3 in 10 questions are on changes, 2 on untold facts."""
    rng = random.Random(f"mudlife {seed}")
    changed = questions * 3 // 10
    untold = questions // 5
    plain = questions - changed - untold
    facts = distinct_facts(rng, _shuffled(rng, CHANGEABLE), changed)
    rest = distinct_facts(rng, _shuffled(rng, tuple(RELATIONS)), plain + untold, facts)
    newer = [make_fact(rng, fact.relation, fact) for fact in facts]
    turns, ids = _evenings(rng, weeks * 7, lines, facts, newer, rest[:plain])
    asked = [
        Asked("changed", new, ids[new], ids[old]) for old, new in zip(facts, newer, strict=True)
    ]
    asked += [Asked("told", fact, ids[fact]) for fact in rest[:plain]]
    asked += [Asked("untold", fact) for fact in rest[plain:]]
    rng.shuffle(asked)
    return Life(tuple(turns), tuple(asked))


def _shuffled(rng: random.Random, names: Sequence[str]) -> list[str]:
    return rng.sample(list(names), len(names))


def _evenings(
    rng: random.Random,
    days: int,
    lines: int,
    older: Sequence[Fact],
    newer: Sequence[Fact],
    plain: Sequence[Fact],
) -> tuple[list[Turn], dict[Fact, str]]:
    """Return the turns of all evenings and the id of each statement; changes come later."""
    told: dict[int, list[Fact]] = {day: [] for day in range(days)}
    half = days // 2
    for old, new in zip(older, newer, strict=True):
        told[rng.randrange(half)].append(old)
        told[rng.randrange(half, days)].append(new)
    for fact in plain:
        told[rng.randrange(days)].append(fact)
    turns: list[Turn] = []
    ids: dict[Fact, str] = {}
    for day in range(days):
        present = rng.sample(PATRONS, rng.randint(4, 8))
        spoken: list[Fact | None] = [*told[day], *[None] * max(0, lines - len(told[day]))]
        rng.shuffle(spoken)
        at = START + day * DAY + rng.uniform(0, 3600)
        for fact in spoken:
            at += rng.uniform(5, 90)
            turn = _turn(rng, f"t{len(turns)}", fact, present, at)
            turns.append(turn)
            if fact:
                ids[fact] = turn.id
    return turns, ids


def _turn(
    rng: random.Random, turn_id: str, fact: Fact | None, present: Sequence[str], at: float
) -> Turn:
    if fact:
        return Turn(turn_id, fact.teller, fact.text, at)
    return Turn(turn_id, rng.choice(present), small_talk(rng), at)


def small_talk(rng: random.Random) -> str:
    """Return a line without any fact that is asked for."""
    if rng.random() < 0.25:
        return rng.choice(PHRASES["chatter"])
    fill = {name: rng.choice(_pool(name)) for name in PHRASES["pools"]}
    return rng.choice(SMALL_TALK).format(person2=rng.choice(PATRONS), **fill)


# -- search --------------------------------------------------------------------------------------


def found_figures(life: Life, rank: Callable[[str], Sequence[str]]) -> dict[str, Any]:
    """Return recall for told and changed facts, the share of latest facts, and time."""
    hits: dict[str, list[list[bool]]] = {"told": [], "changed": []}
    latest, times = [], []
    for asked in life.asked:
        if asked.kind == "untold":
            continue
        start = time.perf_counter()
        ids = list(rank(asked.fact.question)[:DEEP])
        times.append((time.perf_counter() - start) * 1000)
        hits[asked.kind].append([asked.evidence in ids[:cut] for cut in CUTS])
        if asked.older:
            latest.append(_above(ids, asked.evidence, asked.older))
    everything = hits["told"] + hits["changed"]
    return {
        "all": _recalls(everything),
        **{kind: _recalls(rows) for kind, rows in hits.items()},
        "latest_fact": round(float(np.mean(latest)), 4),
        "ms_p50": round(float(np.median(times)), 2),
    }


def _recalls(rows: Sequence[Sequence[bool]]) -> dict[str, float]:
    means = np.mean(rows, axis=0)
    return {f"R@{cut}": round(float(mean), 4) for cut, mean in zip(CUTS, means, strict=True)}


def _above(ids: Sequence[str], newest: str, older: str) -> bool:
    if newest not in ids:
        return False
    return older not in ids or ids.index(newest) < ids.index(older)


def run(seed: int, weeks: int, lines: int, questions: int) -> dict[str, Any]:
    """Run one life; return its figures."""
    life = make_life(seed, weeks, lines, questions)
    index = RecallIndex(":memory:")
    index.add("mudlife", life.turns)
    makers: dict[str, Callable[[str], Sequence[str]]] = {
        "bm25": bm25_ranking(life.turns),
        "static_vectors": vector_ranking(life.turns),
        "ours": lambda query: [hit.turn_id for hit in index.search("mudlife", query, DEEP)],
    }
    return {
        "seed": seed,
        "lines": len(life.turns),
        "patrons": len(PATRONS),
        "questions": dict(Counter(asked.kind for asked in life.asked)),
        "found": {name: found_figures(life, rank) for name, rank in makers.items()},
    }


def main() -> None:
    """Run each seed and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seeds", type=int, default=1, help="number of seeds, starting with --seed"
    )
    parser.add_argument("--weeks", type=int, default=4)
    parser.add_argument("--lines", type=int, default=120, help="lines per evening")
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.seeds)
    runs = [run(seed, options.weeks, options.lines, options.questions) for seed in seeds]
    json.dump({"runs": runs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
