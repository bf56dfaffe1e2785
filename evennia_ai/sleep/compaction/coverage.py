"""What of a source must survive its summary: names, numbers and quoted words.

A summary is measured by items (`llm_interaction.items`). They may survive in the summary, in the
journal or in the ledger. What is found in none of them is appended in one capped line, without
asking a model again; the rest becomes a journal entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.history.frames import one_line
from evennia_ai.history.messages import Counter
from evennia_ai.llm_interaction.budget import capped
from evennia_ai.llm_interaction.items import Item, missing

APPENDIX_TITLE = "Also mentioned:"
# Most of a summary's cap the line of missing things may take.
APPENDIX_SHARE = 0.25
NAMED = 3


@dataclass(frozen=True)
class Covered:
    """A summary with what it must not lose.

    Args:
        text: The summary with its appended line.
        share: Share of the source's items kept in summary, journal or ledger before anything was
            appended.
        lost: What was kept nowhere.
        overflow: What of that had no room in the line either.
        named: Some names in the source, by which it is found again.
    """

    text: str
    share: float = 1.0
    lost: tuple[Item, ...] = ()
    overflow: tuple[Item, ...] = ()
    named: tuple[str, ...] = ()


def covered(
    items: Sequence[Item], text: str, elsewhere: Sequence[str], cap: int, count: Counter
) -> Covered:
    """A summary's text with a line of what it lost, under the cap.

    Where text and line are too long together the text is cut first, and what stood in the part
    that was cut off counts as lost too.

    Args:
        items: Those of what was summarised.
        text: The summary.
        elsewhere: Texts in which a thing is kept besides.
        cap: Most tokens of the text with its line.
        count: Counts tokens.
    """
    lost, room = missing(items, text, *elsewhere), int(cap * APPENDIX_SHARE)
    line, overflow = appendix(lost, room, count)
    if line and count(text) + count(line) + 1 > cap:
        text = capped(text, cap - room - 1, count)
        lost = missing(items, text, *elsewhere)
        line, overflow = appendix(lost, room, count)
    names = dict.fromkeys(item.text for item in items if item.kind == "name")
    share = 1.0 - len(lost) / len(items) if items else 1.0
    text = f"{text}\n{line}" if line else text
    return Covered(text, share, lost, overflow, tuple(names)[:NAMED])


def appendix(
    items: Sequence[Item], cap_tokens: int, count: Counter
) -> tuple[str, tuple[Item, ...]]:
    """As many items, in order, as the cap allows as one line, and those that did not fit.

    The line is ``Also mentioned: …``; empty if none did.
    """
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(_line(items[:middle])) <= cap_tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return _line(items[:low]), tuple(items[low:])


def _line(items: Sequence[Item]) -> str:
    texts = (one_line(item.text) for item in items)
    shown = (f'"{t}"' if i.kind == "quote" else t for i, t in zip(items, texts, strict=True))
    return f"{APPENDIX_TITLE} {', '.join(shown)}." if items else ""
