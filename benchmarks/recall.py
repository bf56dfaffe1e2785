"""How well and how fast the recall index finds: LoCoMo evidence recall, latency, size.

Prints one JSON object. No model is called: the question is the query, and what is counted is
the share of a question's evidence turns among the first k found (mean over questions).

    python benchmarks/recall.py [path/to/locomo.json] [--mem0] [--no-latency]

LoCoMo: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL
2024. Categories 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop; 5 (adversarial) asks about
the wrong speaker on purpose and is reported apart.
"""

import argparse
import atexit
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evennia_ai.embedding import default_embedder  # noqa: E402
from evennia_ai.recall import RecallIndex, Turn  # noqa: E402
from evennia_ai.recall.ranking import WEIGHTS  # noqa: E402
from evennia_ai.recall.text import STOP_WORDS, stem, words  # noqa: E402

DEFAULT_DATA = ROOT.parent / "shared" / "data" / "locomo-dev.json"
CUTS = (5, 10, 20)
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}
ADVERSARIAL = 5
Ranking = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Question:
    """One question, its category and the ids of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """One conversation and what is asked about it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read_conversations(path: Path) -> list[Conversation]:
    """Read LoCoMo; questions none of whose evidence names a turn are left out."""
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
    return Turn(raw["dia_id"], raw["speaker"], text, moment, session=session)


def _question(raw: dict[str, Any], known: set[str]) -> Question:
    named = {part for each in raw["evidence"] for part in re.split(r"[;,\s]+", each)}
    return Question(raw["question"], int(raw["category"]), frozenset(named & known))


def bm25_ranking(turns: Sequence[Turn]) -> Ranking:
    """Plain BM25 (k1 1.2, b 0.75) over speaker and text, stemmed, stop words out."""
    documents = [_stems(f"{turn.speaker} {turn.text}") for turn in turns]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, document in enumerate(documents):
        for word in set(document):
            holders[word].append(number)
    mean = statistics.fmean(map(len, documents))

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
    """Cosine of the static vectors of query and turn (with its speaker) alone."""
    embed = default_embedder().embed
    vectors = embed([f"{turn.speaker}: {turn.text}" for turn in turns])

    def rank(query: str) -> list[str]:
        order = np.argsort(-(vectors @ embed([query])[0]), kind="stable")
        return [turns[number].id for number in order]

    return rank


def our_ranking(turns: Sequence[Turn]) -> Ranking:
    """The recall index as it ships."""
    index = RecallIndex(":memory:")
    index.add("talk", turns)
    return lambda query: [hit.turn_id for hit in index.search("talk", query, limit=max(CUTS))]


def mem0_ranking(turns: Sequence[Turn]) -> Ranking:
    """Embedded Mem0's own search (Qdrant on disk, the static embedder), a memory a turn."""
    from evennia_ai.rag_memory.engine import Engine

    folder = tempfile.mkdtemp()
    engine = Engine(folder, embedder=default_embedder())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    items = [
        {"source_id": turn.id, "text": f"{turn.speaker}: {turn.text}", "metadata": {}}
        for turn in turns
    ]
    engine.add("talk", items)

    def rank(query: str) -> list[str]:
        found = engine.search("talk", query, max(CUTS), None)
        return [memory["metadata"]["source_id"] for memory in found]

    return rank


def evidence_recall(
    conversations: Sequence[Conversation], make: Callable[[Sequence[Turn]], Ranking]
) -> dict[str, Any]:
    """Mean recall of a ranking at each cut: headline, by category, by conversation."""
    groups: dict[str, list[list[float]]] = defaultdict(list)
    for conversation in conversations:
        rank = make(conversation.turns)
        for question in conversation.questions:
            shares = _shares(rank(question.text), question.evidence)
            for group in _groups(conversation, question):
                groups[group].append(shares)
    return {group: _means(rows) for group, rows in sorted(groups.items())}


def _groups(conversation: Conversation, question: Question) -> tuple[str, ...]:
    if question.category == ADVERSARIAL:
        return ("category_5_adversarial", "all_5_categories")
    name = f"category_{question.category}_{CATEGORIES[question.category]}"
    headline = "categories_1_to_4"
    return (headline, name, f"{headline}/{conversation.name}", "all_5_categories")


def _shares(found: Sequence[str], evidence: frozenset[str]) -> list[float]:
    return [len(evidence.intersection(found[:cut])) / len(evidence) for cut in CUTS]


def _means(rows: list[list[float]]) -> dict[str, float]:
    means = np.mean(rows, axis=0)
    found = {f"R@{cut}": round(float(mean), 4) for cut, mean in zip(CUTS, means, strict=True)}
    return {**found, "questions": len(rows)}


def speed(conversations: Sequence[Conversation], size: int, searches: int) -> dict[str, Any]:
    """Adding `size` turns one talk after the other, then searching; milliseconds and bytes."""
    turns = _many_turns(conversations, size)
    rng = random.Random(7)
    asked = [q.text for c in conversations for q in c.questions]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recall.sqlite"
        index = RecallIndex(path)
        add_ms = _timed(lambda: _add_in_batches(index, turns)) / size
        one_ms = _percentiles([_timed(lambda t=t: index.add("s", [t])) for t in _extra(turns)])
        first_ms = _timed(lambda: index.search("s", asked[0]))
        times = [_timed(lambda q=q: index.search("s", q)) for q in rng.choices(asked, k=searches)]
        index.close()
        size_bytes = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "turns": size,
        "add_ms_per_turn": round(add_ms, 4),
        "add_one_by_one_ms": one_ms,
        "first_search_ms": round(first_ms, 1),
        "search_ms": _percentiles(times),
        "bytes_per_turn": round(size_bytes / size),
        "text_bytes_per_turn": round(sum(len(t.text.encode()) for t in turns) / size),
    }


def _many_turns(conversations: Sequence[Conversation], size: int) -> list[Turn]:
    """Turns of the kind, varied: each word may be swapped for another of the corpus."""
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


def _add_in_batches(index: RecallIndex, turns: Sequence[Turn]) -> None:
    for start in range(0, len(turns), 100):
        index.add("s", turns[start : start + 100])


def _extra(turns: Sequence[Turn]) -> list[Turn]:
    last = float(turns[-1].at or 0)
    return [Turn(f"x{n}", t.speaker, t.text, last + n, "x") for n, t in enumerate(turns[:200])]


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    values = np.percentile(times, [50, 95, 99])
    return {f"p{at}": round(float(v), 3) for at, v in zip((50, 95, 99), values, strict=True)}


def main() -> None:
    """Run everything and print JSON."""
    options = _options()
    conversations = read_conversations(options.data)
    makers = {"bm25": bm25_ranking, "static_vectors": vector_ranking, "ours": our_ranking}
    if options.mem0:
        makers["mem0_embedded"] = mem0_ranking
    report: dict[str, Any] = {
        "conversations": len(conversations),
        "evidence_recall": {
            name: evidence_recall(conversations, make) for name, make in makers.items()
        },
        "one_conversation_left_out": json.loads(WEIGHTS.read_text())["one_conversation_left_out"],
    }
    if options.latency:
        report["speed"] = [speed(conversations, size, 300) for size in options.sizes]
    print(json.dumps(report, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--mem0", action="store_true", help="measure embedded Mem0 as well")
    parser.add_argument("--no-latency", dest="latency", action="store_false")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    return parser.parse_args()


if __name__ == "__main__":
    main()
