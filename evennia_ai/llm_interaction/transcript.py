"""A prompt for a base model: a text that ends in the assistant's own opened line.

Base models know no roles and follow no orders; they go on with a text. So the prompt is a script of
a talk: who the assistant is, what it remembers, where it is, and what was said, a line each, as
``Bram says: "Good evening."``. The last line is ``Aria says: "``, and a reply ends with the quote
mark or the line. Ids and labels of the chat form stay out: what a base model reads it writes.
"""

from collections.abc import Iterable, Mapping, Sequence

from evennia_ai.history.messages import (
    NOTICED,
    Heard,
    Note,
    read_talk_line,
    without_marks,
)
from evennia_ai.llm_interaction.conversation import HERE, LANGUAGE, NOW, read_prompt

# What ends a reply: the closing quote or the line.
STOPS: tuple[str, ...] = ('"', "\n")
FACTS = "Facts worth keeping, one a line, with names and numbers:\n-"
FACTS_STOPS: tuple[str, ...] = ("\n\n",)
MOST_FACTS = 8
# Where a line of a job goes on with the assistant's calls.
CALLS = "[calls "


def as_transcript(messages: Iterable[Mapping[str, object]], name: str) -> str:
    """The chat messages of a prompt as a text that ends with the assistant's opened line."""
    messages = list(messages)
    about = [str(each["content"]) for each in messages if each["role"] == "system"]
    talk, scene = list[str](), dict[str, list[str]]()
    for role, line in read_prompt(messages).turns:
        if isinstance(line, Heard):
            talk.append(_spoken_line(line))
        elif isinstance(line, Note):
            if line.label in (NOW, HERE):
                scene[line.label] = _noted(line)  # the newest holds
            else:
                talk.extend(_noted(line))
        elif role == "assistant":
            talk += [_spoken(name, each) for each in line.splitlines() if each.strip()]
        elif role == "tool":
            talk.append(f"({_flat(str(line.get('content') or ''))})")
        else:
            talk.append(_flat(str(line)))
    scenery = [row for rows in scene.values() for row in rows]
    return "\n".join([*about, *scenery, "", *talk, f'{name} says: "'])


def _noted(line: Note) -> list[str]:
    """A note without its label and ids."""
    if line.label == LANGUAGE:
        return []
    if line.label == HERE:
        return [f"Also there: {line.text}."]
    if line.label in (NOW, NOTICED):
        return [_flat(line.text)]
    return [f"({_flat(line.text)})"]


def as_task_prompt(messages: Sequence[Mapping[str, object]], ending: str) -> str:
    """The plain task of an extraction or a summary, who said what, and where the text begins."""
    about = [str(each["content"]) for each in messages if each["role"] == "system"]
    shown = "\n".join(str(each["content"]) for each in messages if each["role"] == "user")
    lines = [line for row in shown.splitlines() if (line := _line(row))]
    return "\n".join([*about, "", *lines, "", ending])


def read_facts(text: str) -> tuple[str, ...]:
    """The facts of what a model wrote behind `FACTS`: the first few whole lines."""
    rows = (row.strip().removeprefix("-").strip() for row in text.splitlines())
    return tuple(dict.fromkeys(row for row in rows if row[-1:] in (".", "!")))[:MOST_FACTS]


def _line(row: str) -> str:
    """A line of a job's text; empty for one that is nothing."""
    line = read_talk_line(row)
    if isinstance(line, Heard):
        return _spoken_line(line)
    if line is None:
        return _flat(without_marks(row))
    if line.label == NOTICED:
        return _flat(line.text)
    said = line.text.partition(CALLS)[0]
    if line.label != "assistant" or not said:  # what tools gave out is no news to a summary
        return ""
    return _flat(f"I: {said}")


def _spoken_line(heard: Heard) -> str:
    if heard.verb == "poses" or not heard.text:
        return f"{heard.who} {_flat(heard.text) or f'{heard.verb}.'}"
    return _spoken(heard.who, heard.text)


def _spoken(who: str, text: str) -> str:
    return f'{who} says: "{_flat(text)}"'


def _flat(text: str) -> str:
    """A text on one line, without the quote marks that would end what is said."""
    return " ".join(text.replace('"', "'").split())
