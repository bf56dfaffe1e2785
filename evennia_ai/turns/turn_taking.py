"""Who answers a line, decided once for all assistants of a room.

A room with people is a conversation, not a queue of prompts. `answerers` decides from what was
heard, who is here and who has talked with whom; it knows neither Evennia nor a model.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import NamedTuple

import regex

from evennia_ai.language.script import BEFORE, BEHIND, folded
from evennia_ai.language.tables import DEFAULT, each_words, language_of, tables
from evennia_ai.language.words import asks, is_common

# Characters without a person behind them may get this many replies before a person speaks.
REPLIES_WITHOUT_PERSON = 2
# Characters in which a name is looked for: a form of address stands at one end of a short line.
ADDRESS_CHARS = 600
# Seconds for which a talk goes on without a name, as people who stand together expect.
THREAD_S = 60.0
# Words before a name at the end, or before a comma, that call in an unknown language: `Ahoj, Aria`.
MOST_GREETING_WORDS = 2
ATTENTION = ("addressed", "room", "all")
DIRECT = ("whisper", "page")

# Stand for a name, and for all who are here, in a line that is looked at; what names are, a list
# beside it.
_NAME, _ALL = "\x01", "\x02"
_MARK = rf"[{_NAME}{_ALL}]"
_WORDS = regex.compile(r"[\w'’]+")
_SET_OFF = tuple(",:!?-–—.،؛؟、。।~…")
# Letters beside which a word needs no blank.
_UNPARTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_IS_UNPARTED = regex.compile(rf"[{_UNPARTED}]")
_ENDS = regex.compile(r"(?<=[.!?;؟।])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a room."""

    id: str  # stable id
    names: tuple[str, ...]  # name and aliases
    kind: str = "player"  # ``player``, ``assistant`` or ``scripted`` (a character nobody plays)
    attention: str = "room"  # of an assistant: what it answers
    awake: bool = True  # whether it is awake


@dataclass(frozen=True, slots=True)
class Line:
    """Something said, posed, whispered or paged."""

    speaker: str  # stable id of who spoke
    text: str  # the words; of a pose what stands behind the name
    channel: str = "say"  # ``say``, ``pose``, ``whisper`` or ``page``
    at: float = 0.0  # seconds since the epoch
    receivers: tuple[str, ...] = ()  # of a whisper or page: stable ids of whom it was meant for


@dataclass(frozen=True, slots=True)
class Talk:
    """What a room's manners remember."""

    # Whom each speaker talked with last, and when: ids, seconds since the epoch.
    partners: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    # When each assistant was last chosen to answer.
    spoke: Mapping[str, float] = field(default_factory=dict)
    unattended: int = 0  # replies to characters without a person behind them since a person spoke
    player: str = ""  # who that person was


def answerers(
    line: Line,
    people: Sequence[Person],
    talk: Talk,
    concern: Callable[[str], float] = lambda id: 0.0,
) -> tuple[tuple[str, ...], Talk]:
    """Decide which assistants answer a line.

    1. Those it addresses: by name, alias, `everyone`, whisper, page, or a pose that names them.
    2. Else the one this speaker has been talking with lately, unless somebody else was addressed.
    3. Else nobody where people talk among themselves; where one person stands alone with
       assistants, the one whom the words concern most.

    A line of a character without a person behind it is answered only by those it addresses, and
    only `REPLIES_WITHOUT_PERSON` times until a person speaks.

    Args:
        line: What was said.
        people: All who are in the room, the speaker among them.
        talk: What was said before.
        concern: How much the words concern an assistant, by its id.

    Returns:
        Stable ids of assistants, in the order in which they were addressed; the room's talk from
        now on.
    """
    others = {person.id: person for person in people if person.id != line.speaker}
    assistants = {id: each for id, each in others.items() if each.kind == "assistant"}
    if line.channel in DIRECT:
        called, named = line.receivers, tuple[str, ...]()
    else:
        called, named = addressed(line.text, list(others.values()))
    wanted = (*called, *named) if line.channel == "pose" else called
    chosen = tuple(id for id in wanted if id in assistants)
    # Somebody who is not here pages, which only players can do.
    if not next((each.kind == "player" for each in people if each.id == line.speaker), True):
        chosen = chosen[: max(0, REPLIES_WITHOUT_PERSON - talk.unattended)]
        spoke = {**talk.spoke, **dict.fromkeys(chosen, line.at)}
        return chosen, replace(talk, spoke=spoke, unattended=talk.unattended + len(chosen))
    if not wanted and line.channel == "say":
        chosen = _by_talk(line, people, assistants, talk, concern, named)
    partners = dict(talk.partners)
    if line.channel not in DIRECT:  # whispers show nobody who talks
        eager = [id for id, each in assistants.items() if each.attention == "all"]
        chosen = tuple(dict.fromkeys((*chosen, *eager)))
        turned_to = called if line.channel == "say" and len(chosen) < 2 else ()
        if partner := next(iter((*turned_to, *chosen)), None):
            partners[line.speaker] = (partner, line.at)
    return chosen, Talk(partners, {**talk.spoke, **dict.fromkeys(chosen, line.at)}, 0, line.speaker)


