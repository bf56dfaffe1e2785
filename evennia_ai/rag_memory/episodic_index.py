"""Episodic index: which journal entries take part in retrieval.

Old entries of low importance leave retrieval, so that they do not crowd out what matters. They
never leave the journal.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypedDict

from evennia_ai.rag_memory.journal_entry import JournalEntry

DAY_S = 86400.0
KEEP_DAYS, MIN_IMPORTANCE = 30.0, 4


class Pruning(TypedDict):
    """How many entries leave retrieval and how many stay, and the ids of the former."""

    pruned: int
    kept: int
    pruned_ids: list[str]


def is_pruned(
    importance: int | None,
    timestamp: str,
    now: float,
    keep_days: float = KEEP_DAYS,
    min_importance: int = MIN_IMPORTANCE,
) -> bool:
    """Whether something of this importance (None: unknown) and time is out of retrieval.

    The other arguments are those of `prune_low_importance_entries`.
    """
    if importance is None or importance >= min_importance:
        return False
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return False
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return seconds < now - keep_days * DAY_S


def prune_low_importance_entries(
    entries: Iterable[JournalEntry],
    now: float,
    keep_days: float = KEEP_DAYS,
    min_importance: int = MIN_IMPORTANCE,
) -> Pruning:
    """Decide which entries leave retrieval: those both old and unimportant.

    An entry without a readable time stays, as does one exactly as old or as important as the
    limits. A time without a zone is UTC.

    Args:
        entries: Journal entries.
        now: Seconds since the epoch.
        keep_days: Days for which everything stays.
        min_importance: Importance from which an entry stays at any age.
    """
    everything = list(entries)
    pruned = [
        each.id
        for each in everything
        if is_pruned(each.importance, each.timestamp, now, keep_days, min_importance)
    ]
    return {"pruned": len(pruned), "kept": len(everything) - len(pruned), "pruned_ids": pruned}
