"""What somebody wants by a line: a greeting, a question, something to be kept, an order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import regex

from evennia_ai.language.script import is_asked, is_unparted, size
from evennia_ai.language.tables import Table, language_of, table_of
from evennia_ai.language.words import MAX_QUERY_CHARACTERS, asks, content_words, words
from evennia_ai.llm_interaction.offline.prose import (
    frame_of,
    is_fixed,
    is_nonsense,
    is_question,
    names_in,
    root_set,
    sentences,
)
from evennia_ai.llm_interaction.offline.transcript import SILENT, Line, quotes_of

MAX_ACTS, MAX_SENTENCES = 12, 40
JOURNAL_CHARS = 1200
# Kinds that a line has only if it says nothing else: `what day is it`, not `what day is the fair`.
_BARE = ("attention", "day", "clock", "people", "place")
_COURTESIES = ("thanks", "farewell", "greeting")
MAX_NAME = 5  # signs, in a script without spaces, of a name before a greeting
SHORT = 5  # words: a line of fewer in no known language, without names and numbers, tells nothing
_MARKS = r",:!.?،؛؟，、：！？。।–—-"
_CALLED = regex.compile(r"^[\w\p{M}]+\s*[,،、，:：!！]\s*")
_BEHIND = regex.compile(rf"\w{{0,4}}\s*(?:[{_MARKS}]|$)")
_GOES_ON = regex.compile(r"[,،؛、，:：!！–—]\s*(?=\w)")
# A longer sentence is not parted behind a courtesy.
COURTEOUS_CHARS = 300


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that `who` wants: a `kind`, its words, and whom a whisper is for.

    Beside the kinds of the table there are ``question``, ``fact``, ``remember``, ``nonsense``,
    ``gesture`` and ``chatter``.
    """

    kind: str
    text: str
    who: str
    target: str = ""


def read_acts(line: Line, me: str) -> list[Act]:
    """What one line wants, in order; never empty for a line with words."""
    if line.verb in SILENT:
        return []
    text = vocative(line.text, me)
    if not regex.search(r"\w", text.replace(me, "")) and me.lower() in line.text.lower():
        return [Act("attention", line.text, line.who)]
    if line.verb == "poses":
        return [Act("gesture", line.text, line.who)]
    if quotes_of(text):  # another assistant repeats what it was told
        return [Act("chatter", text, line.who)]
    acts: list[Act] = []
    for act in list(_acts(sentences(text)[:MAX_SENTENCES], line.who))[:MAX_ACTS]:
        back = act.kind == "chatter" and table_of(act.text).expression("speech", "back")
        goes_on = act.kind == "fact" or (back and back.match(act.text))
        if acts and acts[-1].kind == "fact" and goes_on:
            acts[-1] = Act("fact", f"{acts[-1].text} {act.text}", act.who)
        else:
            acts.append(act)
    return [act for act in acts if act.kind != "chatter"] or acts[:1]


def vocative(text: str, me: str) -> str:
    """What was said, without calling `me` by name at its start or end."""
    table = table_of(text)
    speech = partial(table.expression, "speech")
    name = regex.escape(me) + rf"(?:{table.get('speech', 'glued') or '(?!)'})?"
    hail, before, and_ = (speech(key).pattern for key in ("hail", "before_name", "and"))
    text = regex.sub(rf"(?i)^({hail}) ?{name}\b[\s{_MARKS}]*", r"\1. ", " ".join(text.split()))
    # `Aria and Boris, good night!`
    others = rf"(?:{and_})\w+(?=\s*[,،，、:：])"  # no sentence of its own
    called = rf"^\W*(?:(?:{before}) ?)?(?:\w+(?:{and_}))*{name}(?:{others})?"
    text = regex.sub(rf"(?i){called}(?:\s*[{_MARKS}]+\s*|(?={speech('you').pattern}))", "", text)
    text = regex.sub(rf"(?i)[,،，、]?\s*\b{name}(?=[{_MARKS}]*$)", "", text)
    # `aria where is the key`, but not `Aria is late`.
    if begin := regex.match(rf"(?i)\W*(?:(?:{before}) ?)?{name}\s+(?=\w)", text):
        rest, subject = text[begin.end() :], table.words("subject")
        if asks(rest) or (subject and subject.isdisjoint(words(rest)[:1])):
            text = rest
    return str(text).strip()


def asks_to_remember(text: str, me: str) -> bool:
    """Whether one asks `me` to keep something in mind."""
    parts = sentences(vocative(text[:MAX_QUERY_CHARACTERS], me))
    return any(map(_reminder, parts[:MAX_SENTENCES]))


