"""Rollback: undo the latest compaction and the extraction before it, in one transaction.

What it withdrew must leave the search index and semantic memory, too (`LifeMemory.clear_outbox`). A
summary is indexed as the journal's synthesis of it.
"""

from dataclasses import replace
from typing import Any

from evennia_ai.errors import AssistantError
from evennia_ai.history.archive import (
    ROLLED_BACK,
    CompactionRecord,
    Segment,
)
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import in_order, unmasked, utc_iso
from evennia_ai.sleep.sleeper import Sleeper


def rollback_compaction(script: Sleeper, compaction_id: str | None = None) -> dict[str, Any]:
    """Make the messages of the latest compaction live again. Call it under the turn lock.

    Its segment counts as restored. Its summaries, its synthesis and what the extraction before it
    made are withdrawn; semantic memory and the recall index follow soon after. Automatic triggers
    hold until the next manual compaction or an overflow.

    Returns ``{"compaction_id", "restored_messages", "masks_removed", "original_tokens",
    "new_tokens"}``. Raises `AssistantError` if there is none, if the one asked for is no longer the
    latest, if its archive is damaged (with the segment), or if its messages no longer fit (with the
    numbers).
    """
    script.runtime.lock.holder()
    history = script.history
    record = latest(history)
    if compaction_id not in (None, record.id):
        raise AssistantError(
            "Another compaction was made meanwhile. Type `compact/rollback` again."
        )
    step, segments = script.at_commit_step, archived(history, record)
    before = history.tokens()
    restored = [message for segment in segments for message in segment.messages]
    talk = in_order([*restored, *(m for m in history.messages() if not m.is_summary)])
    with history.store.transaction():
        step("summaries")
        for summary in filter(None, map(history.summary, record.summaries)):
            history.save_summary(replace(summary, rolled_back=True))
        step("history")
        history.replace_talk(unmasked(m) if m.id in record.masked else m for m in talk)
        if script.usage(history.widest_tokens()) > 1.0:
            room = script.limits().room
            raise AssistantError(
                f"The messages no longer fit: the history would hold {history.widest_tokens():,} "
                f"tokens, and there is room for {room.tokens:,} of the {room.limit:,} that a "
                "request may hold. Raise `max_context_tokens` first."
            )
        step("journal")
        script.journal.withdraw(record.entries)
        step("entities")
        script.entities.forget_sources(record.entries)
        step("record")
        at_iso = utc_iso(script.now())
        history.save_compaction(replace(record, status=ROLLED_BACK, rolled_back_at=at_iso))
        history.note_last_compaction()
        script.state.hold = True
        script.state.outbox = [*script.state.outbox, *record.entries]
        step("done")
    report = {
        "compaction_id": record.id,
        "restored_messages": len(restored),
        "masks_removed": len(record.masked),
        "original_tokens": before,
        "new_tokens": history.tokens(),
    }
    script.audit("rollback", **report)
    script.memory.empty_outbox()  # not waited for: a store that hangs must not hold up a turn
    return report


def latest(history: HistoryHandler) -> CompactionRecord:
    """The compaction that would be rolled back; raises `AssistantError` if there is none."""
    if (record := history.last_compaction()) is None:
        raise AssistantError("There is no compaction to take back.")
    return record


def archived(history: HistoryHandler, record: CompactionRecord) -> list[Segment]:
    """The segments of what left; raises `AssistantError` if the archive is damaged."""
    segments, forgotten = list[Segment](), history.tombstones()
    for summary_id in record.summaries:
        summary = history.summary(summary_id)
        if summary is None:
            raise _damaged(f"`{summary_id}` is missing")
        for key in summary.segments:
            segment = history.segment(key)
            if segment is None:
                raise _damaged(f"`{key}` is missing")
            cited = [each for place, each in summary.places if place == key]
            left = [each for each in cited if each not in forgotten]
            if segment.checksum != segment.sha256 or segment.message_ids != left:
                raise _damaged(f"`{key}` was changed")
            segments.append(segment)
    return segments


def _damaged(why: str) -> AssistantError:
    return AssistantError(
        f"Of what the compaction archived {why}. Nothing was changed. `compact/verify` shows all "
        "that is wrong; put it back from a backup, then take the compaction back."
    )
