"""Reads a question: what kind of answer it asks for, and what that answer must be about."""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from evennia_ai.offline import lexicon, words
from evennia_ai.offline.paraphrase import plainly
from evennia_ai.offline.words import Word

WH = lexicon.word_set("whereabouts who whom whose what which where when why how")
_AUXILIARIES = lexicon.word_set(
    "do does did is are was were am has have had can could will would shall should may might"
)
_FRAMES = re.compile(
    r"\b(?:(?:do|did|can|could|would|will) (?:you|we|anyone|anybody|somebody|someone) (?:please )?"
    r"(?:still )?(?:happen to |chance to )?(?:also )?"
    r"(?:know|recall|remember|tell|remind|say|guess|hear|heard|think|have any idea|mind telling)"
    r"(?: (?:me|us|anyone))?(?: again)?|(?:please )?(?:tell|remind) (?:me|us)(?: again)?"
    r"|(?:have|has) (?:you|anyone) (?:ever )?(?:heard|any idea|a clue|an idea|been told)"
    r"|(?:i|i've|i have) (?:was |am |been )?(?:just )?(?:wonder(?:ing)?|forgotten|forgot|forget|"
    r"can(?:not|'t) (?:recall|remember))|any (?:idea|clue|notion)|got any idea"
    r"|(?:did|have|has) (?:i|we|anyone|anybody|someone|somebody|he|she|they) (?:ever )?"
    r"(?:tell|told|mention|mentioned|say|said)(?: (?:to )?(?:you|us|me))?"
    r"|(?:i|he|she) (?:told|said to|mentioned to) you"
    r"|what was it (?:that )?(?:i|he|she) (?:said|told you)|i(?:'d| would) like to know"
    r"|i (?:want|need) to know|by any chance|if you (?:know|remember|recall)|do you suppose"
    r"|(?:who|anyone|anybody|somebody|someone)(?: here)? (?:know|recall|remember)s?"
    r"(?= (?:what|where|when|who|whose|which|how|why|if)\b)"
    r"|would you say|again\?)(?=\W|$)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:well|so|oh|ah|er|um|now|hey|hi|hello|and|but|say|listen|excuse me|sorry|pray|please|"
    r"then|ok|okay|good|tell me|quick question|one more thing)\b[,!.:]?\s*)+",
    re.IGNORECASE,
)
# What the word after `how` asks for.
_HOW = {
    "many": "number",
    "much": "number",
    "old": "number",
    "long": "measure",
    "far": "measure",
    "tall": "measure",
    "deep": "measure",
    "high": "measure",
    "heavy": "measure",
    "wide": "measure",
    "often": "when",
    "soon": "when",
    "early": "when",
    "late": "when",
    "come": "why",
    "big": "measure",
    "large": "measure",
}
_HOW_CONCEPT = {
    "old": "age",
    "far": "distance",
    "tall": "tall",
    "high": "tall",
    "deep": "deep",
    "heavy": "weigh",
    "wide": "wide",
}
# Attribute nouns: "what is the name of X" asks for a name, whatever stands around it.
_ATTRIBUTES = {
    "name": "name",
    "nickname": "name",
    "nick": "name",
    "surname": "name",
    "nam": "name",
    "age": "number",
    "ag": "number",
    "price": "number",
    "pric": "number",
    "cost": "number",
    "number": "number",
    "amount": "number",
    "sum": "number",
    "total": "number",
    "fee": "number",
    "debt": "number",
    "height": "measure",
    "weight": "measure",
    "depth": "measure",
    "distance": "measure",
    "distanc": "measure",
    "birthday": "when",
    "date": "when",
    "reason": "why",
    "location": "where",
    "whereabout": "where",
    "hometown": "where",
    "birthplace": "where",
    "birthplac": "where",
    "destination": "where",
}
_KIND_TYPES = {
    "@moment": "when",
    "@day": "when",
    "@month": "when",
    "@season": "when",
    "@place": "where",
    "@person": "who",
}
# Words of a question that name living things must be in the evidence itself.
_AGENTS = frozenset(
    {"@kin", "@animal", "@person", "@trade", "friend", "enemy", "boss", "neighbour"}
)
_UNKNOWN_VERB_WEIGHT = 0.5
_VERB_WEIGHT = 1.6
_LIGHT_WEIGHT = 0.35


