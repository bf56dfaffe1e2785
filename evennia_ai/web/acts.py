"""What staff can do on the pages: checked as the commands do, with a line in the audit log."""

from typing import Any

from evennia_ai.errors import Refusal
from evennia_ai.game.identity import speaker_of
from evennia_ai.rag_memory.ledger import APPROVED, WITHDRAWN
from evennia_ai.staff import memory
from evennia_ai.staff.configuration import change_option, option_called, take_preset
from evennia_ai.turns.options import OPTIONS
from evennia_ai.web.site import Visit


def change_memory(visit: Visit) -> Any:
    """Change what an assistant remembers. Returns, or fires with, a sentence."""
    script, seen, sent, by = visit.assistant, visit.seen, visit.sent, visit.account.key
    wanted, player, text = (sent.get(name, "").strip() for name in ("id", "player", "text"))

    def decide(state: str) -> str:
        note = memory.decide(script, seen, wanted, state, speaker_of(visit.account))
        return f"Note {note.id} is {note.state}."

    # Those of the second kind change a body's values: no tick may run meanwhile.
    acts = {
        "approve": lambda: decide(APPROVED),
        "reject": lambda: decide(WITHDRAWN),
        "quarantine": lambda: memory.quarantine(script, player, by),
        "release": lambda: memory.release(script, player, by),
    }
    exclusive = {
        "forget": lambda: memory.forget(script, seen, wanted, by),
        "correct": lambda: memory.correct(script, seen, wanted, text, by),
        "drop": lambda: memory.drop(script, sent.get("profile", ""), wanted, by),
    }
    act = sent.get("act", "")
    if act in acts:
        return acts[act]()
    if act in exclusive:
        return script.run_exclusive(exclusive[act])
    raise Refusal("There is no such act.")


def _is_number(called: str) -> bool:
    """Whether the field of an option, or of one value of it, is one for numbers."""
    name, key = option_called(called)
    kind = OPTIONS[name].kind
    return ((kind.of if key else None) or kind).field == "number"


def change_options(visit: Visit) -> str:
    """Set an option or take a preset; by the rules of `aiconfig`."""
    script, sent, by = visit.assistant, visit.sent, visit.account.key
    if not script.may_change(visit.account):
        raise Refusal(f"You may not change {script.obj.key}: it belongs to somebody else.")
    act = sent.get("act", "")
    if act == "preset":
        lines = take_preset(script, sent.get("preset", ""), by)
    elif act in ("set", "default"):
        option, text = sent.get("option", ""), sent.get("value", "")
        if act == "default":
            text = "default"
        elif not text.strip() and _is_number(option):
            text = "None"
        lines = change_option(script, option, text, by, visit.is_admin)
    else:
        raise Refusal("There is no such act.")
    return " ".join(lines)
