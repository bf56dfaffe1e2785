"""The order of what a search found: the one place where hits are ranked.

`shortlist` and `outputs_worth_showing` tidy the recall index's hits on its thread; `rank` makes one
result of all sources. Each is a tuple of rules, and nothing reorders hits later.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from evennia_ai.language.sentences import asks
from evennia_ai.language.words import plain, telling_words
from evennia_ai.recall.values import Hit, Query

Rule = Callable[[Sequence[Hit], Query], list[Hit]]

# Most words of a query that counts as typed: keywords, rather than something said.
TYPED_WORDS = 8
# Most tool outputs in a result.
OUTPUTS = 3
# Most hits that are summaries, of each kind.
SUMMARIES = 3
# Most hits that are the assistant's own lines ahead of all other hits.
OWN_LINES = 3
# Most hits that only ask ahead of all other hits.
QUESTIONS = 2
# Most hits in the same words, by different speakers, ahead of all other hits.
SAME_WORDS = 2
# Cormack, Clarke and Büttcher (SIGIR 2009) found 60 a robust constant for reciprocal ranks.
RANK_CONSTANT = 60
_SOURCES = {"memory": 1, "experience": 1, "observation": 2}  # the index is 0
_WORD = re.compile(r"\w+")


def rank(hits: Iterable[Hit], query: Query) -> list[Hit]:
    """The result of a search: at most `query.limit` hits, best first, each id once.

    `hits` are those of all sources, best first within a source.
    """
    found = list(hits)
    said = _applied(RULES, fused(found), query)
    outputs = [hit for hit in found if hit.kind == "tool"]
    return outputs_among(said, outputs, query)[: query.limit]


def shortlist(hits: Iterable[Hit], query: Query) -> list[Hit]:
    """What the index found for `rank`: at most `depth` hits, tidied."""
    return _applied(INDEX_RULES, hits, query)


def outputs_worth_showing(hits: Iterable[Hit], query: Query) -> list[Hit]:
    """The best few tool outputs for `rank`, each text once."""
    return _applied(OUTPUT_RULES, hits, query)[:OUTPUTS]


def _applied(rules: Iterable[Rule], hits: Iterable[Hit], query: Query) -> list[Hit]:
    found = list(hits)
    for rule in rules:
        found = rule(found, query)
    return found


def depth(query: Query) -> int:
    """How many hits of the index `rank` needs: some are left out again as too many of a kind."""
    return 2 * query.limit + len(query.exclude)


def is_typed(query: Query) -> bool:
    """Whether a query is a few words rather than a sentence that asks."""
    return 0 < len(_words(query.text)) <= TYPED_WORDS and not asks(query.text)


def is_crowded(hits: Sequence[Hit], query: Query) -> bool:
    """Whether more than half of the best hits only ask or repeat."""
    best = hits[: depth(query)]
    telling = sum(not asks(hit.text) for hit in once(best, query))
    return len(best) == depth(query) and 2 * telling < len(best)


def exact_first(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """For a typed query: first the hits that hold each of its very words and do not just ask."""
    words = _words(query.text) if is_typed(query) else set()

    def exact(hit: Hit) -> bool:
        line = hit.line.lower()
        held = all(word in line for word in words) and words <= _words(line)
        return held and not asks(hit.text)

    return sorted(hits, key=lambda hit: not exact(hit)) if words else list(hits)


def near_top(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The best hits; all of them if the best are crowded, as the answer may be below."""
    return list(hits) if is_crowded(hits, query) else list(hits[: depth(query)])


