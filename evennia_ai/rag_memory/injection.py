"""Which memories come into a prompt unasked: few, to the point, and nothing that stands there.

The recall index scores small talk against small talk well above nothing, so that a floor alone
does not tell it from a question. Therefore what was said must hold words worth looking up, and a
memory must share one of them or be very near in meaning.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

from evennia_ai.history.messages import one_line, quoted
from evennia_ai.language.excerpt import excerpt
from evennia_ai.language.names import names_among

Hit = dict[str, Any]
# Memories, and summaries of earlier times beside them, in one prompt.
MOST_MEMORIES, MOST_EXPERIENCES = 5, 2
# Of the recall index's probabilities: questions that have an answer begin at about 0.003 where
# they share a word with it (measured on tavern talk); without one they must be this sure.
FLOOR, SURE = 0.003, 0.2
# A hit this much weaker than the best of its kind is there by accident.
SHARE_OF_BEST = 0.05
# Half a place up or down the ranking for each point of importance above or below the middle.
MIDDLE_IMPORTANCE, PLACES_A_POINT = 5, 0.5
TEXT_CHARS = 300
# What comes into a prompt unasked, beside summaries of earlier times.
INJECTED_KINDS = ("message", "journal", "memory")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# Words that say nothing of a subject: grammar, questions, greetings, thanks, the weather.
_EMPTY = frozenset(
    re.findall(
        r"\S+",
        "a about after again all also am an and another any are aren't as ask at away back be "
        "been before but by bye came can cheers come could day dear did didn't do does doesn't "
        "doing don't evening every everybody everyone fine for friend friends from funny get give "
        "go going good goodbye got great had has have haven't he hello help her here hey hi him "
        "his how i i'd i'll i'm i've if in into is isn't it it's its just know later let let's "
        "like long lot lovely may maybe me mine more morning much my need nice night no not now of "
        "off oh ok okay on one or our out over please quite really right round say says see she "
        "should so some something soon sure tell than thank thanks that that's the their them "
        "then there these they thing things think this time to today told tomorrow tonight too up "
        "us very want was we weather welcome well were what what's when where which who who's why "
        "will with would yes you your yours ",
    )
)


def telling_words(text: str, names: Collection[str] = ()) -> frozenset[str]:
    """The words of a text that name what it is about, in lower case and without endings.

    Args:
        text: What was said.
        names: Names that everybody here hears all the time, as the assistant's own.
    """
    common = _EMPTY - names_among(text)
    common |= {word for name in names for word in _WORD.findall(name.lower())}
    words = (word for word in _WORD.findall(text.lower()) if word not in common)
    return frozenset(_stem(word) for word in words if len(word) > 1)


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def chosen(
    hits: Sequence[Hit],
    said: str,
    *,
    shown_ids: Collection[str] = (),
    shown_texts: Collection[str] = (),
    names: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The hits that come into the prompt, best first.

    Args:
        hits: What a search for `said` found, best first, ``{"id", "kind", "text", "score", ...}``,
            some with their ``importance``, 1 to 10; others count as middling.
        said: What was just said.
        shown_ids: Ids of messages and summaries that stand in the prompt anyway.
        shown_texts: Their texts, as `plain` makes them.
        names: As for `telling_words`.

    Returns:
        At most `MOST_MEMORIES`; none where nothing was said that can be looked up. Summaries
        (kind ``summary``) stand in the prompt already; those that come back from memory (kind
        ``experience``) are chosen by `experiences`.
    """
    wanted = telling_words(said, names)
    if not wanted:
        return ()
    fresh = [h for h in hits if h["id"] not in shown_ids and h["kind"] in INJECTED_KINDS]
    best = max((_score(h) for h in fresh if h["kind"] != "memory"), default=0.0)
    relevant = [h for h in fresh if _is_relevant(h, wanted, best)]
    return _once(_weighed(relevant), shown_texts)[:MOST_MEMORIES]


def experiences(hits: Sequence[Hit], said: str, shown_ids: Collection[str] = ()) -> tuple[Hit, ...]:
    """Summaries of earlier times that the present resembles, at most two."""
    if not telling_words(said):
        return ()
    found = [h for h in hits if h["kind"] == "experience" and h["id"] not in shown_ids]
    return tuple(found[:MOST_EXPERIENCES])


def _score(hit: Hit) -> float:
    return float(hit.get("score") or 0.0)


def _is_relevant(hit: Hit, wanted: frozenset[str], best: float) -> bool:
    """Whether a hit shares a telling word, or is very near.

    A semantic store's scores are of another scale than the index's: its hits must share a word.
    """
    shares = bool(wanted & telling_words(f"{hit.get('speaker') or ''} {hit['text']}"))
    if hit["kind"] == "memory":
        return shares
    score = _score(hit)
    return score >= SURE or (shares and score >= max(FLOOR, SHARE_OF_BEST * best))


def _weighed(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in their order, the more important moved up and the less important down."""

    def place(numbered: tuple[int, Hit]) -> float:
        number, hit = numbered
        points = hit.get("importance") or MIDDLE_IMPORTANCE
        return number - (points - MIDDLE_IMPORTANCE) * PLACES_A_POINT

    return [hit for _, hit in sorted(enumerate(hits), key=place)]


def _once(hits: Sequence[Hit], shown_texts: Collection[str]) -> tuple[Hit, ...]:
    """Each text once, and none that is shown already."""
    seen, kept = set(shown_texts), []
    for hit in hits:
        text = plain(hit["text"])
        if text not in seen:
            seen.add(text)
            kept.append(hit)
    return tuple(kept)


def plain(text: str) -> str:
    """A text for comparing: case and outer space aside."""
    return text.strip().casefold()


def memory_line(hit: Hit, said: str = "") -> str:
    """A memory as a line of the prompt, quoted: id, day, speaker, and what bears on `said`."""
    day = str(hit.get("at") or "")[:10]
    who = f"{one_line(hit['speaker'])}: " if hit.get("speaker") else ""
    return f"- ({hit['id']}) {day} {who}{quoted(excerpt(hit['text'], said, TEXT_CHARS))}"
