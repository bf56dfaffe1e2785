"""People whose words an assistant keeps, but does not use: a source in quarantine.

Nothing is deleted or moved. What rests on their words is left out where memory is searched and
where a prompt is made, and is back with the release. A message is theirs by its speaker's stable
id, or by the account that paged; an entry, observation, memory or summary by the messages it rests
on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from evennia_ai.history.messages import Message, is_by, utc_iso
from evennia_ai.history.records import as_dict, as_text
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.ledger import Note
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.recall.values import Hit

KEY = "quarantine"
# A summary of summaries rests on messages by so many steps at most, in any but a huge history.
DEPTH = 4


def quarantined_people(value: object) -> dict[str, dict[str, str]]:
    """Name and time (``{"name", "at"}``) by stable id, of a stored value."""
    held = as_dict(as_dict(value).get("people"))
    return {
        str(person): {key: as_text(as_dict(about).get(key)) for key in ("name", "at")}
        for person, about in held.items()
    }


def quarantine_value(value: object) -> dict[str, object] | None:
    """A stored value as it can be used, for `assistant.soundness`; None if nothing of it can."""
    people = quarantined_people(value)
    return {"people": people} if people else None


class Quarantine:
    """Those in quarantine of one assistant; without an assistant, nobody ever is."""

    def __init__(self, script: Assistant | None = None):
        self._script = script

    @property
    def people(self) -> dict[str, dict[str, str]]:
        """Name and time (``{"name", "at"}``) by stable id."""
        store = self._script.state.store if self._script else None
        if store is None or store.stamp(KEY) is None:
            return {}  # every prompt asks
        return quarantined_people(store.get(KEY))

    def add(self, people: Mapping[str, str]) -> int:
        """Quarantine people, names by stable id; returns how many were not before."""
        assert self._script is not None
        before, at = self.people, utc_iso(self._script.now())
        new = {each: {"name": name, "at": at} for each, name in people.items()}
        self._save({**new, **before})
        return len(new.keys() - before.keys())

    def release(self, people: Collection[str]) -> int:
        """Release people by stable id; returns how many were in quarantine."""
        before = self.people
        self._save({each: about for each, about in before.items() if each not in people})
        return len(before.keys() & set(people))

    def _save(self, people: Mapping[str, Mapping[str, str]]) -> None:
        assert self._script is not None
        store = self._script.state.store
        if people:
            store.set(KEY, {"people": dict(people)})
        else:
            store.delete(KEY)

    def messages(self, messages: Iterable[Message]) -> list[Message]:
        """The messages of all others."""
        people = self.people
        return [m for m in messages if not (people and is_by(m, people))]

    def hits(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits that rest on no words of theirs."""
        if self._script is None or not self.people:
            return hits
        rests_on = {
            item.id: item.sources
            for profile in self._script.entities.profiles().values()
            for item in profile.observations
        }
        sources = [rests_on.get(hit.turn_id) or (hit.turn_id,) for hit in hits]
        held = self.held({each for ids in sources for each in ids})
        return [hit for hit, ids in zip(hits, sources, strict=True) if held.isdisjoint(ids)]

    def profile(self, profile: Profile) -> Profile:
        """A profile without observations that rest on words of theirs."""
        if not self.people:
            return profile
        kept = (item for item in profile.observations if not self.holds(item.sources))
        return replace(profile, observations=tuple(kept))

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """The notes that they neither wrote nor caused."""
        people = self.people
        if not people:
            return notes
        return tuple(n for n in notes if n.by.id not in people and not self.holds([n.source]))

    def holds(self, ids: Iterable[str]) -> bool:
        """Whether one of these ids means words of theirs, or what rests on them.

        Of messages, journal entries and summaries, which rest on each other at most so deep
        (`DEPTH`).
        """
        return bool(self.held(set(ids)))

    def held(self, ids: Set[str]) -> set[str]:
        """These ids, and what they rest on, as far as it is words of theirs or rests on them.

        All are looked up together: a summary rests on hundreds of messages, and each look into
        the archive reads whole segments.
        """
        script, people, held = self._script, self.people, set[str]()
        if script is None or not people:
            return held
        below, wanted = dict[str, set[str]](), set(filter(None, ids))
        for _ in range(DEPTH):
            messages = script.history.by_ids(wanted)
            held |= {message.id for message in messages if is_by(message, people)}
            found = {each: self._below(each) for each in wanted - {m.id for m in messages}}
            below |= found
            wanted = {each for under in found.values() for each in under} - below.keys()
        for _ in range(DEPTH):
            held |= {each for each, under in below.items() if not held.isdisjoint(under)}
        return held

    def _below(self, each: str) -> set[str]:
        """What a journal entry or a summary rests on."""
        assert self._script is not None
        if summary := self._script.history.summary(each):
            return {*summary.source_ids, *summary.child_ids}
        entry = self._script.journal.get(each)
        return set(entry.source_message_ids) if entry else set()
