"""Taking a compaction back: the history as if it and its extraction had never happened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.masking import unmasked
from evennia_ai.history.messages import Message
from evennia_ai.history.order import in_order
from evennia_ai.history.records import Segment, segment_checksum
from evennia_ai.rag_memory.profile import Observation


@dataclass(frozen=True)
class Undone:
    """A history taken back.

    Args:
        history: The new live history: former markers, what had left, what stayed and came since.
        withdrawn: Messages of the extraction, which leave with the compaction.
        restored: How many messages came back from the archive.
    """

    history: tuple[Message, ...]
    withdrawn: tuple[Message, ...]
    restored: int = 0


def damage(
    record: Mapping[str, Any],
    segments: Mapping[str, Segment | None],
) -> str:
    """Why what left with a compaction cannot come back as it left.

    Args:
        record: The compaction's record.
        segments: Its archive segments by id, None for one that is missing or cannot be read. One
            that holds no `sha256` is judged by the ids of its messages alone.

    Returns:
        A sentence that names the segment; empty if all is there, forgotten messages aside.
    """
    left, found = set(record.get("leaving", ())), set[str]()
    for key, segment in segments.items():
        if segment is None:
            return f"Archive segment `{key}` is missing or cannot be read."
        if (
            "sha256" in segment.stored
            and segment_checksum(segment.stored) != segment.stored["sha256"]
        ):
            return f"Archive segment `{key}` was changed since it was sealed: its checksum differs."
        held = {message.id for message in segment.messages}
        if odd := sorted(held - left):
            return f"Archive segment `{key}` holds `{odd[0]}`, which did not leave with it."
        found |= held | set(segment.stored.get("tombstones") or ())
    if lost := sorted(left - found):
        named = ", ".join(f"`{key}`" for key in segments) or "none"
        return (
            f"{len(lost)} of {len(left)} messages, `{lost[0]}` the first, are missing from the "
            f"compaction's archive segments ({named})."
        )
    return ""


def plan_rollback(
    current: Sequence[Message],
    record: Mapping[str, Any],
    segments: Sequence[Segment],
) -> Undone:
    """The history before a compaction, with what came since.

    Args:
        current: The live history now.
        record: The compaction's record.
        segments: Its archive segments.

    Returns:
        History and withdrawn messages. What had left stands before what stayed, or, where that
        is noted, in the order there was; masks set by the compaction are taken off.
    """
    archived = {m.id: m for segment in segments for m in segment.messages}
    restored = [archived[i] for i in record.get("leaving", ()) if i in archived]
    raw = [m for m in current if not m.is_summary]
    everything = in_order(restored, raw, record.get("order", ()))
    gone: Collection[str] = set((record.get("extraction") or {}).get("messages", ()))
    masks: Collection[str] = set(record.get("masked", ()))
    kept = [unmasked(m) if m.id in masks else m for m in everything if m.id not in gone]
    markers = _markers_before(current, record)
    return Undone((*markers, *kept), tuple(m for m in everything if m.id in gone), len(restored))


def order_before(history: Sequence[Message], leaving: Sequence[Message]) -> list[str]:
    """The order a rollback of a compaction needs: where something stays between what leaves.

    Args:
        history: The live history.
        leaving: What the compaction takes from it.

    Returns:
        Ids of all raw messages; none where what leaves is simply the oldest.
    """
    ids = [m.id for m in history if not m.is_summary]
    return [] if ids[: len(leaving)] == [m.id for m in leaving] else ids


def _markers_before(current: Sequence[Message], record: Mapping[str, Any]) -> list[Message]:
    if "markers_before" in record:
        return list(map(Message.from_dict, record["markers_before"]))
    return [message for message in current if message.is_summary]


def profile_without(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    sources: Collection[str],
) -> dict[str, Any] | None:
    """An entity profile without what an extraction added, keeping what came since.

    A merge of three: what is as the extraction left it goes back to what it was before, what was
    changed since stays.

    Args:
        now: The profile as it is.
        before: As it was before the extraction, None if there was none.
        after: As the extraction left it, None where that is not known.
        sources: Ids the extraction's observations carry among their sources.

    Returns:
        The profile; None if nothing would be left of one that the extraction made.
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


def without_extraction(now: Mapping[str, Any], sources: Collection[str]) -> dict[str, Any]:
    """A profile of which no former state is known, as one joined since, without these sources."""
    return {**now, "observations": _observations_without(now, {}, sources)}


def _observations_without(
    now: Mapping[str, Any], former: Mapping[str, Any], sources: Collection[str]
) -> list[dict[str, Any]]:
    """Observations without those of these sources, older ones as they were before these."""
    known = {each["id"]: each for each in former.get("observations", ())}
    present = now.get("observations", ())
    added = {each["id"] for each in present if each["id"] not in known and _rests(each, sources)}
    return [
        known[each["id"]]
        if each["id"] in known and (_rests(each, sources) or each.get("superseded_by") in added)
        else each
        for each in present
        if each["id"] not in added
    ]


def _rests(observation: Mapping[str, Any], sources: Collection[str]) -> bool:
    """Whether one of these is among the sources of an observation."""
    return not set(sources).isdisjoint(Observation.from_dict(observation).source_ids)
