"""Notes that stay before the assistant's eyes: proposing them to the ledger."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory import ledger
from evennia_ai.tools.base import Tool, ToolContext
from evennia_ai.tools.parameters import Scale, Text


class ProposeLedgerEntry(Tool):
    """Propose a note to be always before you: a preference, task, rule or fact."""

    name = "propose_ledger_entry"
    parameters = {
        "text": Text("One sentence with the names in it.", limit=ledger.TEXT_CHARS),
        "type": Text("preference, task, rule or fact.", required=False, limit=20),
        "weight": Scale("How much it matters.", required=False),
    }
    lock = "tool:perm(Player)"
    tells_nothing_new = True

    def run(self, ctx: ToolContext, text: str, **fields: Any) -> str:
        """Approved at once if the asker asked for it and it binds them alone, else proposed."""
        lines = _asked_by(ctx)
        people = ctx.game.people_in(text)
        concern = ledger.concern_of(text, ctx.asker or "", people)
        kind = ledger.checked_kind(fields.get("type") or "") if fields.get("type") else None
        granted = ledger.binds_only_giver(text, concern, kind) and ledger.asks_to_remember(
            m.content for m in lines
        )
        own = {"key": ctx.character.key, "id": ctx.character.stable_id}
        entry = ctx.script.ledger.add(
            text,
            lines[-1].speaker.to_dict() if granted and lines[-1].speaker else own,
            state=ledger.APPROVED if granted else ledger.PROPOSED,
            kind=kind,
            weight=fields.get("weight") or ledger.DEFAULT_WEIGHT,
            source=ctx.source_message_ids[-1] if ctx.source_message_ids else "assistant",
            about=[ctx.asker] if granted else _named(concern, ctx.asker),
            audience=ctx.audience,
        )
        told = f"Note {entry['id']} is {entry['state']}"
        if entry["state"] == ledger.PROPOSED:
            tell_of_proposal(ctx.script, ctx.character, entry)
            told += "; staff will decide"
        return f"{told}. {ledger.replaces(entry)}".rstrip()


def _asked_by(ctx: ToolContext) -> list[Message]:
    """What the asker said in the lines this turn answers."""
    wanted = set(ctx.source_message_ids)
    return [
        message
        for message in ctx.script.history.messages()
        if message.id in wanted and message.speaker_id == (ctx.asker or "")
    ]


def _named(concern: ledger.Concern, asker: str | None) -> list[str]:
    return [*([asker] if concern.own and asker else ()), *concern.others]


def tell_of_proposal(script: Assistant, character: Character, entry: Mapping[str, Any]) -> None:
    """Tell staff who follow the assistant that a note waits for them."""
    script.tell_staff(
        f"a note waits for approval: {entry['text']} "
        f"(aimemory/approve {character.key} = {entry['id']})"
    )
