"""The words in a line as a game shows it: ``Alice says, "hello"`` without its frame."""

import re
from collections.abc import Iterable

# Quotation marks that open a speech, with those that close it.
_MARKS = {
    '"': '"',
    "'": "'",
    "“": "”“",
    "”": "”",
    "„": "“”„",
    "«": "»",
    "»": "«»",
    "‹": "›",
    "›": "‹›",
    "‘": "’‘",
    "’": "’",
    "‚": "‘’",
    "「": "」",
    "『": "』",
    "《": "》",
    "＂": "＂",
}
# An apostrophe opens a speech only where a word cannot go on.
_OPENING = re.compile(r"[\"“”„«»‹›「『《＂]|(?:^|(?<=[\s:,：，、]))['‘’‚]")
_COLON = re.compile(r"[:：]\s*")
# More than a frame: a sentence that ends, or words behind a colon.
_SENTENCE = re.compile(r"[.!?;。！？]\s*\S")
_BEHIND_COLON = re.compile(r"[^:：]*[:：].*\w", re.S)
# Words of a frame besides the names: `says softly to everybody with a smile`.
_FRAME_WORDS = 7
_FRAME_CHARS = 120
# What `rpsystem` puts before a speech, for the speaker's name.
_OWN_REFERENCE = re.compile(r"^[/@]?me\s", re.I)


def spoken(
    line: str, names: Iterable[str] = (), typed: Iterable[str] = (), is_speech: bool = True
) -> str:
    """The words of a shown line without what a game puts around them.

    Args:
        line: What a listener was shown, without colours.
        names: What the speaker may be called in it.
        typed: What the speaker typed, if it is known: the first that ends the line is what was
            said, whatever stands before it.
        is_speech: Whether the line is known to be speech.

    Returns:
        The words. Of a line that is not known to be speech, and does not look like it, "".
    """
    names = [name for name in names if name]
    said = (words for each in typed if (words := _typed(line, names, each, is_speech)) is not None)
    words = next(said, None)
    if words is None:
        words = _quoted(line, names)
    if words is None:
        words = _unquoted(line, names, is_speech)
    while _OWN_REFERENCE.match(words) and (inner := _quoted(words, ["/me", "me"])) is not None:
        words = inner
    return words.strip()


def _typed(line: str, names: list[str], typed: str, is_speech: bool) -> str | None:
    start = line.rfind(typed) if typed else -1
    if start < 0 or re.search(r"\w", behind := line[start + len(typed) :]):
        return None
    frame = line[:start]
    if behind.strip() and not is_speech and frame.strip()[-1:] not in _MARKS:
        return None  # a thing that an act is told of, as in `picks up a ball.`
    frame = _without(frame, names)
    return typed if re.search(r"\w", frame) and len(frame) <= _FRAME_CHARS else None


def _quoted(line: str, names: list[str]) -> str | None:
    """The words in quotation marks, if nothing but a frame stands around them."""
    bare = line  # marks in a name, as in `Bob "The Axe" Stone`, frame nothing
    for name in filter(_OPENING.search, names):
        bare = re.sub(re.escape(name), "_" * len(name), bare, flags=re.I)
    for opening in _OPENING.finditer(bare):
        start, close = opening.end(), _MARKS[opening.group()]
        end = max(bare.rfind(mark, start) for mark in close)
        if end >= 0:
            before, behind = line[: opening.start()], line[end + 1 :]
            if before.strip():
                is_framed = _is_frame(before, names) and not re.search(r"\w", behind)
            else:
                is_framed = not behind.strip() or _is_frame(behind, names)
            return line[start:end] if is_framed else None
    return None


def _unquoted(line: str, names: list[str], is_speech: bool) -> str:
    """The words of a line without marks: behind a colon, or behind a name and a verb."""
    colon = _COLON.search(line)
    before = line[: colon.start()] if colon else ""
    is_named = is_speech or _without(before, names) != before
    if colon is not None and is_named and _is_frame(before, names):
        return line[colon.end() :]
    if not is_speech:
        return ""
    rest = _without(line, names, at_start=True)
    _, _, words = rest.strip().partition(" ")
    return words if rest != line and words else line


def _is_frame(text: str, names: list[str]) -> bool:
    """Whether a text may introduce a speech: some words, no sentence."""
    rest = _without(text, names).strip()
    is_more = _SENTENCE.search(rest) or _BEHIND_COLON.match(rest)
    return len(rest.split()) <= _FRAME_WORDS and not is_more


def _without(text: str, names: list[str], at_start: bool = False) -> str:
    """A text without the longest of some names that stands in it."""
    for name in sorted(names, key=len, reverse=True):
        found = re.search(re.escape(name), text, re.I)
        if found and not (at_start and re.search(r"\w", text[: found.start()])):
            return text[found.end() :] if at_start else text[: found.start()] + text[found.end() :]
    return text
