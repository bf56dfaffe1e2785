"""Keys of numbered pages: `page_000001` and so on; other keys, put in by hand, are no pages."""

import re
from collections.abc import Iterable

_PAGE = re.compile(r"page_(\d{6,})")


def page_key(number: int) -> str:
    """The key of the page of a number."""
    return f"page_{number:06d}"


def page_numbers(keys: Iterable[str]) -> list[int]:
    """The numbers of the pages among keys, the first first."""
    return sorted(int(found[1]) for key in keys if (found := _PAGE.fullmatch(key)))


def next_number(keys: Iterable[str]) -> int:
    """The number of the page behind all that are among keys, so that none is written over."""
    return max(page_numbers(keys), default=0) + 1
