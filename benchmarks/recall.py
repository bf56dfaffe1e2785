"""Measure the recall index: LoCoMo evidence recall, latency and size. Prints JSON.

No model is called. The question is the query, and the result is the share of a question's evidence
turns among the first k hits (mean over questions).

    python -m benchmarks.recall [path/to/locomo.json] [--statements path/to/locomo_plus.json]

With `--statements` only what bears on a statement is measured: LoCoMo-Plus has pairs of a cue, one
or two lines, and a statement said weeks later that the cue bears on. The cue is put into the middle
of the first conversation, and `any@10` is how often one of its lines is among the ten best hits.

For the conversations on which the shipped weights were learned, the main figure is `ours_left_out`:
each conversation is ranked with weights learned on the others. `ours_shipped` has seen the answers
of those conversations and does not measure them. For any other file it is the main figure.

LoCoMo: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
Categories 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop; 5 (adversarial) asks about the
wrong speaker on purpose and is reported separately.
"""

import argparse
import atexit
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.figures import show, spread
from evennia_ai.language.words import STOP_WORDS, stem, words
from evennia_ai.rag_memory import Mem0Backend
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.embedding import default_embedder
from evennia_ai.recall.ranking import WEIGHTS, LinearModel, default_model

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo-dev.json"
CUTS = (5, 10, 20)
AMONG = 10  # hits in which what bears on a statement is looked for
SIZES, SEARCHES = (10_000, 100_000), 300
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}
ADVERSARIAL = 5
HEADLINE = "categories_1_to_4"
Ranking = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Question:
    """A question, its category and the ids of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A conversation and the questions about it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read_conversations(path: Path) -> list[Conversation]:
    """Read LoCoMo, without the questions whose evidence names no turn."""
    if not path.is_file():
        sys.exit(f"`{path}` does not exist: give the path of a LoCoMo file in JSON.")
    return [_conversation(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [
        _turn(raw, number, talk[f"session_{number}_date_time"])
        for number in numbers
        for raw in talk[f"session_{number}"]
    ]
    known = {turn.id for turn in turns}
    questions = [_question(raw, known) for raw in sample["qa"]]
    return Conversation(
        sample["sample_id"], tuple(turns), tuple(q for q in questions if q.evidence)
    )


def _turn(raw: dict[str, Any], session: int, moment: str) -> Turn:
    caption = raw.get("blip_caption")
    text = raw["text"] + (" " + caption if caption else "")
    at = datetime.strptime(moment, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return Turn(raw["dia_id"], raw["speaker"], text, at, session=session)


def _question(raw: dict[str, Any], known: set[str]) -> Question:
    named = {part for each in raw["evidence"] for part in re.split(r"[;,\s]+", each)}
    return Question(raw["question"], int(raw["category"]), frozenset(named & known))


def bm25_ranking(turns: Sequence[Turn]) -> Ranking:
    """Rank by plain BM25 (k1 1.2, b 0.75) over speaker and text, stemmed, without stop words."""
    documents = [_stems(f"{turn.speaker} {turn.text}") for turn in turns]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, document in enumerate(documents):
        for word in set(document):
            holders[word].append(number)
    mean = fmean(map(len, documents))

    def rank(query: str) -> list[str]:
        scores = np.zeros(len(turns))
        for word in set(_stems(query)) & holders.keys():
            found = len(holders[word])
            rarity = np.log1p((len(turns) - found + 0.5) / (found + 0.5))
            for number in holders[word]:
                count = documents[number].count(word)
                norm = 1.2 * (0.25 + 0.75 * len(documents[number]) / mean)
                scores[number] += rarity * count * 2.2 / (count + norm)
        return [turns[number].id for number in np.argsort(-scores, kind="stable")]

    return rank


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def vector_ranking(turns: Sequence[Turn]) -> Ranking:
    """Rank by the cosine of the static vectors of query and turn (with its speaker)."""
    embed = default_embedder().embed
    vectors = embed([f"{turn.speaker}: {turn.text}" for turn in turns])

    def rank(query: str) -> list[str]:
        order = np.argsort(-(vectors @ embed([query])[0]), kind="stable")
        return [turns[number].id for number in order]

    return rank


def our_ranking(turns: Sequence[Turn], model: LinearModel | None = None) -> Ranking:
    """Rank with the recall index, with the shipped weights or others."""
    index = RecallIndex(":memory:", model=model)
    index.add("talk", turns)
    return lambda query: [hit.turn_id for hit in index.search("talk", query, limit=max(CUTS))]


def mem0_ranking(turns: Sequence[Turn]) -> Ranking:
    """Rank with embedded Mem0 (Qdrant on disk, the static embedder), one memory per turn."""
    folder = tempfile.mkdtemp()
    store = Mem0Backend(folder, embedder=default_embedder())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store._add("talk", [replace(turn, text=f"{turn.speaker}: {turn.text}") for turn in turns])
    store._near = 0.0

    def rank(query: str) -> list[str]:
        return [hit.turn_id for hit in store._search("talk", query, max(CUTS), None)]

    return rank


def evidence_recall(
    conversations: Sequence[Conversation], make: Callable[[Conversation], Ranking]
) -> dict[str, Any]:
    """Return the mean recall of a ranking at each cut: overall, by category and conversation."""
    groups: dict[str, list[list[float]]] = defaultdict(list)
    for conversation in conversations:
        rank = make(conversation)
        for question in conversation.questions:
            shares = _shares(rank(question.text), question.evidence)
            for group in _groups(conversation, question):
                groups[group].append(shares)
    return {group: _means(rows) for group, rows in sorted(groups.items())}


def _groups(conversation: Conversation, question: Question) -> tuple[str, ...]:
    if question.category == ADVERSARIAL:
        return ("category_5_adversarial", "all_5_categories")
    name = f"category_{question.category}_{CATEGORIES[question.category]}"
    return (HEADLINE, name, f"{HEADLINE}/{conversation.name}", "all_5_categories")


def _shares(found: Sequence[str], evidence: frozenset[str]) -> list[float]:
    return [len(evidence.intersection(found[:cut])) / len(evidence) for cut in CUTS]


def _means(rows: list[list[float]]) -> dict[str, float]:
    means = np.mean(rows, axis=0)
    found = {f"R@{cut}": round(float(mean), 4) for cut, mean in zip(CUTS, means, strict=True)}
    return {**found, "questions": len(rows)}


RANKINGS = {
    "bm25": bm25_ranking,
    "static_vectors": vector_ranking,
    "mem0_embedded": mem0_ranking,
    "ours_shipped": our_ranking,
}


STATEMENT_RANKINGS: dict[str, Callable[[Sequence[Turn]], Ranking]] = {
    "bm25": bm25_ranking,
    "ours": our_ranking,
    "ours_as_a_question": lambda turns: our_ranking(turns, default_model()),
}


def left_out(conversations: Sequence[Conversation]) -> dict[str, Any]:
    """Search each conversation with weights learned on the others."""
    from benchmarks.train_recall import left_out_models

    models = left_out_models(conversations)
    by_name = {each.name: model for each, model in zip(conversations, models, strict=True)}
    return evidence_recall(conversations, lambda each: our_ranking(each.turns, by_name[each.name]))


def weights_have_seen(path: Path) -> bool:
    """Return whether the shipped weights were learned on this file."""
    from benchmarks.train_recall import digest

    return json.loads(WEIGHTS.read_text(encoding="utf-8"))["trained_on_sha256"] == digest(path)


def statements(conversation: Conversation, path: Path) -> dict[str, Any]:
    """How often each ranking finds a line of a cue by the statement that it bears on."""
    pairs = json.loads(path.read_text(encoding="utf-8"))
    found = dict.fromkeys(STATEMENT_RANKINGS, 0)
    for pair in pairs:
        turns, cue = with_cue(conversation.turns, pair["cue_dialogue"].splitlines())
        statement = pair["trigger_query"].partition(": ")[2]
        for name, make in STATEMENT_RANKINGS.items():
            found[name] += not cue.isdisjoint(make(turns)(statement)[:AMONG])
    shares = {name: round(count / len(pairs), 3) for name, count in found.items()}
    return {"statements": len(pairs), "turns": len(conversation.turns), f"any@{AMONG}": shares}


def with_cue(turns: Sequence[Turn], lines: Sequence[str]) -> tuple[list[Turn], set[str]]:
    """A conversation with lines such as ``A: …`` in its middle, and the ids of these."""
    middle = len(turns) // 2
    speakers = dict(zip("AB", sorted({turn.speaker for turn in turns}), strict=True))
    cue = []
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        turn = replace(turns[middle], id=f"cue {number}", speaker=speakers[who], text=text)
        cue.append(turn)
    return [*turns[:middle], *cue, *turns[middle:]], {turn.id for turn in cue}


def speed(conversations: Sequence[Conversation], size: int) -> dict[str, Any]:
    """Add `size` turns, one conversation after the other, then search; milliseconds and bytes."""
    turns = _many_turns(conversations, size)
    rng = random.Random(7)
    asked = [q.text for c in conversations for q in c.questions]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recall.sqlite"
        index = RecallIndex(path)
        for start in range(0, size, 100):
            index.add("s", turns[start : start + 100])
        one_ms = spread([_timed(lambda t=t: index.add("s", [t])) for t in _extra(turns)])
        index.close()
        default_embedder().embed(["as at a start"])
        index = RecallIndex(path)
        first_ms = _timed(lambda: index.search("s", asked[0]))
        chosen = rng.choices(asked, k=SEARCHES)
        times = [_timed(lambda q=q: index.search("s", q)) for q in chosen]
        plain = _plain_fts5_ms(path, chosen)
        removals, searches = [], []
        for turn in turns[:: size // 20][:20]:
            removals.append(_timed(lambda turn=turn: index.remove("s", [turn.id])))
            searches.append(_timed(lambda: index.search("s", "Where did they go last summer?")))
        index.close()
        size_bytes = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return {
        "turns": size,
        "add_one_by_one_ms": one_ms,
        "first_search_ms": round(first_ms, 1),
        "search_ms": spread(times),
        "plain_fts5_bm25_ms": plain,
        "remove_ms": spread(removals),
        "search_after_removal_ms": spread(searches),
        "load_average_1_min": round(os.getloadavg()[0], 1),
        "bytes_per_turn": round(size_bytes / size),
    }


def _plain_fts5_ms(path: Path, queries: Sequence[str]) -> dict[str, float]:
    """Ask FTS5 for the ten best of the same turns by its own BM25, for comparison."""
    sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 10"
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text, detail=none)")
        with sqlite3.connect(path) as known:
            texts = known.execute("SELECT text FROM turns")
            db.executemany("INSERT INTO words (text) VALUES (?)", texts)
        matches = [" OR ".join(f'"{w}"' for w in words(q) if w not in STOP_WORDS) for q in queries]
        times = [_timed(lambda m=m: db.execute(sql, (m,)).fetchall()) for m in matches if m]
    db.close()
    return spread(times)


def _many_turns(conversations: Sequence[Conversation], size: int) -> list[Turn]:
    """Return varied turns: each word may be replaced by another one of the corpus."""
    rng = random.Random(11)
    pool = [turn for each in conversations for turn in each.turns]
    vocabulary = [word for turn in pool for word in turn.text.split()]
    made = []
    for number in range(size):
        source = pool[number % len(pool)]
        text = " ".join(
            rng.choice(vocabulary) if rng.random() < 0.3 else word for word in source.text.split()
        )
        made.append(Turn(f"t{number}", source.speaker, text, number * 60.0, number // 25))
    return made


def _extra(turns: Sequence[Turn]) -> list[Turn]:
    last = float(turns[-1].at or 0)
    return [Turn(f"x{n}", t.speaker, t.text, last + n, "x") for n, t in enumerate(turns[:200])]


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def main() -> None:
    """Run everything and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--statements", type=Path, help="LoCoMo-Plus; measures these alone")
    options = parser.parse_args()
    path, conversations = options.data, read_conversations(options.data)
    if options.statements:
        show(statements(conversations[0], options.statements))
        return
    has_seen = weights_have_seen(path)
    recalls = {
        name: evidence_recall(conversations, lambda each, make=make: make(each.turns))
        for name, make in RANKINGS.items()
    }
    if has_seen:
        recalls["ours_left_out"] = left_out(conversations)
    best = "ours_left_out" if has_seen else "ours_shipped"
    show(
        {
            "conversations": len(conversations),
            "headline": {"ranking": best, **recalls[best][HEADLINE]},
            "shipped_weights_have_seen_these": has_seen,
            "evidence_recall": recalls,
            "speed": [speed(conversations, size) for size in SIZES],
        }
    )


if __name__ == "__main__":
    main()
