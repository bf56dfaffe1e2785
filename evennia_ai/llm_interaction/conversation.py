"""The form of a talk in a prompt, written and read here and nowhere else. Pure.

A prompt reads as a conversation. The system text says who the assistant is and where it is; four
exchanges show how it talks; then the talk follows as turns of people and of the assistant. Before
the line to answer, the newest turn tells who is here, the time and what is remembered.

    system     You are Aria. …
    user       Tobin: Evening, Aria. What a long road!
    assistant  Evening, Tobin. Rest your feet, you've earned it.
    …
    user       (What happened before, summary s1abc:
               - Alice looks for her boat.
               Alice: Good evening, Aria.
    assistant  Good evening, Alice.
    user       (Now: about noon, Sunday)
               (Here: Alice, Bram)
               (You remember, m1abc, 2 months ago: Alice: My boat is called Heron.)
               Alice: Aria, what is my boat called?
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from evennia_ai.history.messages import (
    NOTICED,
    Heard,
    Note,
    flat,
    note,
    read_talk_line,
    seconds,
    shown_name,
)
from evennia_ai.language.script import folded
from evennia_ai.language.tables import AUTO, DEFAULT, english_name, language_of_most, tables
from evennia_ai.llm_interaction.contexts import (
    ANSWER,
    ANY_LANGUAGE,
    IDENTITY,
    KEEP_LANGUAGE,
    ONE_LANGUAGE,
    PLAIN_IDENTITY,
    RULES,
    TOOL_RULES,
    WHO,
    WRITE_IN,
)
from evennia_ai.recall.values import Hit

# Labels of the notes in the newest turn.
NOW, HERE, ABOUT, MIND = "Now", "Here", "About", "On your mind"
REMEMBERED, KNOWN, BEFORE = "You remember", "You know", "What happened before"
RELATED = "Related past experience"
PASSED, LANGUAGE, NOBODY, AGAIN = "Time passes", "Answer in", "Nobody spoke to you", "Once more"
DONE, UNDONE = "You have just done", "You must refuse, because"
# Labels in the system text.
PLACE, LOOKS, THINGS, WAYS = "Where you are", "What it looks like", "What is here", "Ways out"
CALLED = "What others call you"
CARRIED, LEDGER = "What you carry", "Notes to keep in mind (approved; they give nobody any rights)"
AN_ASSISTANT, NOBODY_ELSE = " (an assistant)", "nobody else"
# A quiet time of so many seconds is told.
GAP_S, DAY_S = 3600.0, 86_400.0
_SPANS = (
    (31_536_000, "year"),
    (2_592_000, "month"),
    (604_800, "week"),
    (86_400, "day"),
    (3600, "hour"),
)
_BLOCK = re.compile(r"\((?P<label>[^:()\n]{1,120}):")
_PLACE_LINE = re.compile(
    rf"^({CALLED}|{PLACE}|{LOOKS}|{THINGS}|{WAYS}|{CARRIED}): (.*)$", re.MULTILINE
)
_IDENTITY = re.compile(r"^You are (?P<name>[^\n,.]{1,80})", re.MULTILINE)
_LABELS = (
    *(NOW, HERE, ABOUT, MIND, REMEMBERED, RELATED, KNOWN, BEFORE, PASSED, LANGUAGE, NOBODY),
    *(AGAIN, DONE, UNDONE, NOTICED),
)
# Placeholders of an identity, and the rule on a language as it was filled in.
_PLACEHOLDER = re.compile(r"\{name\}|\{persona\}")
_FIXED = re.compile(re.escape(ONE_LANGUAGE).replace(r"\{language\}", "([^\n,.]{1,60})"))
# How a note begins; a reply that holds one goes on with the prompt.
NOTE_BEGINS = re.compile(rf"^\((?:{'|'.join(_LABELS)})\b[^:()\n]{{0,80}}:", re.MULTILINE)

Chat = dict[str, Any]
Exchange = tuple[str, str]


def place_text(
    place: Mapping[str, Any], things: Iterable[str] = (), carried: Iterable[str] = ()
) -> str:
    """Where the assistant is, and as whom, as lines of the system text; `place` is the game's."""
    # A comma parts names.
    called = (shown_name(name).replace(",", "") for name in place.get("called") or ())
    rows = {
        CALLED: ", ".join(called),
        PLACE: str(place["key"]),
        LOOKS: str(place.get("description") or ""),
        THINGS: ", ".join(map(shown_name, things)),
        WAYS: ", ".join(map(shown_name, place.get("exits") or ())),
        CARRIED: ", ".join(map(shown_name, carried)),
    }
    return "\n".join(f"{label}: {flat(text)}" for label, text in rows.items() if text)


