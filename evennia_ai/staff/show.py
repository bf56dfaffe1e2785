"""Showing things to people: escaped, paged, and readable by a screen reader.

Text of players and models never goes into a table: Evennia's tables undo the escaping.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.conf import settings

from evennia_ai.game.seeing import STABLE_ID, find, name_of
from evennia_ai.game.world import literal
from evennia_ai.history.audience import STAFF, is_private, members
from evennia_ai.history.messages import Message, utc_iso
from evennia_ai.language.script import folded
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import stem, telling_words
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.models import Event
from evennia_ai.turns.spend_book import Amount

# Letters of Persian and Hindi, and the parts of an emoji, are joined or kept apart by these.
_JOINERS = "\u200c\u200d"
# What requests are for, in the words of people.
PURPOSES = {
    "awake": "turn",
    "unasked": "unasked turn",
    "sleep": "dream",
    "pre_compaction": "extraction",
    "memory": "memory extraction",
    "embedding": "embeddings",
    "probe": "check of the model",
    "trial": "test of the model",
}
# Who is not in the game any more: their stable id alone is known.
_GONE = "somebody who is gone ({})"
# Stands before each further line of a record.
_CONTINUED = "\n    | "


def escaped(text: object) -> str:
    """A stored text as it is, without colour, links or inline functions; tabs become spaces."""
    return literal("".join(c if _is_shown(c) else " " for c in str(text)))


def as_record(text: object) -> str:
    """One record of a listing, escaped; its further lines are marked as parts of it."""
    return escaped(str(text).replace("\n", _CONTINUED))


def as_records(records: Iterable[object]) -> str:
    """Several records, a line each."""
    return "\n".join(map(as_record, records))


def as_json(value: object) -> str:
    """A value as JSON, escaped; invisible characters are written as JSON's escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return literal("".join(c if _is_shown(c) else json.dumps(c)[1:-1] for c in text))


def _is_shown(char: str) -> bool:
    return char.isprintable() or char == "\n" or char in _JOINERS


def marked(text: str, query: str) -> list[tuple[str, bool]]:
    """A text in parts, and which of them is looked for.

    That is the query as it was typed, or, where it is nowhere, each of its telling words.
    """
    whole = re.compile(f"({re.escape(query)})", re.I)
    if query and whole.search(text):
        return [(part, place % 2 == 1) for place, part in enumerate(whole.split(text)) if part]
    wanted, code = telling_words(query), table_of(query).code
    parts = filter(None, re.split(r"(\w+)", text))
    return [(part, stem(folded(part), code) in wanted) for part in parts]


def phrase(form: str, value: object) -> str:
    """A text with a value in it; empty if there is no value, or it is 0."""
    return form.format(value) if value else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 message``, ``1,200 messages``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}s"


def cell(text: object) -> str:
    """A text for a table's cell: one line, without anything Evennia reads as markup."""
    shown = str(text).replace("|", "¦")
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        shown = shown.replace("$", "")
    return " ".join(shown.split())


def short(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    if len(text) > most:
        text = f"{text[:most]}…"
    return text


def moment(iso: str) -> str:
    """A stored time, to the minute: ``2026-01-31 18:05``."""
    return str(iso)[:16].replace("T", " ")


def ago(seconds: float) -> str:
    """How long ago something was: ``12 minutes ago``, ``1 hour ago``, ``just now``."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def private_to(audience: str) -> str:
    """Whom something is private to, by the names that strangers know; empty for what is public.

    Who is not in the game any more, such as a guest who has quit, has no name there.
    """
    if audience == STAFF:
        return "staff"
    if not is_private(audience):
        return ""
    names = []
    for each in members(audience):
        person = find(each)
        names.append(name_of(person) if person else _GONE.format(each))
    return ", ".join(sorted(names))


def audience_mark(audience: str) -> str:
    """How a listing marks what is not public: ``[private: Bob] ``, ``[staff] ``, or nothing."""
    if audience == STAFF:
        return "[staff] "
    return phrase("[private: {}] ", private_to(audience))


def speaker_label(message: Message, own_name: str) -> str:
    """Whose a message is, in words."""
    if message.role == "assistant":
        return own_name
    if message.role == "tool":
        return f"result of {message.name or 'a tool'}"
    if message.is_summary:
        return "summary"
    return message.speaker_name or message.role


def price(cost: float | None) -> str:
    """What something cost, in words; the price of some models is not known."""
    if cost is None:
        return "no price known"
    return phrase("${:.4f}", cost) or "$0"


def price_of(spent: Amount) -> str:
    """What calls cost together, in words; of some the price may not be known."""
    if spent.calls and spent.unpriced >= spent.calls:
        return price(None)
    return price(spent.cost) + phrase(" + {} of unknown price", spent.unpriced)


def cuts(event: TokenBudget) -> list[str]:
    """What was left out, and why."""
    lines = []
    if event.left_out:
        oldest = counted(event.left_out, "oldest message")
        lines.append(f"Left out: the {oldest}, up to {event.left_until}: no room beside the newer")
    return [*lines, *(f"Note: {note}" for note in event.notes)]


def request_lines(event: TokenBudget) -> list[str]:
    """A request: when, what for, its regions, the reply, what was left out and why."""
    tokens = f"in {event.prompt_tokens:,}, out {event.completion_tokens:,} tokens"
    head = f"{moment(utc_iso(event.at))} {event.purpose}: {event}"
    return [head, f"model {event.model}, {tokens}", *cuts(event)]


def event_line(event: Event) -> str:
    """An event of the log as people read it, with the names of accounts.

    Characters stay stable ids: who acts behind a mask has no name here.
    """
    facts = dict(event.facts)
    for key, value in facts.items():
        if isinstance(value, str) and STABLE_ID.fullmatch(value) and value.startswith("a"):
            facts[key] = getattr(find(value), "key", _GONE.format(value))
    told = ", ".join(f"{key} {value}" for key, value in facts.items())
    return f"{moment(utc_iso(event.at))} {event.assistant} {event.kind}: {told}"


class Slices(Sequence[Any]):
    """`count` items; `read` returns those from one index up to another when they are shown."""

    def __init__(self, count: int, read: Callable[[int, int], Sequence[Any]]):
        self._count, self._read = count, read

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, wanted: Any) -> Any:  # pages ask for slices
        return self._read(*wanted.indices(self._count)[:2])
