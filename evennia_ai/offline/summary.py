"""Extractive summaries: the sentences that hold most names, numbers, places and promises."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from evennia_ai.offline.prose import NUMBER, is_nonsense, is_question, names_in, sentences
from evennia_ai.offline.transcript import (
    SUMMARY,
    Line,
    is_framed,
    told_lines,
    unquoted,
    without_echo,
)
from evennia_ai.recall.text import STOP_WORDS, words

MARK = "[MESSAGES TO COMPACT]"
EARLIER_MARK = "[EARLIER SUMMARY]"
# Tool calls behind what the assistant said; how it worked is no part of what happened.
_CALLS = re.compile(r"\s*\[calls .*\]$")
_CALLED = re.compile(r"^tool ([\w.]{1,60}):", re.MULTILINE)
MAX_WORDS = 480
MAX_SENTENCES = 6000
SHARE = 0.5  # of the input's words, so that a summary is always clearly shorter
_PROMISE = re.compile(
    r"\b(promise\w*|swear|swore|vow\w*|will|shall|must|owe\w*|agreed?|decid\w+|plan\w*|going to|"
    r"need\w*|want\w*|never|always|remember|secret|password)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“'‘][^\"”'’]{3,80}[\"”'’]")
_SMALL = re.compile(
    r"^(?:hello|hi|hey|greetings|good (?:day|morning|evening|night)|thanks?|thank you|bye|farewell|"
    r"i(?:'ll| will) (?:remember|keep)|noted|well met|welcome|is that so|i don['’]t know)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    order: int
    who: str
    text: str
    density: float

    @property
    def size(self) -> int:
        return len(self.text.split()) + bool(self.who)


def is_summary_request(user: str) -> bool:
    """Whether the user message of a request asks for a summary."""
    return user.lstrip().startswith((MARK, EARLIER_MARK))


def summarise(user: str) -> str:
    """A plain-text summary of the messages of a summary request.

    At most `MAX_WORDS` words and never more than `SHARE` of the input's: the sentences densest in
    facts first, in the order they were said, then the next densest while there is room.
    """
    body = user.lstrip().replace(EARLIER_MARK, "", 1).replace(MARK, "", 1).strip()
    budget = min(MAX_WORDS, int(SHARE * len(body.split())))
    found = _distinct(_sentences(body))
    chosen = _chosen(found, max(budget, 6))
    if not chosen:
        return _nothing_said(body, max(budget, 6))
    middle = sorted(sentence.density for sentence in chosen)[len(chosen) // 2]
    dense = [sentence for sentence in chosen if sentence.density >= middle]
    others = [sentence for sentence in chosen if sentence.density < middle]
    return _cut("\n".join((*_rows(dense), *_rows(others))), max(budget, 6))


def _nothing_said(body: str, budget: int) -> str:
    """What to say of messages that hold no sentence: which tools were used, or their beginning."""
    used = sorted(set(_CALLED.findall(body[: MAX_SENTENCES * 100])))
    return f"Tools were used: {', '.join(used)}." if used else _cut(body, budget)


def _sentences(body: str) -> Iterator[_Sentence]:
    order = 0
    for row in body.splitlines()[:MAX_SENTENCES]:
        for line in _lines(row):
            for text in sentences(line.text):
                forged = not line.who and line.verb == "assistant" and is_framed(text)
                if order < MAX_SENTENCES and not (forged or is_nonsense(text)):
                    yield _Sentence(order, line.who, text, _density(line, text))
                    order += 1


def _lines(row: str) -> list[Line]:
    """What a row tells; what the assistant quoted of others stands in their own rows."""
    row = row.strip()
    if spoken := re.match(r"(?:\[[^\]]*\] )?(assistant|tool\b[^:]{0,60}|system|user): (.*)", row):
        said = without_echo(unquoted(_CALLS.sub("", spoken.group(2))))
        if spoken.group(1).startswith("tool") or not said:
            return []
        return [Line("", said, "assistant", source=SUMMARY)]
    return told_lines(row, source=SUMMARY)


def _density(line: Line, text: str) -> float:
    """Facts per sentence, a little per word: names, numbers, content words, promises, quotes."""
    if _SMALL.match(text):
        return 0.05
    found = words(text)
    telling = len({word for word in found if word not in STOP_WORDS})
    marks = 1.5 * bool(_PROMISE.search(text)) + bool(_QUOTED.search(text))
    facts = 2.0 * len(names_in(text)) + 2.0 * len(NUMBER.findall(text)) + 0.15 * telling + marks
    factor = 0.4 if is_question(text) else 0.5 if line.verb == "assistant" else 1.0
    return factor * (facts + 0.1) / math.sqrt(4 + len(found))


def _distinct(found: Iterator[_Sentence]) -> list[_Sentence]:
    seen: dict[str, _Sentence] = {}
    for sentence in found:
        key = re.sub(r"\W+", " ", sentence.text).strip().lower()
        if key and (key not in seen or seen[key].density < sentence.density):
            seen[key] = sentence
    return list(seen.values())


def _chosen(found: list[_Sentence], budget: int) -> list[_Sentence]:
    chosen: list[_Sentence] = []
    for sentence in sorted(found, key=lambda s: (-s.density, s.order)):
        if sentence.size <= budget and (sentence.density > 0.05 or not chosen):
            chosen.append(sentence)
            budget -= sentence.size
    return chosen


def _rows(chosen: list[_Sentence]) -> Iterator[str]:
    """Rows ``Alice: one sentence. Another.``, in the order things were said."""
    who, row = "", ""
    for sentence in sorted(chosen, key=lambda s: s.order):
        if row and sentence.who == who and (who or not is_framed(f"{row} {sentence.text}")):
            row += " " + sentence.text
            continue
        if row:
            yield row
        who = sentence.who
        row = f"{who}: {sentence.text}" if who else sentence.text
    if row:
        yield row


def _cut(text: str, limit: int) -> str:
    rows: list[str] = []
    for row in text.splitlines():
        parts = row.split()[:limit]
        limit -= len(parts)
        if parts:
            rows.append(" ".join(parts))
    return "\n".join(rows)
