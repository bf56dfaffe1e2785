"""Episodic index: which journal entries take part in retrieval.

Old entries of low importance leave retrieval, so that they do not crowd out what matters. They
never leave the journal.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

DAY_S = 86400.0
# An entry's importance where nobody gave one: the middle of the scale of 1 to 10.
DEFAULT_IMPORTANCE = 5


KEEP_DAYS, MIN_IMPORTANCE = 30.0, 4


def is_pruned(
    entry: Mapping[str, Any],
    now: float,
    keep_days: float = KEEP_DAYS,
    min_importance: int = MIN_IMPORTANCE,
) -> bool:
    """Whether an entry is out of retrieval; arguments as for `prune_low_importance_entries`."""
    oldest = now - keep_days * DAY_S
    return _importance(entry) < min_importance and _is_before(entry.get("timestamp"), oldest)


def prune_low_importance_entries(
    entries: Iterable[Mapping[str, Any]],
    now: float,
    keep_days: float = KEEP_DAYS,
    min_importance: int = MIN_IMPORTANCE,
) -> dict[str, Any]:
    """Decide which entries leave retrieval: those both old and unimportant.

    An entry whose time cannot be read stays, as do those that are exactly as old or as important
    as the limits. The defaults keep a month of everything, and for good whatever is at least
    slightly below the middle of the scale.

    Args:
        entries: Journal entries, with `id`, `timestamp` (ISO 8601, or seconds since the epoch)
            and `importance` (1 to 10).
        now: Seconds since the epoch.
        keep_days: Days for which everything stays.
        min_importance: Importance from which an entry stays at any age.

    Returns:
        ``{"pruned": int, "kept": int, "pruned_ids": [ids, in the order given]}``.
    """
    everything = list(entries)
    pruned_ids = [
        str(entry["id"]) for entry in everything if is_pruned(entry, now, keep_days, min_importance)
    ]
    kept = len(everything) - len(pruned_ids)
    return {"pruned": len(pruned_ids), "kept": kept, "pruned_ids": pruned_ids}


def _importance(entry: Mapping[str, Any]) -> float:
    value = entry.get("importance")
    return value if isinstance(value, int | float) else DEFAULT_IMPORTANCE


def _is_before(timestamp: object, moment: float) -> bool:
    at = _seconds(timestamp)
    return at is not None and at < moment


def _seconds(timestamp: object) -> float | None:
    """Seconds since the epoch; None for what is no time. A time without a zone is UTC."""
    if isinstance(timestamp, int | float):
        return float(timestamp)
    try:
        parsed = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
