"""Forgetting people: taking what rests on their words out of all that one assistant remembers.

`privacy.closure` says what goes. Their messages go last: as long as they are there, a run that
a crash cut short finds again what must go. Each step can be repeated. What has to leave the search
index and semantic memory is noted before anything is removed.
"""

import re
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai.errors import ModelError, StoreError
from evennia_ai.history.aside import drop_from_aside
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.history.messages import Message
from evennia_ai.history.records import (
    ROLLED_BACK,
    UNSUMMARISED,
    CompactionRecord,
    as_texts,
)
from evennia_ai.history.sealed import UNMET, unseal
from evennia_ai.privacy.closure import Forgetting, Made, plan_forgetting, without_copies
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.journal_entry import SYNTHESIS, JournalEntry, synthesis_id
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.sleep.compaction.commit import REMADE
from evennia_ai.sleep.compaction.remake import put_remade, put_text, remade, with_text

# Key of the ids that must leave the search index and semantic memory.
OUTBOX = "forgetting"
# The text of a summary until it is made again, and of one that was rolled back.
EMPTIED = "Part of what this summary was made from is forgotten."
# Records, or pages of the journal, written in one transaction before others get their turn.
SLICE = 10
# What a run calls `at_commit_step` with, in this order.
STEPS = (
    "forget replies",
    "forget profiles",
    "forget notes",
    "forget journal",
    "forget summaries",
    "forget compactions",
    "forget messages",
    "forget index",
    "forget remake",
)

Steps = Generator[Deferred[Any], Any, Any]


@inlineCallbacks
def forget_people(
    script: Assistant, character: Character, people: Collection[str], asked_at: str, until: str = ""
) -> Steps:
    """Forget what people said, and what was made from it. Call it under the turn lock.

    The summaries that were made from their words are emptied; `remake_summaries` makes them again.

    Args:
        script: The assistant's script.
        character: Its body.
        people: Stable ids of their characters and accounts.
        asked_at: When they asked for it, UTC ISO 8601; the tombstones say it.
        until: The newest id of a message that is to be forgotten; empty for all.

    Returns:
        A Deferred that fires with how many ``{"messages", "others"}`` went: messages of theirs, and
        replies, entries, observations and notes. It fails with `StoreError` if the index or
        semantic memory could not be cleared; call it again then.
    """
    script.budgets.forget(people)
    things: list[Made] = []
    yield cooperate(_collected(script, character, things)).whenDone()
    evidence = yield script.history.gathered_evidence()
    begun = [each for each, at in script.history.tombstones().items() if at == asked_at]
    names = _names(script, character, evidence.live)
    plan: Forgetting = yield script.mind.work(
        plan_forgetting, evidence, things, people, until, begun, names
    )
    yield cooperate(_Forgetter(script, character, people, plan, asked_at).steps()).whenDone()
    script.at_commit_step("forget index")
    yield _clear_derived(script)
    return {"messages": len(plan.theirs), "others": len(plan.replies) + len(plan.things)}


def _collected(script: Assistant, character: Character, things: list[Made]) -> Iterator[None]:
    """Add what was made of messages to `things`, one at each step."""
    for entry in character.journal.all():
        if entry.source_type != SYNTHESIS:
            text = " ".join((entry.content, *entry.entities, *entry.tags))
            things.append(Made(entry.id, entry.source_message_ids, text))
        yield
    entities = character.entities
    for profile in map(entities.whole, entities.profiles().values()):
        for item in profile.observations:
            text = " ".join((item.text, item.subject, item.predicate, item.value))
            things.append(Made(item.id, item.sources, text))
        yield
    for note in script.ledger.everything():
        by = "" if note.by.id == character.stable_id else note.by.id
        things.append(Made(note.id, (note.source,), "" if by else note.text, by))


def _names(script: Assistant, character: Character, live: Sequence[Message]) -> str:
    """Names that everybody uses, and the assistant's own words about itself."""
    profiles = character.entities.profiles().values()
    met = (profile.name for profile in profiles if not profile.id.startswith(UNMET))
    speakers = {message.speaker_name for message in live}
    return " . ".join((character.key, script.config.persona or "", *met, *speakers))


