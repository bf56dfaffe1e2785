"""Measure the guard on summaries: true sentences that it strikes, false ones that it does not.

LoCoMo's file has summaries of its sessions, written by a large model: they are the true ones. False
sentences are planted behind the beginning of a true summary: another name or number in a true
sentence, sentences of another conversation as they are or with the speakers of this one, and
relations and deeds that nobody spoke of. `swapped` exchanges the two speakers of a true sentence,
which no comparison of words can see. Prints JSON.

    python -m benchmarks.summary_guard locomo10.json --around 2

`--around` is the number of sessions before and after that the source holds, too.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evennia_ai.history.frames import heard_line
from evennia_ai.llm_interaction.grounding import Ground, grounded

STRANGERS = ("Gareth", "Ludwig", "Mirabel", "Osric", "Tamsin", "Paris", "Norwich", "Hestia")
INVENTED = (
    "{a} and {b} have a son.",
    "{a} is {b}'s sister.",
    "{a} is married to {b}.",
    "{a} and {b} are twins.",
    "{b} works as a smith and sells swords.",
    "{a} stole a purse from {b} at the harbour.",
    "{b} killed the dragon in the old tower.",
    "{a} owes {b} a barrel of ale.",
)
_SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)")
_NUMBER = re.compile(r"(?<![\w:])(?:\d{1,2}|two|three|four|five|six|seven)(?![\w:])")


@dataclass
class Session:
    """One session of a conversation with its true summary."""

    conversation: str
    speakers: tuple[str, str]
    true: list[str]
    source: str


def sessions(path: Path, around: int) -> Iterator[Session]:
    """The sessions of a LoCoMo file that have a summary."""
    for item in json.loads(path.read_text(encoding="utf-8")):
        talk = item["conversation"]
        speakers = (talk["speaker_a"], talk["speaker_b"])
        for key, summary in (item.get("session_summary") or {}).items():
            number = int(key.split("_")[1])
            near = range(number - around, number + around + 1)
            lines = [line for each in near for line in _lines(talk, each)]
            yield Session(item["sample_id"], speakers, _SENTENCE.findall(summary), "\n".join(lines))


def _lines(talk: dict[str, Any], number: int) -> Iterator[str]:
    turns = talk.get(f"session_{number}")
    if not turns:
        return
    clock, _, day = talk[f"session_{number}_date_time"].partition(" on ")
    yield f"[{datetime.strptime(day.replace(',', ''), '%d %B %Y').date().isoformat()}]"
    yield clock
    for turn in turns:
        seen = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        name = turn["speaker"]
        yield heard_line(name, f"o1.{name.lower()}", "say", turn["text"] + seen)


def planted(session: Session, others: list[Session], rng: random.Random) -> Iterator[Any]:
    """False sentences about a session, each with its kind."""
    one, two = session.speakers
    for sentence in rng.sample(session.true, min(3, len(session.true))):
        if found := re.search(rf"\b(?:{one}|{two})\b", sentence):
            before, behind = sentence[: found.start()], sentence[found.end() :]
            yield "name", f"{before}{rng.choice(STRANGERS)}{behind}"
        if found := _NUMBER.search(sentence):
            before, behind = sentence[: found.start()], sentence[found.end() :]
            yield "number", f"{before}{rng.choice((41, 57, 63, 88))}{behind}"
        if one in sentence and two in sentence:
            yield "swapped", sentence.replace(one, "\0").replace(two, one).replace("\0", two)
    for other in rng.sample(others, min(2, len(others))):
        sentence = rng.choice(other.true)
        yield "other conversation", sentence
        first, second = other.speakers
        yield "other conversation, these names", sentence.replace(first, one).replace(second, two)
    for invented in rng.sample(INVENTED, 4):
        yield "invented", invented.format(a=one, b=two)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--around", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=5, help="examples of each kind of error")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    found = list(sessions(options.file, options.around))
    true, rules, wrong = 0, Counter[str](), list[str]()
    kinds, caught = Counter[str](), Counter[str]()
    missed: dict[str, list[str]] = {}
    for session in found:
        ground = Ground(session.source)
        result = grounded(" ".join(session.true), ground)
        true += result.sentences
        rules.update(each.rule for each in result.struck)
        wrong += [each.sentence for each in result.struck]
        others = [each for each in found if each.conversation != session.conversation]
        for kind, sentence in planted(session, others, rng):
            result = grounded(" ".join([*session.true[:3], sentence]), ground)
            kinds[kind] += 1
            if any(each.sentence == sentence for each in result.struck):
                caught[kind] += 1
            else:
                missed.setdefault(kind, []).append(sentence)
    figures = {
        "true_sentences": true,
        "true_struck": rules.total(),
        "true_struck_share": round(rules.total() / max(1, true), 4),
        "true_struck_by_rule": dict(rules),
        "false_struck_share": {kind: round(caught[kind] / kinds[kind], 3) for kind in kinds},
        "false_sentences": dict(kinds),
        "true_that_were_struck": wrong[: options.shown],
        "false_that_were_kept": {kind: some[: options.shown] for kind, some in missed.items()},
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
