"""The live conversation history: pages of messages, of which the newest is a list of its own.

Storing a turn writes only a small open page, which is merged into the newest page, `HISTORY`, once
it is full. A message belongs to the page of its place in the talk, so that older pages, in the
category `OLDER`, are written again only when their own messages change. Token counts are kept by
audience and summed as messages come, so that usage costs the same at any length.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.history.archive import (
    ARCHIVE,
    COMPACTIONS,
    Archive,
    Segment,
    SummaryRecord,
    count_messages_below,
    in_use,
)
from evennia_ai.history.audience import Views
from evennia_ai.history.messages import (
    EMPTY_DIGEST,
    SUMMARY_TITLE,
    Message,
    digest_add,
    made_at,
    new_id,
    utc_iso,
)
from evennia_ai.history.stored import (
    Cache,
    Store,
    Stored,
    Unreadable,
    as_count,
    as_dict,
    as_plain,
    as_text,
    as_texts,
    aside,
    each_readable,
)
from evennia_ai.history.verification import Evidence
from evennia_ai.language.words import storable

HISTORY, TAIL, OLDER = "conversation_history", "conversation_tail", "ai_history"
# When the record of ids was begun; once written it stays, so that its loss is noticed.
BEGUN = "conversation_begun"
PAGE_MESSAGES = 24
PAGE_CHARS = 24_000
# Archived messages that are shown on each side of one.
BESIDE = 50
# Places of a page: messages that were stored one after another. Summaries' markers are on the
# first page.
PAGE_PLACES = 60
# Messages by the number of their page, in order.
Pages = dict[int, tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class Recorded(Stored):
    """How many messages were ever recorded, and the set digest of their ids.

    Markers do not count, as they are derived.
    """

    count: int
    digest: str

    def check(self) -> None:
        """The digest has 64 hexadecimal digits."""
        if not re.fullmatch("[0-9a-f]{64}", self.digest):
            raise Unreadable("no digest")

    def more(self, messages: Iterable[Message]) -> "Recorded":
        """With more messages."""
        ids = [message.id for message in messages if not message.is_summary]
        return Recorded(self.count + len(ids), digest_add(self.digest, ids))


NOTHING = Recorded(0, EMPTY_DIGEST)


@dataclass(frozen=True, slots=True)
class OpenPage:
    """The newest messages, and the record of the ids of all: none if it is lost."""

    recorded: Recorded | None = None
    messages: tuple[Message, ...] = ()
    # When the record was found lost and made of what was left, UTC ISO 8601.
    rebuilt_at: str = ""

    @classmethod
    def read(cls, key: str, raw: object, odd: list[object]) -> "OpenPage":
        """The page of what is stored, or of messages that were put in by hand."""
        stored, messages = as_dict(raw), raw
        if isinstance(raw, Mapping):
            messages = raw.get("messages", ())
        return cls(
            Recorded.if_readable(stored.get("recorded")),
            tuple(each_readable(messages, Message.from_dict, odd)),
            as_text(stored.get("rebuilt_at")),
        )

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        plain = {
            "recorded": (self.recorded or NOTHING).to_dict(),
            "messages": as_plain(self.messages),
        }
        if self.rebuilt_at:
            plain["rebuilt_at"] = self.rebuilt_at
        return plain


class HistoryHandler(Archive):
    """Reads and writes one assistant's live history, on top of its archive.

    Args:
        store: Where the script's values are kept.
        counter: Returns the token counter in use.
        now: Clock, seconds since the epoch.
        on_append: Called with the messages that were stored, in order.
    """

    def __init__(
        self,
        store: Store,
        counter: Callable[[], Callable[[str], int]],
        now: Callable[[], float] = time.time,
        on_append: Callable[[Sequence[Message]], Any] = lambda messages: None,
    ):
        super().__init__(store)
        self._counter, self._now, self._on_append = counter, now, on_append
        self._parts = Cache(
            store,
            OLDER,
            lambda key, raw, odd: tuple(each_readable(raw, Message.from_dict, odd)),
            as_plain,
            newest=HISTORY,
        )
        self._open = Cache(store, None, OpenPage.read, OpenPage.to_dict)
        self._stamps: tuple[object, object] | None = None
        self._older: Pages = {}
        self._newest: tuple[Message, ...] = ()
        self._page = OpenPage()
        self._all: tuple[Message, ...] = ()
        self._ids: dict[str, Message] = {}
        self._views = Views()

    def messages(self) -> tuple[Message, ...]:
        """All live messages, oldest first, complete. Treat them as immutable."""
        self._refresh()
        return self._all

    def append(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Store new messages in one write; returns them as stored, ids stamped."""
        self._refresh()
        at, count, page = self._now(), self._counter(), self._page
        # Behind the newest message; those in the archive are older.
        place = 1 + max(self._recorded.count, *(int(m.place) for m in self._all[-1:]), 0)
        new = tuple(m.completed(count, at, n) for n, m in enumerate(messages, place))
        if not new:
            return new
        page = replace(page, recorded=self._recorded.more(new), messages=(*page.messages, *new))
        chars = sum(len(message.content) for message in page.messages)
        if len(page.messages) >= PAGE_MESSAGES or chars >= PAGE_CHARS:
            first = 1 + max(self._older, default=-1)
            pages = {**self._older, **paged([*self._newest, *page.messages], first)}
            self._write(replace(page, messages=()), pages)
        else:
            self._write(page)
        self._keep(new)
        self.store.on_commit(lambda: self._on_append(new))
        return new

    def replace_talk(self, messages: Iterable[Message]) -> None:
        """Make these the live talk, behind a marker for each summary in use, as its record says."""
        live = [*self._markers(), *(message for message in messages if not message.is_summary)]
        if [*map(id, live)] != [*map(id, self._all)]:
            self.replace(live)

    def _markers(self) -> list[Message]:
        """The messages that stand in the history for what left; those that are there stay."""
        markers = (message for message in self.messages() if message.is_summary)
        former = {str(m.metadata.get("summary_id") or m.id): m for m in markers}
        records, count = {record.id: record for record in self.summaries()}, self._counter()
        shown = in_use([*records.values()])
        for record in shown:
            marker = former.get(record.id)
            if marker is None or marker.content != f"{SUMMARY_TITLE}\n{record.text}":
                left = count_messages_below(records, record.id)
                former[record.id] = marker_of(record, left, count(record.text)).counted(count)
        # Without a record, as one that is lost, they stay, and the proof names them.
        lost = (marker for key, marker in former.items() if key not in records)
        return [*(former[record.id] for record in shown), *lost]

    def replace(self, messages: Sequence[Message]) -> None:
        """Make these the whole live history, in one transaction."""
        self._refresh()
        self._change(messages, ())

    def insert(self, message: Message, behind: str) -> bool:
        """Store a new message behind a live one, at its place; False if that one is not live."""
        live = [*self.messages()]
        place = next((n for n, each in enumerate(live, 1) if each.id == behind), 0)
        if place:
            new = message.completed(self._counter(), self._now(), live[place - 1].place)
            while place < len(live) and live[place].role == "tool":  # behind its call
                place += 1
            live.insert(place, new)
            self._change(live, [new])
        return bool(place)

    def _write(self, page: OpenPage, pages: Pages | None = None) -> None:
        """Write the open page, and those of the other pages that differ from the stored ones."""
        older, newest = self._older, self._newest
        with self.store.transaction():
            if pages is not None:
                older = dict(sorted(pages.items()))
                newest = older.popitem()[1] if older else ()
                if gone := self._older.keys() - older.keys():
                    self.store.delete_all(map(_page_key, gone), OLDER)
                for number, part in older.items():
                    if self._older.get(number) != part:
                        self._parts.set(_page_key(number), part)
                if newest != self._newest:
                    self._parts.set(HISTORY, newest)
            if self.store.stamp(BEGUN) is None:
                self.store.set(BEGUN, utc_iso(self._now()))
            self._open.set(TAIL, page)
        self._older, self._newest, self._page = older, newest, page

    @property
    def recorded(self) -> tuple[int, str]:
        """How many messages were ever recorded, and the set digest of their ids."""
        self._refresh()
        return self._recorded.count, self._recorded.digest

    @property
    def _recorded(self) -> Recorded:
        return self._page.recorded or NOTHING

    def tokens(self) -> int:
        """Summed tokens of all messages."""
        self._refresh()
        return sum(self._views.tally.values())

    def widest_tokens(self) -> int:
        """Tokens of the largest view any one audience has."""
        self._refresh()
        return self._views.widest

    def around(self, message_id: str) -> Sequence[Message]:
        """The messages around one: all live ones, or those that left with it; empty if it is gone.

        Of the latter at most `BESIDE` on each side.
        """
        self._refresh()
        if message_id in self._ids:
            return self._all
        citing = self.citing({message_id})
        if not citing:
            return ()
        ids = citing[-1].source_ids
        place = ids.index(message_id)
        return self.by_ids(ids[max(0, place - BESIDE) : place + BESIDE + 1])

    def by_ids(self, message_ids: Iterable[str]) -> list[Message]:
        """Messages by their ids, live or archived; unknown ids are left out."""
        wanted = list(message_ids)
        self._refresh()
        found = {each: self._ids[each] for each in wanted if each in self._ids}
        if absent := set(wanted) - found.keys():
            found = {**self.archived(absent), **found}
        return [found[each] for each in wanted if each in found]

    def evidence(self, segments: Iterable[Segment] | None = None) -> Evidence:
        """All that the proof needs, loaded from the store, except `segments` loaded before."""
        count, digest = self.recorded
        return Evidence(
            live=self.messages(),
            segments=tuple(self.segments() if segments is None else segments),
            summaries={record.id: record for record in self.summaries()},
            tombstones=frozenset(self.tombstones()),
            recorded_count=count,
            recorded_digest=digest,
            rebuilt_at=self._page.rebuilt_at,
            aside=aside(self.store),
        )

    @inlineCallbacks
    def gathered_evidence(self) -> Steps[Evidence]:
        """Fires with the same `Evidence`, gathered with pauses between slices of the archive.

        Segments that are written or changed meanwhile are read again, so that the evidence is
        consistent at the moment it is returned.
        """
        known = dict[str, tuple[object, Segment | None]]()
        for _ in self.warm():
            yield pause()
        changed = list(self.store.keys(ARCHIVE))
        while changed:
            for key in changed:
                segment = self.segment(key)
                known[key] = self.store.stamp(key, ARCHIVE), segment
                yield pause()
            keys = self.store.keys(ARCHIVE)
            stamps = zip(keys, self.store.stamps(keys, ARCHIVE), strict=True)
            changed = [k for k, stamp in stamps if k not in known or known[k][0] is not stamp]
        return self.evidence(segment for _, segment in known.values() if segment)

    def _refresh(self) -> None:
        """Load again if somebody else changed an Attribute; otherwise two comparisons."""
        stamps, known = (self.store.stamp(HISTORY), self.store.stamp(TAIL)), self._stamps
        if known is not None and known[0] is stamps[0] and known[1] is stamps[1]:
            return
        keys = [key for key in self.store.keys(OLDER) if re.fullmatch(r"page_\d{6,9}", key)]
        pages = self._parts.all(keys)
        self._older = dict(sorted((int(key[5:]), page) for key, page in pages.items()))
        self._newest = self._parts.get(HISTORY) or ()
        self._page = self._open.get(TAIL) or OpenPage()
        live = [*chain.from_iterable(self._older.values()), *self._newest, *self._page.messages]
        if known is None:
            ids = (message.id for message in live if made_at(message.id) is not None)
            for key in (*self.store.keys(COMPACTIONS)[-1:], max(ids, default="")):
                new_id.follow(key)
        if self._page.recorded is None:
            self._record_again([message for message in live if message.id])
        if all(message.is_complete for message in live):
            self._load(live)
        else:
            self._adopt(live)

    def _record_again(self, live: Sequence[Message]) -> None:
        """Make a record of ids of what is there, and note it if there was one before."""
        restored = self.restored_segments()
        parts = (part.messages for part in self.segments() if part.id not in restored)
        archived = chain.from_iterable(parts)
        recorded = NOTHING.more(chain(archived, live))
        self._page = replace(self._page, recorded=recorded)
        if (
            self.store.stamp(BEGUN) is not None
            or self.store.keys(ARCHIVE)
            or self.store.keys(COMPACTIONS)
            or any(message.is_summary for message in live)
        ):
            self._write(replace(self._page, rebuilt_at=utc_iso(self._now())))

    def _adopt(self, raw: Sequence[Message]) -> None:
        """Complete what was put in by hand: it has the place of the message before it.

        Where all was put in by hand, the messages are counted.
        """
        at, count, complete = self._now(), self._counter(), list[Message]()
        first = next((message.place for message in raw if message.place), None)
        place = first / 2 if first else 0.0
        for message in raw:
            place = message.place or (place if first else place + 1)
            if not message.is_complete:
                plain = replace(message, content=storable(message.content))
                message = plain.completed(count, at, place)
            complete.append(message)
        new = [message for message, old in zip(complete, raw, strict=True) if not old.id]
        self._change(complete, new)

    def _change(self, live: Sequence[Message], new: Sequence[Message]) -> None:
        page = OpenPage(self._recorded.more(new), rebuilt_at=self._page.rebuilt_at)
        self._write(page, paged(live))
        self._load(live)
        if new:
            self.store.on_commit(lambda: self._on_append(new))

    def _load(self, live: Sequence[Message]) -> None:
        self._all, self._ids, self._views = (), {}, Views()
        self._keep(live)

    def _keep(self, new: Sequence[Message]) -> None:
        self._all, tally = (*self._all, *new), Counter[str]()
        for message in new:
            self._ids[message.id] = message
            tally[message.audience] += message.tokens
        for audience, tokens in tally.items():
            self._views.add(audience, tokens)
        self._stamps = (self.store.stamp(HISTORY), self.store.stamp(TAIL))


