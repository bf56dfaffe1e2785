"""Rollback: undo the latest compaction and the extraction before it, in one transaction.

What it withdrew, or what is forgotten, must leave the search index and semantic memory: it is noted
in one transaction with it, and taken out after it, again after a crash. A summary is indexed as the
journal's synthesis of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError, StoreError
from evennia_ai.history.archive import (
    EMPTIED,
    ROLLED_BACK,
    UNSUMMARISED,
    CompactionRecord,
    Segment,
    SummaryRecord,
    resting_on,
)
from evennia_ai.history.frames import SUMMARY_TITLE
from evennia_ai.history.messages import Message, in_order, unmasked, utc_iso, widest_view_tokens
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.due import usage_of


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
    before, live = script.history.tokens(), script.history.messages()
    history = undo(script, record)
    tokens = widest_view_tokens(history)
    if usage_of(script, tokens) > 1.0:
        room = script.limits().room
        raise AssistantError(
            f"The messages no longer fit: the history would hold {tokens:,} tokens, and there is "
            f"room for {room.tokens:,} of the {room.limit:,} that a request may hold. Raise "
            "`max_context_tokens` first."
        )
    _commit(script, record, history)
    report = {
        "compaction_id": record.id,
        "restored_messages": _raw(history) - _raw(live),
        "masks_removed": len(record.masked),
        "original_tokens": before,
        "new_tokens": script.history.tokens(),
    }
    script.audit("rollback", **report)
    empty_outbox(script)  # not waited for: a store that hangs must not hold up a turn
    return report


def _raw(messages: Sequence[Message]) -> int:
    return sum(not message.is_summary for message in messages)


def latest(script: Assistant) -> CompactionRecord:
    """The compaction that would be rolled back; raises `AssistantError` if there is none."""
    if (record := script.history.last_compaction()) is None:
        raise AssistantError("There is no compaction to take back.")
    return record


def undo(script: Assistant, record: CompactionRecord) -> tuple[Message, ...]:
    """What the history would be: the raw messages as they stood, with what came since.

    Raises `AssistantError` if the archive is damaged.
    """
    history, segments, cited = script.history, list[Segment](), set[str]()
    for summary_id in record.summaries:
        summary = history.summary(summary_id)
        if summary is None:
            raise _damaged(f"Summary `{summary_id}` is missing.")
        cited.update(summary.source_ids)
        for key in summary.segments:
            segment = history.segment(key)
            if segment is None or segment.checksum != segment.sha256:
                raise _damaged(f"Archive segment `{key}` is missing or was changed.")
            segments.append(segment)
    present = {each for segment in segments for each in segment.message_ids}
    if odd := sorted(present ^ (cited - history.tombstones().keys())):
        keys = ", ".join(f"`{segment.id}`" for segment in segments)
        raise _damaged(f"The archive segments ({keys}) do not hold just what left: see `{odd[0]}`.")
    texts = {summary.id: summary.text for summary in history.summaries()}
    markers = [with_text(script, marker, texts) for marker in record.markers_before]
    restored = [message for segment in segments for message in segment.messages]
    raw = in_order([*restored, *(m for m in history.messages() if not m.is_summary)])
    return (*markers, *(unmasked(m) if m.id in record.masked else m for m in raw))


def _damaged(why: str) -> AssistantError:
    return AssistantError(
        f"{why} Nothing was changed. `compact/verify` shows all that is wrong; put the segment "
        "back from a backup, then take the compaction back."
    )


def _commit(script: Assistant, record: CompactionRecord, messages: Sequence[Message]) -> None:
    """Take it back in one transaction, calling `at_commit_step` before each step."""
    history, step, at_iso = script.history, script.at_commit_step, utc_iso(script.now())
    with history.store.transaction():
        step("history")
        history.replace(messages)
        step("summaries")
        for summary in filter(None, map(history.summary, record.summaries)):
            history.save_summary(replace(summary, rolled_back=True))
        step("journal")
        script.journal.withdraw(record.entries)
        step("entities")
        script.entities.forget_sources(record.entries)
        step("record")
        history.save_compaction(replace(record, status=ROLLED_BACK, rolled_back_at=at_iso))
        history.note_last_compaction()
        script.state.hold = True
        script.state.outbox = [*script.state.outbox, *record.entries]
        step("done")


@inlineCallbacks
def empty_outbox(script: Assistant) -> Steps[None]:
    """As `clear_outbox`; what fails is only logged, as what was done stands."""
    try:
        yield clear_outbox(script)
    except Exception as error:  # noqa: BLE001
        script.log_error("publishing", error)


@inlineCallbacks
def clear_outbox(script: Assistant) -> Steps[None]:
    """Take what was withdrawn or forgotten out of the recall index and of semantic memory.

    What fails stays noted: it is tried again after the next rollback, in the next night and at the
    next start. Fails with `StoreError` if either holds it still.
    """
    memory, memories = script.memory, script.mind.memories
    while script.pk is not None and (gone := script.state.outbox):  # or deleted meanwhile
        yield memory.forget(gone)
        if (yield memory.missing(gone)) != len(set(gone)):
            raise StoreError("The search index could not be cleared of what is to go.")
        yield memories.delete(script.scope, gone)
        if not (yield memories.ids(script.scope)).isdisjoint(gone):
            raise StoreError("Semantic memory could not be cleared of what is to go.")
        script.state.outbox = [each for each in script.state.outbox if each not in gone]


def put_texts(script: Assistant, texts: Mapping[str, str]) -> None:
    """Show these texts, by summary ids, where the live history shows one of the summaries."""
    live = script.history.messages()
    shown = [with_text(script, message, texts) for message in live]
    if any(new is not old for new, old in zip(shown, live, strict=True)):
        script.history.replace(shown)


def empty_summary(script: Assistant, record: SummaryRecord) -> None:
    """Empty a summary, wherever it is shown; it is made again in a lull (`remake`)."""
    extra = {**record.extra, "lost": [], "rejected": []}
    script.history.save_summary(replace(record, text=EMPTIED, extra=extra))
    put_texts(script, {record.id: EMPTIED})
    script.state.stale = list(dict.fromkeys((*script.state.stale, record.id)))


def empty_unused(script: Assistant) -> None:
    """Empty the summaries that were made from lines that are taken back."""
    if not (lines := script.memory.quarantine.lines):
        return
    records = {r.id: r for r in script.history.summaries() if not r.rolled_back}
    made_with = [key for key, record in records.items() if not lines.isdisjoint(record.rests_on)]
    for each in resting_on(made_with, {key: record.child_ids for key, record in records.items()}):
        if records[each].tier != UNSUMMARISED and records[each].text != EMPTIED:
            empty_summary(script, records[each])


def with_text(script: Assistant, message: Message, texts: Mapping[str, str]) -> Message:
    """A marker with the text of its summary; the same for others, and without a text for it."""
    text = texts.get(str(message.metadata.get("summary_id")))
    if text is None or not message.is_summary:
        return message
    metadata = {**message.metadata, "summary_token_count": script.count(text)}
    changed = replace(message, content=f"{SUMMARY_TITLE}\n{text}", metadata=metadata)
    return changed.counted(script.count)
