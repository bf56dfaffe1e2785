"""The proof that nothing was lost, from what is stored."""

from collections.abc import Iterable, Mapping
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import pause
from evennia_ai.history.live import ARCHIVE, HistoryHandler
from evennia_ai.history.records import Segment
from evennia_ai.history.verification import Evidence, Violation, verify
from evennia_ai.protocol import Assistant

# Messages of archive segments read before everything else on the reactor has its turn.
SLICE = 256


def evidence_of(history: HistoryHandler, segments: Iterable[Segment] | None = None) -> Evidence:
    """All that the proof needs, loaded from the store.

    Args:
        history: The history to be proven.
        segments: Its archive segments, if they were loaded before.
    """
    count, digest = history.recorded
    tombstones: Any = history.store.get("tombstones")
    return Evidence(
        live=history.messages(),
        segments=tuple(s.to_dict() for s in (history.segments() if segments is None else segments)),
        restored=frozenset(history.restored_segments()),
        summaries={record["id"]: record for record in history.summaries()},
        tombstones=frozenset(
            map(str, tombstones if isinstance(tombstones, Mapping | list) else ())
        ),
        recorded_count=count,
        recorded_digest=digest,
        rebuilt_at=history.rebuilt_at,
    )


@inlineCallbacks
def gathered_evidence(history: HistoryHandler, reactor: Any = None) -> Any:
    """The same, the archive read in slices with pauses between them.

    A segment that is new or was changed meanwhile is read again, so that all of it is of the
    moment at which it is handed out.

    Args:
        history: The history to be proven.
        reactor: Where to pause; Twisted's by default.

    Returns:
        A Deferred that fires with the `Evidence`.
    """
    known: dict[str, tuple[object, Segment | None]] = {}
    for _ in history.warm():
        yield pause(reactor)
    while _read_slice(history, known):
        yield pause(reactor)
    return evidence_of(history, [found for _, (_, found) in sorted(known.items()) if found])


def _read_slice(history: HistoryHandler, known: dict[str, tuple[object, Segment | None]]) -> bool:
    """Read segments that are not known as they are now; returns whether some may be left."""
    keys = history.store.keys(ARCHIVE)
    for gone in known.keys() - set(keys):
        del known[gone]
    read = 0
    for key in keys:
        stamp = history.store.stamp(key, ARCHIVE)
        if key not in known or known[key][0] is not stamp:
            if read >= SLICE:
                return True
            found = history.segment(key)
            known[key] = (history.store.stamp(key, ARCHIVE), found)
            read += len(found.messages) if found else 1
    return False


def verify_history(script: Assistant) -> tuple[Violation, ...]:
    """Violations of the invariant; empty if every message is accounted for."""
    return verify(evidence_of(script.history))
