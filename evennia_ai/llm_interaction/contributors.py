"""What takes the most of a prompt, piece by piece, and what can be done about it."""

import json
from dataclasses import dataclass

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message
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


_REGION_ADVICE = {
    "System": "shorten `persona`",
    "Tools": "switch off tools it does not need: `tool_levels`",
    "Ledger": "lower `ledger_max_tokens`, or withdraw notes",
    "Summaries": "compact: older summaries are merged",
    "History": "compact, or lower `compact_sleep_threshold`",
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
    withdraw = f"withdraw it: aimemory/reject {script.obj.key} ="
    off = "`tool_levels` switches it off"
    notes = ((note, note_line(note.id, note.at, note.by, note.text)) for note in seen.pinned())
    kinds = (
        [_of_message(message) for message in seen.messages()],
        [
            Contributor("note", n.id, count(row), f"{withdraw} {n.id}", n.audience)
            for n, row in notes
        ],
        [
            Contributor("tool", t.name, count(json.dumps(t.schema())), off)
            for t in script.tools.offered()
        ],
        [Contributor("persona", "", count(script.config.persona), "shorten `persona`")],
    )
    regions = event.regions.items() if event else ()
    pieces = [Contributor(f"region {name}", "", n, _REGION_ADVICE[name]) for name, n in regions]
    for kind in kinds:
        pieces += sorted(kind, key=lambda piece: -piece.tokens)[:MOST_OF_A_KIND]
    return sorted((each for each in pieces if each.tokens), key=lambda each: -each.tokens)


def _of_message(message: Message) -> Contributor:
    if message.is_summary:
        of = str(message.metadata.get("summary_id") or message.id)
        says = "compact: older summaries are merged"
        return Contributor("summary", of, message.tokens, says, message.audience)
    says = "compact; its words stay in the archive"
    if message.role == "tool":
        says = "compact; an automatic compaction masks it first"
    return Contributor("message", message.id, message.tokens, says, message.audience)
