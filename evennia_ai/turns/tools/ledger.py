"""Proposing notes to the ledger, which the assistant always has before it."""

from typing import Any

from evennia_ai.history.messages import Speaker
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.ledger import (
    APPROVED,
    DEFAULT_WEIGHT,
    PROPOSED,
    TEXT_CHARS,
    Note,
    asks_to_remember,
    binds_only_author,
    checked_kind,
    concern_of,
    replacement_line,
)
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.parameters import Scale, Text


class ProposeLedgerEntry(Tool):
    """Propose a note to be always before you: a preference, task, rule or fact."""

    name = "propose_ledger_entry"
    parameters = {
        "text": Text("One sentence with names.", limit=TEXT_CHARS),
        "type": Text("preference, task, rule or fact.", required=False, limit=20),
        "weight": Scale("How much it matters.", required=False),
    }
    lock = "tool:perm(Player)"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, text: str, **fields: Any) -> str:
        """Approved at once if the asker asked for it and it binds only them, else proposed."""
        asker = ctx.asker or ""
        lines = [m for m in ctx.seen.by_ids(ctx.source_message_ids) if m.speaker_id == asker]
        concern = concern_of(text, asker, ctx.game.people_in(text))
        kind = checked_kind(fields["type"]) if fields.get("type") else None
        granted = binds_only_author(text, concern, kind) and asks_to_remember(
            message.content for message in lines
        )
        by = lines[-1].speaker if granted else None
        note = ctx.script.ledger.add(
            text,
            by or Speaker(ctx.character.key, ctx.character.stable_id),
            state=APPROVED if granted else PROPOSED,
            kind=kind,
            weight=fields.get("weight") or DEFAULT_WEIGHT,
            source=ctx.source_message_ids[-1] if ctx.source_message_ids else "assistant",
            about=[*([asker] if concern.own and asker else ()), *concern.others],
            audience=ctx.audience,
        )
        state = note.state
        if state == PROPOSED:
            report_proposal(ctx.script, note)
            state += "; staff will decide"
        return f"Note {note.id} is {state}. {replacement_line(note)}".rstrip()


def report_proposal(script: Assistant, note: Note) -> None:
    """Tell staff who follow the assistant that a note waits for approval."""
    command = f"(aimemory/approve {script.obj.key} = {note.id})"
    script.tell_staff(
        f"a note waits for approval: {note.text} {command}", f"a note waits for approval {command}"
    )
