"""Numbers in a text, in digits and in words, and their values.

All patterns are linear: texts come from players.
"""

import re
from collections.abc import Iterable, Sequence

_CARDINALS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_VALUES = {
    **{word: value for value, word in enumerate(_CARDINALS.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), 2)},
    "hundred": 100,
    "thousand": 1000,
    "million": 1_000_000,
}
_PLACES = {word: value for value, word in enumerate(_ORDINALS.split(), 1)}
# What is as often no number: "no one", "wait a second", "at first".
_VAGUE = frozenset(["one", "zero", "first", "second"])

_DIGITS = re.compile(
    r"(?=[0-9])(?<![\w.])([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
    r"|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]{1,9})?|[0-9]{1,9}/[0-9]{1,9}"
    r"|[0-9]{1,20}(?:\.[0-9]{1,9})?)(?:(st|nd|rd|th)|%|[a-z]{1,3})?(?!\w)"
)


def _any_of(words: Iterable[str]) -> str:
    """A pattern for one of some words, at the start of a word."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(rf"{word[0]}(?<!\w{word[0]}){word[1:]}" for word in longest_first)


# Letters that keep a number one word: 17:30 becomes 17c30.
_MARKS = str.maketrans(":./-", "cpfd")
_NUMBER_WORDS = 8
_SPELLED = re.compile(
    rf"(?:{_any_of(_VALUES)})(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )"
    rf"(?:{_any_of(_VALUES)})){{0,{_NUMBER_WORDS - 1}}}\b|(?:{_any_of(_PLACES)})\b"
)


def numbers_in(text: str) -> dict[str, int]:
    """The numbers of a text in lower case and where each first stands, without vague ones."""
    lower = text.lower()
    places: dict[str, int] = {}
    for pattern in (_DIGITS, _SPELLED):
        for match in pattern.finditer(lower):
            places.setdefault(match[0], match.start())
    return {number: at for number, at in places.items() if number not in _VAGUE}


def with_values(lower: str) -> str:
    """A text in lower case with each number as one word: ``three`` and ``3`` become the same."""
    return _SPELLED.sub(_spelled, _DIGITS.sub(_number, lower))


def _number(match: re.Match[str]) -> str:
    """A number as one word: ``1,200.50`` is ``1200p5``, ``05:30`` is ``5c30``."""
    digits = match[1].replace(",", "")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    if ":" in digits:
        digits = digits.removeprefix("0")
    return f" {digits.translate(_MARKS)}{'th' if match[2] else ''} "


def _spelled(match: re.Match[str]) -> str:
    """The values of number words: ``two hundred and five`` is one, ``two three`` are two."""
    if match[0] in _PLACES:
        return f" {_PLACES[match[0]]}th "
    values = [_VALUES[word] for word in re.split("[ -]", match[0]) if word != "and"]
    return f" {' '.join(map(str, _sums(values)))} "


def _sums(values: Sequence[int]) -> list[int]:
    """Numbers from the values of their words, as 2, 100, 5 make 205."""
    numbers: list[int] = []
    before, thousands = 0, 0
    for value in values:
        rest = numbers[-1] - thousands if numbers else 0
        if numbers and value >= 100 and rest < value:
            thousands = thousands + rest * value if value >= 1000 else thousands
            numbers[-1] = thousands + (0 if value >= 1000 else rest * value)
        elif numbers and (before >= 100 or (before >= 20 and 0 < value < 10)) and value < 100:
            numbers[-1] += value
        else:
            numbers, thousands = [*numbers, value], 0
        before = value
    return numbers
