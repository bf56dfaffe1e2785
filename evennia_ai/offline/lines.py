"""Who said what in one line of a request: heard, of a summary, of the journal, of the ledger.

What is kept of a talk is told and told again: a summary quotes `Bob: words` behind the times of
its own making, and her own answers quote `Bob told me: "words"`. Such frames are peeled off, so
that only the words and their speaker are evidence, and only the words are ever quoted.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evennia_ai.offline import words
from evennia_ai.offline.smalltalk import is_fixed

MAX_LINES = 2000  # of one text
MAX_CHARS = 4000  # of one line
MESSAGE, LEDGER, JOURNAL, MEMORY, SUMMARY = "message", "ledger", "journal", "memory", "summary"
ECHO = "echo"  # what she quoted herself, wherever that stands
# Where words may come from, the most original first.
SOURCES = (MESSAGE, LEDGER, JOURNAL, MEMORY, SUMMARY, ECHO)
LABEL = re.compile(r"^\[([A-Z][A-Za-z ]{2,40})\]")
_NAME = r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,3}"
_HEARD = re.compile(
    r"^(?P<who>[^\"\[\]<>\n]{1,80}?)(?: \[(?P<id>[^\]\n]{1,80})\])? "
    r"(?P<verb>says|whispers to you|pages you|poses|arrives|leaves|notice)(?:: (?P<text>.*))?$"
)
_LEAD = re.compile(
    r"^(?:- )?(?:\((?P<id>[^)\s]{1,80})\) )?"
    r"(?:(?P<at>\d{4}-\d\d-\d\d\S*(?: \d\d:\d\d\S*)?) )?(?P<text>.+)$",
    re.DOTALL,
)
_STAMPS = re.compile(r"^(?:\[\d{4}-\d\d-\d\d[^\]\n]{0,20}\]\s*)+")
_SPEAKER = re.compile(
    rf"^(?:(?P<who>{_NAME})(?: \[[^\]]{{1,80}}\])?|(?P<any>[^\"\[\]<>:\n]{{1,80}}) \[o\d[^\]]*\])"
    r"(?: (?:said|says|whispers to you|pages you))?: (?P<text>.+)$"
)
# How her answers quote: at a sentence's start, behind another quote or within one.
_QUOTE = re.compile(
    rf"(?:^|(?<=[.!?\"…] ))(?:(?P<who>{_NAME}) told me: |(?P<noted>I have it noted: |I saw it: )"
    r"|You asked me to keep in mind: )"
)
_CITED = re.compile(r" \((?:memory|ledger) [^()]*\)\s*$")
# What a summary had no room for: names without what was said of them.
_BARE = re.compile(r"^(?:also )?mentioned\b[^:]{0,80}:", re.IGNORECASE)
_HEADING = re.compile(r"^(?:\(.*\)|[\w' -]{1,40}:)$")
_BACK = re.compile(
    r"^(?:(?:he|she|it|they|his|her|their|its|him|them|that|this|those|these|both|neither|each|"
    r"one|half|called)(?:['’]\w+)?\b|the (?:name|other|rest)\b|(?:and|but|so)\b)",
    re.IGNORECASE,
)
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Line:
    """Something said or noted.

    Attributes:
        who: The speaker's name, ``""`` where a note stands alone.
        text: The words.
        verb: ``says`` and so on; ``note`` for what is no direct speech.
        id: The memory's id, ``""`` where none is known.
        at: When, UTC ISO 8601, ``""`` where it is not shown.
        order: Place in the visible history, -1 for what came from elsewhere.
        who_id: The speaker's stable id.
        source: One of `SOURCES`.
    """

    who: str
    text: str
    verb: str = "says"
    id: str = ""
    at: str = ""
    order: int = -1
    who_id: str = ""
    source: str = MESSAGE


def heard_lines(content: str, order: int) -> Iterator[Line]:
    """Heard lines of a user message; a message in no known form is one line by nobody named."""
    rows = content[: MAX_CHARS * 20].splitlines()
    matches = [_HEARD.match(row) for row in rows]
    if not any(matches):
        if content.strip():
            yield Line("", content.strip()[:MAX_CHARS], order=order)
        return
    for match in matches:
        if match:
            text = unquoted(match["text"] or "")
            yield Line(match["who"], text, match["verb"], order=order, who_id=match["id"] or "")
            order += 1


def is_framed(text: str) -> bool:
    """Whether a text begins as somebody's words do: `Bob says: …`, `Bob: …`."""
    return bool(_HEARD.match(text) or _SPEAKER.match(text))


