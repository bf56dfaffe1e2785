"""What a stop or a crash left behind, put right when the server starts.

In two parts: what must be right at once, and what waits until models and vocabularies are
loaded, so that the start of the server is not held up.
"""

from collections.abc import Callable
from typing import Any

from evennia_ai.assistant.events import by_audience
from evennia_ai.assistant.runtime import LiveAssistant, Unanswered
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ANSWERED, INTERRUPTED
from evennia_ai.history.tool_traits import ToolTraits
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.rag_memory.indexing import mend_index
from evennia_ai.rag_memory.working_memory import from_history
from evennia_ai.sleep.compaction.extraction import complete_extraction
from evennia_ai.sleep.compaction.publishing import COMMITTED, SUMMARISING, drop_intent, publish_owed
from evennia_ai.sleep.compaction.triggers import check_feasible

VERSION_KEY = "schema_version"
# Of an assistant's data as a whole; each stored value has a version of its own shape besides.
DATA_VERSION = 2


def adopt_unversioned(script: LiveAssistant) -> None:
    """From data without a version (hand-made, or none): every message and entry made complete."""
    history = script.history
    history.messages()
    history.checkpoint()
    if script.obj is not None:
        script.journal.store_complete()


def page_closed_notes(script: LiveAssistant) -> None:
    """From a ledger that held all notes ever taken: the closed ones go into pages."""
    script.ledger.page_closed()


MIGRATIONS: dict[int, Callable[[Any], None]] = {0: adopt_unversioned, 1: page_closed_notes}


def migrate(script: LiveAssistant) -> int:
    """Bring a script's data to `DATA_VERSION`; returns how many migrations ran.

    Data of a newer version of the package are left alone.
    """
    store = script.history.store
    version = store.get(VERSION_KEY, default=0)
    version = version if isinstance(version, int) else 0
    ran = 0
    while version < DATA_VERSION:
        with store.transaction():
            MIGRATIONS[version](script)
            version += 1
            store.set(VERSION_KEY, version)
        ran += 1
    return ran


def repair_at_start(script: LiveAssistant) -> None:
    """Signals, the mode, and what was heard before the stop."""
    script.state.signal("pre_compaction", None)
    if script.state.phase in ("dreaming", "waking"):
        script.state.set_mode("sleep", "sleeping")
    restore_queue(script)


def repair_when_ready(script: LiveAssistant) -> None:
    """Token counts, unanswered calls, a compaction's remains, the index, talks, feasibility."""
    migrate(script)
    script.history.recount()
    script.history.heal()
    complete_extraction(script, script.obj)
    _drop_or_complete_intent(script)
    mend_index(script)
    if not script.runtime.conversations:
        talks = from_history(script.history.messages(), script.now())
        script.runtime.conversations = talks
    check_feasible(script)


def restore_queue(script: LiveAssistant) -> None:
    """Take up again what was heard but is not in the history or not answered yet."""
    saved = script.state.load_queue()
    if not saved:
        return  # the history need not be read yet
    messages = script.history.messages()
    places = {message.id: place for place, message in enumerate(messages)}
    queued = {event.id for event in script.runtime.queue}
    lost = [event for event in saved if event.id not in {*places, *queued}]
    archived = {message.id for message in script.history.by_ids(e.id for e in lost)}
    script.runtime.give_back(event for event in lost if event.id not in archived)
    stored = [messages[places[e.id]] for e in saved if e.id in places]
    for group in by_audience(stored):
        later = messages[places[group.events[-1].id] + 1 :]
        if not any(_answers(message, group.audience, script.tools.traits) for message in later):
            script.runtime.unanswered[group.audience] = Unanswered(group, 1, script.now())


def _answers(message: Message, audience: str, traits: ToolTraits) -> bool:
    """Whether a message ended a turn for an audience: words, or the result of an ending tool."""
    meta = message.metadata
    if meta.get("context") not in (None, CONTEXT_AWAKE):
        return False
    if message.role == "assistant":
        return message.audience == audience and not message.tool_calls
    if message.role != "tool" or message.content == INTERRUPTED:
        return False
    if ANSWERED in meta:
        return bool(meta[ANSWERED] == audience)
    # A result of an older version, which does not tell whose turn it ended.
    if message.name in traits.silent:
        return bool(message.audience == audience)
    # A whisper in answer to words said aloud is of the one it went to.
    return message.name in traits.to_one and audience in (PUBLIC, message.audience)


def _drop_or_complete_intent(script: LiveAssistant) -> None:
    """Drop a compaction that a stop cut short, or complete what follows from one."""
    intent = script.state.intent
    if intent.get("phase") == SUMMARISING:
        script.log("a compaction was cut short by a stop; nothing of it was stored")
        drop_intent(script)
    elif intent and intent.get("phase") != COMMITTED:
        script.state.intend(None)  # put in by hand, or by nobody
    publish_owed(script)
