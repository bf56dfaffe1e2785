"""Answers a question from what people told: searches, quotes, or says it does not know."""

from collections.abc import Set
from dataclasses import dataclass

import regex

from evennia_ai.language.script import folded, size
from evennia_ai.language.tables import spoken, table_of
from evennia_ai.language.words import content_words, words
from evennia_ai.llm_interaction.offline.acts import Act, read_acts, told_part
from evennia_ai.llm_interaction.offline.matching import (
    Claim,
    fits_kind,
    matches,
    read_claims,
    read_question,
)
from evennia_ai.llm_interaction.offline.prose import names_in, root, roots_of
from evennia_ai.llm_interaction.offline.reply import ToolCall, line_for
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
MAX_SEEN = 800  # characters of what a look showed
MAX_NAME, NAMED = 6, 0.5  # words of a thing's name, and the share of them that a question has
MAX_RECALLED, MAX_RECALLED_CHARS = 5, 200


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's text, or the call that must come first; `sure` where it is no mere offer."""

    text: str = ""
    call: ToolCall | None = None
    sure: bool = False


def answer(question: str, asker: str, talk: Talk, tools: Set[str]) -> Answer:
    """Answer `asker`'s question, or name the search that should come before.

    The question is searched for as it was asked. What the searches in `talk` found is evidence.
    """
    if call := _search(question, talk, tools):
        return Answer(call=call)
    # In a game an unframed line may be a description; in a plain chat it is the user's.
    lines = [line for line in talk.evidence() if line.who or line.verb == "note" or not asker]
    claims = read_claims(lines, talk.me, talk.assistants())
    people = (*(line.who for line in lines), *talk.present())
    names = {name for who in people for name in words(who)}
    asked = read_question(question, asker, talk.me, names.union(*(claim.names for claim in claims)))
    places: dict[str, int] = {}  # of the hits of the search for the question itself
    searched = talk.result_of(ToolCall("search_memory", {"query": question.strip()[:MAX_SEARCH]}))
    for place, line in enumerate(found_lines(searched.result if searched else "")):
        places.setdefault(line.id, place)
    candidates = matches(asked, claims, places)
    if not candidates:
        return Answer(line_for("unknown", question, asker))
    best = candidates[0]
    chosen = [match for match in candidates[:MAX_NEAR] if match.share or not best.share]
    if best.sure:  # what the same person told last
        same = [m for m in candidates if m.sure and m.claim.line.who == best.claim.line.who]
        chosen = [max(same, key=lambda match: match.claim.rank)]
    said = [f" {' '.join(words(match.claim.quote))} " for match in chosen]
    quotes = [
        quoted(match.claim.line, match.claim.quote, asker, talk.me)
        for at, match in enumerate(chosen)
        if not any(each in said[at] or said[at] in each for each in said[:at])  # a note of it
    ]
    if best.sure:
        return Answer(quotes[0], sure=True)
    return Answer(" ".join([line_for("nearest", question, asker), *quotes]))


def _search(query: str, talk: Talk, tools: Set[str]) -> ToolCall | None:
    """The search for this, unless it was made in this turn or cannot be."""
    call = ToolCall("search_memory", {"query": query.strip()[:MAX_SEARCH]})
    return call if query and call.name in tools and not talk.result_of(call) else None


def quoted(line: Line, said: str, asker: str, me: str) -> str:
    """Words of a line as they are said to `asker`, with who told them."""
    quote = " ".join(told_part(said, me).split())
    if len(quote) > MAX_QUOTE:
        quote = quote[: MAX_QUOTE - 1].rsplit(" ", 1)[0] + "…"
    if not line.who or line.verb == "note":
        return line_for("noted", words=quote)
    if line.verb == "poses":
        return line_for("seen", words=quote)
    if line.who.lower() != asker.lower():
        return line_for("told", speaker=line.who, words=quote)
    return line_for("asked_by_you" if line.source == LEDGER else "told_by_you", words=quote)


def seen(act: Act, talk: Talk, tools: Set[str]) -> Answer | None:
    """What a thing in the room shows that is asked about; None if there is none.

    The room is looked at for what is in it, then the thing.
    """
    room, asked = ToolCall("look"), read_question(act.text, act.who, talk.me, frozenset())
    if room.name not in tools:
        return None
    shown = talk.result_of(room)
    if shown is None:
        return Answer(call=room)
    people = {*words(" ".join((talk.me, *talk.present())))}
    things: list[tuple[float, str]] = []
    for part in regex.split(r"[,:：、،\n]| and ", "" if shown.failed else shown.result):
        told = [word for word in content_words(part, asked.table) if word not in people]
        held = [word for word in told if root(word, asked.table.code) in asked.roots]
        if held and size(part) <= MAX_NAME:
            at = folded(part).find(held[0])
            things.append((len(held) / len(told), part.strip() if at < 0 else part[at:].strip()))
    share, name = max(things, default=(0.0, ""))
    if share < NAMED:
        return None
    look = ToolCall("look", {"target": name})
    if (found := talk.result_of(look)) is None:
        return Answer(call=look)
    text = " ".join(found.result.strip().partition("\n")[2].split())[:MAX_SEEN]
    if found.failed or not text:
        return None
    claim = Claim(Line("", text), text, roots_of(text, asked.table.code), names_in(text))
    lead = "" if fits_kind(asked, claim) else line_for("nearest", act.text, act.who) + " "
    return Answer(lead + text, sure=not lead)


def source(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What the last answer rests on: its quotes, with the ids they stand under."""
    lines, said = talk.evidence(), []
    quoting = next((reply for reply in reversed(talk.replies) if quotes_of(reply)), "")
    for quote in quotes_of(quoting)[:MAX_NEAR]:
        line = _line_of(quote, lines)
        call = _search(f"{quote.who} {quote.words}", talk, tools)
        if call and not (line and line.id):
            return Answer(call=call)
        if line is None:
            said.append(line_for("said", words=quote.words))
        else:
            text = quoted(line, quote.words, act.who, talk.me)
            said.append(line_for("source" if line.id else "source_here", quote=text, id=line.id))
    return Answer(" ".join(said) or line_for("no_source", act.text, act.who))


def _line_of(quote: Quote, lines: list[Line]) -> Line | None:
    """The line that holds a quote: one with an id, by the one quoted, the most original first."""

    def distance(line: Line) -> tuple[bool, bool, int]:
        other = bool(quote.who) and line.who.lower() != quote.who.lower()
        return not line.id, other, SOURCES.index(line.source)

    wanted = f" {' '.join(words(quote.words))} "
    holding = [line for line in lines if wanted in f" {' '.join(words(line.text))} "]
    return min(holding, key=distance, default=None)


def recall(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What this speaker asked to have remembered, or told, the latest last."""
    if call := _search(f"{act.who} {spoken().get('lists', 'recall')}", talk, tools):
        return Answer(call=call)
    told = [line for line in talk.evidence() if line.who and line.who == act.who]
    told.sort(key=lambda line: (line.order >= 0, line.at, line.order))
    acts = [each for line in told for each in read_acts(line, talk.me)]
    texts = [each.text for each in acts if each.kind == "remember"]
    if not texts or table_of(act.text).expression("speech", "about_me").search(act.text):
        texts = [each.text for each in acts if each.kind in ("fact", "remember")]
    texts = list(dict.fromkeys(text.strip()[:MAX_RECALLED_CHARS] for text in texts))
    if not texts:
        return Answer(line_for("unknown", act.text, act.who))
    return Answer(line_for("told_by_you", words='" "'.join(texts[-MAX_RECALLED:])))
