"""Taking a compaction back: the history as if it and its extraction had never happened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.core.masking import unmasked
from evennia_ai.core.messages import Message, is_summary


@dataclass(frozen=True)
class Undone:
    """A history taken back.

    Args:
        history: The new live history: former markers, what had left, what stayed and came since.
        withdrawn: Messages of the extraction, which leave with the compaction.
    """

    history: tuple[Message, ...]
    withdrawn: tuple[Message, ...]


def plan_rollback(
    current: Sequence[Message],
    record: Mapping[str, Any],
    segments: Sequence[Mapping[str, Any]],
) -> Undone:
    """The history before a compaction, with what came since.

    Args:
        current: The live history now.
        record: The compaction's record.
        segments: Its archive segments.

    Returns:
        History and withdrawn messages. What had left stands before what stayed, in its old
        order; masks set by the compaction are taken off.
    """
    archived = {m["id"]: m for segment in segments for m in segment["messages"]}
    restored = [archived[i] for i in record.get("leaving", ()) if i in archived]
    raw = [m for m in current if not is_summary(m)]
    everything = [*restored, *raw]
    gone: Collection[str] = set((record.get("extraction") or {}).get("messages", ()))
    masks: Collection[str] = set(record.get("masked", ()))
    kept = [unmasked(m) if m["id"] in masks else m for m in everything if m["id"] not in gone]
    markers = _markers_before(current, record)
    return Undone((*markers, *kept), tuple(m for m in everything if m["id"] in gone))


def _markers_before(current: Sequence[Message], record: Mapping[str, Any]) -> list[Message]:
    if "markers_before" in record:
        return list(record["markers_before"])
    return [message for message in current if is_summary(message)]


def profile_without(
    now: Mapping[str, Any], before: Mapping[str, Any] | None, sources: Collection[str]
) -> dict[str, Any] | None:
    """An entity profile without what an extraction added, keeping what came since.

    Args:
        now: The profile as it is.
        before: As it was before the extraction, None if there was none.
        sources: Ids the extraction's observations carry as their source.

    Returns:
        The former profile if nothing came since; None if nothing would be left of a new one.
    """
    known = {o["id"]: o for o in (before or {}).get("observations", ())}
    kept = [
        known.get(o["id"], o)
        for o in now.get("observations", ())
        if o["id"] in known or o.get("source") not in sources
    ]
    if [o["id"] for o in kept] == list(known):
        return dict(before) if before else None
    return {**now, "observations": kept}
