"""The commit of a compaction: everything together, or nothing.

Each step has a name. A crash or an exception between any two leaves everything as it was, in the
database and in Evennia's caches.
"""

from collections.abc import Sequence
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.records import CompactionRecord
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.extraction import Note, write_notes
from evennia_ai.sleep.compaction.folding import Fold
from evennia_ai.sleep.compaction.plan import Plan, spliced

EXTRACTIVE = LEVELS[-1]


def commit(
    script: Assistant,
    plan: Plan,
    folds: Sequence[Fold],
    record: CompactionRecord,
    notes: Sequence[Note] = (),
) -> CompactionRecord:
    """Carry out a plan in one transaction, calling `at_commit_step` before each step.

    `notes` are those of the extraction. Returns the record with what a rollback needs; raises what
    a step raised, with nothing changed.
    """
    history, step = script.history, script.at_commit_step
    written = [summary_id for fold in folds for summary_id in fold.records]
    before = {
        each: {"status": known.status, "absorbed_by": known.absorbed_by}
        for each in written
        if (known := history.summary(each)) is not None
    }
    record = replace(
        _with_before(script, record),
        summaries=tuple(each for each in written if each not in before),
        summaries_before=before,
        segments=tuple(fold.segment for fold in folds if fold.segment),
    )
    with history.store.transaction():
        step("archive")
        for fold in folds:
            if fold.sealed is not None:
                history.archive(fold.sealed)
        step("summaries")
        for fold in folds:
            for summary in fold.records.values():
                history.save_summary(summary)
        step("history")
        markers = [marker for fold in folds for marker in fold.markers]
        history.replace(spliced(history.messages(), plan, markers))
        step("notes")
        entries = [*record.entries, *write_notes(script, notes)]
        step("journal")
        entries += [script.journal.put(entry).id for fold in folds for entry in fold.entries]
        step("record")
        if script.runtime.extracts:
            new = (history.summary(each) for each in record.summaries)
            extracts = {s.id: not s.segment for s in new if s and s.level == EXTRACTIVE}
            script.state.owed = {**script.state.owed, **extracts}
        return _close(script, replace(record, entries=tuple(entries)))


def commit_masks(
    script: Assistant, messages: Sequence[Message], record: CompactionRecord
) -> CompactionRecord:
    """Commit masks alone, with their record; returns it as it is stored."""
    record = _with_before(script, record)
    with script.history.store.transaction():
        script.at_commit_step("history")
        script.history.replace(messages)
        script.at_commit_step("record")
        return _close(script, record)


def _with_before(script: Assistant, record: CompactionRecord) -> CompactionRecord:
    """The record with the markers before it, and what was extracted since the last one.

    The markers are without their texts, which stand in the summaries' records.
    """
    stored = {summary.id for summary in script.history.summaries()}
    markers = (message for message in script.history.messages() if message.is_summary)
    bare = (
        replace(m, content="") if m.metadata.get("summary_id") in stored else m for m in markers
    )
    return replace(record, markers_before=tuple(bare), entries=tuple(script.state.extracted))


def _close(script: Assistant, record: CompactionRecord) -> CompactionRecord:
    """The last steps of every commit."""
    script.history.save_compaction(record)
    script.state.extracted = []
    # Under a hold, only a manual compaction or an overflow gets here.
    script.state.hold = False
    script.at_commit_step("last_compaction")
    script.history.note_last_compaction()
    script.at_commit_step("done")
    return record
