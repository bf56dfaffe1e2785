"""What of a source must survive its summary: names, numbers and quoted words.

A summary is measured by items (`history.items`). They may survive in the summary, in the journal
or in the ledger. What is found in none of them is appended in one capped line, without asking a
model again; the rest becomes a journal entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.history.frames import one_line
from evennia_ai.history.items import Item, items_of, missing
from evennia_ai.history.messages import Counter
from evennia_ai.llm_interaction.budget import capped

APPENDIX_TITLE = "Also mentioned:"
# Most of a summary's cap the line of missing things may take.
APPENDIX_SHARE = 0.25
NAMED = 3


@dataclass(frozen=True)
class Kept:
    """A summary with what it must not lose.

    Args:
        text: The summary with its appended line.
        score: Share of the source's items kept in summary, journal or ledger before anything was
            appended.
        in_summary: Share of them kept in the summary itself.
        lost: What was kept nowhere.
        overflow: What had no room in the line either.
        named: Some names in the source, by which it is found again.
    """

    text: str
    score: float = 1.0
    in_summary: float = 1.0
    lost: tuple[Item, ...] = ()
    overflow: tuple[Item, ...] = ()
    named: tuple[str, ...] = ()


def kept(
    items: Sequence[Item], text: str, elsewhere: Sequence[str], cap: int, count: Counter
) -> Kept:
    """A summary's text with what it must not lose.

    Args:
        items: Those of what was summarised.
        text: The summary.
        elsewhere: Texts in which a thing is kept besides.
        cap: Most tokens of the text with its line.
        count: Counts tokens.
    """
    lost = missing(items, text, *elsewhere)
    whole, lost, overflow = with_appendix(items, text, lost, elsewhere, cap, count)
    named = tuple(dict.fromkeys(item.text for item in items if item.kind == "name"))
    in_it = score(items, missing(items, whole.partition(APPENDIX_TITLE)[0]))
    return Kept(whole, score(items, lost), in_it, lost, overflow, named[:NAMED])


def with_appendix(
    items: Sequence[Item],
    text: str,
    lost: tuple[Item, ...],
    elsewhere: Sequence[str],
    cap: int,
    count: Counter,
) -> tuple[str, tuple[Item, ...], tuple[Item, ...]]:
    """A text with a line of what it lost, under the cap.

    Where text and line are too long together the text is cut first, and what stood in the part
    that was cut off counts as lost too.

    Returns:
        The text; what it lost; what of that had no room in the line.
    """
    room = int(cap * APPENDIX_SHARE)
    line, overflow = appendix(lost, room, count)
    if line and count(text) + count(line) + 1 > cap:
        text = capped(text, cap - room - 1, count)
        lost = missing(items, text, *elsewhere)
        line, overflow = appendix(lost, room, count)
    return (f"{text}\n{line}" if line else text), lost, overflow


def score(items: Sequence[Item], lost: Sequence[Item]) -> float:
    """Share of the items that survived, 0 to 1; 1 where there was nothing to keep."""
    return 1.0 - len(lost) / len(items) if items else 1.0


def drift(older: Sequence[str], newer: str) -> float:
    """Share of the names, numbers and quoted words of older texts that a newer one holds no more.

    What a first summary kept, passed from summary to summary: 0 where nothing faded, 1 where all.
    """
    items = items_of("\n".join(older))
    return round(1.0 - score(items, missing(items, newer)), 4)


def appendix(
    items: Sequence[Item], cap_tokens: int, count: Counter
) -> tuple[str, tuple[Item, ...]]:
    """Lost items as one plain line of at most `cap_tokens` tokens, and those that did not fit.

    The line is ``Also mentioned: …`` with as many items as fit, in order; empty if none did.
    """
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(_appendix_line(items[:middle])) <= cap_tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return _appendix_line(items[:low]), tuple(items[low:])


def _appendix_line(items: Sequence[Item]) -> str:
    return f"{APPENDIX_TITLE} {', '.join(map(_shown, items))}." if items else ""


def _shown(item: Item) -> str:
    text = one_line(item.text)
    return f'"{text}"' if item.kind == "quote" else text
