"""What is found: by a search, in one order, and in the books of lore, by what a line says.

The recall index ranks what was said and written by the probability that it answers. What stands
elsewhere (pinned notes, semantic memory, profiles, what tools gave out) takes its place among that
by the words it shares with the query. Then each rule of `RULES` changes the order; a hit that it
moves gets the score of its new place.

A prompt gets some of a search's hits unasked (`chosen`): few, relevant and not yet in it. The
recall index scores small talk against small talk well above 0, so a minimal score is not enough:
what was said must hold words worth looking up, and a memory must share one of them or be very near
in meaning.

It also gets the facts of lore that a line calls (`Finder`), by keys and meaning, under two locks.
`know` says which assistants know a fact, `tell` who may hear it. A fact with a `tell` enters only
private turns whose every member passes: what is not in the prompt cannot be told. The locks are
checked by whoever calls; here it is decided what of a book a line finds, and why the rest is not.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from evennia_ai.cards.books import ALL, NOT_ALL, NOT_ANY, Book, Fact
from evennia_ai.language.script import folded, is_unparted, words_of
from evennia_ai.language.tables import DEFAULT, table_of
from evennia_ai.language.words import asks, excerpt, plain, stem, telling_words, words
from evennia_ai.recall.values import Hit, Query, Turn

# Hits of the index among which the result is looked for: the best may only ask or repeat.
DEEP = 200
# Least probability of a hit that has no word in or near the query. Of the evidence among the first
# ten hits, for LoCoMo's questions and for tavern talk, none lies below it, but most of what a word
# nobody ever said brings up.
NEAR = 0.003
# Most hits of a sort ahead of all others. Of many in the same words, as greetings, two; a question
# matches itself best, and where one is asked, answers none; at every question the assistant repeats
# what it heard once; a summary of many lines has something of every question. Unchecked, they push
# out the answer.
MOST = {"asks": 2, "asks again": 0, "own": 3, "summary": 3}
SAME_WORDS = 2
# Memories, and summaries of earlier times beside them, in one prompt.
MOST_MEMORIES, MOST_SUMMARIES = 5, 2
# Least score of a memory that shares no word with what was said (measured on tavern talk).
SURE = 0.2
# A hit this much weaker than the best is there by accident.
SHARE_OF_BEST = 0.05
TEXT_CHARS = 300
# What comes into a prompt unasked, beside summaries of earlier times.
INJECTED_KINDS = ("ledger", "message", "journal", "memory")


def ranked(indexed: Iterable[Hit], others: Iterable[Hit], query: Query) -> list[Hit]:
    """The result of a search: at most `query.limit` hits, best first, each id and text once.

    Args:
        indexed: Hits of the recall index, best first.
        others: Hits of other sources, best first within each.
        query: What is searched for.
    """
    likely = [hit for hit in indexed if hit.matches or hit.score >= NEAR]
    hits = joined(likely, others, query)
    scores = sorted((hit.score for hit in hits), reverse=True)[: query.limit]
    hits = [hit for hit in hits if hit.turn_id not in query.exclude]
    for rule in RULES:
        hits = rule(hits, query)
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=False)]


def joined(indexed: Sequence[Hit], others: Iterable[Hit], query: Query) -> list[Hit]:
    """Hits of all sources, each id once.

    Each of the others stands behind those of the first `query.limit` hits that share as many words
    of the query, the best pinned note only behind those that share more: people wrote it down to be
    asked for it. Each has the score of its place.
    """
    wanted, asking, ids = telling_words(query.text), asks(query.text), {h.turn_id for h in indexed}

    def shared(hit: Hit) -> int:
        if asking and asks(hit.text):
            return 0
        return len(wanted & telling_words(hit.line))

    best = [(shared(hit), hit) for hit in indexed[: query.limit]]
    is_pinned = False
    for other in others:
        if other.turn_id in ids:
            continue
        ids.add(other.turn_id)
        least = count = max(1, shared(other))
        if other.kind == "ledger" and not is_pinned:
            least, is_pinned = count + 1, True
        place = max((n for n, (words, _) in enumerate(best, 1) if words >= least), default=0)
        score = best[max(0, place - 1)][1].score if best else min(1.0, other.score)
        best.insert(place, (count, replace(other, score=score)))
    return [*(hit for _, hit in best), *indexed[query.limit :]]


def once(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Each text of a speaker once, each question once: at its best place, as last said.

    A note with the very words that somebody said is not shown beside them, but a pinned one is
    shown instead.
    """
    result, places = list[Hit](), dict[tuple[str, str], int]()
    for hit in hits:
        text, who = plain(hit.text), "?" if asks(hit.text) else hit.speaker
        place = places.get((text, who), places.get((text, "" if who else "*")))
        if place is None:
            place = len(result)
            result.append(hit)
        elif result[place].kind != "ledger" and (
            hit.kind == "ledger"
            or (bool(hit.speaker), str(hit.at))
            > (bool(result[place].speaker), str(result[place].at))
        ):
            result[place] = hit
        places[text, who] = place
        places.setdefault((text, "*"), place)
    return result


def crowds_last(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Move behind the rest what there are more than enough of, by `MOST`."""
    counts, first, late, asking = Counter[str](), list[Hit](), list[Hit](), asks(query.text)
    for hit in hits:
        sorts = [f"words {plain(hit.text)}"]
        if asks(hit.text):
            sorts.append("asks again" if asking else "asks")
        if query.own_name and hit.speaker == query.own_name:
            sorts.append("own")
        if hit.kind == "summary":
            sorts.append("summary")
        counts.update(sorts)
        if any(counts[sort] > MOST.get(sort, SAME_WORDS) for sort in sorts):
            late.append(hit)
        else:
            first.append(hit)
    return [*first, *late]


RULES = (once, crowds_last)


def chosen(
    hits: Sequence[Hit],
    said: str,
    own_name: str,
    shown_ids: Collection[str] = (),
    shown_texts: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The hits that come into the prompt, in their order, cut to what fits what was `said`.

    At most `MOST_MEMORIES` and `MOST_SUMMARIES`; none if `said` has no word to look up. Questions
    only if nothing else was found; of the assistant's own lines one. `shown_ids` and `shown_texts`
    (as `plain` makes them) are in the prompt anyway.
    """
    wanted = telling_words(said, [own_name])
    if not wanted:
        return ()
    telling = [hit for hit in hits if not asks(hit.text)] or list(hits)
    own = next((hit for hit in telling if hit.speaker == own_name), None)
    best = max((hit.score for hit in telling), default=0.0)
    memories, summaries = list[Hit](), list[Hit]()
    for hit in telling:
        if hit.turn_id in shown_ids or plain(hit.text) in shown_texts:
            continue
        if hit.speaker == own_name and hit is not own:
            continue
        shares = not wanted.isdisjoint(telling_words(hit.line).union(words(hit.line)))
        if hit.score < (max(NEAR, SHARE_OF_BEST * best) if shares else SURE):
            continue
        if hit.kind == "summary":
            summaries.append(hit)
        elif hit.kind in INJECTED_KINDS:
            memories.append(hit)
    shown = {*map(id, memories[:MOST_MEMORIES]), *map(id, summaries[:MOST_SUMMARIES])}
    cut = (replace(h, text=excerpt(h.text, said, TEXT_CHARS)) for h in telling if id(h) in shown)
    return tuple(cut)


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
