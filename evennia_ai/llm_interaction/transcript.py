"""A prompt for a base model: a text that ends in the assistant's own opened line.

Base models know no roles and follow no orders; they go on with a text. So the prompt is a script of
a talk: who the assistant is, what it remembers, where it is, and what was said, a line each, as
``Bram says: "Good evening."``. The last line is ``Aria says: "``, and a reply ends with the quote
mark or the line. Ids, labels and JSON of the chat form stay out: what a base model reads it writes.
"""

from collections.abc import Iterable, Mapping, Sequence

from evennia_ai.history.frames import (
    ANSWER_KEY,
    blocks,
    label_of,
    names_present,
    read_heard,
    read_moment,
    read_row,
    read_source_line,
    read_tool_result,
    without_marks,
)

# What ends a reply: the closing quote or the line.
STOPS = ('"', "\n")
# So many of the assistant's own lines show a model how it is done; with fewer, these do.
ENOUGH_LINES = 2
EXAMPLES = (
    ("A traveller", "Good day to you."),
    ("", "Good day! Sit down and warm yourself."),
    ("A traveller", "My horse is called Dusty."),
    ("", "Dusty is a good name for a horse."),
    ("A traveller", "Is it far to the next town?"),
    ("", "Half a day on foot, if the road is dry."),
    ("A traveller", "What is the miller's name?"),
    ("", "That I do not know. You could ask at the mill."),
)
FACTS = "Facts worth keeping, one a line, with names and numbers:\n-"
FACTS_STOPS: tuple[str, ...] = ("\n\n",)
MOST_FACTS = 8


def as_transcript(messages: Iterable[Mapping[str, object]], name: str) -> str:
    """The chat messages of a prompt as a text that ends with the assistant's opened line."""
    about, scene, talk = list[str](), list[str](), list[str]()
    own = 0
    for message in messages:
        content = str(message.get("content") or "")
        if message["role"] == "system":
            about.append(content)
        elif message["role"] == "assistant":
            said = [line for line in content.splitlines() if line.strip()]
            talk += [_spoken(name, line) for line in said]
            own += len(said)
        else:
            for block in blocks(content):
                label = label_of(block)
                if label == "present moment":
                    scene = _scene(block, name)
                elif label and read_tool_result(block) is None:
                    about += _rows(block.splitlines()[1:])
                else:
                    talk += filter(None, map(_line, block.splitlines()))
    if own < ENOUGH_LINES:
        talk = [_spoken(who or name, text) for who, text in EXAMPLES] + talk
    return "\n".join([*about, *scene, "", *talk, f'{name} says: "'])


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


def _scene(block: str, name: str) -> list[str]:
    """Where the assistant is and who is there, and what it knows of them."""
    moment = read_moment(block)
    people = ", ".join(names_present(moment)) or "Nobody"
    place, about = moment.get("place", "an unknown place"), moment.get("description", "")
    known = ("time", "place", "present", "exits", "description", ANSWER_KEY.lower())
    rows = [
        row for row in block.splitlines()[1:] if row.partition(":")[0].strip().lower() not in known
    ]
    here = f"{name} is in {place}. {_flat(about)}".strip()
    return [here, f"Also there: {people}.", *_rows(rows)]


def _rows(rows: Sequence[str]) -> list[str]:
    """Rows of a block without ids, days and labels."""
    found = (read_row(without_marks(row)) for row in rows)
    return [_flat(row.text) for row in found if row]


def _line(row: str) -> str:
    """A line of the talk, or of a summary's request; empty for one that is nothing."""
    if heard := read_heard(row):
        if heard.verb == "poses" or not heard.text:
            return f"{heard.who} {_flat(heard.text) or f'{heard.verb}.'}"
        return _spoken(heard.who, heard.text)
    if result := read_tool_result(row):
        return f"({_flat(result.text)})"
    if made := read_source_line(row):  # what tools gave out is no news to a summary
        return "" if made.tool or not made.text else _flat(f"I: {made.text}")
    return _flat(without_marks(row))


def _spoken(who: str, text: str) -> str:
    return f'{who} says: "{_flat(text)}"'


def _flat(text: str) -> str:
    """A text on one line, without the quote marks that would end what is said."""
    return " ".join(text.replace('"', "'").split())
