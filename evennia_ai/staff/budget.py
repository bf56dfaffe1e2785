"""Words for what requests to a model were for, what they cost and what they left out."""

from evennia_ai.llm_interaction.budget import BudgetEvent
from evennia_ai.staff.show import counted

# What requests are for, in the words of people.
PURPOSES = {
    "awake": "turn",
    "unasked": "unasked turn",
    "sleep": "dream",
    "pre_compaction": "extraction",
    "memory": "memory extraction",
    "probe": "check of the model",
    "trial": "test of the model",
}


def price(cost: float | None) -> str:
    """What something cost, in words; the price of some models is not known."""
    return "no price known" if cost is None else f"${cost:.4f}" if cost else "$0"


def price_of(calls: int, cost: float, unpriced: int) -> str:
    """What calls cost together, in words, of which `unpriced` are not part of the cost."""
    if calls and unpriced >= calls:
        return price(None)
    others = f" + {unpriced} of unknown price" if unpriced else ""
    return price(cost) + others


def cached_part(tokens: int, cost: float | None) -> str:
    """What of a prompt came out of the provider's cache and what that cost, in brackets."""
    paid = "" if cost is None else f" for {price(cost)}"
    return f" ({tokens:,} cached{paid})" if tokens else ""


def cuts(event: BudgetEvent) -> list[str]:
    """What was left out, and why."""
    lines = []
    if event.left_out:
        oldest = counted(event.left_out, "oldest message")
        lines.append(f"Left out: the {oldest}, up to {event.left_until}: no room beside the newer")
    return [*lines, *(f"Note: {note}" for note in event.notes)]
