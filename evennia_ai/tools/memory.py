"""Searching everything that was ever heard, said or written down."""

from typing import Any

from twisted.internet.defer import Deferred

from evennia_ai.core.parameters import Text
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.tools.base import Tool, ToolContext

# Results by the size of the context: ten at 4,000 tokens, never more than twenty.
MOST_RESULTS, TOKENS_PER_RESULT = 20, 400
RESULT_CHARS = 400
# The assistant's own lines come up at every question asked twice; a few are enough.
OWN_LINES = 3


class SearchMemory(Tool):
    """Search your memory: all conversations, your journal and what you dreamt."""

    name = "search_memory"
    parameters = {"query": Text("Names and words to look for.", limit=400)}

    def run(self, ctx: ToolContext, query: str) -> "Deferred[dict[str, Any]]":
        """What was found, best first, only what the turn's audience may know."""
        limit = min(MOST_RESULTS, max(5, context_limit(ctx.script) // TOKENS_PER_RESULT))
        found: Deferred[list[dict[str, Any]]] = ctx.script.memory.search(
            query, limit=2 * limit, audience=ctx.audience, exclude=ctx.source_message_ids
        )
        return found.addCallback(_as_result, ctx, limit)


def _as_result(hits: list[dict[str, Any]], ctx: ToolContext, limit: int) -> dict[str, Any]:
    """The best hits, each shown once in a turn: searches in other words mostly find the same."""
    chosen = _without_echoes(hits, ctx.character.key)[:limit]
    fresh = [_item(hit) for hit in chosen if hit["id"] not in ctx.found]
    ctx.found.update(item["id"] for item in fresh)
    if fresh:
        return {"results": fresh}
    if ctx.found:
        return {"results": [], "note": "Nothing beyond what you have found already."}
    return {"results": [], "note": "Nothing in memory matches. Say that you do not know."}


def _without_echoes(hits: list[dict[str, Any]], own_name: str) -> list[dict[str, Any]]:
    echoes = {hit["id"] for hit in [h for h in hits if h["speaker"] == own_name][OWN_LINES:]}
    return [hit for hit in hits if hit["id"] not in echoes]


def _item(hit: dict[str, Any]) -> dict[str, Any]:
    """A hit as the model reads it; times to the second, and nothing that is always the same."""
    item = {"id": hit["id"], "kind": hit["kind"], "speaker": hit["speaker"], "at": hit["at"][:19]}
    shown = {k: v for k, v in item.items() if v and (k, v) != ("kind", "message")}
    return {**shown, "text": hit["text"][:RESULT_CHARS]}
