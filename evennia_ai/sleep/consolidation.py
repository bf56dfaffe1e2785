"""Consolidation: what the journal holds becomes long-term memory, linked to those it is about.

Each step can be cut short at any point and run again: storing is idempotent by journal entry,
links are a set, and an entry is marked only after both.
"""

from collections.abc import Sequence
from dataclasses import replace

from twisted.internet.defer import inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, pause
from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.summary import call_llm_simple
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.entities import observed
from evennia_ai.rag_memory.episodic_index import is_indexed, turn_of_entry
from evennia_ai.rag_memory.journal_entry import RECALLED, JournalEntry
from evennia_ai.recall.values import Turn

EXTRACTION_PROMPT = (
    "You read one note of a character's journal. Write down the facts in it that will matter "
    "later, one a line. Each line must be clear without the others: use names, not pronouns. Keep "
    "names and numbers exactly. Use the language of the note. Add nothing that it does not say."
)


@inlineCallbacks
def consolidate_memories_to_semantic(
    script: Assistant, character: Character, reactor: IReactorTime | None = None
) -> Steps[dict[str, int]]:
    """Store journal entries that are not in semantic memory, and link them to entities.

    One entry becomes one memory: its text, or, with `infer` in `EVENNIA_AI_MEM0_CONFIG`, the facts
    that a model reads in it. Syntheses and recalled text are never stored, or the assistant would
    remember its own remembering. What the store lost is stored again. Page follows page until none
    is left, or somebody speaks to the sleeper.

    Fires with ``{"consolidated", "linked", "skipped"}``: entries stored, links made, entries left
    out; and ``waiting``, entries for which no model call was left, if there are some. Fails with
    `StoreError` if the store fails; what was done before stays done.
    """
    counts = {"consolidated": 0, "linked": 0, "skipped": 0}
    journal, held = character.journal, (yield script.mind.memories.ids(script.scope))
    for key in journal.pages():
        page = journal.page(key)
        new = {entry.id for entry in page.waiting}
        memorable = [entry for entry in page.entries if is_memorable(entry, script.now())]
        skipped = new.difference(entry.id for entry in memorable)
        if skipped:
            counts["skipped"] += len(skipped)
            journal.mark_consolidated(skipped)
        missing = [entry for entry in memorable if entry.id in new or entry.id not in held]
        stored, linked = yield _store(script, character, missing)
        counts["consolidated"] += stored
        counts["linked"] += linked
        if script.extracts_memories and script.spend.own_wait_s():
            counts["waiting"] = counts.get("waiting", 0) + len(missing) - stored
        if script.runtime.is_called():
            break
        yield pause(reactor)
    return counts


@inlineCallbacks
def prune_orphaned_memory_links(script: Assistant, character: Character) -> Steps[dict[str, int]]:
    """Take out of semantic memory what the journal does not hold, or took back.

    Fires with ``{"checked", "pruned"}``: memories looked at, memories taken out. Fails with
    `StoreError` if the store fails.
    """
    held = yield script.mind.memories.ids(script.scope)
    gone, journal = set(held), character.journal
    for key in reversed(journal.pages()):  # the newest first: it may be turned meanwhile
        entries = journal.page(key).entries
        gone -= {entry.id for entry in entries if is_memorable(entry, script.now())}
        yield pause()
    if gone:
        yield script.mind.memories.delete(script.scope, gone)
    return {"checked": len(held), "pruned": len(gone)}


def is_memorable(entry: JournalEntry, now: float) -> bool:
    """Whether a journal entry may be in semantic memory at a time, seconds since the epoch.

    It was lived through, not recalled, summed up or taken back, and retrieval has not dropped it.
    """
    return entry.may_consolidate and RECALLED not in entry.tags and is_indexed(entry, now)


@inlineCallbacks
def _store(
    script: Assistant, character: Character, entries: Sequence[JournalEntry]
) -> Steps[tuple[int, int]]:
    """Store, link and mark some entries; fires with how many, and how many links are new.

    Only the first of them, if the assistant has made enough calls for itself by then. None if a
    model is billed for embedding them and a spend limit is reached. Somebody may change an entry,
    or ask to be forgotten, while the store is at work: what is no longer in the journal as it was
    leaves the store again and stays unmarked.
    """
    if not entries or not script.spend.may_embed(entry.content for entry in entries):
        return 0, 0
    turns: list[Turn] = []
    for entry in entries:
        if script.extracts_memories and script.spend.own_wait_s():
            entries = entries[: len(turns)]
            break
        turn = yield _extracted(script, turn_of_entry(entry))
        turns.append(turn)
    if not entries:
        return 0, 0
    yield script.mind.memories.add(script.scope, turns)
    same = [entry for entry in entries if character.journal.get(entry.id) == entry]
    linked = _link(character, same)
    character.journal.mark_consolidated(entry.id for entry in same)
    if changed := {entry.id for entry in entries} - {entry.id for entry in same}:
        yield script.mind.memories.delete(script.scope, changed)
    return len(same), linked


@inlineCallbacks
def _extracted(script: Assistant, turn: Turn) -> Steps[Turn]:
    """A turn with the facts that a model reads in it; as it is where no model is to, or answers."""
    if not script.extracts_memories:
        return turn
    try:
        answer = yield call_llm_simple(script, EXTRACTION_PROMPT, turn.text, purpose="memory")
    except ModelError as error:
        script.log_error("extracting a memory", error)
        return turn
    facts = "\n".join(filter(None, (line.strip(" -*•\t") for line in answer.splitlines())))
    return replace(turn, text=facts or turn.text)


def _link(character: Character, entries: Sequence[JournalEntry]) -> int:
    """Observe of entities what entries tell of them; how many entries name an entity, by entity."""
    profiles = character.entities.profiles()
    names = {each: entities.names_index(profiles, each) for each in {e.audience for e in entries}}
    after, linked = dict(profiles), 0
    for entry in entries:
        known = names[entry.audience]
        named = [entities.find(profiles, name, known) for name in entry.entities]
        ids = dict.fromkeys((*filter(None, named), *entities.mentioned(known, entry.content)))
        linked += len(ids)
        after |= {each: observed(after[each], entry, known) for each in ids}
    if new := {key: profile for key, profile in after.items() if profile is not profiles[key]}:
        character.entities.put(new)
    return linked
