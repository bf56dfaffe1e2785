"""Forgetting people: taking what rests on their words out of all that one assistant remembers.

`privacy.closure` says what goes. Their messages go last: as long as they are there, a run that a
crash cut short finds again what must go. Each step can be repeated. What has to leave the search
index and semantic memory is noted before anything is removed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.history.archive import EMPTIED, UNSUMMARISED
from evennia_ai.history.live import paged
from evennia_ai.history.messages import MASK, SYNTHESIS_TITLE, Message
from evennia_ai.history.stored import UNMET, as_dict, drop_from_aside, unseal
from evennia_ai.privacy.closure import (
    Forgetting,
    Made,
    only_one,
    plan_forgetting,
    without_copies,
)
from evennia_ai.rag_memory.entities import Profile
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.journal import SYNTHESIS, JournalEntry, synthesis_id
from evennia_ai.sleep.compaction.compact import empty_summaries
from evennia_ai.turns.agent_loop import Agent

# Summaries emptied in one transaction before others get their turn.
SLICE = 4


@inlineCallbacks
def forget_people(
    script: Agent,
    character: Character,
    people: Collection[str],
    asked_at: str,
    until: str = "",
    elsewhere: Callable[[Callable[[str], bool]], Iterator[None]] = lambda takes: iter(()),
) -> Steps[dict[str, int]]:
    """Forget what people said, and what was made from it. Call it under the turn lock.

    The summaries that were made from their words are emptied; they are made again in lulls
    (`sleep.compaction.behind`).

    Args:
        script: The assistant's script.
        character: Its body.
        people: Stable ids of their characters and accounts.
        asked_at: When they asked for it, UTC ISO 8601; the tombstones say it.
        until: The newest id of a message that is to be forgotten; empty for all.
        elsewhere: Deletes, in steps, the copies of replies that the game has stored; it gets a
            function that says of a text whether it goes.

    Returns:
        A Deferred that fires with how many ``{"messages", "others"}`` went: messages of theirs, and
        replies, entries, observations and notes. It fails with `StoreError` if the index or
        semantic memory could not be cleared; call it again then.
    """
    lock = script.runtime.lock
    lock.holder()
    script.prompts.forget(people)
    greeted = as_dict(script.store.get("greeted"))
    script.store.set("greeted", {k: at for k, at in greeted.items() if k not in people})
    yield lock.run_steps(script.history.drop_drafts())
    things: list[Made] = []
    yield lock.run_steps(_collected(script, character, things))
    evidence = yield script.history.gathered_evidence()
    begun = [each for each, at in script.history.tombstones().items() if at == asked_at]
    known = script.config.persona or ""
    plan: Forgetting = yield script.mind.work(
        plan_forgetting, evidence, things, people, until, begun, known
    )
    yield lock.run_steps(elsewhere(plan.takes))
    yield lock.run_steps(Removal(script, character, people, asked_at, plan).steps())
    script.at_commit_step("forget index")
    yield script.memory.clear_outbox()
    return {"messages": len(plan.theirs), "others": len(plan.replies) + len(plan.things)}


def _collected(script: Agent, character: Character, things: list[Made]) -> Iterator[None]:
    """Add journal entries, observations and notes to `things`, a few at each step."""
    for entry in character.journal.all():
        if entry.source_type != SYNTHESIS:
            text = " ".join((entry.content, *entry.entities, *entry.tags))
            of = only_one(entry.audience)
            things.append(Made(entry.id, entry.source_message_ids, text, of))
        yield
    entities = character.entities
    for profile in map(entities.whole, entities.profiles().values()):
        for item in profile.observations:
            things.append(Made(item.id, item.sources, item.words, only_one(item.audience)))
        yield
    for note in script.ledger.everything():
        text = note.text if note.by.id == character.stable_id else ""
        things.append(Made(note.id, (note.source,), text, (note.by.id,)))


@dataclass(frozen=True)
class Removal:
    """Removes what a plan says, in slices, each of them a transaction."""

    script: Agent
    character: Character
    people: Collection[str]
    at: str
    plan: Forgetting

    def steps(self) -> Iterator[None]:
        """Everything in order, a slice at each step."""
        plan, script, step = self.plan, self.script, self.script.at_commit_step
        journal = self.character.journal
        syntheses = frozenset(map(synthesis_id, plan.emptied))

        def entry_left(entry: JournalEntry) -> JournalEntry:
            if entry.id in syntheses:
                return replace(entry, content=f"{SYNTHESIS_TITLE} {EMPTIED}")
            if entry.id in plan.things:
                return entry.tombstone
            return entry

        def profile_left(profile: Profile) -> Profile | None:
            left = profile.only(lambda item: item.id not in plan.things)
            # Nothing stays of one of these people, nor of somebody or something that is a name.
            is_nobody = profile.id in self.people or profile.id.startswith((UNMET, MASK))
            if is_nobody and not left.observations:
                return None
            return left

        step("forget replies")
        if ids := plan.theirs | plan.replies | plan.things | syntheses:
            script.state.outbox = sorted({*script.state.outbox, *ids})
        yield from self._messages(plan.replies.union(*plan.parts.values()) - plan.theirs)
        step("forget features")
        for feature in script.known_features:
            feature.forget(script, self.people, plan)
            yield
        step("forget profiles")
        yield from self.character.entities.forget(profile_left)
        step("forget notes")
        script.ledger.forget(lambda note: note.id in plan.things)
        script.memory.quarantine.release(plan.gone)
        step("forget journal")
        for key in reversed(journal.pages()):  # the newest first: it may be turned meanwhile
            journal.rewrite(entry_left, [key])
            yield
        yield from self._records()
        step("forget messages")
        yield from self._messages(plan.theirs)

    def _records(self) -> Iterator[None]:
        """Take it out of summaries, of what compactions report, and of what was put aside."""
        script, history, step = self.script, self.script.history, self.script.at_commit_step
        step("forget summaries")
        summaries = list(filter(None, map(history.summary, self.plan.emptied)))
        full = [record for record in summaries if record.tier != UNSUMMARISED]
        for start in range(0, len(full), SLICE):
            empty_summaries(script.history, script.state, full[start : start + SLICE])
            yield
        step("forget compactions")
        for record in history.compactions():
            if record.report.query:  # names in what left
                history.save_compaction(replace(record, report=replace(record.report, query="")))
                yield
        history.note_last_compaction()
        ids = (*self.plan.theirs, *self.plan.replies, *self.people)

        def names_one(value: object) -> bool:
            text = str(unseal(value))
            return any(each in text for each in ids)

        for store in (history.store, self.character.journal.store):
            drop_from_aside(store, names_one)

    def _messages(self, ids: frozenset[str]) -> Iterator[None]:
        """Tombstones in place of messages, and copies taken out of others; archived ones first.

        A segment, or a page of the live history, at each step.
        """
        plan, history = self.plan, self.script.history
        gone = ids & (plan.theirs | plan.replies)
        for key, here in plan.parts.items():
            if here & ids:
                with history.store.transaction():
                    if segment := history.segment(key):
                        change = partial(without_copies, ids=plan.gone)
                        history.archive(segment.revised(gone, change))
                    self._take_out(gone & here)  # live again by a rollback
                yield
        for page in paged(history.messages()).values():
            with history.store.transaction():
                self._take_out(gone.intersection(message.id for message in page), page)
            yield

    def _take_out(self, gone: Collection[str], page: Sequence[Message] = ()) -> None:
        """Put tombstones in place of messages; copies go out of a page of the live history."""
        history = self.script.history
        if gone:
            history.add_tombstones(gone, self.at)
        changed = {message.id: without_copies(message, self.plan.gone) for message in page}
        live = history.messages()
        left = [changed.get(message.id, message) for message in live if message.id not in gone]
        if left != list(live):
            history.replace(left)
