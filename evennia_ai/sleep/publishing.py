"""What follows outside the database from a compaction, or from taking one back.

Summaries go into semantic memory; what a rollback withdrew goes out of it and of the recall
index. Both are found by comparing records with what is there, so that a restart may do it again.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.errors import StoreError

MEMORY_SUMMARY = "memory_summary"


@inlineCallbacks
def publish_summaries(script: Any) -> Generator[Deferred[Any], Any, dict[str, int]]:
    """Store recent summaries that semantic memory does not hold yet; delete withdrawn things.

    Returns:
        A Deferred that fires with ``{"published"}``. A failing store is reported and passed
        over: the next compaction publishes what is missing.
    """
    withdrawn = withdrawn_sources(script.history.compactions())
    try:
        yield script.memory.forget(withdrawn)
        known = yield script.semantic.sources(script.scope)
        gone = [known[source] for source in withdrawn if source in known]
        if gone:
            yield script.semantic.delete(script.scope, gone)
        items = [
            summary_item(r)
            for r in _publishable(script.history.summaries())
            if r["id"] not in known
        ]
        if items:
            yield script.semantic.add(script.scope, items)
    except StoreError as error:
        script.log_error("publishing summaries", error)
        return {"published": 0}
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