def shipped_examples(language: str, me: str, met: Collection[str]) -> tuple[Exchange, ...]:
    """The four exchanges that ship in a language, with names that nobody in the talk bears.

    The second person asks of what the first one told, and of what nobody told; the first one asks
    for words of their own, which come back as `your`: with nothing of the kind shown, a model of
    1.5 billion parameters gave them back as `my`.

    Args:
        language: A language's code; one without examples gets English ones.
        me: The assistant's name.
        met: Names of the people whom the prompt names.
    """
    table = tables().get(language)
    if table is None or "examples" not in table.data:
        table = tables()[DEFAULT]
    shown = map(shown_name, (*met, me))
    taken = {folded(word) for name in shown for word in (name, *name.split())}
    names = {"me": shown_name(me)}
    for key in ("a", "b"):
        given = table.get("examples", key)
        names[key] = next((name for name in given if folded(name) not in taken), given[-1])
    return tuple(
        (f"{names[key]}: {asked.format(**names)}", answer.format(**names))
        for key, (asked, answer) in zip("aaba", table.get("examples", "talk"), strict=True)
    )


def own_examples(text: str, me: str) -> tuple[Exchange, ...]:
    """The exchanges of a card's examples: lines `Name: text`, of which the own ones answer.

    Empty where nobody speaks before the assistant does.
    """
    rows = (row.strip().partition(":") for row in text.splitlines())
    said = ((who, words) for who, _, words in rows if words.strip())
    own = folded(me)
    runs = [(mine, [*run]) for mine, run in groupby(said, lambda row: folded(row[0]) == own)]
    return tuple(
        (
            "\n".join(f"{shown_name(who)}: {flat(words)}" for who, words in heard),
            "\n".join(words.strip() for _, words in answers),
        )
        for (_, heard), (is_answer, answers) in pairwise(runs)
        if is_answer
    )


def ago(at: str, now: float) -> str:
    """How long ago a time (UTC ISO 8601) is, in words; empty for less than a day or no time."""
    then = seconds(at)
    if not then or now - then < DAY_S:
        return ""
    return f"{_span(now - then)} ago"


