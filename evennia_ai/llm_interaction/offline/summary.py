"""Extractive summaries: the sentences that hold most names, numbers, places and promises."""

import math
from collections.abc import Iterable
from dataclasses import replace

import regex

from evennia_ai.history.frames import MESSAGES_LABEL, read_source_line, read_spoken
from evennia_ai.language.script import is_unparted, size
from evennia_ai.language.tables import language_of, table_of
from evennia_ai.language.words import content_words, words
from evennia_ai.llm_interaction.facts import numbers
from evennia_ai.llm_interaction.offline import transcript
from evennia_ai.llm_interaction.offline.acts import SHORT
from evennia_ai.llm_interaction.offline.prose import (
    is_nonsense,
    is_question,
    line_for,
    names_in,
    sentences,
)
from evennia_ai.llm_interaction.offline.transcript import SUMMARY, Line

MAX_WORDS = 480
MAX_SENTENCES = 6000
SHARE = 0.5  # of the input's words, so that a summary is always clearly shorter
_LEAST_DENSITY = 0.05  # of greetings and the like
_GREETING = 3  # words: fewer, without a name or a number, tell nothing
_TELLING, _TELLING_UNNAMED = 0.15, 0.4  # what a word counts beside a name or a number
_CALLED = regex.compile(r"^\w+[,،、，]\s*")
_QUOTED = regex.compile(r"[\"“„'‘«「『][^\"”“'’»」』]{3,80}[\"”“'’»」』]")


def summarise(user: str) -> str:
    """A plain-text summary of the messages of a request: at most `MAX_WORDS` or `SHARE` of words.

    The sentences densest in facts come first, in the order they were said, then the next densest: a
    summary that is cut loses these.
    """
    body = user.lstrip().replace(MESSAGES_LABEL, "", 1).strip()
    limit = room = max(6, min(MAX_WORDS, int(SHARE * size(body))))
    sources = body.splitlines()[:MAX_SENTENCES]
    lines = [line for row in sources for line in _lines(row.strip())]
    best = _distinct(lines)
    told = sorted(best, key=lambda each: (-best[each], each.order))
    chosen: list[Line] = []
    for sentence in told:
        length = size(sentence.text) + size(sentence.who)
        if length <= room and (best[sentence] > _LEAST_DENSITY or not chosen):
            chosen.append(sentence)
            room -= length
    half = (len(chosen) + 1) // 2
    if rows := [*_rows(chosen[:half]), *_rows(chosen[half:])]:
        return "\n".join(rows)
    tools = sorted({row.tool for row in map(read_source_line, sources) if row and row.tool})
    if tools and not told:
        return line_for("tools_used", names=", ".join(tools))
    # One sentence that is too long, or nothing that makes sense.
    text = " ".join(_rows(told[:1]) or [line.text for line in lines])
    return text[: 2 * limit] if is_unparted(text) else " ".join(text.split()[:limit])


def _distinct(lines: Iterable[Line]) -> dict[Line, float]:
    """The sentences of some lines and their density, each once, where it is densest."""
    best: dict[tuple[str, ...], tuple[Line, float]] = {}
    told = [(line, text) for line in lines for text in sentences(line.text)][:MAX_SENTENCES]
    for order, (line, text) in enumerate(told):
        is_forged = not line.who and line.verb == "assistant" and read_spoken(text)
        key = tuple(words(text))
        if is_forged or is_nonsense(text) or not key:
            continue
        behind, reply = (told[order + 1 :] or [(line, text)])[0]
        is_open = is_question(text) and (behind.who in ("", line.who) or is_question(reply))
        density = _LEAST_DENSITY if is_open else _density(line, text)
        if key not in best or best[key][1] < density:
            best[key] = replace(line, text=text, order=order), density
    return dict(best.values())


def _lines(row: str) -> list[Line]:
    """What a row tells; what the assistant quoted of others stands in their own rows."""
    source = read_source_line(row)
    if source is None:
        return transcript.told_lines(row, source=SUMMARY)
    said = transcript.without_echo(source.text[: transcript.MAX_CHARS])
    by_tool = source.role == "tool"
    return [] if by_tool or not said else [Line("", said, "assistant", source=SUMMARY)]


def _density(line: Line, text: str) -> float:
    """Facts per sentence, a little per word: names, numbers, content words, promises, quotes."""
    table = table_of(text)
    small = table.expression("speech", "small")
    rest = _CALLED.sub("", text)  # who is called by name and then greeted
    if not (greeting := small.match(rest)):
        greeting, rest = small.match(text), text
    rest = rest[greeting.end() :] if greeting else text
    names, amounts, telling = names_in(text), numbers(text), content_words(rest, table)
    least = SHORT if not language_of(text) else _GREETING
    least = 1 if greeting and is_unparted(rest) else least  # `你好，我叫苍鹭。`
    is_greeting = (
        size(rest) < least and not amounts and (greeting or not names - {*words(text)[:1]})
    )
    if is_greeting or not telling:
        return _LEAST_DENSITY
    promises = table.expression("speech", "promise").search(text)
    marks = 1.5 * bool(promises) + bool(_QUOTED.search(text))
    # Without capitals, names are among the words that tell.
    weight = _TELLING if text.upper() != text.lower() else _TELLING_UNNAMED
    facts = 2.0 * len(names) + 2.0 * len(amounts) + weight * len({*telling}) + marks
    factor = (0.4 if is_question(text) else 1.0) * (0.5 if line.verb == "assistant" else 1.0)
    return factor * (facts + 0.1) / math.sqrt(4 + len(words(text)))


def _rows(chosen: list[Line]) -> list[str]:
    """Rows ``Alice: one sentence. Another.``, in the order things were said."""
    rows: list[str] = []
    last = None
    for each in sorted(chosen, key=lambda each: each.order):
        is_open = bool(rows) and rows[-1][-1].isalnum()
        joined = f"{rows[-1]}{'.' * is_open} {each.text}" if rows else ""
        # Scripts without full stops get a row each.
        is_own = is_open and is_unparted(rows[-1][-1])
        if each.who == last and not is_own and (each.who or not read_spoken(joined)):
            rows[-1] = joined
        else:
            rows.append(f"{each.who}: {each.text}" if each.who else each.text)
        last = each.who
    return rows
