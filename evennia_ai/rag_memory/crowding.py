"""What crowds out the answer among search results: questions, echoes, summaries.

Questions and echoes are put behind it, summaries beyond the first few left out. A result is a dict
with ``id, kind, speaker, at, text``, as `Memory.search` gives it.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from evennia_ai.rag_memory.injection import plain, telling_words

Hit = dict[str, Any]
# Most hits of a search that are summaries, of each kind.
SUMMARIES = 3
# Most hits that are the assistant's own lines ahead of all other hits.
OWN_LINES = 3
# Most hits that only ask ahead of all other hits.
QUESTIONS = 2
# Most hits in the same words, by different speakers, ahead of all other hits.
SAME_WORDS = 2
# Words of what was said that a later line must share to be worth as much as an earlier one.
SHARED_WORDS = 2
_SENTENCE = re.compile(r"[^.!?…]*(?:[.!?…]+[\"'”’)]*(?=\s|$)|[.!?…]+|$)")
_WORD = re.compile(r"\w+")
# A question without its mark: asked of somebody by name or not.
_UNMARKED = re.compile(
    r"^\W*(?:\w+,\s+)?(?:(?:who|what|where|when|why|how|which|whose)(?:['’]s|['’]re|"
    r"(?:\s+(?!(?:i|you|he|she|it|we|they)\b)\w+){0,2}"
    r"\s+(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should))\b"
    r"|(?:do|does|did|can|could|would|will|have) you\b|(?:tell|remind) me\b)",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Whether a text asks more than it tells, by the words of its sentences."""
    asked = told = 0
    for sentence in _SENTENCE.findall(text):
        size = len(_WORD.findall(sentence))
        if sentence.rstrip("\"'”’) ").endswith("?") or _UNMARKED.match(sentence):
            asked += size
        else:
            told += size
    return asked > 0 and asked >= told


def once(hits: Sequence[Hit]) -> list[Hit]:
    """Each text of a speaker once, each question once: at its best place, as last said."""
    found: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        key = _sameness(hit)
        known = found.get(key)
        if known is None or str(known["at"]) < str(hit["at"]):
            found[key] = hit  # a dict keeps the place of a key that is there already
    return list(found.values())


def _sameness(hit: Hit) -> tuple[str, str]:
    return "?" if asks(hit["text"]) else hit["speaker"], plain(hit["text"])


def first_summaries(hits: Sequence[Hit]) -> list[Hit]:
    """The hits without summaries beyond the first `SUMMARIES` of each kind, each summary once.

    A summary of many lines has something of every question and is stored twice, as an
    experience and as a synthesis in the journal: unchecked, they push out what was really said.
    """
    experiences = {hit["id"][1:] for hit in hits if hit["kind"] == "experience"}
    left = dict.fromkeys(("experience", "summary"), SUMMARIES)
    kept = []
    for hit in hits:
        kind = hit["kind"]
        if kind == "summary" and hit["id"].removeprefix("compact_") in experiences:
            continue
        if left.get(kind, 1) > 0:
            kept.append(hit)
        if kind in left:
            left[kind] -= 1
    return kept


def questions_last(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with all but the first `QUESTIONS` of those that ask behind the rest.

    What is asked often is like the question each time: unchecked, it pushes out the answer.
    """
    return _behind(hits, lambda hit: asks(hit["text"]), QUESTIONS)


def echoes_last(hits: Sequence[Hit], own_name: str) -> list[Hit]:
    """The hits with all but the first `OWN_LINES` of the assistant's own lines behind the rest.

    The assistant repeats at every question what it was told once: unchecked, that pushes it out.
    """
    return _behind(hits, lambda hit: bool(own_name) and hit["speaker"] == own_name, OWN_LINES)


def repeats_last(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with all but the first `SAME_WORDS` in the same words behind the rest.

    Many greet and curse in the same words: what each says of themselves, the first has said, too.
    """
    counts: Counter[str] = Counter()
    late = set()
    for hit in hits:
        words = plain(hit["text"])
        counts[words] += 1
        if counts[words] > SAME_WORDS:
            late.add(hit["id"])
    return _behind(hits, lambda hit: hit["id"] in late, 0)


def _behind(hits: Sequence[Hit], crowds: Callable[[Hit], bool], most: int) -> list[Hit]:
    """The hits, all but the first `most` of those that crowd behind the rest."""
    ids = {hit["id"] for hit in [hit for hit in hits if crowds(hit)][most:]}
    first = [hit for hit in hits if hit["id"] not in ids]
    return [*first, *(hit for hit in hits if hit["id"] in ids)]


def behind_said(said: Sequence[Hit], given: Sequence[Hit], query: str) -> list[Hit]:
    """Hits of what was said, and each tool's output behind those that share as much of a query.

    Args:
        said: Best first.
        given: What tools gave out, best first.
        query: What was looked for.
    """
    wanted, found = telling_words(query), list(said)

    def shared(hit: Hit) -> int:
        return len(wanted & telling_words(f"{hit['speaker']} {hit['text']}"))

    for output in given:
        as_good = [n for n, hit in enumerate(found) if shared(hit) >= shared(output)]
        found.insert(as_good[-1] + 1 if as_good else 0, output)
    return found


def worth_quoting(hits: Sequence[Hit], own_name: str, said: str) -> list[Hit]:
    """The hits from which memories for a prompt are chosen.

    Questions only where nothing else was found; of the assistant's own lines the first, and
    none on what others spoke of later: it may repeat what is no longer so.

    Args:
        hits: What a search for `said` found, best first, with ``score``.
        own_name: The assistant's name.
        said: What was just said.
    """
    telling = [hit for hit in hits if not asks(hit["text"])] or hits
    others = [hit for hit in telling if hit["speaker"] != own_name]
    wanted = telling_words(said, [own_name])

    def outdated(own: Hit) -> bool:
        mine = wanted & telling_words(own["text"])
        later = (hit for hit in others if str(hit["at"]) > str(own["at"]))
        return any(2 * len(mine & telling_words(hit["text"])) >= len(mine) > 0 for hit in later)

    own = [hit for hit in telling if hit["speaker"] == own_name and not outdated(hit)][:1]
    kept = [hit for hit in telling if hit["speaker"] != own_name or hit in own]
    return [_as_good_as_earlier(hit, others, wanted) for hit in kept]


def _as_good_as_earlier(hit: Hit, others: Sequence[Hit], wanted: frozenset[str]) -> Hit:
    """A hit with the score of earlier ones that share no more with what was said.

    It may tell what has changed since, and must not fall out where they are quoted.
    """
    mine = wanted & telling_words(hit["text"])
    if len(mine) < SHARED_WORDS or hit["kind"] == "memory":
        return hit
    earlier = (
        each["score"]
        for each in others
        if str(each["at"]) < str(hit["at"]) and each["kind"] != "memory"
        if len(wanted & telling_words(each["text"])) >= SHARED_WORDS
        if wanted & telling_words(each["text"]) <= mine
    )
    return {**hit, "score": max([hit["score"], *earlier])}
