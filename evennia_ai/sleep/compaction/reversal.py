"""Rollback: take the latest compaction back, with all that followed from it."""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.errors import AssistantError
from evennia_ai.history.messages import widest_view_tokens
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.publishing import publish_owed
from evennia_ai.sleep.compaction.rollback import Rollback
from evennia_ai.sleep.compaction.triggers import usage_with


def rollback_compaction(
    script: Assistant, character: Character, compaction_id: str | None = None
) -> Deferred[dict[str, Any]]:
    """Make the messages of the latest compaction live again.

    Its segment counts as restored; its summaries, its synthesis and what the extraction before
    it made are withdrawn, from semantic memory and the recall index soon after. Automatic
    triggers hold until the next manual compaction or an overflow.

    Args:
        script: The assistant's script.
        character: Its body.
        compaction_id: The compaction that is meant; whichever is the latest if None.

    Returns:
        A Deferred that fires with ``{"compaction_id", "restored_messages", "masks_removed",
        "original_tokens", "new_tokens"}``. It fails with `AssistantError` if there is none, if it
        is not the latest any more, if its archive is damaged (with the segment), or if its
        messages no longer fit (with the numbers).
    """
    return maybeDeferred(_roll_back, script, compaction_id)


def _roll_back(script: Assistant, compaction_id: str | None) -> dict[str, Any]:
    rollback = Rollback(script)
    record = rollback.latest()
    if compaction_id not in (None, record["id"]):
        raise AssistantError(
            "Another compaction was made meanwhile. Type `compact/rollback` again."
        )
    before, undone = script.history.tokens(), rollback.undone(record)
    _check_fits(script, undone.history)
    rollback(record, script.now(), undone)
    report = {
        "compaction_id": record["id"],
        "restored_messages": undone.restored,
        "masks_removed": len(record.get("masked", ())),
        "original_tokens": before,
        "new_tokens": script.history.tokens(),
    }
    script.audit("rollback", **report)
    publish_owed(script)  # beside the tick: a store that hangs does not hold up a turn
    return report


def _check_fits(script: Assistant, history: Sequence[Any]) -> None:
    tokens = widest_view_tokens(history)
    share = usage_with(script, tokens)
    if share > 1.0:
        limit = context_limit(script)
        raise AssistantError(
            f"The messages no longer fit: the history would hold {tokens:,} tokens, which with "
            f"the fixed regions and reserves is {share:.0%} of the limit of {limit:,}. Raise "
            "`max_context_tokens` first."
        )
