"""What follows outside the database from a compaction, or from taking one back.

Summaries go into semantic memory; what a rollback withdrew goes out of it and of the recall
index. Both are found by comparing records with what is there, so that a restart may do it again.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.messages import utc_iso
from evennia_ai.protocol import MEMORY_SUMMARY, Assistant

# Phases of the intent: a compaction is at work; one, or a rollback, is stored, and what follows
# from it outside the database is owed.
SUMMARISING, COMMITTED = "summarising", "committed"


def begin_intent(script: Assistant, trigger: str) -> None:
    """Note that a compaction begins, and keep in mind what an earlier one still owes."""
    owed = is_owed(script.state.intent)
    intent = {"phase": SUMMARISING, "at": utc_iso(script.now()), "trigger": trigger}
    script.state.intend({**intent, "owed": True} if owed else intent)


def drop_intent(script: Assistant) -> bool:
    """Note that a compaction ended without a commit; what an earlier one owes stays noted.

    Returns:
        Whether something is owed now.
    """
    intent = script.state.intent
    if intent.get("phase") != SUMMARISING:
        return False
    owed = bool(intent.get("owed"))
    script.state.intend({"phase": COMMITTED} if owed else None)
    return owed


def is_owed(intent: Mapping[str, Any]) -> bool:
    """Whether a stored compaction or rollback still owes what follows from it."""
    return intent.get("phase") == COMMITTED or bool(intent.get("owed"))


@inlineCallbacks
def publish_owed(script: Assistant) -> Generator[Deferred[Any], Any, bool]:
    """Do what a commit or a rollback noted to follow from it; what fails stays noted.

    It is tried again after the next compaction, in the next night and at the next start.

    Returns:
        A Deferred that fires with whether nothing is owed any more; it never fails.
    """
    while is_owed(owed := script.state.intent):
        try:
            yield publish_summaries(script)
        except Exception as error:  # noqa: BLE001 - the compaction stands
            script.log_error("publishing summaries", error)
            return False
        if owed.get("phase") == SUMMARISING:
            return False  # a compaction is at work; it publishes when it ends, one way or other
        # What was committed or taken back meanwhile is owed still.
        if script.state.intent == owed:
            script.state.intend(None)
    return True


@inlineCallbacks
def publish_summaries(script: Assistant) -> Generator[Deferred[Any], Any, dict[str, int]]:
    """Store recent summaries that semantic memory does not hold yet; delete withdrawn things.

    Returns:
        A Deferred that fires with ``{"published"}``, or fails with `StoreError`; what was done
        before stays done.
    """
    withdrawn = withdrawn_sources(script.history.compactions())
    yield script.memory.forget(withdrawn)
    known = yield script.mind.memories.sources(script.scope)
    gone = [known[source] for source in withdrawn if source in known]
    if gone:
        yield script.mind.memories.delete(script.scope, gone)
    items = [
        summary_item(r) for r in _publishable(script.history.summaries()) if r["id"] not in known
    ]
    if items:
        yield script.mind.memories.add(script.scope, items)
    return {"published": len(items)}


def withdrawn_sources(compactions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Ids of the summaries and journal entries that rollbacks withdrew."""
    return [
        source
        for record in compactions
        if record["status"] == "rolled back"
        for source in (
            *record.get("summaries", ()),
            *record.get("entries", ()),
            *(record.get("extraction") or {}).get("entries", ()),
        )
    ]


def _publishable(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        r for r in records if r["tier"] in ("recent", "single") and r["status"] != "rolled back"
    ]


def summary_item(record: Mapping[str, Any]) -> dict[str, Any]:
    """A summary's record as an item for the semantic store."""
    ids = record["source_ids"]
    meta = {
        "type": MEMORY_SUMMARY,
        "at": record["created_at"],
        "audience": record["audience"],
        "messages": len(ids),
        "first_message": ids[0] if ids else "",
        "last_message": ids[-1] if ids else "",
    }
    return {"source_id": record["id"], "text": record["text"], "metadata": meta}
