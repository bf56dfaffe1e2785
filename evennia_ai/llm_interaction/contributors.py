"""What takes the most of a prompt, piece by piece, and what can be done about it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from evennia_ai.history.audience import PUBLIC
from evennia_ai.llm_interaction.budget import BudgetEvent
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.regions import note_line
from evennia_ai.protocol import Assistant

# Most pieces of each kind that are looked at further.
MOST_OF_A_KIND = 5


@dataclass(frozen=True)
class Contributor:
    """One piece of a prompt.

    Args:
        what: A region, or ``message``, ``summary``, ``note``, ``tool``, ``persona``.
        id: Its id or name; empty for a region.
        tokens: What it takes.
        advice: What staff can do about it.
        audience: Who may know it.
    """

    what: str
    id: str
    tokens: int
    advice: str = ""
    audience: str = PUBLIC


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


def newest_turn(script: Assistant, audience: str) -> BudgetEvent | None:
    """The logged budget of the newest turn that an audience may know of; None if there is none."""
    requests = reversed(script.seen(audience).requests())
    return next((event for event in requests if event.purpose == CONTEXT_AWAKE), None)


def contributors(script: Assistant, audience: str) -> list[Contributor]:
    """The regions of the newest turn's prompt and the pieces of the next one, largest first.

    Only pieces that the audience may know. Of each kind the largest `MOST_OF_A_KIND`.
    """
    found = chain(
        _regions(newest_turn(script, audience)),
        _largest(_messages(script, audience)),
        _largest(_notes(script, audience)),
        _largest(_tools(script)),
        [Contributor("persona", "", script.count(script.config.persona), "shorten `persona`")],
    )
    return sorted((each for each in found if each.tokens), key=lambda each: -each.tokens)


def _largest(pieces: Iterable[Contributor]) -> list[Contributor]:
    return sorted(pieces, key=lambda piece: -piece.tokens)[:MOST_OF_A_KIND]


def _regions(event: BudgetEvent | None) -> Iterable[Contributor]:
    for name, tokens in event.regions.items() if event else ():
        yield Contributor(f"region {name}", "", tokens, _REGION_ADVICE[name])


def _messages(script: Assistant, audience: str) -> Iterable[Contributor]:
    for message in script.seen(audience).messages():
        if message.is_summary:
            of = str(message.metadata.get("summary_id") or message.id)
            says = "compact: older summaries are merged"
            yield Contributor("summary", of, message.tokens, says, message.audience)
            continue
        says = "compact; its words stay in the archive"
        if message.role == "tool":
            says = "compact; an automatic compaction masks it first"
        yield Contributor("message", message.id, message.tokens, says, message.audience)


def _notes(script: Assistant, audience: str) -> Iterable[Contributor]:
    for note in script.seen(audience).pinned():
        says = f"withdraw it: aimemory/reject {script.obj.key} = {note.id}"
        tokens = script.count(note_line(note.id, note.at, note.by, note.text))
        yield Contributor("note", note.id, tokens, says, note.audience)


def _tools(script: Assistant) -> Iterable[Contributor]:
    for tool in script.tools.offered():
        says = "`tool_levels` switches it off"
        yield Contributor("tool", tool.name, script.count(json.dumps(tool.schema())), says)
