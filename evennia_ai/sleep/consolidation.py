"""Consolidation: what the journal holds becomes long-term memory, linked to those it is about.

Each step can be cut short at any point and run again: storing is idempotent by journal entry,
links are a set, and an entry is marked only after both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import pause
from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.llm_interaction.summary import call_llm_simple
from evennia_ai.llm_interaction.tokens import count_tokens
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.journal_entry import RECALLED, JournalEntry
from evennia_ai.rag_memory.observations import observed
from evennia_ai.rag_memory.profile import Profile

# Entries stored, linked and marked together: a crash repeats no more than that, and each batch
# writes all profiles and the open pages of the journal once. Linking so many takes milliseconds.
BATCH = 50
# Entries of the journal looked through at a time before others get their turn on the reactor;
# reading them takes a few milliseconds.
SLICE = 100


@inlineCallbacks
def consolidate_memories_to_semantic(
    script: Assistant, character: Character, reactor: Any = None
) -> Any:
    """Store journal entries that are not yet in semantic memory, and link them to entities.

    One entry becomes one memory, or, with the setting `EVENNIA_AI_MEM0_INFER`, what a model
    extracts of it. Syntheses and recalled text are never stored, or the assistant would remember
    its own remembering; they are marked as done, so that they do not stand in the way of the next.
    Batch follows batch until none waits, or somebody speaks to the sleeper.

    Fires with ``{"consolidated", "linked", "skipped"}``: entries stored, links made, entries left
    out. Fails with `StoreError` if the store fails; what was done before stays done.
    """
    counts = {"consolidated": 0, "linked": 0, "skipped": 0}
    while True:
        waiting = character.journal.unconsolidated(BATCH)
        done = yield _consolidated(script, character, waiting)
        counts = {key: counts[key] + done[key] for key in counts}
        if not done["consolidated"] + done["skipped"] or script.is_called():
            return counts
        yield pause(reactor)


@inlineCallbacks
def _consolidated(script: Assistant, character: Character, waiting: Sequence[JournalEntry]) -> Any:
    """Store, link and mark one batch; fires with its counts."""
    skipped = [entry.id for entry in waiting if not is_memorable(entry)]
    counts = {"consolidated": 0, "linked": 0, "skipped": len(skipped)}
    if skipped:
        character.journal.mark_consolidated(skipped)
    chosen = [entry for entry in waiting if is_memorable(entry)]
    if chosen and script.spend.may_embed(entry.content for entry in chosen):
        stored = yield _store(script, chosen)
        stored = yield _withdraw_forgotten(script, character, stored)
        counts["linked"] = _link(character, stored)
        marked = (entry.id for entry, _ in stored)
        counts["consolidated"] = character.journal.mark_consolidated(marked)
    return counts


@inlineCallbacks
def repair_semantic_memory(script: Assistant, character: Character, reactor: Any = None) -> Any:
    """Store again entries that are marked as consolidated but no longer in semantic memory.

    A store that was thrown away, or lost a part, is whole again after the next night. Fires with
    ``{"repaired", "linked"}``: entries stored again, links made. Fails with `StoreError` if the
    store fails; what was done before stays done.
    """
    held = yield script.mind.memories.sources(script.scope)
    counts = {"repaired": 0, "linked": 0}
    restored: list[tuple[JournalEntry, str]] = []
    marked = character.journal.consolidated()
    while entries := list(islice(marked, SLICE)):
        missing = [e for e in entries if is_memorable(e) and e.id not in held]
        taken_back = [held[e.id] for e in entries if e.withdrawn and e.id in held]
        if taken_back:
            yield script.mind.memories.delete(script.scope, taken_back)
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            if not script.spend.may_embed(entry.content for entry in batch):
                break
            stored = yield _store(script, batch)
            counts["linked"] += _link(character, stored)
            restored += stored
        yield pause(reactor)
    counts["repaired"] = len(restored)
    if restored:
        yield _withdraw_unmarked(script, character, restored, reactor)
    return counts


@inlineCallbacks
def _withdraw_unmarked(
    script: Assistant,
    character: Character,
    restored: Iterable[tuple[JournalEntry, str]],
    reactor: Any,
) -> Any:
    """Delete again what was restored from entries that were forgotten or changed meanwhile."""
    gone = {entry.id: (entry, memory_id) for entry, memory_id in restored}
    marked = character.journal.consolidated()
    while entries := list(islice(marked, SLICE)):
        for now in entries:
            if now.id in gone and _is_same(gone[now.id][0], now):
                del gone[now.id]
        yield pause(reactor)
    if gone:
        yield script.mind.memories.delete(
            script.scope, [memory_id for _, memory_id in gone.values()]
        )


@inlineCallbacks
def prune_orphaned_memory_links(script: Assistant, character: Character) -> Any:
    """Take out of the profiles the links to memories that are gone.

    Fires with ``{"checked", "pruned"}``: links looked at, links taken out. Fails with `StoreError`
    if the store fails; then no link is touched.
    """
    # Only links that stood before the question are judged by the answer: a memory stored
    # meanwhile is not in it.
    profiles = character.entities.profiles().values()
    before = {link for profile in profiles for link in profile.memory_links}
    held = yield script.mind.memories.ids(script.scope)
    gone = before - set(held)
    changed, pruned = {}, 0
    for entity_id, profile in character.entities.profiles().items():
        kept = tuple(link for link in profile.memory_links if link not in gone)
        if len(kept) < len(profile.memory_links):
            changed[entity_id] = replace(profile, memory_links=kept)
            pruned += len(profile.memory_links) - len(kept)
    if changed:
        character.entities.put(changed)
    return {"checked": len(before), "pruned": pruned}


def is_memorable(entry: JournalEntry) -> bool:
    """Whether a journal entry may become a memory: lived through, not recalled or taken back."""
    is_tagged = RECALLED in entry.tags
    return entry.may_consolidate and not is_tagged and bool(entry.content.strip())


def memory_item(entry: JournalEntry) -> dict[str, Any]:
    """A journal entry as an item for the memory back end (`protocol.MemoryBackend.add`)."""
    metadata = {
        "source_id": entry.id,
        "audience": entry.audience,
        "type": "journal",
        "importance": entry.importance,
        "tags": list(entry.tags),
        "at": entry.timestamp,
        "entities": list(entry.entities),
    }
    return {"source_id": entry.id, "text": entry.content.strip(), "metadata": metadata}


@inlineCallbacks
def _store(script: Assistant, chosen: list[JournalEntry]) -> Any:
    """Store entries; fires with pairs of entry and memory id."""
    items = [memory_item(entry) for entry in chosen]
    if script.extracts_memories:
        ids = []
        for item in items:
            memory_id = yield _extracted(script, item)
            ids.append(memory_id)
    else:
        ids = yield script.mind.memories.add(script.scope, items)
    return list(zip(chosen, ids, strict=True))


@inlineCallbacks
def _extracted(script: Assistant, item: Mapping[str, Any]) -> Any:
    """Store what a model makes of an entry; the entry as it is where no model answers."""
    prompt = yield script.mind.memories.extraction_prompt(script.scope, item)
    if prompt and script.extracts_memories:
        try:
            answer = yield _asked(script, prompt)
        except ModelError as error:
            script.log_error("extracting a memory", error)
        else:
            memory_id = yield script.mind.memories.add_extracted(script.scope, item, answer)
            return memory_id
    ids = yield script.mind.memories.add(script.scope, [item])
    return ids[0]


@inlineCallbacks
def _asked(script: Assistant, prompt: Sequence[Mapping[str, str]]) -> Any:
    """Fires with the model's answer to Mem0's prompt, which is long: it may not fit."""
    system, user = (
        "\n".join(m["content"] for m in prompt if (m["role"] == "system") is wanted)
        for wanted in (True, False)
    )
    tokens = yield script.mind.work(count_tokens, f"{system}\n{user}", script.counter)
    needed, limit = tokens + script.config.reply_reserve_tokens, context_limit(script)
    if needed > limit:
        raise ModelError(f"Mem0's prompt takes {needed:,} tokens, more than the limit of {limit:,}")
    answer = yield call_llm_simple(script, system, user, purpose="memory")
    return answer


@inlineCallbacks
def _withdraw_forgotten(
    script: Assistant, character: Character, stored: list[tuple[JournalEntry, str]]
) -> Any:
    """Delete memories of entries that are no longer in the journal as they were.

    Somebody may have asked to be forgotten while the store was at work, or changed an entry by
    hand, which then waits to be stored anew. Fires with the pairs that remain.
    """
    gone = _gone(character, stored)
    if gone:
        yield script.mind.memories.delete(script.scope, [id_ for e, id_ in stored if e.id in gone])
        gone |= _gone(character, stored)
    return [pair for pair in stored if pair[0].id not in gone]


def _gone(character: Character, stored: Iterable[tuple[JournalEntry, str]]) -> set[str]:
    """The ids of those entries that are not in the journal as they were.

    The waiting ones are asked for first, as looking up one entry may go through every page.
    """
    waiting = {entry.id: entry for entry in character.journal.unconsolidated(2 * BATCH)}
    found = ((e, waiting.get(e.id) or character.journal.get(e.id)) for e, _ in stored)
    return {entry.id for entry, now in found if not _is_same(entry, now)}


def _is_same(entry: JournalEntry, now: JournalEntry | None) -> bool:
    """Whether an entry of a while ago is still to be remembered as it was."""
    return now is not None and is_memorable(now) and memory_item(now) == memory_item(entry)


def _link(character: Character, stored: Sequence[tuple[JournalEntry, str]]) -> int:
    """Link memories to the profiles of the entities their entries name; how many links are new.

    What an entry tells of an entity becomes an observation of it, in the same write.
    """
    profiles = character.entities.profiles()
    names = {each: entities.names_index(profiles, each) for each in {e.audience for e, _ in stored}}
    changed: dict[str, Profile] = {}
    linked = 0
    for entry, memory_id in stored:
        for entity_id in entities_of(entry, profiles, names[entry.audience]):
            profile = changed.get(entity_id, profiles[entity_id])
            if memory_id not in profiles[entity_id].memory_links:
                linked += 1
                profile = observed(profile, entry, names[entry.audience])
                changed[entity_id] = entities.link_memories(profile, [memory_id])
    if changed:
        character.entities.put(changed)
    return linked


def entities_of(
    entry: JournalEntry,
    profiles: Mapping[str, Profile],
    names: entities.NamesIndex,
) -> list[str]:
    """The ids of known entities that an entry names, in its `entities` or in its text."""
    named = (entities.find(profiles, name, names) for name in entry.entities)
    ids = [entity_id for entity_id in named if entity_id is not None]
    return list(dict.fromkeys([*ids, *entities.mentioned(names, entry.content)]))