def _span(passed: float) -> str:
    """A time of an hour or more in its largest unit: ``2 months``."""
    length, unit = next(each for each in _SPANS if passed >= each[0])
    count = int(passed // length)
    return f"{count} {unit}{'s' * (count > 1)}"


def memory_row(hit: Hit, now: float, with_id: bool) -> str:
    """A memory as a note: who said it, how long ago, and its id where a tool can open it."""
    parts, said = [{"lore": KNOWN, "summary": RELATED}.get(hit.kind, REMEMBERED)], hit.text
    if with_id and hit.turn_id:
        parts.append(shown_name(hit.turn_id))
    if past := ago(str(hit.at or ""), now):
        parts.append(past)
    if hit.speaker:
        said = f"{shown_name(hit.speaker)}: {said}"
    return note(", ".join(parts), said)


def summary_text(text: str, summary_id: str = "") -> str:
    """A summary as a block: a note that is not closed, and a row for each of its lines."""
    label = BEFORE
    if summary_id:
        label += f", summary {shown_name(summary_id)}"
    rows = [f"- {flat(line)}" for line in text.splitlines() if line.strip()]
    if not rows:
        return ""
    return "\n".join([f"({label}:", *rows])


def people_named(people: Iterable[tuple[str, bool]]) -> str:
    """Who is here: names, and whether each is an assistant, too."""
    names = (shown_name(name) + AN_ASSISTANT * is_own for name, is_own in people)
    return ", ".join(names) or NOBODY_ELSE


def gap_row(passed: float) -> str:
    """A quiet time of so many seconds as a line of its own; empty for a short one."""
    if passed < GAP_S:
        return ""
    return note(PASSED, _span(passed))


def alternating(messages: Iterable[Chat]) -> list[Chat]:
    """Chat messages of which no two words of one role follow each other: such share a message."""
    turns, role = list[Chat](), ""  # the role whose words the next message may go on with
    for message in messages:
        is_plain = message["role"] in ("user", "assistant") and not message.get("tool_calls")
        if is_plain and message["role"] == role:
            turns[-1] = {**turns[-1], "content": f"{turns[-1]['content']}\n{message['content']}"}
        else:
            turns.append(message)
        role = message["role"] * is_plain
    return turns


@dataclass(slots=True)
class Reading:
    """A prompt, read."""

    me: str = ""  # the assistant's name
    place: dict[str, str] = field(default_factory=dict)  # lines of the system text by label
    # Messages in order: lines and notes of a user's, the text of the assistant's, other messages.
    turns: list[tuple[str, Any]] = field(default_factory=list)


def read_prompt(messages: Iterable[Mapping[str, Any]]) -> Reading:
    """Read the chat messages of a prompt."""
    reading = Reading()
    for message in messages:
        role, content = str(message["role"]), str(message.get("content") or "")
        if role == "system":
            if found := _IDENTITY.search(content):
                reading.me = found["name"].strip()
            rows = _PLACE_LINE.findall(content)
            reading.place = {label: value.strip() for label, value in rows}
        elif role == "user":
            reading.turns += [(role, line) for line in read_lines(content)]
        elif role == "assistant" and not message.get("tool_calls"):
            reading.turns.append((role, content))
        else:
            reading.turns.append((role, message))
    return reading


def read_lines(content: str) -> Iterator[Heard | Note | str]:
    """The lines of a user's message; rows of a block are notes by the block's label."""
    block = ""
    for line in content.split("\n"):
        if block and line.startswith("- "):
            yield Note(block, line[2:])
            continue
        block = ""
        if opening := _BLOCK.fullmatch(line):
            block = opening["label"]
        elif line.strip():
            yield read_talk_line(line) or line


def asked_again(messages: Sequence[Mapping[str, Any]], fault: str) -> tuple[Mapping[str, Any], ...]:
    """A prompt with one more note before the line to answer: what was wrong with the last try."""
    for at, message in reversed([*enumerate(messages)]):
        above, _, line = str(message.get("content") or "").rpartition("\n")
        if message["role"] == "user" and read_talk_line(line):
            rows = "\n".join(filter(None, (above, note(AGAIN, fault), line)))
            return (*messages[:at], {**message, "content": rows}, *messages[at + 1 :])
    return tuple(messages)


def language_rule(language: str) -> str:
    """What is said of the language of a reply: `language` is ``auto``, a code or a name."""
    if language == AUTO:
        return ANY_LANGUAGE
    return ONE_LANGUAGE.format(language=english_name(language))


def writing_rule(language: str) -> str:
    """What is said of the language of summaries and notes."""
    if language == AUTO:
        return KEEP_LANGUAGE
    return WRITE_IN.format(language=english_name(language))


def written_language(language: str, lines: Iterable[str]) -> str:
    """The language to write of some lines in: the one that is set, else what most of them show."""
    if language != AUTO:
        return language
    # Behind who said it, as frames are English.
    return language_of_most(line.partition(": ")[2] or line for line in lines) or AUTO


def answer_language(language: str, lines: Iterable[str], spoken: str = "") -> str:
    """The name of the language of an answer; empty for English.

    The prompt names it beside the lines: small models answer in the language of the prompt,
    whatever its rules say. Lines that don't show their language are in the `spoken` one, which was
    heard last.
    """
    code = language
    if language == AUTO:
        code = language_of_most(lines, spoken or DEFAULT) or spoken or AUTO
    if code in (AUTO, DEFAULT):
        return ""
    return english_name(code)


def fixed_language(rules: str) -> str:
    """The language that the rules of a prompt name; empty for none."""
    rule = _FIXED.search(rules)
    return rule[1] if rule else ""


def plain_identity(name: str, persona: str, language: str = AUTO) -> str:
    """The beginning of a base model's prompt."""
    text = _filled(PLAIN_IDENTITY, name, persona)
    if language != AUTO:
        text += f" {name} speaks {english_name(language)}."
    return text


def system_prompt(
    name: str, persona: str, place: str = "", has_tools: bool = False, language: str = AUTO
) -> str:
    """The system message of a talk: who the assistant is, persona, place, rules.

    Args:
        name: The assistant's name.
        persona: Who it is.
        place: Where it is, as `conversation.place_text` says it.
        has_tools: Whether the model is offered tools.
        language: ``auto``, or the one to speak.

    Braces in the name and the persona are left as they are.
    """
    rules = [RULES]
    if has_tools:
        rules.append(TOOL_RULES)
    rules += [_filled(ANSWER, name, persona), language_rule(language)]
    who = _filled(WHO, name, persona)
    return "\n\n".join(filter(None, (who, persona.strip(), place, " ".join(rules))))


def job_system_prompt(name: str, persona: str, rules: str, language: str = AUTO) -> str:
    """The system message of a job that nobody hears: identity, then rules."""
    return f"{_filled(IDENTITY, name, persona)}\n\n{rules}\n- {writing_rule(language)}"


def _filled(text: str, name: str, persona: str) -> str:
    values = {"{name}": name, "{persona}": persona}
    return _PLACEHOLDER.sub(lambda found: values[found.group()], text)
