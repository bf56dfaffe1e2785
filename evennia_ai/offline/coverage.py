"""How much of a question a claim speaks of: each term against words of the same meaning."""

from collections.abc import Callable, Iterable

from evennia_ai.offline import kin, lexicon
from evennia_ai.offline.claims import Claim, Evidence
from evennia_ai.offline.question import UNTYPED, Query, Term
from evennia_ai.offline.trades import tells_trade
from evennia_ai.offline.words import Word

_BEFORE, _NEAR, _HINTED = 0.96, 0.55, 0.65
_BEFORE_VERB = 0.45  # what is done must be told in the clause itself
_KIN = frozenset({"@kin"})
_OWNING = frozenset({"@kin", "@place"})  # the bakery's password is the bakery's, and of it
_LIGHT, _UNKNOWN_VERB = 0.4, 0.5
# Kinds of answers that show by themselves.
_SHOWN = frozenset({"where", "when", "number", "measure", "kind"})
# Kinds of questions that may be about a name alone.
_BARE = frozenset({"who", "about", "where", "name", "identity", "yesno"})


def strength(term: Term, word: Word) -> float:
    """How well a word of a claim stands for a question's term, 0 to 1."""
    asked = term.word
    if word.owner and not word.name and not asked.owner and not asked.concepts & _OWNING:
        return 0.0
    if asked.fold == word.fold:
        return 1.0
    if term.head and (term.head in word.concepts or lexicon.HEADS.get(word.fold) == term.head):
        return 0.95
    thing = asked.fold not in lexicon.LIGHT and any(c[0] == "@" for c in asked.concepts)
    if (thing and word.fold in lexicon.LIGHT) or _are_other_kin(asked, word):
        return 0.0
    if _related(asked.concepts, word.concepts):
        return 0.0 if _other_title(asked.concepts, word.concepts) else 0.93
    if _narrower(asked.concepts, word.concepts):
        return 0.65
    if "_" in word.fold and word.fold.partition("_")[0] == asked.fold:
        return 0.8  # a phrase around a light verb: `work for`
    hinted = asked.concepts & word.hints
    if not hinted and not any(concept[0] == "@" for concept in asked.concepts):
        hinted = asked.hints & word.concepts
    if hinted and not _are_of_a_kind(asked.concepts, word.concepts):
        return 0.65
    named = bool(word.name) and not word.pronoun  # a raven is not in Ravenscar
    return 0.0 if named and not asked.name else _spelling(asked.fold, word.fold)


def _are_other_kin(asked: Word, told: Word) -> bool:
    """Whether two words name relatives of different sex, as husband and wife."""
    if not (asked.concepts & _KIN and told.concepts & _KIN):
        return False
    sexes = [
        {word.fold in lexicon.FEMALE: "f", word.fold in lexicon.MALE: "m"}.get(True, "")
        for word in (asked, told)
    ]
    return sorted(sexes) == ["f", "m"]


def _other_title(asked: frozenset[str], told: frozenset[str]) -> bool:
    """Whether two words name people of different standing: a queen and a mayor both rule."""
    shared = {concept for concept in asked & told if concept[0] not in "@<="}
    return bool(asked & _PERSONS) and shared <= _DEEDS


_PERSONS = frozenset({"@person", "@trade"})
_DEEDS = frozenset(("rule", "lead", "work", "run", "leader", "sell", "steal", "kill", "guard"))


def _are_of_a_kind(asked: frozenset[str], told: frozenset[str]) -> bool:
    """Whether two words name things of one kind, so that one is not the other: fever, toothache."""
    return any(concept[0] == "@" for concept in asked & told) or bool(asked & _PERSONS)


def _related(asked: frozenset[str], told: frozenset[str]) -> bool:
    for concept in asked & told:
        if concept[0] not in "@<":
            return True
    return any(concept[0] == "=" and "<" + concept[1:] in told for concept in asked)


def _narrower(asked: frozenset[str], told: frozenset[str]) -> bool:
    """Whether the question names a kind of what the claim names: ferry, where a boat was told."""
    return any(concept[0] == "=" and "<" + concept[1:] in asked for concept in told)


def _spelling(one: str, two: str) -> float:
    short, long = sorted((one, two), key=len)
    if len(short) < 5 or "@kin" in lexicon.concepts(short) | lexicon.concepts(long):
        return 0.0
    if long.startswith(short) and len(long) - len(short) <= 4:
        return 0.85
    shared = next((i for i in range(len(short)) if short[i] != long[i]), len(short))
    return 0.75 if shared >= 5 and shared >= 0.7 * len(long) else 0.0


def _best_strength(term: Term, found: Iterable[Word]) -> float:
    return max((strength(term, word) for word in found), default=0.0)


