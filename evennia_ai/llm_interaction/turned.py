"""Claims that a summary turns round: who owes whom, and whether it is so.

Each rule compares a sentence with a clause of the source that has the same words otherwise, so that
a paraphrase is left alone. The tables say which words deny, and how somebody says what they owe.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import regex

from evennia_ai.language.script import ENDS, akin, folded, is_unparted
from evennia_ai.language.tables import Table

_CLAUSE = regex.compile(rf"[,;:،؛\"{regex.escape(ENDS)}]+(?=\s|$)|[。！？，、；：]+|\n")
_WORD = regex.compile(r"\w[\w\p{M}]*(?:['’-]\w[\w\p{M}]*)*")
# Content words that a clause must hold before it can be turned round.
LEAST_WORDS = 2
# The share of them in a denial.
_DENIED = 0.8
_SIGNS = regex.compile(r"[\p{Han}\p{Katakana}\p{Hangul}]+")
# In scripts without spaces: characters of a name.
_LONGEST, _LEAST = 4, 2


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


def is_denied(
    stems: Collection[str], text: str, names: str, told: Iterable[Clause], table: Table
) -> bool:
    """Whether a sentence says the contrary of all clauses that hold its words.

    One of them has the same words, but for one that denies: `not only`, `never forget that` and
    `not until` leave a word over. The text is folded and without its names, which come apart.
    """
    if len(stems) < LEAST_WORDS or not table.get("speech", "not"):
        return False
    denies = table.expression("speech", "not")
    alike = [clause for clause in told if clause.share(stems) >= _DENIED]
    denied = {bool(denies.search(clause.text)) for clause in alike}
    if denied != {not denies.search(text)}:
        return False
    for clause in alike:  # they differ in one denial; one that affirms may tell more
        count = len(denies.findall(clause.text))
        plain = table.words("beside_not").union(_WORD.findall(clause.speaker))
        own, said = denies.sub(" ", text), denies.sub(" ", clause.text)
        is_same = _holds(said, own, plain) and (not count or _holds(f"{own} {names}", said, plain))
        if is_same and count + len(denies.findall(text)) == 1:
            return True
    return False


def _holds(text: str, other: str, plain: Collection[str]) -> bool:
    """Whether all words of another text stand in a text in some form, but for plain ones."""
    words = _WORD.findall(text)
    return all(
        word in plain
        or (word in text if is_unparted(word) else any(akin(word, each) for each in words))
        for word in _WORD.findall(other)
    )


def is_swapped(stems: Collection[str], text: str, told: Iterable[Clause], table: Table) -> bool:
    """Whether a sentence says that somebody is owed what they said they owe.

    `Konrad owes Oskar` where Oskar said `I owe Konrad`: Konrad begins the sentence, and not the
    clause. Of most that people do the contrary may be as true: they meet, marry and trade.
    """
    text = folded(text)
    if table.expression("speech", "by").search(text):
        return False
    owes, me = table.expression("speech", "owes"), table.expression("speech", "me")
    topic, joint = table.get("speech", "topic"), table.get("speech", "and")
    is_free = topic or table.data.get("cases") or is_unparted(text[:1])
    for clause in told:
        owed = owes.search(clause.text)
        if not owed or me.search(clause.text):
            continue
        who = rf"(?<!{joint}){regex.escape(clause.speaker)}"
        subject = _object(text, clause, table)
        if not subject or not regex.search(who, text.removeprefix(clause.speaker)):
            continue
        if topic and regex.match(topic, clause.text.partition(subject)[2]):
            continue  # somebody else owes something
        verbs = _WORD.findall(text.removeprefix(subject))[:2]
        if not is_free and not any(akin(verb, word) for verb in verbs for word in owed[0].split()):
            continue  # `Konrad gets the coins that Oskar owes`
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
            size for size in range(_LONGEST, _LEAST - 1, -1) if clause.text.find(text[:size]) > 0
        )
        return text[: next(sizes, 0)]
    first = next(iter(_WORD.findall(text)), "")
    # Where names have cases, the one of an object stays what it is.
    is_same = table.data.get("cases") and first in clause.names
    is_there = any(akin(first, name) for name in clause.names)
    return "" if is_same or first in table.words("stop") or not is_there else first