def told_part(text: str, me: str) -> str:
    """What was told, without calling `me`, `please remember that`, `by the way` and the like."""
    parts = sentences(vocative(text, me))
    remember = table_of(text).expression("speech", "remember")
    if parts and (asked := remember.match(parts[0])) and asked["rest"]:
        parts[0] = asked["rest"]
    return _without_lead(" ".join(parts))


def journal_text(act: Act) -> str:
    """What to write down of a fact or of something to remember: the words, with who said them."""
    told = _without_lead(act.text)
    return (f"{act.who}: {told}" if act.who and told else told)[:JOURNAL_CHARS]


def _without_lead(text: str) -> str:
    text = table_of(text).expression("speech", "lead").sub("", text) or text
    return text[:1].upper() + text[1:]


def _acts(parts: Sequence[str], who: str) -> Iterator[Act]:
    for i, part in enumerate(parts):
        if asked := _reminder(part):
            yield Act("remember", " ".join([asked["rest"], *parts[i + 1 :]]).strip(), who)
            return
        yield from acts_of(part, who)


def _reminder(part: str) -> "regex.Match[str] | None":
    """What a sentence asks to remember, in the group ``rest``; None if it does not ask that."""
    speech = partial(table_of(part).expression, "speech")
    asked = speech("remember").match(part)
    is_meant = asked and not speech("asked_back").match(asked["rest"]) and not is_asked(part)
    return asked if is_meant else None


def acts_of(part: str, who: str) -> Iterator[Act]:
    """What one sentence wants; of several only where it goes on behind a courtesy or an order."""
    part, table = _uncalled(part), table_of(part)
    for kind, pattern in table.expressions("kinds").items():
        if match := pattern.search(part):
            if kind in _BARE and content_words(pattern.sub(" ", part), table):
                continue
            if kind == "order" and _asks_for(part, table):  # `Tell me where Bram is.`
                continue
            groups = match.groupdict()
            yield Act(kind, groups.get("rest") or part, who, groups.get("who") or "")
            may_go_on = kind in (*_COURTESIES, "order") and len(part) <= COURTEOUS_CHARS
            if may_go_on and (mark := _GOES_ON.search(part, match.end())):
                for act in acts_of(part[mark.end() :], who):  # `Shun the soup, it made me ill.`
                    is_advice = (kind, act.kind) == ("order", "fact")
                    yield replace(act, text=part) if is_advice else act
            return
    yield _plain_act(part, who, table)


def _uncalled(part: str) -> str:
    """A greeting without the name before it, in whatever script that is: `アリア、こんばんは！`."""
    table = table_of(part)
    letter, most = (r"\X", MAX_NAME) if is_unparted(part) else (r"\w+(?=\W)", 1)
    greeting, own = table.expression("kinds", "greeting"), table.expression("speech", "own")
    for signs in range(1, most + 1):
        name = regex.match(rf"(?:{letter}){{{signs}}}[\s{_MARKS}]*", part)
        at = greeting.match(part[name.end() :]) if name else None
        if name and at and _BEHIND.match(at.string, at.end()) and not own.search(name[0]):
            return str(at.string)
    return part


def _asks_for(part: str, table: Table) -> bool:
    """Whether a line asks for something that it names by a question word."""
    asked = (each.search(part) for each in table.expressions("questions").values())
    return is_question(part) and any(asked)


def _plain_act(part: str, who: str, table: Table) -> Act:
    if is_nonsense(part):
        return Act("nonsense", part, who)
    if is_question(part):
        asked, own = root_set(part), table.expression("speech", "own").search(part)
        # Little words tell only what is the asker's own.
        is_empty = asked and asked <= frame_of(table) and not (own and _asks_for(part, table))
        return Act("chatter" if is_empty else "question", part, who)
    return Act("fact" if _is_fact(part) else "chatter", part, who)


def _is_fact(sentence: str) -> bool:
    """Whether a statement tells something that somebody may ask for later."""
    table, called = table_of(sentence), _CALLED.sub("", sentence)
    speech = partial(table.expression, "speech")
    if size(sentence) < 3 or is_fixed(sentence) or speech("no_fact").match(sentence):
        return False
    if table.expression("kinds", "order").match(called) and speech("me").search(called):
        return False  # `Bob, pass me the salt.`
    is_known = language_of(sentence) or names_in(sentence) or regex.search(r"\d", sentence)
    if size(sentence) < SHORT and not is_known and sentence.upper() != sentence.lower():
        return False
    return len(root_set(sentence)) >= (1 if speech("own").search(sentence) else 2)
