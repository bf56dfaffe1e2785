"""Taking the latest compaction back, in one transaction."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.errors import AssistantError
from evennia_ai.history.messages import SCHEMA_VERSION, new_id, utc_iso
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.sleep.compaction.rollback_plan import (
    Undone,
    damage,
    plan_rollback,
    profile_without,
    without_extraction,
)

ROLLBACK_STEPS = ("history", "withdrawn", "summaries", "journal", "entities", "record")


class Rollback:
    """Undoes a compaction and the extraction before it, calling `at_commit_step` at each step.

    Args:
        script: The assistant.
    """

    def __init__(self, script: Assistant):
        self.history, self.journal, self.state = script.history, script.journal, script.state
        self.entities = script.entities
        self.on_step = script.at_commit_step

    def latest(self) -> dict[str, Any]:
        """The compaction that would be taken back.

        Raises:
            AssistantError: If there is none.
        """
        for record in self.history.compactions()[::-1]:
            if record["status"] == "committed":
                return record
        raise AssistantError("There is no compaction to take back.")

    def undone(self, record: Mapping[str, Any]) -> Undone:
        """What the history would be.

        Raises:
            AssistantError: If what the archive holds is not what left with the compaction.
        """
        segments = {key: self.history.segment(key) for key in record.get("segments", ())}
        if wrong := damage(record, segments):
            raise AssistantError(
                f"{wrong} Nothing was changed. `compact/verify` shows all that is wrong; put "
                "the segment back from a backup, then take the compaction back."
            )
        sound = [segment for segment in segments.values() if segment]
        return plan_rollback(self.history.messages(), record, sound)

    def __call__(self, record: Mapping[str, Any], at: float, undone: Undone | None = None) -> None:
        """Take it back; what follows outside the database is noted as an intent.

        Args:
            record: The compaction's record.
            at: The time, seconds since the epoch.
            undone: What `undone` just gave for it, if it was asked before.
        """
        undone = undone or self.undone(record)
        extraction = record.get("extraction") or {}
        entries = [*record.get("entries", ()), *extraction.get("entries", ())]
        with self.history.store.transaction():
            self.on_step("history")
            self.history.replace(undone.history)
            self.on_step("withdrawn")
            self._withdraw_messages(record, undone, at)
            self.on_step("summaries")
            self._take_back_summaries(record)
            self.on_step("journal")
            self.journal.withdraw(entries)
            self.on_step("entities")
            self._take_back_profiles(extraction)
            self.entities.forget_sources(entries)
            self.on_step("record")
            self._close(record, at)
            self.on_step("done")

    def _withdraw_messages(self, record: Mapping[str, Any], undone: Undone, at: float) -> None:
        """The extraction's calls go into a segment of their own: nothing is deleted."""
        if not undone.withdrawn:
            return
        segment, summary_id = new_id("g"), new_id("s")
        ids = [message.id for message in undone.withdrawn]
        self.history.archive(segment, summary_id, undone.withdrawn)
        self.history.save_summary(
            {
                "version": SCHEMA_VERSION,
                "id": summary_id,
                "tier": "withdrawn",
                "status": "live",
                "created_at": utc_iso(at),
                "audience": "staff",
                "source_ids": ids,
                "child_ids": [],
                "segment": segment,
                "text": f"Tool calls of the extraction before compaction "
                f"{record['id']}, taken back with it.",
                "model": "",
                "level": "",
                "retention": None,
                "prompt_tokens": 0,
                "generation": 0,
                "lost": [],
                "rejected": [],
            }
        )

    def _take_back_summaries(self, record: Mapping[str, Any]) -> None:
        before = record.get("summaries_before", {})
        for summary in self.history.summaries():
            if summary["id"] in record.get("summaries", ()):
                self.history.save_summary({**summary, "status": "rolled back"})
            elif summary["id"] in before:
                self.history.save_summary({**summary, **before[summary["id"]]})

    def _take_back_profiles(self, extraction: Mapping[str, Any]) -> None:
        """Profiles without what the extraction added."""
        sources = set(extraction.get("ids", ()))
        now = {key: profile.to_dict() for key, profile in self.entities.profiles().items()}
        after = extraction.get("profiles_after", {})
        taken = {
            key: profile_without(now[key], before, after.get(key), sources)
            for key, before in extraction.get("profiles", {}).items()
            if key in now
        }
        others = {
            key: without_extraction(profile, sources)
            for key, profile in now.items()
            if key not in taken
        }
        changed = {key: new for key, new in others.items() if new != now[key]}
        kept = {key: profile for key, profile in taken.items() if profile} | changed
        self.entities.put({key: Profile.from_dict(profile, key) for key, profile in kept.items()})
        self.entities.remove(key for key, profile in taken.items() if profile is None)

    def _close(self, record: Mapping[str, Any], at: float) -> None:
        self.history.save_compaction(
            {**record, "status": "rolled back", "rolled_back_at": utc_iso(at)}
        )
        self.history.store.set("last_compaction", dict(record.get("last_before") or {}))
        self.state.set_hold(True)
        self.state.intend({"phase": "committed", "id": record["id"], "rolled_back": utc_iso(at)})
