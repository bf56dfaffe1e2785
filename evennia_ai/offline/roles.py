"""Who does it to whom, and whether a claim says that it is not so."""

import re

from evennia_ai.offline import lexicon, words
from evennia_ai.offline.claims import Claim
from evennia_ai.offline.coverage import strength
from evennia_ai.offline.question import Query
from evennia_ai.offline.words import Word

_NOBODY = lexicon.word_set("nobody")
_NEGATIONS = lexicon.word_set("not never no nor neither hardly none longer without")
# Relations in which it matters who does it to whom.
_DIRECTED = lexicon.word_set(
    "owe lend give teach kill steal sell buy love fear hate save promise send beat boss"
)
# Words of such a relation whose subject is the one it is done to: who learns is taught.
_RECEIVING = lexicon.word_set(
    "lend loan learn study get receive inherit come frighten scare terrify spook petrify unnerve "
    "employ hire die perish drown"
)


def polarity(query: Query, claim: Claim) -> float:
    """1, or less where a claim denies what is asked, or says that it once was so."""
    if query.kind == "yesno" or query.has("owe") or any(w.lower in _NEGATIONS for w in query.words):
        return 1.0
    if (
        _is_supposed(query, claim)
        or _dislikes(query, claim)
        or _has_ceased(query, claim)
        or (_asks_past(query) and not _tells_past(claim))
    ):
        return _DENIED
    past = any(w.lower in _PAST for w in query.words)
    used_to = not past and any(
        a.lower == "used" and b.lower == "to"
        for a, b in zip(claim.words, claim.words[1:], strict=False)
    )
    negations = _NEGATIONS if query.kind == "who" else _NEGATIONS | _NOBODY
    denied = any(
        word.lower in negations and not word.part and _denies(query, claim.words, i)
        for i, word in enumerate(claim.words)
    )
    # The whole sentence is quoted: `no longer the sheriff; Maud took over` says it all.
    goes_on = claim.near or claim.whole or _goes_on(claim.quote)
    told = (denied and goes_on) or (used_to and claim.whole)
    return _DENIED if (denied or used_to) and not told else 1.0


_DENIED = 0.6


def _is_supposed(query: Query, claim: Claim) -> bool:
    """Whether a claim only holds on a condition that nobody asked of: `if it rains, I stay in`."""
    start = [word.lower for word in claim.words[:2]]
    asked = any(word.lower in ("if", "when", "would", "will") for word in query.words)
    return start == ["if", "it"] and not asked


def _dislikes(query: Query, claim: Claim) -> bool:
    """Whether a claim tells of dislike where it is asked what is liked."""
    felt = {concept for word in (*claim.words, *claim.near) for concept in word.concepts}
    return query.has("like") and not query.has("hate") and "hate" in felt and "like" not in felt


def _asks_past(query: Query) -> bool:
    low = [word.lower for word in query.words]
    return low[-1:] == ["before"] or bool({"formerly", "previously", "former"} & set(low))


def _tells_past(claim: Claim) -> bool:
    shown = {word.lower for word in (*claim.words, *claim.near)}
    return bool(shown & _PAST_SIGNS)


_PAST_SIGNS = lexicon.word_set(
    "before used formerly once earlier previously former until not longer was were had ago old "
    "took moved"
)


def _has_ceased(query: Query, claim: Claim) -> bool:
    """Whether a claim tells that somebody gave up what is asked: `I gave up mead`."""
    if query.has("quit") or query.kind in ("why", "when"):
        return False
    verbs = {term.word.fold for term in query.terms if term.verb}
    found = claim.words
    for i, word in enumerate(found):
        if "quit" in word.concepts and word.lower not in _LEAVING:
            return not any(other.fold in verbs for other in (*found[:i], *found[i + 3 :]))
    return False


_LEAVING = lexicon.word_set("leave leaves left leaving")


def _goes_on(quote: str) -> bool:
    """Whether a denial is followed by what is so: `isn't run by Ann any more, Bob took it over`."""
    _, _, after = quote.partition(",")
    return len(after.split()) >= _SAYS_MORE and bool(_CHANGED.search(quote))


