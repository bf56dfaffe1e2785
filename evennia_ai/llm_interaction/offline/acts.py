"""What somebody orders by a typed line: a verb of the language, and the name of what it is done to.

A line is read as the tables know verbs and as the prompt names things, people and ways out. It is
an order only if nothing else is said in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache

import regex

from evennia_ai.history.messages import Heard
from evennia_ai.language.script import bordered, folded, is_asked, is_unparted, words
from evennia_ai.language.tables import Table, tables
from evennia_ai.language.times import due
from evennia_ai.language.words import content_words, sentences, without_article
from evennia_ai.llm_interaction import conversation as form
from evennia_ai.llm_interaction.offline.transcript import Talk, ToolCall

REMEMBERED = 8  # importance of what the assistant was asked to remember
JOURNAL_CHARS = 1200
MAX_NAME = 3  # words of a name that the prompt does not show
MAX_TIME = 6  # words of a time
# A word as it stands, with what may join its parts.
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}'’-]+")
_HAS_WORD, _DIGIT = regex.compile(r"\w"), regex.compile(r"\d")
_MARKS = r"[\s,،、，:：;!！.…。?？؟–—-]*"
_SAYS = ("whisper", "tell", "remember")  # verbs before words that are kept or passed on
# Verbs that do something, and the argument of their tools.
_DOES = {"give": "thing", "get": "thing", "look": "target", "move": "direction"}
# What begins an order to do something now, not to keep it in mind.
ORDERS = ("whisper", "tell", *_DOES)
_NOON = datetime(2000, 1, 1, 12)  # of any day: it is only asked whether words are a time


@cache
def pattern(code: str, *keys: str) -> regex.Pattern[str]:
    """A pattern for the phrases of some lists of a language, the longest first."""
    table = tables()[code]
    phrases = {form for key in keys for form in _forms(table, key)}
    longest = sorted(phrases, key=len, reverse=True)
    return regex.compile("|".join(map(bordered, longest)) or "(?!)", regex.V1 | regex.I)


def _forms(table: Table, key: str) -> Iterator[str]:
    """The phrases of a list as they are compared, and as they are written."""
    yield from table.phrases(key)
    yield from filter(None, map(str.strip, table.get("words", key).lower().split("|")))


def comparable(text: str) -> str:
    """A text as phrases are looked for in it, letter by letter as long as the text."""
    shown = folded(text)
    return shown if len(shown) == len(text) else text.lower()


def read_order(line: Heard, text: str, talk: Talk, table: Table) -> ToolCall | None:
    """The call that does what a line orders; None for no order.

    Args:
        line: The line.
        text: Its words without the assistant's name and a greeting.
        talk: The talk.
        table: Of the language of the talk.
    """
    parts = sentences(text)
    orders = (_by_verb(line, parts[at:], talk, table) for at in range(len(parts)))
    return next(filter(None, orders), None)


def _by_verb(line: Heard, parts: Sequence[str], talk: Talk, table: Table) -> ToolCall | None:
    """The order of the first of some sentences, by the verb that begins or ends it.

    A thing alone with a `please` is asked for, too.
    """
    part, said = parts[0], comparable(parts[0])
    please = pattern(table.code, "please")
    shown = please.sub(lambda found: " " * len(found[0]), said)
    first = _HAS_WORD.search(shown)
    verbs = pattern(table.code, *_SAYS, *_DOES)
    verb = first and verbs.match(shown, first.start())
    is_first = verb is not None
    if verb is None:
        ending = (verb for verb in verbs.finditer(shown) if not _HAS_WORD.search(shown, verb.end()))
        verb = next(ending, None)
    if verb is None:
        wish = please.search(said)
        if wish is None or is_asked(part):
            return None
        wished = part[: wish.start()]  # `a mug of ale, please, a cold one`
        if not _HAS_WORD.search(wished):
            wished = part
        return _doing("give", line, wished, False, talk, table)
    is_phrase = " " in verb[0]
    if is_asked(part) and not is_phrase and not _HAS_WORD.search(said, 0, first.start()):
        return None
    key = next(key for key in (*_SAYS, *_DOES) if verb[0].lower() in _forms(table, key))
    before, behind = part[: verb.start()], part[verb.end() :]
    if key in _DOES:
        return _doing(key, line, f"{before} {behind}", is_first and not is_phrase, talk, table)
    if is_first:
        return _saying(key, line, " ".join([behind, *parts[1:]]), talk, table)
    return _saying(key, line, part[: len(shown[: verb.start()].rstrip())], talk, table)


def _saying(key: str, line: Heard, rest: str, talk: Talk, table: Table) -> ToolCall | None:
    """A call that keeps words or passes them on."""
    rest = _without_joints(rest, table)
    if key == "remember":
        if not content_words(rest, table):
            return None
        if line.who:
            rest = f"{line.who}: {rest[:1].upper()}{rest[1:]}"
        arguments = {"content": rest[:JOURNAL_CHARS], "importance": REMEMBERED}
        return ToolCall("add_journal_entry", arguments)
    if key == "tell" and (when := _time_in(rest, table)):
        time, told = when
        told = _without_joints(told, table)
        return ToolCall("tell_later", {"when": time, "text": told}) if told else None
    name, told = _name_in(rest, talk.people, table)
    if not name or not told:
        return None
    if key == "whisper":
        return ToolCall("whisper", {"target": name, "text": told})
    return ToolCall("tell_later", {"to": name, "text": told})


def _without_joints(text: str, table: Table) -> str:
    """Words without marks and joints before them, or behind them in scripts without spaces."""
    joints = pattern(table.code, "joints").pattern
    before = regex.compile(rf"(?:{_MARKS}(?:{joints}))*{_MARKS}", regex.V1 | regex.I)
    text = text[before.match(comparable(text)).end() :].strip()
    if table.data.get("unparted"):
        text = regex.sub(rf"(?:{joints})$", "", text, flags=regex.V1)
    return text


def _time_in(rest: str, table: Table) -> tuple[str, str] | None:
    """The time that words begin with, behind one little word at most, and what follows."""
    said = rest.split()
    first = int(bool(said) and folded(said[0]) in table.stop and due(said[0], _NOON) is None)
    best, time = first, None
    beside = {*table.stop, *words(table.get("words", "units"))}
    begins = (word for word in said if not beside.issuperset(words(word)) or due(word, _NOON))
    telling = next(begins, "")
    if not _DIGIT.search(telling) and due(telling, _NOON) is None:
        return None  # `Bram, I come tomorrow` begins with no time
    for end in range(first + 1, min(len(said), first + MAX_TIME) + 1):
        at = due(" ".join(said[first:end]), _NOON)
        if at and (at != time or _DIGIT.search(" ".join(said[best:end]))):
            best, time = end, at
    return (" ".join(said[first:best]), " ".join(said[best:])) if time else None


def _name_in(rest: str, people: Sequence[str], table: Table) -> tuple[str, str]:
    """The name that words begin with, and what follows.

    Somebody may be meant who is not here: a word that is no little one is a name.
    """
    shown = comparable(rest)
    for name in sorted(people, key=len, reverse=True):
        if found := regex.match(bordered(comparable(name)), shown, regex.V1):
            return name, _without_joints(rest[found.end() :], table)
    first = _WORD.match(rest)
    if first is None or folded(first[0]) in table.stop or is_unparted(first[0]):
        return "", ""
    return first[0], _without_joints(rest[first.end() :], table)


def _doing(
    key: str, line: Heard, rest: str, may_guess: bool, talk: Talk, table: Table
) -> ToolCall | None:
    """A call that does something to what a sentence names, if it says nothing else."""
    rest = pattern(table.code, "please").sub(" ", rest)
    things = talk.names(form.THINGS, form.CARRIED)
    here = {
        "give": things,
        "get": talk.names(form.THINGS),
        "look": [*things, *talk.people],
        "move": talk.names(form.WAYS),
    }[key]
    to = ""
    if key == "give" and (to := named_in(rest, talk.people)):
        rest = regex.sub(bordered(comparable(to)), " ", comparable(rest), flags=regex.V1)
    said = set(content_words(rest, table))
    name = named_in(rest, here)
    if not name and said:  # `ale` may be the `ale barrel`
        name = next((each for each in here if said <= set(words(each))), "")
    if name and said - set(words(name)):
        return None
    if key == "give":  # the game knows whether the `ale barrel` is meant by `a mug of ale`
        may_guess = may_guess or any(not said.isdisjoint(words(each)) for each in here)
    if not name and may_guess and key != "move":
        # A few words without the little ones around them.
        few = _WORD.findall(rest)
        places = [at for at, word in enumerate(few) if folded(word) not in table.little]
        few = few[places[0] : places[-1] + 1] if places else []
        name = " ".join(few) if len(few) <= MAX_NAME else ""
    if not name:
        return None
    return ToolCall(key, {_DOES[key]: name, **({"to": to or line.who} if key == "give" else {})})


def named_in(text: str, names: Iterable[str]) -> str:
    """The longest of some names that a text has, maybe without an article; empty for none."""
    shown = comparable(text)
    for name in sorted(names, key=len, reverse=True):
        if regex.search(bordered(comparable(without_article(name))), shown, regex.V1):
            return name
    return ""
