"""Answers a question from what people told: searches, quotes, or says it does not know.

Matching is plain: the stems of words that a question and a sentence share. A question that names
somebody is only answered by sentences about them.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import regex

from evennia_ai.language.script import akin, folded, meets, size
from evennia_ai.language.tables import Table, language_of, spoken, table_of
from evennia_ai.language.words import CUT, capitals, content_words, words
from evennia_ai.llm_interaction.offline import prose
from evennia_ai.llm_interaction.offline.acts import Act, acts_of, read_acts, told_part, vocative
from evennia_ai.llm_interaction.offline.prose import (
    beginning,
    frame_of,
    holds_word,
    line_for,
    root,
    root_set,
    roots_of,
)
from evennia_ai.llm_interaction.offline.transcript import (
    LEDGER,
    SOURCES,
    SUMMARY,
    Line,
    Talk,
    ToolCall,
    found_lines,
    quotes_of,
    without_echo,
)

MAX_CLAIMS = 4000
# First hits of the search that may answer without a word of the question.
FOUND = 3
MAX_PASSAGE = 240  # characters of sentences that are quoted together
# Shares of a question's words that a sentence must hold to count as the answer: less where the
# kind of answer shows, as in a number or a time.
SURE, SURE_OF_KIND = 0.8, 0.67
NEAR = 0.3  # the least share of what is near a question that names nobody
MAX_QUOTE = 500
MAX_SEARCH = 380  # characters; the tool takes 400
MAX_NEAR = 2  # sentences that are offered
MAX_SEEN = 800  # characters of what a look showed
MAX_NAME, NAMED = 6, 0.5  # words of a thing's name, and the share of them that a question has
MAX_RECALLED, MAX_RECALLED_CHARS = 5, 200


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a statement, with those behind it that go on about the same."""

    line: Line  # where it was told
    quote: str
    roots: frozenset[str]  # stems of its words; `I` is the speaker's name
    names: frozenset[str]  # in lower case

    @property
    def rank(self) -> tuple[int, str, int]:
        """Place in time: of two claims the later has the greater."""
        if self.line.source == SUMMARY:
            return (-1, self.line.at, 0)
        return (1, "", self.line.order) if self.line.order >= 0 else (0, self.line.at, 0)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read; words are stems."""

    kind: str  # of answer, or `""` where it asks for yes or no, or for anything
    names: frozenset[str]  # that an answer must hold
    terms: frozenset[str]  # what else it asks about
    roots: frozenset[str]  # all its words
    table: Table  # of its language


@dataclass(frozen=True, slots=True)
class Match:
    """A claim that may answer, its place in the order, its share of what is asked about."""

    claim: Claim
    score: float
    share: float
    sure: bool  # whether it is the answer


def read_claims(lines: Iterable[Line], me: str, others: Iterable[str] = ()) -> list[Claim]:
    """The claims in the lines that people told `me` or `others`, oldest first, each once."""
    called = (me, *others)
    best: dict[tuple[str, ...], Claim] = {}
    for line in lines:
        for claim in _claims_of(line, called, spoken().code):
            key = (line.who, *words(claim.quote))
            # The one whose words are from nearest to who said them is quoted.
            first, other = sorted(
                (best.get(key, claim), claim), key=lambda each: SOURCES.index(each.line.source)
            )
            one, two = first.line, other.line
            same = replace(one, id=one.id or two.id, order=max(one.order, two.order))
            best[key] = replace(first, line=same)
        if len(best) > MAX_CLAIMS:
            break
    return sorted(best.values(), key=lambda claim: claim.rank)


@lru_cache(maxsize=4096)
def _claims_of(line: Line, called: tuple[str, ...], language: str) -> tuple[Claim, ...]:
    """The claims of a line in a talk of this language; cached, as each turn asks again.

    `called` are the names of assistants, first of the one that was told.
    """
    me, text = called[0], reduce(vocative, called, without_echo(line.text))
    passages: list[str] = []
    back = table_of(line.text).expression("speech", "back")
    for part in prose.sentences(text):
        is_cut = line.source == SUMMARY and CUT in (part[0], part[-1])
        if prose.is_question(part) or prose.is_nonsense(part) or is_cut:
            passages.append("")
        elif passages and 0 < len(passages[-1]) < MAX_PASSAGE and back.match(part):
            passages[-1] += f" {part}"
        elif any(act.kind == "fact" for act in acts_of(part, line.who)):
            passages.append(part)
    told = (told_part(passage.strip(f"{CUT} "), me) for passage in passages if passage)
    return tuple(
        Claim(line, text, _roots(text, line.who, me), prose.names_in(text)) for text in told
    )


def _roots(text: str, speaker: str, listener: str) -> frozenset[str]:
    """Stems of the words of a text, and of the names that ``I`` and ``you`` stand for."""
    table = table_of(text)
    meant = {"first_person": speaker, "second_person": listener}
    names = (name for key, name in meant.items() if holds_word(text, table, key))
    return roots_of(" ".join((text, *names)), table.code)


def read_question(text: str, asker: str, me: str, known: Set[str]) -> Question:
    """Read a question: ``my`` is the asker's, ``your`` is `me`'s, `known` are lower-case names."""
    asked = " ".join(part for part in prose.sentences(text) if prose.is_question(part)) or text
    lower = asked.lower().replace("’", "'")
    table = table_of(asked)
    kinds = table.expressions("questions").items()
    kind = next((kind for kind, pattern in kinds if pattern.search(lower)), "")
    skipped = root_set(table.get("heads", kind)) | roots_of(me, table.code)
    skipped |= frame_of(table)
    people = known | capitals(asked)  # a question begins with the word that asks
    names: set[str] = set()
    terms: set[str] = set()
    has_forms = not table.data.get("exact_stems")
    told = {root(word, table.code): word for word in content_words(lower, table, ("stop",))}
    # `Where do I come from?` has nothing but words that only frame other questions.
    is_own = skipped.issuperset(told) and holds_word(lower, table, "first_person")
    if is_own or holds_word(lower, table, "first_person_owner"):
        names |= roots_of(asker, table.code)
    for stem, word in told.items():
        if is_own or stem not in skipped:
            named = word in people or (has_forms and any(akin(word, name) for name in people))
            (names if named else terms).add(stem)
    return Question(kind, frozenset(names), frozenset(terms), _roots(lower, asker, me), table)


def _shared(asked: Set[str], told: Set[str], table: Table, language: str = "") -> frozenset[str]:
    """Which of some stems stand among others, in any form; as they are in another `language`."""
    if table.data.get("exact_stems") or (language and language != table.code):
        return frozenset(asked & told)
    return frozenset(a for a in asked if a in told or any(meets(a, t) for t in told))


def matches(question: Question, claims: Sequence[Claim], places: Mapping[str, int]) -> list[Match]:
    """The claims, given oldest first, that may answer a question, best first.

    `places` are those of memories' ids among the hits of the search, from 0.
    """
    names, terms = question.names, question.terms
    least = SURE if question.kind in ("", "what", "why") else SURE_OF_KIND
    # A single word or name is too little to rest on, unless it is all that is asked about, or
    # whoever told it is asked about.
    is_enough = len(names | terms) > 1 or (not terms and question.kind in ("who", "what", ""))
    candidates, frame = [], frame_of(question.table)
    for number, claim in enumerate(claims):
        held = _shared(names, claim.roots, question.table)
        told = roots_of(claim.line.who, question.table.code)
        named = len(held | _shared(names, told, question.table)) / max(1, len(names))
        common = _shared(terms, claim.roots, question.table, language_of(claim.quote))
        share = len(common) / len(terms) if terms else float(bool(names))
        if named < 0.5 if names else share < NEAR:
            continue
        if terms and terms <= frame and not common:
            continue  # words that frame a question are too little without one of them
        # Who told it, or asks, is no word that both share: then the search must have found it, and
        # it must hold what is asked for.
        fits = fits_kind(question, claim)
        is_found = fits and places.get(claim.line.id, FOUND) < FOUND
        said = roots_of(claim.quote, table_of(claim.quote).code)
        if terms and not (common or is_found or _shared(names, said, question.table)):
            continue
        sure = held == names and share >= least and fits
        sure = sure and (is_enough or not told.isdisjoint(question.roots))
        place = places.get(claim.line.id, len(places) + 1)
        score = share + 0.6 * named + 0.3 * fits + sure + 0.5 / (1 + place / 3)
        score += number / (100 * len(claims))  # of equals the latest
        candidates.append(Match(claim, score, share, sure))
    return sorted(candidates, key=lambda match: -match.score)


def fits_kind(question: Question, claim: Claim) -> bool:
    """Whether a claim holds something of the kind asked for that the question does not hold."""
    if question.kind == "who":
        speaker = roots_of(claim.line.who) & claim.roots
        if (roots_of(" ".join(claim.names)) | speaker) - question.roots:
            return True
    signs_of = question.table.expressions("signs")
    sign = signs_of.get(question.kind)
    if sign is None:
        return True
    signs = {at[at.lastindex or 0] for at in sign.finditer(claim.quote)}
    if question.kind == "where":
        signs = {
            each for each in signs if not ("when" in signs_of and signs_of["when"].fullmatch(each))
        }
    if question.kind in ("why", "name"):
        return bool(signs)
    return any(roots_of(each) - question.roots for each in signs)


def shows(question: Question, text: str) -> bool:
    """Whether a text that nobody told holds something of the kind asked for."""
    roots = roots_of(text, question.table.code)
    return fits_kind(question, Claim(Line("", text), text, roots, prose.names_in(text)))


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
    claims = read_claims(lines, talk.me, talk.assistants)
    people = (*(line.who for line in lines), *talk.people)
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
    quote = beginning(" ".join(told_part(said, me).split()), MAX_QUOTE)
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
    people = {*words(" ".join((talk.me, *talk.people)))}
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
    lead = "" if shows(asked, text) else line_for("nearest", act.text, act.who) + " "
    return Answer(lead + text, sure=not lead)


def source(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What the last answer rests on: its quotes, with the ids they stand under."""
    lines, said = talk.evidence(), []
    quoting = next((reply for reply in reversed(talk.replies) if quotes_of(reply)), "")
    for quote in quotes_of(quoting)[:MAX_NEAR]:
        line = _line_of(quote, lines)
        call = _search(f"{quote.who} {quote.text}", talk, tools)
        if call and not (line and line.id):
            return Answer(call=call)
        if line is None:
            said.append(line_for("said", words=quote.text))
        else:
            text = quoted(line, quote.text, act.who, talk.me)
            said.append(line_for("source" if line.id else "source_here", quote=text, id=line.id))
    return Answer(" ".join(said) or line_for("no_source", act.text, act.who))


def _line_of(quote: Line, lines: list[Line]) -> Line | None:
    """The line that holds a quote: one with an id, by the one quoted, the most original first."""

    def distance(line: Line) -> tuple[bool, bool, int]:
        other = bool(quote.who) and line.who.lower() != quote.who.lower()
        return not line.id, other, SOURCES.index(line.source)

    wanted = f" {' '.join(words(quote.text))} "
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
    texts = list(dict.fromkeys(beginning(text.strip(), MAX_RECALLED_CHARS) for text in texts))
    if not texts:
        return Answer(line_for("unknown", act.text, act.who))
    return Answer(line_for("told_by_you", words='" "'.join(texts[-MAX_RECALLED:])))
