"""What a character card says of somebody, in any version, made fit for an assistant.

A card was written by a stranger, for another program. Its persona, greetings and examples are used;
macros are filled in once, what looks like a part of our prompt loses its brackets. Its orders to
models (`system_prompt`, `post_history_instructions`) are kept for an export and never used.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from evennia_ai.cards.books import Book, read_book
from evennia_ai.cards.cleaning import GREETED, USER, Cleaner, as_name, storable
from evennia_ai.cards.container import Contents
from evennia_ai.errors import Refusal

PERSONA_CHARS, EXAMPLES_CHARS = 8_000, 4_000
GREETINGS, GREETING_CHARS = 10, 2_000
# Room that personality and scenario have beside a long description.
REST_CHARS = 2_000
_GREETINGS = ("first_mes", "alternate_greetings", "group_only_greetings")
_PERSONA = ("description", "personality", "scenario")
USED = ("name", "nickname", *_PERSONA, *_GREETINGS, "mes_example", "character_book")
SHOWN = ("creator", "character_version", "tags", "creator_notes")
NOT_OBEYED = ("system_prompt", "post_history_instructions")
KEPT = (*NOT_OBEYED, "assets", "source", "creation_date", "modification_date", "extensions")
KNOWN = (*USED, *SHOWN, *KEPT)
_OLDER = {
    "char_name": "name",
    "char_persona": "description",
    "char_greeting": "first_mes",
    "example_dialogue": "mes_example",
    "world_scenario": "scenario",
}
_SPOKEN = re.compile(r'["“”„«»]')


@dataclass(frozen=True, slots=True)
class Card:
    """What a card says, as options of an assistant.

    Args:
        is_mended: Whether the card's name had to be changed to be one.
        greetings: What it says to who arrives; poses stand between asterisks.
        book: The lorebook in it, as it came.
        lore: The same as it can be used; empty where there is none, or one that cannot be read.
        about: Who made it and for what, by field.
        taken: Fields that are used.
        left: Fields that are kept for an export, and not used.
        notes: What was mended, changed or cut.
        original: The card as it came.
    """

    name: str
    is_mended: bool = False
    persona: str = ""
    examples: str = ""
    greetings: tuple[str, ...] = ()
    book: Any = None
    lore: Book = Book("")
    about: Mapping[str, str] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    original: Any = None

    def used(self) -> list[str]:
        """Which fields are used and which are not, in lines."""
        left = [f"Kept for exports, not used: {', '.join(self.left)}."] if self.left else []
        return [f"Used: {', '.join(self.taken)}.", *left]


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a card of any version by their names in version 3; raises `Refusal`."""
    outer = value if isinstance(value, dict) else {}
    names = {str(name).lower(): name for name in outer}
    for name in ("card", "character"):
        if isinstance(outer.get(names.get(name)), dict):
            return fields_of(outer[names[name]])
    data = outer.get(names.get("data"))
    inner = data if isinstance(data, dict) else {}
    known = {name for name in inner if str(name).lower() in (*KNOWN, *_OLDER)}
    fields = {}
    for name, each in (*({} if known else outer).items(), *inner.items()):
        lower = str(name).lower()
        lower = _OLDER.get(lower, lower)
        if lower not in ("spec", "spec_version", "data"):
            fields[lower if lower in KNOWN else str(name)] = each
    if not fields.keys() & {"name", *_PERSONA, "first_mes"}:
        what = "this JSON is no character card: it has neither a name nor a description"
        raise Refusal("this is a lorebook, no card" if "entries" in fields else what)
    return fields


def read_card(value: Any, name: str = "") -> Card:
    """A card as it can be used, of the JSON value of its file; `name` counts instead of its own."""
    reader = _Reader(fields_of(value))
    own, nickname = reader.text("name"), reader.text("nickname")
    called = as_name(name or own)
    if not called:
        raise Refusal("the card has no name; add `= <name>`")
    is_mended = not name and called != own.strip()
    reader.notes += [f"the name was mended to `{called}`"] if is_mended else []
    try:
        version = float(value.get("spec_version") or 0)
    except (TypeError, ValueError, OverflowError):
        version = 0
    reader.notes += [f"version {version:g} is read as version 3"] if version >= 4 else []
    cleaner = reader.cleaner = Cleaner(as_name(nickname) or called)
    filled = [name for name, each in reader.fields.items() if each not in (None, "", [], {})]
    persona, greetings = reader.persona(), reader.greetings()
    examples = reader.filled("mes_example", EXAMPLES_CHARS)
    about = {name: text for name in SHOWN if (text := reader.shown(name))}
    book = reader.fields.get("character_book") or None
    try:
        lore = read_book(book, called) if book else Book("")
    except Refusal as error:
        lore = Book("", notes=(str(error),))
    obeyed = [f"{name}: kept, not used" for name in NOT_OBEYED if name in filled]
    return Card(
        called,
        is_mended,
        persona,
        examples,
        greetings,
        book,
        lore,
        about,
        tuple(name for name in filled if name in USED),
        tuple(name for name in filled if name not in (*USED, *SHOWN)),
        (*dict.fromkeys(reader.notes), *obeyed, *cleaner.notes()),
        value,
    )


