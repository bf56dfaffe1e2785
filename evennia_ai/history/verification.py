"""The proof that nothing was lost: every message is somewhere, once, and whole.

From plain data `verify` checks, and names what fails:

- each message id is in the live history, or in one archive segment that was not restored, or
  under a tombstone, and in one of them only;
- there are as many as were recorded, and the same ones, by a digest that any order gives;
- each segment's checksum matches (`segment_checksum`);
- each segment has its summary's record, which cites the segment's messages; from it the chain of
  summaries that absorbed one another ends at one live summary;
- each live summary is shown: a marker in the live history names it, or names one made from it;
- what a rollback gave back is there again, and what was forgotten is nowhere.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.digest import EMPTY_DIGEST, MODULUS, digest_add
from evennia_ai.history.messages import Message
from evennia_ai.history.records import segment_checksum

_DIGEST = re.compile("[0-9a-f]{64}")
_NAMED_IDS = 10
LIVE, ABSORBED, ROLLED_BACK = "live", "absorbed", "rolled back"
# The tier of what a rollback took out with the compaction, as the calls of its extraction: kept
# under a record of its own, which no marker shows.
WITHDRAWN = "withdrawn"

Record = Mapping[str, Any]
# Where the chain from a summary ends, and, where it does not, why.
_End = tuple[str, str]


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong.

    Args:
        kind: ``place``, ``record``, ``digest``, ``checksum``, ``chain``, ``marker``,
            ``sources``, ``restored`` or ``tombstone``.
        detail: A sentence that names the ids.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class Evidence:
    """All that is stored of one assistant's history, as plain data.

    Args:
        live: The live history, markers among it.
        segments: Archive segments: ``{"id", "summary_id", "sha256", "messages"}`` and, where
            messages were forgotten, ``"tombstones"``, see `segment_checksum`.
        restored: Ids of segments that a rollback took back.
        summaries: Records by id: ``{"id", "status", "absorbed_by", "child_ids", "segment",
            "source_ids"}``; `status` is ``live``, ``absorbed`` or ``rolled back``.
        tombstones: Ids of messages that were forgotten on somebody's wish.
        recorded_count: How many messages were ever recorded, markers not counted.
        recorded_digest: `digest_add` over their ids.
        rebuilt_at: When the record of ids was lost and made anew from what was left, UTC ISO
            8601; empty if it never was.
    """

    live: tuple[Message, ...]
    segments: tuple[dict[str, Any], ...]
    restored: frozenset[str]
    summaries: Mapping[str, dict[str, Any]]
    tombstones: frozenset[str]
    recorded_count: int
    recorded_digest: str
    rebuilt_at: str = ""


def verify(evidence: Evidence) -> tuple[Violation, ...]:
    """Check the invariant.

    Returns:
        Every violation, in plain words; empty if it is proven that nothing was lost.
    """
    checks = (
        _places,
        _rebuilt,
        _recorded,
        _seals,
        _records,
        _sources,
        _chains,
        _markers,
        _returns,
        _graves,
    )
    return tuple(violation for check in checks for violation in check(evidence))


def _named(ids: Iterable[str]) -> str:
    """Ids in backticks, the first ones of many."""
    listed = list(ids)
    shown = ", ".join(f"`{each}`" for each in listed[:_NAMED_IDS])
    more = len(listed) - _NAMED_IDS
    return f"{shown} and {more:,} more" if more > 0 else shown


def _segment_ids(segment: Record) -> list[str]:
    return [str(message.get("id") or "") for message in segment.get("messages") or ()]


def _graves_of(segment: Record) -> Mapping[str, str]:
    return segment.get("tombstones") or {}


def _name(segment: Record) -> str:
    return str(segment.get("id") or "")


def _unrestored(evidence: Evidence) -> list[dict[str, Any]]:
    return [segment for segment in evidence.segments if _name(segment) not in evidence.restored]


def _located(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Each message id with each place where it is."""
    for message in evidence.live:
        if not message.is_summary:
            yield message.id, "the live history"
    for segment in _unrestored(evidence):
        for each in _segment_ids(segment):
            yield each, f"segment `{_name(segment)}`"
    for each in sorted(evidence.tombstones):
        yield each, "the tombstones"


