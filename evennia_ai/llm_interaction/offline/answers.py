"""Answers a question from what people told: searches, quotes, or says it does not know."""

import re
from collections.abc import Set
from dataclasses import dataclass

from evennia_ai.language.words import words
from evennia_ai.llm_interaction.offline.acts import Act, read_acts, told_part
from evennia_ai.llm_interaction.offline.matching import latest, matches, read_claims, read_question
from evennia_ai.llm_interaction.offline.reply import line_for
from evennia_ai.llm_interaction.offline.transcript import (
    LEDGER,
    SOURCES,
    Line,
    Quote,
    Talk,
    found_lines,
    quotes_of,
)

MAX_QUOTE = 500
MAX_SEARCH = 380  # characters; the tool takes 400
MAX_NEAR = 2  # sentences that are offered
MAX_RECALLED = 5
_RECALL_SEARCH = "remember please note don't forget"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's text, or the search that must come first; `sure` where it is no mere offer."""

    text: str = ""
    search: str = ""
    sure: bool = False


def answer(question: str, asker: str, talk: Talk, tools: Set[str]) -> Answer:
    """Answer `asker`'s question, or name the search that should come before.

    The question is searched for as it was asked, and where that brings no answer, once more by
    its names and content words. What the searches in `talk` found is evidence.
    """
    # In a game an unframed line may be a description; in a plain chat it is the user's.
    lines = [line for line in talk.evidence() if line.who or line.verb == "note" or not asker]
    claims = read_claims(lines, talk.me)
    names = {
        name for who in (*(line.who for line in lines), *talk.present()) for name in words(who)
    }
    asked = read_question(question, asker, talk.me, names.union(*(claim.names for claim in claims)))
    places: dict[str, int] = {}  # of the hits of the search for the question itself
    for call in talk.done:
        if call.name == "search_memory" and call.arguments.get("query") == question[:MAX_SEARCH]:
            for place, line in enumerate(found_lines(call.result)):
                places.setdefault(line.id, place)
    found = matches(asked, claims, places)
    sure = bool(found) and found[0].sure
    for search in (question[:MAX_SEARCH], "" if sure else asked.keywords[:MAX_SEARCH]):
        if search and "search_memory" in tools and not _was_searched(search, talk):
            return Answer(search=search)
    if not found:
        return Answer(line_for("unknown", question, asker))
    best, last = found[0], latest(asked, found[0], found)
    near = [match for match in found[:MAX_NEAR] if match.share or not best.share]
    chosen = [best, last] if last is not best else [best] if sure else near
    if sure and last.share >= best.share:
        chosen = [last]
    quotes = dict.fromkeys(
        quoted(match.claim.line, match.claim.quote, asker, talk.me) for match in chosen
    )
    if sure:
        return Answer(" Later ".join(quotes).replace("Later You", "Later you"), sure=True)
    offer = " ".join([line_for("nearest", question, asker), *quotes])
    return Answer(offer.replace("know: You", "know: you"))


def _was_searched(search: str, talk: Talk) -> bool:
    """Whether this turn made a search already."""
    searches = (call for call in talk.done if call.name == "search_memory")
    return any(call.arguments.get("query") == search for call in searches)


def quoted(line: Line, said: str, asker: str, me: str) -> str:
    """Words of a line as they are said to `asker`, with who told them."""
    quote = re.sub(r"\s+", " ", told_part(said, me)).strip()
    if len(quote) > MAX_QUOTE:
        quote = quote[: MAX_QUOTE - 1].rsplit(" ", 1)[0] + "…"
    if not line.who or line.verb == "note":
        return f"I have it noted: {quote}"
    if line.verb == "poses":
        return f"I saw it: {quote}"
    own = line.who.lower() == asker.lower()
    if own and line.source == LEDGER:
        return f'You asked me to keep in mind: "{quote}"'
    return f'{"You" if own else line.who} told me: "{quote}"'


def source(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What the last answer rests on: its quotes, with the ids they stand under."""
    lines, said = talk.evidence(), []
    quoting = next((reply for reply in reversed(talk.replies) if quotes_of(reply)), "")
    for quote in quotes_of(quoting)[:MAX_NEAR]:
        line = _line_of(quote, lines)
        who = "" if quote.who == "You" else quote.who
        search = f"{who} {quote.words}".strip()[:MAX_SEARCH]
        if not (line and line.id) and "search_memory" in tools and not _was_searched(search, talk):
            return Answer(search=search)
        if line is None:
            said.append(f'I only know that I said: "{quote.words}"')
            continue
        cited = f"(memory {line.id})" if line.id else "It was said right here, just now."
        said.append(f"{quoted(line, quote.words, act.who, talk.me)} {cited}")
    return Answer(" ".join(said) or line_for("sourceless", act.text, act.who))


def _line_of(quote: Quote, lines: list[Line]) -> Line | None:
    """The line that holds a quote: one with an id, by the one quoted, the most original first."""

    def distance(line: Line) -> tuple[bool, bool, int]:
        other = quote.who not in ("", "You") and line.who.lower() != quote.who.lower()
        return not line.id, other, SOURCES.index(line.source)

    wanted = f" {' '.join(words(quote.words))} "
    holding = [line for line in lines if wanted in f" {' '.join(words(line.text))} "]
    return min(holding, key=distance, default=None)


def recall(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What this speaker asked to have remembered, or told, the latest last."""
    search = f"{act.who} {_RECALL_SEARCH}".strip()
    if "search_memory" in tools and not _was_searched(search, talk):
        return Answer(search=search)
    told = [line for line in talk.evidence() if line.who and line.who == act.who]
    told.sort(key=lambda line: (line.order >= 0, line.at, line.order))
    kept = [found for line in told for found in read_acts(line, talk.me)]
    asked = [found.text for found in kept if found.kind == "remember"]
    if not asked or re.search(r"\b(?:about|of) me\b", act.text, re.IGNORECASE):
        asked = [found.text for found in kept if found.kind in ("fact", "remember")]
    quotes = list(dict.fromkeys(f'"{text.strip()[:200]}"' for text in asked))[-MAX_RECALLED:]
    said = f"You told me: {' '.join(quotes)}" if quotes else line_for("unknown", act.text, act.who)
    return Answer(said)
