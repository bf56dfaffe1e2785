"""Extractive summaries: the sentences that hold most names, numbers and telling words."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from evennia_ai.history.messages import (
    MESSAGES_LABEL,
    NOTICED,
    Note,
    read_talk_line,
    without_stamps,
)
from evennia_ai.language.script import folded, is_asked, is_unparted, size, words
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import capitals, content_words, sentences

MAX_WORDS = 480
MAX_SENTENCES, MAX_CHARS = 6000, 4000
SHARE = 0.5  # of the input's words, so that a summary is always clearly shorter
# What a name or a number counts, and any other telling word.
FACT, WORD = 2.0, 0.3
_NUMBER = regex.compile(r"\p{Nd}+")


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence of somebody, or a row of a summary that names nobody."""

    who: str
    text: str
    order: int


def summarise(user: str) -> str:
    """A plain-text summary of the messages of a request: at most `MAX_WORDS` or `SHARE` of words.

    It holds the sentences densest in facts, in the order they were said. Questions, greetings and
    what the assistant said itself are left out.
    """
    body = user.lstrip().replace(MESSAGES_LABEL, "", 1).strip()
    limit = room = max(6, min(MAX_WORDS, int(SHARE * size(body))))
    lines = body.splitlines()[:MAX_SENTENCES]
    # The telling sentences in order, each once, and how dense in facts they are.
    density, known = dict[_Said, float](), set[tuple[str, ...]]()
    told = [(who, part) for who, text in spoken_rows(lines) for part in sentences(text)]
    for order, (who, part) in enumerate(told[:MAX_SENTENCES]):
        key, names = tuple(words(part)), capitals(part)
        telling = set(content_words(part, table_of(part)))
        if key in known or is_asked(part) or telling <= set(map(folded, names)):
            continue  # as `Hello Aria!`
        known.add(key)
        facts = FACT * (len(names) + len(_NUMBER.findall(part))) + WORD * len(telling)
        density[_Said(who, part, order)] = facts / math.sqrt(4 + len(key))
    chosen: list[_Said] = []
    for sentence in sorted(density, key=lambda each: (-density[each], each.order)):
        length = size(sentence.text) + size(sentence.who)
        if length <= room:
            chosen.append(sentence)
            room -= length
    if chosen:
        return _rows(chosen)
    # One sentence that is too long, or nothing that tells anything.
    text = _rows(list(density)[:1]) or " ".join(text for _, text in spoken_rows(lines)) or body
    return text[: 2 * limit] if is_unparted(text) else " ".join(text.split()[:limit])


def spoken_rows(rows: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Who said what, row by row: of messages what people said, of summaries all."""
    for row in rows:
        text = without_stamps(row).removeprefix("- ")
        line = read_talk_line(text)
        if isinstance(line, Note):
            if line.label in (NOTICED, "user"):  # else of the assistant, a tool or the game
                yield "", line.text[:MAX_CHARS]
        elif line:
            yield line.who, line.text[:MAX_CHARS]
        elif text:
            yield "", text[:MAX_CHARS]


def _rows(chosen: list[_Said]) -> str:
    """Rows ``Alice: one sentence. Another.``, in the order things were said."""
    rows: list[str] = []
    ordered = sorted(chosen, key=lambda each: each.order)
    for who, sentences_of in itertools.groupby(ordered, key=lambda each: each.who):
        texts = [f"{each.text}." if each.text[-1].isalnum() else each.text for each in sentences_of]
        rows += [f"{who}: {' '.join(texts)}"] if who else texts
    return "\n".join(rows)
