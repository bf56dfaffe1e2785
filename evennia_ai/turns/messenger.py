"""Delivering errands: word for word, by code, once, and without a model."""

from collections.abc import Collection

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ToolError
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.pairs import ASKER, FOR
from evennia_ai.protocol import Assistant
from evennia_ai.turns.errands import Errand
from evennia_ai.turns.moderation import judge_said


def drop(script: Assistant, ids: Collection[str]) -> None:
    """Forget errands by their ids."""
    script.state.errands = script.state.errands.without(ids)


@inlineCallbacks
def deliver(script: Assistant) -> Steps[None]:
    """Deliver what is due to those who can be reached now; wakes the assistant for it."""
    for errand in script.state.errands.errands:
        if not _is_due(script, errand):
            if errand.is_over(script.now()):
                drop(script, [errand.id])
                script.audit("errand", act="expired", errand=errand.id, by=errand.by.id)
            continue
        text = yield judge_said(script, errand.text, "whisper", True)
        if errand not in script.state.errands.errands or not _is_due(script, errand):
            continue  # withdrawn, or they have left meanwhile
        if text and script.state.mode == "sleep":
            script.wake()
        _hand_over(script, errand, text)


def _is_due(script: Assistant, errand: Errand) -> bool:
    """Whether an errand's time has come, and who it is for can be reached."""
    if errand.due > script.game.clock(errand.game, script.now()).timestamp():
        return False
    return script.game.reaches(errand.to.id, anywhere=errand.due > 0)


def _hand_over(script: Assistant, errand: Errand, text: str) -> None:
    """Say it, and note that it was said; or neither."""
    by, to = errand.by, errand.to
    kind = "reminder" if by.id == to.id else "errand"
    words = script.own_notice(kind, name=by.key, text=text)
    said = Message(
        "assistant",
        words,
        speaker=Speaker(script.obj.key, script.obj.stable_id),
        audience=private([by.id, to.id]),
        channel="whisper",
        metadata={ASKER: by.id, FOR: to.id},  # so that it goes when one of them is forgotten
    )
    try:
        with script.store.transaction():
            drop(script, [errand.id])
            if text:  # else moderation refused it, which is logged
                script.history.append([said])
                try:
                    script.game.tell(to.id, words)
                except ToolError:  # nothing was said
                    raise
                except Exception as error:  # noqa: BLE001 - of a hook: it was said
                    script.log_error(f"delivering errand {errand.id}", error)
    except ToolError as error:
        script.log(f"errand {errand.id} is kept: {error}", warning=True)
        return
    script.audit("errand", act="delivered" if text else "refused", errand=errand.id, by=by.id)