@dataclass(frozen=True, slots=True)
class Term:
    """One thing a question's answer must be about.

    Attributes:
        word: The question's word.
        weight: How much it counts, about 0 to 1.
        hard: Whether evidence without it is no evidence.
        head: The kind of thing asked for (``@colour``), where this word says it; else ``""``.
        known: Whether the vocabulary knows the word.
        needed: Whether evidence without it is no evidence, however little it weighs.
        verb: Whether it is the question's verb.
    """

    word: Word
    weight: float = 1.0
    hard: bool = False
    head: str = ""
    known: bool = True
    needed: bool = False
    verb: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A question, read.

    Attributes:
        text: As asked.
        kind: ``who identity where when number measure name kind whose why how what yesno about``.
        wanted: For ``kind``, the kind of thing asked for (``@colour``).
        names: Lower-case names it is about, in order.
        terms: What else it is about.
        owned: Pairs of an owner's name and the folded words that follow it.
        words: All its words.
    """

    text: str
    kind: str
    wanted: str
    names: tuple[str, ...]
    terms: tuple[Term, ...]
    owned: tuple[tuple[str, tuple[str, ...]], ...]
    words: tuple[Word, ...]

    def keywords(self) -> str:
        """Words to search for: names, then what they are asked about."""
        doing = ("work", "trade") if self.wanted == "@doing" else ()
        found = [*self.names, *(term.word.lower for term in self.terms), *doing]
        return " ".join(dict.fromkeys(found))

    def without_pronouns(self) -> "Query":
        """The same without `I` and `you` among those whom it is about."""
        spoken = {word.name for word in self.words if word.pronoun}
        return replace(self, names=tuple(name for name in self.names if name not in spoken))

    def has(self, concept: str) -> bool:
        """Whether one of its terms stands for a concept."""
        return any(concept in term.word.concepts for term in self.terms)


def core_of(text: str, me: str) -> str:
    """A question without its polite frame and without calling the assistant by name."""
    text = " ".join(text.split())
    text = re.sub(rf"(?:^|,\s*){re.escape(me)}\b[,!.:]?\s*", " ", text, flags=re.IGNORECASE)
    text = _LEAD.sub("", text.strip())
    return " ".join(_FRAMES.sub(" ", text).split()).lstrip(",.;: ")


def ask(text: str, asker: str, me: str, names: Set[str]) -> Query:
    """Read a question.

    Args:
        text: The question as asked.
        asker: Name of the one who asks: what ``my`` stands for.
        me: The assistant's name: what ``your`` stands for.
        names: Lower-case words known to be names.
    """
    core = plainly(core_of(text, me))
    parts = words.sentences(core)
    asked = [part for part in parts if "?" in part] or parts[-1:]
    found = words.read(" ".join(asked), asker.lower(), me.lower(), names)
    found = tuple(word for word in found if word.lower not in ("hi", "hello", "hey"))
    found = tuple(
        replace(word, name="") if word.pronoun and not _is_about(found, i) else word
        for i, word in enumerate(found)
    )
    start, kind, head = _asked_for(found)
    kind, wanted = _refined(kind, head, found)
    kind, wanted, found = _by_phrase(kind, wanted, found, head)
    terms = _weighty(tuple(_terms(found, start, head, kind)))
    people = tuple(dict.fromkeys(w.name for i, w in enumerate(found) if _is_about(found, i)))
    if len(people) > 1:
        people = tuple(name for name in people if name != me.lower()) or people
    if kind == "who" and terms and all(term.hard for term in terms):
        kind = "identity"
    if kind == "where" and found[-1:] and found[-1].lower == "from" and not terms:
        origin = frozenset({"origin"})
        terms = (Term(Word("from", "origin", "origin", concepts=origin)),)
    return Query(text, kind, wanted, people, terms, tuple(_owned(found)), found)


def _weighty(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms, at full weight where a question has nothing but light ones."""
    if any(term.weight > _GENERIC_WEIGHT for term in terms) or not any(t.known for t in terms):
        return terms
    return tuple(replace(term, weight=1.0) if term.verb else term for term in terms)


