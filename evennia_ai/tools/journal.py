"""Keeping things: journal entries and observations about people, places and things."""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.core.audience import visible
from evennia_ai.core.entities import find, new_profile, observe, unmet_id, with_alias
from evennia_ai.core.injection import plain
from evennia_ai.core.messages import audience_of
from evennia_ai.core.parameters import Scale, Text
from evennia_ai.core.provenance import supporting
from evennia_ai.core.recalled import is_recalled, shown_memories
from evennia_ai.importance_scoring import score_importance
from evennia_ai.tools.base import Tool, ToolContext

# Newest entries among which the same words are looked for: two pages.
_JOURNAL_SEEN = 100
# Newest messages among which an extraction's entry looks for what it rests on: a tenth of a second.
_HISTORY_SEEN = 1500


class AddJournalEntry(Tool):
    """Write one thing worth keeping into the journal."""

    name = "add_journal_entry"
    parameters = {
        "content": Text("One fact, one to three sentences, with the names in it."),
        "importance": Scale("How much it matters.", required=False),
    }
    lock = "tool:perm(Player)"

    @inlineCallbacks
    def run(
        self, ctx: ToolContext, content: str, importance: int | None = None
    ) -> Generator[Deferred[Any], Any, str]:
        """Append the entry, with the turn's audience and sources; fires with what was done.

        What only repeats memories that were shown is marked as recalled: it is neither searched
        nor consolidated, or the assistant would remember its own remembering.
        """
        known = _written(ctx, content)
        if known is not None:
            return f"That is in your journal already: entry {known['id']}."
        shown = [*ctx.retrieved, *shown_memories(ctx.script.history.messages())]
        recalled = is_recalled(content, shown)
        sources = yield _sources(ctx, content)
        entry = ctx.character.journal.add(
            content,
            importance=importance or score_importance(content),
            source_type="recalled" if recalled else "assistant",
            audience=ctx.audience,
            source_message_ids=sources,
        )
        return f"Entry {entry['id']} written."


@inlineCallbacks
def _sources(ctx: ToolContext, content: str) -> Generator[Deferred[Any], Any, tuple[str, ...]]:
    """Ids of what an entry rests on: the turn's messages, or those of a whole history.

    An extraction looks at everything it may see, on a thread; its own id stays, for a rollback.
    """
    if not ctx.whole_history:
        return ctx.source_message_ids
    seen = ctx.script.history.messages()[-_HISTORY_SEEN:]
    shown = [message for message in seen if visible(audience_of(message), ctx.audience)]
    found = yield ctx.script.offload(supporting, content, shown)
    return (*found, *ctx.source_message_ids)


def _written(ctx: ToolContext, content: str) -> dict[str, Any] | None:
    """A newer entry for the same audience that has these very words."""
    for entry in ctx.character.journal.recent(_JOURNAL_SEEN):
        same = entry["audience"] == ctx.audience and not entry.get("withdrawn")
        if same and plain(entry["content"]) == plain(content):
            found: dict[str, Any] = entry
            return found
    return None


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

    def run(self, ctx: ToolContext, entity: str, observation: str, **fact: Any) -> str:
        """Add the observation to the entity's profile, made at the first one."""
        entities, at = ctx.character.entities, ctx.script.now()
        profile = _profile(ctx, entity, at)
        source = ctx.source_message_ids[-1] if ctx.source_message_ids else ""
        profile = observe(profile, observation, at, source, ctx.audience, **fact)
        entities.put({profile["id"]: profile})
        return f"Noted about {profile['name']} ({profile['id']})."


def _profile(ctx: ToolContext, entity: str, at: float) -> dict[str, Any]:
    """The profile of somebody present, of somebody known by id or name, or a new one."""
    known = ctx.character.entities.profiles()
    here = ctx.game.identify(entity)
    if here is not None:
        profile = known.get(here["id"]) or new_profile(here["id"], here["key"], at, here["kind"])
        return profile if entity == here["id"] else with_alias(profile, entity)
    found = find(known, entity)
    if found is not None:
        return known[found]
    unmet = unmet_id(entity)
    return known.get(unmet) or new_profile(unmet, " ".join(entity.split()), at, "unknown")
