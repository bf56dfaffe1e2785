"""Sources that an assistant keeps, but does not use: people in quarantine, and lines taken back.

Nothing is deleted or moved. What rests on them is left out where memory is searched and where a
prompt is made, and is back with the release. A message is somebody's by its speaker's stable id,
or by the account that paged; an entry, observation, memory or summary rests on messages.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evennia_ai.history.messages import Message, is_by, made_at, utc_iso
from evennia_ai.history.pages import Cache, records
from evennia_ai.history.stored import Stored
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.ledger import Note
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.recall.values import Hit

KEY = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined(Stored):
    """Name and time (``{"name", "at"}``) of people by stable id; lines have no name."""

    sources: Mapping[str, Mapping[str, str]]


class Quarantine:
    """What one assistant does not use; without an assistant, there is nothing such."""

    def __init__(self, script: Assistant | None = None):
        self._script = script

    @property
    def sources(self) -> Mapping[str, Mapping[str, str]]:
        """Name and time (``{"name", "at"}``) by the stable id of a person, or the id of a line."""
        stored = self._stored.get(KEY) if self._script else None
        return stored.sources if stored else {}

    @cached_property
    def _stored(self) -> Cache[Quarantined]:
        """What is stored: every prompt and search asks, and it grows with each line."""
        assert self._script is not None
        return records(self._script.state.store, None, Quarantined)

    @property
    def lines(self) -> frozenset[str]:
        """The ids of the lines that are taken back."""
        return frozenset(each for each, about in self.sources.items() if not about.get("name"))

    def add(self, sources: Mapping[str, str]) -> int:
        """Quarantine people, names by stable id, or lines; returns how many were not before."""
        assert self._script is not None
        before, at = self.sources, utc_iso(self._script.now())
        new = {each: {"name": name, "at": at} for each, name in sources.items()}
        self._stored.set(KEY, Quarantined({**new, **before}))
        return len(new.keys() - before.keys())

    def release(self, sources: Collection[str]) -> int:
        """Release people by stable id, or lines; returns how many were in quarantine."""
        before = self.sources
        if before.keys().isdisjoint(sources):
            return 0
        left = {each: about for each, about in before.items() if each not in sources}
        if left:
            self._stored.set(KEY, Quarantined(left))
        else:
            self._stored.delete(KEY)
        return len(before) - len(left)

    def messages(self, messages: Iterable[Message]) -> list[Message]:
        """The messages that are used."""
        sources = self.sources
        return [m for m in messages if not (sources and _is_of(m, sources))]

    def hits(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits that rest on nothing such."""
        if not self.sources:
            return hits
        held = self.held({each for hit in hits for each in (hit.turn_id, *hit.sources)})
        return [hit for hit in hits if held.isdisjoint((hit.turn_id, *hit.sources))]

    def profiles(self, profiles: Sequence[Profile]) -> Sequence[Profile]:
        """Profiles without observations that rest on something such."""
        if not self.sources:
            return profiles
        held = self.held({each for p in profiles for o in p.observations for each in o.sources})
        return [profile.only(lambda item: held.isdisjoint(item.sources)) for profile in profiles]

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """The notes that nobody in quarantine wrote or caused."""
        sources = self.sources
        if not sources:
            return notes
        held = self.held({note.source for note in notes})
        return tuple(n for n in notes if n.by.id not in sources and n.source not in held)

    def held(self, ids: Iterable[str]) -> frozenset[str]:
        """What of these ids, and of what they rest on, is not used or rests on such.

        All are looked up together. Where people are in quarantine, and not only lines, each look
        into the archive reads whole segments.
        """
        script, sources = self._script, self.sources
        if script is None or not sources:
            return frozenset()
        unused, below = set[str](), dict[str, Collection[str]]()
        has_people = any(made_at(each) is None for each in sources)
        wanted = set(filter(None, ids))
        while wanted:
            unused |= wanted & sources.keys()
            messages = script.history.by_ids(wanted) if has_people else ()
            unused |= {message.id for message in messages if is_by(message, sources)}
            below |= dict.fromkeys((message.id for message in messages), ())
            below |= {each: _below(script, each) for each in wanted - below.keys()}
            wanted = {source for each in wanted for source in below[each]} - below.keys()
        return resting_on(unused, below)


def _is_of(message: Message, sources: Collection[str]) -> bool:
    """Whether a message is one of these lines, or words of one of these people."""
    return message.id in sources or is_by(message, sources)


def _below(script: Assistant, item_id: str) -> Collection[str]:
    """What a journal entry or a summary rests on; a message's id is known by its beginning."""
    if item_id.startswith("m"):
        return ()
    if summary := script.history.summary(item_id):
        return summary.rests_on
    entry = script.journal.get(item_id)
    return entry.source_message_ids if entry else ()


def resting_on(ids: Iterable[str], sources: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """These ids, and those of all that rests on them, directly or through others.

    `sources` has the ids of what each thing rests on.
    """
    above: dict[str, list[str]] = {}
    for each, below in sources.items():
        for source in below:
            above.setdefault(source, []).append(each)
    reached, waiting = set[str](), list(ids)
    while waiting:
        each = waiting.pop()
        if each not in reached:
            reached.add(each)
            waiting += above.get(each, ())
    return frozenset(reached)
