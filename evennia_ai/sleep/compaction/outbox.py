"""What must leave the search index and semantic memory, and texts that summaries stand in.

What a rollback withdrew, or what is forgotten, is noted in one transaction with it, and taken out
after it, again after a crash. A summary is indexed as the journal's synthesis of it.
"""

from collections.abc import Mapping
from dataclasses import replace

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import StoreError
from evennia_ai.history.frames import SUMMARY_TITLE
from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant


@inlineCallbacks
def empty_outbox(script: Assistant) -> Steps[None]:
    """As `clear_outbox`; what fails is only logged, as what was done stands."""
    try:
        yield clear_outbox(script)
    except Exception as error:  # noqa: BLE001
        script.log_error("publishing", error)


@inlineCallbacks
def clear_outbox(script: Assistant) -> Steps[None]:
    """Take what was withdrawn or forgotten out of the recall index and of semantic memory.

    What fails stays noted: it is tried again after the next rollback, in the next night and at the
    next start. Fails with `StoreError` if either holds it still.
    """
    memory, memories = script.memory, script.mind.memories
    while script.pk is not None and (gone := script.state.outbox):  # or deleted meanwhile
        yield memory.forget(gone)
        if (yield memory.missing(gone)) != len(set(gone)):
            raise StoreError("The search index could not be cleared of what is to go.")
        yield memories.delete(script.scope, gone)
        if not (yield memories.ids(script.scope)).isdisjoint(gone):
            raise StoreError("Semantic memory could not be cleared of what is to go.")
        script.state.outbox = [each for each in script.state.outbox if each not in gone]


def put_texts(script: Assistant, texts: Mapping[str, str]) -> None:
    """Show these texts, by summary ids, where the live history shows one of the summaries."""
    live = script.history.messages()
    shown = [with_text(script, message, texts) for message in live]
    if any(new is not old for new, old in zip(shown, live, strict=True)):
        script.history.replace(shown)


def with_text(script: Assistant, message: Message, texts: Mapping[str, str]) -> Message:
    """A marker with the text of its summary; the same for others, and without a text for it."""
    text = texts.get(str(message.metadata.get("summary_id")))
    if text is None or not message.is_summary:
        return message
    metadata = {**message.metadata, "summary_token_count": script.count(text)}
    changed = replace(message, content=f"{SUMMARY_TITLE}\n{text}", metadata=metadata)
    return changed.counted(script.count)
