"""Who answers a line, decided once for all assistants of a room.

A room with people is a conversation, not a queue of prompts. `answerers` decides from what was
heard, who is here and who has talked with whom. This module imports neither Evennia nor a model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import regex

from evennia_ai.language.script import bordered, folded, is_asked, is_unparted, words
from evennia_ai.language.tables import SMALL_TALK, each_phrase
from evennia_ai.language.words import STOP_WORDS, is_common, is_form, without_article

# Characters without a person behind them may get this many replies before a person speaks.
REPLIES_WITHOUT_PERSON = 2
# Characters in which a name is looked for: a form of address stands at one end of a short line.
ADDRESS_CHARS = 600
# Seconds for which a talk goes on without a name, as people who stand together expect.
THREAD_S = 60.0
DIRECT = ("whisper", "page")

# Stand for a name, and for all who are here, in a line that is looked at; what names are, a list
# beside it.
_NAME, _ALL = "\x01", "\x02"
_MARK = rf"[{_NAME}{_ALL}]"
_WORDS = regex.compile(r"[\w'’]+")
# What sets a name off from what follows, and what stands before one that is set off on both sides.
_SET_OFF, _COMMAS = ",:!?\\-–—.،؛؟、。।~…！，：？", tuple(",،、，")
# The end of the sentence or a mark, in scripts without capitals behind a few letters: `민준아,`.
_GLUED = r"(?:(?!\p{Lu}|\p{Ll})[\w\p{M}]){1,3}\s*[,،、，]"
_CALLED = regex.compile(rf"\s*(?:$|[{_SET_OFF}]|{_GLUED})")
_OWNS = ("'s", "’s")
# Names in a row, with a mark or a word for `and` between.
_AND = "|".join((r"[,،、，&]", *map(bordered, each_phrase("and"))))
_LISTED = regex.compile(rf"{_MARK}(?:\s*(?:{_AND})\s*{_MARK})+", regex.V1)
_NAMES = rf"({_NAME}(?:\s*(?:{_AND})\s*{_NAME})*)"
# Names that stand, as words of their own, at the beginning and at the end of a line.
_FIRST = regex.compile(rf"([^{_NAME}{_ALL}]*){_NAMES}\s", regex.V1)
_LAST = regex.compile(rf"\s{_NAMES}[^\w{_NAME}{_ALL}]*$", regex.V1)
_PART_ENDS = regex.compile(f"[{''.join(_COMMAS)}]")
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
    2. Else the one this speaker has been talking with lately, unless somebody else was addressed,
       by this speaker or as this speaker by somebody else.
    3. Else nobody where people talk among themselves; where one person stands alone with
       assistants, the one whom the words concern most.

    A line of a character without a person behind it is answered only by those it addresses, and
    only `REPLIES_WITHOUT_PERSON` times until a person speaks. What an assistant says to all who are
    here is answered by nobody: mostly it answers a line to all of them, as the others do.

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
    if line.channel in DIRECT or line.receivers:
        called, named = line.receivers, tuple[str, ...]()
    else:
        called, named = addressed(line.text, list(others.values()))
        if not called:  # `what do you serve Aria, at this hour`
            called = _called_before_comma(line.text, list(assistants.values()))
    wanted = (*called, *named) if line.channel == "pose" else called
    chosen = tuple(id for id in wanted if id in assistants)
    # Somebody who is not here pages, which only players can do.
    kind = next((each.kind for each in people if each.id == line.speaker), "player")
    if kind == "assistant" and len(others) > 1 and others.keys() <= set(called):
        chosen = ()
    if kind != "player":
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
        # Whoever is called talks with the one who called, as long as not everybody is.
        if line.channel == "say" and (len(called) < len(others) or len(others) == 1):
            players = (id for id in called if id in others and others[id].kind == "player")
            partners.update(dict.fromkeys(players, (line.speaker, line.at)))
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
    by marks, behind a greeting, behind one word alone, and where it begins a question; where none
    does, at the beginning of the line, else at its end. `everyone` calls all.
    """
    text = " ".join(text[:ADDRESS_CHARS].split())
    marked, found = _marked(text, people)
    called: list[str] = []
    named: list[str] = []
    for ids, is_called in zip(found, _calls(marked), strict=True):
        if is_called:
            called += ids
        elif len(ids) < len(people) or len(people) == 1:
            named += ids
    called = list(dict.fromkeys(called))
    return tuple(called), tuple(id for id in dict.fromkeys(named) if id not in called)


def _called_before_comma(text: str, people: Sequence[Person]) -> tuple[str, ...]:
    """Who is called at the end of the first part before a comma that calls any of some people."""
    parts = _PART_ENDS.split(text[:ADDRESS_CHARS])[:-1]
    return next(filter(None, (addressed(part, people)[0] for part in parts)), ())


@cache
def _opening() -> regex.Pattern[str]:
    """Courtesies of all languages, the longest first."""
    phrases = {phrase for key in SMALL_TALK for phrase in each_phrase(key)}
    return regex.compile("|".join(map(bordered, sorted(phrases, key=len, reverse=True))), regex.V1)


