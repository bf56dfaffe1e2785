"""Lore: facts of the world, found by keys and meaning, under two locks.

`know` says which assistants know a fact, `tell` who may hear it. A fact with a `tell` enters only
private turns whose every member passes: what is not in the prompt cannot be told. The locks are
checked by whoever calls; here it is decided what of a book a line finds, and why the rest is not.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from evennia_ai.cards.books import ALL, NOT_ALL, NOT_ANY, Book, Fact, is_pattern, pattern
from evennia_ai.language.script import folded, is_unparted, words_of
from evennia_ai.language.tables import DEFAULT, table_of
from evennia_ai.language.words import stem
from evennia_ai.recall.values import Turn

# A regular expression gets so long with a line; after so many overruns it is off.
PATTERN_S, OVERRUNS = 0.02, 3
# So many of them are tried on a line, and get so long together.
PATTERNS, LINE_S = 50, 0.1
# So many keys without words of their own are tried: those, and of scripts without spaces.
OTHERS = 2_000
OFF, UNKNOWN, SECRET = "off", "not known to {name}", "not for these ears"
FULL, TWICE = "no room", "said by another fact"
# Facts that share both locks, as they are indexed, by those and their ids.
Parts = dict[tuple[str, str], dict[str, Turn]]
# Why facts with a `know` and a `tell` may not be used; empty if they may.
Bars = Callable[[str, str], str]


def parts_of(facts: Iterable[Fact]) -> Parts:
    """The facts in use by their locks."""
    parts: Parts = defaultdict(dict)
    for fact in facts:
        if fact.on:
            text = f"{', '.join(fact.keys)}: {fact.text}"
            turn = Turn(fact.id, "", text, None, fact.id, kind="lore")
            parts[fact.know, fact.tell][fact.id] = turn
    return parts


@dataclass(frozen=True)
class Verdict:
    """A fact that a line may find, by which of its keys, and why it is not used, if it is not.

    One that is always used, or near in meaning, has no keys.
    """

    fact: Fact
    keys: tuple[str, ...] = ()
    why_not: str = ""


class Line:
    """A text in which keys are looked for, and the time that is left for regular expressions."""

    def __init__(self, text: str):
        self.text, self.folded = text, folded(text)
        code = table_of(text).code
        self.words = [_forms(word, code) for word in words_of(self.folded)]
        self.forms = frozenset().union(*self.words)
        self.fits: dict[str, bool] = {}
        self.left_s = LINE_S


def _forms(word: str, code: str) -> frozenset[str]:
    """A folded word and its stems."""
    return frozenset((word, stem(word), stem(word, code)))


@dataclass
class Finder:
    """Finds facts by keys; made anew when the facts change.

    Attributes:
        facts: The facts with the locks that hold for them.
        on_off: Called with a fact whose regular expression is not tried any more.
        overruns: How often the regular expressions of a key took too long.
    """

    facts: Sequence[Fact]
    on_off: Callable[[Fact], None] = lambda fact: None
    overruns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._first: dict[str, list[tuple[str, Fact]]] = {}
        self._other: list[tuple[str, Fact]] = []
        for fact in self.facts:
            for key in fact.keys:
                parts = () if is_pattern(key) or is_unparted(key) else _key_forms(key, fact.text)
                for form in parts[0] if parts else ():
                    self._first.setdefault(form, []).append((key, fact))
                self._other += [] if parts else [(key, fact)]

    def keys_in(self, line: Line) -> dict[str, tuple[str, ...]]:
        """The keys in a line, by id of their facts."""
        hits: dict[str, dict[str, None]] = {}
        first = (pair for form in line.forms for pair in self._first.get(form, ()))
        for key, fact in (*first, *self._other[:OTHERS]):
            if self._has(key, fact, line):
                hits.setdefault(fact.id, {}).setdefault(key)
        return {each: tuple(keys) for each, keys in hits.items()}

    def _fits(self, key: str, fact: Fact, line: Line) -> bool:
        """Whether a regular expression fits; not, if there is no time for it."""
        slow = self.overruns.get(key, 0)
        if key in line.fits or slow >= OVERRUNS:
            return line.fits.get(key, False)
        if len(line.fits) >= PATTERNS or line.left_s <= 0:
            return False
        start, line.fits[key] = time.monotonic(), False
        if compiled := pattern(key):
            most = min(PATTERN_S, line.left_s)
            try:
                line.fits[key] = compiled.search(line.text, timeout=most) is not None
            except TimeoutError:
                self.overruns[key] = slow = slow + (most == PATTERN_S)
                if slow == OVERRUNS:
                    self.on_off(fact)
        line.left_s -= time.monotonic() - start
        return line.fits[key]

    def _passes(self, fact: Fact, line: Line) -> bool:
        """Whether the secondary keys of a fact agree."""
        there = [self._has(key, fact, line) for key in fact.secondary]
        agree = {ALL: all(there), NOT_ALL: not all(there), NOT_ANY: not any(there)}
        return not there or agree.get(fact.logic, any(there))

    def _has(self, key: str, fact: Fact, line: Line) -> bool:
        if is_pattern(key):
            return self._fits(key, fact, line)
        if is_unparted(key):
            return folded(key) in line.folded
        parts = _key_forms(key, fact.text)
        starts = range(len(line.words) - len(parts) + 1) if parts else ()
        return any(
            not any(map(frozenset.isdisjoint, line.words[at : at + len(parts)], parts))
            for at in starts
        )

    def find(
        self,
        text: str,
        bars: Bars,
        room: int,
        count: Callable[[str], int],
        near: Mapping[str, float],
    ) -> list[Verdict]:
        """What a line finds, the first first, with why others of it are not used.

        First come facts with most keys in the line, by weight, then those that need no key, then
        those near in meaning.

        Args:
            text: What was said.
            bars: Why facts with a `know` and a `tell` may not be used; empty if they may.
            room: Most tokens of all facts.
            count: Tokens of a text.
            near: Scores of facts near in meaning, by id.
        """
        line = Line(text)
        hits = self.keys_in(line)
        meant = [
            (fact, hits.get(fact.id, ()))
            for fact in self.facts
            if fact.always or ((fact.id in hits or fact.id in near) and self._passes(fact, line))
        ]

        def order(pair: tuple[Fact, tuple[str, ...]]) -> tuple[bool, int, float]:
            fact, keys = pair
            is_near = not keys and not fact.always
            score = near.get(fact.id, 0) if is_near else fact.weight
            return is_near, -len(keys), -score

        meant.sort(key=order)
        verdicts, texts = [], set[str]()
        for fact, keys in meant:
            why_not = bars(fact.know, fact.tell) if fact.on else OFF
            if not why_not:
                size = count(fact.text)
                why_not = TWICE if fact.text in texts else "" if size <= room else FULL
                texts |= set() if why_not else {fact.text}
                room -= 0 if why_not else size
            verdicts.append(Verdict(fact, keys, why_not))
        return verdicts


@lru_cache(maxsize=20_000)
def _key_forms(key: str, text: str) -> list[frozenset[str]]:
    """The words of a key with their stems, in the language of the key or of its fact."""
    code = table_of(key).code
    code = table_of(text).code if code == DEFAULT else code
    return [_forms(word, code) for word in words_of(folded(key))]


def used(verdicts: Iterable[Verdict]) -> list[Fact]:
    """The facts that a turn gets."""
    return [verdict.fact for verdict in verdicts if not verdict.why_not]


def scope_of_texts(scope: str) -> str:
    """The scope of the recall index for the texts of the game that an assistant knows."""
    return f"lore of {scope}"


def next_id(books: Iterable[Book]) -> int:
    """The number of the next fact."""
    ids = (fact.id for book in books for fact in book.facts)
    return 1 + max((int(each[1:]) for each in ids if re.fullmatch(r"w\d{1,9}", each)), default=0)
