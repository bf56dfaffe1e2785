"""Whether a claim holds the kind of thing a question asks for, and not only what it names."""

import re
from collections.abc import Iterable, Iterator, Sequence

from evennia_ai.offline import lexicon, words
from evennia_ai.offline.claims import Claim
from evennia_ai.offline.coverage import OTHER_SUMS, has_number, strength
from evennia_ai.offline.question import UNTYPED, Query, Term
from evennia_ai.offline.trades import is_said_of_one, tells_trade
from evennia_ai.offline.vocabulary import KIND_HINTS
from evennia_ai.offline.words import Word

_PLACE_PREPOSITIONS = lexicon.word_set(
    "in at on under behind beneath near by beside inside above below between to from "
    "towards toward into onto within underneath atop over across outside past around "
    "beyond among off through down up opposite against along next"
)
# These lead to people, means and goals as well as to places.
_LOOSE = lexicon.word_set("by to from against between among over up down off through")
_PLACE_WORDS = lexicon.word_set("home upstairs downstairs abroad indoors outdoors overseas")
_REASONS = lexicon.word_set("because since so due owing thanks lest why until as")
_DOING = lexicon.word_set("do does did can could should would will")
_MANNERS = lexicon.word_set("by with using when if in from off because through via after password")
_STEPS = lexicon.word_set("follow turn take cross climb pull push press knock say ask walk pass")
_WHEREABOUTS = frozenset({"live", "lie_at", "travel", "arrive", "see", "meet", "store", "hide"})
_TIMES = frozenset({"@moment", "@day", "@month", "@season"})
_MEASURES = _TIMES | {"@unit"}
_LIVING = frozenset({"@kin", "@trade", "@person", "friend", "enemy", "boss"})
_SOFT_KINDS = frozenset(
    {"@trade", "@garment", "@language", "@food", "@drink", "@animal", "@flower"}
)
# Kinds whose members are all known: without one the claim is no answer.
_LISTED = frozenset({"@colour", "@metal", "@direction", "@unit", "@coin"})
_YEARS = lexicon.word_set("year winter summer spring month week day")
_AGE_MARKS = lexicon.word_set("age aged old turn turned young birthday")
_DATED = lexicon.word_set("in at since by around until on year")
_BE = lexicon.word_set("is am are was were be")


def kind_factor(query: Query, claim: Claim) -> float:
    """1 where the claim holds the kind of answer asked for, less where only perhaps, else 0."""
    new = [word for word in claim.words if not _in_question(word, query)]
    near = [word for word in claim.near if not _in_question(word, query)]
    if query.has("cost") and any(w.fold in OTHER_SUMS for w in (*new, *near)):
        return 0.0
    check = _CHECKS.get(query.kind, _has_content)
    own = check(query, claim.words, new) or _by_context(query, claim, new)
    if query.kind == "who" and not own:
        return 0.0  # somebody named in another clause did something else
    return own if own else 0.7 * check(query, claim.near, near) * bool(near)


def _by_context(query: Query, claim: Claim, new: list[Word]) -> float:
    """How surely what stands around a clause holds the kind of answer that is asked for."""
    if query.kind == "who" and claim.pronoun:
        shown = any(w.lower in _SUBJECTS for w in claim.words)
        return 0.9 if shown and any(_is_someone(w) for w in claim.before) else 0.0
    if query.kind == "what" and claim.pronoun:
        before = [word for word in claim.before if not _in_question(word, query)]
        return 0.9 * _has_content(query, claim.before, before)
    if query.kind == "why":
        felt = _is_felt(claim) and bool(_EXPLAINS.search(claim.quote))
        shown = felt or bool(_GROUNDS.search(claim.quote))
        return 0.85 if shown else 0.0
    return 0.0


def _is_felt(claim: Claim) -> bool:
    """Whether a clause denies something or tells a feeling, so that what follows explains it."""
    felt = {"hate", "like", "fear", "avoid", "love", "refuse"}
    return any(word.lower in _DENIALS or word.concepts & felt for word in claim.words)


