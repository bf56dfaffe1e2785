"""The proof that nothing was lost: every message is somewhere, once, and whole.

From plain data `verify` checks, and names what fails:

- each message id is in the live history, or in one archive segment that was not restored, or
  under a tombstone, and in one of them only;
- there are as many as were recorded, and the same ones, by a digest of their ids;
- each segment's checksum matches (`Segment.checksum`);
- each segment has its summary's record, which cites the segment's messages;
- each summary of messages is shown: a marker in the live history names it, or one made from it;
- what a rollback gave back is there again, and what was forgotten is nowhere;
- no part of the history was put aside because it cannot be read.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evennia_ai.history.archive import (
    EMPTY_DIGEST,
    LIVE,
    LONG,
    UNSUMMARISED,
    Segment,
    SummaryRecord,
    absorbed_by,
    digest_add,
    state_of,
)
from evennia_ai.history.messages import Message

_NAMED_IDS = 10


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong; `detail` is a sentence that names the ids.

    `kind` is ``place``, ``record``, ``digest``, ``checksum``, ``marker``, ``sources``,
    ``restored``, ``tombstone`` or ``unreadable``.
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


def verify(evidence: Evidence, checks: "Sequence[Check] | None" = None) -> tuple[Violation, ...]:
    """Every violation of the invariant; none if it is proven that nothing was lost.

    Some `checks` alone are for evidence of a part of the history.
    """
    return tuple(violation for check in checks or CHECKS for violation in check(evidence))


def _named(ids: Iterable[str]) -> str:
    """Ids in backticks, the first ones of many."""
    listed = list(ids)
    shown = ", ".join(f"`{each}`" for each in listed[:_NAMED_IDS])
    more = len(listed) - _NAMED_IDS
    return f"{shown} and {more:,} more" if more > 0 else shown


def _places_of(evidence: Evidence) -> dict[str, list[str]]:
    """Where each message stands, by its id."""
    places, restored = defaultdict[str, list[str]](list), evidence.restored
    for message in evidence.live:
        if not message.is_summary:
            places[message.id].append("the live history")
    for segment in evidence.segments:
        for each in segment.message_ids if segment.id not in restored else ():
            places[each].append(f"segment `{segment.id}`")
    for each in evidence.tombstones:
        places[each].append("the tombstones")
    return dict(places)


def _places(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is in two places, nor twice in one; everything has an id."""
    places = _places_of(evidence)
    for place in places.pop("", ()):
        yield Violation("place", f"A message without an id stands in {place}.")
    for each, standing in places.items():
        if len(standing) > 1:
            where = " and in ".join(standing)
            yield Violation("place", f"Message `{each}` stands in {where}; it must be in one.")
    markers = Counter(message.id for message in evidence.live if message.is_summary)
    for each, times in markers.items():
        if times > 1 or each in places:
            yield Violation("place", f"The id of marker `{each}` is used twice.")


def _recorded(evidence: Evidence) -> Iterator[Violation]:
    """The record of ids was kept from the first message on, and the recorded ones are there."""
    if evidence.rebuilt_at:
        yield Violation(
            "record",
            f"The record of message ids was lost, by {evidence.rebuilt_at} at the latest, and "
            "rebuilt from what was left. The newest messages then cannot be proven: some may be "
            "missing. A backup from before shows them.",
        )
    ids = _places_of(evidence).keys() - {""}
    gone = evidence.recorded_count - len(ids)
    if gone:
        detail = (
            f"{evidence.recorded_count:,} messages were recorded and {len(ids):,} are there: "
            f"{abs(gone):,} {'missing' if gone > 0 else 'too many'}."
        )
        cited = {each for record in evidence.summaries.values() for each in record.source_ids}
        if gone > 0 and cited - ids:
            detail += f" Summaries cite {_named(sorted(cited - ids))}."
        yield Violation("record", detail)
    elif digest_add(EMPTY_DIGEST, ids) != evidence.recorded_digest:
        detail = f"The {len(ids):,} messages that are there are not those that were recorded."
        yield Violation("digest", detail)


def _segments(evidence: Evidence) -> Iterator[Violation]:
    """Each segment is there once, as it was sealed, without anything that was forgotten."""
    for name, times in Counter(segment.id for segment in evidence.segments).items():
        if times > 1:
            yield Violation("record", f"There are {times} segments of the id `{name}`.")
    for segment in evidence.segments:
        name, held = f"Segment `{segment.id}`", segment.message_ids
        if segment.checksum != segment.sha256:
            detail = f"{name} ({_named(held)}) was changed: its checksum differs."
            yield Violation("checksum", detail)
        if left := [each for each in held if each in evidence.tombstones]:
            detail = f"{name} still holds {_named(left)}, which was forgotten."
            yield Violation("tombstone", detail)


