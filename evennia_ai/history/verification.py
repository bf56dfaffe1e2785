"""The proof that nothing was lost: every message is somewhere, once, and whole.

`verify` checks plain data and names what fails:

- each message id is in the live history, or in one archive segment that was not restored, or
  under a tombstone, and in one of them only;
- there are as many as were recorded, and the same ones, by a digest of their ids;
- each segment's checksum matches (`Segment.checksum`);
- each segment has its summary's record, which cites the segment's messages;
- each summary of messages is shown: a marker in the live history names it, or one made from it;
- what was forgotten is nowhere;
- no part of the history was put aside because it cannot be read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evennia_ai.history.archive import (
    LIVE,
    LONG,
    UNSUMMARISED,
    Segment,
    SummaryRecord,
    absorbed_by,
    reached_from,
    state_of,
)
from evennia_ai.history.messages import EMPTY_DIGEST, Message, digest_add

_NAMED_IDS = 10
Found = tuple[str, str]  # kind and detail of a violation


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong; `detail` is a sentence that names the ids.

    `kind` is ``place``, ``record``, ``digest``, ``checksum``, ``marker``, ``sources``,
    ``tombstone`` or ``unreadable``.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class Evidence:
    """All that is stored of one assistant's history."""

    live: tuple[Message, ...]  # the live history with its markers
    segments: tuple[Segment, ...]
    summaries: Mapping[str, SummaryRecord]
    tombstones: frozenset[str]  # ids of messages that were forgotten at somebody's request
    recorded_count: int  # how many messages were ever recorded, without markers
    recorded_digest: str  # `digest_add` over their ids
    # When the record of ids was found lost and rebuilt from what was left, UTC ISO 8601; empty if
    # it never was.
    rebuilt_at: str = ""
    # How many values could not be read and were put aside, by their Attributes.
    aside: Mapping[str, int] = field(default_factory=dict)

    @property
    def restored(self) -> frozenset[str]:
        """Ids of the segments that a rollback took back."""
        taken_back = (record for record in self.summaries.values() if record.rolled_back)
        return frozenset(key for record in taken_back for key in record.segments)


def verify(evidence: Evidence) -> tuple[Violation, ...]:
    """Every violation of the invariant; none if it is proven that nothing was lost."""
    return tuple(Violation(*each) for check in CHECKS for each in check(evidence))


def _named(ids: Iterable[str]) -> str:
    """Ids in backticks, the first ones of many."""
    listed = list(ids)
    shown = ", ".join(f"`{each}`" for each in listed[:_NAMED_IDS])
    more = len(listed) - _NAMED_IDS
    if more > 0:
        return f"{shown} and {more:,} more"
    return shown


def _places_of(evidence: Evidence) -> dict[str, list[str]]:
    """Where each message stands, by its id."""
    places, restored = defaultdict[str, list[str]](list), evidence.restored
    for message in evidence.live:
        if not message.is_summary:
            places[message.id].append("the live history")
    for segment in evidence.segments:
        if segment.id not in restored:
            for each in segment.message_ids:
                places[each].append(f"segment `{segment.id}`")
    for each in evidence.tombstones:
        places[each].append("the tombstones")
    return places


def _places(evidence: Evidence) -> Iterator[Found]:
    """Nothing is in two places, nor twice in one."""
    for each, standing in _places_of(evidence).items():
        if len(standing) > 1:
            where = " and in ".join(standing)
            yield "place", f"Message `{each}` stands in {where}; it must be in one."


