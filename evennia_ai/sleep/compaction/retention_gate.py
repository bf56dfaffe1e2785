"""The retention gate: names, numbers and quoted words of the source must survive a summary.

They may survive in the summary, in the journal or in the ledger. What does not goes back to the
model once, as a list; what is still missing then is appended as one capped line, the rest
becomes a journal entry.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import visible
from evennia_ai.history.items import Item, items_of, missing, source_items
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits, said_and_done
from evennia_ai.llm_interaction.continuation import one_more_line
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, context_caps
from evennia_ai.llm_interaction.summary import (
    Summary,
    ask_model,
    capped,
    format_messages_for_compaction,
    request_room,
    shortened,
    summary_prompt,
    supported,
)
from evennia_ai.llm_interaction.tokens import count_tokens
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.journal_entry import SYNTHESIS
from evennia_ai.sleep.compaction.retention import appendix, missing_request, score

# Most of a summary's cap the line of missing things may take.
APPENDIX_SHARE = 0.25
JOURNAL_ENTRIES = 200
NAMED = 3


@dataclass(frozen=True)
class Kept:
    """A summary that went through the gate.

    Args:
        text: The summary with its appended line.
        score: Share of the source's items kept in summary, journal or ledger before anything was
            appended.
        in_summary: Share of them kept in the summary itself.
        lost: What was kept nowhere.
        overflow: What had no room in the line either.
        named: Some names in the source, by which it is found again.
        asked_again: The answer to a second request, for its tokens.
    """

    text: str
    score: float
    in_summary: float
    lost: tuple[Item, ...] = ()
    overflow: tuple[Item, ...] = ()
    named: tuple[str, ...] = ()
    asked_again: Summary | None = None


@inlineCallbacks
def retained(
    script: Assistant,
    character: Character,
    messages: Sequence[Message],
    earlier: str,
    summary: Summary,
    audience: str,
    instructions: str | None = None,
) -> Generator[Deferred[Any], Any, Kept]:
    """Put a summary of raw messages and an earlier text through the gate; fires with a `Kept`.

    If the model fails, what is missing is appended. Additional instructions hold for a summary
    that is written again, too.
    """
    names = [profile.name for profile in character.entities.profiles().values()]
    traits = script.tools.traits
    messages = said_and_done(messages, traits)
    items = yield script.mind.work(items_to_keep, messages, earlier, names, character.key, traits)
    elsewhere = _elsewhere(script, character, audience)
    text, again = summary.text, None
    lost = yield script.mind.work(missing, items, text, *elsewhere)
    if lost and summary.model and summary.model != OFFLINE_MODEL:
        prompt = summary_prompt(script, instructions)
        again = yield _asked_again(
            script, prompt, messages, earlier, summary, lost, instructions or ""
        )
        still = yield script.mind.work(missing, items, again.text if again else "", *elsewhere)
        if again and len(still) < len(lost):
            text, lost = again.text, still
    cap = context_caps(script).summary
    text, lost, overflow, not_in_it = yield script.mind.work(
        with_appendix, items, text, lost, elsewhere, cap, script.counter
    )
    named = tuple(dict.fromkeys(item.text for item in items if item.kind == "name"))
    return Kept(
        text, score(items, lost), score(items, not_in_it), lost, overflow, named[:NAMED], again
    )


def with_appendix(
    items: Sequence[Item],
    text: str,
    lost: tuple[Item, ...],
    elsewhere: Sequence[str],
    cap: int,
    count: Callable[[str], int],
) -> tuple[str, tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]:
    """A text with a line of what it lost, under the cap.

    Where text and line are too long together the text is cut first, and what stood in the part
    that was cut off counts as lost too.

    Returns:
        The text; what it lost; what of that had no room in the line; what does not stand in the
        text without its line, though it may be kept elsewhere.
    """
    room = int(cap * APPENDIX_SHARE)
    line, overflow = appendix(lost, room, count)
    if line and count(text) + count(line) + 1 > cap:
        text = capped(text, cap - room - 1, count)
        lost = missing(items, text, *elsewhere)
        line, overflow = appendix(lost, room, count)
    return (f"{text}\n{line}" if line else text), lost, overflow, missing(items, text)


def items_to_keep(
    messages: Sequence[Message],
    earlier: str,
    names: Sequence[str],
    own_name: str,
    traits: ToolTraits,
) -> tuple[Item, ...]:
    """What must survive; the assistant's own name needs no keeping."""
    known = [name for name in names if name != own_name]
    found = (*source_items(messages, traits, known), *items_of(earlier, known))
    return tuple(item for item in found if item.text.lower() != own_name.lower())


@inlineCallbacks
def _asked_again(
    script: Assistant,
    prompt: str,
    messages: Sequence[Message],
    earlier: str,
    summary: Summary,
    lost: Sequence[Item],
    instructions: str,
) -> Generator[Deferred[Any], Any, Summary | None]:
    """The summary written once more with the missing things; None where that gives none.

    The messages stand before the list where they fit the model's window, or it could only guess.
    """
    cap = context_caps(script).summary
    request = missing_request(summary.text, lost)
    # As it was shown before, so that a provider's cache serves it.
    source = summary.source or format_messages_for_compaction(messages, earlier)
    tokens = yield script.mind.work(count_tokens, source, script.counter)
    warm = one_more_line(script, summary.continued, request) if summary.continued else None
    if tokens <= request_room(script, (summary.model,), prompt, request):
        request = f"{source}\n\n{request}"
    try:
        reply = yield ask_model(
            script, prompt, request, model=summary.model, max_tokens=cap, continued=warm
        )
        text = yield script.mind.work(shortened, reply, tokens, cap, script.counter)
        ground = f"{source}\n{instructions}"
        text, struck = yield supported(script, text, ground, reply.model)
    except ModelError:
        return None
    return replace(
        summary,
        text=text,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        rejected=(),
        unsupported=struck,
    )


def _elsewhere(script: Assistant, character: Character, audience: str) -> list[str]:
    """Texts in which a thing is kept besides the summary: journal and ledger.

    Entries that repeat a summary do not count: with them a merge of summaries could drop all.
    """
    notes = [note.text for note in script.ledger.shown(audience)]
    entries = character.journal.recent(JOURNAL_ENTRIES)
    return notes + [
        entry.content
        for entry in entries
        if visible(entry.audience, audience)
        and not entry.withdrawn
        and entry.source_type != SYNTHESIS
    ]
