"""What a compaction or a rollback changes outside the database.

A summary goes into the recall index as the journal's synthesis of it. What a rollback withdrew
leaves the index and semantic memory; a restart may do it again.
"""

from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.records import ROLLED_BACK
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.journal_entry import JournalEntry, synthesis_id

# Phases of the intent: a compaction is at work; a compaction or rollback is stored, and publishing
# is pending.
SUMMARISING, COMMITTED = "summarising", "committed"


def begin_intent(script: Assistant, trigger: str, extracts: bool = False) -> None:
    """Note that a compaction begins, and if it only `extracts`; pending publishing stays noted."""
    pending = is_pending(script.state.intent)
    intent: dict[str, Any] = {"phase": SUMMARISING, "trigger": trigger}
    intent |= {"at": utc_iso(script.now()), **({"extracts": True} if extracts else {})}
    script.state.intend({**intent, "owed": True} if pending else intent)


def drop_intent(script: Assistant) -> bool:
    """Note that a compaction ended without a commit; returns whether publishing is pending."""
    intent = script.state.intent
    if intent.get("phase") != SUMMARISING:
        return False
    pending = is_pending(intent)
    script.state.intend({"phase": COMMITTED} if pending else None)
    return pending


def is_pending(intent: Mapping[str, Any]) -> bool:
    """Whether a stored compaction or rollback is not published yet."""
    return intent.get("phase") == COMMITTED or bool(intent.get("owed"))


@inlineCallbacks
def publish_pending(script: Assistant) -> Generator[Deferred[Any], Any, bool]:
    """Publish what a commit or a rollback noted; what fails stays noted.

    It is tried again after the next compaction, in the next night and at the next start. Fires
    with whether nothing is pending any more; never fails.
    """
    while is_pending(intent := script.state.intent):
        try:
            yield _publish(script)
            if intent.get("phase") == SUMMARISING:
                return False  # a compaction is at work; it publishes when it ends
            # What was committed or rolled back meanwhile is still pending.
            if script.state.intent == intent:
                script.state.intend(None)
        except Exception as error:  # noqa: BLE001 - the compaction stands
            script.log_error("publishing", error)
            return False
    return True


@inlineCallbacks
def _publish(script: Assistant) -> Generator[Deferred[Any], Any, None]:
    """Take what rollbacks withdrew out of the recall index and of semantic memory."""
    withdrawn = [
        entry
        for record in script.history.compactions()
        if record.status == ROLLED_BACK
        for entry in (*record.entries, *record.extraction.get("entries", ()))
    ]
    if withdrawn:
        yield script.memory.forget(withdrawn)
        yield script.mind.memories.delete(script.scope, withdrawn)


def correct_syntheses(script: Assistant, texts: Mapping[str, str]) -> None:
    """Give the journal entries of summaries other texts, by the ids of the summaries.

    The search index follows once the change is stored.
    """
    if not texts:
        return
    wanted = {synthesis_id(each): f"{SYNTHESIS_TITLE} {text}" for each, text in texts.items()}

    def corrected(entry: JournalEntry) -> JournalEntry:
        is_meant = entry.id in wanted and not entry.withdrawn
        return replace(entry, content=wanted[entry.id]) if is_meant else entry

    journal = script.journal
    for entry in journal.rewrite(corrected, journal.pages_with(wanted)):
        script.history.store.on_commit(partial(script.memory.correct_entry, entry))
