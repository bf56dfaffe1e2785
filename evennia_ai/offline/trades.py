"""Whether a trade is told of somebody, or only stands in what is told.

`Pell is a cooper`, `the cooper Pell`, `a cooper by trade` and `being a cooper pays my bills` say
what somebody is; `an old pedlar sold me a lantern` and `I live above the chandler's` do not.
"""

from collections.abc import Sequence

from evennia_ai.offline import lexicon
from evennia_ai.offline.words import Word

_NEAR = 5  # words between what links and the trade


def tells_trade(found: Sequence[Word]) -> bool:
    """Whether a clause says of somebody what they are by trade."""
    return any("@trade" in word.concepts and is_said_of_one(found, word) for word in found)


def is_said_of_one(found: Sequence[Word], word: Word) -> bool:
    """Whether a clause's noun is said of one whom the clause is about.

    Args:
        found: The words of the clause.
        word: One of them.
    """
    at = next((i for i, other in enumerate(found) if other is word), -1)
    if at < 0 or word.owner:
        return False
    return _is_beside_name(found, at) or _is_linked(found, at) or _links(found, at)


def _is_beside_name(found: Sequence[Word], at: int) -> bool:
    """Whether a name stands beside it: `the cooper Pell`, `Pell, the cooper`; or `by trade`."""
    after = [w.lower for w in found[at + 1 : at + 3]]
    if after[:1] in (["called"], ["named"]) or after == ["by", "trade"]:
        return True
    if any(_is_named(w) and not w.owner for w in found[at + 1 : at + 2]):
        return True
    lead = found[max(0, at - 2) : at]
    if len(lead) < 2 or lead[1].lower not in _ARTICLES:
        return False
    return _is_named(lead[0]) and not lead[0].owner


def _is_named(word: Word) -> bool:
    return bool(word.name) and not word.pronoun


def _is_linked(found: Sequence[Word], at: int) -> bool:
    """Whether `is`, `became`, `as` or the like leads to it, with no other thing between."""
    for word in reversed(found[max(0, at - _NEAR) : at]):
        if word.lower in _LINKING:
            return True
        if word.lower in _PREPOSITIONS or word.name and not word.owner:
            return False
    return False


def _links(found: Sequence[Word], at: int) -> bool:
    """Whether it begins what is said: `the baker has always been Pell`, `some smith I am`."""
    if any(word.lower in _PREPOSITIONS for word in found[max(0, at - 2) : at]):
        return False
    for word in found[at + 1 : at + _NEAR]:
        if word.lower in _BE:
            return True
        if word.lower not in _BETWEEN and not word.name:
            return False
    return False


_ARTICLES = lexicon.word_set("a an the")
_BE = lexicon.word_set("is am are was were be been")
_LINKING = _BE | lexicon.word_set("being as become became becomes turned")
_PREPOSITIONS = lexicon.word_set(
    "above below over under behind beside near opposite at to from with by for of in on like "
    "than against after before until without between past"
)
_BETWEEN = lexicon.word_set("has have had always once also now still here not never ever who")