_SAYS_MORE = 3
_CHANGED = re.compile(r"\b(?:any ?more|any longer|no longer|not|n['’]t)\b.*,", re.IGNORECASE)


_PAST = lexicon.word_set("past before used formerly once earlier previously former")


def _denies(query: Query, found: tuple[Word, ...], index: int) -> bool:
    """Whether the negation at `index` stands before something the question asks for."""
    word = found[index]
    if word.concepts - lexicon.concepts(word.fold):
        return False
    if any(
        w.lower in ("but", "except", "than", "besides", "until", "other") for w in found[index:]
    ):
        return False
    after = found[index + 1 : index + 4]
    return any(strength(t, w) >= 0.9 for t in query.terms for w in after if not t.head)


def reversed_roles(query: Query, claim: Claim) -> bool:
    """Whether the claim has the one asked about at the other end of what was done."""
    if _is_opposed(query, claim) or _is_other_side(query, claim):
        return True
    if _is_acted_on(query, claim) or _lacks_doer(query, claim):
        return True
    for term in query.terms:
        directed = term.word.concepts & _DIRECTED
        if not directed:
            continue
        asked = _roles(query.words, directed) or _of_agent(query.words)
        told = _roles(claim.words, directed)
        for name, role in asked.items():
            if name in told and told[name] != role:
                return True
    return False


_OPPOSITES = (
    ("before", "after"),
    ("first", "last"),
    ("oldest", "youngest"),
    ("elder", "younger"),
    ("left", "right"),
    ("north", "south"),
    ("east", "west"),
    ("upstairs", "downstairs"),
    ("above", "below"),
    ("front", "back"),
    ("upper", "lower"),
    ("best", "worst"),
)


def _is_opposed(query: Query, claim: Claim) -> bool:
    """Whether a claim tells the other of two opposites: `before him`, asked `after him`."""
    asked = {word.lower for word in query.words}
    told = {word.lower for word in (*claim.words, *claim.near)}
    return any(
        one in asked and two in told and one not in told and two not in asked
        for pair in _OPPOSITES
        for one, two in (pair, pair[::-1])
    )


def _is_other_side(query: Query, claim: Claim) -> bool:
    """Whether a claim names only the other side of a bargain: who sold it, asked who bought it."""
    told = {word.fold for word in claim.words}
    if query.kind == "where" and query.names and told & {"sell"} and not told & _BUYING:
        return any(word.fold in _GETTING for word in query.words)
    if query.kind != "who" or any(word.lower in ("to", "from") for word in query.words):
        return False
    verbs = {term.word.fold for term in query.terms if term.verb}
    low = {word.lower for word in claim.words}
    if verbs & _BUYING and told & {"sell"} and not told & _BUYING:
        return not low & {"to", "by"}
    return bool(verbs & {"sell"} and told & _BUYING and "sell" not in told) and not low & _SELLERS


_BUYING = lexicon.word_set("buy purchase acquire pay")
_GETTING = _BUYING | {"get"}
_SELLERS = lexicon.word_set("from at off by of")


def _lacks_doer(query: Query, claim: Claim) -> bool:
    """Whether a claim tells what was done and not by whom, where that is asked: `was robbed`."""
    if query.kind != "who" or any(word.lower == "by" for word in (*claim.words, *query.words)):
        return False
    asked = [term for term in query.terms if term.needed]
    return any(
        _is_passive(claim.words, i) and claim.words[i - 1].lower not in ("a", "an", "the")
        for i, word in enumerate(claim.words)
        if i and any(strength(term, word) >= 0.75 for term in asked)
    )


def _is_acted_on(query: Query, claim: Claim) -> bool:
    """Whether somebody else acts in the claim: `what did Ben do`, told that Ann waited for Ben."""
    if not (query.kind == "what" and len(query.names) == 1 and _asks_deed(query)):
        return False
    timed = {"@day", "@month"}
    named = [w for w in claim.words if w.name and not w.owner and not w.concepts & timed]
    return (
        bool(named)
        and named[0].name not in query.names
        and query.names[0] in {word.name for word in named}
    )


