"""The live conversation history: a list in one Attribute and a small open page in another.

Storing a turn writes only the open page; it is merged at checkpoints. Token counts are kept by
audience and summed as messages come, so that usage costs the same at any length.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.audience import PUBLIC, visible, widest_of
from evennia_ai.history.digest import EMPTY_DIGEST, digest_add
from evennia_ai.history.masking import masked, unmasked
from evennia_ai.history.messages import (
    SCHEMA_VERSION,
    Message,
    call_ids,
    is_complete,
    mask_of,
    new_id,
    total_tokens,
    utc_iso,
)
from evennia_ai.history.order import hidden, with_archived
from evennia_ai.history.pairs import INTERRUPTED, answered, unanswered
from evennia_ai.history.record_cache import CachedRecords, Record, SummaryRecords
from evennia_ai.history.records import Segment, sound_compaction, sound_summary
from evennia_ai.protocol import Store

HISTORY, TAIL, DAMAGED = "conversation_history", "conversation_tail", "conversation_damaged"
# When the record of ids was begun; once written it stays, so that its loss is noticed.
BEGUN = "conversation_begun"
ARCHIVE, SUMMARIES, COMPACTIONS = "ai_archive", "ai_summaries", "ai_compactions"
PAGE_MESSAGES = 24
PAGE_CHARS = 24_000
# Audiences whose view of the archive is held in memory while compaction is off.
RAW_BACKS = 8


class HistoryHandler:
    """Reads and writes one assistant's history, archive and summaries.

    Args:
        store: Where the script's values are kept.
        counter: Gives the token counter in use and its name.
        now: Clock, seconds since the epoch.
        on_append: Called with the messages that were stored, in order.
        on_change: Called with the messages that somebody changed by hand, and with the ids of
            those that were taken out.
    """

    def __init__(
        self,
        store: Store,
        counter: Callable[[], tuple[str, Callable[[str], int]]],
        now: Callable[[], float] = time.time,
        on_append: Callable[[Sequence[Message]], Any] = lambda messages: None,
        on_change: Callable[[Sequence[Message], Collection[str]], Any] = lambda messages, ids: None,
    ):
        self.store = store
        self._counter = counter
        self._now = now
        self._on_append = on_append
        self._on_change = on_change
        self._summaries = SummaryRecords(store, SUMMARIES, sound_summary)
        self._compactions = CachedRecords(store, COMPACTIONS, sound_compaction)
        self._stamps: tuple[object, object] | None = None
        self._merged: list[Message] = []
        self._page: list[Message] = []
        self._all: tuple[Message, ...] = ()
        self._tally: dict[str, int] = {}
        self._marked: set[str] = set()
        self._waiting: Counter[str] = Counter()
        self._widest = 0
        self._counted_by = ""
        self._raw_backs: dict[tuple[str, int], _RawBack] = {}
        self._recorded: tuple[int, str] = (0, EMPTY_DIGEST)
        self._rebuilt_at = ""

    def messages(self) -> tuple[Message, ...]:
        """All live messages, oldest first, complete. Treat them as immutable."""
        self._refresh()
        return self._all

    def append(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Store new messages in one write; returns them as stored, ids stamped."""
        self._refresh()
        at, (_, count) = self._now(), self._counter()
        new = tuple(message.completed(count, at) for message in messages)
        if new:
            self._store_new(new)
            self.store.on_commit(lambda: self._on_append(new))
        return new

    def _store_new(self, new: Sequence[Message]) -> None:
        """Into the open page, or with it into the history where it is full: all or nothing."""
        page, recorded = [*self._page, *new], _more_recorded(self._recorded, new)
        if len(page) >= PAGE_MESSAGES or _chars(page) >= PAGE_CHARS:
            self._replace([*self._merged, *page], recorded)
            return
        self._set_page(page, recorded)
        self._page, self._recorded = page, recorded
        self._keep(new)

    def _set_page(self, page: list[Message], recorded: tuple[int, str]) -> None:
        """Write the open page; with the very first one, that there is a record from now on."""
        if self.store.stamp(BEGUN) is not None:
            self.store.set(TAIL, self._page_value(page, recorded))
            return
        with self.store.transaction():
            self.store.set(BEGUN, utc_iso(self._now()))
            self.store.set(TAIL, self._page_value(page, recorded))

    def checkpoint(self) -> None:
        """Merge the open page into the history."""
        self._refresh()
        if self._page:
            self.replace(self._all)

    def replace(self, messages: Sequence[Message]) -> None:
        """Make these the whole live history, in one transaction."""
        self._replace(messages, self._recorded)

    def _replace(self, messages: Sequence[Message], recorded: tuple[int, str]) -> None:
        with self.store.transaction():
            self.store.set(HISTORY, [message.to_dict() for message in messages])
            self._set_page([], recorded)
        self._recorded = recorded
        self._load(list(messages), [])

    @property
    def recorded(self) -> tuple[int, str]:
        """How many messages were ever recorded, and the set digest of their ids."""
        self._refresh()
        return self._recorded

    @property
    def rebuilt_at(self) -> str:
        """When the record of ids was lost and made anew from what was left; empty if it was not."""
        self._refresh()
        return self._rebuilt_at

    def tokens(self, audience: str | None = None) -> int:
        """Summed tokens of all messages, or of those `audience` may see."""
        self._refresh()
        if audience is None:
            return sum(self._tally.values())
        return sum(n for owner, n in self._tally.items() if visible(owner, audience))

    def widest_tokens(self) -> int:
        """Tokens of the largest view any one audience has."""
        self._refresh()
        return self._widest

    def heal(self) -> int:
        """Give calls without a result, as of a turn cut short, the one they lack.

        It stands by its call, so that the history can be cut behind the two.

        Returns:
            How many there were; where there are none, nothing is gone through.
        """
        messages = self.messages()
        if not self._waiting:
            return 0
        at, (_, count) = self._now(), self._counter()
        results = [
            (index, _interrupted(messages[index], call_id, name).completed(count, at))
            for index, call_id, name in unanswered(messages)
        ]
        new = [result for _, result in results]
        self._replace(answered(messages, results), _more_recorded(self._recorded, new))
        self.store.on_commit(lambda: self._on_append(new))
        return len(new)

    @property
    def is_answered(self) -> bool:
        """Whether every tool call has its result, so that others may follow; constant time."""
        self._refresh()
        return not self._waiting

    def recount(self) -> bool:
        """Count all messages anew if another counter is in use; returns whether it was."""
        name, count = self._counter()
        messages, page = self.messages(), self.store.get(TAIL)
        if not isinstance(page, dict) or page.get("counter", name) == name:
            return False
        self._counted_by = name
        self.replace([_recounted(m, count) for m in messages])
        return True

    def archive(self, segment_id: str, summary_id: str, messages: Sequence[Message]) -> None:
        """Write a segment of messages that leave the live history. Never rewritten."""
        segment = Segment.sealed(segment_id, summary_id, messages)
        self.store.set(segment_id, segment.to_dict(), category=ARCHIVE)

    def segments(self) -> Iterable[Segment]:
        """All archive segments, oldest first, loaded one at a time."""
        for key in self.store.keys(ARCHIVE):
            segment = self.segment(key)
            if segment is not None:
                yield segment

    def segment(self, segment_id: str) -> Segment | None:
        """One archive segment, its messages complete, or None."""
        at, (_, count) = self._now(), self._counter()
        raw = self.store.get(segment_id, category=ARCHIVE)
        return Segment.from_dict(segment_id, raw, lambda message: message.completed(count, at))

    def segment_count(self) -> int:
        """How many archive segments there are."""
        return len(self.store.keys(ARCHIVE))

    def records_below(self, summary_id: str) -> list[Record]:
        """The records of a summary and of those below it, the deepest and oldest first."""
        self._summaries.refresh()
        found: list[Record] = []
        waiting, seen = [(summary_id, False)], set()
        while waiting:
            key, is_below_done = waiting.pop()
            record = self.summary(key)
            if record is None or (key in seen and not is_below_done):
                continue
            if is_below_done:
                found.append(record)
                continue
            seen.add(key)
            below = (*record["child_ids"], *record.get("earlier_ids", ()))
            waiting += [(key, True), *((each, False) for each in reversed(below))]
        return found

    def each_below(self, summary_id: str) -> Iterator[Message]:
        """The raw messages a summary rests on, oldest first, a segment loaded at a time."""
        for record in self.records_below(summary_id):
            segment = self.segment(record["segment"]) if record["segment"] else None
            yield from segment.messages if segment else ()

    def listed_below(self, summary_id: str) -> "MessagesBelow":
        """The raw messages a summary rests on, to be read by slices."""
        return MessagesBelow(self, self.records_below(summary_id))

    def around(self, message_id: str) -> Sequence[Message]:
        """The messages among which one stands: the live history, or its archive segment.

        No other segment is loaded. Empty if the id is nowhere.
        """
        live = self.messages()
        if any(message.id == message_id for message in live):
            return live
        self._summaries.refresh()
        return self._archived_with(message_id)

    def by_ids(self, message_ids: Iterable[str]) -> list[Message]:
        """Messages by their ids, wherever they are; those that are nowhere are left out."""
        wanted = list(message_ids)
        known = {message.id: message for message in self.messages()}
        left = [each for each in wanted if each not in known]
        if left:
            self._summaries.refresh()
        places = {each: self._summaries.segments_with(each) for each in left}
        self.store.preload({keys[0] for keys in places.values() if keys}, ARCHIVE)
        for each in places:
            if each not in known:
                known |= {message.id: message for message in self._archived_with(each)}
        return [known[each] for each in wanted if each in known]

    def _archived_with(self, message_id: str) -> list[Message]:
        """The newest archive segment that holds a message; empty if none does."""
        for key in self._summaries.segments_with(message_id):
            segment = self.segment(key)
            messages = segment.messages if segment else ()
            if any(message.id == message_id for message in messages):
                return list(messages)
        return []

    def audiences(self, least_tokens: int = 0) -> tuple[str, ...]:
        """The audiences of the live messages.

        Args:
            least_tokens: What they must hold, but for the public and those with a summary.
        """
        self.messages()
        sure = {PUBLIC, *self._marked}
        return tuple(o for o, held in self._tally.items() if o in sure or held >= least_tokens)

    def raw_back(
        self, audience: str, room_tokens: int, live: Sequence[Message] = ()
    ) -> tuple[list[Message], int]:
        """Archived raw messages with live ones, as if none had left; newest segments until full.

        The archived are kept until a compaction comes or goes, or a segment read for them
        changes: every prompt asks for them while compaction is off.

        Args:
            audience: Who will see them. Segments of others' talk are not read.
            room_tokens: Stop once the archived ones hold so many tokens.
            live: Live raw messages they may see, oldest first.

        Returns:
            Messages, oldest first, and how many older ones were left where they are.
        """
        kept = self._raw_backs.get((audience, room_tokens))
        if kept is None or not _same(kept.marks, self._marks(kept.segments)):
            kept = self._read_back(audience, room_tokens)
            if len(self._raw_backs) >= RAW_BACKS:
                self._raw_backs.clear()
            self._raw_backs[audience, room_tokens] = kept
        seen = {message.id: message for message in live}
        raw = (message.id for message in self.messages() if not message.is_summary)
        return with_archived(kept.parts, [seen.get(i) or hidden(i) for i in raw]), kept.older

    def _read_back(self, audience: str, room_tokens: int) -> "_RawBack":
        """What `raw_back` gives, read from the archive."""
        made = {r["segment"]: r for r in self.summaries(lambda record: bool(record["segment"]))}
        parts: list[tuple[list[Message], list[str]]] = []
        read: list[str] = []
        tokens = older = 0
        for record in reversed(self.compactions()):
            keys = [
                key
                for key in record.get("segments", ())
                if key not in made or visible(made[key]["audience"], audience)
            ]
            if record["status"] != "committed":
                continue
            if tokens >= room_tokens:
                older += sum(len(made[key]["source_ids"]) for key in keys if key in made)
                continue
            left = self._messages_of(record, keys)
            seen = {m.id: unmasked(m) for m in left if visible(m.audience, audience)}
            stood = [seen.get(each) or hidden(each) for each in record.get("leaving", ())]
            parts.append((stood, record.get("order", [])))
            tokens += total_tokens(list(seen.values()))
            read += keys
        return _RawBack(tuple(parts), older, tuple(read), self._marks(read))

    def _marks(self, segments: Iterable[str]) -> tuple[object, ...]:
        """What differs once a compaction came, went or was changed, or one of these segments."""
        keys = self.store.keys(COMPACTIONS)
        return (*self.store.stamps(keys, COMPACTIONS), *self.store.stamps(segments, ARCHIVE))

    def _messages_of(self, compaction: Mapping[str, Any], keys: Sequence[str]) -> list[Message]:
        """What left with a compaction into these segments, in the order in which it stood."""
        self.store.preload(keys, ARCHIVE)
        segments = map(self.segment, keys)
        known = {m.id: m for segment in segments if segment for m in segment.messages}
        return [known[each] for each in compaction.get("leaving", ()) if each in known]

    def save_compaction(self, record: Mapping[str, Any]) -> None:
        """Write a compaction's record under its id."""
        self.store.set(record["id"], dict(record), category=COMPACTIONS)

    def compactions(self) -> list[dict[str, Any]]:
        """All compaction records, oldest first; the lists in them are not to be changed."""
        return self._compactions.all()

    def restored_segments(self) -> set[str]:
        """Ids of segments whose messages are live again."""
        return {
            key
            for record in self.compactions()
            if record["status"] == "rolled back"
            for key in record.get("segments", ())
        }

    def save_summary(self, record: Mapping[str, Any]) -> None:
        """Write a summary's record under its id."""
        self.store.set(record["id"], dict(record), category=SUMMARIES)

    def summaries(self, is_wanted: Callable[[Record], bool] = bool) -> list[Record]:
        """The records of all summaries, or of those wanted, oldest first.

        The records may be changed; the lists in them may not.
        """
        return self._summaries.all(is_wanted)

    def summary(self, summary_id: str) -> Record | None:
        """One summary's record, or None."""
        return self._summaries.one(summary_id)

    def warm(self) -> Iterator[None]:
        """Reads the records of summaries and compactions, a few at each step, for what follows."""
        for records in (self._summaries, self._compactions):
            yield from records.warm()

    def summary_ids(self) -> tuple[str, ...]:
        """The ids of all summaries, oldest first, without loading them."""
        return self.store.keys(SUMMARIES)

    def summary_count(self) -> int:
        """How many summaries were ever made."""
        return len(self.summary_ids())

    def _refresh(self) -> None:
        """Load again if somebody else changed an Attribute; a comparison of two objects else."""
        stamps = (self.store.stamp(HISTORY), self.store.stamp(TAIL))
        known = self._stamps
        if known is not None and known[0] is stamps[0] and known[1] is stamps[1]:
            return
        for key in self.store.keys(COMPACTIONS)[-1:] if known is None else ():
            new_id.follow(key)
        raw_merged, odd = _as_dicts(self.store.get(HISTORY))
        tail = self.store.get(TAIL)
        raw_page, odd_tail = _as_dicts(tail.get("messages") if isinstance(tail, dict) else tail)
        merged, page = (list(map(Message.from_dict, raw)) for raw in (raw_merged, raw_page))
        is_rebuilt = self._load_recorded(tail, merged + page)
        if odd or odd_tail:
            self._put_aside(odd, odd_tail)
        before = None if known is None else {m.id: m for m in self._all}
        if odd or is_rebuilt or not all(map(is_complete, raw_merged + raw_page)):
            self._adopt(merged + page)
        else:
            self._load(merged, page)
        self._tell_of(before, merged + page)

    def _tell_of(self, before: Mapping[str, Message] | None, raw: Sequence[Message]) -> None:
        """Tell of messages that somebody put in, changed or took out by hand."""
        known = before or {}
        new = tuple(
            message
            for message, stored in zip(self._all, raw, strict=True)
            if message.id not in known and (message != stored or before is not None)
        )
        changed = [m for m in self._all if known.get(m.id, m) != m]
        out = known.keys() - {message.id for message in self._all}
        gone = out - {message.id for message in self.by_ids(out)} if out else out
        if new:
            self.store.on_commit(lambda: self._on_append(new))
        if changed or gone:
            self.store.on_commit(lambda: self._on_change(changed, gone))

    def _load_recorded(self, tail: Any, live: list[Message]) -> bool:
        """The record of ids, made from what is there if it is missing.

        Returns:
            Whether one was kept before and is lost, which `rebuilt_at` tells from now on.
        """
        known = tail if isinstance(tail, dict) else {}
        kept = known.get("recorded")
        # The name of the counter the stored counts were made with; `recount` changes it.
        self._counted_by = str(known.get("counter") or "")
        self._rebuilt_at = str(known.get("rebuilt_at") or "")
        if _is_record(kept):
            self._recorded = (kept["count"], kept["digest"])
            return False
        self._recorded, restored = (0, EMPTY_DIGEST), self.restored_segments()
        for segment in self.segments():
            if segment.id not in restored:
                self._record(segment.messages)
        self._record([message for message in live if message.id])
        is_lost = self._had_record(tail, live)
        if is_lost:
            self._rebuilt_at = utc_iso(self._now())
        return is_lost

    def _had_record(self, tail: Any, live: list[Message]) -> bool:
        """Whether a record was kept that is not there: older versions kept none in their page.

        Complete messages alone tell nothing, as somebody may have put them in; a summary among
        them does.
        """
        if self.store.stamp(BEGUN) is not None:
            return True
        if isinstance(tail, dict):
            return "recorded" in tail
        is_archived = self.store.keys(ARCHIVE) or self.store.keys(COMPACTIONS)
        is_set = self.store.stamp(TAIL) is not None
        return bool(is_set or is_archived or any(message.is_summary for message in live))

    def _record(self, messages: Sequence[Message]) -> None:
        self._recorded = _more_recorded(self._recorded, messages)

    def _adopt(self, raw: list[Message]) -> None:
        at, (_, count) = self._now(), self._counter()
        complete = [message.completed(count, at) for message in raw]
        self._record([new for new, old in zip(complete, raw, strict=True) if not old.id])
        self.replace(complete)

    def _put_aside(self, *odd: Any) -> None:
        """Keep a value that is no list of messages, before it is written over."""
        kept = self.store.get(DAMAGED)
        before = kept if isinstance(kept, list) else [kept] if kept else []
        self.store.set(DAMAGED, [*before, *(repr(value) for value in odd if value)])

    def _load(self, merged: list[Message], page: list[Message]) -> None:
        self._merged, self._page = merged, page
        self._all = ()
        self._tally, self._marked, self._widest = {}, set(), 0
        self._waiting = Counter()
        self._keep([*merged, *page])

    def _keep(self, new: Sequence[Message]) -> None:
        self._all = (*self._all, *new)
        for message in new:
            owner = message.audience
            self._tally[owner] = self._tally.get(owner, 0) + message.tokens
            if message.is_summary:
                self._marked.add(owner)
            self._count_calls(message)
        self._widest = widest_of(self._tally)
        self._stamps = (self.store.stamp(HISTORY), self.store.stamp(TAIL))

    def _count_calls(self, message: Message) -> None:
        """Keep count of the calls that wait for a result, by their ids."""
        self._waiting.update(call_ids(message))
        call_id = message.tool_call_id
        if message.role == "tool" and self._waiting[call_id] > 1:
            self._waiting[call_id] -= 1
        elif message.role == "tool":
            del self._waiting[call_id]  # a Counter minds no key that is missing

    def _page_value(self, messages: list[Message], recorded: tuple[int, str]) -> dict[str, Any]:
        count, digest = recorded
        return {
            "version": SCHEMA_VERSION,
            "counter": self._counted_by or self._counter()[0],
            "recorded": {"count": count, "digest": digest},
            **({"rebuilt_at": self._rebuilt_at} if self._rebuilt_at else {}),
            "messages": [message.to_dict() for message in messages],
        }


