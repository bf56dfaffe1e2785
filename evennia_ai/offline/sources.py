"""What the last answer rests on: the very words that were quoted, and the id they stand under.

Asked `how do you know that?` it must not answer the question anew: another memory could come out.
The quote of the answer is looked up among all lines shown, then searched for word by word.
"""

import re
from collections.abc import Set

from evennia_ai.offline import acts
from evennia_ai.offline.answers import Answer, lines_in, quoted
from evennia_ai.offline.lines import ECHO, SOURCES, Line, Quote, quotes_of
from evennia_ai.offline.transcript import Talk

MAX_QUOTES = 3
_MAX_SEARCH = 380


def last_answer(act: acts.Act, talk: Talk) -> str:
    """The reply to the last question of the one who asks, if it quotes something; else ``""``.

    Who asked nothing means the latest answer.
    """
    asked = _last_question(act, talk)
    replies = list(zip(talk.replies, talk.replied_at, strict=True))
    for reply, heard in replies if asked >= 0 else reversed(replies):
        if heard > asked and quotes_of(reply):
            return reply
    return ""


def _last_question(act: acts.Act, talk: Talk) -> int:
    """Index of the last line with a question by the one who asks; -1 where there is none."""
    for index in range(len(talk.heard) - 1, -1, -1):
        line = talk.heard[index]
        if line.who == act.who and _asks(line, talk.me):
            return index
    return -1


def _asks(line: Line, me: str) -> bool:
    return any(found.kind in ("question", "recall") for found in acts.read_acts(line, me))


def source_of(reply: str, asker: str, talk: Talk, tools: Set[str]) -> Answer:
    """The quotes of a reply with the ids they stand under, or the searches that find them."""
    lines = [line for line in lines_in(talk) if line.who != talk.me]
    tried = {str(call.arguments.get("query")) for call in talk.done}
    said, searches = [], []
    for quote in quotes_of(reply)[:MAX_QUOTES]:
        line = _line_of(quote, lines)
        search = f"{_named(quote)} {quote.words}".strip()[:_MAX_SEARCH]
        if (
            (not line or not line.id or line.source == ECHO)
            and "search_memory" in tools
            and search not in tried
        ):
            searches.append(search)
        said.append(_cited(quote, line, asker, talk.me))
    return Answer(searches=tuple(searches)) if searches else Answer(" ".join(said), known=True)


def _line_of(quote: Quote, lines: list[Line]) -> Line | None:
    """The line that holds a quote: one with an id, by the one quoted, the most original first."""
    holding = [line for line in lines if _holds(line, quote)]
    return min(holding, key=lambda line: _distance(line, quote), default=None)


def _distance(line: Line, quote: Quote) -> tuple[bool, bool, int]:
    who = _named(quote).lower()
    other = bool(who) and line.who.lower() != who
    return not line.id, other, SOURCES.index(line.source)


def _named(quote: Quote) -> str:
    return "" if quote.who == "You" else quote.who


def _holds(line: Line, quote: Quote) -> bool:
    return _plain(quote.words) in _plain(line.text)


def _plain(text: str) -> str:
    return f" {re.sub(r'[^0-9a-z]+', ' ', text.lower()).strip()} "


def _cited(quote: Quote, line: Line | None, asker: str, me: str) -> str:
    if line is None:
        return f'I only know that I said: "{quote.words}"'
    said = quoted(line, quote.words, asker, me)
    if line.id:
        return f"{said} (memory {line.id})"
    return f"{said} It was said right here, just now." if line.order >= 0 else said
