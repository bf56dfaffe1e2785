"""Asking for compaction: guarded, so that a model cannot forget at will."""

from evennia_ai.errors import ToolError
from evennia_ai.llm_interaction.prompt import context_usage
from evennia_ai.protocol import Assistant
from evennia_ai.tools.base import Tool, ToolContext


class RequestCompaction(Tool):
    """Ask that the older part of the conversation be folded now, if memory is nearly full."""

    name = "request_compaction"
    lock = "tool:perm(Player)"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> str:
        """Grant it above the sleep threshold; the next tick carries it out."""
        share, needed = context_usage(ctx.script), ctx.script.config.compact_sleep_threshold
        refusal = _refusal(ctx.script)
        if refusal:
            raise ToolError(refusal)
        if share < needed:
            raise ToolError(f"not needed: {share:.0%} of the context is used, under {needed:.0%}")
        ctx.script.runtime.compaction_requested = True
        return "Granted: it is done when this turn is over."


def _refusal(script: Assistant) -> str:
    """Why no automatic compaction would be done now; empty if it would."""
    if not script.config.compact_enabled:
        return "compaction is switched off"
    if not script.config.compact_auto:
        return "compaction is done only when staff start it"
    if script.state.stalled_out:
        return "the last compactions freed nothing; staff must look into it"
    return "staff took the last one back; it waits for them" if script.state.hold else ""
