"""What a note rests on: which messages, since when, and whether it is only recalled."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.language.sentences import asks, sentences
from evennia_ai.language.words import telling_words
from evennia_ai.rag_memory.recalled import is_recalled, shown_memories
from evennia_ai.recall.values import Hit

# A message bears a note out if it has this share of the note's telling words.
LEAST_SHARE = 0.4


@dataclass(frozen=True)
class Grounds:
    """What a note rests on.

    Args:
        sources: Ids of messages, best first.
        at: When the first of them was said, ISO 8601; None for what was said just now.
        recalled: Whether it only repeats memories that were shown.
        stated: Whether somebody said it in the messages looked at.
        heard: What was heard there that may be new, as ``Speaker: text``.
    """

    sources: tuple[str, ...]
    at: str | None
    recalled: bool
    stated: bool
    heard: tuple[str, ...]


def grounds_of_turn(
    note: str,
    messages: Sequence[Message],
    answered: Collection[str],
    retrieved: Iterable[Hit],
    traits: ToolTraits,
) -> Grounds:
    """What a note of a turn rests on: the messages that the turn answers.

    `retrieved` are the memories in its prompt.
    """
    heard = [m for m in messages if m.id in answered]
    since = dropwhile(lambda m: m.id not in answered, messages)
    # What a tool found elsewhere than in memory.
    seen = [m for m in since if m.role == "tool" and m.name not in traits.recalls]
    known = [*retrieved, *shown_memories(messages, traits)]
    texts = tuple(_said(m) for m in (*heard, *seen))
    stated = is_recalled(note, [_as_hit(statement_of(m)) for m in heard])
    return Grounds(tuple(answered), None, is_recalled(note, known, texts), stated, texts)


def statement_of(message: Message) -> Message:
    """A message without its questions: asking whether something is so does not say it is."""
    said = [each for each in sentences(message.content) if not asks(each)]
    return replace(message, content=" ".join(said))


def _as_hit(message: Message) -> Hit:
    return Hit(message.id, 0.0, message.speaker_name, message.content, message.created_at)


def _said(message: Message) -> str:
    speaker = message.speaker_name
    return f"{speaker}: {message.content}" if speaker else message.content


def supporting(text: str, messages: Iterable[Message], most: int = 3) -> tuple[str, ...]:
    """Ids of the at most `most` messages with the largest share of a note's telling words.

    At least `LEAST_SHARE`, best first, of equal ones the newer first.
    """
    wanted = telling_words(text)
    found: list[tuple[float, int, str]] = []
    for place, message in enumerate(messages):
        if not wanted or message.role not in ("user", "assistant") or message.is_summary:
            continue
        share = len(wanted & telling_words(_said(message))) / len(wanted)
        if share >= LEAST_SHARE:
            found.append((share, place, message.id))
    return tuple(each for _, _, each in sorted(found, reverse=True)[:most])
