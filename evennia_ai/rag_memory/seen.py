"""The read gate: what one viewer may see of an assistant, and nothing else.

A `Seen` is made once for a turn, a command or a page, and hands out everything that they show:
history, archive, summaries, journal, profiles, notes, searches, budgets. Who may know a thing, and
whose words are not used (`Quarantine`), is decided here alone; tools, prompts, commands and pages
read an assistant's life in no other way (`tests/test_read_gate.py`).

Alice whispers "the key is under the mat" to Aria, and says "it rains" aloud. Then

- ``script.seen("public").messages()`` holds "it rains";
- ``script.seen("private:alice")`` both, and so does ``script.seen("staff")``;
- ``script.seen("private:alice+bram")`` holds "it rains": Bram did not hear the whisper.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol, TypeVar

from evennia_ai.history.archive import ARCHIVE, SummaryRecord, resting_on
from evennia_ai.history.audience import viewer, visible
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import Message, is_by, made_at, utc_iso
from evennia_ai.history.stored import Store, Stored, records
from evennia_ai.llm_interaction.budget import PromptLog, TokenBudget
from evennia_ai.rag_memory.entities import Observation, Profile
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import JournalEntry, JournalHandler
from evennia_ai.rag_memory.ledger import LedgerHandler, Note, in_prompt_order
from evennia_ai.recall.values import Hit, Query

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

KEY = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined(Stored):
    """Name and time (``{"name", "at"}``) of people by stable id; lines have no name."""

    sources: Mapping[str, Mapping[str, str]]


class Keeper(Protocol):
    """An assistant that keeps what was said and written."""

    store: Store
    now: Callable[[], float]

    @property
    def history(self) -> HistoryHandler:
        """What was said."""

    @property
    def journal(self) -> JournalHandler:
        """What its body wrote down."""


class Quarantine:
    """What one assistant does not use."""

    def __init__(self, life: "Keeper"):
        self._life = life
        # Every prompt and search asks, and it grows with each line.
        self._stored = records(life.store, None, Quarantined)

    @property
    def sources(self) -> Mapping[str, Mapping[str, str]]:
        """Name and time (``{"name", "at"}``) by the stable id of a person, or the id of a line."""
        stored = self._stored.get(KEY)
        if stored:
            return stored.sources
        return {}

    @property
    def lines(self) -> frozenset[str]:
        """The ids of the lines that are taken back."""
        return frozenset(each for each, about in self.sources.items() if not about.get("name"))

    def add(self, sources: Mapping[str, str]) -> int:
        """Quarantine people, names by stable id, or lines; returns how many were not before."""
        before, at = self.sources, utc_iso(self._life.now())
        new = {each: {"name": name, "at": at} for each, name in sources.items()}
        self._stored.set(KEY, Quarantined({**new, **before}))
        return len(new.keys() - before.keys())

    def release(self, sources: Collection[str]) -> int:
        """Release people by stable id, or lines; returns how many were in quarantine."""
        before = self.sources
        left = {each: about for each, about in before.items() if each not in sources}
        if left and len(left) < len(before):
            self._stored.set(KEY, Quarantined(left))
        elif before and not left:
            self._stored.delete(KEY)
        return len(before) - len(left)

    def messages(self, messages: Iterable[Message]) -> list[Message]:
        """The messages that are used."""
        sources = self.sources
        if not sources:
            return list(messages)
        return [m for m in messages if m.id not in sources and not is_by(m, sources)]

    def hits(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits that rest on nothing such."""
        held = self.held({each for hit in hits for each in (hit.turn_id, *hit.sources)})
        return [hit for hit in hits if held.isdisjoint((hit.turn_id, *hit.sources))]

    def profiles(self, profiles: Sequence[Profile]) -> Sequence[Profile]:
        """Profiles without observations that rest on something such."""
        held = self.held({each for p in profiles for o in p.observations for each in o.sources})
        return [profile.only(lambda item: held.isdisjoint(item.sources)) for profile in profiles]

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """The notes that nobody in quarantine wrote or caused."""
        sources, held = self.sources, self.held({note.source for note in notes})
        return tuple(n for n in notes if n.by.id not in sources and n.source not in held)

    def held(self, ids: Iterable[str]) -> frozenset[str]:
        """What of these ids, and of what they rest on, is not used or rests on such.

        All are looked up together. Where people are in quarantine, and not only lines, each look
        into the archive reads whole segments.
        """
        life, sources = self._life, self.sources
        if not sources:
            return frozenset()
        unused, below = set[str](), dict[str, Collection[str]]()
        has_people = any(made_at(each) is None for each in sources)
        wanted = set(filter(None, ids))
        while wanted:
            unused |= wanted & sources.keys()
            messages = life.history.by_ids(wanted) if has_people else ()
            unused |= {message.id for message in messages if is_by(message, sources)}
            below |= dict.fromkeys((message.id for message in messages), ())
            below |= {each: self._below(each) for each in wanted - below.keys()}
            wanted = {source for each in wanted for source in below[each]} - below.keys()
        return resting_on(unused, below)

    def _below(self, item_id: str) -> Collection[str]:
        """What an entry or a summary rests on; a message's id is known by its beginning."""
        if item_id.startswith("m"):
            return ()
        if summary := self._life.history.summary(item_id):
            return summary.rests_on
        entry = self._life.journal.get(item_id)
        if entry:
            return entry.source_message_ids
        return ()