_DENIALS = lexicon.word_set("not never no nobody none")
_EXPLAINS = re.compile(
    r"(?:[\w'’]+ ){3}[\w'’]+[,;] (?:he|she|it|they|i|my|his|her|their|the)\b", re.IGNORECASE
)


_SUBJECTS = lexicon.word_set("he she they")
_GROUNDS = re.compile(
    r"\b(?:because|since|so|due to|owing to|account of|thanks to|for fear|in order to|"
    r"after (?:he|she|it|i|they|we|my|his|her|the)|sake of|what with|the reason|therefore|"
    r"otherwise|or else)\b|\w: \w",
    re.IGNORECASE,
)


def _in_question(word: Word, query: Query) -> bool:
    if word.name and word.name in query.names:
        return True
    return any(term.word.fold == word.fold and not term.head for term in query.terms)


def _content(new: Iterable[Word]) -> list[Word]:
    return [w for w in new if w.lower not in lexicon.STOP and not (w.pronoun and not w.owner)]


def _has_content(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if _is_bare_head(query, told):
        return 0.0
    if (lead := _led(query)) and not _leads_there(query, told, _SAME_PLACE[lead]):
        return 0.0
    if query.has("earn") and any(w.fold in ("earn", "wage", "salary") for w in query.words):
        return _number(query, told, new)
    fresh = [w for w in _content(new) if not any(_repeats(t, w) for t in query.terms)]
    return 1.0 if fresh or _content(new) and query.kind == "how" else 0.0


def _is_bare_head(query: Query, told: Sequence[Word]) -> bool:
    """Whether `which army` meets no more than `the army`, without a word that says which."""
    head = next((term for term in query.terms if term.head == UNTYPED), None)
    at = next((i for i, w in enumerate(told) if head and w.fold == head.word.fold), 0)
    if not at or told[at - 1].lower not in ("the", "a", "an", "his", "her", "their", "my"):
        return False
    if at > 1 and told[at - 2].lower in _BE:
        return False  # `the Morning Star is my ship`
    after = told[at + 1] if at + 1 < len(told) else None
    return after is None or not (after.name or after.lower in _WHICH_ONE)


_WHICH_ONE = lexicon.word_set("of called named in from to through for between at near by")


def _leads_there(query: Query, told: Sequence[Word], leads: frozenset[str]) -> bool:
    """Whether one of these words stands right before, or after, what the question names."""
    for i, word in enumerate(told):
        around = told[max(0, i - 4) : i + 5] if word.lower in leads else ()
        if any(_is_asked(query, other) for other in around):
            return True
    return False


def _is_asked(query: Query, word: Word) -> bool:
    """Whether a word is what a question names, or an `it` that may stand for it."""
    named = bool(word.name) and word.name in query.names
    return named or word.lower == "it" or any(strength(t, word) >= 0.75 for t in query.terms)


def _led(query: Query) -> str:
    """The preposition of `what is behind the door`, or ``""``."""
    low = [word.lower for word in query.words[:4]]
    lead = low[2] if len(low) > 3 and low[0] == "what" and low[1] in _BE else ""
    return lead if lead in _SAME_PLACE else ""


def _repeats(term: Term, word: Word) -> bool:
    member = bool(term.head) and term.head in word.concepts
    hinted = (KIND_HINTS.get(kind[1:]) for kind in word.concepts if kind[0] == "@")
    member |= any(done in term.word.concepts for done in hinted)  # what is played: a fiddle
    return not member and strength(term, word) >= 0.9


# -- numbers -------------------------------------------------------------------------------------


def _number(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    numbers = [
        i
        for i, w in enumerate(told)
        if lexicon.is_number(w.lower) and w in new and w.lower != "both"
    ]
    if query.has("age"):
        return 1.0 if any(_is_age(told, i) for i in numbers) else 0.0
    if query.has("cost") or query.has("earn") or query.has("owe") or _asks_how_much(query):
        paid = any("@coin" in w.concepts or "money" in w.concepts for w in told)
        free = any(w.lower in _FREE for w in told)
        return 0.95 if (numbers and paid) or free else 0.0
    counted = _counted(query)
    if not counted:
        return 0.9 if numbers else 0.0
    return 1.0 if any(_counts(told, i, counted) for i in numbers) else 0.0


_FREE = lexicon.word_set("free nothing gratis")


def _asks_how_much(query: Query) -> bool:
    return any(
        a.lower == "how" and b.lower in ("much", "high", "large", "big")
        for a, b in zip(query.words, query.words[1:], strict=False)
    )


def _is_age(told: Sequence[Word], index: int) -> bool:
    """Whether the number at `index` is somebody's age: `is 41`, `41 years old`, `turned 41`."""
    before = told[index - 1] if index else None
    after = told[index + 1] if index + 1 < len(told) else None
    if any(w.lower in _AGE_MARKS or w.fold in _AGE_MARKS for w in told[index + 1 : index + 4]):
        return True
    if before is not None and (before.fold in _AGE_MARKS or before.lower in _AGE_MARKS):
        return True
    if before is None or before.lower not in _BE | {"just", "only", "already", "nearly", "about"}:
        return False
    return after is None or after.fold in _YEARS or after.lower in lexicon.STOP


def _counts(told: Sequence[Word], index: int, counted: Term) -> bool:
    """Whether the number at `index` counts a thing: `14 goats`, `14 fat goats`, `goats, 14`."""
    places = [i for i, word in enumerate(told) if strength(counted, word) >= 0.65]
    for place in places:
        if 0 < place - index <= 4 and not _names_another(told[index + 1 : place], counted):
            return True
        if 0 < index - place <= 6 and not _starts_phrase(told, index):
            return True
    return False


def _names_another(between: Sequence[Word], counted: Term) -> bool:
    """Whether a thing of the same kind stands between a number and what is counted."""
    kinds = {concept for concept in counted.word.concepts if concept[0] == "@"} - {"@coin"}
    return any(
        word.lower in ("and", "with") or word.concepts & kinds or lexicon.is_number(word.lower)
        for word in between
    )


def _starts_phrase(told: Sequence[Word], index: int) -> bool:
    """Whether the number at `index` counts the noun after it: `14 goats`, not `goats, 14 of`."""
    after = told[index + 1] if index + 1 < len(told) else None
    return after is not None and after.lower not in lexicon.STOP and after.fold not in _YEARS


def _counted(query: Query) -> Term | None:
    """The term right after `how many`, where there is one."""
    for i, word in enumerate(query.words[:-1]):
        number = word.lower == "of" and i and query.words[i - 1].lower == "number"
        if word.lower == "many" or number:
            after = query.words[i + 1 : i + 3]
            return next((t for t in query.terms if any(t.word is w for w in after)), None)
    return None


def _measure(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if query.has("owe") or query.has("cost"):
        return _number(query, told, new)
    counted = has_number(new) or any(w.lower in ("a", "an", "all") for w in told)
    if counted and any(w.concepts & _MEASURES or w.fold in _YEARS for w in told):
        return 1.0
    if any(w.lower in ("enough", "size") for w in told):
        return 0.9
    return 0.8 if has_number(new) and not any("@coin" in w.concepts for w in told) else 0.0


# -- places and times ----------------------------------------------------------------------------


def _where(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if not query.terms and not any(w.concepts & _WHEREABOUTS for w in told):
        town = query.wanted == "@place" and any(w.name and "@place" in w.concepts for w in new)
        return 0.9 if town or _stands_at(query, told, new) else 0.0
    if query.has("hurt") and any("@body" in w.concepts for w in new):
        return 1.0
    if any(_is_place(query, told, i, new) for i in range(len(told))):
        return 1.0
    if any(w.name and "@place" in w.concepts for w in new):
        return 0.97
    if any(w.lower in _PLACE_WORDS for w in new):
        return 0.95
    bound = any(
        term.word.concepts & _WHEREABOUTS | {"origin"} & term.word.concepts for term in query.terms
    )
    if bound and any(w.name and not w.pronoun and not w.concepts & _NO_PLACE for w in new):
        return 0.85
    if any(a.lower in _WITHIN and b.lower == "it" for a, b in zip(told, told[1:], strict=False)):
        return 0.9
    sites = [w for w in new if "@place" in w.concepts and not w.owner]
    return 0.8 if sites and not query.has("lie_at") and query.terms[1:] else 0.0


_SAME_PLACE = {
    word: group
    for group in map(
        lexicon.word_set,
        (
            "under beneath below underneath",
            "above over atop on",
            "in inside within contains holds full",
            "behind leads",
            "near next by beside opposite",
        ),
    )
    for word in group
}
_NO_PLACE = _TIMES | {"@someone"}
_WITHIN = lexicon.word_set("in inside on under beneath behind")


def _stands_at(query: Query, told: Sequence[Word], new: list[Word]) -> bool:
    """Whether a place follows right after what is asked for: `the Broken Oar at the crossroads`."""
    ends = [i for i, word in enumerate(told[:-1]) if word.name in query.names and word.name]
    after = [i + 1 + (told[i + 1].lower in _BE) for i in ends]
    return any(i < len(told) and _is_place(query, told, i, new) for i in after)


def _is_place(query: Query, told: Sequence[Word], index: int, new: list[Word]) -> bool:
    """Whether the preposition at `index` leads to a place that the question does not name."""
    lead = told[index].lower
    if lead not in _PLACE_PREPOSITIONS or (lead == "in" and _is_body(told, index, query)):
        return False
    phrase = list(_phrase(told, index))
    if not phrase or not any(word in new for word in phrase):
        return False
    if phrase[0].name in query.names and phrase[0].name and not phrase[0].owner:
        return False  # `a goose went to Ann` tells nothing of where she goes
    if lead == "to" and told[index + 1] is phrase[0] and _is_deed(phrase[0]):
        return False
    if any(word.concepts & _TIMES for word in phrase[:3]):
        return any(w.name and "@place" in w.concepts for w in phrase)
    if any(lexicon.is_number(word.lower) for word in phrase[:3]):
        return any("@place" in word.concepts for word in phrase)
    sure = lead in ("in", "at")
    person = "@someone" in phrase[0].concepts and not phrase[0].owner and not sure
    sited = any("@place" in word.concepts for word in phrase)
    if person or (phrase[-1].concepts & _LIVING and not phrase[0].owner):
        return lead == "from" and (query.has("buy") or any(w.lower == lead for w in query.words))
    if query.has("travel"):
        return lead in ("to", "for", "into", "towards", "toward") or sited
    return sited or lead not in _LOOSE or any(w.lower == "from" for w in query.words)


def _is_deed(word: Word) -> bool:
    """Whether a word after `to` is a verb: `coming to visit`."""
    deed = bool(word.concepts) and not any(concept[0] in "@=<" for concept in word.concepts)
    return deed and not word.name and not word.owner


def _is_body(told: Sequence[Word], index: int, query: Query) -> bool:
    """Whether `in` leads to what is no place: `in debt`, `in love`, `in tears`."""
    after = told[index + 1 : index + 2]
    return bool(after) and after[0].lower in _STATES_IN


_STATES_IN = lexicon.word_set("love debt return exchange tears time case")


def _phrase(told: Sequence[Word], index: int) -> Iterator[Word]:
    """The content words after a preposition, up to the next one: at most five words on."""
    for word in told[index + 1 : index + 6]:
        if word.lower in _PLACE_PREPOSITIONS or word.lower in _PHRASE_ENDS:
            return
        if word.lower not in lexicon.STOP and not (word.pronoun and not word.owner):
            yield word


_PHRASE_ENDS = lexicon.word_set("and with for because every each last next this when who that")


def _when(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if query.wanted == "@year":
        dated = any(w.lower.isdigit() and len(w.lower) >= 3 for w in new)
        return 1.0 if dated or any(w.lower in ("ago", "year", "years") for w in new) else 0.0
    kinds = {query.wanted} if query.wanted in ("@day", "@month", "@season") else _TIMES
    if any(w.concepts & kinds for w in new):
        return 1.0
    if any(a.lower == "first" and b.lower == "light" for a, b in zip(told, told[1:], strict=False)):
        return 1.0
    if any(w.lower == "often" for w in query.words):
        return 1.0 if any(w.lower in _OFTEN for w in told) else 0.0
    if query.has("origin") and any(w.lower.isdigit() and len(w.lower) >= 3 for w in new):
        return 1.0
    if _has_year(told, new):
        return 0.95
    return 0.85 if any(_is_time(query, told, i, new) for i in range(len(told))) else 0.0


_OFTEN = lexicon.word_set(
    "once twice thrice times every each daily weekly monthly yearly always never"
)


def _is_time(query: Query, told: Sequence[Word], index: int, new: list[Word]) -> bool:
    """Whether a `before`, `after`, `when` leads to something that the question does not name."""
    if told[index].lower not in _TIME_LEADS:
        return False
    after = _content(told[index + 1 :])
    asked = [w for w in after if any(strength(term, w) >= 0.9 for term in query.terms)]
    if told[index].lower == "in" and not any(w.lower in _IN_TIMES for w in after[:4]):
        return False
    return bool(after) and not asked and any(word in new for word in after)


_IN_TIMES = lexicon.word_set(
    "war youth childhood storm frost flood famine reign days age time drought siege future past"
)


_TIME_LEADS = lexicon.word_set("before after during until when while every in since whenever once")


def _has_year(told: Sequence[Word], new: list[Word]) -> bool:
    """Whether a bare number says a time: `in 812`, `at nine`, `the ninth of`."""
    for i, word in enumerate(told):
        before = told[i - 1].lower if i else ""
        after = told[i + 1 : i + 2]
        counts = after and _content(after) and not after[0].part
        if word not in new:
            continue
        if lexicon.is_number(word.lower) and not counts and before in _DATED:
            return True
        if word.lower[:1].isdigit() and word.lower.endswith(("th", "st", "nd", "rd")):
            return True
    return False


# -- people and names ----------------------------------------------------------------------------


def _is_someone(word: Word) -> bool:
    """Whether a word names a person: no town, no day, no owner that is only `my`."""
    if not word.name or (word.owner and word.pronoun):
        return False
    return not word.concepts & (_TIMES | {"@place"})


def _who(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    low = [word.lower for word in query.words]
    if len(query.names) > 1 and ("or" in low or any(w.endswith("er") for w in low)):
        return 1.0  # `who is taller, Ann or Ben`
    if _asks_company(low) and not any(w.lower in _COMPANY or w.fold in _COMPANY for w in told):
        return 0.0
    if any(_is_someone(w) and not w.owner for w in new) or _is_wed(told, new):
        return 1.0
    if any(_is_someone(w) for w in new) or any(w.concepts & _LIVING for w in new):
        return 0.95
    if query.kind == "who" and any("@animal" in w.concepts for w in new):
        return 0.9
    plain = all(w.text.islower() or w.pronoun for w in told)
    strange = [w for w in _content(new) if not lexicon.is_known(w.lower)]
    done = any(t.verb and strength(t, w) >= 0.75 for t in query.terms for w in told)
    return 0.85 if (plain and strange and done) or _has_doer(query, told, new) else 0.0


def _is_wed(told: Sequence[Word], new: list[Word]) -> bool:
    """Whether a claim says whose husband or wife one is: that is whom they wed."""
    return any(
        a.owner and a in new and _is_someone(a) and "marriage_bond" in b.concepts
        for a, b in zip(told, told[1:], strict=False)
    )


def _has_doer(query: Query, told: Sequence[Word], new: list[Word]) -> bool:
    """Whether somebody unnamed does what is asked: `the abbot has 19 books`, `by a healer`."""
    for i, word in enumerate(told):
        asked = any(t.verb and strength(t, word) >= 0.75 for t in query.terms)
        if not asked and not (
            word.lower in _HAVING and word.lower in {w.lower for w in query.words}
        ):
            continue
        agents = [w for w in told[max(0, i - 4) : i] if w.lower not in lexicon.STOP]
        if agents and agents[-1] in new and _may_do(agents[-1]):
            return True
    return False


_HAVING = lexicon.word_set("has had have keeps owns")


def _may_do(word: Word) -> bool:
    """Whether a noun may stand for one who does something: no place, no food, no time."""
    kinds = {concept for concept in word.concepts if concept[0] == "@"}
    return not word.owner and not word.name and kinds <= _LIVING | {"@animal"}


def _asks_company(low: list[str]) -> bool:
    """Whether a question is after somebody who is with another: `with whom`, `who lives with`."""
    return "with" in low and (low.index("with") == 0 or low[-1] == "with" or "who" in low[:1])


_COMPANY = lexicon.word_set("with and together beside alongside join meet marry accompany share")


def _identity(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if any(_is_someone(w) and not w.pronoun for w in new):
        named = any("call" in w.concepts or w.lower in ("name", "is") for w in told)
        return 1.0 if named else 0.9
    return 0.8 if any(w.concepts & {"@trade", "@person"} for w in new) else 0.0


def _name(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    called = any("call" in w.concepts or w.lower == "name" for w in told)
    if not query.terms and not called:
        return 0.0
    if any("marriage_bond" in term.word.concepts for term in query.terms):
        wed = any("marry" in w.concepts for w in told)
        return 0.9 if wed and any(_is_someone(w) and not w.pronoun for w in new) else 0.0
    place = any("@place" in term.word.concepts for term in query.terms)
    for i, w in enumerate(told):
        if w in new and w.name and not w.pronoun and not w.owner and not w.concepts & _TIMES:
            if called and not _names_other(query, told, i):
                return 1.0
            if (place or "@place" not in w.concepts) and _is_named(query, told, i):
                return 0.9
    other = any(word.name and not word.pronoun and not word.owner for word in new)
    return 0.88 if called and _content(new) and not other else 0.0


def _names_other(query: Query, told: Sequence[Word], index: int) -> bool:
    """Whether the name at `index` is that of another: `my aunt has cats, one is called Soot`."""
    terms = query.terms
    asked = [i for i, w in enumerate(told) if any(strength(term, w) >= 0.65 for term in terms)]
    if asked and min(asked) > index and any(w.lower == "after" for w in told[index + 1 :][:1]):
        return True  # `I named my raven Soot after my granny`
    last = max((i for i in asked if i < index), default=index)
    living = [w for w in told[last + 1 : index] if w.concepts & _NAMED and not w.owner]
    if not asked and any(w.lower in _ONE_OF for w in told[:index]):
        return True
    return any(w.lower not in lexicon.STOP and w.lower not in _GENERIC for w in living)


_ONE_OF = lexicon.word_set("oldest eldest youngest biggest smallest one other first last")
_NAMED = _LIVING | {"@animal"}
_GENERIC = lexicon.word_set("boy girl lad lass lady fellow mare stallion")


_JOINING = _BE | lexicon.word_set(
    "the a an and our my his her called named old young of mine that who"
)


def _between(told: Sequence[Word], noun: int, name: int) -> Sequence[Word]:
    """The words between a noun and a name, without the name's own first words."""
    between = list(told[min(noun, name) + 1 : max(noun, name)])
    while noun < name and between and _is_plain_name(between[-1]):
        between.pop()
    return between


def _is_plain_name(word: Word) -> bool:
    return bool(word.name) and not (word.owner or word.pronoun)


def _owns(query: Query, word: Word) -> bool:
    """Whether a word says whose it is, as the question does: `Ann is Ben's sister`."""
    return word.owner and bool(word.name) and word.name in query.names


def _belongs(told: Sequence[Word], index: int) -> bool:
    """Whether the name at `index` is that of what belongs to somebody."""
    return any(w.fold == "belong" for w in told[index + 1 : index + 2])


def _is_named(query: Query, told: Sequence[Word], index: int) -> bool:
    """Whether the name at `index` is that of what is asked about: `my wife Ann`, `Ann is my wife`.

    The noun must stand right before the name, or be joined to it by `is`, or tell what kind of
    thing it is that belongs to somebody.
    """
    if _belongs(told, index):
        return any(strength(term, word) >= 0.65 for term in query.terms for word in told)
    for i, word in enumerate(told):
        if word.owner or not any(strength(term, word) >= 0.65 for term in query.terms):
            continue
        between = _between(told, i, index)
        if i == index + 1 and query.owned:
            continue  # `the Elmsfold boat` is nobody's
        relative = any(w.lower in ("that", "who") for w in between)
        linked = not relative or any(w.lower in _BE for w in between)  # `Ann, that's my aunt`
        joined = linked and all(w.lower in _JOINING or _owns(query, w) for w in between)
        near = not between or (joined and len(between) <= 4)
        if near and not any(w.name and not w.pronoun and not w.owner for w in between):
            return True
    return False


# -- kinds of things -----------------------------------------------------------------------------


def _kind(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if any(query.wanted in w.concepts and _is_so(query, told, w) for w in new):
        return 1.0
    if query.wanted == "@bond":
        return 1.0 if any("@kin" in w.concepts or "marry" in w.concepts for w in told) else 0.0
    if query.wanted == "@doing":
        done = 0.85 if len(query.names) > 1 and _content(new) else 0.0
        return 0.95 if tells_trade(told) else _does(query, told) or done
    if query.wanted == "@material":
        return 0.9 if _made_of(told, new) else 0.0
    if query.wanted == "@colour" or query.has("like") or query.has("hate") or query.has("avoid"):
        asks = {"@food": "eat", "@drink": "drink", "@instrument": "play"}.get(query.wanted, "?")
        said = any(asks in w.concepts or _is_kind_word(w, query) for w in told)
        return 0.9 if said and query.wanted != "@colour" and _content(new) else 0.0
    if query.wanted in _LISTED:
        return 0.0
    if query.wanted == "@trade":
        return _does(query, told)
    soft = 0.85 if query.wanted in _SOFT_KINDS else 0.75
    return soft if _content(new) else 0.0


def _is_so(query: Query, told: Sequence[Word], word: Word) -> bool:
    """Whether a word of the kind asked for may be meant as that."""
    if query.wanted == "@trade" and not is_said_of_one(told, word):
        return False
    if query.wanted == "@colour" and (word.name or _is_drink(told, word)):
        return False  # Kestrel Bay, ginger ale
    return not _is_money(query, told, word)


def _is_drink(told: Sequence[Word], word: Word) -> bool:
    """Whether what could be a colour tells what to drink or to eat: `red wine`."""
    at = next((i for i, other in enumerate(told) if other is word), 0)
    return any(w.concepts & {"@drink", "@food"} for w in told[at + 1 : at + 2])


def _is_money(query: Query, told: Sequence[Word], word: Word) -> bool:
    """Whether what could be a colour or a metal is a sum: `23 silver`."""
    at = next((i for i, other in enumerate(told) if other is word), 0)
    return "@coin" in word.concepts and at > 0 and lexicon.is_number(told[at - 1].lower)


def _does(query: Query, told: Sequence[Word]) -> float:
    """How surely a claim says what one asked about does: the name, then a verb, or `is a`."""
    for i, (a, b) in enumerate(zip(told, told[1:], strict=False)):
        asked = a.name in query.names if query.names else bool(a.name)
        if asked and not a.owner and (sure := _deed(b, told[i + 2 :])):
            return sure
        subject = told[i - 1] if i else a
        about = (subject.name in query.names and not subject.owner) or subject.lower in _SUBJECTS
        if about and a.lower in ("is", "am") and b.lower in ("a", "an", "the"):
            return 0.0 if any("origin" in w.concepts for w in told[i + 2 : i + 4]) else 0.85
    return 0.0


def _deed(verb: Word, rest: Sequence[Word]) -> float:
    """How surely a verb tells somebody's work, and not where they stand or what they feel."""
    if verb.lower in ("works", "work", "runs", "run"):
        return 0.8 if verb.fold == "work_for" else 0.95  # for whom is not at what
    if verb.fold == "keep":
        pet = bool(rest) and rest[0].lower == "a"
        run = any(w.concepts & _RUN or w.fold == "book" for w in rest)
        return 0.95 if run and not pet else 0.0
    ends = verb.lower.endswith("s") and not verb.lower.endswith("ss")
    plain = ends and not verb.name and verb.lower not in lexicon.STOP
    return 0.85 if plain and not verb.concepts & _STATES else 0.0


_RUN = frozenset({"@animal", "@place", "shop", "inn"})
_STATES = frozenset(
    {
        *("live", "age", "lie_at", "look", "own", "owe", "ill", "hurt", "avoid", "die"),
        *("fear", "like", "hate", "love", "want", "need", "know", "believe", "plan"),
        *("begin", "travel", "depart", "arrive", "meet", "see", "marry", "smell", "wield"),
    }
)


def _made_of(told: Sequence[Word], new: list[Word]) -> bool:
    """Whether the claim says what a thing is made of: `cast from`, `of`, `out of`."""
    for i, word in enumerate(told[:-1]):
        material = told[i + 1] in new and bool(_content(told[i + 1 : i + 2]))
        if word.lower in ("of", "from") and material and not told[i + 1].name:
            return True
    return any(word.lower.endswith("en") and word in new and word.fold in _WOODEN for word in told)


_WOODEN = lexicon.word_set("wooden golden woollen oaken earthen silken leaden")


def _is_kind_word(word: Word, query: Query) -> bool:
    return lexicon.HEADS.get(word.fold) == query.wanted


def _why(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    if any(w.lower in _REASONS for w in told):
        return 1.0
    if any(a.lower == "for" and b in new for a, b in zip(told, told[1:], strict=False)):
        return 0.9
    if any(a.lower == "for" and c in new for a, c in zip(told, told[2:], strict=False)):
        return 0.9
    if any(_is_purpose(told, i) for i in range(1, len(told) - 1)):
        return 0.9
    felt = query.has("hate") or query.has("like") or query.has("love") or query.has("fear")
    return 0.8 if felt and told and told[0].lower in words.THIRD else 0.0


def _is_purpose(told: Sequence[Word], index: int) -> bool:
    """Whether a `to` says what something is done for: `I come here on Fridays to meet Bram`."""
    before, after = told[index - 1], told[index + 1]
    if told[index].lower != "to" or after.name or after.lower in lexicon.STOP:
        return False
    return bool(before.concepts & _TIMES or before.lower == "here")


def _how(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    """What was done needs a manner: `by`, `with`, `falling`, `when you pull`, `turn left`."""
    low = [word.lower for word in query.words]
    at = low.index("how") if "how" in low else 0
    if low[at + 1 : at + 2] and low[at + 1] not in _DOING:
        return _has_content(query, told, new)
    if {"did", "was", "were"} & set(low[at + 1 : at + 2]):
        return 1.0 if _tells_manner(query, told, new) else 0.0
    means = any(w.lower in _MANNERS or (w.lower.endswith("ing") and w in new) for w in told)
    moves = any("@direction" in w.concepts or w.fold in _STEPS for w in new)
    return 1.0 if means or moves else 0.0


def _tells_manner(query: Query, told: Sequence[Word], new: list[Word]) -> bool:
    """Whether a claim says how something came about: `by falling`, `of fever`, `drowned`."""
    if query.has("die") and any(w.concepts & {"die", "kill"} and w.fold not in _DEAD for w in told):
        return True
    doing = any(w.lower.endswith("ing") and w in new and not w.name for w in told)
    event = any(a.lower == "in" and b.lower == "a" for a, b in zip(told, told[1:], strict=False))
    return (
        doing or event or any(w.lower in _MEANS for w in told) or any(w.fold in _STEPS for w in new)
    )


_DEAD = lexicon.word_set("die dead death pas pass perish")
_MEANS = lexicon.word_set("by with using through because of via")


def _anything(query: Query, told: Sequence[Word], new: list[Word]) -> float:
    return 1.0


_CHECKS = {
    "where": _where,
    "when": _when,
    "number": _number,
    "measure": _measure,
    "who": _who,
    "whose": _who,
    "name": _name,
    "identity": _identity,
    "kind": _kind,
    "why": _why,
    "how": _how,
    "yesno": _anything,
    "about": _anything,
}
