"""The words in a line as a game shows it: ``Alice says, "hello"`` without its frame."""

import re
from collections.abc import Iterable

# Each quotation mark that opens a speech, with those that close it.
_PAIRS = (
    "\"\" '' “”„ ”” „“”\" «» »« ‹› ›‹ ‘’ ’’ ‚‘’' 「」 『』 《》 〈〉 ⟨⟩ ⟪⟫ ﹁﹂ ﹃﹄ ｢｣ "
    "〝〞〟 ‟” ‛’ ❝❞ ❛❜ ＂＂ ＇＇ `` —— –– ――"
)
_MARKS = {pair[0]: pair[1:] for pair in _PAIRS.split()}
# An apostrophe opens a speech only where a word cannot go on; dashes enclose only what was typed.
_LATE, _DASHES = "'‘’‚‛`", "—–―"
_OPENING = re.compile(
    rf"[{''.join({*_MARKS} - {*_LATE, *_DASHES})}]|(?:^|(?<=[\s:,：，、]))[{_LATE}]"
)
_COLON = re.compile(r"[:：]\s*")
_FRAME_CHARS = 240
# Words of a frame before a colon: `says softly to everybody with a smile`.
_FRAME_WORDS = 7
# What `rpsystem` puts before a speech, for the speaker's name.
_OWN_REFERENCE = re.compile(r"^[/@]?me\s", re.I)


def spoken(
    line: str, names: Iterable[str] = (), typed: Iterable[str] = (), is_speech: bool = True
) -> str:
    """The words of a shown line without what a game puts around them.

    Args:
        line: What a listener was shown, without colours.
        names: What the speaker may be called in it.
        typed: What the speaker typed, if it is known: the first that the line shows, or that ends
            with what stands in its quotation marks, is what was said.
        is_speech: Whether the line is known to be speech.

    Returns:
        The words. Of a line that is not known to be speech, only words that the speaker typed,
        else "".
    """
    names, typed = [name for name in names if name], list(typed)
    said = [text for text in typed if _shows(line, names, text, is_speech)]
    words = said[0] if said else _quoted(line, names, is_speech) or _behind_colon(line, names)
    if not said and is_speech:
        words = words or _behind_verb(line, names)
    elif not said:
        end, texts = _words(words), list(map(_words, typed))
        is_pose = _words(without_names(line, names)) in texts and end not in texts
        is_typed = bool(end) and any(text[-len(end) :] == end for text in texts)
        words = words if is_typed and not is_pose else ""
    for _ in range(3):  # a say inside a say
        if _OWN_REFERENCE.match(words):
            words = _quoted(words, ["/me", "me"], True) or words
    return words.strip()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _shows(line: str, names: list[str], typed: str, is_speech: bool) -> bool:
    """Whether a line shows what was typed at its end, or between marks, as words in a frame."""
    start = line.rfind(typed) if typed else -1
    frame, behind = line[: max(start, 0)].rstrip(), line[start + len(typed) :].strip()
    if start < 0 or len(frame) + len(behind) > _FRAME_CHARS:
        return False
    is_enclosed = behind[:1] in _MARKS.get(frame[-1:], " ")
    if re.search(r"\w", behind) and not is_enclosed:
        return False
    if behind and not is_speech and frame[-1:] not in _MARKS:
        return False  # a thing that an act is told of, as in `picks up a ball.`
    is_opened = frame[-1:] in {*_MARKS, ":", "："}
    return is_opened or bool(re.search(r"\w", without_names(f"{frame} {behind}", names)))


def _quoted(line: str, names: list[str], is_named: bool) -> str:
    """What stands between the outer quotation marks of a line, "" if nothing does.

    If it `is_named`, only where the speaker's name stands beside them.
    """
    bare = line  # marks in a name, as in `Bob "The Axe" Stone`, enclose nothing
    for name in filter(_OPENING.search, names):
        bare = re.sub(re.escape(name), "_" * len(name), bare, flags=re.I)
    for opening in _OPENING.finditer(bare):
        start = opening.end()
        end = max(bare.rfind(mark, start) for mark in _MARKS[opening.group()])
        words, before, behind = line[start:end], line[: opening.start()], line[end + 1 :]
        if end < 0 or not re.search(r"\w", without_names(words, names)):
            continue  # a name in brackets, as in `《Bob》 hello`
        lead = without_names(before, names).strip()
        is_framed = lead != before.strip() or without_names(behind, names) != behind
        if re.search(r"\w", behind) and before.strip():  # the verb stands behind the words
            is_framed &= lead[-1:] in ",，、" or (len(lead) < 3 and lead[-1:] not in ":：")
        return words if is_framed or not is_named else ""
    return ""


def _behind_colon(line: str, names: list[str]) -> str:
    """What stands behind the first colon, if a name and few other words stand before it."""
    colon = _COLON.search(line)
    before = line[: colon.start()] if colon else ""
    rest = without_names(before, names)
    is_framed = colon is not None and rest != before and len(rest.split()) <= _FRAME_WORDS
    return line[colon.end() :] if colon and is_framed else ""


def _behind_verb(line: str, names: list[str]) -> str:
    """What stands behind a name and a word in a line of speech, else the line."""
    rest = without_names(line, names, at_start=True)
    _, _, words = rest.strip().partition(" ")
    return words if rest != line and words else line


def without_names(text: str, names: list[str], at_start: bool = False) -> str:
    """A text without the longest of some names that stands in it."""
    for name in sorted(names, key=len, reverse=True):
        found = re.search(re.escape(name), text, re.I)
        if found and not (at_start and re.search(r"\w", text[: found.start()])):
            return text[found.end() :] if at_start else text[: found.start()] + text[found.end() :]
    return text
