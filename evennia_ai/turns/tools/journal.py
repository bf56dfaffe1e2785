"""Keeping things: journal entries and observations about people, places and things."""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.audience import visible
from evennia_ai.history.messages import SPEECH
from evennia_ai.language.words import plain, telling_words
from evennia_ai.rag_memory.entities import observe, profile_met
from evennia_ai.rag_memory.importance_scoring import score_importance
from evennia_ai.rag_memory.journal_entry import OWN, RECALLED
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.rag_memory.provenance import Grounds, grounds_of_turn
from evennia_ai.rag_memory.recalled import is_recalled
from evennia_ai.recall.values import Hit
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.parameters import Scale, Text

# Newest entries among which the same words are looked for: two pages.
_JOURNAL_SEEN = 100
# Newest messages among which a note looks for what it rests on: a tenth of a second.
_HISTORY_SEEN = 1500


class AddJournalEntry(Tool):
    """Write one thing worth keeping into the journal."""

    name = "add_journal_entry"
    parameters = {
        "content": Text("One fact, one to three sentences, with the names in it."),
        "importance": Scale("How much it matters.", required=False),
    }
    lock = "tool:perm(Player)"
    basic = tells_nothing_new = extracts = True

    @inlineCallbacks
    def run(
        self, ctx: ToolContext, content: str, importance: int | None = None
    ) -> Generator[Deferred[Any], Any, str]:
        """Append the entry, with the turn's audience and sources; fires with what was done.

        An entry that only repeats memories in the prompt is marked as recalled: it is neither
        searched nor consolidated. One about what was said just now counts as recalled only if
        the journal holds it already.
        """
        newest = ctx.character.journal.recent(_JOURNAL_SEEN)
        for entry in newest:
            is_meant = entry.audience == ctx.audience and not entry.withdrawn
            if is_meant and plain(entry.content) == plain(content):
                return f"That is in your journal already: entry {entry.id}."
        if _is_small_talk(ctx):
            return "Nothing worth keeping was said; nothing was written."
        ctx.check_note()
        grounds = yield _grounds(ctx, content)
        recalled = grounds.recalled
        if recalled and grounds.stated:
            held = [
                Hit(entry.id, 0.0, "", entry.content, entry.timestamp)
                for entry in ctx.character.journal.recent(_JOURNAL_SEEN)
                if entry.may_consolidate and visible(entry.audience, ctx.audience)
            ]
            recalled = yield ctx.script.mind.work(is_recalled, content, held, grounds.heard)
        entry = ctx.character.journal.add(
            content,
            importance=importance or score_importance(content),
            source_type=RECALLED if recalled else OWN,
            audience=ctx.audience,
            source_message_ids=_sources(ctx, grounds),
        )
        return f"Entry {entry.id} written."


def _is_small_talk(ctx: ToolContext) -> bool:
    """Whether what the turn answers tells nothing: greetings, or the echoes of assistants."""
    if not ctx.source_message_ids:
        return False
    heard = ctx.script.history.by_ids(list(ctx.source_message_ids))
    spoken = [m for m in heard if m.channel in SPEECH]
    return bool(spoken) and all(
        m.metadata.get("assistant") or not telling_words(m.content, [ctx.character.key])
        for m in spoken
    )


def _grounds(ctx: ToolContext, note: str) -> "Deferred[Grounds]":
    """Fires with what a note rests on, looked up on a thread: what the turn answers."""
    seen, traits = ctx.script.history.messages()[-_HISTORY_SEEN:], ctx.script.tools.traits
    answered, shown = ctx.source_message_ids, ctx.retrieved
    return ctx.script.mind.work(grounds_of_turn, note, seen, answered, shown, traits)


def _sources(ctx: ToolContext, grounds: Grounds) -> tuple[str, ...]:
    """Ids of the messages it rests on, best first."""
    return tuple(dict.fromkeys((*grounds.sources, *ctx.source_message_ids)))


class UpdateEntityObservation(Tool):
    """Note what you learned of a person, place or thing."""

    name = "update_entity_observation"
    parameters = {
        "entity": Text("Its name or id.", limit=120),
        "observation": Text("What you learned, one sentence.", limit=1000),
        "subject": Text(
            "Whom or what it is about, if not the entity itself.", required=False, limit=120
        ),
        "predicate": Text(
            "What kind of thing is known, as `favourite drink`; `relationship` for what they "
            "are to you.",
            required=False,
            limit=120,
        ),
        "value": Text("Its value, as `plum brandy`.", required=False, limit=300),
    }
    lock = "tool:perm(Player)"
    tells_nothing_new = extracts = True

    @inlineCallbacks
    def run(
        self, ctx: ToolContext, entity: str, observation: str, **fact: Any
    ) -> Generator[Deferred[Any], Any, str]:
        """Add the observation to the entity's profile; fires with what was done.

        Its time is when it was said, so that it replaces nothing said later. What only memories
        say is not noted as if it were new.
        """
        ctx.check_note()
        grounds = yield _grounds(ctx, observation)
        if grounds.recalled and not grounds.stated:
            return "You know that from memory already; nobody said it now."
        at = ctx.script.now()
        sources = _sources(ctx, grounds)
        known, here = ctx.character.entities.profiles(), ctx.game.identify(entity)
        profile = profile_met(known, here, entity, at, sources, ctx.audience)
        fact["told_by"] = _teller(ctx, profile, grounds)
        profile = observe(profile, observation, grounds.at or at, sources, ctx.audience, **fact)
        ctx.character.entities.put({profile.id: profile})
        return f"Noted about {profile.name} ({profile.id})."


def _teller(ctx: ToolContext, profile: Profile, grounds: Grounds) -> str:
    """The name of the only person who said it, if they said it of another person; else empty."""
    said = [m for m in ctx.script.history.by_ids(list(grounds.sources)) if m.role == "user"]
    is_hearsay = profile.kind == "person" and all(m.speaker_id != profile.id for m in said)
    names = {m.speaker_name for m in said}
    return names.pop() if is_hearsay and len(names) == 1 else ""
