"""Answers a question from what was told: searches, weighs, quotes, or says it does not know."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from evennia_ai.offline import acts, lexicon, match, question
from evennia_ai.offline.claims import Evidence, evidence_of
from evennia_ai.offline.found import found_lines
from evennia_ai.offline.lines import LEDGER, Line
from evennia_ai.offline.match import Match
from evennia_ai.offline.question import Query
from evennia_ai.offline.smalltalk import line_for
from evennia_ai.offline.transcript import Done, Talk
from evennia_ai.offline.updates import update_of
from evennia_ai.offline.vocabulary import KIND_HINTS

MAX_SEARCHES = 16
MAX_QUOTE = 500
MAX_SEARCH = 380  # characters; the tool takes 400
_CONFIDENT = 0.85
_ALIKE = match.TIE
# Which words a search holds for each concept of the question's, and how many: also others of a
# kind (`@kin`), as a fact may name no more than one; none of them; what only hints at it.
_MEANINGS = {concept: known for concept, known in lexicon.MEMBERS.items() if concept[0] != "@"}
_WIDER = ((lexicon.MEMBERS, 5), (_MEANINGS, 14), (lexicon.HINTING, 14))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, or what has to be searched first.

    Attributes:
        text: What to say; ``""`` while a search is wanted.
        searches: What to search for; empty when the answer stands.
        known: Whether the evidence supports it.
    """

    text: str = ""
    searches: tuple[str, ...] = ()
    known: bool = False


def evidence_in(talk: Talk) -> Evidence:
    """Everything the request shows that somebody else said or that was noted of it, read."""
    return evidence_of(lines_in(talk), talk.me, talk.present())


def lines_in(talk: Talk) -> list[Line]:
    """The lines a request shows: heard, noted and found."""
    lines: list[Line] = [*talk.notes, *talk.heard]
    for done in (*talk.before, *talk.done):
        if done.name in ("search_memory", "expand_memory"):
            lines.extend(found_lines(done.result))
    return lines


def answer(text: str, asker: str, talk: Talk, tools: Set[str], cite: bool = False) -> Answer:
    """Answer one question.

    Args:
        text: The question.
        asker: Name of the one who asks.
        talk: The request; its search results so far are evidence.
        tools: Names of the tools offered.
        cite: Whether to name the memory the answer rests on.

    Returns:
        The answer, or the search that should come before it.
    """
    evidence = evidence_in(talk)
    query = question.ask(text, asker or "?", talk.me, evidence.names)
    matches = match.best_matches(query, evidence)
    enough = "search_memory" not in tools or _is_enough(matches, talk.done)
    if not enough and (searches := _next_searches(query, evidence, talk.done)):
        return Answer(searches=searches)
    if not matches:
        return Answer(_unknown(query, evidence, asker, talk))
    if query.kind == "about":
        return Answer(_told(matches[:3], asker, talk.me, cite), known=True)
    best, later = matches[0], update_of(query, matches[0].claim, evidence)
    if later is None:
        return Answer(_told(_alike(query, matches), asker, talk.me, cite), known=True)
    both = _told([best, Match(later, best.score)], asker, talk.me, cite)
    return Answer(f"{line_for('changed', text, asker, talk.me)} {both}", known=True)


def _alike(query: Query, matches: list[Match]) -> list[Match]:
    """The best match, and where it is asked who, another that answers it just as well.

    Two may both have a feud with somebody, or one is told to be married to two; the rules cannot
    tell which holds.
    """
    best, *others = matches
    if query.kind not in ("who", "identity"):
        return [best]
    same = {word.name for word in best.claim.words}
    for other in others:
        as_good = abs(other.score - best.score) < _ALIKE and not other.claim.whole
        if as_good and {word.name for word in other.claim.words} - same:
            return [best, other]
    return [best]


def _unknown(query: Query, evidence: Evidence, asker: str, talk: Talk) -> str:
    """That it does not know, and what comes nearest, quoted for the asker to judge."""
    near = match.nearest(query, evidence, _places(talk.done), _on_top(query, talk.done))
    quotes = dict.fromkeys(_quoted(found, asker, talk.me) for found in near)
    said = line_for("nearest" if near else "unknown", query.text, asker, talk.me)
    return " ".join([said, *quotes])


def _places(done: list[Done]) -> dict[str, int]:
    """The best place of each memory among the hits of the searches, from 0."""
    places: dict[str, int] = {}
    for call in done:
        if call.name == "search_memory":
            for place, line in enumerate(found_lines(call.result)):
                places[line.id] = min(place, places.get(line.id, place))
    return places


