"""Forgetting people: taking what they said out of everything that one assistant remembers.

What was derived from their words goes first, their messages last: as long as a message is there, a
run that a crash cut short finds again what must go. Each step can be repeated. What has to leave
the search index and semantic memory is noted in the database together with each removal.
"""

import re
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import pause
from evennia_ai.errors import ModelError, StoreError
from evennia_ai.history.aside import drop_from_aside
from evennia_ai.history.forgetting import Forgetting, Heard, OwnWords, plan_forgetting
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.history.messages import Message
from evennia_ai.history.records import (
    ROLLED_BACK,
    UNSUMMARISED,
    CompactionRecord,
    as_texts,
)
from evennia_ai.history.sealed import UNMET, unseal
from evennia_ai.llm_interaction.reply_trace import without_people
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.entities import forgotten
from evennia_ai.rag_memory.journal_entry import SYNTHESIS, JournalEntry
from evennia_ai.rag_memory.ledger import Note
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.sleep.compaction.commit import REMADE
from evennia_ai.sleep.compaction.folding import synthesis_id
from evennia_ai.sleep.compaction.remake import all_below, put_remade, put_text, remade, with_text

# Key of the ids that must leave the search index and semantic memory, and of those among them
# whose new texts are to be indexed.
OWED, KEPT = "forgetting", "forgetting_kept"
# The text of a summary until it is made again, and of one that was rolled back.
EMPTIED = "Part of what this summary was made from is forgotten."
# Mark of a summary that is to be made again.
TO_REMAKE = "to_remake"
# Records, or pages of the journal, written in one transaction before others get their turn.
SLICE = 10
# What a run calls `at_commit_step` with, in this order.
STEPS = (
    "forget journal",
    "forget entities",
    "forget ledger",
    "forget summaries",
    "forget compactions",
    "forget repeated",
    "forget said",
    "forget index",
    "forget remake",
)


@inlineCallbacks
def words_to_forget(
    script: Assistant,
    character: Character,
    people: Collection[str],
    heard: Heard | None = None,
    reactor: IReactorTime | None = None,
) -> Generator[Deferred[Any], Any, OwnWords]:
    """Fires with the words that only these people used; arguments as of `forget_people`."""
    found: Forgetting = yield _planned(script, character, people, heard, reactor)
    return found.own


@inlineCallbacks
def forget_people(
    script: Assistant,
    character: Character,
    people: Collection[str],
    asked_at: str,
    heard: Heard | None = None,
    reactor: IReactorTime | None = None,
) -> Generator[Deferred[Any], Any, dict[str, int]]:
    """Forget what people said, and what was made from it. Call it under the turn lock.

    The summaries that were made from their words are emptied; `remake_summary` makes them again.

    Args:
        script: The assistant's script.
        character: Its body.
        people: Stable ids of their characters and accounts.
        asked_at: When they asked for it, UTC ISO 8601; the tombstones say it.
        heard: What it had heard from them then; None for all that they ever said.
        reactor: Where to pause between slices, Twisted's by default.

    Returns:
        A Deferred that fires with ``{"messages", "repeated", "changed", "entries", "notes"}``:
        messages of theirs, others that repeated them and went, others that changed, journal entries
        and ledger notes. It fails with `StoreError` if the index or semantic memory could not be
        cleared; call it again then.
    """
    script.budgets.forget(people)
    found: Forgetting = yield _planned(script, character, people, heard, reactor)
    forgetter = _Forgetter(script, character, people, found, asked_at)
    for _ in forgetter.steps():
        yield pause(reactor)
    script.at_commit_step("forget index")
    yield _clear_derived(script, character)
    return forgetter.counts


