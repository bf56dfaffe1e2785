"""Numbers in a text, in digits and in words, and their values.

All patterns are linear: texts come from players.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import regex

from evennia_ai.language.script import BEFORE, BEHIND, folded, with_digits
from evennia_ai.language.tables import table_of, tables

# What parts thousands, where the table does not say.
_THOUSANDS = ",.'\u00a0\u202f "
# Letters that keep a number one word: 17:30 becomes 17c30.
_MARKS = str.maketrans(":./-", "cpfd")
_NUMBER_WORDS = 8
_TEN, _MYRIAD = 10, 10_000


class _Spelled:
    """The number words of a language."""

    def __init__(self, code: str):
        table = tables()[code]

        def forms(key: str) -> list[list[str]]:
            # Each form of a number, as it stands and as it is compared.
            rows = (row.split("|") for row in table.get("lists", key).split())
            before = ["", *table.get("lists", "proclitics").split()]
            return [[p + f for p in before for f in (*row, *map(folded, row))] for row in rows]

        named = [
            *enumerate(forms("cardinals")),
            *((10 * n, w) for n, w in enumerate(forms("tens"), 2)),
        ]
        named += zip((100, 1000, 1_000_000), forms("large"), strict=False)
        self.values = {word: value for value, row in named for word in row}
        if joint := table.get("lists", "unit_before_ten"):  # `fünfundzwanzig`
            ones, tens = named[1:_TEN], [each for each in named if each[0] in range(20, 100, 10)]
            self.values |= {
                f"{one}{joint}{ten}": unit + value
                for unit, row in ones
                for value, others in tens
                for one in row
                for ten in others
            }
        self.places = {word: n for n, row in enumerate(forms("ordinals"), 1) for word in row}
        # What is as often no number: "no one", "wait a second", "at first".
        self.vague = table.words("vague")
        values, places = _any_of(self.values), _any_of(self.places)
        joints = [each.rpartition(" ") for each in table.get("lists", "joints").split("|")]
        self.joints = {joint for _, _, joint in joints}
        joined = "".join(rf"|(?<={before}) {joint} " for before, _, joint in joints if before)
        self.pattern = regex.compile(
            rf"(?:{values})(?:(?:[ -]{joined})"
            rf"(?:{values})){{0,{_NUMBER_WORDS - 1}}}\b|(?:{places})\b"
        )
        rows = (row.partition(":") for row in table.get("lists", "signs").split())
        self.signs = {sign: int(value) for value, _, row in rows for sign in row.split("|")}
        sign = self.sign = "|".join(sorted(self.signs, key=len, reverse=True))
        powers = "|".join(each for each, value in self.signs.items() if value >= _TEN)
        counters = "|".join(table.get("lists", "counters").split())
        # Several signs with a power among them, or any before what is counted.
        several = (
            rf"(?:{sign}){{0,20}}(?:{powers})(?:{sign}){{1,20}}|(?:{sign}){{1,20}}(?:{powers})"
        )
        counted = rf"(?:{sign}){{1,20}}(?= ?(?:{counters}))"
        self.runs = regex.compile(rf"{several}|{counted}" if sign else "(?!)")

    def value(self, match: regex.Match[str]) -> str:
        """The values of number words: ``two hundred and five`` is one, ``two three`` are two."""
        if match[0] in self.places:
            return f" {self.places[match[0]]}th "
        parts = regex.split("[ -]", match[0])
        values = [self.values[word] for word in parts if word not in self.joints]
        return f" {' '.join(map(str, _sums(values)))} "

    def run_value(self, match: regex.Match[str]) -> str:
        """The value of signs in a row: ``三百四十`` is 340."""
        total = section = number = last = 0
        for sign in regex.findall(self.sign, match[0]):
            value = self.signs[sign]
            if value < _TEN:
                number = number * _TEN + value if last < _TEN else value
            elif value < _MYRIAD:
                section, number = section + (number or 1) * value, 0
            else:
                total, section, number = total + (section + number or 1) * value, 0, 0
            last = value
        return f" {total + section + number} "


_spelled = cache(_Spelled)


@cache
def _digits(code: str) -> regex.Pattern[str]:
    table = tables()[code]
    group = f"[{table.data.get('thousands', _THOUSANDS)}]"
    ordinal = "|".join(table.get("lists", "ordinal_endings").split()) or "(?!)"
    return regex.compile(
        rf"(?=[0-9]){BEFORE}(?<![.])(?:([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?"
        rf"|[0-9]{{1,3}}({group})[0-9]{{3}}(?:\2[0-9]{{3}})*(?![0-9])(?:\.[0-9]{{1,9}})?|[0-9]{{1,9}}/[0-9]{{1,9}}"
        rf"|[0-9]{{1,20}}(?:\.[0-9]{{1,9}})?)(?:({ordinal})|%|[a-z]{{1,3}})?){BEHIND}",
        regex.V1,
    )


def _any_of(words: Iterable[str]) -> str:
    """A pattern for one of some words, at the start of a word."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(rf"{word[0]}(?<!\w{word[0]}){word[1:]}" for word in longest_first) or "(?!)"


def numbers_in(text: str) -> dict[str, int]:
    """The numbers of a text in lower case and where each first stands, without vague ones."""
    table = table_of(text)
    spelled, lower = _spelled(table.code), with_digits(text.lower())
    places: dict[str, int] = {}
    for pattern in (_digits(table.code), spelled.pattern, spelled.runs):
        for match in pattern.finditer(lower):
            is_counted = pattern is spelled.runs and not pattern.fullmatch(match[0])
            # A sign is a number only before what it counts.
            number = spelled.run_value(match).strip() if is_counted else match[0]
            places.setdefault(number, match.start())
    return {number: at for number, at in places.items() if number not in spelled.vague}


def with_values(lower: str, code: str = "") -> str:
    """A text in lower case with each number as one word: ``three`` and ``3`` become the same.

    `code` is that of its language, where the text is too short to show it.
    """
    code = code or table_of(lower).code
    spelled, lower = _spelled(code), _digits(code).sub(_number, with_digits(lower))
    return str(spelled.runs.sub(spelled.run_value, spelled.pattern.sub(spelled.value, lower)))


def _number(match: regex.Match[str]) -> str:
    """A number as one word: ``1,200.50`` is ``1200p5``, ``05:30`` is ``5c30``."""
    digits = match[1]
    if match[2]:
        whole, _, rest = digits.rpartition(match[2])
        digits = whole.replace(match[2], "") + rest
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    if ":" in digits:
        digits = digits.removeprefix("0")
    return f" {digits.translate(_MARKS)}{'th' if match[3] else ''} "


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
