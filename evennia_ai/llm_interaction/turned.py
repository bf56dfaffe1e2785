"""Claims that a summary turns round: who did it to whom, whether it is so, what it is called.

Each rule compares a sentence with a clause of the source that has the same words otherwise, so that
a paraphrase is left alone. The tables say which words deny, and what stands behind a name.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

from evennia_ai.language.script import ENDS, akin, folded, is_unparted, meets
from evennia_ai.language.tables import Table

_CLAUSE = regex.compile(rf"[,;:،؛\"{regex.escape(ENDS)}]+(?=\s|$)|[。！？，、；：]+|\n")
_WORD = regex.compile(r"\w[\w\p{M}]*(?:['’-]\w[\w\p{M}]*)*")
_DIGIT = regex.compile(r"\d")
_MARKS = regex.compile(r"[\p{P}\n]+")
# Content words that a clause must hold before it can be turned round.
LEAST_WORDS = 2
# The share of them in a denial.
_DENIED = 0.8
# Letters with which the forms of a name begin.
_BEGIN = 4
_SIGNS = regex.compile(r"[\p{Han}\p{Katakana}\p{Hangul}]+")
# In scripts without spaces: characters of a name, and of what is the same on each side of it.
_NAME, _LONGEST, _BESIDE = regex.compile(r"[\p{Han}\p{Katakana}ー]+"), 4, 2


@dataclass(frozen=True)
class Clause:
    """A part of a line, folded: who said it, its words, its names but the first, its stems."""

    speaker: str
    text: str
    names: frozenset[str]
    stems: frozenset[str]

    def share(self, stems: Collection[str]) -> float:
        """The share of some stems that stand here in some form."""
        held = (
            stem in self.stems
            or any(akin(stem, own) for own in self.stems)
            or (_SIGNS.fullmatch(stem) and {*stem} <= {*self.text})
            for stem in stems
        )
        return sum(map(bool, held)) / max(1, len(stems))


def clauses(text: str) -> Iterator[str]:
    """The clauses of a text."""
    return filter(None, (part.strip() for part in _CLAUSE.split(text)))


def clause_of(speaker: str, text: str, stems: Iterable[str]) -> Clause:
    """A clause of what somebody said; without case any of its words may be a name."""
    inner = [word for word in _WORD.findall(text)[1:] if not word[0].islower()]
    return Clause(folded(speaker), folded(text), frozenset(map(folded, inner)), frozenset(stems))


def is_denied(stems: Collection[str], text: str, told: Iterable[Clause], table: Table) -> bool:
    """Whether a sentence says the contrary of all clauses that hold its words."""
    if len(stems) < LEAST_WORDS or len(list(clauses(text))) > 1 or not table.get("speech", "not"):
        return False
    denies = table.expression("speech", "not")
    said = {bool(denies.search(clause.text)) for clause in told if clause.share(stems) >= _DENIED}
    return said == {not denies.search(folded(text))}


def is_swapped(stems: Collection[str], text: str, told: Iterable[Clause], table: Table) -> bool:
    """Whether a sentence gives what somebody told of themselves to whom they did it to.

    `Konrad owes Oskar` where Oskar said `I owe Konrad`: Konrad begins the sentence, and not the
    clause, in which nobody does anything to the speaker.
    """
    text = folded(text)
    if not table.get("speech", "by") or table.expression("speech", "by").search(text):
        return False
    me, own = table.expression("speech", "me"), table.words("first_person_owner")
    topic = table.get("speech", "topic")
    for clause in told:
        subject = _object(text, clause, table)
        is_other = clause.speaker and clause.speaker in text.removeprefix(clause.speaker)
        if not (subject and is_other) or me.search(clause.text):
            continue
        before, _, behind = clause.text.partition(subject)
        if own.intersection(_WORD.findall(before)) or (topic and regex.match(topic, behind)):
            continue  # somebody else does something: `my sister Wilma keeps goats`
        rest = [stem for stem in stems if not akin(stem, subject) and stem not in subject]
        if len(rest) >= LEAST_WORDS and clause.share(rest) == 1:
            return True
    return False


def _object(text: str, clause: Clause, table: Table) -> str:
    """The name that a sentence begins with, as its subject, if it stands within a clause."""
    if topic := table.get("speech", "topic"):
        begin = regex.match(rf"(\w+?)(?:{topic})", text)
        return begin[1] if begin and clause.text.find(begin[1]) > 0 else ""
    if is_unparted(text[:1]):
        sizes = (
            size for size in range(_LONGEST, _BESIDE - 1, -1) if clause.text.find(text[:size]) > 0
        )
        return text[: next(sizes, 0)]
    first = next(iter(_WORD.findall(text)), "")
    # Where names have cases, the one of an object stays what it is.
    is_same = table.data.get("cases") and first in clause.names
    is_there = any(akin(first, name) for name in clause.names)
    return "" if is_same or first in table.words("stop") or not is_there else first


def replaced(text: str, source: Sequence[str], table: Table) -> tuple[str, ...]:
    """The new names of a sentence that stand where the source has another between the same words.

    `source` are its lines, in the language of the table.
    """
    if is_unparted(text):
        return tuple(_replaced_signs(text, "\n".join(source), table))
    if not table.get("speech", "behind_name"):
        return ()
    rows = [_words(told) for line in source for told in clauses(line)]
    names = []
    for part in clauses(text):
        places = list(_WORD.finditer(part))
        words = _words(part)
        names += [
            place[0]
            for at, place in enumerate(places, 1)
            if not any(_is_form(words[at], word) for row in rows for word in row)
            and folded(place[0]) not in table.words("stop")
            and not _DIGIT.search(place[0])
            and table.expression("speech", "behind_name").match(part, place.end())
            and (place[0][0].isupper() or place[0].upper() == place[0].lower())
            and any(
                _is_slot(words, at, row, spot, table)
                for row in rows
                for spot in range(1, len(row) - 2)
            )
        ]
    return tuple(names)


def _is_form(word: str, other: str) -> bool:
    return word[:_BEGIN] == other[:_BEGIN] or meets(word, other)


def _words(text: str) -> list[str]:
    """The words of a clause between its ends, Hangul as letters, so that forms begin alike."""
    return ["", *_WORD.findall(unicodedata.normalize("NFD", folded(text))), "", ""]


def _is_slot(words: Sequence[str], at: int, row: Sequence[str], spot: int, table: Table) -> bool:
    """Whether a word stands between the same words as another in the source, one of which tells."""
    before, behind, second = words[at - 1], words[at + 1], words[at + 2]
    left, right = akin(before, row[spot - 1]), akin(behind, row[spot + 1])
    if row[spot] in words or not (left or right):
        return False
    common = table.words("stop") | {""}
    if left and right and {before, behind} - common:
        return True
    if right and behind not in common and akin(second, row[spot + 2]):
        return True
    return left and before in table.words("before_place")


def _replaced_signs(text: str, source: str, table: Table) -> Iterator[str]:
    """As `replaced`, where words have no spaces: signs between the same pairs of signs."""
    said, told = (_MARKS.sub("。", "".join(folded(each).split())) for each in (text, source))
    for called in table.expression("speech", "called").finditer(said):
        if (name := said[called.end() :][:_LONGEST]) not in told:
            yield name
    behind = table.expression("speech", "behind_name")
    for size in range(1, _LONGEST + 1):
        for at in range(_BESIDE, len(said) - size):
            end = at + size
            name, left, right = said[at:end], said[at - _BESIDE : at], said[end : end + _BESIDE]
            if not (_NAME.fullmatch(name) and behind.match(said, end)):
                continue
            # One sign is part of a name.
            if size == 1 and not (_NAME.match(left[-1]) or _NAME.match(right[:1])):
                continue
            edges = ((at, end),) if size > 1 else ((at - 1, end), (at, end + 1))
            if any(said[start:stop] in told for start, stop in edges):
                continue
            other = regex.escape(left) + f"({_NAME.pattern})" + regex.escape(right)
            others = (each for each in regex.findall(other, told) if len(each) <= _LONGEST)
            yield from [name] * any({*name}.isdisjoint(each) for each in others)