class _Reader:
    """Reads fields of any type as texts, and notes what had to be changed for it."""

    def __init__(self, fields: dict[str, Any]):
        self.fields, self.cleaner = fields, Cleaner("")
        self.notes: list[str] = []

    def text(self, name: str) -> str:
        """A field as a text; empty for what cannot be one."""
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return storable(value or "")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        self._wrong(name, "text", "read as text" if is_number else "not used")
        return str(value) if is_number else ""

    def _wrong(self, name: str, wanted: str, instead: str) -> None:
        kind = type(self.fields[name]).__name__
        self.notes.append(f"{name}: a value of type {kind}, not a {wanted}: {instead}")

    def shown(self, name: str) -> str:
        """A field as one line that is shown and not used."""
        value = self.fields.get(name)
        if name == "tags" and isinstance(value, str):
            self._wrong(name, "list", "split at its commas")
            value = value.split(",")
        parts = [str(part).strip() for part in value] if isinstance(value, list) else []
        line = ", ".join(parts) if isinstance(value, list) else self.text(name)
        return " ".join(storable(line).split())[:GREETING_CHARS]

    def filled(self, name: str, most: int) -> str:
        """A field, cleaned, of at most `most` characters."""
        return self.clean(name, re.sub("<START>", "\n", self.text(name), flags=re.I), most)

    def clean(self, name: str, text: str, most: int, user: str = USER) -> str:
        """A text of a field, cleaned, of at most `most` characters."""
        text, left = self.cleaner.clean(text, most, user)
        if left:
            hint = "; put facts into lore" if name in _PERSONA else ""
            self.notes.append(f"{name}: {most:,} characters used, {left:,} left out{hint}")
        return text

    def persona(self) -> str:
        """Description, personality and scenario, in what room a persona has."""
        spare = PERSONA_CHARS - len(self.text("description"))
        rest = [self.filled(name, max(REST_CHARS, spare) // 2 - 2) for name in _PERSONA[1:]]
        room = PERSONA_CHARS - sum(len(text) + 2 for text in rest if text)
        return "\n\n".join(filter(None, (self.filled("description", room), *rest)))

    def greetings(self) -> tuple[str, ...]:
        """All greetings, each once."""
        texts = [self.text("first_mes")]
        for name in _GREETINGS[1:]:
            value = self.fields.get(name)
            if value and not isinstance(value, list):
                is_text = isinstance(value, str) and not value.strip().isdigit()
                self._wrong(name, "list", "read as one greeting" if is_text else "not used")
                value = [value] if is_text else []
            values: list[Any] = value or []
            texts += [each for each in values if isinstance(each, str)]
        if len(texts) > GREETINGS:
            self.notes.append(f"{len(texts) - GREETINGS} greetings beyond {GREETINGS} left out")
        greetings = (
            self.clean("greeting", text, GREETING_CHARS, GREETED) for text in texts[:GREETINGS]
        )
        return tuple(dict.fromkeys(filter(None, greetings)))


def report(contents: Contents, name: str = "") -> list[str]:
    """What a file holds and what becomes of it, in lines; raises `Refusal` for other files."""
    value = contents.value
    if isinstance(value, dict) and "entries" in value:
        return ["A lorebook.", *read_book(value).notes]
    card = read_card(value, name)
    lines = [f"A card of {card.name}, from a {contents.form.upper()} file.", *card.used()]
    lines += [f"{field}: {text}" for field, text in card.about.items()]
    lines += contents.notes + card.notes
    lines += [f"Lorebook: {note}" for note in card.lore.notes]
    lines += ["Persona:", card.persona] if card.persona else []
    lines += [f"Greeting: {greeting}" for greeting in card.greetings]
    return lines + (["Examples:", card.examples] if card.examples else [])


def acts(greeting: str, greeted: str, own: str) -> list[tuple[bool, str]]:
    """A greeting as acts in order: whether it is spoken (else posed), and the text.

    Poses stand between asterisks; without any, what is not in quotes is one. They do not begin
    with the name of who greets (`own`) again.
    """
    text = greeting.replace(GREETED, greeted)
    has_poses = "*" in text
    parts = (re.compile(r"\*+") if has_poses else _SPOKEN).split(text)
    result = []
    for place, part in enumerate(parts):
        is_spoken = place % 2 != has_poses or len(parts) == 1
        line = " ".join((_SPOKEN.sub("", part) if is_spoken else part).split())
        if not is_spoken:
            line = re.sub(rf"^(?:{re.escape(own)}|[Ss]?[Hh]e|They|I)\s+", "", line)
        if any(map(str.isalnum, line)):
            result.append((is_spoken, line))
    return result


@lru_cache(maxsize=200)
def spoken_lines(examples: str, own: str) -> tuple[str, ...]:
    """What `own` says in examples of how they talk, without names and poses."""
    lines = (line.strip().removeprefix(f"{own}:") for line in examples.splitlines())
    return tuple(text for line in lines for is_spoken, text in acts(line, "", own) if is_spoken)


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("name", *_PERSONA, "first_mes", "mes_example", *NOT_OBEYED, *SHOWN), ""),
    **{"tags": [], "alternate_greetings": [], "group_only_greetings": [], "extensions": {}},
}


def exported(card: Card) -> dict[str, Any]:
    """A card of version 3: the original, with the values of `card` where they are others now."""
    original = card.original
    came = Card("") if original is None else read_card(original, card.name)
    data = {**_EMPTY, **({} if original is None else fields_of(original))}
    if as_name(str(data["name"])) != card.name:
        data["name"] = card.name
    if card.persona != came.persona:
        data |= {"description": card.persona, "personality": "", "scenario": ""}
    if card.examples != came.examples:
        data["mes_example"] = card.examples
    if card.greetings != came.greetings:
        first, *others = (text.replace(GREETED, "{{user}}") for text in card.greetings or ("",))
        data |= {"first_mes": first, "alternate_greetings": others, "group_only_greetings": []}
    data["character_book"] = card.book
    if card.book is None:
        del data["character_book"]
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
