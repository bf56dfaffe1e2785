"""Rollback: undo the latest compaction and the extraction before it, in one transaction."""

from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.errors import AssistantError
from evennia_ai.history.messages import utc_iso, widest_view_tokens
from evennia_ai.history.records import COMMITTED, ROLLED_BACK, CompactionRecord
from evennia_ai.llm_interaction.prompt import room_of
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.commit import REMADE
from evennia_ai.sleep.compaction.due import usage_of
from evennia_ai.sleep.compaction.publishing import correct_syntheses, publish_pending
from evennia_ai.sleep.compaction.rollback_plan import Undone, damage, plan_rollback

# What compactions change of summaries.
CHANGED = ("status", "absorbed_by", *REMADE)
ROLLBACK_STEPS = ("history", "summaries", "journal", "entities", "record")


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
        rollback = Rollback(script)
        record = rollback.latest()
        if compaction_id not in (None, record.id):
            raise AssistantError(
                "Another compaction was made meanwhile. Type `compact/rollback` again."
            )
        before, undone = script.history.tokens(), rollback.undone(record)
        tokens = widest_view_tokens(undone.history)
        if usage_of(script, tokens) > 1.0:
            room = room_of(script)
            raise AssistantError(
                f"The messages no longer fit: the history would hold {tokens:,} tokens, and there "
                f"is room for {room.tokens:,} of the {room.limit:,} that a request may hold. Raise "
                "`max_context_tokens` first."
            )
        rollback(record, script.now(), undone)
        report = {
            "compaction_id": record.id,
            "restored_messages": undone.restored,
            "masks_removed": len(record.masked),
            "original_tokens": before,
            "new_tokens": script.history.tokens(),
        }
        script.audit("rollback", **report)
        publish_pending(script)  # not waited for: a store that hangs must not hold up a turn
        return report

    return maybeDeferred(roll_back)


class Rollback:
    """Undoes a compaction and the extraction before it, calling `at_commit_step` at each step."""

    def __init__(self, script: Assistant):
        self.history, self.journal, self.state = script.history, script.journal, script.state
        self.entities, self._script = script.entities, script
        self.on_step = script.at_commit_step

    def latest(self) -> CompactionRecord:
        """The compaction that would be rolled back; raises `AssistantError` if there is none."""
        for record in reversed(self.history.compactions()):
            if record.status == COMMITTED:
                return record
        raise AssistantError("There is no compaction to take back.")

    def undone(self, record: CompactionRecord) -> Undone:
        """What the history would be; raises `AssistantError` if the archive is damaged."""
        segments = {key: self.history.segment(key) for key in record.segments}
        if wrong := damage(record, segments):
            raise AssistantError(
                f"{wrong} Nothing was changed. `compact/verify` shows all that is wrong; put "
                "the segment back from a backup, then take the compaction back."
            )
        sound = [segment for segment in segments.values() if segment]
        return plan_rollback(self.history.messages(), record, sound)

    def __call__(self, record: CompactionRecord, at: float, undone: Undone | None = None) -> None:
        """Roll it back, at epoch seconds; what follows outside the database is noted as an intent.

        `undone` is what the method of that name returned for the record, if it was asked before.
        """
        undone, at_iso = undone or self.undone(record), utc_iso(at)
        entries = [*record.entries, *record.extraction.get("entries", ())]
        changed = record.summaries_before.items()
        texts = {key: str(former["text"]) for key, former in changed if "text" in former}
        with self.history.store.transaction():
            self.on_step("history")
            self.history.replace(undone.history)
            self.on_step("summaries")
            for summary in self.history.summaries():
                if summary.id in record.summaries:
                    self.history.save_summary(replace(summary, status=ROLLED_BACK))
                elif before := record.summaries_before.get(summary.id):
                    fields = {key: before[key] for key in CHANGED if key in before}
                    self.history.save_summary(replace(summary, **fields))
            self.on_step("journal")
            self.journal.withdraw(entries)
            correct_syntheses(self._script, texts)
            self.on_step("entities")
            self.entities.forget_sources([*entries, *record.extraction.get("ids", ())])
            self.on_step("record")
            self.history.save_compaction(replace(record, status=ROLLED_BACK, rolled_back_at=at_iso))
            self.history.store.set("last_compaction", dict(record.last_before))
            self.state.set_hold(True)
            self.state.intend({"phase": "committed", "id": record.id, "rolled_back": at_iso})
            self.on_step("done")
