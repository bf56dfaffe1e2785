"""Answers a question from what people told: searches, quotes, or says it does not know."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from evennia_ai.language.tables import spoken, table_of
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.offline.acts import Act, read_acts, told_part
from evennia_ai.llm_interaction.offline.matching import (
    Match,
    latest,
    matches,
    read_claims,
    read_question,
)
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
MAX_RECALLED, MAX_RECALLED_CHARS = 5, 200


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
    people = (*(line.who for line in lines), *talk.present())
    names = {name for who in people for name in words(who)}
    asked = read_question(question, asker, talk.me, names.union(*(claim.names for claim in claims)))
    places: dict[str, int] = {}  # of the hits of the search for the question itself
    for call in talk.done:
        if call.name == "search_memory" and call.arguments.get("query") == question[:MAX_SEARCH]:
            for place, line in enumerate(found_lines(call.result)):
                places.setdefault(line.id, place)
    candidates = matches(asked, claims, places)
    sure = bool(candidates) and candidates[0].sure
    for search in (question[:MAX_SEARCH], "" if sure else asked.keywords[:MAX_SEARCH]):
        if search and _may_search(search, talk, tools):
            return Answer(search=search)
    if not candidates:
        return Answer(line_for("unknown", question, asker))
    return _told(candidates, latest(asked, candidates[0], candidates), question, asker, talk.me)


def _told(candidates: Sequence[Match], last: Match, question: str, asker: str, me: str) -> Answer:
    """The best candidates as quotes; `last` is what was told last about the same as the best."""
    best = candidates[0]
    if best.sure and last.share >= best.share:
        chosen = [last]
    elif best.sure or last is not best:
        chosen = list(dict.fromkeys([best, last]))
    else:
        chosen = [match for match in candidates[:MAX_NEAR] if match.share or not best.share]
    told = (quoted(match.claim.line, match.claim.quote, asker, me) for match in chosen)
    quotes = list(dict.fromkeys(told))
    if not best.sure:
        return Answer(" ".join([line_for("nearest", question, asker), *quotes]))
    if quotes[1:]:
        return Answer(line_for("later", first=quotes[0], second=quotes[1]), sure=True)
    return Answer(quotes[0], sure=True)


def _may_search(search: str, talk: Talk, tools: Set[str]) -> bool:
    """Whether it can search, and did not search for this in this turn."""
    searches = [call.arguments.get("query") for call in talk.done if call.name == "search_memory"]
    return "search_memory" in tools and search not in searches


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


def source(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What the last answer rests on: its quotes, with the ids they stand under."""
    lines, said = talk.evidence(), []
    quoting = next((reply for reply in reversed(talk.replies) if quotes_of(reply)), "")
    for quote in quotes_of(quoting)[:MAX_NEAR]:
        line = _line_of(quote, lines)
        search = f"{quote.who} {quote.words}".strip()[:MAX_SEARCH]
        if not (line and line.id) and _may_search(search, talk, tools):
            return Answer(search=search)
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
    search = f"{act.who} {spoken().get('lists', 'recall')}".strip()
    if _may_search(search, talk, tools):
        return Answer(search=search)
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
