"""Choosing the memories a prompt gets without a search: few, relevant and not yet in the prompt.

They are some of a search's hits, in its order. The recall index scores small talk against small
talk well above 0, so a minimal score is not enough: what was said must hold words worth looking up,
and a memory must share one of them or be very near in meaning.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import itemgetter

from evennia_ai.history.frames import one_line, row
from evennia_ai.language.excerpt import excerpt
from evennia_ai.language.sentences import asks
from evennia_ai.language.words import plain, telling_words
from evennia_ai.recall.values import Hit

# Memories, and summaries of earlier times beside them, in one prompt.
MOST_MEMORIES, MOST_EXPERIENCES = 5, 2
# Of the recall index's probabilities: questions that have an answer begin at about 0.003 where
# they share a word with it (measured on tavern talk); without one they must be this sure.
FLOOR, SURE = 0.0025, 0.2
# A hit this much weaker than the best of its kind is there by accident.
SHARE_OF_BEST = 0.05
# Half a place up or down the ranking for each point of importance above or below the middle.
MIDDLE_IMPORTANCE, PLACES_A_POINT = 5, 0.5
# Words of what was said that a later line must share to be worth as much as an earlier one.
SHARED_WORDS = 2
TEXT_CHARS = 300
# What comes into a prompt unasked, beside summaries of earlier times.
INJECTED_KINDS = ("message", "journal", "memory")


def worth_quoting(hits: Sequence[Hit], own_name: str, said: str) -> list[Hit]:
    """The hits from which memories for a prompt are chosen, in their order.

    Questions only if nothing else was found; of the assistant's own lines the first that is not
    outdated.
    """
    telling = [hit for hit in hits if not asks(hit.text)] or hits
    others = [hit for hit in telling if hit.speaker != own_name]
    wanted = telling_words(said, [own_name])

    def outdated(own: Hit) -> bool:
        mine = wanted & telling_words(own.text)
        later = (hit for hit in others if str(hit.at) > str(own.at))
        return any(2 * len(mine & telling_words(hit.text)) >= len(mine) > 0 for hit in later)

    own = [hit for hit in telling if hit.speaker == own_name and not outdated(hit)][:1]
    kept = [hit for hit in telling if hit.speaker != own_name or hit in own]
    return [_as_good_as_earlier(hit, others, wanted) for hit in kept]


def _as_good_as_earlier(hit: Hit, others: Sequence[Hit], wanted: frozenset[str]) -> Hit:
    """A hit with the score of earlier ones that share no more with what was said.

    It may tell what has changed since, and must not be missing where they are quoted.
    """
    mine = wanted & telling_words(hit.text)
    if len(mine) < SHARED_WORDS or hit.kind == "memory":
        return hit
    earlier = (
        each.score
        for each in others
        if str(each.at) < str(hit.at) and each.kind != "memory"
        if len(shared := wanted & telling_words(each.text)) >= SHARED_WORDS and shared <= mine
    )
    return replace(hit, score=max([hit.score, *earlier]))


def chosen(
    hits: Sequence[Hit],
    said: str,
    *,
    shown_ids: Collection[str] = (),
    shown_texts: Collection[str] = (),
    names: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The hits that come into the prompt, in their order.

    At most `MOST_MEMORIES`, the more important before the slightly better; none if `said` has no
    word to look up. No summaries: the latest are in the prompt already, and `experiences` chooses
    older ones. `shown_ids` and `shown_texts` (as `plain` makes them) are in the prompt anyway;
    everybody here hears `names` all the time.
    """
    wanted = telling_words(said, names)
    if not wanted:
        return ()
    fresh = [hit for hit in hits if hit.turn_id not in shown_ids and hit.kind in INJECTED_KINDS]
    best = max((hit.score for hit in fresh if hit.kind != "memory"), default=0.0)
    found = dict[str, Hit]()
    for hit in fresh:
        # A memory back end's scores are of another scale: its hits must share a word.
        shares, is_memory = bool(wanted & telling_words(hit.line)), hit.kind == "memory"
        is_near = shares and (is_memory or hit.score >= max(FLOOR, SHARE_OF_BEST * best))
        if is_near or (not is_memory and hit.score >= SURE):
            found.setdefault(plain(hit.text), hit)
    placed = [
        (place - ((hit.importance or MIDDLE_IMPORTANCE) - MIDDLE_IMPORTANCE) * PLACES_A_POINT, hit)
        for place, hit in enumerate(hit for text, hit in found.items() if text not in shown_texts)
    ]
    kept = [hit for _, hit in sorted(placed, key=itemgetter(0))[:MOST_MEMORIES]]
    return tuple(hit for _, hit in placed if hit in kept)


def experiences(hits: Sequence[Hit], said: str, shown_ids: Collection[str] = ()) -> tuple[Hit, ...]:
    """Summaries of earlier times that the present resembles, at most two."""
    if not telling_words(said):
        return ()
    found = [hit for hit in hits if hit.kind == "experience" and hit.turn_id not in shown_ids]
    return tuple(found[:MOST_EXPERIENCES])


def memory_line(hit: Hit, said: str = "") -> str:
    """A memory as a line of the prompt: id, day, speaker, and the part that fits `said`, quoted."""
    text = excerpt(hit.text, said, TEXT_CHARS)
    return row(hit.turn_id, str(hit.at or "")[:10], one_line(hit.speaker), text)
