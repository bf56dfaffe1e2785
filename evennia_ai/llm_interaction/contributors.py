"""What takes the most of a prompt, piece by piece, and what can be done about it."""

import json
from dataclasses import dataclass

from evennia_ai.history.audience import PUBLIC
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.regions import note_line
from evennia_ai.protocol import Assistant

# Most pieces of each kind that are looked at further.
MOST_OF_A_KIND = 5


@dataclass(frozen=True)
class Contributor:
    """One piece of a prompt."""

    what: str  # a region, or ``message``, ``summary``, ``note``, ``tool``, ``persona``
    id: str  # its id or name; empty for a region
    tokens: int  # what it takes
    advice: str = ""  # what staff can do about it
    audience: str = PUBLIC  # who may know it


_ADVICE = {
    "System": "shorten `persona`",
    "Tools": "switch off what it does not need: `tool_levels`",
    "Ledger": "withdraw notes (`aimemory/reject`), or lower `ledger_max_tokens`",
    "Examples": "shorten `examples`",
    "Summaries": "compact: older summaries are merged",
    "History": "compact; its words stay in the archive",
    "Retrieved": "lower `memory_inject_tokens`",
    "Tail": "fewer people and things in the room",
    "Reserve": "lower `reply_reserve_tokens`",
}


def newest_turn(script: Assistant, audience: str) -> TokenBudget | None:
    """The logged budget of the newest turn that an audience may know of; None if there is none."""
    requests = reversed(script.seen(audience).requests())
    return next((event for event in requests if event.purpose == CONTEXT_AWAKE), None)


def contributors(script: Assistant, audience: str) -> list[Contributor]:
    """The regions of the newest turn's prompt and the pieces of the next one, largest first.

    Only pieces that the audience may know. Of each kind the largest `MOST_OF_A_KIND`.
    """
    seen, count, event = script.seen(audience), script.count, newest_turn(script, audience)
    kinds: dict[str, list[Contributor]] = {name: [] for name in ("History", "Summaries")}
    for message in seen.messages():
        name = str(message.metadata.get("summary_id") or message.id)
        what, region = ("summary", "Summaries") if message.is_summary else ("message", "History")
        kinds[region].append(
            Contributor(what, name, message.tokens, _ADVICE[region], message.audience)
        )
    kinds["Ledger"] = [
        Contributor("note", n.id, count(line), _ADVICE["Ledger"], n.audience)
        for n in seen.pinned()
        for line in [note_line(n.id, n.at, n.by, n.text)]
    ]
    kinds["Tools"] = [
        Contributor("tool", tool.name, count(json.dumps(tool.schema())), _ADVICE["Tools"])
        for tool in (script.tools.offered() if script.limits().calls_tools else ())
    ]
    pieces = [Contributor("persona", "", count(script.config.persona), _ADVICE["System"])]
    for name, tokens in (event.regions if event else {}).items():
        pieces.append(Contributor(f"region {name}", "", tokens, _ADVICE[name]))
    for kind in kinds.values():
        pieces += sorted(kind, key=lambda piece: -piece.tokens)[:MOST_OF_A_KIND]
    return sorted((each for each in pieces if each.tokens), key=lambda each: -each.tokens)
