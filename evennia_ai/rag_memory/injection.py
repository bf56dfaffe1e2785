"""Choosing the memories a prompt gets without a search: few, relevant and not yet in the prompt.

They are some of a search's hits, in its order and with its scores. The recall index scores small
talk against small talk well above 0, so a minimal score is not enough: what was said must hold
words worth looking up, and a memory must share one of them or be very near in meaning.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from evennia_ai.language.tables import table_of
from evennia_ai.language.words import asks, content_words, excerpt, plain, telling_words, words
from evennia_ai.rag_memory.ranking import NEAR
from evennia_ai.recall.values import Hit

# Memories, and summaries of earlier times beside them, in one prompt.
MOST_MEMORIES, MOST_SUMMARIES = 5, 2
# Least score of a memory that shares no word with what was said (measured on tavern talk).
SURE = 0.2
# A hit this much weaker than the best is there by accident.
SHARE_OF_BEST = 0.05
TEXT_CHARS = 300
# What comes into a prompt unasked, beside summaries of earlier times.
INJECTED_KINDS = ("ledger", "message", "journal", "memory")


def subject(said: str, own_name: str) -> frozenset[str]:
    """The words that tell what is to be looked up for a line; none for small talk.

    Of a question about the one who asks that has no telling word, as `Where do I come from?`, all
    but stop words.
    """
    table = table_of(said)
    telling = telling_words(said, [own_name])
    if telling or table.words("first_person").isdisjoint(words(said)) or not asks(said):
        return telling
    return frozenset(content_words(said, table, ("stop",))).difference(words(own_name))


def chosen(
    hits: Sequence[Hit],
    said: str,
    own_name: str,
    shown_ids: Collection[str] = (),
    shown_texts: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The hits that come into the prompt, in their order, cut to what fits what was `said`.

    At most `MOST_MEMORIES` and `MOST_SUMMARIES`; none if `said` has no word to look up. Questions
    only if nothing else was found; of the assistant's own lines one, unless somebody said as much
    later. `shown_ids` and `shown_texts` (as `plain` makes them) are in the prompt anyway.
    """
    wanted = subject(said, own_name)
    if not wanted:
        return ()
    telling = [hit for hit in hits if not asks(hit.text)] or list(hits)
    mine = (hit for hit in telling if hit.speaker == own_name)
    own = next((hit for hit in mine if not _outdated(hit, telling, wanted)), None)
    best = max((hit.score for hit in telling), default=0.0)
    result, left = list[Hit](), {False: MOST_MEMORIES, True: MOST_SUMMARIES}
    for hit in telling:
        is_summary = hit.kind == "summary"
        is_meant = is_summary or hit.kind in INJECTED_KINDS
        shares = not wanted.isdisjoint(telling_words(hit.line).union(words(hit.line)))
        if (
            is_meant
            and left[is_summary] > 0
            and hit.turn_id not in shown_ids
            and plain(hit.text) not in shown_texts
            and hit.score >= (max(NEAR, SHARE_OF_BEST * best) if shares else SURE)
            and (hit.speaker != own_name or hit is own)
        ):
            left[is_summary] -= 1
            result.append(replace(hit, text=excerpt(hit.text, said, TEXT_CHARS)))
    return tuple(result)


def _outdated(own: Hit, hits: Sequence[Hit], wanted: frozenset[str]) -> bool:
    """Whether somebody else said later at least half of what one of its own lines says of it."""
    mine = wanted & telling_words(own.text)
    later = (hit for hit in hits if hit.speaker != own.speaker and str(hit.at) > str(own.at))
    return any(2 * len(mine & telling_words(hit.text)) >= len(mine) > 0 for hit in later)
