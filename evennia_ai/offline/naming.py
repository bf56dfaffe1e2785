"""Tells names of places from names of people by the company they keep.

A capital alone does not say whether ``Karrow`` is a town or a man. What stands around it does:
``in Karrow``, ``the Karrow gate`` against ``my brother Karrow``, ``Karrow is``. Each such trace is
a vote; a name with more votes for a place than for a person is a place.
"""

import re
from collections import Counter
from collections.abc import Iterable, Set

from evennia_ai.offline import lexicon

_NAME = r"(?P<name>[A-Z][\w’'-]*[\w])"
_SITE = (
    "town|village|gate|market|creek|wood|woods|forest|tower|bay|street|alley|lane|row|road|"
    "harbou?r|bridge|fort|castle|inn|square|hill|abbey|docks?|fair|prison|city|ferry|mill"
)
_LEADS = "in|at|near|off|outside|around|through|beyond|leaving|left|reach|visit"
_MOVES = (
    "comes?|came|hails?|born|moved?|moving|returns?|(?<!pay )(?<!paid )(?<!give )(?<!gave )back|"
    "sails?|sailed|going|goes|go|went|road|"
    "walk|way|arrives?|travels?|rides?|merchant|ship|bound|over"
)
_KINDS = (
    "Mount|Lake|lake|Port|river|(?:battle|siege|town|village|city|mayor|lord|fort|market|tower|gates?|"
    "streets) of"
)
_TITLES = (
    "[Oo]ld|[Yy]oung|[Ll]ady|[Ll]ord|[Mm]aster|[Mm]istress|[Mm]r|[Mm]rs|[Cc]aptain|[Dd]octor|"
    "[Ss]ister|[Bb]rother|named|called|married|met|told|promised|gave|ask|asked|owes?|name is"
)
_DEEDS = "the [a-z]+|is|was|has|had|who|says|said|told|gave|lost|sold|made|[a-z]{3,}ed"
# What is left to somebody, and not behind: `left Ann that ring`.
_HEIRLOOM = r"(?= (?:that|his|her|their|all|everything)\b(?! (?:night|day|morning|year|winter)))"
_PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:{_LEADS}) {_NAME}\b(?!['’]s|{_HEIRLOOM})",
        rf"\b(?:{_MOVES}) (?:from|to|for|in) {_NAME}\b(?!['’]s| as )",
        rf"\b(?:from|to) {_NAME} (?:to|from) [A-Z]",
        rf"\bfrom [A-Z][\w’'-]* to {_NAME}\b",
        rf"\b(?:takes?|took|brings?|brought) (?:me|us|him|her|them|[A-Z]\w+) to {_NAME}\b(?!['’]s)",
        rf"\b(?:{_KINDS}) {_NAME}\b",
        rf"\b{_NAME} is where\b",
        rf"\b{_NAME} (?:is|was) the (?:birthplace|home ?town|destination)\b",
        rf"\b{_NAME} (?:native|born)\b",
        rf"\btry {_NAME}, (?:it|that)['’]?s where\b",
        rf"\b{_NAME} (?:{_SITE}|{_SITE.title()})\b",
    )
)
_PEOPLE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:{_TITLES}) {_NAME}\b",
        rf"\b(?:with|and|by) {_NAME}\b",
        rf"\bleft {_NAME}{_HEIRLOOM}",
        rf"\bwent to {_NAME} as\b",
        rf"\b{_NAME} (?:{_DEEDS})\b",
        rf"\b{_NAME}['’]s\b",
    )
)
_KIN_BEFORE = re.compile(rf"\b(?P<kin>[a-z-]+),? {_NAME}\b")


def named_kinds(texts: Iterable[str], people: Set[str]) -> dict[str, str]:
    """What the names in these texts name: ``@place`` or ``@someone`` by lower-case word.

    Args:
        texts: What was said.
        people: Lower-case names of those known to be people.
    """
    votes: Counter[str] = Counter()
    for text in texts:
        votes.update({name: count for name, count in _votes(text).items() if name not in people})
    kinds = {name: "@place" if count > 0 else "@someone" for name, count in votes.items() if count}
    kinds = {name: kind for name, kind in kinds.items() if not _is_time(name)}
    return {**kinds, **dict.fromkeys(people, "@someone")}


def _is_time(name: str) -> bool:
    """Whether a name is that of a day or a month: `in June` leads to no place."""
    return bool(lexicon.concepts(lexicon.fold(name)) & {"@day", "@month", "@season"})


def _votes(text: str) -> Counter[str]:
    """For each name of a text, the votes for a place less those for a person."""
    votes: Counter[str] = Counter()
    for pattern in _PLACES:
        votes.update(found["name"].lower() for found in pattern.finditer(text) for _ in "12")
    for pattern in _PEOPLE:
        votes.subtract(found["name"].removesuffix("'s").lower() for found in pattern.finditer(text))
    for found in _KIN_BEFORE.finditer(text):
        if lexicon.concepts(lexicon.fold(found["kin"])) & {"@kin", "@trade", "friend"}:
            votes.subtract([found["name"].lower()])
    return votes