def coverage(query: Query, claim: Claim, evidence: Evidence) -> float:
    """How much of what a question names a claim speaks of, 0 to 1; 0 where too little."""
    total = covered = 0.0
    for term in query.terms:
        got = _got(term, query, claim, evidence)
        if got < 0.5 and (term.hard or _is_needed(term, query)):
            return 0.0
        if not got and (_is_open(term, query, claim) or _only_counts(term, query)):
            continue
        total += term.weight
        covered += term.weight * got
    if not total:
        bare = query.kind in _BARE or query.wanted in ("@bond", "@doing")
        return 0.9 if (bare and query.names) or len(query.names) > 1 else 0.0
    return covered / total


def shared_share(query: Query, claim: Claim, evidence: Evidence) -> float:
    """The share of a question's terms, by weight, that a claim speaks of; none is needed.

    A half where the question has no terms.
    """
    total = got = 0.0
    spoken = {word.fold for word in claim.words}
    for term in query.terms:
        total += term.weight
        said = term.word.fold in spoken
        got += term.weight * (1.0 if said else _got(term, query, claim, evidence))
    return got / total if total else 0.5


def _got(term: Term, query: Query, claim: Claim, evidence: Evidence) -> float:
    """How far a claim speaks of one term, by its words or by what they show."""
    got = _spoken(term, query, claim)
    if not got and _stands_for_kin(term, query, claim, evidence):
        got = 0.9
    employed = query.kind == "who" and "boss" in term.word.concepts  # a trade names no master
    if got < 0.8 and not employed and _implied(term, claim):
        got = 0.8
    if term.verb and got == _HINTED and query.kind == "what" and _tells_other_deed(term, claim):
        return 0.0
    return 0.0 if _is_rivalled(term, claim) else got


def _spoken(term: Term, query: Query, claim: Claim) -> float:
    """How far the words of a claim, and those that it leans on, stand for a term."""
    got = _best_strength(term, _free(term, query, claim.words))
    if got < 0.9 and claim.pronoun:
        factor = _BEFORE_VERB if term.needed else _BEFORE
        got = max(got, factor * _best_strength(term, claim.before))
    if got < _NEAR and not (term.hard and _is_of_another(term, query, claim)):
        aside = 0.95 if "secret" in term.word.concepts else _NEAR
        got = max(got, aside * _best_strength(term, claim.near))
    return got


def _tells_other_deed(term: Term, claim: Claim) -> bool:
    """Whether a claim with only a hint tells something else: caught trout, asked for eaten."""
    deeds = (
        {c for c in word.concepts if c[0] not in "@=<"}
        for word in claim.words
        if not (word.name or word.fold in lexicon.LIGHT or word.lower in lexicon.STOP)
        and not word.hints & term.word.concepts
    )
    return any(deed and not deed & (term.word.concepts | _MANNERLY) for deed in deeds)


_MANNERLY = frozenset({"like", "prefer_time"})


def _is_of_another(term: Term, query: Query, claim: Claim) -> bool:
    """Whether a claim is about the owner of a relative who is asked about and not named in it."""
    if _best_strength(term, (*claim.words, *(claim.before if claim.pronoun else ()))) >= 0.5:
        return False
    owners = {owner for owner, folds in query.owned if term.word.fold in folds}
    return any(word.name in owners and not word.owner for word in claim.words if word.name)


def _free(term: Term, query: Query, found: tuple[Word, ...]) -> list[Word]:
    """The words that no other term of the question is: letters that are read are not written."""
    others = {other.word.fold for other in query.terms if other is not term} - {term.word.fold}
    return [word for word in found if word.fold not in others]


def _only_counts(term: Term, query: Query) -> bool:
    """Whether a verb says little: `how many soldiers guard`, where what is counted is checked."""
    return term.verb and query.kind == "number" and len(query.terms) > 1


def _is_open(term: Term, query: Query, claim: Claim) -> bool:
    """Whether a name may stand for `which ship`: the claim names what the question does not."""
    if term.head != UNTYPED:
        return False
    if claim.whole or term.word.fold in _NARROW_PLACES:
        return False
    own = (word for word in claim.words if word.name and not word.pronoun)
    return any(word.name not in query.names for word in own)


_NARROW_PLACES = lexicon.word_set("street road lane alley house room river bridge gate square")


def _is_rivalled(term: Term, claim: Claim) -> bool:
    """Whether a claim tells the other of two things that are easily taken for one another."""
    for one, other in _RIVALS:
        if one in term.word.concepts and any(other in word.concepts for word in claim.words):
            return not any(one in word.concepts for word in claim.words)
    return False


_RIVALS = (("eat", "drink"), ("drink", "eat"))


def _is_needed(term: Term, query: Query) -> bool:
    """Whether a claim that does not speak of a term is about something else.

    What a question names must be there; a verb that the vocabulary does not know may be put in
    words just as unknown, where the answer is of a kind that shows (a time, a place, a number).
    """
    if term.needed:
        return True
    if term.head == UNTYPED and term.word.fold in _NARROW_PLACES:
        return True  # a town is no street
    if term.weight <= _LIGHT or term.head:
        return False
    if _only_counts(term, query):
        return False
    return term.known or term.weight > _UNKNOWN_VERB or query.kind not in _SHOWN


