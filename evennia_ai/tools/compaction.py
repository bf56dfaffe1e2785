"""Asking for compaction: guarded, so that a model cannot forget at will."""

from evennia_ai.errors import ToolError
from evennia_ai.llm_interaction.prompt import context_usage
from evennia_ai.tools.base import Tool, ToolContext


class RequestCompaction(Tool):
    """Ask that the older part of the conversation be folded now, if memory is nearly full."""

    name = "request_compaction"
    lock = "tool:perm(Player)"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> str:
        """Grant it above the sleep threshold; the next tick carries it out."""
        config, state = ctx.script.config, ctx.script.state
        share, needed = context_usage(ctx.script), config.compact_sleep_threshold
        for refused, why in (
            (not config.compact_enabled, "compaction is switched off"),
            (not config.compact_auto, "compaction is done only when staff start it"),
            (state.stalled_out, "the last compactions freed nothing; staff must look into it"),
            (state.hold, "staff took the last one back; it waits for them"),
        ):
            if refused:
                raise ToolError(why)
        if share < needed:
            raise ToolError(f"not needed: {share:.0%} of the context is used, under {needed:.0%}")
        ctx.script.runtime.compaction_requested = True
        return "Granted: it is done when this turn is over."