def _places(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is in two places, nor twice in one; everything has an id."""
    places: dict[str, list[str]] = {}
    for each, place in _located(evidence):
        places.setdefault(each, []).append(place)
    for place in places.pop("", ()):
        yield Violation("place", f"A message without an id stands in {place}.")
    for each, found in places.items():
        if len(found) > 1:
            where = " and in ".join(found)
            yield Violation("place", f"Message `{each}` stands in {where}; it must be in one.")
    for each, times in Counter(m.id for m in evidence.live if m.is_summary).items():
        if times > 1 or each in places:
            yield Violation("place", f"The id of marker `{each}` is used twice.")


def _rebuilt(evidence: Evidence) -> Iterator[Violation]:
    """The record of ids was kept from the first message on."""
    if evidence.rebuilt_at:
        yield Violation(
            "record",
            f"The record of message ids was lost, by {evidence.rebuilt_at} at the latest, and "
            "made anew from what was left. What stood in the open page then (the newest messages, "
            "not merged into the history yet) cannot be proven: it may be missing. A backup from "
            "before shows it.",
        )


def _recorded(evidence: Evidence) -> Iterator[Violation]:
    """The messages that are there are those that were recorded."""
    if not _DIGEST.fullmatch(evidence.recorded_digest):
        detail = f"The recorded digest `{evidence.recorded_digest}` is none: 64 hex digits are."
        yield Violation("digest", detail)
        return
    found = {each for each, _ in _located(evidence)} - {""}
    digest = digest_add(EMPTY_DIGEST, found)
    gone = evidence.recorded_count - len(found)
    if gone:
        cited = {str(each) for r in evidence.summaries.values() for each in _cited(r)} - found
        known = f" Summaries cite {_named(sorted(cited))}." if cited and gone > 0 else ""
        yield Violation(
            "record",
            f"{evidence.recorded_count:,} messages were recorded and {len(found):,} are there: "
            f"{abs(gone):,} {'missing' if gone > 0 else 'too many'}."
            f"{known}{_single(evidence.recorded_digest, digest, gone)}",
        )
    elif digest != evidence.recorded_digest:
        yield Violation(
            "digest",
            f"The {len(found):,} messages that are there are not those that were recorded: their "
            f"digest is {digest}, not {evidence.recorded_digest}.",
        )


def _single(recorded: str, found: str, gone: int) -> str:
    """How the one message that is missing or too many can be told, by the digests' difference."""
    if abs(gone) != 1:
        return ""
    difference = (int(recorded, 16) - int(found, 16)) * gone % MODULUS
    return f" It is the one the SHA-256 of whose id is {difference:064x}."


def _seals(evidence: Evidence) -> Iterator[Violation]:
    """No segment was changed since it was sealed, restored ones among them."""
    for segment in evidence.segments:
        true = segment_checksum(segment)
        if true != segment.get("sha256"):
            yield Violation(
                "checksum",
                f"Segment `{_name(segment)}` ({_named(_segment_ids(segment))}) was changed: its "
                f"checksum is {true}, not {segment.get('sha256')}.",
            )


def _records(evidence: Evidence) -> Iterator[Violation]:
    """Segments and records name each other, and records those they were made from."""
    segments = Counter(map(_name, evidence.segments))
    for name, times in segments.items():
        if times > 1:
            yield Violation("record", f"There are {times} segments of the id `{name}`.")
    for segment in evidence.segments:
        record = evidence.summaries.get(str(segment.get("summary_id") or ""))
        if record is None or record.get("segment") != _name(segment):
            yield Violation(
                "record",
                f"Segment `{_name(segment)}` names the summary `{segment.get('summary_id')}`, "
                f"{'which has no record' if record is None else 'which names another segment'}.",
            )
    for summary_id, record in evidence.summaries.items():
        yield from _record(evidence, segments, summary_id, record)


def _record(
    evidence: Evidence, segments: Mapping[str, int], summary_id: str, record: Record
) -> Iterator[Violation]:
    if record.get("id") != summary_id:
        detail = f"The record under `{summary_id}` has the id `{record.get('id')}`."
        yield Violation("record", detail)
    if record.get("segment") and str(record["segment"]) not in segments:
        detail = f"Summary `{summary_id}` names the segment `{record['segment']}`; there is none."
        yield Violation("record", detail)
    lost = [child for child in _children(record) if child not in evidence.summaries]
    if lost:
        detail = f"Summary `{summary_id}` was made from {_named(lost)}, without a record."
        yield Violation("record", detail)


def _children(record: Record) -> list[str]:
    """Ids of the summaries a summary was made from."""
    parts = (*(record.get("child_ids") or ()), *(record.get("earlier_ids") or ()))
    return [str(each) for each in parts if each]


def _cited(record: Record) -> list[Any]:
    return list(record.get("source_ids") or ())


def _sources(evidence: Evidence) -> Iterator[Violation]:
    """A summary cites the messages of its segment, all and in order; forgotten ones aside."""
    for segment in evidence.segments:
        record = evidence.summaries.get(str(segment.get("summary_id") or ""))
        if record is None:
            continue
        graves, held = _graves_of(segment), _segment_ids(segment)
        cited = [str(each) for each in _cited(record) if each not in graves]
        if cited != held:
            odd = sorted(set(cited) ^ set(held)) or held
            yield Violation(
                "sources",
                f"Summary `{record.get('id')}` does not cite the messages of segment "
                f"`{_name(segment)}`, or not in their order: see {_named(odd)}.",
            )


def _ends(summaries: Mapping[str, Record]) -> dict[str, _End]:
    """For each summary the live one its chain ends at, or why it ends at none; one pass."""
    ends: dict[str, _End] = {}
    for summary_id in summaries:
        path: dict[str, None] = {}
        at = summary_id
        end = ends.get(at)
        while end is None:
            path[at] = None
            end, at = _step(summaries, at)
            if end is None:
                end = ("", f"runs in a ring at `{at}`") if at in path else ends.get(at)
        ends.update(dict.fromkeys(path, end))
    return ends


def _step(summaries: Mapping[str, Record], at: str) -> tuple[_End | None, str]:
    """The end of a chain at this summary, or None and the next one."""
    record = summaries.get(at)
    if record is None:
        return ("", f"breaks at `{at}`, which has no record"), ""
    status, by = record.get("status"), str(record.get("absorbed_by") or "")
    if status == LIVE and not by:
        return (at, ""), ""
    if status == LIVE:
        return ("", f"is torn at `{at}`, which is live and absorbed by `{by}` at once"), ""
    if status == ABSORBED and by:
        return None, by
    if status == ABSORBED:
        return ("", f"ends at `{at}`, which is absorbed by nothing"), ""
    return ("", f"ends at `{at}`, which is {status}"), ""


def _chains(evidence: Evidence) -> Iterator[Violation]:
    """From each segment that was not restored, and each summary in use, a chain ends live."""
    ends = _ends(evidence.summaries)
    segments = {str(s.get("summary_id") or ""): _name(s) for s in _unrestored(evidence)}
    for summary_id, record in evidence.summaries.items():
        why = ends[summary_id][1]
        if not why or (record.get("status") == ROLLED_BACK and summary_id not in segments):
            continue
        of = f" of segment `{segments[summary_id]}`" if summary_id in segments else ""
        yield Violation("chain", f"The chain from summary `{summary_id}`{of} {why}.")


def _markers(evidence: Evidence) -> Iterator[Violation]:
    """Each marker shows a live summary, once, and each live summary is shown."""
    shown: dict[str, str] = {}
    for marker in evidence.live:
        if not marker.is_summary:
            continue
        summary_id = str(marker.metadata.get("summary_id") or "")
        why = _unfit(evidence.summaries.get(summary_id), summary_id, shown)
        if why:
            yield Violation("marker", f"Marker `{marker.id}` shows {why}.")
        shown.setdefault(summary_id, marker.id)
    reached = _reached(evidence.summaries, shown)
    for summary_id, record in evidence.summaries.items():
        withdrawn = record.get("tier") == WITHDRAWN
        if record.get("status") == LIVE and not withdrawn and summary_id not in reached:
            detail = f"Summary `{summary_id}` is live, but no marker in the history shows it."
            yield Violation("marker", detail)


def _unfit(record: Record | None, summary_id: str, shown: Mapping[str, str]) -> str:
    """Why a marker may not show a summary; empty if it may."""
    if summary_id in shown:
        return f"summary `{summary_id}`, as marker `{shown[summary_id]}` does already"
    if record is None:
        return f"summary `{summary_id}`, which has no record"
    status = record.get("status")
    return "" if status == LIVE else f"summary `{summary_id}`, which is {status}"


def _reached(summaries: Mapping[str, Record], shown: Iterable[str]) -> set[str]:
    """Summaries that are shown, and those they were made from."""
    waiting, reached = list(shown), set[str]()
    while waiting:
        summary_id = waiting.pop()
        if summary_id not in reached:
            reached.add(summary_id)
            waiting.extend(_children(summaries.get(summary_id) or {}))
    return reached


def _returns(evidence: Evidence) -> Iterator[Violation]:
    """What a rollback took back is elsewhere again, and its summary withdrawn."""
    unknown = evidence.restored - set(map(_name, evidence.segments))
    if unknown:
        detail = f"{_named(sorted(unknown))} was restored, but there is no such segment."
        yield Violation("restored", detail)
    found = {each for each, _ in _located(evidence)}
    for segment in evidence.segments:
        if _name(segment) not in evidence.restored:
            continue
        if lost := [each for each in _segment_ids(segment) if each not in found]:
            detail = f"Segment `{_name(segment)}` was restored, but {_named(lost)} is nowhere else."
            yield Violation("restored", detail)
        record = evidence.summaries.get(str(segment.get("summary_id") or ""))
        if record is not None and record.get("status") != ROLLED_BACK:
            yield Violation(
                "restored",
                f"Segment `{_name(segment)}` was restored, but its summary "
                f"`{record.get('id')}` is {record.get('status')}.",
            )


def _graves(evidence: Evidence) -> Iterator[Violation]:
    """A segment's tombstones are known to all, and nothing that was forgotten is left in one."""
    for segment in evidence.segments:
        unknown = sorted(set(_graves_of(segment)) - evidence.tombstones)
        if unknown:
            detail = f"Segment `{_name(segment)}` alone has tombstones for {_named(unknown)}."
            yield Violation("tombstone", detail)
        left = [each for each in _segment_ids(segment) if each in evidence.tombstones]
        if left:
            detail = f"Segment `{_name(segment)}` still holds {_named(left)}, which was forgotten."
            yield Violation("tombstone", detail)