_GENERIC_WEIGHT = 0.3
_MODALS = lexicon.word_set("would might can could must should may will shall")


def _is_about(found: tuple[Word, ...], index: int) -> bool:
    """Whether a word names somebody the question is about: not the `I` of `where would I find`."""
    word = found[index]
    if not word.name or word.lower in ("we", "us"):
        return False
    return not (word.pronoun and word.lower in ("i", "you") and _is_anyone(found, index))


def _is_anyone(found: tuple[Word, ...], index: int) -> bool:
    """Whether an `I` or `you` stands for anybody: `where would I find`, `how do you get to`."""
    lead = [word.lower for word in found[max(0, index - 2) : index] if word.lower != "not"]
    before = lead[-1] if lead else ""
    after = found[index + 1].lower if index + 1 < len(found) else ""
    return before in _MODALS or (before == "do" and after in _ANYBODYS_VERBS)


_ANYBODYS_VERBS = lexicon.word_set("get reach find enter open buy go need pay use make say know")


def _asked_for(found: tuple[Word, ...]) -> tuple[int, str, Word | None]:
    """Index of the question word, the kind it asks for, the noun that says which kind of thing."""
    for i, word in enumerate(found):
        if word.lower in WH:
            after = found[i + 1].lower if i + 1 < len(found) else ""
            if word.lower == "how" and after in ("high", "large", "big") and _asks_sum(found):
                return i, "number", None
            if word.lower == "how":
                return i, _HOW.get(after, "how"), None
            if word.lower in ("what", "which"):
                return i, "what", _head(found, i)
            return i, {"whom": "who", "whereabouts": "where"}.get(word.lower, word.lower), None
    if found and found[0].lower in _AUXILIARIES:
        return -1, "yesno", None
    if [word.lower for word in found[:3]] == ["the", "name", "of"]:
        return 0, "name", found[1]
    return -1, "about", None


def _asks_sum(found: tuple[Word, ...]) -> bool:
    return any(word.fold in _SUMS for word in found)


_SUMS = lexicon.word_set("rent price wage fee toll tax debt reward bounty cost fine salary bribe")


def _head(found: tuple[Word, ...], start: int) -> Word | None:
    """The noun a `what` asks for: next to it, or the last attribute noun of a `what is`."""
    rest = found[start + 1 :]
    direct = _direct_head(rest, found[start].lower == "which")
    if direct or not rest or rest[0].lower not in ("is", "was", "are", "were", "would", "might"):
        return direct
    nouns = [w for w in rest if w.fold in lexicon.HEADS or w.fold in _ATTRIBUTES]
    return nouns[0] if nouns else None


def _direct_head(rest: tuple[Word, ...], which: bool) -> Word | None:
    verb = bool(rest[1:]) and rest[0].fold == "cost" and rest[1].lower not in _AUXILIARIES
    if verb and rest[1].lower != "of":
        return None
    skipped = ("kind", "sort", "type", "of", "a", "an", "the", "exact", "particular", "was", "is")
    for i, word in enumerate(rest[:5]):
        if word.lower in _AUXILIARIES or word.name:
            return None
        if i == 0 and which and word.lower not in (*skipped, *lexicon.STOP):
            return word
        if word.lower not in skipped:
            after = rest[i + 1] if i + 1 < len(rest) else None
            if after and _is_head(after) and after.lower not in _AUXILIARIES:
                return after
            followed = after is not None and after.lower in _AUXILIARIES
            return word if _is_head(word) or (followed and word.lower not in lexicon.STOP) else None
    return None


def _is_head(word: Word) -> bool:
    return word.fold in lexicon.HEADS or word.fold in _ATTRIBUTES


