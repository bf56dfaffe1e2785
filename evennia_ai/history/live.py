"""The live conversation history: a list in one Attribute and a small open page in another.

Storing a turn writes only the open page; a checkpoint merges it into the list. Token counts are
kept by audience and summed as messages come, so that usage costs the same at any length.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from twisted.internet.defer import inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, pause
from evennia_ai.history.archive import ARCHIVE, COMPACTIONS, Archive
from evennia_ai.history.audience import widest_of
from evennia_ai.history.messages import Message, call_ids, is_talk, made_at, new_id, utc_iso
from evennia_ai.history.pages import Store, aside, put_aside
from evennia_ai.history.pairs import INTERRUPTED, answered, unanswered
from evennia_ai.history.records import Segment, as_dict, as_text
from evennia_ai.history.stored import Unreadable, each_readable
from evennia_ai.history.verification import EMPTY_DIGEST, Evidence, digest_add
from evennia_ai.language.words import storable

HISTORY, TAIL = "conversation_history", "conversation_tail"
# When the record of ids was begun; once written it stays, so that its loss is noticed.
BEGUN = "conversation_begun"
PAGE_MESSAGES = 24
PAGE_CHARS = 24_000


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
        self._counter = counter
        self._now = now
        self._on_append = on_append
        self._stamps: tuple[object, object] | None = None
        self._page: list[Message] = []
        self._all: tuple[Message, ...] = ()
        self._tally: dict[str, int] = {}
        self._waiting: Counter[str] = Counter()
        self._widest, self._lines = 0, 0
        self._recorded: tuple[int, str] = (0, EMPTY_DIGEST)
        self._rebuilt_at = ""

    def messages(self) -> tuple[Message, ...]:
        """All live messages, oldest first, complete. Treat them as immutable."""
        self._refresh()
        return self._all

    def append(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Store new messages in one write; returns them as stored, ids stamped."""
        self._refresh()
        at, count = self._now(), self._counter()
        # Behind the newest message; those in the archive are older.
        place = 1 + max(self._recorded[0], *(int(m.place) for m in self._all[-1:]), 0)
        new = tuple(m.completed(count, at, n) for n, m in enumerate(messages, place))
        if not new:
            return new
        page, recorded = [*self._page, *new], _more_recorded(self._recorded, new)
        chars = sum(len(message.content) for message in page)
        if len(page) >= PAGE_MESSAGES or chars >= PAGE_CHARS:
            self._replace([*self._all, *new], recorded)
        else:
            self._set_page(page, recorded)
            self._page, self._recorded = page, recorded
            self._keep(new)
        self.store.on_commit(lambda: self._on_append(new))
        return new

    def _set_page(self, page: list[Message], recorded: tuple[int, str]) -> None:
        """Write the open page; with the first one, note that there is a record of ids."""
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
        self._load(messages, [])

    @property
    def recorded(self) -> tuple[int, str]:
        """How many messages were ever recorded, and the set digest of their ids."""
        self._refresh()
        return self._recorded

    def tokens(self) -> int:
        """Summed tokens of all messages."""
        self._refresh()
        return sum(self._tally.values())

    def widest_tokens(self) -> int:
        """Tokens of the largest view any one audience has."""
        self._refresh()
        return self._widest

    def heal(self) -> int:
        """Answer each call without a result, as of a turn cut short; returns how many there were.

        The result, `INTERRUPTED`, stands behind its call, so that the history can be cut there.
        """
        messages = self.messages()
        if not self._waiting:
            return 0
        at, count = self._now(), self._counter()
        results = []
        for index, call_id, name in unanswered(messages):
            owner = messages[index]
            result = Message(
                "tool",
                INTERRUPTED,
                audience=owner.audience,
                tool_call_id=call_id,
                name=name,
                metadata=owner.metadata,  # a rollback takes an extraction's result with its call
            )
            results.append((index, result.completed(count, at, owner.place)))
        new = [result for _, result in results]
        self._replace(answered(messages, results), _more_recorded(self._recorded, new))
        self.store.on_commit(lambda: self._on_append(new))
        return len(new)

    @property
    def is_answered(self) -> bool:
        """Whether every tool call has its result, so that others may follow; constant time."""
        self._refresh()
        return not self._waiting

    def around(self, message_id: str) -> Sequence[Message]:
        """The messages around one: the live history or its archive segment; empty if it is gone."""
        segments = map(self.segment, reversed(self._segments_with({message_id})))
        for messages in (self.messages(), *(segment.messages for segment in segments if segment)):
            if any(message.id == message_id for message in messages):
                return messages
        return ()

    def by_ids(self, message_ids: Iterable[str]) -> list[Message]:
        """Messages by their ids, live or archived; unknown ids are left out."""
        wanted = list(message_ids)
        known = {message.id: message for message in self.messages()}
        if missing := [each for each in wanted if each not in known]:
            known = {**self.archived(missing), **known}
        return [known[each] for each in wanted if each in known]

    def lines(self) -> int:
        """How many live messages are lines of talk; constant time."""
        self._refresh()
        return self._lines

    def evidence(self, segments: Iterable[Segment] | None = None) -> Evidence:
        """All that the proof needs, loaded from the store, except `segments` loaded before."""
        count, digest = self.recorded
        return Evidence(
            live=self.messages(),
            segments=tuple(self.segments() if segments is None else segments),
            restored=frozenset(self.restored_segments()),
            summaries={record.id: record for record in self.summaries()},
            tombstones=frozenset(self.tombstones()),
            recorded_count=count,
            recorded_digest=digest,
            rebuilt_at=self._rebuilt_at,
            aside=aside(self.store),
        )

    @inlineCallbacks
    def gathered_evidence(self, reactor: IReactorTime | None = None) -> Steps[Evidence]:
        """Fires with the same `Evidence`, gathered with pauses between slices of the archive.

        Segments that are written or changed meanwhile are read again, so that the evidence is
        consistent at the moment it is returned.
        """
        known = dict[str, tuple[object, Segment | None]]()
        for _ in self.warm():
            yield pause(reactor)
        changed = list(self.store.keys(ARCHIVE))
        while changed:
            for key in changed:
                segment = self.segment(key)
                known[key] = self.store.stamp(key, ARCHIVE), segment
                yield pause(reactor)
            keys = self.store.keys(ARCHIVE)
            stamps = zip(keys, self.store.stamps(keys, ARCHIVE), strict=True)
            changed = [k for k, stamp in stamps if k not in known or known[k][0] is not stamp]
        return self.evidence(segment for _, segment in known.values() if segment)

    def _refresh(self) -> None:
        """Load again if somebody else changed an Attribute; otherwise two comparisons."""
        stamps = (self.store.stamp(HISTORY), self.store.stamp(TAIL))
        known = self._stamps
        if known is not None and known[0] is stamps[0] and known[1] is stamps[1]:
            return
        merged, page = self._read(HISTORY), self._read(TAIL)
        if known is None:
            ids = (message.id for message in merged + page if made_at(message.id) is not None)
            for key in (*self.store.keys(COMPACTIONS)[-1:], max(ids, default="")):
                new_id.follow(key)
        is_rebuilt = self._load_recorded([message for message in merged + page if message.id])
        if is_rebuilt or not all(message.is_complete for message in merged + page):
            self._adopt(merged + page)
        else:
            self._load([*merged, *page], page)

    def _read(self, key: str) -> list[Message]:
        """The messages of an Attribute; items that are none are put aside."""
        raw, odd = self.store.get(key), list[object]()
        items = raw.get("messages") if isinstance(raw, Mapping) else raw
        messages = []
        try:
            messages = each_readable([] if raw is None else items, Message.from_dict, odd)
        except Unreadable:
            odd = [raw]
        if odd:
            with self.store.transaction():
                for item in odd:
                    put_aside(self.store, item, key)
                plain = [message.to_dict() for message in messages]
                self.store.set(
                    key, plain if key == HISTORY else {**as_dict(raw), "messages": plain}
                )
        return messages

    def _load_recorded(self, live: list[Message]) -> bool:
        """Load the record of ids; without one, make it of what is there.

        Returns True, with `_rebuilt_at` set, if there was one before and it is lost.
        """
        tail = as_dict(self.store.get(TAIL))
        self._rebuilt_at = as_text(tail.get("rebuilt_at"))
        record = as_dict(tail.get("recorded"))
        count, digest = record.get("count"), as_text(record.get("digest"))
        if isinstance(count, int) and re.fullmatch("[0-9a-f]{64}", digest):
            self._recorded = (count, digest)
            return False
        restored = self.restored_segments()
        parts = (part.messages for part in self.segments() if part.id not in restored)
        archived = chain.from_iterable(parts)
        self._recorded = _more_recorded((0, EMPTY_DIGEST), chain(archived, live))
        is_lost = (
            self.store.stamp(BEGUN) is not None
            or bool(self.store.keys(ARCHIVE) or self.store.keys(COMPACTIONS))
            or any(message.is_summary for message in live)
        )
        if is_lost:
            self._rebuilt_at = utc_iso(self._now())
        return is_lost

    def _adopt(self, raw: list[Message]) -> None:
        """Complete what was put in by hand: it has the place of the message before it."""
        at, count = self._now(), self._counter()
        place, complete = next((m.place for m in raw if m.place), 1.0) / 2, list[Message]()
        for message in raw:
            place = message.place or place
            if not message.is_complete:
                plain = replace(message, content=storable(message.content))
                message = plain.completed(count, at, place)
            complete.append(message)
        new = [message for message, old in zip(complete, raw, strict=True) if not old.id]
        self._replace(complete, _more_recorded(self._recorded, new))
        if new:
            self.store.on_commit(lambda: self._on_append(new))

    def _load(self, messages: Sequence[Message], page: list[Message]) -> None:
        self._page, self._all = page, ()
        self._tally, self._waiting, self._lines = {}, Counter(), 0
        self._keep(messages)

    def _keep(self, new: Sequence[Message]) -> None:
        self._all = (*self._all, *new)
        for message in new:
            owner = message.audience
            self._tally[owner] = self._tally.get(owner, 0) + message.tokens
            self._lines += is_talk(message)
            # Count the calls that wait for a result, by their ids.
            self._waiting.update(call_ids(message))
            if message.role == "tool":  # keys of 0 are dropped: `_waiting` is true while calls wait
                self._waiting -= Counter([message.tool_call_id])
        self._widest = widest_of(self._tally)
        self._stamps = (self.store.stamp(HISTORY), self.store.stamp(TAIL))

    def _page_value(self, messages: list[Message], recorded: tuple[int, str]) -> dict[str, Any]:
        count, digest = recorded
        return {
            "recorded": {"count": count, "digest": digest},
            **({"rebuilt_at": self._rebuilt_at} if self._rebuilt_at else {}),
            "messages": [message.to_dict() for message in messages],
        }


def _more_recorded(recorded: tuple[int, str], messages: Iterable[Message]) -> tuple[int, str]:
    """Count and digest with more messages; markers do not count, as they are derived."""
    ids = [message.id for message in messages if not message.is_summary]
    return recorded[0] + len(ids), digest_add(recorded[1], ids)
