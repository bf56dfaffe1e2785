"""Finds the facts of lore that a line calls, by keys and meaning, under two locks.

`know` says which assistants know a fact, `tell` who may hear it. A fact with a `tell` enters only
private turns whose every member passes: what is not in the prompt cannot be told. The locks are
checked by whoever calls; here it is decided what of a book a line finds, and why the rest is not.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evennia_ai.cards.books import ALL, NOT_ALL, NOT_ANY, Book, Fact
from evennia_ai.language.script import folded, is_unparted, words_of
from evennia_ai.language.tables import DEFAULT, table_of
from evennia_ai.language.words import stem
from evennia_ai.recall.values import Turn

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


class _Line:
    """A text in which keys are looked for."""

    def __init__(self, text: str):
        self.folded, code = folded(text), table_of(text).code
        self.words = [_forms(word, code) for word in words_of(self.folded)]

    def has(self, key: str, fact: Fact) -> bool:
        """Whether a key of a fact is in it, in any form."""
        if is_unparted(key):
            return folded(key) in self.folded
        forms = _key_forms(key, fact.text)
        starts = range(len(self.words) - len(forms) + 1) if forms else ()
        return any(
            not any(map(frozenset.isdisjoint, self.words[at : at + len(forms)], forms))
            for at in starts
        )

    def suits(self, fact: Fact) -> bool:
        """Whether the secondary keys of a fact agree to it."""
        there = [self.has(key, fact) for key in fact.secondary]
        agree = {ALL: all(there), NOT_ALL: not all(there), NOT_ANY: not any(there)}
        return not there or agree.get(fact.logic, any(there))


def _forms(word: str, code: str) -> frozenset[str]:
    """A folded word and its stems."""
    return frozenset((word, stem(word), stem(word, code)))


@lru_cache(maxsize=20_000)
def _key_forms(key: str, text: str) -> list[frozenset[str]]:
    """The words of a key with their stems, in the language of the key or of its fact."""
    code = table_of(key).code
    code = table_of(text).code if code == DEFAULT else code
    return [_forms(word, code) for word in words_of(folded(key))]


class Finder:
    """Finds some facts, which have the locks that hold for them; made anew when they change."""

    def __init__(self, facts: Sequence[Fact]):
        self.facts = facts
        # Keys with their facts: by each form of the first word, and those without spaces.
        self._by_word: dict[str, list[tuple[str, Fact]]] = defaultdict(list)
        self._unparted: list[tuple[str, Fact]] = []
        for fact in facts:
            for key in fact.keys:
                if is_unparted(key):
                    self._unparted.append((key, fact))
                elif forms := _key_forms(key, fact.text):
                    for form in forms[0]:
                        self._by_word[form].append((key, fact))

    def _keys_in(self, line: _Line) -> dict[str, dict[str, None]]:
        """The keys in a line, by id of their facts."""
        keys: dict[str, dict[str, None]] = defaultdict(dict)
        words = frozenset[str]().union(*line.words)
        likely = [pair for word in words for pair in self._by_word.get(word, ())]
        for key, fact in (*likely, *self._unparted):
            if line.has(key, fact):
                keys[fact.id][key] = None
        return keys

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
        line = _Line(text)
        keys = self._keys_in(line)
        meant = [
            (fact, tuple(keys.get(fact.id, ())))
            for fact in self.facts
            if fact.always or ((fact.id in keys or fact.id in near) and line.suits(fact))
        ]

        def order(pair: tuple[Fact, tuple[str, ...]]) -> tuple[bool, int, float]:
            fact, hits = pair
            if hits or fact.always:
                return False, -len(hits), -fact.weight
            return True, 0, -near.get(fact.id, 0)

        verdicts, texts = list[Verdict](), set[str]()
        for fact, hits in sorted(meant, key=order):
            why_not = bars(fact.know, fact.tell) if fact.on else OFF
            if not why_not and fact.text in texts:
                why_not = TWICE
            elif not why_not and (size := count(fact.text)) > room:
                why_not = FULL
            elif not why_not:
                texts.add(fact.text)
                room -= size
            verdicts.append(Verdict(fact, hits, why_not))
        return verdicts


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