def _refined(kind: str, head: Word | None, found: tuple[Word, ...]) -> tuple[str, str]:
    if kind == "what" and head is not None:
        if head.fold in _ATTRIBUTES:
            return _ATTRIBUTES[head.fold], ""
        if head.fold in _TIME_NOUNS:
            return "when", f"@{head.fold}" if head.fold in _DATES else ""
        wanted = lexicon.HEADS.get(head.fold, "")
        if wanted in _KIND_TYPES:
            return _KIND_TYPES[wanted], wanted
        return ("kind", wanted) if wanted else ("what", "")
    if kind in ("what", "how") and any("call" in w.concepts for w in found):
        return "name", ""
    paid = any(w.fold == "pay" for w in found) and any(w.lower == "for" for w in found)
    if kind == "what" and (paid or any(w.lower in _PRICED for w in found[1:])):
        return "number", ""
    aimed = any(w.fold in _AIMED or w.lower in _AIMED for w in found[-2:-1])
    if kind == "what" and not aimed and any(w.lower in ("for", "why") for w in found[-1:]):
        return "why", ""
    return kind, ""


_BE = lexicon.word_set("is am are was were")
_PRICED = lexicon.word_set("cost costs earn earns charge charges")
_DATES = ("day", "month", "season", "year")
# What is done for something: `what is it known for` asks for that, not for a reason.
_AIMED = lexicon.word_set("know known famous look wait ask search hope long save pray use need")


def _by_phrase(
    kind: str, wanted: str, found: tuple[Word, ...], head: Word | None
) -> tuple[str, str, tuple[Word, ...]]:
    """Kinds that take more than one word to ask for, and the words that are left to be found."""
    low = [word.lower for word in found]
    if kind == "what" and any("made_of" in word.concepts for word in found) or _parted(low):
        rest = tuple(w for w in found if "made_of" not in w.concepts and w.lower != "made")
        return "kind", "@material", rest
    if kind == "what" and "about" in low and not _content_of(found):
        return "about", "", found
    if kind == "what" and _asks_bond(found):
        return "kind", "@bond", found
    if kind == "what" and low[:2] == ["which", "of"] and head is None:
        return "who", "", found
    if kind in ("how", "what") and "related" in low:
        return "kind", "@bond", tuple(word for word in found if word.lower != "related")
    if kind == "what" and _asks_doing(found):
        return (
            "kind",
            "@doing",
            tuple(w for w in found if w.lower != "do" and "work" not in w.concepts),
        )
    return kind, wanted, found


def _asks_bond(found: tuple[Word, ...]) -> bool:
    """Whether a question is `what is Ann to Ben`."""
    named = [i for i, word in enumerate(found) if word.name]
    return len(named) == 2 and named[1] == named[0] + 2 and found[named[0] + 1].lower == "to"


def _content_of(found: tuple[Word, ...]) -> list[Word]:
    return [w for w in found if not (w.name or w.part or w.lower in lexicon.STOP)]


def _parted(low: list[str]) -> bool:
    """Whether `made` and `of` stand apart: `of what is it made`."""
    return "made" in low and "what" in low and bool({"of", "from"} & set(low[:1] + low[-1:]))


def _asks_doing(found: tuple[Word, ...]) -> bool:
    """Whether nothing but somebody is asked about: `what does Ann do`, `what was Ann before`."""
    rest = [word for word in found[1:] if not (word.name and not word.owner)]
    low = [word.lower for word in rest]
    named = len(rest) < len(found) - 1
    if not named or not all(word.lower in lexicon.STOP or word.part for word in rest):
        return False
    if low[:1] in (["do"], ["does"], ["did"], ["can"], ["could"], ["will"], ["would"]):
        return "do" in low[1:]
    return bool(low) and low[0] in _BE and bool({"now", "before"} & set(low))


def _terms(found: tuple[Word, ...], start: int, head: Word | None, kind: str) -> Iterator[Term]:
    verb = _verb_index(found)
    for i, word in enumerate(found):
        if word.name or word.pronoun or word.lower == "one" or (word.part and not word.concepts):
            continue
        if i == start + 1 > 0 and found[start].lower == "how" and word.lower in _HOW:
            yield from _how_term(word, kind)
        elif word is head:
            yield from _head_term(word, kind)
        elif _is_aside(found, i, start):
            yield from [Term(word, 0.2)] * _counts(word)
        elif not _is_spent(word, found, i, kind):
            yield from _plain_term(found, i, start, verb, head, kind)


