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
    return _PRIVATE + "+".join(members) if members else STAFF


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
    return normalised(audience) if known else PUBLIC


def visible(audience: str, viewer: str) -> bool:
    """Whether material of one audience may be shown in a turn, prompt or search for another.

    True if everyone in `viewer` was already in `audience`. Staff see everything; a circle of
    nobody sees what is public.
    """
    if audience == PUBLIC or viewer == STAFF:
        return True
    return frozenset() < members(viewer) <= members(audience)


def widest_of(tally: Mapping[str, int]) -> int:
    """The largest sum any one viewer sees, from tokens by audience."""
    viewers = [PUBLIC, *(audience for audience in tally if is_private(audience))]
    return max(
        sum(tokens for owner, tokens in tally.items() if visible(owner, viewer))
        for viewer in viewers
    )