def marker_of(record: SummaryRecord, count: int, tokens: int) -> Message:
    """The message that shows a summary, for so many messages that left, in so many tokens."""
    at = record.created_at
    return Message(
        "system",
        f"{SUMMARY_TITLE}\n{record.text}",
        id=f"m{record.id[1:]}",
        created_at=at,
        audience=record.audience,
        channel="summary",
        metadata={
            "type": "compaction",
            "tier": record.tier,
            "compacted_count": count,
            "compacted_at": at,
            "original_token_count": as_count(record.extra.get("original_tokens")),
            "summary_token_count": tokens,
            "summary_id": record.id,
            "source_ids": list(record.source_ids or record.child_ids),
            "tools_used": as_texts(record.extra.get("tools_used")),
            "generation": record.generation,
        },
    )


def paged(messages: Iterable[Message], first: int = 0) -> Pages:
    """Messages on the pages of their places, from the `first` on.

    One whose place is out of order is on the page of the one before it.
    """
    pages: dict[int, list[Message]] = {}
    for message in messages:
        first = max(first, int(message.place) // PAGE_PLACES)
        pages.setdefault(first, []).append(message)
    return {number: tuple(page) for number, page in pages.items()}


def _page_key(number: int) -> str:
    return f"page_{number:06d}"
