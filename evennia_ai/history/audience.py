"""Who may know a thing: everyone, the parties of a private talk, or staff.

An audience is stored as a short string, so that it can stand in a message dict, a database
column and a dictionary key alike:

- ``public``: said aloud; anyone may be told;
- ``private:<id>+<id>``: the stable ids of those who took part, sorted;
- ``staff``: only game staff.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

PUBLIC = "public"
STAFF = "staff"
_PRIVATE = "private:"


def private(ids: Iterable[str]) -> str:
    """The audience of a private talk between the assistant and these stable ids.

    ``private:…`` with the ids sorted; ``staff`` if there are none.
    """
    members = sorted(set(ids))
    if members:
        return _PRIVATE + "+".join(members)
    return STAFF


@lru_cache(maxsize=1024)
def members(audience: str) -> frozenset[str]:
    """The stable ids named by a private audience; empty for any other."""
    if not audience.startswith(_PRIVATE):
        return frozenset()
    return frozenset(part for part in audience[len(_PRIVATE) :].split("+") if part)


def is_private(audience: str) -> bool:
    """Whether an audience is a closed circle of people."""
    return audience.startswith(_PRIVATE)


def normalised(audience: object) -> str:
    """A stored audience made valid: unknown values become ``staff``, the narrowest."""
    if audience is None or audience == PUBLIC:
        return PUBLIC
    if isinstance(audience, str) and is_private(audience):
        return private(members(audience))
    return STAFF


def viewer(audience: object) -> str:
    """For whom something is shown, made valid: unknown values become ``public``.

    It is to a viewer what `normalised` is to material: both err on the side of showing less.
    """
    known = audience == STAFF or (isinstance(audience, str) and bool(members(audience)))
    if known:
        return normalised(audience)
    return PUBLIC


def visible(audience: str, viewer: str) -> bool:
    """Whether material of one audience may be shown in a turn, prompt or search for another.

    True if everyone in `viewer` was already in `audience`. Staff see everything; a circle of
    nobody sees what is public.
    """
    if audience == PUBLIC or viewer == STAFF:
        return True
    return frozenset() < members(viewer) <= members(audience)


class Views:
    """The tokens that each viewer sees, kept up as messages are added.

    Adding to an audience costs the same however many circles there are that share nobody with it.
    """

    def __init__(self, tally: Mapping[str, int] | None = None) -> None:
        self.tally: dict[str, int] = {}  # tokens by audience
        self._private: dict[str, int] = {}  # of a circle, the private tokens that it sees
        self._circles: dict[str, list[str]] = {}  # the circles of each person
        self._widest = 0
        for audience, tokens in (tally or {}).items():
            self.add(audience, tokens)

    @property
    def widest(self) -> int:
        """The largest sum that any one viewer but staff sees."""
        return self.tally.get(PUBLIC, 0) + self._widest

    def add(self, audience: str, tokens: int) -> None:
        """Add tokens, not fewer than 0, of one audience."""
        people = members(audience)
        self.tally[audience] = self.tally.get(audience, 0) + tokens
        if not people:
            return
        if audience not in self._private:
            few = min((self._circles.setdefault(each, []) for each in people), key=len)
            seen = (self.tally[circle] for circle in few if people <= members(circle))
            self._private[audience] = sum(seen)
            for each in people:
                self._circles[each].append(audience)
        viewers = {c for each in people for c in self._circles[each] if members(c) <= people}
        for viewer in viewers:
            self._private[viewer] += tokens
            self._widest = max(self._widest, self._private[viewer])
