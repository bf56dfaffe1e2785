"""What a note rests on: who said it, in which messages, and whether it only repeats memories.

A model that writes down what it was shown from memory makes a memory of a memory; one repeated text
has filled whole stores. Such notes are marked, and never searched or consolidated.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, islice
from typing import Protocol

from evennia_ai.history.messages import MEMORIES, Message, ToolTraits
from evennia_ai.history.stored import as_dicts
from evennia_ai.language.script import runs
from evennia_ai.language.words import asks, sentences, telling_words
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.recall.values import Hit

# A text bears a note out if it has this share of the note's telling words.
LEAST_SHARE = 0.4
# Newest replies whose memories are looked at; older ones have left the prompt or will soon.
_REPLIES = 40
# Kinds of hits that are notes of the assistant on what people said.
NOTES = ("journal", "memory")
MOST_TELLERS, MOST_SOURCES = 2, 3


def is_recalled(
    note: str,
    messages: Sequence[Message],
    answered: Collection[str],
    retrieved: Iterable[Hit],
    traits: ToolTraits,
) -> bool:
    """Whether a note of a turn repeats memories, and nothing that was said or seen in it.

    It repeats what it has five words in a row of (`language.script.runs`).

    Args:
        note: Its text.
        messages: The newest of the history, oldest first.
        answered: Ids of the messages that the turn answers.
        retrieved: The memories in its prompt, and those it found.
        traits: Which tools give out memories.
    """
    fresh = [statement_of(m).content for m in messages if m.id in answered]
    since = dropwhile(lambda m: m.id not in answered, messages)
    # What a tool found elsewhere than in memory.
    fresh += [m.content for m in since if m.role == "tool" and m.name not in traits.recalls]
    replies = (m for m in reversed(messages) if m.metadata.get(MEMORIES))
    items = (item for m in islice(replies, _REPLIES) for item in as_dicts(m.metadata[MEMORIES]))
    shown = [hit.text for hit in (*retrieved, *map(Hit.from_dict, items))]
    return _repeats(note, shown) and not _repeats(note, fresh)


def _repeats(note: str, texts: Iterable[str]) -> bool:
    own = runs(note)
    return any(not own.isdisjoint(runs(text)) for text in texts)


def _share(wanted: Collection[str], texts: Iterable[str]) -> float:
    """The largest share of the wanted words that one of these texts has."""
    counts = (len(telling_words(text).intersection(wanted)) for text in texts)
    if wanted:
        return max(counts, default=0) / len(wanted)
    return 0.0


def statement_of(message: Message) -> Message:
    """A message without its questions: asking whether something is so does not say it is."""
    said = [each for each in sentences(message.content) if not asks(each)]
    return replace(message, content=" ".join(said))


def _said(message: Message) -> str:
    speaker = message.speaker_name
    if speaker and message.content:
        return f"{speaker}: {message.content}"
    return message.content


def supporting(text: str, messages: Iterable[Message]) -> tuple[str, ...]:
    """Ids of the at most `MOST_SOURCES` messages with the largest share of a note's telling words.

    At least `LEAST_SHARE`, best first, of equal ones the newer first.
    """
    wanted = telling_words(text)
    shares = [
        (_share(wanted, [_said(message)]), place, message.id)
        for place, message in enumerate(messages)
        if message.role in ("user", "assistant") and not message.is_summary
    ]
    best = sorted((each for each in shares if each[0] >= LEAST_SHARE), reverse=True)
    return tuple(message_id for *_, message_id in best[:MOST_SOURCES])


def drawn_on(memories: Iterable[Hit], reply: str) -> list[Hit]:
    """The shown memories that share two telling words with a reply, which may repeat them."""
    said = telling_words(reply)
    return [hit for hit in memories if len(telling_words(hit.text) & said) >= 2]


def hits_in(result: str) -> Iterator[Hit]:
    """The hits in a result of searching or opening memory."""
    try:
        loaded = json.loads(result)
    except ValueError:
        loaded = {"text": result}
    if isinstance(loaded, dict):
        items = (loaded, *as_dicts(loaded.get("results")), *as_dicts(loaded.get("around")))
        yield from (hit for hit in map(Hit.from_dict, items) if hit.text)


class Said(Protocol):
    """What was said."""

    def by_ids(self, ids: Iterable[str]) -> list[Message]:
        """Messages by their ids."""


def attributed(journal: JournalHandler, history: Said, hit: Hit) -> Hit:
    """A hit with who said it (``Bram said``), if it is a note that does not begin with the name.

    Without the speaker, hearsay would read like a fact.
    """
    if hit.speaker or hit.kind not in NOTES:
        return hit
    entry = journal.get(hit.turn_id)
    if entry is None:
        return hit
    said = history.by_ids(entry.source_message_ids)
    names = dict.fromkeys(m.speaker_name for m in said if m.role == "user" and m.speaker_name)
    if not names or len(names) > MOST_TELLERS or hit.text.startswith(tuple(names)):
        return hit
    return replace(hit, speaker=f"{' and '.join(names)} said")
