"""Who answers a line, decided once for all assistants of a room.

A room with people is a conversation, not a queue of prompts. `answerers` decides from what was
heard, who is here and who has talked with whom; it knows neither Evennia nor a model.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from evennia_ai.language.words import is_common

# Characters without a person behind them may get this many replies before a person speaks.
REPLIES_WITHOUT_PERSON = 2
# Characters in which a name is looked for: a form of address stands at one end of a short line.
ADDRESS_CHARS = 600
# Seconds for which a talk goes on without a name, as people who stand together expect.
THREAD_S = 60.0
ATTENTION = ("addressed", "room", "all")
DIRECT = ("whisper", "page")

_TITLES_LIST = """
a an the old young little big captain sir lady lord master mistress father mother brother sister
uncle aunt doctor dr mr mrs ms miss
"""
_TITLES = frozenset(_TITLES_LIST.split())
_EVERYONE = ("everyone", "everybody", "all of you", "both of you", "you all", "you both", "folks")
# `Hello all`, but neither `all is well` nor `that is all`.
_ALL_GREETED = re.compile(
    r"^\W*(?:hello|hi|hey|greetings|good \w+|welcome|bye|goodbye) all\b", re.I
)
_OPENERS_LIST = """
hello hi hey hiya ho greetings welcome good morning day afternoon evening night goodnight bye
goodbye farewell cheers thanks thank you dear oh well so and ok okay yes no please sorry now but
excuse me pardon ahoy hail psst tell
"""
_OPENERS = frozenset(_OPENERS_LIST.split())
# Behind a name that begins a line, these make it the subject: `Aria is late`.
_SUBJECT_VERBS_LIST = """
is isn't was wasn't are were have do has had does doesn't did didn't will won't would can can't
could should might may must said told and or who knows also never always just
"""
_SUBJECT_VERBS = frozenset(_SUBJECT_VERBS_LIST.split())
# Before a name that ends a line, these make it an object: `I asked about Aria`.
_OBJECT_WORDS_LIST = """
a an the of to for from with about by at on in like than and or is are was were be been am i'm
it's that's he's she's know knows knew met meet see saw seen ask asked tell told love hate miss
call called name named not find help trust believe my your his her our their old young
"""
_OBJECT_WORDS = frozenset(_OBJECT_WORDS_LIST.split())
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours|yourself|ya|u)\b", re.I)
_NAME = "\x01"  # stands for a name in a line that is looked at; what names are, a list beside it
_LISTED = re.compile(rf"{_NAME}(?:(?:\s*,\s*|\s*&\s*|\s*,?\s+and\s+){_NAME})+")
_WORDS = re.compile(r"[\w'’]+")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a room.

    Args:
        id: Stable id.
        names: Name and aliases.
        kind: ``player``, ``assistant`` or ``scripted`` (a character nobody plays).
        attention: Of an assistant: what it answers.
        awake: Whether it is awake.
    """

    id: str
    names: tuple[str, ...]
    kind: str = "player"
    attention: str = "room"
    awake: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Something said, posed, whispered or paged.

    Args:
        speaker: Stable id of who spoke.
        text: The words; of a pose what stands behind the name.
        channel: ``say``, ``pose``, ``whisper`` or ``page``.
        at: Seconds since the epoch.
        receivers: Of a whisper or page: stable ids of whom it was meant for.
    """

    speaker: str
    text: str
    channel: str = "say"
    at: float = 0.0
    receivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """What a room's manners remember.

    Args:
        partners: Whom each speaker talked with last, and when: ids, seconds since the epoch.
        spoke: When each assistant was last chosen to answer.
        unattended: Replies to characters without a person behind them since a person spoke.
        player: Who that person was.
    """

    partners: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    spoke: Mapping[str, float] = field(default_factory=dict)
    unattended: int = 0
    player: str = ""


def answerers(
    line: Line,
    people: Sequence[Person],
    talk: Talk,
    concern: Callable[[str], float] = lambda id: 0.0,
) -> tuple[str, ...]:
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
        Stable ids of assistants, in the order in which they were addressed.
    """
    others = {person.id: person for person in people if person.id != line.speaker}
    assistants = {id: each for id, each in others.items() if each.kind == "assistant"}
    if line.channel in DIRECT:
        called, named = line.receivers, tuple[str, ...]()
    else:
        called, named = addressed(line.text, list(others.values()))
        if line.channel == "pose":
            called, named = (*called, *named), ()
    direct = tuple(id for id in called if id in assistants)
    if not _is_person(line.speaker, people):
        return direct[: max(0, REPLIES_WITHOUT_PERSON - talk.unattended)]
    eager = [id for id, each in assistants.items() if each.attention == "all"]
    if line.channel in DIRECT:
        return direct
    if direct:
        return tuple(dict.fromkeys((*direct, *eager)))
    chosen: tuple[str, ...] = ()
    if not called and line.channel == "say":
        chosen = _by_talk(line, people, assistants, talk, concern, named)
    return tuple(dict.fromkeys((*chosen, *eager)))