def _recorded(evidence: Evidence) -> Iterator[Found]:
    """The record of ids was kept from the first message on, and just those are there."""
    if evidence.rebuilt_at:
        yield (
            "record",
            f"The record of message ids was lost, by {evidence.rebuilt_at} at the latest, and "
            "rebuilt from what was left. The newest messages then cannot be proven: some may be "
            "missing. A backup from before shows them.",
        )
    places = _places_of(evidence)
    gone = evidence.recorded_count - len(places)
    if gone:
        detail = (
            f"{evidence.recorded_count:,} messages were recorded and {len(places):,} are there: "
            f"{abs(gone):,} {'missing' if gone > 0 else 'too many'}."
        )
        cited = {each for record in evidence.summaries.values() for each in record.source_ids}
        if lost := sorted(cited - places.keys()):
            detail += f" Summaries cite {_named(lost)}."
        yield "record", detail
    elif digest_add(EMPTY_DIGEST, places) != evidence.recorded_digest:
        yield "digest", f"The {len(places):,} messages that are there are not those recorded."


def _segments(evidence: Evidence) -> Iterator[Found]:
    """Each segment is as it was sealed, without anything that was forgotten.

    Its summary cites its messages in order, and what of it is forgotten.
    """
    cited = defaultdict[str, list[str]](list)
    for record in evidence.summaries.values():
        for key, message_id in record.places:
            if message_id not in evidence.tombstones:
                cited[key].append(message_id)
    for segment in evidence.segments:
        name, held = f"Segment `{segment.id}`", segment.message_ids
        if segment.checksum != segment.sha256:
            yield "checksum", f"{name} ({_named(held)}) was changed: its checksum differs."
        if left := [each for each in held if each in evidence.tombstones]:
            yield "tombstone", f"{name} still holds {_named(left)}, which was forgotten."
        summary = evidence.summaries.get(segment.summary_id)
        if summary is None or segment.id not in summary.segments:
            detail = f"{name} names the summary `{segment.summary_id}`, which does not name it."
            yield "record", detail
        elif cited[segment.id] != held:
            odd = sorted(set(cited[segment.id]) ^ set(held)) or held
            detail = f"Summary `{summary.id}` cites other messages than {name}: see {_named(odd)}."
            yield "sources", detail


def _records(evidence: Evidence) -> Iterator[Found]:
    """The segments and summaries that a record names exist."""
    known = evidence.summaries.keys() | {segment.id for segment in evidence.segments}
    for key, record in evidence.summaries.items():
        if lost := [each for each in (*record.child_ids, *record.segments) if each not in known]:
            yield "record", f"Of what summary `{key}` was made from, {_named(lost)} is missing."
        if record.source_ids[len(record.places) :]:
            yield "sources", f"Summary `{key}` cites more messages than its segments have."


def _markers(evidence: Evidence) -> Iterator[Found]:
    """Each marker shows a summary in use, once, and below those shown are all of raw messages."""
    above, shown = absorbed_by(evidence.summaries.values()), list[str]()
    for marker in (message for message in evidence.live if message.is_summary):
        summary_id = str(marker.metadata.get("summary_id") or "")
        record = evidence.summaries.get(summary_id)
        state = state_of(record, above) if record else "unknown"
        if summary_id in shown:
            state = "shown twice"
        if state != LIVE:
            detail = f"Marker `{marker.id}` shows summary `{summary_id}`, which is {state}."
            yield "marker", detail
        shown.append(summary_id)
    reached = reached_from(shown, evidence.summaries)
    for key, record in evidence.summaries.items():
        is_used = not record.rolled_back and record.tier not in (LONG, UNSUMMARISED)
        if is_used and key not in reached:
            yield "marker", f"No marker in the history shows summary `{key}`, or one made from it."


# What begins the names of what a history is made of.
_HISTORY = (
    "conversation_",
    "ai_archive_",
    "ai_summaries_",
    "ai_compactions_",
    "ai_tombstones_",
)


def _unreadable(evidence: Evidence) -> Iterator[Found]:
    """Nothing of the history was put aside."""
    for name, count in evidence.aside.items():
        if name.startswith(_HISTORY):
            detail = f"{count} of `{name}` could not be read and are put aside in `ai_damaged`."
            yield "unreadable", detail


CHECKS: Sequence[Callable[[Evidence], Iterator[Found]]] = (
    _places,
    _recorded,
    _segments,
    _records,
    _markers,
    _unreadable,
)