def unquoted(text: str) -> str:
    """The text that stands as a JSON string; any other as it is."""
    if text.startswith('"'):
        try:
            loaded = json.loads(text)
        except ValueError:
            return text.strip('"')[:MAX_CHARS]
        return loaded[:MAX_CHARS] if isinstance(loaded, str) else text[:MAX_CHARS]
    return text[:MAX_CHARS]


def note_lines(content: str) -> Iterator[Line]:
    """Lines of a labelled block of the prompt: summaries, memories or the ledger."""
    label = LABEL.match(content)
    source = _SOURCE_OF.get(label.group(1).lower() if label else "", MEMORY)
    for row in content.splitlines()[:MAX_LINES]:
        yield from told_lines(row, source=source)


_SOURCE_OF = {"ledger": LEDGER, "older memories": SUMMARY, "recent past": SUMMARY}
_SOURCE_OF["context summary"] = SUMMARY


def told_lines(row: str, memory_id: str = "", at: str = "", source: str = MEMORY) -> list[Line]:
    """What one row of a summary, the journal, the ledger or a memory tells, and who told it.

    Args:
        row: The row, perhaps with an id, times and a speaker in front.
        memory_id: Id of what it stands in, where the row names none itself.
        at: When that was made, likewise.
        source: One of `SOURCES`.
    """
    lead = _LEAD.match(row.strip()[: 2 * MAX_CHARS])
    if not lead:
        return []
    if lead["id"]:
        source = SUMMARY if lead["id"].startswith(("s1", "compact_")) else source
    frame = Line("", "", "note", lead["id"] or memory_id, lead["at"] or at, source=source)
    found: list[Line] = []
    for part in unquoted(lead["text"]).splitlines()[:MAX_LINES]:
        found.extend(_peeled(part[:MAX_CHARS], frame))
    return found


def _peeled(row: str, frame: Line) -> Iterator[Line]:
    """The lines of a row with a frame's id, time and source."""
    row = _STAMPS.sub("", LABEL.sub("", _STAMPS.sub("", row.strip())).strip())
    if not row or _BARE.match(row) or _HEADING.match(row):
        return
    if heard := _HEARD.match(row):
        yield replace(
            frame, who=heard["who"], text=unquoted(heard["text"] or ""), verb=heard["verb"]
        )
    elif spoken := _SPEAKER.match(row):
        who = spoken["who"] or spoken["any"]
        yield from _spoken(who, unquoted(spoken["text"]), frame)
    else:
        yield from _spoken("", row, frame)


def _spoken(who: str, text: str, frame: Line) -> Iterator[Line]:
    """What somebody said, or nobody named: the words within its own frames."""
    for said in _parts(who, text, frame.source):
        if quotes := quotes_of(said) if not who or _QUOTE.match(said) else []:
            inner = replace(frame, source=ECHO)
            for quote in quotes:
                if quote.who.lower() != "you":
                    yield from _spoken(quote.who, quote.words, inner)
        elif said and not _BARE.match(said) and (who or not is_fixed(said)):
            yield replace(frame, who=who, text=said, verb="says" if who else "note")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that an answer quoted.

    Attributes:
        words: The words.
        who: Who was said to have told them, ``You`` for the one spoken to; ``""`` for nobody.
    """

    words: str
    who: str = ""


def quotes_of(reply: str) -> list[Quote]:
    """What an answer quotes, with who told it; empty where it quotes nobody."""
    frames = list(_QUOTE.finditer(reply))
    ends = [*(frame.start() for frame in frames), len(reply)][1:]
    found: list[Quote] = []
    for frame, end in zip(frames, ends, strict=True):
        said = _CITED.sub("", reply[frame.end() : end].strip()).removesuffix("…")
        if not frame["noted"]:
            said = said[said.startswith('"') :].removesuffix('"')
        who = frame["who"] or ("" if frame["noted"] else "You")
        found.append(Quote(said.strip(), who))
    return [quote for quote in found if quote.words]


def _parts(who: str, text: str, source: str) -> list[str]:
    """A summary's sentences, parted where each speaks for itself: it joins what was said apart."""
    if source != SUMMARY:
        return [text]
    found: list[str] = []
    for sentence in words.sentences(text):
        if found and _goes_on(found[-1], sentence, who):
            found[-1] += " " + sentence
        else:
            found.append(sentence)
    return [part for part in found if not (part.startswith(_CUT) or part.endswith(_CUT))]


def _goes_on(before: str, sentence: str, who: str) -> bool:
    """Whether a sentence belongs to the one before: inside its quote, leaning on it, or prose."""
    if before.count('"') % 2:
        return True
    if any(_QUOTE.match(text) or is_fixed(text) for text in (before, sentence)):
        return False
    return not who or bool(_BACK.match(sentence))
