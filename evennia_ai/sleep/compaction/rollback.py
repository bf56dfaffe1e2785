"""Rollback: undo the latest compaction and the extraction before it, in one transaction.

What it withdrew must leave the search index and semantic memory, too (`memory.clear_outbox`). A
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
from evennia_ai.history.messages import in_order, unmasked, utc_iso
from evennia_ai.history.verification import ARCHIVE_CHECKS, Evidence, verify
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.memory import empty_outbox


def rollback_compaction(script: Assistant, compaction_id: str | None = None) -> dict[str, Any]:
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
    record = latest(script)
    if compaction_id not in (None, record.id):
        raise AssistantError(
            "Another compaction was made meanwhile. Type `compact/rollback` again."
        )
    history, step, segments = script.history, script.at_commit_step, archived(script, record)
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
    empty_outbox(script)  # not waited for: a store that hangs must not hold up a turn
    return report


def latest(script: Assistant) -> CompactionRecord:
    """The compaction that would be rolled back; raises `AssistantError` if there is none."""
    if (record := script.history.last_compaction()) is None:
        raise AssistantError("There is no compaction to take back.")
    return record


def archived(script: Assistant, record: CompactionRecord) -> list[Segment]:
    """The segments of what left; raises `AssistantError` if the archive is damaged."""
    history = script.history
    records = [replace(r, child_ids=()) for r in map(history.summary, record.summaries) if r]
    segments = list(filter(None, (history.segment(key) for r in records for key in r.segments)))
    summaries, tombstones = {r.id: r for r in records}, frozenset(history.tombstones())
    evidence = Evidence((), tuple(segments), summaries, tombstones, 0, "")
    damage = verify(evidence, ARCHIVE_CHECKS)
    if damage or len(records) < len(record.summaries):
        why = damage[0].detail if damage else "The record of a summary is missing."
        raise AssistantError(
            f"{why} Nothing was changed. `compact/verify` shows all that is wrong; put it back "
            "from a backup, then take the compaction back."
        )
    return segments
