"""What the assistant knows by itself: its room, those present, the time, and who it is."""

import re
from collections.abc import Iterable
from datetime import datetime

from evennia_ai.offline.acts import Act
from evennia_ai.offline.prose import content_roots, sentences
from evennia_ai.offline.reply import line_for
from evennia_ai.offline.transcript import Talk

KINDS = ("identity", "place", "ways", "doings", "people", "clock", "whoami")
MAX_SEEN = 800  # characters of what a look showed
OWN_SHARE = 0.75  # of a question's words that the persona must hold to answer it
_UTC = re.compile(r"^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)")
_HOURS = (
    *("twelve", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten", "eleven"),
)
_QUARTERS = ("", "a quarter past ", "half past ", "a quarter to ")
# The persona speaks to the assistant; its answers speak of themselves.
_FIRST_PERSON = (
    (re.compile(r"\byou are\b", re.I), "I am"),
    (re.compile(r"\byou were\b", re.I), "I was"),
    (re.compile(r"\byou(?:['’]re)\b", re.I), "I'm"),
    (
        re.compile(r"\b(?<=to )you\b|\b(?<=tell )you\b|\b(?<=for )you\b|\byou(?=[.;,!?])", re.I),
        "me",
    ),
    (re.compile(r"\byou\b", re.I), "I"),
    (re.compile(r"\byour\b"), "my"),
    (re.compile(r"\bYour\b"), "My"),
    (re.compile(r"\byourself\b", re.I), "myself"),
)


def answer(act: Act, talk: Talk) -> str:
    """What to say to a question of one of `KINDS`."""
    moment = talk.moment
    if act.kind == "identity":
        return f"{_own_name(talk)} {line_for('identity', act.text, act.who)}"
    if act.kind == "whoami":
        return f"You're {act.who}." if act.who else line_for("nameless", act.text)
    if act.kind == "clock":
        return spoken_time(moment.get("time", ""), by_day="day" in act.text or "date" in act.text)
    if act.kind == "people":
        here = ["you" if name == act.who else name for name in talk.present()]
        return f"Here with me: {_listed(here)}." if here else "I see nobody here."
    place, described = moment.get("place", "").rstrip("."), moment.get("description", "")
    if act.kind == "ways":
        told = [part for part in sentences(described) if _share(act.text, part) > 0]
        return " ".join([*told, _ways(talk)]) or "I see no way out of here."
    if act.kind == "doings":
        said = "You can talk to me, tell me what I should remember, and ask me for it later."
        return " ".join(filter(None, [said, "You can look around, too.", _ways(talk)]))
    if not place:
        return "I don't know; I can't see it from here."
    return " ".join(filter(None, [f"This is {place}.", described, _ways(talk)]))


def seen(talk: Talk) -> str:
    """What the turn's latest look showed; ``""`` where there was none."""
    looks = [done for done in talk.done if done.name == "look" and not done.failed]
    return looks[-1].result.strip()[:MAX_SEEN] if looks else ""


def own_knowledge(question: str, talk: Talk) -> str:
    """What the persona or the room itself answers to a question; ``""`` where they do not.

    Most words of the question must stand in one sentence; it is told, not quoted of anybody.
    """
    mine = [_in_first_person(part) for part in sentences(talk.persona())]
    for part in (*mine, *sentences(talk.moment.get("description", ""))):
        if _share(question, part) >= OWN_SHARE:
            return part
    return ""


def spoken_time(told: str, by_day: bool = False) -> str:
    """A time as people say it: by the clock, or by the day where that is asked.

    Args:
        told: The prompt's time: UTC as ``2026-11-22 13:50 UTC``, or words, which are kept.
        by_day: Whether to say the day instead of the hour.
    """
    found = _UTC.match(told)
    try:
        at = datetime(*map(int, found.groups())) if found else None  # type: ignore[arg-type]
    except ValueError:
        at = None
    if at is None:
        return f"It is {told.rstrip('.')}." if told else "I don't know what time it is."
    if by_day:
        return f"It is {at:%A}, the {_ordinal(at.day)} of {at:%B}."
    quarter = (at.hour * 60 + at.minute + 7) // 15
    hour, part = quarter // 4 + (quarter % 4 == 3), _QUARTERS[quarter % 4]
    if hour % 12 == 0:
        return f"It is about {part}{'noon' if hour % 24 else 'midnight'}."
    day = (
        "in the morning" if 4 <= at.hour < 12 else "in the afternoon" if 12 <= at.hour < 18 else ""
    )
    day = day or ("in the evening" if 18 <= at.hour < 22 else "at night")
    return f"It is about {part}{_HOURS[hour % 12]}{'' if part else ' o’clock'} {day}."


def _ordinal(number: int) -> str:
    teen = number in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _own_name(talk: Talk) -> str:
    """Name and first sentence of the persona, in the first person."""
    first = next(iter(sentences(talk.persona())), "")
    if re.match(r"you are\b", first, re.IGNORECASE):
        return _in_first_person(first)
    return f"I'm {talk.me}."


def _in_first_person(sentence: str) -> str:
    for pattern, instead in _FIRST_PERSON:
        sentence = pattern.sub(instead, sentence)
    return sentence[:1].upper() + sentence[1:]


def _ways(talk: Talk) -> str:
    exits = [name.strip() for name in talk.moment.get("exits", "").split(",") if name.strip()]
    return f"The ways out: {_listed(exits)}." if exits else ""


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _share(question: str, sentence: str) -> float:
    """The share of a question's words that a sentence holds."""
    asked, held = set(content_roots(question)), set(content_roots(sentence))
    return len(asked & held) / len(asked) if len(asked) > 1 else float(bool(asked & held))
