"""The proof that nothing was lost, from what is stored."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.core.verification import Evidence, Violation, verify
from evennia_ai.handlers.history import HistoryHandler, checksum


def evidence_of(history: HistoryHandler) -> Evidence:
    """All that the proof needs, loaded from the store."""
    count, digest = history.recorded
    tombstones: Any = history.store.get("tombstones")
    return Evidence(
        live=history.messages(),
        segments=tuple(history.segments()),
        restored=frozenset(history.restored_segments()),
        summaries={record["id"]: record for record in history.summaries()},
        tombstones=frozenset(
            map(str, tombstones if isinstance(tombstones, Mapping | list) else ())
        ),
        recorded_count=count,
        recorded_digest=digest,
        checksum=checksum,
    )


def verify_history(script: Any) -> tuple[Violation, ...]:
    """Violations of the invariant; empty if every message is accounted for."""
    return verify(evidence_of(script.history))
