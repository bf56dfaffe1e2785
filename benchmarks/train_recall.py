"""Learn the weights of the recall index's ranking (`evennia_ai/recall/weights.json`).

For each question the candidates' scores go through a softmax, and training maximises the share of
probability on the evidence turns (ListNet's top-one loss; Cao et al., ICML 2007), with an L2
penalty. Adversarial questions (category 5 of LoCoMo) are used with the speakers' names swapped,
which makes them answerable.

The file also records the figures of leaving one conversation out, and training on the others.

A second set of weights is for a crowd, where many people talk at once: neighbouring turns say
little, and much is said about people by others. It is learned on the same questions, asked of all
conversations merged into one, in which half of what people say about themselves is said by somebody
else; once with each conversation's turns in order, once in random order.

    python -m benchmarks.train_recall [path/to/locomo.json]
"""

import argparse
import hashlib
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import show
from benchmarks.recall import (
    ADVERSARIAL,
    CUTS,
    DEFAULT_DATA,
    Conversation,
    Question,
    read_conversations,
)
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.lexicon import parsed_query
from evennia_ai.recall.ranking import WEIGHTS, LinearModel, Reader

ROUNDS = 40
PENALTY = 0.1
# Features that only statements are ranked by.
OF_STATEMENTS = ("words_here", "asks")
# A crowd: share of own facts that somebody else tells, and lines per evening.
HEARSAY = 0.5
# Features of a turn's conversation and its position there, which mean nothing in a crowd.
_OF_TALK = re.compile(r"^open")
EVENING_LINES = 120
_OF_SELF = re.compile(r"\b(I'm|I am|I was|I've|I have|I|my|me|myself)\b", re.IGNORECASE)
_OF_OTHER = {
    "i'm": "{} is",
    "i am": "{} is",
    "i was": "{} was",
    "i've": "{} has",
    "i have": "{} has",
    "my": "{}'s",
}


@dataclass
class Example:
    """One question's candidates: features (n, d), which are evidence, and where it comes from."""

    conversation: int
    category: int
    features: np.ndarray
    evidence: np.ndarray
    training_only: bool = False


Asked = tuple[int, Question, bool]


def read_examples(conversations: Sequence[Conversation]) -> tuple[list[str], list[Example]]:
    """Return the names of the features and the examples of all questions."""
    names: list[str] = []
    examples = []
    for number, conversation in enumerate(conversations):
        asked = ((number, *each) for each in _questions(conversation))
        names, found = _examples(conversation.turns, asked)
        examples += found
    return names, examples


def read_crowd_examples(conversations: Sequence[Conversation]) -> tuple[list[str], list[Example]]:
    """Return the same for questions about all conversations merged, in order and not."""
    rng = random.Random(0)
    names: list[str] = []
    examples = []
    for in_order in (True, False):
        turns = crowd(conversations, rng, in_order)
        names, found = _examples(turns, _asked_in_crowd(conversations))
        examples += [each for each in found if each.evidence.any() and trains(each)]
    kept = [n for n, name in enumerate(names) if not _OF_TALK.search(name)]
    for example in examples:
        example.features = example.features[:, kept]
    return [names[n] for n in kept], examples


def _examples(turns: Sequence[Turn], asked: Iterable[Asked]) -> tuple[list[str], list[Example]]:
    index = RecallIndex(":memory:")
    index.add("talk", turns)
    seen = index._view(1, None)
    ids = [turn.id for turn in turns]
    names: list[str] = []
    examples = []
    for number, question, training_only in asked:
        query = parsed_query(question.text, seen.speakers.values())
        found = Reader(seen, query, index._embedder, index._stems).candidates()
        names = names or [name for name in found.features if name not in OF_STATEMENTS]
        places = (seen.numbers(found.positions) & 0xFFFFFFFF) - 1
        holds = np.array([ids[place] in question.evidence for place in places])
        matrix = np.array([found.features[name] for name in names], dtype=np.float32).T
        examples.append(Example(number, question.category, matrix, holds, training_only))
    return names, examples


