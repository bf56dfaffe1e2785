"""Bringing back the raw text behind an id, with what stood around it."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.core.audience import visible
from evennia_ai.core.messages import audience_of, is_summary
from evennia_ai.core.parameters import Scale, Text
from evennia_ai.errors import ToolError
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.tools.base import Tool, ToolContext

# Messages before and behind the one asked for.
NEIGHBOURS = 3
AROUND_CHARS = 400
# A text takes about a quarter of the context at most: four characters a token.
MOST_CHARS = 12_000
_SOURCES_SHOWN = 12


class ExpandMemory(Tool):
    """Get the raw text behind a memory's id, and what was said around it."""

    name = "expand_memory"
    parameters = {
        "id": Text("Id of a message, journal entry, summary or memory.", limit=120),
        "offset": Scale("Where to go on in a long text.", required=False, low=0, high=10**9),
    }

    @inlineCallbacks
    def run(
        self, ctx: ToolContext, **asked: Any
    ) -> Generator["Deferred[Any]", Any, dict[str, Any]]:
        """What stands under the id, if the turn's audience may know it."""
        wanted = asked["id"].strip().strip("()")
        found = _look_up(ctx, wanted)
        if found is None:
            sources = yield ctx.script.semantic.sources(ctx.script.scope)
            by_memory = {memory: source for source, memory in sources.items()}
            found = _look_up(ctx, by_memory[wanted]) if wanted in by_memory else None
        if found is None:
            raise ToolError(f"there is nothing you may see under `{wanted}`")
        room = min(MOST_CHARS, context_limit(ctx.script))
        return _page(found, int(asked.get("offset") or 0), room)


def _page(found: dict[str, Any], offset: int, room: int) -> dict[str, Any]:
    """A part of a long text, and where the next one begins."""
    text = found["text"]
    part = {**found, "text": text[offset : offset + room]}
    if offset + room < len(text):
        part["next_offset"] = offset + room
    return part


def _look_up(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    """What stands under an id in the history, the archive, the journal, summaries or ledger."""
    for look in (_message, _entry, _summary, _note):
        found = look(ctx, wanted)
        if found is not None:
            return found
    return None


def _message(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    messages = ctx.script.history.around(wanted)
    for position, message in enumerate(messages):
        if message["id"] == wanted and visible(audience_of(message), ctx.audience):
            before = _said(messages[:position], ctx.audience)[-NEIGHBOURS:]
            behind = _said(messages[position + 1 :], ctx.audience)[:NEIGHBOURS]
            return {**_shown(message, "message"), "around": [*before, *behind]}
    return None


def _entry(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    entry = ctx.character.journal.get(wanted)
    if entry is None or entry.get("withdrawn") or not visible(entry["audience"], ctx.audience):
        return None
    found = {"id": wanted, "kind": "journal", "at": entry["timestamp"], "text": entry["content"]}
    ids = entry["source_message_ids"][:_SOURCES_SHOWN]
    return {**found, "around": _said(_messages(ctx, ids), ctx.audience)}


def _summary(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    record = ctx.script.history.summary(wanted)
    if record is None or record["status"] == "rolled back":
        return None
    if not visible(record["audience"], ctx.audience):
        return None
    below = _said(ctx.script.history.messages_below(wanted), ctx.audience)
    lines = [f"{m['at'][:16]} {m['speaker']}: {m['text']}" for m in below]
    text = "\n".join([record["text"], "", "Made from:", *lines])
    return {"id": wanted, "kind": "summary", "at": record["created_at"], "text": text}


def _note(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    for entry in ctx.script.ledger.shown(ctx.audience):
        if entry["id"] == wanted:
            by = entry["by"]["key"]
            found = {"id": wanted, "kind": "ledger", "at": entry["at"], "speaker": by}
            ids = [entry["source"]]
            around = _said(_messages(ctx, ids), ctx.audience)
            return {**found, "text": entry["text"], "around": around}
    return None


def _messages(ctx: ToolContext, ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Messages by id, wherever they are."""
    found = []
    for wanted in ids:
        found += [m for m in ctx.script.history.around(wanted) if m["id"] == wanted]
    return found


def _said(messages: Sequence[Mapping[str, Any]], audience: str) -> list[dict[str, Any]]:
    """What was said among messages, as far as an audience may know, shortened."""
    said = [
        message
        for message in messages
        if visible(audience_of(message), audience)
        and message["role"] in ("user", "assistant")
        and message["content"]
        and not is_summary(message)
    ]
    return [{**_shown(m, "message"), "text": m["content"][:AROUND_CHARS]} for m in said]


def _shown(message: Mapping[str, Any], kind: str) -> dict[str, Any]:
    who = (message.get("speaker") or {}).get("key") or message.get("name") or message["role"]
    return {
        "id": message["id"],
        "kind": kind,
        "speaker": who,
        "at": message["created_at"],
        "text": message["content"],
    }
