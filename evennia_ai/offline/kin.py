"""Who is whose relative: from ``Ann's daughter Eve`` follows that Eve's mother is Ann."""

import re
from collections.abc import Iterator, Mapping

_CHILD = ("son", "daughter", "child", "kid")
_PARENT = ("mother", "father", "parent", "mum", "dad")
_SIBLING = ("brother", "sister", "sibling", "twin")
_SPOUSE = ("husband", "wife", "spouse")
_NEXT = ("nephew", "niece")
_ELDER = ("uncle", "aunt")
_GRANDCHILD = ("grandson", "granddaughter", "grandchild")
_GRANDPARENT = ("grandmother", "grandfather", "grandparent", "gran", "grandma", "grandpa")
# For a relative, what the one at the other end is.
INVERSE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_CHILD, _PARENT),
    **dict.fromkeys(_PARENT, _CHILD),
    **dict.fromkeys(_SIBLING, _SIBLING),
    **dict.fromkeys(_SPOUSE, _SPOUSE),
    **dict.fromkeys(_NEXT, _ELDER),
    **dict.fromkeys(_ELDER, _NEXT),
    **dict.fromkeys(_GRANDCHILD, _GRANDPARENT),
    **dict.fromkeys(_GRANDPARENT, _GRANDCHILD),
    "cousin": ("cousin",),
}
_FEMALE = frozenset(
    ("mother", "mum", "daughter", "sister", "wife", "niece", "aunt", "granddaughter")
    + ("grandmother", "gran", "grandma")
)
_MALE = frozenset(
    ("father", "dad", "son", "brother", "husband", "nephew", "uncle", "grandson", "grandfather")
    + ("grandpa",)
)
# How most given names of women end in the languages of Europe: a guess, used for nothing else.
_WOMANS_NAME = re.compile(
    r"(?:[ai]|[^d]e|eth|ith|een|[aeiy]lyn|run|hild|ild|trin|rid|nes|del|rid|gny|ry)$"
)

Aliases = Mapping[tuple[str, str], set[str]]


def inverses(aliases: Aliases) -> dict[tuple[str, str], set[str]]:
    """The relatives that follow from known ones, by the (owner, kin) pairs that mean them.

    Whether Ann is Eve's mother or father is not said; her name decides, as a reader would.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for owner, name, kin in _pairs(aliases):
        for other in INVERSE.get(kin, ()):
            if _may_be(owner, other):
                found.setdefault((name, other), set()).add(owner)
    return found


def _pairs(aliases: Aliases) -> Iterator[tuple[str, str, str]]:
    for (owner, kin), names in aliases.items():
        for name in names:
            yield owner, name, kin


def _may_be(name: str, kin: str) -> bool:
    womans = bool(_WOMANS_NAME.search(name))
    return not (kin in _FEMALE and not womans) and not (kin in _MALE and womans)