def _on_top(query: Query, done: list[Done]) -> set[str]:
    """The ids that the search for a question's own words put first."""
    for call in done:
        if call.name == "search_memory" and call.arguments.get("query") == query.text[:MAX_SEARCH]:
            return {line.id for line in found_lines(call.result)[:_TOP]}
    return set()


_TOP = 3


def _is_enough(matches: list[Match], done: list[Done]) -> bool:
    searched = [call for call in done if call.name == "search_memory"]
    if len(searched) >= MAX_SEARCHES:
        return True
    return bool(searched) and bool(matches) and matches[0].score >= _CONFIDENT


def _next_searches(query: Query, evidence: Evidence, done: list[Done]) -> tuple[str, ...]:
    """As asked and in other words at once, so that a later fact is not missed; then by things."""
    wider = (_in_other_words(query, evidence, *words) for words in _WIDER)
    first = (query.text, query.keywords(), *wider, _by_names(query, evidence))
    tried = {str(call.arguments.get("query")) for call in done if call.name == "search_memory"}
    for searches in (first, _by_kind(query)):
        fresh = dict.fromkeys(search[:MAX_SEARCH] for search in searches if search)
        if left := tuple(search for search in fresh if search not in tried):
            return left
    return ()


def _in_other_words(
    query: Query, evidence: Evidence, known: Mapping[str, tuple[str, ...]], width: int
) -> str:
    """The names and people they stand for, with other words for what is asked."""
    found = [*query.names, *_aliases(query, evidence)]
    for term in query.terms:
        found.append(term.word.lower)
        for concept in sorted(term.word.concepts | term.word.hints):
            found.extend(known.get(concept, ())[:width])
    if query.kind == "name":
        found.extend(("called", "name", "named", "known", "knew", "calls"))
    return " ".join(dict.fromkeys(found))[:MAX_SEARCH]


def _by_kind(query: Query) -> Iterator[str]:
    """The names with things of the kind asked for: a fact may name no more than the thing."""
    kinds = {query.wanted, *(term.head for term in query.terms)} - {"", "@place"}
    kinds |= {f"@{kind}" for kind, done in KIND_HINTS.items() if query.has(done)}
    for concept in (told for kind in sorted(kinds) for told in _DONE.get(kind, (kind,))):
        members = lexicon.MEMBERS.get(concept, ())
        for start in range(0, len(members), _AT_ONCE):
            yield " ".join([*query.names, *members[start : start + _AT_ONCE]])


# What tells what somebody does.
_DONE = {"@doing": ("work", "@trade")}
_AT_ONCE = 24  # more things in one search hide one another


def _by_names(query: Query, evidence: Evidence) -> str:
    living = [term.word.lower for term in query.terms if term.hard]
    return " ".join([*_aliases(query, evidence), *query.names, *living])


def _aliases(query: Query, evidence: Evidence) -> list[str]:
    found: list[str] = []
    for (owner, kin), names in sorted(evidence.aliases.items()):
        if owner in query.names and any(term.word.fold == kin for term in query.terms):
            found.extend(sorted(names))
        elif names & set(query.names):
            found.extend((owner, kin))
    return found


def _told(wanted: list[Match], asker: str, me: str, cite: bool) -> str:
    quoted = list(dict.fromkeys(_quoted(found, asker, me) for found in wanted))
    said = " ".join(quoted)
    if cite:
        ids = [found.claim.line.id for found in wanted if found.claim.line.id]
        said += f" (memory {', '.join(ids)})" if ids else " It was said right here, just now."
    return said


def _quoted(found: Match, asker: str, me: str) -> str:
    return quoted(found.claim.line, found.claim.quote, asker, me)


def quoted(line: Line, words: str, asker: str, me: str) -> str:
    """Words of a line as they are said to `asker`: with who told them, without other frames."""
    quote = _shortened(acts.told_part(words, me))
    if not line.who or line.verb == "note":
        return f"I have it noted: {quote}"
    if line.verb == "poses":
        return f"I saw it: {quote}"
    own = line.who.lower() == asker.lower()
    if own and line.source == LEDGER:
        return f'You asked me to keep in mind: "{quote}"'
    return f'{"You" if own else line.who} told me: "{quote}"'


def _shortened(quote: str) -> str:
    quote = re.sub(r"\s+", " ", quote).strip()
    return quote if len(quote) <= MAX_QUOTE else quote[: MAX_QUOTE - 1].rsplit(" ", 1)[0] + "…"