def _asks_deed(query: Query) -> bool:
    low = [word.lower for word in query.words]
    return bool({"does", "did"} & set(low)) and "do" in low


def _roles(found: tuple[Word, ...], directed: frozenset[str]) -> dict[str, str]:
    """For each name of a clause, whether it does (``by``) or undergoes (``to``) the verb."""
    at = next((i for i, w in enumerate(found) if w.concepts & directed and _acts(found, i)), -1)
    if at < 0 or any(concept[0] == "@" for concept in found[at].concepts):
        return _in_debt(found) if "owe" in directed else {}
    passive = _is_passive(found, at)
    named = [(i, word) for i, word in enumerate(found) if word.name and not word.owner]
    does: dict[str, bool] = {}
    before = [
        word.name
        for i, word in named
        if i < at and not (_after_preposition(found, i) or _is_set_off(found[i:at]))
    ]
    if before:
        does[before[-1]] = not passive
    inverted = found[at].lower in _MODALS and not before
    for i, word in named:
        if i > at:
            first = inverted and not does
            does.setdefault(word.name, first or (passive and found[i - 1].lower == "by"))
    receiving = found[at].fold in _RECEIVING
    return {name: "by" if doing != receiving else "to" for name, doing in does.items()}


def _in_debt(found: tuple[Word, ...]) -> dict[str, str]:
    """Who owes whom in `a debt that Ann has with Ben`."""
    for i, word in enumerate(found[1:-2], start=1):
        debtor, lead, other = found[i - 1], found[i + 1], found[i + 2]
        told = word.lower in _HAVING and lead.lower in ("with", "to") and debtor.name and other.name
        if told and any(w.fold == "debt" for w in found[:i]):
            return {debtor.name: "by", other.name: "to"}
    return {}


_HAVING = lexicon.word_set("has have had")


def _is_set_off(found: tuple[Word, ...]) -> bool:
    """Whether an `it` comes between a name and the verb: `serve Ann no soup, it's hated`."""
    return any(word.lower in ("it", "they") for word in found)


def _of_agent(found: tuple[Word, ...]) -> dict[str, str]:
    """The one whose teacher or creditor is asked for undergoes what such a one does."""
    for i, word in enumerate(found):
        if word.fold in _DOERS and (owners := [w for w in found[:i] if w.name and w.owner]):
            return {owners[-1].name: "to"}
    return {}


_DOERS = lexicon.word_set("teacher tutor lender creditor thief killer murderer")


def _after_preposition(found: tuple[Word, ...], index: int) -> bool:
    return index > 0 and found[index - 1].lower in ("from", "to", "with", "for", "of", "by")


_MODALS = lexicon.word_set("can could would will do does did not")


def _acts(found: tuple[Word, ...], index: int) -> bool:
    """Whether a word of a relation is used as a verb."""
    before = found[index - 1] if index else None
    return not (
        found[index].fold in _NOUNS or before and (before.owner or before.lower in _ARTICLES)
    )


_NOUNS = lexicon.word_set("lesson debt gift present teacher lender thief killer loan creditor")
_ARTICLES = lexicon.word_set("a an the this that")
_BE = lexicon.word_set("am is are was were be been being got get gets")


# After these a `be` no longer governs the word: `is in debt`, `was Ann who set fire`.
_BREAKS = lexicon.word_set("who that in at on for with to of from")


def _is_passive(found: tuple[Word, ...], at: int) -> bool:
    helpers = [word.lower for word in found[max(0, at - 4) : at]]
    last = max((i for i, word in enumerate(helpers) if word in _BE), default=-1)
    between = found[at - len(helpers) + last + 1 : at]
    be = last >= 0 and not any(word.lower in _BREAKS for word in between)
    verb = found[at].lower not in lexicon.STOP  # `in debt`
    return be and verb and words.expanded(found[at].lower).endswith(("ed", "en", "t", "n"))
