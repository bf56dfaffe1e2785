"""What the assistant knows by itself: its room, those present, the time, and who it is."""

import re

from evennia_ai.language.tables import spoken, table_of
from evennia_ai.language.times import read_time, told_time
from evennia_ai.language.words import content_words
from evennia_ai.llm_interaction.offline.acts import Act
from evennia_ai.llm_interaction.offline.prose import root_set, sentences
from evennia_ai.llm_interaction.offline.reply import line_for, listed
from evennia_ai.llm_interaction.offline.transcript import Talk

OWN_SHARE = 0.75  # of a question's words that the persona must hold to answer it


def answer(act: Act, talk: Talk) -> str | None:
    """What to say of the room, the time, those here or itself; None where it is something else."""
    moment = talk.moment
    exits = [name.strip() for name in moment.get("exits", "").split(",") if name.strip()]
    ways = line_for("ways", names=listed(exits)) if exits else ""
    place, description = moment.get("place", "").rstrip("."), moment.get("description", "")
    match act.kind:
        case "identity":
            return f"{_in_first_person(talk.persona_opening())} {line_for('identity')}"
        case "fullness":
            seen = [d.result for d in talk.done if d.name == "context_snapshot" and not d.failed]
            if not seen:
                return line_for("unable")
            return _in_first_person(seen[-1].partition("\n")[0])
        case "your_name":
            return line_for("your_name", name=act.who) if act.who else line_for("no_name")
        case "clock" | "day":
            time = _time(moment.get("time", ""), act.kind)
            return line_for("time", time=time) if time else line_for("no_time")
        case "people":
            others = [name for name in talk.present() if name != act.who]
            kind = "some_here" if others[1:] else "one_here" if others else "nobody_here"
            return line_for(kind, names=listed(others))
        case "ways":
            parts = [part for part in sentences(description) if share(act.text, part) > 0]
            parts.append(ways or line_for("no_ways"))
        case "doings":
            parts = [line_for("doings"), ways]
        case "place":
            here = line_for("place", place=place) if place else line_for("no_place")
            parts = [here, description, ways]
        case _:
            return None
    return " ".join(filter(None, parts))


def _time(shown: str, kind: str) -> str:
    """The clock or the day, as `kind` says, in the language of the talk."""
    told_as = spoken().get("times", kind)
    return (
        told_time(shown, **{kind: told_as})
        if shown and told_as
        else read_time(shown)[kind == "day"]
    )


def is_shown(text: str, talk: Talk) -> bool:
    """Whether a question may be about the room: `where does the coach go?` is mostly not."""
    return share(text, f"{talk.moment.get('exits', '')} {talk.moment.get('description', '')}") > 0


def own_knowledge(question: str, talk: Talk) -> str:
    """What the persona or the room itself answers to a question; ``""`` where they do not.

    Most words of the question must stand in one sentence, among them one that tells what it is
    about; of a description two, as the river may be there for the smoothness of a stone.
    """
    telling = content_words(question, table_of(question))
    mine = map(_in_first_person, sentences(talk.persona())) if telling else ()
    shown = sentences(talk.moment.get("description", "")) if len(telling) > 1 else ()
    return next((part for part in (*mine, *shown) if share(question, part) >= OWN_SHARE), "")


def _in_first_person(sentence: str) -> str:
    for pattern, instead in table_of(sentence).get("persona", "first_person", ()):
        sentence = re.sub(pattern, instead, sentence)
    return sentence[:1].upper() + sentence[1:]


def share(question: str, sentence: str) -> float:
    """The share of a question's words that a sentence holds."""
    asked = root_set(question)
    return len(asked & root_set(sentence)) / max(1, len(asked))
