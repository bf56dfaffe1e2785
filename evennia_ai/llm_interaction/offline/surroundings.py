"""What the assistant knows by itself: its room, those present, the time, and who it is."""

import re
from collections.abc import Sequence

from evennia_ai.language.times import read_time
from evennia_ai.llm_interaction.offline.acts import Act
from evennia_ai.llm_interaction.offline.prose import root_set, sentences
from evennia_ai.llm_interaction.offline.reply import line_for
from evennia_ai.llm_interaction.offline.transcript import Talk

KINDS = ("identity", "fullness", "place", "ways", "doings", "people", "clock", "whoami")
OWN_SHARE = 0.75  # of a question's words that the persona must hold to answer it
# The persona speaks to the assistant; its answers speak of themselves.
_FIRST_PERSON = (
    (r"\b[Yy]ou are\b", "I am"),
    (r"\b[Yy]ou['’]re\b", "I'm"),
    (r"(?<=to |of )you\b|(?<=tell |with )you\b|\byou(?=[.;,!?])", "me"),
    (r"\b[Yy]ou\b", "I"),
    (r"\b[Yy]our(?:s|self)?\b", "my"),
)


def answer(act: Act, talk: Talk) -> str:
    """What to say to a question of one of `KINDS`."""
    if act.kind == "fullness":
        return _fullness(talk)
    moment = talk.moment
    exits = [name.strip() for name in moment.get("exits", "").split(",") if name.strip()]
    ways = f"The ways out: {_listed(exits)}." if exits else ""
    place, described = moment.get("place", "").rstrip("."), moment.get("description", "")
    if act.kind == "identity":
        first = next(iter(sentences(talk.persona())), "")
        if not re.match(r"you are\b", first, re.IGNORECASE):
            first = f"You are {talk.me}. {first}"
        said = [_in_first_person(first).strip(), line_for("identity", act.text)]
    elif act.kind == "whoami":
        said = [f"You're {act.who}." if act.who else line_for("nameless", act.text)]
    elif act.kind == "clock":
        by_day = bool(re.search(r"\b(?:day|date|today)\b", act.text, re.IGNORECASE))
        clock, day = read_time(moment.get("time", ""))
        time = day if by_day else clock
        said = [f"It is {time}." if time else "I don't know what time it is."]
    elif act.kind == "people":
        others = [name for name in talk.present() if name != act.who]
        verb = "are" if others[1:] else "is"
        said = [f"{_listed(others)} {verb} here." if others else "Only you and I are here."]
    elif act.kind == "ways":
        said = [part for part in sentences(described) if _share(act.text, part) > 0]
        said += [ways or "I see no way out of here."]
    elif act.kind == "doings":
        said = ["You can talk to me, tell me what to remember, and ask me for it later.", ways]
    else:
        said = [f"This is {place}." if place else "I don't know; I can't see.", described, ways]
    return " ".join(filter(None, said))


def _fullness(talk: Talk) -> str:
    """How full the memory is, as the tool says it on its first line."""
    seen = [d.result for d in talk.done if d.name == "context_snapshot" and not d.failed]
    return _in_first_person(seen[-1].partition("\n")[0]) if seen else line_for("unable", "")


def shows_way(act: Act, talk: Talk) -> bool:
    """Whether a question for ways may be about the room: `where does the coach go?` is not."""
    shown = f"{talk.moment.get('exits', '')} {talk.moment.get('description', '')}"
    return not re.search(r"(?i)where (?:do|will|would)", act.text) or _share(act.text, shown) > 0


def own_knowledge(question: str, talk: Talk) -> str:
    """What the persona or the room itself answers to a question; ``""`` where they do not.

    Most words of the question must stand in one sentence; it is told, not quoted of anybody.
    """
    mine = map(_in_first_person, sentences(talk.persona()))
    shown = (*mine, *sentences(talk.moment.get("description", "")))
    return next((part for part in shown if _share(question, part) >= OWN_SHARE), "")


def _in_first_person(sentence: str) -> str:
    for pattern, instead in _FIRST_PERSON:
        sentence = re.sub(pattern, instead, sentence)
    return sentence[:1].upper() + sentence[1:]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else "".join(names)


def _share(question: str, sentence: str) -> float:
    """The share of a question's words that a sentence holds."""
    asked, held = root_set(question), root_set(sentence)
    return len(asked & held) / max(1, len(asked))
