"""Frames of data: who said a line, what nobody said, which id a row has.

Each frame is written and read here, and nowhere else. Prompts, and jobs that read talk (a summary,
an extraction), show it as people read it, ``Alice: Good evening.``; each line is one line and
begins with its true speaker. What nobody said is a note in brackets. Nobody can type what looks
like another frame.
"""

import json
import re
from functools import lru_cache
from typing import NamedTuple

SUMMARY_TITLE = "[CONTEXT SUMMARY]"
SYNTHESIS_TITLE = "[CONTEXT SYNTHESIS]"
MESSAGES_LABEL = "[MESSAGES TO COMPACT]"

_VERBS = {
    "say": "says",
    "whisper": "whispers to you",
    "page": "pages you",
    "pose": "poses",
    "arrive": "arrives",
    "leave": "leaves",
    "event": "notice",
}
# What the assistant calls somebody whom it hears and does not see.
UNSEEN = "someone"
# Longest name in a line of talk.
NAME_CHARS = 80
# What stands in a line of talk and must not stand in a name: quotes, brackets, stars and colons of
# any script, bars, and characters that nobody sees.
_NOT_IN_NAMES = re.compile(
    '[\\s"\\[\\]<>(){}*|\\x00-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff'
    "\\ud800-\\udfff:\\u02d0\\u2236\\ua789\\ufe13\\ufe55\\uff1a\\uff08\\uff09]+"
)
_EDGES_OF_NAMES = re.compile(r"\A[\W_]+")
# A line break of Evennia's markup, and control characters.
_BREAKS = re.compile(r"\|/|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# The beginning or the end of a mark of some model's template.
_TEMPLATE = re.compile(
    r"<(?=[|/!\w\uff5c<])|(?<=[|\uff5c])(?=>)|\[(?=/?[A-Za-z_]{3,20}\]|\||e~)|\](?=~)"
)
_TALK = re.compile(
    rf"(?P<who>\w[^:()\n]{{0,{NAME_CHARS}}}?)(?: \((?P<how>[^()\n]{{1,60}})\))?: ?(?P<text>[^\n]*)"
)
_NOTE = re.compile(r"\((?P<label>[^:()\n]{1,120}): (?P<text>.*)\)")
_POSE = re.compile(r"\*(?P<text>.*)\*")
# The label of what the assistant noticed and nobody said.
NOTICED = "You notice"

# Made once: every prompt renders every message.
_as_json = json.JSONEncoder(ensure_ascii=False).encode
# Ends of lines that JSON lets stand unescaped: next line, line and paragraph separator.
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_UNSAFE = re.compile(r'[\s"\[\]<>]+')
_LABEL = re.compile(r"\[([A-Z][A-Za-z ]{2,40})\]")
_STAMP = r"(?:\[\d{4}-\d\d-\d\d[^\]\n]{0,20}\]\s*)*"
_STAMPS = re.compile(rf"{_STAMP}(?:{_LABEL.pattern}\s*)?{_STAMP}")
# Ids of speakers, days, labels and notices.
_MARKS = re.compile(r"\[(?=[^\[\]\s]*[0-9])[^\[\]\s]{1,80}\]|\[[A-Z][A-Z ]{2,60}\]|\[Notice\]")


class Heard(NamedTuple):
    """A heard line, read."""

    who: str
    verb: str
    text: str


class Note(NamedTuple):
    """A line in brackets, which nobody said: its label and its text."""

    label: str
    text: str


def shown_name(name: str) -> str:
    """A name as it may stand before a line of talk: one line without signs of a frame."""
    plain = " ".join(_NOT_IN_NAMES.sub(" ", name).split())
    return _EDGES_OF_NAMES.sub("", plain)[:NAME_CHARS].rstrip() or UNSEEN


def flat(text: str) -> str:
    """A text on one line, in which no mark of a model's template is left."""
    return _TEMPLATE.sub(lambda mark: f"{mark.group()} ", " ".join(_BREAKS.sub(" ", text).split()))


@lru_cache(maxsize=8192)  # every prompt shows the newest lines again
def talk_line(name: str, channel: str, text: str) -> str:
    """One heard line as a prompt shows it, by a name and the channel it came by.

    ``Alice: Good evening.``, ``Alice (whispers to you): …``, ``Alice: *waves*``; what nobody said
    is a note: ``(You notice: Alice arrives.)``.
    """
    who, said = shown_name(name), flat(text)
    if channel in ("arrive", "leave"):
        return note(NOTICED, f"{who} {_VERBS[channel]}.")
    if channel == "event":
        return note(NOTICED, f"{who} {said}")
    if channel == "pose":
        return f"{who}: *{said}*"
    if channel == "say":
        return f"{who}: {said}"
    return f"{who} ({shown_name(_VERBS.get(channel, channel))}): {said}"


def note(label: str, text: str) -> str:
    """What nobody said as a line of a prompt: ``(Here: Alice, Bram)``."""
    return f"({label}: {flat(text)})"


def read_talk_line(line: str) -> Heard | Note | None:
    """What `talk_line` or `note` wrote; None for other lines."""
    if found := _NOTE.fullmatch(line):
        return Note(found["label"], found["text"])
    spoken = _TALK.fullmatch(line)
    if spoken is None:
        return None
    verb, text = spoken["how"] or _VERBS["say"], spoken["text"]
    if verb == _VERBS["say"] and (posed := _POSE.fullmatch(text)):
        verb, text = _VERBS["pose"], posed["text"]
    return Heard(spoken["who"], verb, text)


def quoted(text: str) -> str:
    """A text as a JSON string on one line, by any reading of what ends a line."""
    return _LINE_ENDS.sub(lambda end: f"\\u{ord(end.group()):04x}", _as_json(text))


def one_line(text: str) -> str:
    """A name made safe to stand outside quotes: one line, no quote marks or brackets."""
    return _UNSAFE.sub(" ", text).strip()


def speaker_label(key: str, speaker_id: str) -> str:
    """A speaker's name and stable id: ``Alice [o12.abc]``; of somebody unseen no id."""
    has_id = bool(speaker_id) and key != UNSEEN
    return one_line(key) + (f" [{one_line(speaker_id)}]" if has_id else "")


def without_marks(text: str) -> str:
    """A text without the labels, days and ids of speakers in brackets."""
    if "[" in text:
        return _MARKS.sub(" ", text)
    return text


def row(row_id: str, day: str, who: str, text: str) -> str:
    """A memory or a note as a row of its block: ``- (m1) 2026-01-02 Al: "hello"``."""
    return " ".join(filter(None, (f"- ({row_id})", day, who and f"{who}:", quoted(text))))


def without_stamps(text: str) -> str:
    """A row of a summary without the days and the label in front of it."""
    return _STAMPS.sub("", text.strip(), count=1)