def _is_person(speaker: str, people: Iterable[Person]) -> bool:
    """Whether a player speaks; somebody who is not here pages, which only players can do."""
    return next((each.kind == "player" for each in people if each.id == speaker), True)


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


def after(line: Line, people: Sequence[Person], talk: Talk, chosen: Sequence[str]) -> Talk:
    """The talk of a room once a line was said and `chosen` answer it."""
    spoke = {**talk.spoke, **dict.fromkeys(chosen, line.at)}
    if not _is_person(line.speaker, people):
        return replace(talk, spoke=spoke, unattended=talk.unattended + len(chosen))
    partners = dict(talk.partners)
    others = [person for person in people if person.id != line.speaker]
    called = () if line.channel in (*DIRECT, "pose") else addressed(line.text, others)[0]
    if len(chosen) > 1:
        called = ()
    partner = next(iter((*called, *chosen)), None)
    if partner is not None and line.channel not in DIRECT:  # whispers show nobody who talks
        partners[line.speaker] = (partner, line.at)
    return Talk(partners, spoke, 0, line.speaker)


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
    return _addressed(" ".join(text[:ADDRESS_CHARS].split()), tuple(people))


@lru_cache(maxsize=64)  # `answerers` and `after` ask the same of each line
def _addressed(text: str, people: tuple[Person, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    marked, found = _marked(text, people)
    called: list[str] = []
    named: list[str] = []
    for ids, is_called in zip(found, _calls(marked), strict=True):
        if is_called:
            called += ids
        elif len(ids) < len(people) or len(people) == 1:
            named += ids
    if _ALL_GREETED.search(text):
        called += [person.id for person in people]
    called = list(dict.fromkeys(called))
    return tuple(called), tuple(id for id in dict.fromkeys(named) if id not in called)


def _marked(text: str, people: Sequence[Person]) -> tuple[str, list[tuple[str, ...]]]:
    """A text with a mark in place of each name, and whose names those were, in order."""
    owners: dict[str, list[str]] = {}
    for person in people:
        for form in _forms(person.names):
            owners.setdefault(form, []).append(person.id)
    for word in _EVERYONE:
        owners[word] = [person.id for person in people]
    forms = sorted(owners, key=len, reverse=True)
    # A group for each form tells which one matched. Looking the matched text up would not: `İ` and
    # `ı` match an `i` and are another letter in lower case.
    groups = "|".join(f"({re.escape(form)})" for form in forms)
    pattern = re.compile(rf"(?<![\w'’])(?:{groups})(?!\w)", re.I)
    found: list[tuple[str, ...]] = []

    def mark(match: re.Match[str]) -> str:
        said, form = match.group(), forms[(match.lastindex or 1) - 1]
        if form not in _EVERYONE and is_common(form) and said == form:
            return said  # `will` is a verb, `Will` a person
        found.append(tuple(owners[form]))
        return _NAME

    return pattern.sub(mark, text.replace(_NAME, " ")), found


@lru_cache(maxsize=1_024)
def _forms(names: tuple[str, ...]) -> tuple[str, ...]:
    """How somebody may be called, in lower case: whole names, and their first word of weight."""
    forms = []
    for name in names:
        words = name.lower().split()
        first = next((word for word in words if word not in _TITLES), "")
        forms += [" ".join(words), first]
    return tuple(dict.fromkeys(form for form in forms if form))


def _calls(marked: str) -> list[bool]:
    """For each mark in a text, whether it calls somebody rather than only names them."""
    calls: list[bool] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", marked):
        position = 0
        while (start := sentence.find(_NAME, position)) >= 0:
            listed = _LISTED.match(sentence, start)
            end = listed.end() if listed else start + 1
            is_called = _is_called(sentence[:start], sentence[end:])
            calls += [is_called] * sentence.count(_NAME, start, end)
            position = end
    return calls


def _is_called(before: str, behind: str) -> bool:
    """Whether a name between these parts of a sentence is a form of address."""
    ahead = [word.lower() for word in _WORDS.findall(before)]
    follows = [word.lower().replace("’", "'") for word in _WORDS.findall(behind)]
    if behind[:2] in ("'s", "’s"):
        return False
    opened = all(word in _OPENERS for word in ahead)
    if opened and ahead[-1:] != ["tell"]:
        if not follows or behind.lstrip()[:1] in (",", ":", "!", "?", "-", "–", "—", "."):
            return True
        is_subject = follows[0] in _SUBJECT_VERBS or follows[0].endswith("ed")
        return not is_subject or _SECOND_PERSON.fullmatch(next(iter(follows[1:]), "")) is not None
    if before.rstrip().endswith(","):
        return not follows or behind.lstrip()[:1] in (",", "?", "!", ".", ":")
    if follows or _NAME in behind:
        return False
    return ahead[-1] not in _OBJECT_WORDS and bool(_SECOND_PERSON.search(before))


def overlap(text_words: Collection[str], known_words: Collection[str]) -> float:
    """How much a text concerns somebody: the share of its telling words they have to do with."""
    return len(set(text_words) & set(known_words)) / len(text_words) if text_words else 0.0