def _by_talk(
    line: Line,
    people: Sequence[Person],
    assistants: Mapping[str, Person],
    talk: Talk,
    concern: Callable[[str], float],
    named: Sequence[str],
) -> tuple[str, ...]:
    """Who answers a line that calls nobody: a partner in talk, who is named, or the nearest."""
    partner, at = talk.partners.get(line.speaker, ("", float("-inf")))
    here = {person.id: person for person in people}
    if partner in here and line.at - at <= THREAD_S:
        listens = partner in assistants and assistants[partner].attention != "addressed"
        return (partner,) if listens else ()
    if sum(person.kind == "player" for person in people) > 1:
        return ()
    nearest = sorted(
        (each for each in assistants.values() if each.attention == "room"),
        key=lambda each: (
            each.id not in named,
            not each.awake,
            -concern(each.id),
            talk.spoke.get(each.id, float("-inf")),
        ),
    )
    return (nearest[0].id,) if nearest else ()


def replied(talk: Talk, assistant: str, to: str, at: float) -> Talk:
    """The talk of a room once an assistant has answered somebody: their talk goes on.

    Unless the one answered has turned to somebody else meanwhile.
    """
    partner, _ = talk.partners.get(to, (assistant, 0.0))
    partners = {**talk.partners, to: (assistant, at)} if partner == assistant else talk.partners
    return replace(talk, partners=partners, spoke={**talk.spoke, assistant: at})


