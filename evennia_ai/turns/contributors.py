"""What takes the most of a prompt, piece by piece, and what can be done about it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.regions import note_line
from evennia_ai.rag_memory.seen import Seen

if TYPE_CHECKING:
    from evennia_ai.turns.assistant import Assistant

MOST = 50  # pieces that are told at most


@dataclass(frozen=True)
class Contributor:
    """One piece of a prompt."""

    what: str  # a region, or ``message``, ``summary``, ``note``, ``tool``, ``persona``
    id: str  # its id or name; empty for a region
    tokens: int  # what it takes
    advice: str = ""  # what staff can do about it


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


def newest_turn(seen: Seen) -> TokenBudget | None:
    """The logged budget of the newest turn that a viewer may know of; None if there is none."""
    requests = reversed(seen.requests())
    return next((event for event in requests if event.purpose == CONTEXT_AWAKE), None)


def contributors(script: Assistant, audience: str) -> list[Contributor]:
    """The regions of the newest turn's prompt and the pieces of the next one, largest first.

    Only pieces that the audience may know.
    """
    seen, count = script.seen(audience), script.count
    event = newest_turn(seen)
    pieces = [Contributor("persona", "", count(script.config.persona), _ADVICE["System"])]
    for region, tokens in (event.regions if event else {}).items():
        if tokens:
            pieces.append(Contributor(f"region {region}", "", tokens, _ADVICE[region]))
    for message in seen.messages():
        what, region = ("summary", "Summaries") if message.is_summary else ("message", "History")
        name = str(message.metadata.get("summary_id") or message.id)
        pieces.append(Contributor(what, name, message.tokens, _ADVICE[region]))
    for entry in seen.pinned():
        line = note_line(entry.id, entry.at, entry.by, entry.text)
        pieces.append(Contributor("note", entry.id, count(line), _ADVICE["Ledger"]))
    for tool in script.tools.offered() if script.limits().calls_tools else ():
        size = count(json.dumps(tool.schema()))
        pieces.append(Contributor("tool", tool.name, size, _ADVICE["Tools"]))
    return sorted(pieces, key=lambda piece: -piece.tokens)[:MOST]
