"""What a rollback changes outside the database, and texts that summaries stand in.

A summary goes into the recall index as the journal's synthesis of it. What a rollback withdrew
leaves the index and semantic memory: it is noted in the rollback's transaction, and done after it,
again after a crash.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.journal_entry import JournalEntry, synthesis_id


@inlineCallbacks
def empty_outbox(script: Assistant) -> Steps[bool]:
    """Take what rollbacks withdrew out of the recall index and of semantic memory.

    What fails stays noted: it is tried again after the next rollback, in the next night and at the
    next start. Fires with whether nothing is left; never fails.
    """
    while withdrawn := script.state.outbox:
        try:
            yield script.memory.forget(withdrawn)
            yield script.mind.memories.delete(script.scope, withdrawn)
        except Exception as error:  # noqa: BLE001 - the rollback stands
            script.log_error("publishing", error)
            return False
        script.state.outbox = [e for e in script.state.outbox if e not in withdrawn]
    return True


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