def _how_term(word: Word, kind: str) -> Iterator[Term]:
    """What the word after `how` asks for, where it says more than the kind of answer."""
    if kind == "number" and word.lower != "old":
        return
    if concept := _HOW_CONCEPT.get(word.lower):
        asked = Word(word.text, word.lower, word.fold, concepts=frozenset({concept}))
        yield Term(asked, 0.6, needed=concept != "distance")


def _plain_term(
    found: tuple[Word, ...], index: int, start: int, verb: int, head: Word | None, kind: str
) -> Iterator[Term]:
    """The term of a word that is neither what is asked for nor an aside."""
    word, next_to = found[index], index == start + 1 > 0
    word = _narrowed(word, kind)
    found = (*found[:index], word, *found[index + 1 :])
    if not (_counts(word) or (next_to and word.lower in _FIRST_VERBS)):
        return
    is_verb = index == verb
    if _likes(found, index):
        yield Term(word, 1.0, needed=True)
        return
    term = _weighed(_term(_as_asked(found, index), is_verb), found, index, kind, head)
    first = next_to and kind in ("who", "what")
    term = _with_verb(term, kind) if is_verb or first else term
    yield _with_use(term, found, index, kind, first, is_verb)


def _narrowed(word: Word, kind: str) -> Word:
    """A word with what it can only mean in a question: `where is Ann headed`, `an allergy`."""
    if kind == "where" and word.lower == "headed":
        return replace(word, concepts=frozenset({"travel"}))
    if word.fold in ("allergy", "allergic"):
        return replace(word, concepts=frozenset({"allergic"}))
    return word


def _likes(found: tuple[Word, ...], index: int) -> bool:
    """Whether a `like` is what is asked; in `like to drink` the drinking is."""
    after = [word.lower for word in found[index + 1 : index + 2]]
    return found[index].lower == "like" and "like" in found[index].concepts and after != ["to"]


def _is_aside(found: tuple[Word, ...], index: int, start: int) -> bool:
    """Whether a word stands in a question's last clause: `who gets it if I die`."""
    lead = [word.lower for word in found[max(start + 2, 1) : index]]
    return bool({"if", "when"} & set(lead)) or lead[-2:] == ["as", "a"]


# Verbs that carry little elsewhere, but not right after `who` or `what`: `who knows about it`.
_FIRST_VERBS = lexicon.word_set("know knows knew bit")


def _as_asked(found: tuple[Word, ...], index: int) -> Word:
    """A word as an owner or not: `the queen's name` asks about the queen, `of the queen` owns."""
    word = found[index]
    after = found[index + 1 : index + 2]
    if word.owner and not word.name and after and _ATTRIBUTES.get(after[0].fold) == "name":
        return replace(word, owner=False)
    lead = [other.lower for other in found[max(0, index - 2) : index]]
    if not word.owner and not word.name and "of" in lead:
        return replace(word, owner=True)
    return word


def _with_use(
    term: Term, found: tuple[Word, ...], index: int, kind: str, first: bool, is_verb: bool
) -> Term:
    """A term with how it is used: as a thing, as the verb that makes the question."""
    before = found[index - 1] if index else None
    generic = any(w.lower in _ANYONE and not w.name for w in found[max(0, index - 2) : index])
    if generic and before is not None and before.lower in _ANYONE and not term.hard:
        return replace(term, weight=min(term.weight, 0.3), verb=True)
    thing = before is not None and (before.owner or before.lower in _OPENERS)
    if thing and term.weight == _LIGHT_WEIGHT:
        return replace(term, weight=0.8)
    counted = kind == "number" and [w.lower for w in found[max(0, index - 2) : index - 1]] == [
        "many"
    ]
    deed = counted and any(concept[0] != "@" for concept in term.word.concepts)
    return replace(term, needed=first or term.needed, verb=is_verb or first or deed)


