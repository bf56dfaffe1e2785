"""Names of those who speak, found again by the words of a query."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache

from evennia_ai.language.words import words

# A short form has at least so many letters, of a name of at least so many.
_SHORT, _FULL = 3, 5


class Speakers:
    """Names, sorted by their first word, so that those a word calls stand together.

    Args:
        names: The names; one without a word can be called by none.
    """

    def __init__(self, names: Iterable[str] = ()):
        called = sorted((parts[0], name) for name in set(names) if (parts := name_parts(name)))
        self._firsts = [first for first, _ in called]
        self._names = [name for _, name in called]

    def called(self, tokens: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Names whose first word, or a short form of it, is among some words; with their words."""
        return {name: name_parts(name) for token in set(tokens) for name in self._called(token)}

    def _called(self, token: str) -> Iterator[str]:
        at = bisect_left(self._firsts, token)
        while at < len(self._firsts) and self._firsts[at].startswith(token):
            if is_called(token, self._firsts[at]):
                yield self._names[at]
            elif len(token) < _SHORT:
                return  # what follows is only longer
            at += 1


def is_called(token: str, part: str) -> bool:
    """Whether a word is a name or its short form: `mel` for `melanie`, not `me`."""
    short = len(token) >= _SHORT and len(part) >= _FULL and part.startswith(token)
    return token == part or short


@lru_cache(maxsize=16_384)
def name_parts(name: str) -> tuple[str, ...]:
    """The folded words of a name."""
    return tuple(words(name))