def once(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Each text of a speaker once, each question once: at its best place, as last said."""
    found: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        key = ("?" if asks(hit.text) else hit.speaker, plain(hit.text))
        known = found.get(key)
        if known is None or str(known.at) < str(hit.at):
            found[key] = hit  # a dict keeps the place of a key that is there already
    return list(found.values())


def repeats_last(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Move all but the first `SAME_WORDS` hits in the same words, as greetings, behind the rest."""
    counts: Counter[str] = Counter()
    late = set()
    for hit in hits:
        words = plain(hit.text)
        counts[words] += 1
        if counts[words] > SAME_WORDS:
            late.add(hit.turn_id)
    return _behind(hits, lambda hit: hit.turn_id in late, 0)


def questions_last(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Move all but the first `QUESTIONS` hits that ask behind the rest.

    A question asked often matches itself best: unchecked, it pushes out the answer.
    """
    return _behind(hits, lambda hit: asks(hit.text), QUESTIONS)


def first_of_depth(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The best `depth` hits."""
    return list(hits[: depth(query)])


def without_excluded(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The hits without those the query leaves out."""
    return [hit for hit in hits if hit.turn_id not in query.exclude]


def few_summaries(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The hits without summaries beyond the first `SUMMARIES` of each kind, each summary once.

    A summary of many lines has something of every question and is stored twice, as an experience
    and in the journal: unchecked, they push out what was really said.
    """
    experiences = {hit.turn_id[1:] for hit in hits if hit.kind == "experience"}
    left = dict.fromkeys(("experience", "summary"), SUMMARIES)
    kept = []
    for hit in hits:
        if hit.kind == "summary" and hit.turn_id.removeprefix("compact_") in experiences:
            continue
        if left.get(hit.kind, 1) > 0:
            kept.append(hit)
        if hit.kind in left:
            left[hit.kind] -= 1
    return kept


def own_lines_last(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Move all but the first `OWN_LINES` of the assistant's own lines behind the rest.

    At every question it repeats what it heard once: unchecked, that pushes the source out.
    """
    own = query.own_name
    return _behind(hits, lambda hit: bool(own) and hit.speaker == own, OWN_LINES)


def first_of_limit(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """As many hits as were asked for."""
    return list(hits[: query.limit])


# What the index found, what tools gave out, and what all sources found, in this order.
INDEX_RULES: tuple[Rule, ...] = (
    exact_first,
    near_top,
    once,
    repeats_last,
    questions_last,
    first_of_depth,
)
OUTPUT_RULES: tuple[Rule, ...] = (without_excluded, once, exact_first)
RULES: tuple[Rule, ...] = (
    without_excluded,
    once,
    repeats_last,
    questions_last,
    few_summaries,
    own_lines_last,
    first_of_limit,
)


def fused(hits: Iterable[Hit]) -> list[Hit]:
    """Hits of several sources, without outputs, by the sum of reciprocal ranks; each id once."""
    scores: dict[str, float] = {}
    first: dict[str, Hit] = {}
    places: Counter[int] = Counter()
    for hit in sorted(hits, key=lambda hit: _SOURCES.get(hit.kind, 0)):
        if hit.kind == "tool":
            continue
        places[source := _SOURCES.get(hit.kind, 0)] += 1
        share = 1.0 / (RANK_CONSTANT + places[source])
        scores[hit.turn_id] = scores.get(hit.turn_id, 0.0) + share
        first.setdefault(hit.turn_id, hit)
    return sorted(first.values(), key=lambda hit: -scores[hit.turn_id])


def outputs_among(said: Sequence[Hit], outputs: Iterable[Hit], query: Query) -> list[Hit]:
    """Place each tool output behind the last line that shares as much of the query."""
    wanted, found = telling_words(query.text), list(said)

    def shared(hit: Hit) -> int:
        return len(wanted & telling_words(hit.line))

    for output in outputs:
        as_good = [n for n, hit in enumerate(found) if shared(hit) >= shared(output)]
        found.insert(as_good[-1] + 1 if as_good else 0, output)
    return found


def _behind(hits: Sequence[Hit], crowds: Callable[[Hit], bool], most: int) -> list[Hit]:
    """Move all but the first `most` hits that crowd behind the rest."""
    ids = {hit.turn_id for hit in [hit for hit in hits if crowds(hit)][most:]}
    first = [hit for hit in hits if hit.turn_id not in ids]
    return [*first, *(hit for hit in hits if hit.turn_id in ids)]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