class _Forgetter:
    """Removes what a plan says, in slices, each of them a transaction."""

    def __init__(
        self,
        script: Assistant,
        character: Character,
        people: Collection[str],
        plan: Forgetting,
        asked_at: str,
    ):
        self._script, self._character, self._people = script, character, people
        self._history, self._store = script.history, script.history.store
        self._plan, self._at = plan, asked_at
        self._gone = plan.theirs | plan.replies
        self._syntheses = frozenset(map(synthesis_id, plan.emptied))

    def steps(self) -> Iterator[None]:
        """Everything in order, a slice at each step."""
        plan, step = self._plan, self._script.at_commit_step
        step("forget replies")
        if ids := self._gone | plan.things | self._syntheses:
            self._store.set(OUTBOX, sorted({*as_texts(self._store.get(OUTBOX)), *ids}))
        yield from self._messages(plan.replies | plan.changed)
        step("forget profiles")
        yield from self._character.entities.forget(self._profile_left)
        step("forget notes")
        self._script.ledger.forget(lambda note: note.id in plan.things)
        step("forget journal")
        journal = self._character.journal
        for pages in _slices(journal.pages()):
            with self._store.transaction():
                journal.rewrite(self._entry_left, pages)
            yield
        step("forget summaries")
        summaries = [r for r in self._history.summaries() if r.tier != UNSUMMARISED]
        for records in _slices([r for r in summaries if r.id in plan.emptied]):
            with self._store.transaction():
                for record in records:
                    extra = {**record.extra, "lost": [], "rejected": []}
                    self._history.save_summary(replace(record, text=EMPTIED, extra=extra))
            yield
        put_text(self._script, plan.emptied, EMPTIED)
        step("forget compactions")
        for compactions in _slices(self._history.compactions()):
            with self._store.transaction():
                for compaction in compactions:
                    if (left := self._compaction_left(compaction)) != compaction:
                        self._history.save_compaction(left)
            yield
        self._history.note_last_compaction()
        for store in (self._store, self._character.journal.store):
            drop_from_aside(store, lambda value: self._is_of_theirs(str(unseal(value))))
        step("forget messages")
        yield from self._messages(plan.theirs)

    def _messages(self, ids: frozenset[str]) -> Iterator[None]:
        """Tombstones in place of messages, and copies taken out of others; archived ones first."""
        parts = {key: here & ids for key, here in self._plan.parts.items() if here & ids}
        for keys in _slices([*parts]):
            with self._store.transaction():
                for key in keys:
                    gone = parts[key] & self._gone
                    self._history.revise(key, gone, self._at, self._message_left)
                    self._live(parts[key])  # what a rollback restored is live too
            yield
        with self._store.transaction():
            self._live(ids)
        yield

    def _live(self, ids: frozenset[str]) -> None:
        live, gone = self._history.messages(), ids & self._gone
        if any(message.id in ids for message in live):
            left = map(self._message_left, live)
            self._history.replace([message for message in left if message.id not in gone])
        if gone:
            self._history.add_tombstones(gone, self._at)

    def _message_left(self, message: Message) -> Message:
        return without_copies(message, self._syntheses)

    def _profile_left(self, profile: Profile) -> Profile | None:
        """A profile without what goes; None where nothing is left of one of these people.

        The same holds for somebody or something that is a mere name.
        """
        kept = tuple(o for o in profile.observations if o.id not in self._plan.things)
        if len(kept) < len(profile.observations):
            profile = replace(profile, observations=kept)
        is_nobody = profile.id in self._people or profile.id.startswith(UNMET)
        return None if is_nobody and not kept else profile

    def _entry_left(self, entry: JournalEntry) -> JournalEntry:
        if entry.id in self._syntheses:
            return replace(entry, content=f"{SYNTHESIS_TITLE} {EMPTIED}")
        return entry.tombstone if entry.id in self._plan.things else entry

    def _compaction_left(self, record: CompactionRecord) -> CompactionRecord:
        """A record without names from what left, and without former texts of what is emptied."""
        emptied = self._plan.emptied
        return replace(
            record,
            report=replace(record.report, query=""),
            summaries_before={
                key: {**former, "text": EMPTIED} if key in emptied and "text" in former else former
                for key, former in record.summaries_before.items()
            },
            speakers={k: v for k, v in record.speakers.items() if k not in self._people},
            markers_before=tuple(
                with_text(self._script, marker, emptied, EMPTIED)
                for marker in record.markers_before
            ),
        )

    def _is_of_theirs(self, text: str) -> bool:
        names_them = any(person in text for person in self._people)
        return names_them or not self._gone.isdisjoint(re.findall(r"\w+", text))


def _slices(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + SLICE] for start in range(0, len(items), SLICE))


@inlineCallbacks
def _clear_derived(script: Assistant) -> Steps:
    """Take what is noted out of the index and semantic memory, and look whether it is gone."""
    ids = as_texts(script.history.store.get(OUTBOX))
    if not ids:
        return
    yield script.memory.forget(ids)
    if (yield script.memory.missing(ids)) != len(ids):
        raise StoreError("The search index could not be cleared of what is to be forgotten.")
    yield script.mind.memories.delete(script.scope, ids)
    if not set(ids).isdisjoint((yield script.mind.memories.ids(script.scope))):
        raise StoreError("Semantic memory could not be cleared of what is to be forgotten.")
    script.history.store.delete(OUTBOX)


@inlineCallbacks
def remake_summary(script: Assistant, tried: set[str]) -> Steps:
    """Make one of the emptied summaries again, the deepest first. Call it under the turn lock.

    One that no model can make stays empty. `tried` are those of this run. Fires with False if none
    is left.
    """
    history = script.history
    in_use = {r.id: r for r in history.summaries() if r.status != ROLLED_BACK}
    emptied = {r.id: r for r in in_use.values() if r.text == EMPTIED and r.id not in tried}
    record = next((r for r in emptied.values() if emptied.keys().isdisjoint(r.child_ids)), None)
    if record is None:
        return False
    tried.add(record.id)
    try:
        new, _ = yield remade(script, record, {})
    except ModelError as error:
        script.log_error("making a summary again", error)
        return True
    script.at_commit_step("forget remake")
    with history.store.transaction():
        put_remade(script, [new])
        for compaction in history.compactions():
            before = compaction.summaries_before
            if "text" in before.get(new.id, ()):
                texts = {key: getattr(new, key) for key in REMADE}
                before = {**before, new.id: {**before[new.id], **texts}}
            markers = [with_text(script, m, [new.id], new.text) for m in compaction.markers_before]
            left = replace(compaction, markers_before=tuple(markers), summaries_before=before)
            if left != compaction:
                history.save_compaction(left)
        for above in in_use.values():  # a compaction may have used the empty text meanwhile
            if new.id in above.child_ids:
                history.save_summary(replace(above, text=EMPTIED))
    return True
