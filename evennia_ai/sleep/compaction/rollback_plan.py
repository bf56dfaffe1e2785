"""Taking a compaction back: the history as if it and its extraction had never happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evennia_ai.history.masking import unmasked
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import in_order
from evennia_ai.history.records import CompactionRecord, Segment


@dataclass(frozen=True)
class Undone:
    """A history taken back: former markers, what had left, what stayed and came since.

    `restored` is how many messages came back from the archive.
    """

    history: tuple[Message, ...]
    restored: int = 0


def damage(record: CompactionRecord, segments: Mapping[str, Segment | None]) -> str:
    """Why the messages of a compaction cannot come back as they left.

    Args:
        record: The compaction's record.
        segments: Its archive segments by id, None for one that is missing or cannot be read.

    Returns:
        A sentence that names the segment; empty if all is there. Forgotten messages may be missing.
    """
    left, found = set(record.leaving), set[str]()
    for key, segment in segments.items():
        if segment is None:
            return f"Archive segment `{key}` is missing or cannot be read."
        if segment.checksum != segment.sha256:
            return f"Archive segment `{key}` was changed since it was sealed: its checksum differs."
        held = {message.id for message in segment.messages}
        if odd := sorted(held - left):
            return f"Archive segment `{key}` holds `{odd[0]}`, which did not leave with it."
        found |= held | set(segment.tombstones)
    if lost := sorted(left - found):
        named = ", ".join(f"`{key}`" for key in segments) or "none"
        return (
            f"{len(lost)} of {len(left)} messages, `{lost[0]}` the first, are missing from the "
            f"compaction's archive segments ({named})."
        )
    return ""


def plan_rollback(
    current: Sequence[Message], record: CompactionRecord, segments: Sequence[Segment]
) -> Undone:
    """The history before a compaction, with what came since.

    What had left stands before what stayed, or, where it was recorded, in the former order; masks
    set by the compaction are removed.
    """
    archived = {m.id: m for segment in segments for m in segment.messages}
    restored = [archived[each] for each in record.leaving if each in archived]
    raw = [m for m in current if not m.is_summary]
    everything = in_order(restored, raw, record.order)
    masks = set(record.masked)
    kept = [unmasked(m) if m.id in masks else m for m in everything]
    return Undone((*record.markers_before, *kept), len(restored))