_ANYONE = lexicon.word_set("i you one we anyone anybody somebody someone")


def _is_spent(word: Word, found: tuple[Word, ...], index: int, kind: str) -> bool:
    """Whether a word only repeats what the question's kind says: `what day of the week`."""
    if word.lower == "going" and [w.lower for w in found[index + 1 : index + 2]] == ["to"]:
        goal = found[index + 2 : index + 3]
        return any(not w.name and not w.owner and w.lower not in _OPENERS for w in goal)
    if word.lower == "past" and index and found[index - 1].lower == "the":
        return True
    if word.fold in ("special", "odd", "strange", "unusual") and found[-1] is not word:
        return kind == "what"
    if word.fold == "wrong" and any(w.name and not w.owner for w in found[index + 2 : index + 3]):
        return False  # `wrong with Bram`: he ails
    if word.fold in ("wrong", "happen") and kind == "what" and len(found) > 3:
        return True
    if kind == "when" and word.fold in _TIME_NOUNS:
        return True
    if word.fold in ("family", "household", "folks", "kin") and index and found[index - 1].owner:
        return True
    if word.fold == "body" and any(w.fold in ("part", "limb") for w in found[:index]):
        return True
    if kind == "name" and word.fold == "give" and word is not found[-1]:
        return True  # what name did Ann give the cat
    before = found[index - 1].lower if index else ""
    return before == "much" and lexicon.HEADS.get(word.fold) == "@coin"


def _counts(word: Word) -> bool:
    if word.lower in WH:
        return False
    if word.lower == "like":
        return "like" in word.concepts
    phrase = bool(word.concepts) and not lexicon.concepts(word.fold) >= word.concepts
    return phrase or not (word.lower in lexicon.STOP or word.lower in _AUXILIARIES)


def _weighed(term: Term, found: tuple[Word, ...], index: int, kind: str, head: Word | None) -> Term:
    """A term, lighter where its word hardly narrows the question down."""
    concepts = term.word.concepts
    before = {word.lower for word in found[max(0, index - 2) : index]}
    if kind == "where" and term.word.fold in ("place", "spot", "home", "house"):
        return replace(term, weight=min(term.weight, 0.2))
    if kind == "number" and index and found[index - 1].lower == "to" and not term.hard:
        return replace(term, weight=min(term.weight, _LIGHT_WEIGHT))
    if term.word.lower == "get" and not term.hard:
        return replace(term, weight=min(term.weight, _LIGHT_WEIGHT))
    if _is_adjective(found, index, head):
        closest = term.word.lower.endswith("est")  # the closest friend is a friend
        return replace(term, weight=min(term.weight, 0.05 if closest else 0.2))
    times = {concept for concept in concepts if concept[0] == "@"} <= {"@moment", "@day"}
    if concepts & {"@moment", "@day"} and times and kind != "when" and before & _ADVERBIAL:
        return replace(term, weight=0.1)
    if kind == "where" and concepts & {"hide", "lie_at", "store", "find"} and not term.hard:
        return replace(term, weight=min(term.weight, 0.4))
    aside = "@place" in concepts and kind != "where" and before & {"at", "in", "on"}
    if aside and not any(word.owner for word in found[max(0, index - 2) : index]):
        return replace(term, weight=0.5)
    if concepts <= {"arrive", "@place"} and found[index - 1].owner and kind == "number":
        return replace(term, weight=0.3)
    return term


def _with_verb(term: Term, kind: str) -> Term:
    """A main verb, heavier where the rest must not outvote it: who *stole* the raven."""
    if term.known and term.weight == 1.0 and not term.hard and kind != "kind":
        return replace(term, weight=_VERB_WEIGHT)
    loose = kind in ("why", "who", "what", "how", "kind")
    return replace(term, weight=1.0) if loose and not term.known else term


_ADVERBIAL = lexicon.word_set("one these this last next every each some any the at in")