@inlineCallbacks
def _planned(
    script: Assistant,
    character: Character,
    people: Collection[str],
    heard: Heard | None,
    reactor: IReactorTime | None,
) -> Generator[Deferred[Any], Any, Forgetting]:
    """Fires with what is to be forgotten, found on another thread."""
    evidence = yield script.history.gathered_evidence(reactor)
    known = _known_words(script, character, evidence.live)
    unnamed = partial(without_people, people=people)
    found: Forgetting = yield script.mind.work(
        plan_forgetting, evidence, people, heard, known, unnamed
    )
    return found


def _known_words(script: Assistant, character: Character, live: Sequence[Message]) -> str:
    """Names that everybody uses, and the assistant's own words about itself."""
    profiles = character.entities.profiles().values()
    met = (profile.name for profile in profiles if not profile.id.startswith(UNMET))
    speakers = {message.speaker_name for message in live}
    return " . ".join((character.key, script.config.persona or "", *met, *speakers))


class _Forgetter:
    """Removes what was found, in slices, each of them a transaction.

    Attributes:
        counts: How much was removed.
    """

    def __init__(
        self,
        script: Assistant,
        character: Character,
        people: Collection[str],
        found: Forgetting,
        asked_at: str,
    ):
        self._script, self._character = script, character
        self._history, self._store = script.history, script.history.store
        self._people, self._found, self._own = people, found, found.own
        self._at = asked_at
        self.counts = {
            "messages": len(found.said),
            "repeated": len(found.repeated),
            "changed": len(found.changed),
            "entries": 0,
            "notes": 0,
        }

    def steps(self) -> Iterator[None]:
        """Everything in order, a slice at each step."""
        emptied = self._found.emptied
        step = self._script.at_commit_step
        step("forget journal")
        gone = yield from self._journal(emptied)
        step("forget entities")
        yield from self._character.entities.forget(lambda each: self._profile_left(each, gone))
        step("forget ledger")
        with self._store.transaction():
            ledger = self._script.ledger
            self._owe(note.id for note in ledger.everything() if self._is_their_note(note))
            self.counts["notes"] = ledger.forget(self._is_their_note)
        yield
        step("forget summaries")
        yield from self._summaries(emptied)
        step("forget compactions")
        yield from self._compactions(emptied)
        step("forget repeated")
        yield from self._messages(self._found.repeated, self._found.changed)
        step("forget said")
        yield from self._messages(self._found.said)

    def _journal(self, emptied: Collection[str]) -> Generator[None, None, set[str]]:
        """Tombstones for entries made from their words; returns the ids of these.

        Entries about something else only lose single words.
        """
        journal, gone = self._character.journal, set[str]()
        syntheses = {synthesis_id(each) for each in emptied}

        def left(entry: JournalEntry) -> JournalEntry:
            if entry.source_type == SYNTHESIS and entry.id in syntheses:
                return replace(entry, content=f"{SYNTHESIS_TITLE} {EMPTIED}")
            rests = not self._found.said.isdisjoint(entry.source_message_ids)
            is_theirs = entry.source_type != SYNTHESIS and rests
            texts = [entry.content, entry.entities, entry.tags]
            if is_theirs or self._own.are_quoted_in(texts):
                gone.add(entry.id)
                return entry.tombstone
            return self._reworded(entry) if self._own.are_in(texts) else entry

        pages = journal.pages()[::-1]
        for start in range(0, len(pages), SLICE):
            with self._store.transaction():
                changed = journal.rewrite(left, pages[start : start + SLICE])
                self._owe(
                    (entry.id for entry in changed),
                    [e.id for e in changed if not e.withdrawn and e.source_type != SYNTHESIS],
                )
            yield
        self.counts["entries"] = len(gone)
        return gone

    def _reworded(self, entry: JournalEntry) -> JournalEntry:
        return replace(
            entry,
            content=self._own.redacted(entry.content),
            entities=tuple(self._own.redacted(entry.entities)),
            tags=tuple(self._own.redacted(entry.tags)),
        )

    def _profile_left(self, profile: Profile, gone: Collection[str]) -> Profile | None:
        sources = self._found.said | set(gone)
        return forgotten(profile, sources, self._own, self._people)

    def _is_their_note(self, note: Note) -> bool:
        by_assistant = note.by.id == self._character.stable_id
        return (
            note.by.id in self._people
            or note.source in self._found.said
            or (by_assistant and self._own.are_in(note.text))
        )

    def _summaries(self, emptied: Collection[str]) -> Iterator[None]:
        """Empty summaries; those in use are marked, to be made again."""
        records = [
            record
            for record in self._history.summaries()
            if record.id in emptied or self._own.are_in(record.extra)
        ]
        for some in _slices(records):
            with self._store.transaction():
                for record in some:
                    unsaid = {**record.extra, "lost": [], "rejected": []}
                    if record.id not in emptied:
                        self._history.save_summary(replace(record, extra=unsaid))
                        continue
                    in_use = record.status != ROLLED_BACK and record.tier != UNSUMMARISED
                    extra = {**unsaid, **({TO_REMAKE: True} if in_use else {})}
                    self._history.save_summary(replace(record, text=EMPTIED, extra=extra))
                self._owe(record.id for record in some if record.id in emptied)
            yield
        with self._store.transaction():
            put_text(self._script, emptied, EMPTIED)
        yield

    def _compactions(self, emptied: Collection[str]) -> Iterator[None]:
        """Clear records of compactions of names and of former summaries."""
        for some in _slices(self._history.compactions()):
            with self._store.transaction():
                for record in some:
                    kept = self._compaction_left(record, emptied)
                    if kept != record:
                        self._history.save_compaction(kept)
            yield
        state = self._script.state
        with self._store.transaction():
            if last := state.last_compaction:
                self._store.set("last_compaction", self._figures_left(last))
            for store in (self._store, self._character.journal.store):
                drop_from_aside(store, lambda value: self._is_of_theirs(str(unseal(value))))
        yield

    def _is_of_theirs(self, text: str) -> bool:
        ids = re.findall(r"\w+", text)
        return (
            self._own.are_in(text)
            or any(person in text for person in self._people)
            or not self._found.said.isdisjoint(ids)
        )

    def _compaction_left(
        self, record: CompactionRecord, emptied: Collection[str]
    ) -> CompactionRecord:
        return replace(
            record,
            result=self._figures_left(record.result),
            last_before=self._figures_left(record.last_before),
            summaries_before={
                key: self._former_left(key, former, emptied)
                for key, former in record.summaries_before.items()
            },
            speakers={k: v for k, v in record.speakers.items() if k not in self._people},
            markers_before=tuple(
                with_text(self._script, marker, [str(marker.metadata.get("summary_id"))], EMPTIED)
                if marker.metadata.get("summary_id") in emptied or self._own.are_in(marker.content)
                else marker
                for marker in record.markers_before
            ),
        )

    def _former_left(
        self, key: str, former: Mapping[str, Any], emptied: Collection[str]
    ) -> Mapping[str, Any]:
        """What a summary was before a compaction, without a text that holds their words."""
        is_theirs = key in emptied or self._own.are_in(former.get("text"))
        return {**former, "text": EMPTIED} if is_theirs and "text" in former else former

    def _figures_left(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """A compaction's figures; its query holds names from what left."""
        query = result.get("query")
        return {**result, "query": ""} if self._own.are_in(query) else dict(result)

    def _messages(
        self, gone: frozenset[str], changed: frozenset[str] = frozenset()
    ) -> Iterator[None]:
        """Tombstones in place of messages, and words taken out of others; archived ones first."""
        touched = gone | changed
        parts = [key for key, ids in self._found.parts.items() if not touched.isdisjoint(ids)]
        for some in _slices(parts):
            with self._store.transaction():
                here = touched & {each for key in some for each in self._found.parts[key]}
                for key in some:
                    self._history.revise(key, gone, self._at, self._left(changed))
                # What a rollback restored is live too.
                self._revise_live(gone & here, changed & here)
            yield
        with self._store.transaction():
            self._revise_live(gone, changed)
        yield

    def _left(self, changed: Collection[str]) -> Callable[[Message], Message]:
        """Returns what is left of a message; the same if it is none of the changed ones."""

        def left(message: Message) -> Message:
            if message.id not in changed:
                return message
            unnamed = without_people(self._own.taken_out_of(message), self._people)
            return unnamed.counted(self._script.count)

        return left

    def _revise_live(self, gone: Collection[str], changed: Collection[str]) -> None:
        live = self._history.messages()
        if any(message.id in gone or message.id in changed for message in live):
            left = map(self._left(changed), live)
            self._history.replace([message for message in left if message.id not in gone])
        if gone:
            self._history.add_tombstones(gone, self._at)
        self._owe([*gone, *changed], changed)

    def _owe(self, ids: Iterable[str], kept: Iterable[str] = ()) -> None:
        """Note what must leave the index and semantic memory; `kept` is to be indexed again."""
        for key, new in ((OWED, list(ids)), (KEPT, list(kept))):
            if new:
                self._store.set(key, sorted({*as_texts(self._store.get(key)), *new}))


def _slices(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]


@inlineCallbacks
def _clear_derived(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, None]:
    """Take what is noted out of the index and semantic memory, and look whether it is gone.

    What only changed is indexed again. What could not be cleared stays noted.
    """
    store = script.history.store
    owed, kept = as_texts(store.get(OWED)), as_texts(store.get(KEPT))
    if not owed:
        return
    removed = yield script.memory.forget(owed)
    missing = yield script.memory.missing(owed)
    if removed is None or missing is None or missing < len(set(owed)):
        raise StoreError("The search index could not be cleared of what is to be forgotten.")
    memories = script.mind.memories
    yield memories.delete(script.scope, owed)
    left = yield memories.ids(script.scope)
    if not set(owed).isdisjoint(left):
        raise StoreError("Semantic memory could not be cleared of what is to be forgotten.")
    yield script.memory.remember_messages(script.history.by_ids(kept))
    for entry in filter(None, map(character.journal.get, kept)):
        yield script.memory.remember_entry(entry)
    with store.transaction():
        store.delete(OWED)
        store.delete(KEPT)


@inlineCallbacks
def remake_summary(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, bool]:
    """Make one of the emptied summaries again, the deepest first. Call it under the turn lock.

    Fires with False if there is none left.
    """
    history = script.history
    emptied = {r.id: r for r in history.summaries() if r.extra.get(TO_REMAKE)}
    if not emptied:
        return False
    record = next((r for r in emptied.values() if emptied.keys().isdisjoint(r.child_ids)), None)
    record = record or next(iter(emptied.values()))  # a ring, made by hand
    extra = {key: value for key, value in record.extra.items() if key != TO_REMAKE}
    try:
        made, _ = yield remade(script, replace(record, extra=extra), {})
    except ModelError as error:
        script.log_error("making a summary again", error)
        made = replace(record, text=EMPTIED, extra=extra)
    script.at_commit_step("forget remake")
    with history.store.transaction():
        put_remade(script, [made])
        for compaction in history.compactions():
            markers, former = compaction.markers_before, compaction.summaries_before
            new = tuple(with_text(script, m, [made.id], made.text) for m in markers)
            if "text" in former.get(made.id, ()):
                fields = {key: getattr(made, key) for key in REMADE}
                former = {**former, made.id: {**former[made.id], **fields}}
            if new != markers or former is not compaction.summaries_before:
                left = replace(compaction, markers_before=new, summaries_before=former)
                history.save_compaction(left)
        beneath = all_below(script, made)
        for above in history.summaries():  # a compaction may have used the empty text meanwhile
            if made.id in above.child_ids and above.id not in {*emptied, *beneath}:
                extra = {**above.extra, TO_REMAKE: True}
                history.save_summary(replace(above, extra=extra))
    return True
