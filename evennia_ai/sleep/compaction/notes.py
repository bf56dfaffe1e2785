"""Notes: what a compaction keeps of the lines that leave, beside their summary.

A model gives them: as calls of tools in the extraction, or in the reply that is the summary, too.
Each cites the numbers of the lines it rests on, so that its sources are exact; its audience is the
scope of these lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.history.audience import visible
from evennia_ai.history.messages import Message, new_id
from evennia_ai.history.pairs import MEMORIES
from evennia_ai.language.words import words
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.entities import observe, profile_met
from evennia_ai.rag_memory.journal_entry import JournalEntry, score_importance
from evennia_ai.rag_memory.provenance import statement_of, supporting

# The two tools that note something, and the argument in which they name lines.
ENTRY, OBSERVATION, LINES = "add_journal_entry", "update_entity_observation", "lines"
# Newest journal entries among which the same words are looked for.
_JOURNAL_SEEN = 200


@dataclass(frozen=True)
class Note:
    """One thing to keep: a journal entry, or what was learned of somebody or something."""

    tool: str
    fields: Mapping[str, Any]  # the arguments of the tool, checked
    scope: str  # who may know it
    sources: tuple[str, ...] = ()  # ids of the messages it rests on
    at: str = ""  # when it was said, UTC ISO 8601; empty if no message bears it out
    told_by: str = ""  # name of the only person who said it, of somebody else

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.fields["content" if self.tool == ENTRY else "observation"])


@inlineCallbacks
def grounded(
    script: Assistant,
    note: Note,
    lines: Iterable[int],
    owners: Mapping[int, Message],
    others: Iterable[Note],
) -> Steps[Note | str]:
    """Fires with a note and what it rests on, or with why it is not kept.

    Args:
        script: The assistant's script.
        note: The note, of one scope.
        lines: The numbers of the lines that it cites.
        owners: The messages of that scope by their numbers.
        others: Notes that were taken before.
    """
    cited = [owners[number] for number in lines if number in owners]
    at = max((message.created_at for message in cited), default="")
    if not cited:  # it named no lines: those that share most of its words, the best first
        cited = yield script.mind.work(_bearing_out, note.text, [*owners.values()])
        at = cited[0].created_at if cited else ""
    if _is_recalled(cited):
        return "That repeats a memory; nobody said it now."
    if _is_known(script, note, others):
        return "That is in your journal already."
    said = [message for message in cited if message.role == "user"]
    tellers = {m.speaker_name for m in said if m.speaker_name}
    is_other = all(m.speaker_name != note.fields.get("entity") for m in said)
    return replace(
        note,
        sources=tuple(dict.fromkeys(message.id for message in cited)),
        at=at,
        told_by=tellers.pop() if len(tellers) == 1 and is_other else "",
    )


def _is_known(script: Assistant, note: Note, others: Iterable[Note]) -> bool:
    """Whether the journal, or another note, says the same in these words, or goes on so."""
    texts = [n.text for n in others if n.tool == note.tool and visible(n.scope, note.scope)]
    if note.tool == ENTRY:
        entries = script.journal.recent(_JOURNAL_SEEN)
        texts += [
            e.content for e in entries if visible(e.audience, note.scope) and e.may_consolidate
        ]
    told = words(note.text)
    return bool(told) and any(words(text)[: len(told)] == told for text in texts)


def _bearing_out(text: str, lines: Sequence[Message]) -> list[Message]:
    """What bears a note out: statements of people, else what was said from memory; best first."""
    said = {m.id: m for m in lines if m.role == "user" and statement_of(m).content}
    own = {m.id: m for m in lines if m.role == "assistant" and m.metadata.get(MEMORIES)}
    best = supporting(text, [statement_of(m) for m in said.values()]) or supporting(
        text, own.values()
    )
    return [(said | own)[key] for key in best]


def _is_recalled(cited: Sequence[Message]) -> bool:
    """Whether a note rests on what the assistant said from memory, and on questions, alone."""
    own = [message for message in cited if message.role == "assistant"]
    asked = [message for message in cited if message.role == "user"]
    return (
        bool(own)
        and all(message.metadata.get(MEMORIES) for message in own)
        and not any(statement_of(message).content for message in asked)
    )


def write_notes(script: Assistant, notes: Sequence[Note]) -> list[str]:
    """Write notes; returns the ids by which a rollback finds them.

    These are an id that all that is written has among its sources, and those of the entries.
    """
    if not notes:
        return []
    extraction_id, now = new_id("x"), script.now()
    entries, entities = list[JournalEntry](), script.entities
    for note in notes:
        sources = (*note.sources, extraction_id)
        if note.tool == ENTRY:
            importance = note.fields.get("importance") or score_importance(note.text)
            about = note.fields.get("about")
            entry = script.journal.new(
                note.text,
                importance=importance,
                entities=(about,) if about else (),
                audience=note.scope,
                source_message_ids=sources,
            )
            entries.append(entry)
            continue
        fact = dict(note.fields)
        name, text = str(fact.pop("entity")), str(fact.pop("observation"))
        here = script.game.identify(name)
        names = entities.names(note.scope)
        profile = profile_met(entities.get, names, here, name, now, sources, note.scope)
        fact["told_by"] = note.told_by if profile.kind == "person" else ""
        at = note.at or now
        entities.put({profile.id: observe(profile, text, at, sources, note.scope, **fact)})
    script.journal.put(*entries)
    return [extraction_id, *(entry.id for entry in entries)]
