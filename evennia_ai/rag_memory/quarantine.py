"""People whose words an assistant keeps, but does not use: a source in quarantine.

Nothing is deleted or moved. What rests on their words is left out where memory is searched and
where a prompt is made, and is back with the release. A message is theirs by its speaker's stable
id, or by the account that paged; an entry, observation, memory or summary by the messages it rests
on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evennia_ai.history.messages import Message, is_by, utc_iso
from evennia_ai.history.stored import Stored
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.ledger import Note
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.recall.values import Hit

KEY = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined(Stored):
    """Name and time (``{"name", "at"}``) of those in quarantine, by stable id."""

    people: Mapping[str, Mapping[str, str]]


class Quarantine:
    """Those in quarantine of one assistant; without an assistant, nobody ever is."""

    def __init__(self, script: Assistant | None = None):
        self._script = script

    @property
    def people(self) -> Mapping[str, Mapping[str, str]]:
        """Name and time (``{"name", "at"}``) by stable id."""
        store = self._script.state.store if self._script else None
        if store is None or store.stamp(KEY) is None:
            return {}  # every prompt asks
        stored = Quarantined.if_readable(store.get(KEY))
        return stored.people if stored else {}

    def add(self, people: Mapping[str, str]) -> int:
        """Quarantine people, names by stable id; returns how many were not before."""
        assert self._script is not None
        before, at = self.people, utc_iso(self._script.now())
        new = {each: {"name": name, "at": at} for each, name in people.items()}
        self._script.state.store.set(KEY, Quarantined({**new, **before}).to_dict())
        return len(new.keys() - before.keys())

    def release(self, people: Collection[str]) -> int:
        """Release people by stable id; returns how many were in quarantine."""
        assert self._script is not None
        before, store = self.people, self._script.state.store
        left = {each: about for each, about in before.items() if each not in people}
        if left:
            store.set(KEY, Quarantined(left).to_dict())
        else:
            store.delete(KEY)
        return len(before) - len(left)

    def messages(self, messages: Iterable[Message]) -> list[Message]:
        """The messages of all others."""
        people = self.people
        return [m for m in messages if not (people and is_by(m, people))]

    def hits(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits that rest on no words of theirs."""
        if not self.people:
            return hits
        held = self.held({each for hit in hits for each in (hit.turn_id, *hit.sources)})
        return [hit for hit in hits if held.isdisjoint((hit.turn_id, *hit.sources))]

    def profiles(self, profiles: Sequence[Profile]) -> Sequence[Profile]:
        """Profiles without observations that rest on words of theirs."""
        if not self.people:
            return profiles
        held = self.held({each for p in profiles for o in p.observations for each in o.sources})
        return [profile.only(lambda item: held.isdisjoint(item.sources)) for profile in profiles]

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """The notes that they neither wrote nor caused."""
        people = self.people
        if not people:
            return notes
        held = self.held({note.source for note in notes})
        return tuple(n for n in notes if n.by.id not in people and n.source not in held)

    def held(self, ids: Iterable[str]) -> frozenset[str]:
        """What of these ids, and of what they rest on, is words of theirs or rests on them.

        All are looked up together, as each look into the archive reads whole segments.
        """
        script, people = self._script, self.people
        if script is None or not people:
            return frozenset()
        theirs, below = set[str](), dict[str, Collection[str]]()
        wanted = set(filter(None, ids))
        while wanted:
            messages = script.history.by_ids(wanted)
            theirs |= {message.id for message in messages if is_by(message, people)}
            below |= dict.fromkeys((message.id for message in messages), ())
            below |= {each: _below(script, each) for each in wanted - below.keys()}
            wanted = {source for each in wanted for source in below[each]} - below.keys()
        return resting_on(theirs, below)


def _below(script: Assistant, item_id: str) -> Collection[str]:
    """What a journal entry or a summary rests on."""
    if summary := script.history.summary(item_id):
        return (*summary.source_ids, *summary.child_ids)
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
