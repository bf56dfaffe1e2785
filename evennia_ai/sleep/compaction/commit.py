"""The commit of a compaction, and its undoing: everything together, or nothing.

Each step has a name. A crash or an exception between any two leaves everything as it was, in the
database and in Evennia's caches.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.plan import Plan, spliced
from evennia_ai.sleep.compaction.rollback_plan import order_before

COMMIT_STEPS = ("archive", "summaries", "history", "journal", "record", "last_compaction")


class CompactionCommit:
    """Carries out a plan in one transaction, calling `at_commit_step` before each step.

    Args:
        script: The assistant.
    """

    def __init__(self, script: Assistant):
        self.history, self.journal, self.state = script.history, script.journal, script.state
        self.on_step = script.at_commit_step

    def __call__(self, plan: Plan, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        """Commit; raises what a step raised, with nothing changed.

        Args:
            plan: What leaves and what stays.
            folds: One `sleep.folding.Fold` an audience.
            record: The compaction's record; what a rollback needs is added to it.
        """
        full = {**record, **self._undoing(folds)}
        full["order"] = order_before(self.history.messages(), plan.leaving)
        with self.history.store.transaction():
            for name in COMMIT_STEPS:
                self.on_step(name)
                getattr(self, f"_{name}")(plan, folds, full)
            self.on_step("done")

    def masks(self, history: Sequence[Message], record: Mapping[str, Any]) -> None:
        """Commit masks alone, with their record."""
        full = {**record, **self._undoing(())}
        with self.history.store.transaction():
            self.on_step("history")
            self.history.replace(history)
            self.on_step("record")
            self._close(full)  # nothing follows from masks: what an earlier one owes stays noted
            self.on_step("last_compaction")
            self._last_compaction(None, (), full)
            self.on_step("done")

    def _undoing(self, folds: Sequence[Any]) -> dict[str, Any]:
        """What a rollback needs to know of the state before."""
        new = {record_id: None for made in folds for record_id in made.records}
        before = {
            r["id"]: {"status": r["status"], "absorbed_by": r.get("absorbed_by")}
            for r in self.history.summaries(lambda r: r["id"] in new)
        }
        return {
            "summaries": [i for i in new if i not in before],
            "summaries_before": before,
            "segments": [made.segment for made in folds],
            "markers": [marker.id for made in folds for marker in made.markers],
            "markers_before": [m.to_dict() for m in self.history.messages() if m.is_summary],
            "extraction": self.state.extraction,
            "last_before": self.state.last_compaction,
        }

    def _archive(self, plan: Plan, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        for made in folds:
            self.history.archive(made.segment, made.summary_id, made.leaving)

    def _summaries(self, plan: Plan, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        for made in folds:
            for summary in made.records.values():
                self.history.save_summary(summary)

    def _history(self, plan: Plan, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        markers = [marker for made in folds for marker in made.markers]
        self.history.replace(spliced(self.history.messages(), plan, markers))

    def _journal(self, plan: Plan, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        made = []
        for fields in (dict(entry) for one in folds for entry in one.entries):
            made.append(self.journal.add(fields.pop("content"), **fields).id)
        record["entries"] = made  # type: ignore[index]

    def _record(self, plan: Any, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        self.state.intend({"phase": "committed", "id": record["id"]})
        self._close(record)

    def _close(self, record: Mapping[str, Any]) -> None:
        self.history.save_compaction(record)
        self.state.note_extraction(None)
        # While it was held, only a manual compaction or an overflow could come to this.
        self.state.set_hold(False)

    def _last_compaction(self, plan: Any, folds: Sequence[Any], record: Mapping[str, Any]) -> None:
        last = {
            "version": record["version"],
            "id": record["id"],
            "at": record["at"],
            "trigger": record["trigger"],
            **record["result"],
        }
        self.history.store.set("last_compaction", last)
