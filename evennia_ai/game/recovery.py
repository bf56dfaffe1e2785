"""Repairs after a stop or a crash, when the server starts.

`repair_at_start` does what must be right at once. `repair_when_ready` runs when models and
vocabularies are loaded, so that the start of the server is not held up.
"""

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ANSWERED, ASKER, INTERRUPTED
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.indexing import mend_index
from evennia_ai.recall.values import seconds
from evennia_ai.sleep.compaction.due import check_room
from evennia_ai.sleep.compaction.outbox import empty_outbox
from evennia_ai.turns.heard import UNJUDGED, Group, Unanswered, by_speaker, wants_answer
from evennia_ai.turns.moderation import moderate

# Time that a restart may take without making what was heard before it too old to answer.
RESTART_S = 60.0


def repair_at_start(script: Assistant) -> None:
    """Clear the signal of an extraction, end a dream, and restore what was heard."""
    script.state.signals = {}
    if script.state.phase in ("dreaming", "waking"):
        script.state.set_mode("sleep", "sleeping")
    restore_queue(script)


def repair_when_ready(script: Assistant) -> None:
    """Repair tool calls, compactions and the index."""
    script.history.heal()
    empty_outbox(script)
    mend_index(script)
    check_room(script)


def restore_queue(script: Assistant) -> None:
    """Queue again what was heard but not stored, and turns that were not finished."""
    saved = script.state.load_queue()
    if not saved:
        return  # the history need not be read yet
    messages = script.history.messages()
    places = {message.id: place for place, message in enumerate(messages)}
    queued = {event.id for event in script.runtime.queue}
    now, fresh_s = script.now(), script.stale_after_s + RESTART_S
    for event in saved:  # what waited for a short restart is as fresh as if just heard
        waited = now - (seconds(event.created_at) or now)
        heard = now if waited <= fresh_s else now - waited
        script.runtime.waiting[event.id] = (heard, script.runtime.lock.worked_s)
    lost = [event for event in saved if event.id not in {*places, *queued}]
    archived = {message.id for message in script.history.by_ids(e.id for e in lost)}
    lost = [event for event in lost if event.id not in archived]
    script.runtime.give_back(lost)
    for event in lost:
        if UNJUDGED in event.metadata:
            moderate(script, event)
    stored = [messages[places[e.id]] for e in saved if e.id in places and wants_answer(e)]
    for group in by_speaker(stored):
        later = messages[places[group.events[-1].id] + 1 :]
        if not any(_answers(message, group) for message in later):
            script.runtime.unanswered[group.key] = Unanswered(group, 1, script.now())


def _answers(message: Message, group: Group) -> bool:
    """Whether a message ended a turn for a group: words, or the result of an ending tool."""
    meta, (audience, speaker) = message.metadata, group.key
    if meta.get(ASKER, speaker) != speaker or meta.get("context") not in (None, CONTEXT_AWAKE):
        return False
    if message.role == "assistant":
        return message.audience == audience and not message.tool_calls
    is_done = message.role == "tool" and message.content != INTERRUPTED
    return is_done and bool(meta.get(ANSWERED) == audience)
