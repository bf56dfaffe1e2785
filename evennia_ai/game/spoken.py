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
# Stands for each character of a name of the speaker's. Marks in a name enclose nothing.
_NAME = "\0"
# A name and a word at the beginning of a line.
_VERB = re.compile(rf"[^\w{_NAME}]*{_NAME}+\s*[^\s{_NAME}]\S* (?=.)")


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
    bare, typed = without_names(line, names), [*filter(None, typed)]
    words = next(filter(None, (_shown(line, bare, text, is_speech) for text in typed)), "")
    if words:
        return words.strip()
    words = _quoted(line, bare) or _behind_colon(line, bare)
    if is_speech:
        if verb := _VERB.match(bare):
            line = line[verb.end() :]
        return (words or line).strip()
    end, texts = _words(words), [_words(text) for text in typed]
    is_pose = _words(bare) in texts and end not in texts
    is_typed = bool(end) and any(text[-len(end) :] == end for text in texts)
    if is_pose or not is_typed:
        return ""
    return words.strip()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def without_names(line: str, names: Iterable[str]) -> str:
    """A line with a sign that belongs to no word in place of each character of these names."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        line = re.sub(re.escape(name), lambda found: _NAME * len(found[0]), line, flags=re.I)
    return line


def _shown(line: str, bare: str, typed: str, is_speech: bool) -> str:
    """What was typed, as a line shows it at its end, or between marks, as words in a frame."""
    start = line.rfind(typed)
    end = start + len(typed)
    frame, behind = bare[: max(start, 0)].rstrip(), bare[end:].strip()
    if start < 0 or len(frame) + len(behind) > _FRAME_CHARS:
        return ""
    if re.search(r"\w", behind) and behind[:1] not in _MARKS.get(frame[-1:], " "):
        return ""  # more words than those between marks
    if behind and not is_speech and frame[-1:] not in _MARKS:
        return ""  # a thing that an act is told of, as in `picks up a ball.`
    if frame[-1:] in {*_MARKS, ":", "："} or re.search(r"\w", frame + behind):
        return typed
    return ""


def _quoted(line: str, bare: str) -> str:
    """What stands between the outer quotation marks of a line, with the speaker's name beside it.

    "" if nothing does.
    """
    for opening in _OPENING.finditer(bare):
        start = opening.end()
        end = max(bare.rfind(mark, start) for mark in _MARKS[opening.group()])
        if end < 0 or not re.search(r"\w", bare[start:end]):
            continue  # a name in brackets, as in `《Bob》 hello`
        before, behind = bare[: opening.start()].strip(), bare[end + 1 :]
        is_framed = _NAME in before + behind
        if re.search(r"\w", behind) and before:  # the verb stands behind the words
            lead = before.replace(_NAME, "").strip()
            is_framed &= lead[-1:] in ",，、" or (len(lead) < 3 and lead[-1:] not in ":：")
        if is_framed:
            return line[start:end]
        return ""
    return ""


def _behind_colon(line: str, bare: str) -> str:
    """What stands behind the first colon, if a name and few other words stand before it."""
    colon = _COLON.search(bare)
    if colon is None:
        return ""
    before = bare[: colon.start()]
    if _NAME not in before or len(before.replace(_NAME, "").split()) > _FRAME_WORDS:
        return ""
    return line[colon.end() :]