def _stands_for_kin(term: Term, query: Query, claim: Claim, evidence: Evidence) -> bool:
    spoken = {word.name for word in claim.words if word.name}
    if any(name in spoken for name in query.names) and _turned_kin(term, claim):
        return True
    for owner in query.names:
        if evidence.aliases.get((owner, term.word.fold), set()) & spoken:
            return True
    return False


_POSITIONS = frozenset({"lie_at", "store", "hide"})
_POSITION_LEADS = lexicon.word_set("above over on under beneath behind in inside beside near at")


_SEXES = {
    **dict.fromkeys(("girl", "woman", "lady", "lass"), lexicon.FEMALE),
    **dict.fromkeys(("boy", "man", "lad", "fellow"), lexicon.MALE),
}


def _turned_kin(term: Term, claim: Claim) -> bool:
    """Whether a claim tells the bond from the other end: `Greta is the duke's daughter`."""
    wanted = kin.INVERSE.get(term.word.fold, ())
    return any(
        word.owner and not word.name and after.fold in wanted
        for word, after in zip(claim.words, claim.words[1:], strict=False)
    )


def _implied(term: Term, claim: Claim) -> bool:
    """Whether a claim shows what a term says without saying the word."""
    asked = {concept for concept in term.word.concepts if concept[0] != "@"} | {term.head}
    found = claim.words
    if "@instrument" in term.word.concepts:
        asked -= {"play"}  # a fiddle is no other instrument
    if term.word.fold in _SEXES:
        return any(word.fold in _SEXES[term.word.fold] for word in found)
    if asked & _POSITIONS and term.verb and any(w.lower in _POSITION_LEADS for w in found):
        return True
    if (
        asked & {"give", "cost", "write", "send"}
        and term.needed
        and any(w.lower == "from" for w in found)
    ):
        return True
    return any(concept in asked and shows(found) for concept, shows in _SIGNS)


Found = tuple[Word, ...]


def _has_kind(kind: str) -> Callable[[Found], bool]:
    return lambda found: any(kind in word.concepts for word in found)


def _tells_price(found: Found) -> bool:
    if any(word.fold in OTHER_SUMS for word in found):
        return False
    return has_number(found) and any("@coin" in word.concepts for word in found)


_CAUSES = lexicon.word_set("because since due account owing thanks after")
# Sums that are no price.
OTHER_SUMS = lexicon.word_set("save owe lend borrow win steal rob lose")


def _tells_wage(found: Found) -> bool:
    often = any(word.concepts & _PERIODS or word.lower == "per" for word in found)
    return _tells_price(found) and often


_PERIODS = frozenset({"@moment", "@day", "@month", "@season", "earn", "work"})


def _tells_origin(found: Found) -> bool:
    at = next((i for i, word in enumerate(found) if word.lower == "from"), 0)
    others = at > 0 and found[at - 1].concepts & {"@trade", "@person"}  # `a pedlar from Ash`
    return at > 0 and not others and any("@place" in word.concepts for word in found)


def _stays_in(found: Found) -> bool:
    if any(word.concepts & _MET for word in found):
        return False  # `I met Ann in Ashby`
    return any(
        (a.name or a.concepts & _DWELLERS) and b.lower == "in"
        for a, b in zip(found, found[1:], strict=False)
    )


_MET = frozenset({"meet", "see"})
_DWELLERS = frozenset({"@trade", "@person", "@animal", "@kin"})


def _tells_looks(found: Found) -> bool:
    """Whether a colour is told that is no other thing's: not `Ann's red ledger`, `the green`."""
    for i, word in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        alone = after is None or after.lower in lexicon.STOP
        own = "@colour" in word.concepts and not word.name
        if own and alone and (not i or found[i - 1].lower != "the"):
            return True
    return False


def _has_owner(found: Found) -> bool:
    return any(word.owner and word.name for word in found)


# By what is asked for: what shows it. A number shows an age; its frame is checked in `kinds`.
_SIGNS: tuple[tuple[str, Callable[[Found], bool]], ...] = (
    ("own", _has_owner),
    ("work", tells_trade),
    ("@trade", tells_trade),
    ("money", _has_kind("@coin")),
    ("look", _has_kind("@colour")),
    ("hair", _tells_looks),
    ("cost", _tells_price),
    ("earn", _tells_wage),
    ("origin", _tells_origin),
    ("live", _stays_in),
    ("age", lambda found: has_number(found)),
    ("know", _has_kind("speak")),
    ("play", _has_kind("@instrument")),
    ("cause", lambda found: any(word.lower in _CAUSES for word in found)),
)


def has_number(found: Iterable[Word]) -> bool:
    """Whether a number or an amount is among words."""
    return any(lexicon.is_number(word.lower) for word in found)