@dataclass(frozen=True)
class _RawBack:
    """Archived messages as one audience's prompt shows them.

    Args:
        parts: What left with each compaction and its order, newest first.
        older: How many there are before them.
        segments: Ids of the segments read.
        marks: As `HistoryHandler._marks` gave them then.
    """

    parts: tuple[tuple[list[Message], list[str]], ...]
    older: int
    segments: tuple[str, ...]
    marks: tuple[object, ...]


class MessagesBelow:
    """The messages that records cite, oldest first, read by slices, as a pager does.

    Only the segments that a slice lies in are loaded.

    Args:
        history: Where the segments are.
        records: The records of summaries, oldest first.
    """

    def __init__(self, history: HistoryHandler, records: Iterable[Record]):
        self._history = history
        self._places = [
            (r["segment"], each) for r in records if r["segment"] for each in r["source_ids"]
        ]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, part: slice) -> list[Message]:
        places = self._places[part]
        segments = map(self._history.segment, dict.fromkeys(key for key, _ in places))
        known = {m.id: m for segment in segments if segment for m in segment.messages}
        return [known[each] for _, each in places if each in known]


def _same(marks: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the very same objects."""
    return len(marks) == len(others) and all(a is b for a, b in zip(marks, others, strict=True))


def _is_record(kept: Any) -> bool:
    """Whether a stored record of ids is one."""
    if not isinstance(kept, Mapping) or not isinstance(kept.get("count"), int):
        return False
    digest = kept.get("digest")
    return isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None


def _more_recorded(recorded: tuple[int, str], messages: Sequence[Message]) -> tuple[int, str]:
    """Count and digest with more messages; markers are left out, as they are derived."""
    ids = [message.id for message in messages if not message.is_summary]
    return recorded[0] + len(ids), digest_add(recorded[1], ids)


def _interrupted(owner: Message, call_id: str, name: str) -> Message:
    """The result of a call that was cut short, for whom the call was."""
    return Message(
        "tool",
        INTERRUPTED,
        audience=owner.audience,
        tool_call_id=call_id,
        name=name,
        metadata=owner.metadata,  # an extraction's result is taken back with its call
    )


def _recounted(message: Message, count: Callable[[str], int]) -> Message:
    """A message counted anew, the raw count under its mask as well."""
    mask, raw = mask_of(message), unmasked(message).counted(count)
    return masked(raw, mask["archived_at"], count) if mask else raw


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)


def _as_dicts(value: Any) -> tuple[list[Any], Any]:
    """A stored value as a list of dicts, and what of it was none."""
    if value is None:
        return [], None
    if not isinstance(value, list | tuple):
        return [], value
    good = [dict(item) for item in value if isinstance(item, Mapping)]
    return good, [item for item in value if not isinstance(item, Mapping)] or None
