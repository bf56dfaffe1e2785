"""Consolidation: what the journal holds becomes long-term memory, linked to those it is about.

Each step can be cut short at any point and run again: storing is idempotent by journal entry,
links are a set, and an entry is marked only after both.
"""

from collections.abc import Sequence
from dataclasses import replace

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.stored import as_count
from evennia_ai.llm_interaction.summary import call_llm_simple
from evennia_ai.rag_memory.entities import Profile
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.journal import JOURNAL, JournalEntry
from evennia_ai.recall.values import Turn
from evennia_ai.sleep.sleeper import Sleeper

# What `StateHandler.nights` has of it: how many pages of the journal semantic memory holds.
_LINKED = "linked"
LOST = "semantic memory has lost what it held; `aimemory/rebuild` fills it from the journal"
EXTRACTION_PROMPT = (
    "You read one note of a character's journal. Write down the facts in it that will matter "
    "later, one a line. Each line must be clear without the others: use names, not pronouns. Keep "
    "names and numbers exactly. Use the language of the note. Add nothing that it does not say."
)


@inlineCallbacks
def consolidate_memories_to_semantic(
    script: Sleeper, character: Character, whole: bool = False
) -> Steps[dict[str, int]]:
    """Store journal entries that are not in semantic memory, and link them to entities.

    One entry becomes one memory: its text, or, with `infer` in `EVENNIA_AI_MEM0_CONFIG`, the facts
    that a model reads in it. Syntheses and recalled text are never stored, or the assistant would
    remember its own remembering. Page follows page until none is left, or somebody speaks to the
    sleeper. Pages that were done before are not read again, except where the `whole` journal is
    compared with the store, and what that lost is stored again.

    Fires with ``{"consolidated", "linked", "skipped"}``: entries stored, links made, entries left
    out; and ``waiting``, entries for which no model call was left, if there are some. Fails with
    `StoreError` if the store fails; what was done before stays done.
    """
    counts = {"consolidated": 0, "linked": 0, "skipped": 0}
    journal, held = character.journal, set[str]()
    if whole:
        held = yield script.mind.memories.ids(script.scope)
    else:
        yield _check_store(script, character)
    keys, done = journal.pages(), 0 if whole else as_count(script.state.nights.get(_LINKED))
    done, is_waiting = min(done, len(keys) - 1), False
    for number, key in enumerate(keys[done:], done):
        page = journal.page(key)
        new = {entry.id for entry in page.waiting}
        memorable = [entry for entry in page.entries if is_memorable(entry, script.now())]
        skipped = new.difference(entry.id for entry in memorable)
        if skipped:
            counts["skipped"] += len(skipped)
            journal.mark_consolidated(skipped)
        missing = [e for e in memorable if e.id in new or (whole and e.id not in held)]
        stored, linked = yield _store(script, character, missing)
        counts["consolidated"] += stored
        counts["linked"] += linked
        if script.extracts_memories and script.spend.own_wait_s():
            counts["waiting"] = counts.get("waiting", 0) + len(missing) - stored
        is_waiting = is_waiting or bool(journal.page(key).waiting)
        if not is_waiting:
            script.state.nights = {**script.state.nights, _LINKED: number}
        if script.runtime.is_called():
            break
        yield script.breathe()
    return counts


@inlineCallbacks
def _check_store(script: Sleeper, character: Character) -> Steps[None]:
    """Tell staff if the store finds nothing like the newest entry that it was given."""
    page = character.journal.page(JOURNAL)
    given = (e for e in reversed(page.entries) if e.id in page.consolidated)
    known = next((e for e in given if is_memorable(e, script.now())), None)
    if known is None or not script.may_embed([known.content]):
        return
    found = yield script.mind.memories.search(script.scope, known.content, 1, known.audience)
    if not found:
        script.trouble(LOST)


@inlineCallbacks
def prune_orphaned_memory_links(
    script: Sleeper, character: Character, whole: bool = False
) -> Steps[dict[str, int]]:
    """Take out of the search index and semantic memory what was taken back and is in them still.

    With `whole`, take out of semantic memory all that the journal does not hold or took back. Fires
    with ``{"checked", "pruned"}``: memories looked at, memories taken out. Fails with `StoreError`
    if the store fails.
    """
    checked = len(gone := set(script.state.outbox))
    yield script.memory.clear_outbox()
    if whole:
        journal = character.journal
        gone = yield script.mind.memories.ids(script.scope)
        checked = len(gone)
        for key in reversed(journal.pages()):  # the newest first: it may be turned meanwhile
            entries = journal.page(key).entries
            gone -= {entry.id for entry in entries if is_memorable(entry, script.now())}
            yield script.breathe()
        if gone:
            yield script.mind.memories.delete(script.scope, gone)
    return {"checked": checked, "pruned": len(gone)}


def is_memorable(entry: JournalEntry, now: float) -> bool:
    """Whether a journal entry may be in semantic memory at a time, seconds since the epoch.

    It was lived through, not recalled, summed up or taken back, and retrieval has not dropped it.
    """
    return entry.may_consolidate and entry.is_indexed(now)


@inlineCallbacks
def _store(
    script: Sleeper, character: Character, entries: Sequence[JournalEntry]
) -> Steps[tuple[int, int]]:
    """Store, link and mark some entries; fires with how many, and how many links are new.

    Only the first of them, if the assistant has made enough calls for itself by then. None if a
    model is billed for embedding them and a spend limit is reached. Somebody may change an entry,
    or ask to be forgotten, while the store is at work: what is no longer in the journal as it was
    leaves the store again and stays unmarked.
    """
    if not entries or not script.may_embed(entry.content for entry in entries):
        return 0, 0
    turns: list[Turn] = []
    for entry in entries:
        if script.extracts_memories and script.spend.own_wait_s():
            entries = entries[: len(turns)]
            break
        turn = yield _extracted(script, entry.turn)
        turns.append(turn)
    if not entries:
        return 0, 0
    yield script.mind.memories.add(script.scope, turns)
    same = [entry for entry in entries if character.journal.get(entry.id) == entry]
    handler, linked = character.entities, 0
    after = dict[str, Profile]()
    for entry in same:  # entities observe what it tells of them
        named = [handler.find(name, entry.audience) for name in entry.entities]
        told = handler.mentioned(entry.content, entry.audience)
        ids = dict.fromkeys((*filter(None, named), *told))
        linked += len(ids)
        for each in ids:
            before = after.get(each) or handler.get(each)
            if before and (new := handler.observed(before, entry)) is not before:
                after[each] = new
    if after:
        handler.put(after)
    character.journal.mark_consolidated(entry.id for entry in same)
    if changed := {entry.id for entry in entries} - {entry.id for entry in same}:
        yield script.mind.memories.delete(script.scope, changed)
    return len(same), linked


@inlineCallbacks
def _extracted(script: Sleeper, turn: Turn) -> Steps[Turn]:
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
