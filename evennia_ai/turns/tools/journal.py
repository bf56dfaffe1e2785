"""Keeping things: journal entries, observations about people and things, notes for the ledger."""

from typing import Any

from evennia_ai.history.audience import private
from evennia_ai.history.messages import Speaker
from evennia_ai.language.words import words
from evennia_ai.rag_memory.entities import observe
from evennia_ai.rag_memory.journal import OWN, RECALLED, score_importance
from evennia_ai.rag_memory.ledger import (
    APPROVED,
    PROPOSED,
    TEXT_CHARS,
)
from evennia_ai.rag_memory.provenance import is_recalled
from evennia_ai.turns.tools.base import Scale, Text, Tool, ToolContext

# Newest entries among which the same words are looked for: two pages.
_JOURNAL_SEEN = 100
# Newest messages among which a note looks for what it rests on.
_HISTORY_SEEN = 200


class AddJournalEntry(Tool):
    """Write one fact worth keeping, with its names, into the journal."""

    name = "add_journal_entry"
    parameters = {
        "content": Text(),
        "importance": Scale(required=False, in_talk=False),
    }
    lock = "tool:perm(Player)"
    concludes = tells_nothing_new = extracts = True

    def run(self, ctx: ToolContext, content: str, importance: int | None = None) -> str:
        """Append the entry, with the turn's audience and sources; returns what was done.

        One that only repeats memories in the prompt is marked as recalled: it is neither searched
        nor consolidated. One that an entry says already, in these words, is not written.
        """
        recalled, told = _is_recalled(ctx, content), words(content)
        for entry in ctx.seen.stretch(0, _JOURNAL_SEEN):
            if not entry.withdrawn and words(entry.content) == told:
                return f"That is in your journal already: entry {entry.id}."
        ctx.check_note()
        entry = ctx.character.journal.add(
            content,
            importance=importance or score_importance(content),
            source_type=RECALLED if recalled else OWN,
            audience=ctx.audience,
            source_message_ids=ctx.source_message_ids,
        )
        return f"Entry {entry.id} written."


def _is_recalled(ctx: ToolContext, note: str) -> bool:
    """Whether a note rests on memories rather than on what the turn answers."""
    newest, traits = ctx.seen.messages()[-_HISTORY_SEEN:], ctx.tools.traits
    return is_recalled(note, newest, ctx.source_message_ids, ctx.retrieved, traits)


class UpdateEntityObservation(Tool):
    """Note what you learned of a person, place or thing."""

    name = "update_entity_observation"
    parameters = {
        "entity": Text("Its name or id.", limit=120),
        "observation": Text("One sentence.", limit=1000),
        "subject": Text("Whom it is about, if not the entity.", required=False, limit=120),
        "predicate": Text("As `favourite drink` or `relationship`.", required=False, limit=120),
        "value": Text("Its value, as `plum brandy`.", required=False, limit=300),
    }
    lock = "tool:perm(Player)"
    serves = "sleep"
    concludes = tells_nothing_new = extracts = True

    def run(self, ctx: ToolContext, entity: str, observation: str, **fact: Any) -> str:
        """Add the observation to the entity's profile; returns what was done.

        What only memories say is not noted as if it were new.
        """
        ctx.check_note()
        if _is_recalled(ctx, observation):
            return "You know that from memory already; nobody said it now."
        at, sources = ctx.script.now(), tuple(ctx.source_message_ids)
        entities, here = ctx.character.entities, ctx.game.identify(entity)
        profile = entities.met(here, entity, at, sources, ctx.audience)
        # The only person who said it, if they said it of another person.
        said = [m for m in ctx.seen.by_ids(sources) if m.role == "user"]
        is_hearsay = profile.kind == "person" and all(m.speaker_id != profile.id for m in said)
        names = {m.speaker_name for m in said}
        fact["told_by"] = ""
        if is_hearsay and len(names) == 1:
            fact["told_by"] = names.pop()
        profile = observe(profile, observation, at, sources, ctx.audience, **fact)
        entities.put({profile.id: profile})
        return f"Noted about {profile.name}."


class ProposeLedgerEntry(Tool):
    """Propose a sentence to be always before you."""

    name = "propose_ledger_entry"
    parameters = {"text": Text(limit=TEXT_CHARS)}
    lock = "tool:perm(Player)"
    serves = "asked"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, text: str) -> str:
        """Approved at once as a private note of the asker, if they typed these words in a row.

        It then holds the whole sentence, as they spelled it. Any other note is the
        assistant's, for those who hear the turn, and waits for staff.
        """
        by, state = Speaker(ctx.character.key, ctx.character.stable_id), PROPOSED
        about, audience = [*ctx.game.people_named(text)], ctx.audience
        own = ctx.typed(text, TEXT_CHARS)
        if own:
            text = own
            by, state = Speaker(ctx.asker_name(), ctx.asker or ""), APPROVED
            about, audience = [by.id], private([by.id])
        note = ctx.script.ledger.add(
            text,
            by,
            state=state,
            source=["assistant", *ctx.source_message_ids][-1],
            about=about,
            audience=audience,
        )
        state = note.state
        if state == PROPOSED:
            ctx.script.report_proposal(note)
            state += "; staff will decide"
        elif own:
            state += f", for talk with {by.key} alone"
        return f"Note {note.id} is {state}."