def _sources(evidence: Evidence) -> Iterator[Violation]:
    """Each segment has a summary that cites its messages in order, and what of it is forgotten."""
    cited = defaultdict[str, list[str]](list)
    for record in evidence.summaries.values():
        for key, message_id in record.places:
            cited[key].append(message_id)
    for segment in evidence.segments:
        name, held = f"Segment `{segment.id}`", segment.message_ids
        summary = evidence.summaries.get(segment.summary_id)
        left = [each for each in cited[segment.id] if each not in evidence.tombstones]
        if summary is None or segment.id not in summary.segments:
            detail = f"{name} names the summary `{segment.summary_id}`, which does not name it."
            yield Violation("record", detail)
        elif left != held:
            odd = sorted(set(left) ^ set(held)) or held
            detail = f"Summary `{summary.id}` cites other messages than {name}: see {_named(odd)}."
            yield Violation("sources", detail)


def _records(evidence: Evidence) -> Iterator[Violation]:
    """The segments and summaries that a record names exist."""
    segments = {segment.id for segment in evidence.segments}
    for key, record in evidence.summaries.items():
        lost = [each for each in record.child_ids if each not in evidence.summaries]
        lost += [each for each in record.segments if each not in segments]
        if lost:
            detail = f"Of what summary `{key}` was made from, {_named(lost)} is missing."
            yield Violation("record", detail)
        if record.source_ids[len(record.places) :]:
            detail = f"Summary `{key}` cites more messages than its segments have."
            yield Violation("sources", detail)


def _markers(evidence: Evidence) -> Iterator[Violation]:
    """Each marker shows a summary in use, once, and below those shown are all of raw messages."""
    above, shown = absorbed_by(evidence.summaries.values()), list[str]()
    for marker in (message for message in evidence.live if message.is_summary):
        summary_id = str(marker.metadata.get("summary_id") or "")
        record = evidence.summaries.get(summary_id)
        state = state_of(record, above) if record else "unknown"
        if summary_id in shown or state != LIVE:
            is_how = "shown twice" if summary_id in shown else state
            detail = f"Marker `{marker.id}` shows summary `{summary_id}`, which is {is_how}."
            yield Violation("marker", detail)
        shown.append(summary_id)
    waiting, reached = list(shown), set[str]()
    while waiting:
        summary_id = waiting.pop()
        if summary_id not in reached and summary_id in evidence.summaries:
            reached.add(summary_id)
            waiting += evidence.summaries[summary_id].child_ids
    for key, record in evidence.summaries.items():
        is_used = not record.rolled_back and record.tier not in (LONG, UNSUMMARISED)
        if is_used and key not in reached:
            detail = f"No marker in the history shows summary `{key}`, or one made from it."
            yield Violation("marker", detail)


def _restored(evidence: Evidence) -> Iterator[Violation]:
    """What a rollback restored is elsewhere again."""
    places, restored = _places_of(evidence), evidence.restored
    for segment in evidence.segments:
        lost = [each for each in segment.message_ids if each not in places]
        if lost and segment.id in restored:
            detail = f"Segment `{segment.id}` was restored, but {_named(lost)} is nowhere else."
            yield Violation("restored", detail)


# What begins the names of what a history is made of.
_HISTORY = (
    "conversation_",
    "ai_archive_",
    "ai_summaries_",
    "ai_compactions_",
    "ai_tombstones_",
)


def _unreadable(evidence: Evidence) -> Iterator[Violation]:
    """Nothing of the history was put aside."""
    for name, count in evidence.aside.items():
        if name.startswith(_HISTORY):
            detail = f"{count} of `{name}` could not be read and are put aside in `ai_damaged`."
            yield Violation("unreadable", detail)


Check = Callable[[Evidence], Iterator[Violation]]
# Of archive segments and the summaries that cite them, without the rest.
ARCHIVE_CHECKS: Sequence[Check] = (_segments, _sources, _records)
CHECKS: Sequence[Check] = (
    _places,
    _recorded,
    _segments,
    _sources,
    _records,
    _markers,
    _restored,
    _unreadable,
)
