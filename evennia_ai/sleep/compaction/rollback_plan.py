"""Taking a compaction back: the history as if it and its extraction had never happened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from evennia_ai.history.masking import unmasked
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import in_order
from evennia_ai.history.records import CompactionRecord, Segment
from evennia_ai.rag_memory.profile import Observation


@dataclass(frozen=True)
class Undone:
    """A history taken back: former markers, what had left, what stayed and came since.

    `withdrawn` are messages of the extraction, which leave with the compaction, `restored` is how
    many messages came back from the archive.
    """

    history: tuple[Message, ...]
    withdrawn: tuple[Message, ...]
    restored: int = 0


def damage(record: CompactionRecord, segments: Mapping[str, Segment | None]) -> str:
    """Why the messages of a compaction cannot come back as they left.

    Args:
        record: The compaction's record.
        segments: Its archive segments by id, None for one that is missing or cannot be read. Of
            one without `sha256` only the ids of the messages are checked.

    Returns:
        A sentence that names the segment; empty if all is there. Forgotten messages may be missing.
    """
    left, found = set(record.leaving), set[str]()
    for key, segment in segments.items():
        if segment is None:
            return f"Archive segment `{key}` is missing or cannot be read."
        if "sha256" in segment.stored and segment.checksum != segment.sha256:
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
    gone, masks = set(record.extraction.get("messages", ())), set(record.masked)
    kept = [unmasked(m) if m.id in masks else m for m in everything if m.id not in gone]
    markers = record.markers_before
    if markers is None:
        markers = tuple(m for m in current if m.is_summary)
    withdrawn = tuple(m for m in everything if m.id in gone)
    return Undone((*markers, *kept), withdrawn, len(restored))


def profile_without(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    sources: Collection[str],
) -> dict[str, Any] | None:
    """An entity profile without what an extraction added, keeping what came since.

    A three-way merge: what is as the extraction left it goes back to what it was before; what was
    changed since stays. None if nothing would be left of a profile that the extraction made.

    Args:
        now: The profile as it is.
        before: As it was before the extraction, None if there was none.
        after: As the extraction left it, None where that is not known.
        sources: Ids the extraction's observations carry among their sources.
    """
    if after is not None and dict(now) == dict(after):
        return dict(before) if before else None
    former, left = before or {}, after or now
    merged = {**now, "observations": _observations_without(now, former, sources)}
    for name in merged:
        if name == "observations":
            continue
        if isinstance(now[name], list):
            added = [each for each in left.get(name, ()) if each not in former.get(name, ())]
            merged[name] = [each for each in now[name] if each not in added]
        elif before and now[name] == left.get(name):
            merged[name] = former.get(name, now[name])
    own = (merged["observations"], merged.get("memory_links"), merged.get("aliases"))
    return merged if before or any(own) else None


def without_extraction(
    now: Mapping[str, Any],
    sources: Collection[str],
    former: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """A profile without these sources; `former` is an older state of it, if one is known."""
    return {**now, "observations": _observations_without(now, former, sources)}


def _observations_without(
    now: Mapping[str, Any], former: Mapping[str, Any], sources: Collection[str]
) -> list[dict[str, Any]]:
    """Observations without those from these sources; older ones as they were before."""
    known = {each["id"]: each for each in former.get("observations", ())}
    present = now.get("observations", ())
    theirs = {
        each["id"]
        for each in present
        if not set(sources).isdisjoint(Observation.from_dict(each).source_ids)
    }
    added = theirs - known.keys()
    return [
        known[each["id"]]
        if each["id"] in known and (each["id"] in theirs or each.get("superseded_by") in added)
        else each
        for each in present
        if each["id"] not in added
    ]
