"""The words in a line as a game shows it: ``Alice says, "hello"`` without its frame."""

import re
from collections.abc import Iterable

# Each quotation mark that opens a speech, with those that close it.
_PAIRS = (
    "\"\" '' “”„ ”” „“”\" «» »« ‹› ›‹ ‘’ ’’ ‚‘’' 「」 『』 《》 〈〉 ⟨⟩ ⟪⟫ ﹁﹂ ﹃﹄ ｢｣ "
    "〝〞〟 ‟” ‛’ ❝❞ ❛❜ ＂＂ ＇＇ `` —— –– ――"
)
_MARKS = {pair[0]: pair[1:] for pair in _PAIRS.split()}
# An apostrophe opens a speech only where a word cannot go on, a dash only where a line begins.
_LATE, _DASHES = "'‘’‚‛`", "—–―"
_OPENING = re.compile(
    rf"[{''.join({*_MARKS} - {*_LATE, *_DASHES})}]|(?:^|(?<=[\s:,：，、]))[{_LATE}]|^[{_DASHES}]"
)
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
        The words. Of a line that is not known to be speech, only words that the speaker typed,
        else "".
    """
    names, typed = [name for name in names if name], list(typed)
    said = (words for each in typed if (words := _typed(line, names, each, is_speech)) is not None)
    words = next(said, None)
    if words is None:
        words = _quoted(line, names, is_speech)
        if words is None:
            words = _unquoted(line, names, is_speech)
        if not is_speech and not _is_typed(words, line, names, typed):
            words = ""
    for _ in range(3):  # a say inside a say
        is_own = _OWN_REFERENCE.match(words)
        words = (_quoted(words, ["/me", "me"], True) if is_own else None) or words
    return words.strip()


def _is_typed(words: str, line: str, names: list[str], typed: list[str]) -> bool:
    """Whether words of a line end what its speaker typed, and the rest of it was not typed, too."""
    said, shown = _words(words), _words(_without(line, names))
    if not said:
        return False
    texts = map(_words, typed)
    return any(text == said or (text[-len(said) :] == said and text != shown) for text in texts)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _typed(line: str, names: list[str], typed: str, is_speech: bool) -> str | None:
    start = line.rfind(typed) if typed else -1
    if start < 0:
        return None
    frame, behind = line[:start].rstrip(), line[start + len(typed) :].strip()
    is_enclosed = behind[:1] in _MARKS.get(frame[-1:], " ")
    if re.search(r"\w", behind) and not (is_enclosed and len(behind) <= _FRAME_CHARS):
        return None
    if behind and not is_speech and frame[-1:] not in _MARKS:
        return None  # a thing that an act is told of, as in `picks up a ball.`
    frame = _without(f"{frame} {behind}", names)
    return typed if re.search(r"\w", frame) and len(frame) <= 2 * _FRAME_CHARS else None


def _quoted(line: str, names: list[str], is_speech: bool) -> str | None:
    """The words in quotation marks, if nothing but a frame stands around them."""
    bare = line  # marks in a name, as in `Bob "The Axe" Stone`, frame nothing
    for name in filter(_OPENING.search, names):
        bare = re.sub(re.escape(name), "_" * len(name), bare, flags=re.I)
    for opening in _OPENING.finditer(bare):
        start, close = opening.end(), _MARKS[opening.group()]
        end = max(bare.rfind(mark, start) for mark in close)
        if end < 0:
            continue
        before, words, behind = line[: opening.start()], line[start:end], line[end + 1 :]
        is_named = _without(behind, names) != behind
        if not before.strip():
            if not is_named and not re.search(r"\w", _without(words, names)) and behind.strip():
                continue  # a name in brackets, as in `《Bob》 hello`
            is_framed = not behind.strip() or _is_frame(behind, names)
            is_framed &= is_named or opening.group() not in _DASHES
        elif re.search(r"\w", behind):  # the verb stands behind, as in `Bobは「…」と言った。`
            lead = _without(before, names).strip()
            is_short = lead[-1:] in ",，、" or (len(lead) < 3 and lead[-1:] not in ":：")
            is_framed = is_speech and is_short and _is_frame(behind, names)
        else:
            is_framed = _is_frame(before, names)
        return words if is_framed else None
    return None


def _unquoted(line: str, names: list[str], is_speech: bool) -> str:
    """The words of a line without marks: behind a colon, or behind a name and a verb."""
    colon = _COLON.search(line)
    before = line[: colon.start()] if colon else ""
    rest = _without(before, names)
    is_named = (is_speech or rest != before) and not _OPENING.search(rest)
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