def addressed(text: str, people: Sequence[Person]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Whom a text calls by name, and whom it only names: stable ids, in the text's order.

    ``Aria, is Boris here?`` calls Aria and names Boris. A name calls somebody where it is set off
    by a comma or a colon, where it begins or ends the line as a form of address does, and behind
    a greeting. `everyone` calls all.
    """
    text = " ".join(text[:ADDRESS_CHARS].split())
    manners = _manners(language_of(text))
    marked, found = _marked(text, people, manners)
    called: list[str] = []
    named: list[str] = []
    for ids, is_called in zip(found, _calls(marked, manners), strict=True):
        if is_called:
            called += ids
        elif len(ids) < len(people) or len(people) == 1:
            named += ids
    called = list(dict.fromkeys(called))
    return tuple(called), tuple(id for id in dict.fromkeys(named) if id not in called)


class _Manners(NamedTuple):
    """How people are called in one language."""

    openers: regex.Pattern[str]  # nothing but words that may stand before a name
    closers: regex.Pattern[str]  # those and second persons, behind a name
    second: regex.Pattern[str]  # a second person
    listed: regex.Pattern[str]  # names in a row
    everyone: Mapping[str, str]  # phrases for all who are here, and their marks
    subject: frozenset[str]
    object: frozenset[str]
    questions: tuple[regex.Pattern[str], ...]  # what asks for something
    glued: str
    known: bool  # whether the language is known
    vocative: tuple[tuple[str, ...], ...]  # endings, and those of a name that is called


@cache
def _manners(code: str) -> _Manners:
    """How people are called in a language; in an unknown one, how they are in any."""
    some = [tables()[code]] if code else list(tables().values())

    def words_of(key: str) -> frozenset[str]:
        return frozenset[str]().union(*(table.words(key) for table in some))

    def either(key: str) -> str:
        return "|".join(filter(None, (table.get("speech", key) for table in some)))

    openers, second = _any_of(words_of("before")), _any_of(words_of("you"))
    links = either("and") or "(?!)"
    return _Manners(
        regex.compile(rf"(?:{openers}|[^\w{_NAME}{_ALL}])*", regex.V1),
        regex.compile(rf"(?:\W*(?:{openers}|{second}))+\W*", regex.V1),
        regex.compile(second, regex.V1),
        regex.compile(rf"{_MARK}(?:\s*,?(?:{links}|\s*[,،、&])\s*{_MARK})+", regex.I),
        {
            folded(form): mark
            for mark, key in ((_ALL, "all"), (_NAME, "everyone"))
            for form in tables()[code or DEFAULT].get("lists", key).split("|")
            if form
        },
        words_of("subject"),
        words_of("object"),
        tuple(kind for table in some for kind in table.expressions("questions").values()),
        either("glued") if code else "",  # with all of them the pattern would be slow
        bool(code),
        tuple(tuple(each.split(">")) for each in words_of("vocative") if code),
    )


def _any_of(some: Collection[str]) -> str:
    """A pattern for one of some words; those of scripts without spaces need no border."""
    wanted = sorted(some, key=len, reverse=True)
    run = [regex.escape(word) for word in wanted if _IS_UNPARTED.match(word)]
    parted = [regex.escape(word) for word in wanted if not _IS_UNPARTED.match(word)]
    return rf"(?:(?<![\w'’])(?:{'|'.join(parted) or '(?!)'})(?![\w'’])|{'|'.join(run) or '(?!)'})"


def _marked(
    text: str, people: Sequence[Person], manners: _Manners
) -> tuple[str, list[tuple[str, ...]]]:
    """A folded text with a mark in place of each name, and whose names those were, in order."""
    owners: dict[str, list[str]] = {}
    for person in people:
        for form in _forms(person.names):
            owners.setdefault(form, []).append(person.id)
            for ending, called in manners.vocative:
                if form.endswith(ending):
                    owners.setdefault(form.removesuffix(ending) + called, []).append(person.id)
    for phrase in manners.everyone:
        owners.setdefault(phrase, [person.id for person in people])
    forms = sorted(owners, key=len, reverse=True)
    groups = "|".join(f"({_bordered(form, manners.glued)})" for form in forms)
    found: list[tuple[str, ...]] = []
    shown = folded(text)

    def mark(match: regex.Match[str]) -> str:
        form = forms[(match.lastindex or 1) - 1]
        said = text[match.start() : match.end()] if len(text) == len(shown) else ""
        if form not in manners.everyone and is_common(form) and said == form:
            return str(match[0])  # `will` is a verb, `Will` a person
        found.append(tuple(owners[form]))
        return str(manners.everyone.get(form, _NAME))

    marked = regex.sub(groups, mark, regex.sub(_MARK, " ", shown), flags=regex.V1)
    return str(marked), found


def _bordered(form: str, glued: str) -> str:
    """A pattern for a name, with what the language glues to one that is called."""
    before = "" if _IS_UNPARTED.match(form) else BEFORE
    is_run = _IS_UNPARTED.match(form[-1])
    # Particles make a Korean name a subject or an object; elsewhere words just follow.
    behind = r"(?!\p{Hangul})" if regex.match(r"\p{Hangul}", form[-1]) else "" if is_run else BEHIND
    border = "" if is_run and not behind else r"(?!\w)"
    with_glued = f"(?:(?:{glued}){border})?" if glued else ""
    return f"{before}{regex.escape(form)}{with_glued}{behind}"


@lru_cache(maxsize=1_024)
def _forms(names: tuple[str, ...]) -> tuple[str, ...]:
    """How somebody may be called, folded: whole names, and their first word of weight."""
    forms, titles = [], each_words("titles")
    for name in names:
        words = folded(name).split()
        first = next((word for word in words if word not in titles), "")
        forms += [" ".join(words), first]
    return tuple(dict.fromkeys(form for form in forms if form))


def _calls(marked: str, manners: _Manners) -> list[bool]:
    """For each mark in a text, whether it calls somebody rather than only names them."""
    calls: list[bool] = []
    for sentence in _ENDS.split(marked):
        position = 0
        while mark := regex.search(_MARK, sentence, pos=position):
            start = mark.start()
            listed = manners.listed.match(sentence, start)
            position = listed.end() if listed else start + 1
            before, is_all = sentence[:start], mark[0] == _ALL
            is_called = _is_called(before, sentence[position:], is_all, manners)
            listed_calls = [is_called] * len(regex.findall(_MARK, sentence[start:position]))
            behind = sentence[start + 1 :]
            if not is_called and behind.lstrip().startswith(_SET_OFF):
                # `Aria, Boris is late` is no list: the first name is set off by itself.
                listed_calls[0] = _is_called(before, behind, is_all, manners)
            calls += listed_calls
    return calls


def _is_called(before: str, behind: str, is_all: bool, manners: _Manners) -> bool:
    """Whether a name between these parts of a sentence is a form of address."""
    ahead = _WORDS.findall(before)
    follows = [word.replace("’", "'") for word in _WORDS.findall(behind)]
    if behind[:2] in ("'s", "’s"):
        return False
    if manners.openers.fullmatch(before) and ahead[-1:] != ["tell"]:
        if not follows or behind.lstrip().startswith(_SET_OFF):
            return True
        if is_all:
            return manners.closers.fullmatch(behind) is not None
        if not manners.subject or not behind.startswith((" ", _NAME, _ALL)):
            # Without a list of what may follow a subject, or a blank.
            return manners.closers.match(behind) is not None
        is_subject = follows[0] in manners.subject or follows[0].endswith("ed")
        if is_subject and asks(behind) and any(kind.match(behind, 1) for kind in manners.questions):
            return True  # `Aria who is that`, but not `Aria is late`
        return not is_subject or bool(manners.second.fullmatch(next(iter(follows[1:]), "")))
    is_end = not follows or behind.lstrip()[:1] in tuple(",:،、")
    if not manners.known and is_end and 0 < len(ahead) <= MOST_GREETING_WORDS:
        return manners.object.isdisjoint(ahead)
    if before.rstrip().endswith((",", "،", "、")):
        return not follows or behind.lstrip()[:1] in tuple(",?!.:،؟、。।")
    if follows or is_all or regex.search(_MARK, behind):
        return False  # `with us all` is no call
    return not manners.object.intersection(ahead[-1:]) and bool(manners.second.search(before))
