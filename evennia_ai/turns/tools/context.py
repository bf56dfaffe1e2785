"""Looking at its own context: how full it is, what fills it, what the summaries stand for."""

from typing import Any

from evennia_ai.history.records import LIVE, ROLLED_BACK, UNSUMMARISED, as_count
from evennia_ai.llm_interaction.contributors import contributors, newest_turn
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.turns.tools.base import Tool, ToolContext

MOST_CONTRIBUTORS, MOST_SUMMARIES = 8, 8


class ContextSnapshot(Tool):
    """See how full your memory (your context) is, and what it holds by kind."""

    name = "context_snapshot"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> str:
        """The budget of this turn's prompt, of what its audience may know: a line of sentences.

        A second line holds the regions.
        """
        script = ctx.script
        event, limit = newest_turn(script, ctx.audience), context_limit(script)
        live = ctx.seen.messages()
        markers = [message for message in live if message.is_summary]
        said = sum(bool(m.content) and m.role in ("user", "assistant") for m in live)
        used = event.total if event else script.runtime.fixed_tokens
        says = [
            f"Your memory is {used / limit:.0%} full: {used:,} of {limit:,} tokens are in use.",
            f"You hold {_counted(said, 'line')} of talk word for word.",
        ]
        if folded := sum(as_count(m.metadata.get("compacted_count")) for m in markers):
            says.append(
                f"{_counted(folded, 'older message')} are folded into "
                f"{_counted(len(markers), 'summary', 'summaries')}; none is lost."
            )
        if event and event.left_out:
            left_out = _counted(event.left_out, "message")
            says.append(f"For lack of room the {left_out} before them stayed out of this prompt.")
        return " ".join(says) + (f"\nBy kind: {event}." if event else "")


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


class ListContributors(Tool):
    """See what takes the most room in your context: kinds, messages, notes and tools, by id."""

    name = "list_contributors"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> dict[str, Any]:
        """The largest pieces that the turn's audience may know of."""
        found = contributors(ctx.script, ctx.audience)[:MOST_CONTRIBUTORS]
        pieces = [{"what": each.what, "id": each.id, "tokens": each.tokens} for each in found]
        return {"largest": [{k: v for k, v in piece.items() if v} for piece in pieces]}


class TraceSummaries(Tool):
    """See which summaries stand for older talk, and of how many messages; read one by its id."""

    name = "trace_summaries"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> dict[str, Any]:
        """The newest summaries that the turn's audience may know of, without their text."""
        known = [
            record
            for record in ctx.seen.summaries()
            if record.status != ROLLED_BACK and record.tier != UNSUMMARISED
        ]
        newest = [
            {
                "id": record.id,
                "tier": record.tier,
                "made": record.created_at[:16],
                "messages": len(record.source_ids),
                **({"summaries": list(record.child_ids)} if record.child_ids else {}),
                **({"part_of": record.absorbed_by} if record.absorbed_by else {}),
                **({"in_prompt": True} if record.status == LIVE else {}),
            }
            for record in known[::-1][:MOST_SUMMARIES]
        ]
        return {"summaries": newest, "older": len(known) - len(newest)}