def _is_adjective(found: tuple[Word, ...], index: int, head: Word | None) -> bool:
    """Whether a word only colours the noun after it: `closest friend`, `foreign tongue`."""
    word = found[index]
    after = found[index + 1] if index + 1 < len(found) else None
    if after is None or after.lower in lexicon.STOP or after.name or word.owner:
        return False
    superlative = word.lower.endswith("est") and word.lower != word.fold
    plain = superlative or word.lower in ("best", "worst", "main", "true")
    return plain or (not word.concepts and after is head)


def _head_term(word: Word, kind: str) -> Iterator[Term]:
    wanted = lexicon.HEADS.get(word.fold, "")
    relations = any(concept[0] not in "@=<" for concept in word.concepts)
    if word.fold in ("number", "amount", "sum", "total"):
        return
    if kind == "when" and word.fold in _TIME_NOUNS:
        return
    if kind == "name" or (kind in ("when", "where", "who") and not relations):
        return
    if kind == "kind" and not word.owner:
        yield Term(word, 0.6, head=wanted)
    elif kind == "what" and not word.owner:
        yield Term(word, 0.6, head=UNTYPED, known=bool(word.concepts))
    else:
        known = bool(word.concepts)
        yield Term(word, 0.8 if known else 0.4, known=known)


_TIME_NOUNS = lexicon.word_set("time hour day date year month week season")


def _term(word: Word, is_verb: bool) -> Term:
    known = bool(word.concepts or word.hints)
    agent = bool(word.concepts & _AGENTS) and not is_verb
    agent = agent and not (word.lower.endswith("ing") and "@animal" in word.concepts)
    if "@kin" not in word.concepts and "@animal" not in word.concepts:
        agent = agent and all(c[0] in "@=<" or c in _AGENTS for c in word.concepts)
    wide = lexicon.HEADS.get(word.fold, "") if word.fold in lexicon.HEADS else ""
    if wide in ("@place", "@coin", "@person", "@direction", "@unit"):
        wide = ""
    if is_verb and word.fold in lexicon.LIGHT:
        wide = ""
    if word.fold in lexicon.LIGHT and not word.concepts - lexicon.concepts(word.fold):
        return Term(word, _LIGHT_WEIGHT if not agent else 1.0, agent, wide)
    if not known and is_verb:
        return Term(word, _UNKNOWN_VERB_WEIGHT, known=False)
    return Term(word, 1.0, agent, wide, known)


# The head of `which ship`, `what song`: what answers it may be a name alone.
UNTYPED = "?"
_OPENERS = ("a", "an", "the", "this", "that")


def _verb_index(found: tuple[Word, ...]) -> int:
    """Index of the likely main verb of a question with do, did or does; -1 where none shows."""
    helpers = [i for i, word in enumerate(found) if word.lower in ("do", "does", "did")]
    if not helpers:
        return -1
    start = helpers[-1] + 1
    inside = start < len(found) and (found[start].owner or found[start].lower in _OPENERS)
    for i in range(start + 1 + inside, len(found)):
        plain = found[i].lower not in lexicon.STOP and not found[i].name
        if plain and (not inside or _may_be_verb(found, i)):
            return i
    return -1


def _may_be_verb(found: tuple[Word, ...], index: int) -> bool:
    word = found[index]
    relation = any(concept[0] not in "@=<" for concept in word.concepts)
    return relation or word.fold in lexicon.LIGHT or index == len(found) - 1


def _owned(found: tuple[Word, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for i, word in enumerate(found):
        if word.owner and word.name:
            yield word.name, owned_folds(found, i)
        if word.lower == "of" and 0 < i < len(found) - 1 and found[i + 1].name:
            yield found[i + 1].name, (found[i - 1].fold,)


def owned_folds(found: tuple[Word, ...], index: int) -> tuple[str, ...]:
    """Folded words of the noun phrase that follows the owner at `index`: at most three."""
    folds: list[str] = []
    for word in found[index + 1 : index + 4]:
        if word.lower in lexicon.STOP or (word.name and word.owner):
            break
        folds.append(word.fold)
    return tuple(folds)