def crowd(conversations: Sequence[Conversation], rng: random.Random, in_order: bool) -> list[Turn]:
    """Merge all conversations into one between all speakers, with some hearsay.

    Args:
        conversations: The conversations. Ids get the conversation's number as a prefix.
        rng: Decides who speaks next, and what is hearsay.
        in_order: Whether the turns of each conversation keep their order.
    """
    heads = [iter(each.turns) for each in conversations]
    order = [n for n, each in enumerate(conversations) for _ in each.turns]
    rng.shuffle(order)
    merged = [(n, next(heads[n])) for n in order]
    if not in_order:
        rng.shuffle(merged)
    speakers = sorted({turn.speaker for _, turn in merged})
    return [
        replace(_retold(turn, speakers, rng), id=f"{n}:{turn.id}", at=_evening(place), session=None)
        for place, (n, turn) in enumerate(merged)
    ]


def _evening(place: int) -> float:
    evening, line = divmod(place, EVENING_LINES)
    return evening * 86_400.0 + line * 60.0


def _retold(turn: Turn, speakers: Sequence[str], rng: random.Random) -> Turn:
    """Return a turn as it is, or with its speaker's own facts told by somebody else."""
    if rng.random() >= HEARSAY or not _OF_SELF.search(turn.text):
        return turn
    teller = rng.choice([name for name in speakers if name != turn.speaker])
    return replace(turn, speaker=teller, text=_of_other(turn.text, turn.speaker))


def _of_other(text: str, name: str) -> str:
    def named(found: re.Match[str]) -> str:
        return _OF_OTHER.get(found[0].lower(), "{}").format(name)

    return _OF_SELF.sub(named, text)


def _asked_in_crowd(conversations: Sequence[Conversation]) -> Iterable[Asked]:
    for number, conversation in enumerate(conversations):
        for question, training_only in _questions(conversation):
            evidence = frozenset(f"{number}:{each}" for each in question.evidence)
            yield number, replace(question, evidence=evidence), training_only


def _questions(conversation: Conversation) -> list[tuple[Question, bool]]:
    speakers = sorted({turn.speaker for turn in conversation.turns})
    found = []
    for question in conversation.questions:
        found.append((question, False))
        if question.category == ADVERSARIAL:
            text = _swapped(question.text, speakers)
            found.append((Question(text, ADVERSARIAL, question.evidence), True))
    return found


def _swapped(text: str, speakers: Sequence[str]) -> str:
    other = dict(zip(speakers, reversed(speakers), strict=True))
    pattern = "|".join(map(re.escape, speakers))
    return re.sub(rf"\b({pattern})\b", lambda match: other[match[0]], text)


def trains(example: Example) -> bool:
    """Return whether an example is used for training: honest and swapped adversarial questions."""
    return example.training_only or example.category != ADVERSARIAL


