"""Which Attributes of an assistant hold its life: talk, memories, and what was made of them.

Builders read and change an assistant's configuration. Its life is for admins, who read it with
`aihistory` and `aimemory`: the Attributes that hold it are locked, and as Evennia's
building commands ask for no lock, their texts are sealed (`history.sealed`).
"""

from evennia_ai.history.live import HISTORY, TAIL
from evennia_ai.llm_interaction.budget_log import KEY as BUDGETS
from evennia_ai.rag_memory.journal import JOURNAL
from evennia_ai.rag_memory.profiles import PROFILES
from evennia_ai.rag_memory.quarantine import KEY as QUARANTINE
from evennia_ai.turns.errands import KEY as ERRANDS
from evennia_ai.turns.tools.waiting import KEY as WAITING

# Attributes without a category that hold talk or what was made of it. Those with a category
# whose name begins with `CATEGORIES` do as well.
LIFE = frozenset(
    {
        HISTORY,
        TAIL,
        JOURNAL,
        PROFILES,
        BUDGETS,
        WAITING,
        ERRANDS,
        QUARANTINE,
        "event_queue",
        "compaction_outbox",
        "last_extraction",
        "summaries_owed",
    }
)
CATEGORIES = "ai_"
# Evennia checks them for code that names an `accessing_obj`.
LOCKS = "attrread:perm(Admin);attredit:perm(Admin)"


def is_life(key: str, category: str | None) -> bool:
    """Whether an Attribute holds talk or memories."""
    return category.startswith(CATEGORIES) if category else key in LIFE
