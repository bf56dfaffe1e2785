"""The commit of a compaction: everything together, or nothing.

Each step has a name. A crash or an exception between any two leaves everything as it was, in the
database and in Evennia's caches.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import order_before
from evennia_ai.history.records import CompactionRecord, SummaryRecord
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.extraction import Note, write_notes
from evennia_ai.sleep.compaction.folding import Fold
from evennia_ai.sleep.compaction.plan import Plan, spliced

COMMIT_STEPS = (
    "archive",
    "summaries",
    "history",
    "notes",
    "journal",
    "record",
    "last_compaction",
)
REMAKE_STEPS = ("summaries", "record", "last_compaction")
# What of a summary changes when it is made again.
REMADE = ("text", "level", "coverage", "unsupported")


class CompactionCommit:
    """Carries out a plan in one transaction, calling `at_commit_step` before each step."""

    def __init__(self, script: Assistant):
        self.history, self.journal, self.state = script.history, script.journal, script.state
        self._script = script
        self.on_step = script.at_commit_step

    def __call__(
        self,
        plan: Plan,
        folds: Sequence[Fold],
        record: CompactionRecord,
        notes: Sequence[Note] = (),
    ) -> None:
        """Commit; raises what a step raised, with nothing changed.

        `notes` are those of the extraction. What a rollback needs is added to the record.
        """
        history, full = self.history, self._with_undoing(record, folds)
        order = order_before(history.messages(), plan.leaving)
        full = replace(full, order=order)
        with history.store.transaction():
            self.on_step("archive")
            for made in folds:
                if made.sealed is not None:
                    history.archive(made.sealed)
            self.on_step("summaries")
            for made in folds:
                for summary in made.records.values():
                    history.save_summary(summary)
            self.on_step("history")
            markers = [marker for made in folds for marker in made.markers]
            history.replace(spliced(history.messages(), plan, markers))
            self.on_step("notes")
            written = write_notes(self._script, notes) if notes else {}
            both = {
                key: [*full.extraction.get(key, ()), *written.get(key, ())]
                for key in ("ids", "entries")
            }
            full = replace(full, extraction=both)
            self.on_step("journal")
            new = [self.journal.add(**fields).id for made in folds for fields in made.entries]
            self.on_step("record")
            if self.state.intent.get("extracts"):
                self.state.owe({**self.state.owed, record.id: False})
            self.state.intend({"phase": "committed", "id": record.id})
            self._close(replace(full, entries=tuple(new)))
            self.on_step("last_compaction")
            self._note_last(full)
            self.on_step("done")

    def masks(self, messages: Sequence[Message], record: CompactionRecord) -> None:
        """Commit masks alone, with their record."""
        full = self._with_undoing(record, ())
        with self.history.store.transaction():
            self.on_step("history")
            self.history.replace(messages)
            self.on_step("record")
            self._close(full)  # masks need no publishing: the intent stays as it is
            self.on_step("last_compaction")
            self._note_last(full)
            self.on_step("done")

    def remade(
        self,
        records: Sequence[SummaryRecord],
        record: CompactionRecord,
        put: Callable[[Assistant, Sequence[SummaryRecord]], None],
    ) -> CompactionRecord:
        """Commit summaries that were made again, by `put`; returns the record as it is stored."""
        full = self._with_undoing(record, ())
        former = filter(None, map(self.history.summary, (each.id for each in records)))
        texts = {each.id: {key: getattr(each, key) for key in REMADE} for each in former}
        with self.history.store.transaction():
            self.on_step("summaries")
            put(self._script, records)
            self.on_step("record")
            result = {**record.result, "new_tokens": self.history.tokens()}
            full = replace(full, result=result, summaries_before=texts)
            self.state.owe({})
            self.state.intend({"phase": "committed", "id": record.id})
            self._close(full)
            self.on_step("last_compaction")
            self._note_last(full)
            self.on_step("done")
        return full

    def _with_undoing(self, record: CompactionRecord, folds: Sequence[Fold]) -> CompactionRecord:
        """The record with what a rollback needs to know of the state before."""
        written = [summary_id for made in folds for summary_id in made.records]
        before = {
            each: {"status": known.status, "absorbed_by": known.absorbed_by}
            for each in written
            if (known := self.history.summary(each)) is not None
        }
        return replace(
            record,
            summaries=tuple(each for each in written if each not in before),
            summaries_before=before,
            segments=tuple(made.segment for made in folds if made.segment),
            markers=tuple(marker.id for made in folds for marker in made.markers),
            markers_before=tuple(m for m in self.history.messages() if m.is_summary),
            extraction=self.state.extraction,
            last_before=self.state.last_compaction,
        )

    def _close(self, record: CompactionRecord) -> None:
        self.history.save_compaction(record)
        self.state.note_extraction(None)
        # Under a hold, only a manual compaction or an overflow gets here.
        self.state.set_hold(False)

    def _note_last(self, record: CompactionRecord) -> None:
        about = {"id": record.id, "at": record.at, "trigger": record.trigger}
        self.history.store.set("last_compaction", {**about, **record.result})