# What was made of talk: it rests on messages, and on others of its kind.
M = TypeVar("M", JournalEntry, SummaryRecord)


class Searched(Protocol):
    """What is searched; `rag_memory.memory.Memory` says how."""

    quarantine: Quarantine

    def search(self, query: Query) -> "Deferred[list[Hit]]":
        """Fires with what matches."""


class Remembering(Keeper, Protocol):
    """An assistant, as the read gate reads it."""

    @property
    def ledger(self) -> LedgerHandler:
        """The notes that people want kept."""

    @property
    def memory(self) -> Searched:
        """What is searched."""

    @property
    def entities(self) -> EntityHandler:
        """What its body knows of people, places and things."""

    @property
    def prompts(self) -> PromptLog:
        """Its newest requests."""


class Seen:
    """What one viewer may see of an assistant.

    Args:
        script: The assistant.
        audience: The viewer, as in `history.audience`; an unknown one counts as the public.
        trusted: Whether words of people in quarantine are left out, as in every turn. Staff who
            look on see them.
    """

    def __init__(self, script: Remembering, audience: str, trusted: bool = False):
        self._script, self.audience, self._trusted = script, viewer(audience), trusted

    def shows(self, audience: str) -> bool:
        """Whether the viewer may see material of an audience."""
        return visible(audience, self.audience)

    def trusts(self, person: str) -> bool:
        """Whether what somebody (stable id) says counts for the viewer."""
        return not self._trusted or person not in self._script.memory.quarantine.sources

    # Talk

    def messages(self) -> list[Message]:
        """The live messages, oldest first."""
        return self._said(self._script.history.messages())

    def newest(self) -> Iterator[Message]:
        """The live messages, newest first; looks at no more than are taken."""
        for message in reversed(self._script.history.messages()):
            yield from self._said([message])

    def stretches(self) -> Iterator[list[Message]]:
        """The live messages, then those of each archive segment; all newest first."""
        yield self.messages()[::-1]
        history = self._script.history
        restored = history.restored_segments()
        for key in reversed(history.store.keys(ARCHIVE)):
            if key not in restored and (segment := history.segment(key)):
                yield self._said(segment.messages)[::-1]

    def by_ids(self, ids: Iterable[str]) -> list[Message]:
        """Messages by their ids, live or archived; ids of no message are left out."""
        return self._said(self._script.history.by_ids(ids))

    def around(self, message_id: str) -> list[Message]:
        """A message and those beside it: all live ones, or the nearest that left with it."""
        return self._said(self._script.history.around(message_id))

    def as_if_never_compacted(
        self, live: Sequence[Message], room_tokens: int
    ) -> tuple[list[Message], int]:
        """Archived raw messages together with live ones; see `HistoryHandler.raw_back`."""
        shown, older = self._script.history.raw_back(self.audience, room_tokens, live)
        return self._said(shown), older

    def _said(self, messages: Iterable[Message]) -> list[Message]:
        shown = [message for message in messages if self.shows(message.audience)]
        if self._trusted:
            return self._script.memory.quarantine.messages(shown)
        return shown

    # Summaries

    def summaries(self) -> list[SummaryRecord]:
        """The records of summaries, oldest first."""
        return self._made(self._script.history.summaries())

    def has_summaries(self) -> bool:
        """Whether summaries stand for what the viewer could see; they begin the live history."""
        markers = takewhile(lambda message: message.is_summary, self._script.history.messages())
        return any(self.shows(marker.audience) for marker in markers)

    def summary(self, summary_id: str) -> SummaryRecord | None:
        """A summary by its id."""
        return self._one(self._script.history.summary(summary_id))

    def below(self, summary_id: str, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """The messages that a summary stands for, from one place to another, oldest first."""
        for message in self._script.history.below(summary_id, start, stop):
            yield from self._said([message])

    def count_below(self, summary_id: str) -> int:
        """How many messages a summary stands for, also such as the viewer may not see."""
        return self._script.history.count_below(summary_id)

    # Notes, entries, profiles

    def entry(self, entry_id: str) -> JournalEntry | None:
        """A journal entry by its id."""
        return self._one(self._script.journal.get(entry_id))

    def stretch(self, start: int, stop: int) -> list[JournalEntry]:
        """Those of the journal entries from one place to another, newest first."""
        return self._made(self._script.journal.stretch(start, stop))

    def profiles(self) -> list[Profile]:
        """The profiles of people, places and things, of which the viewer may know something."""
        profiles = list(self._script.entities.profiles().values())
        shown = zip(profiles, self._observed(profiles), strict=True)
        return [seen for profile, seen in shown if seen.observations or not profile.observations]

    def profile(self, entity_id: str) -> Profile | None:
        """A profile by its id, with what the viewer may know."""
        profiles = filter(None, [self._script.entities.get(entity_id)])
        return next(iter(self._observed(list(profiles))), None)

    def older(self, profile: Profile) -> list[Observation]:
        """The archived observations of a profile, oldest first."""
        archived = self._script.entities.archived(profile.id)
        [shown] = self._observed([replace(profile, observations=tuple(archived))])
        return list(shown.observations)

    def older_profiles(self) -> Iterator[Profile]:
        """Every archived page of observations, as a profile that holds them."""
        return (self._observed([old])[0] for old in self._script.entities.archived_profiles())

    def _observed(self, profiles: Sequence[Profile]) -> Sequence[Profile]:
        shown = [profile.only(lambda item: self.shows(item.audience)) for profile in profiles]
        if self._trusted:
            return self._script.memory.quarantine.profiles(shown)
        return shown

    def pinned(self) -> tuple[Note, ...]:
        """The approved notes of the ledger, in the order of the prompt."""
        return in_prompt_order(self.notes())

    def notes(self) -> tuple[Note, ...]:
        """The living notes of the ledger, oldest first."""
        return self._pinnable(self._script.ledger.entries())

    def closed_notes(self) -> tuple[Note, ...]:
        """Superseded and withdrawn notes, the last closed first."""
        return self._pinnable(self._script.ledger.closed())

    def _pinnable(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        shown = tuple(note for note in notes if self.shows(note.audience))
        if self._trusted:
            return self._script.memory.quarantine.notes(shown)
        return shown

    # Search, requests

    def search(self, query: Query) -> "Deferred[list[Hit]]":
        """Fires with what memory finds for the viewer; see `rag_memory.memory.Memory.search`."""
        return self._script.memory.search(replace(query, audience=self.audience))

    def requests(self) -> list[TokenBudget]:
        """The newest requests to its model, oldest first."""
        return [event for event in self._script.prompts.events() if self.shows(event.audience)]

    def _one(self, item: M | None) -> M | None:
        return next(iter(self._made(filter(None, [item]))), None)

    def _made(self, items: Iterable[M]) -> list[M]:
        """Those of entries or summaries, which rest on others' words, that are shown."""
        shown = [item for item in items if self.shows(item.audience)]
        if not self._trusted:
            return shown
        held = self._script.memory.quarantine.held({item.id for item in shown})
        return [item for item in shown if item.id not in held]
