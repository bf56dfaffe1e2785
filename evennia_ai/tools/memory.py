"""Searching everything that was ever heard, said or written down."""

from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred

from evennia_ai.language.excerpt import excerpt
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.recall.values import Hit, Query
from evennia_ai.tools.base import Tool, ToolContext
from evennia_ai.tools.parameters import Text

# Results by the size of the context: ten at 4,000 tokens, never more than twenty.
MOST_RESULTS, TOKENS_PER_RESULT = 20, 400
RESULT_CHARS = 400


class SearchMemory(Tool):
    """Search your memory: all conversations, your journal and what you dreamt."""

    name = "search_memory"
    recalls = tells_nothing_new = True
    parameters = {"query": Text("Names and words to look for.", limit=400)}

    def run(self, ctx: ToolContext, query: str) -> "Deferred[dict[str, Any]]":
        """What was found, best first, only what the turn's audience may know."""
        limit = min(MOST_RESULTS, max(5, context_limit(ctx.script) // TOKENS_PER_RESULT))
        found: Deferred[list[Hit]] = ctx.script.memory.search(
            Query(
                query,
                limit,
                ctx.audience,
                exclude=ctx.source_message_ids,
                own_name=ctx.character.key,
                observations=True,
                tools=True,
            )
        )
        return found.addCallback(_as_result, ctx, query)


def _as_result(hits: list[Hit], ctx: ToolContext, query: str) -> dict[str, Any]:
    """The best hits, each shown once in a turn: searches in other words mostly find the same."""
    fresh = [hit for hit in hits if hit.turn_id not in ctx.found]
    ctx.found.update(hit.turn_id for hit in fresh)
    if fresh:
        shown = (replace(hit, text=excerpt(hit.text, query, RESULT_CHARS)) for hit in fresh)
        return {"results": [hit.to_dict() for hit in shown]}
    if ctx.found:
        return {"results": [], "note": "Nothing beyond what you have found already."}
    return {"results": [], "note": "Nothing in memory matches. Say that you do not know."}