def _marked(text: str, people: Sequence[Person]) -> tuple[str, list[tuple[str, ...]]]:
    """A folded text with a mark in place of each name, and whose names those were, in order."""
    owners: dict[str, list[str]] = {}
    for person in people:
        for form in _forms(person.names):
            owners.setdefault(form, []).append(person.id)
    names, shown = list(owners), folded(text)
    for word in set(regex.findall(r"[\w\p{M}]+", text)):
        form = folded(word)
        is_name = word[0] == word[0].title() and not is_unparted(word)
        if is_name and form not in owners:  # `Aniu!` calls Ania
            owners[form] = [id for name in names if is_form(form, name) for id in owners[name]]
    everyone = each_phrase("everyone")
    for phrase in everyone:
        if not owners.get(phrase):
            owners[phrase] = [person.id for person in people]
    forms = sorted(filter(owners.get, owners), key=len, reverse=True)
    groups = "|".join(f"({_bordered(form)})" for form in forms)
    found: list[tuple[str, ...]] = []
    has_capitals = text != text.lower()
    # A description (`a slender innkeeper`) is small in its whole and in its parts.
    named = [name for person in people for name in person.names if name != name.lower()]
    parts = set(_forms(tuple(named))) - set(map(folded, named))

    def mark(match: regex.Match[str]) -> str:
        form = forms[(match.lastindex or 1) - 1]
        said = text[match.start() : match.end()] if len(text) == len(shown) else ""
        is_small = said == form and said != said.title()
        is_other = is_common(form) or (has_capitals and form in parts)
        if form not in everyone and is_small and is_other:
            return str(match[0])  # `will` is a verb, `Will` a person; `old` is not Old Tom
        found.append(tuple(dict.fromkeys(owners[form])))
        return _ALL if form in everyone else _NAME

    marked = regex.sub(groups, mark, regex.sub(_MARK, " ", shown), flags=regex.V1)
    return str(marked), found


def _bordered(form: str) -> str:
    """A pattern for a name as a whole word, or as a run of letters in scripts without spaces."""
    # Particles make a Korean name a subject or an object.
    is_hangul = regex.search(r"\p{Hangul}$", form)
    return bordered(form) + (rf"(?!\p{{Hangul}}{{1,2}}(?![{_SET_OFF}]|$))" if is_hangul else "")


@lru_cache(maxsize=1_024)
def _forms(names: tuple[str, ...]) -> tuple[str, ...]:
    """How somebody may be called, folded: whole names, also without an article, and their ends."""
    forms = []
    for name in names:
        words = folded(name).split()
        parts = (word for word in (*words[:1], *words[-1:]) if word not in STOP_WORDS)
        whole = " ".join(words)
        forms += [whole, *parts, without_article(whole)]
    return tuple(filter(None, dict.fromkeys(forms)))


def _calls(marked: str) -> list[bool]:
    """For each mark in a text, whether it calls somebody rather than only names them."""
    calls: list[bool] = []
    for sentence in _ENDS.split(marked):
        position = 0
        while mark := regex.search(_MARK, sentence, pos=position):
            start = mark.start()
            listed = _LISTED.match(sentence, start)
            position = listed.end() if listed else start + 1
            before, is_all = sentence[:start], mark[0] == _ALL
            is_called = _is_called(before, sentence[position:], is_all)
            listed_calls = [is_called] * len(regex.findall(_MARK, sentence[start:position]))
            if not is_called and _CALLED.match(behind := sentence[start + 1 :]):
                # `Aria, Boris is late` is no list: the first name is set off by itself.
                listed_calls[0] = _is_called(before, behind, is_all)
            calls += listed_calls
    if any(calls):
        return calls
    first, last = _FIRST.match(marked), _LAST.search(marked)
    if first is not None and not _WORDS.search(_opening().sub(" ", first[1])):
        number = first[2].count(_NAME)
        return [True] * number + calls[number:]
    number = 0 if last is None else last[1].count(_NAME)
    return calls[: len(calls) - number] + [True] * number


def _is_called(before: str, behind: str, is_all: bool) -> bool:
    """Whether a name between these parts of a sentence is a form of address."""
    ahead, follows = _opening().sub(" ", before), _WORDS.search(behind)
    is_set_off = _CALLED.match(behind) is not None
    if not _WORDS.search(ahead):
        is_first = not is_all and not regex.search(_MARK, before) and behind[:2] not in _OWNS
        is_greeted = is_all and not _WORDS.search(_opening().sub(" ", behind))
        return is_set_off or is_greeted or (is_first and is_asked(behind))
    if is_set_off and before.rstrip().endswith(_COMMAS):
        return True
    ahead_words = len(words(ahead)) + len(regex.findall(_MARK, ahead))
    return is_set_off and ahead_words <= 1 and (follows is not None or not is_asked(behind))