def learned(examples: Sequence[Example]) -> np.ndarray:
    """Learn weights for raw features, with Adam on standardised ones.

    Returns:
        Weights, shape (d,).
    """
    sample = np.concatenate([example.features for example in examples])
    scale = sample.std(axis=0) + 1e-3
    centre = sample.mean(axis=0)
    inputs = [((e.features - centre) / scale).astype(np.float32) for e in examples]
    targets = [e.evidence / e.evidence.sum() for e in examples]
    weights = np.zeros(sample.shape[1])
    first, second, step = np.zeros_like(weights), np.zeros_like(weights), 0
    rng = np.random.default_rng(0)
    batches = max(1, len(examples) // 64)
    for number in range(ROUNDS):
        rate = 0.02 * (1 + np.cos(np.pi * number / ROUNDS)) / 2
        for batch in np.array_split(rng.permutation(len(examples)), batches):
            step += 1
            slope = PENALTY * weights + np.mean(
                [_slope(inputs[i], targets[i], weights) for i in batch], axis=0
            )
            first = 0.9 * first + 0.1 * slope
            second = 0.999 * second + 0.001 * slope**2
            near = first / (1 - 0.9**step)
            weights = weights - rate * near / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights / scale


def _slope(features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    scores = features @ weights
    chances = np.exp(scores - scores.max())
    return features.T @ (chances / chances.sum() - target)


def recall_rows(examples: Sequence[Example], weights: np.ndarray) -> list[tuple[int, list[float]]]:
    """Return category and recall at each cut of the examples that are not only for training."""
    rows = []
    for example in examples:
        if example.training_only:
            continue
        order = np.argsort(-(example.features @ weights), kind="stable")
        found = example.evidence[order]
        total = example.evidence.sum()
        rows.append((example.category, [found[:cut].sum() / total for cut in CUTS]))
    return rows


def left_out_weights(examples: Sequence[Example]) -> dict[int, np.ndarray]:
    """Return for each conversation's number the weights learned on all the others."""
    numbers = sorted({example.conversation for example in examples})
    return {
        number: learned([e for e in examples if e.conversation != number and trains(e)])
        for number in numbers
    }


def left_out_models(conversations: Sequence[Conversation]) -> list[LinearModel]:
    """Return for each of two or more conversations the model learned on all the others."""
    names, examples = read_examples(conversations)
    found = left_out_weights(examples)
    models = (dict(zip(names, found[n].tolist(), strict=True)) for n in range(len(conversations)))
    return [LinearModel({name: w for name, w in model.items() if w}) for model in models]


def left_out_figures(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the recall on each conversation with weights learned on the others."""
    rows = []
    for number, weights in left_out_weights(examples).items():
        rows += recall_rows([e for e in examples if e.conversation == number], weights)
    known = {category for category, _ in rows}
    groups = {"categories_1_to_4": {1, 2, 3, 4}} | {f"category_{n}": {n} for n in range(1, 6)}
    return {name: _means(rows, each) for name, each in groups.items() if each & known}


def _means(rows: Sequence[tuple[int, list[float]]], categories: set[int]) -> dict[str, float]:
    means = np.mean([shares for category, shares in rows if category in categories], axis=0)
    return {f"R@{cut}": round(float(mean), 4) for cut, mean in zip(CUTS, means, strict=True)}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, by which the benchmark knows what the weights have seen."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bias_of(examples: Sequence[Example], weights: np.ndarray) -> float:
    """Return the bias at which half of the turns above 0 are evidence, by bisection."""
    scores = np.concatenate([e.features @ weights for e in examples])
    holds = np.concatenate([e.evidence for e in examples])
    order = np.argsort(-scores)
    share = np.cumsum(holds[order]) / np.arange(1, len(order) + 1)
    above = np.flatnonzero(share >= 0.5)
    return -float(scores[order[above[-1] if len(above) else 0]])


def learned_data(names: Sequence[str], examples: Sequence[Example]) -> dict[str, Any]:
    """Return the left-out figures and the weights learned on all data, as stored."""
    training = [example for example in examples if trains(example)]
    weights = learned(training)
    return {
        "one_conversation_left_out": left_out_figures(examples),
        "bias": round(bias_of(training, weights), 4),
        "weights": {n: round(float(w), 5) for n, w in zip(names, weights, strict=True) if w},
    }


def main() -> None:
    """Learn, write the weights, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=DEFAULT_DATA)
    options = parser.parse_args()
    conversations = read_conversations(options.data)
    shipped = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    data = {
        "trained_by": "benchmarks/train_recall.py",
        "trained_on": f"{options.data.name}: questions of LoCoMo (CC BY-NC 4.0); no text kept",
        "trained_on_sha256": digest(options.data),
        **learned_data(*read_examples(conversations)),
        "crowd": learned_data(*read_crowd_examples(conversations)),
        **{name: shipped[name] for name in ("statement", "statement by words")},
    }
    name = "one_conversation_left_out"
    show({name: data[name], "crowd": data["crowd"][name]})
    WEIGHTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
