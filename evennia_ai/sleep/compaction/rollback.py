"""Rollback: undo the latest compaction and the extraction before it, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.errors import AssistantError
from evennia_ai.history.masking import unmasked
from evennia_ai.history.messages import Message, in_order, utc_iso, widest_view_tokens
from evennia_ai.history.records import ROLLED_BACK, CompactionRecord, Segment
from evennia_ai.llm_interaction.prompt import room_of
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import REMADE
from evennia_ai.sleep.compaction.due import usage_of
from evennia_ai.sleep.compaction.outbox import correct_syntheses, empty_outbox
from evennia_ai.sleep.compaction.remake import with_text

# What compactions change of summaries.
CHANGED = ("status", "absorbed_by", *REMADE)
ROLLBACK_STEPS = ("history", "summaries", "journal", "entities", "record")


@dataclass(frozen=True)
class Undone:
    """A history taken back: former markers, what had left, what stayed and came since.

    `restored` is how many messages came back from the archive.
    """

    history: tuple[Message, ...]
    restored: int = 0


def rollback_compaction(
    script: Assistant, character: Character, compaction_id: str | None = None
) -> Deferred[dict[str, Any]]:
    """Make the messages of the latest compaction live again.

    Its segment counts as restored. Its summaries, its synthesis and what the extraction before it
    made are withdrawn; semantic memory and the recall index follow soon after. Automatic triggers
    hold until the next manual compaction or an overflow.

    Returns:
        A Deferred that fires with ``{"compaction_id", "restored_messages", "masks_removed",
        "original_tokens", "new_tokens"}``. It fails with `AssistantError` if there is none, if the
        one asked for is no longer the latest, if its archive is damaged (with the segment), or if
        its messages no longer fit (with the numbers).
    """

    def roll_back() -> dict[str, Any]:
        record = latest(script)
        if compaction_id not in (None, record.id):
            raise AssistantError(
                "Another compaction was made meanwhile. Type `compact/rollback` again."
            )
        before, undone = script.history.tokens(), undo(script, record)
        tokens = widest_view_tokens(undone.history)
        if usage_of(script, tokens) > 1.0:
            room = room_of(script)
            raise AssistantError(
                f"The messages no longer fit: the history would hold {tokens:,} tokens, and there "
                f"is room for {room.tokens:,} of the {room.limit:,} that a request may hold. Raise "
                "`max_context_tokens` first."
            )
        _commit(script, record, undone)
        report = {
            "compaction_id": record.id,
            "restored_messages": undone.restored,
            "masks_removed": len(record.masked),
            "original_tokens": before,
            "new_tokens": script.history.tokens(),
        }
        script.audit("rollback", **report)
        empty_outbox(script)  # not waited for: a store that hangs must not hold up a turn
        return report

    return maybeDeferred(roll_back)


def latest(script: Assistant) -> CompactionRecord:
    """The compaction that would be rolled back; raises `AssistantError` if there is none."""
    record = script.history.last_compaction()
    if record is None:
        raise AssistantError("There is no compaction to take back.")
    return record


def undo(script: Assistant, record: CompactionRecord) -> Undone:
    """What the history would be; raises `AssistantError` if the archive is damaged."""
    segments = {key: script.history.segment(key) for key in record.segments}
    if wrong := damage(record, segments):
        raise AssistantError(
            f"{wrong} Nothing was changed. `compact/verify` shows all that is wrong; put "
            "the segment back from a backup, then take the compaction back."
        )
    sound = [segment for segment in segments.values() if segment]
    texts = {summary.id: summary.text for summary in script.history.summaries()}
    texts |= former_texts(record)
    markers = list(record.markers_before)
    for key, text in texts.items():
        markers = [with_text(script, marker, [key], text) for marker in markers]
    record = replace(record, markers_before=tuple(markers))
    return plan_rollback(script.history.messages(), record, sound)


def former_texts(record: CompactionRecord) -> dict[str, str]:
    """What the summaries said that a compaction made again, by their ids."""
    former = record.summaries_before.items()
    return {key: str(fields["text"]) for key, fields in former if "text" in fields}


def damage(record: CompactionRecord, segments: Mapping[str, Segment | None]) -> str:
    """Why the messages of a compaction cannot come back as they left.

    Args:
        record: The compaction's record.
        segments: Its archive segments by id, None for one that is missing or cannot be read.

    Returns:
        A sentence that names the segment; empty if all is there. Forgotten messages may be missing.
    """
    left, present = set(record.leaving), set[str]()
    for key, segment in segments.items():
        if segment is None:
            return f"Archive segment `{key}` is missing or cannot be read."
        if segment.checksum != segment.sha256:
            return f"Archive segment `{key}` was changed since it was sealed: its checksum differs."
        present.update(segment.message_ids, segment.tombstones)
        if odd := sorted(set(segment.message_ids) - left):
            return f"Archive segment `{key}` holds `{odd[0]}`, which did not leave with it."
    if lost := sorted(left - present):
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

    Masks set by the compaction are removed.
    """
    restored = [message for segment in segments for message in segment.messages]
    raw = in_order([*restored, *(m for m in current if not m.is_summary)])
    masks = set(record.masked)
    messages = [unmasked(m) if m.id in masks else m for m in raw]
    return Undone((*record.markers_before, *messages), len(restored))


def _commit(script: Assistant, record: CompactionRecord, undone: Undone) -> None:
    """Take it back in one transaction, calling `at_commit_step` before each step."""
    history, step, at_iso = script.history, script.at_commit_step, utc_iso(script.now())
    changed = record.summaries_before
    with history.store.transaction():
        step("history")
        history.replace(undone.history)
        step("summaries")
        for summary in history.summaries():
            if summary.id in record.summaries:
                history.save_summary(replace(summary, status=ROLLED_BACK))
            elif before := changed.get(summary.id):
                fields = {key: before[key] for key in CHANGED if key in before}
                history.save_summary(replace(summary, **fields))
        step("journal")
        script.journal.withdraw(record.entries)
        correct_syntheses(script, former_texts(record))
        step("entities")
        script.entities.forget_sources(record.entries)
        step("record")
        history.save_compaction(replace(record, status=ROLLED_BACK, rolled_back_at=at_iso))
        history.note_last_compaction()
        script.state.hold = True
        script.state.outbox = [*script.state.outbox, *record.entries]
        step("done")
