"""What a character card says of somebody, in any version, made fit for an assistant.

A card was written by a stranger, for another program. Its persona, greetings and examples are used;
macros are filled in once, what looks like a part of our prompt loses its brackets. Its orders to
models (`system_prompt`, `post_history_instructions`) are kept for an export and never used.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.cards import books
from evennia_ai.cards.cleaning import GREETED, Cleaner, as_name, storable, whoever
from evennia_ai.cards.container import READ, Contents
from evennia_ai.errors import Refusal

PERSONA_CHARS, EXAMPLES_CHARS = 8_000, 4_000
GREETINGS, GREETING_CHARS = 10, 2_000
# Room that personality and scenario have beside a long description.
REST_CHARS = 2_000
_GREETINGS = ("first_mes", "alternate_greetings", "group_only_greetings")
_PERSONA = ("description", "personality", "scenario")
_LISTS = ("tags", *_GREETINGS[1:])
USED = ("name", "nickname", *_PERSONA, *_GREETINGS, "mes_example", "character_book")
SHOWN = ("creator", "character_version", "tags", "creator_notes")
NOT_OBEYED = ("system_prompt", "post_history_instructions")
KEPT = (*NOT_OBEYED, "assets", "source", "creation_date", "modification_date", "extensions")
KNOWN = (*USED, *SHOWN, *KEPT)
_OLDER = {
    "char_name": "name",
    "char_persona": "description",
    "char_greeting": "first_mes",
    "context": "description",
    "greeting": "first_mes",
    "example_dialogue": "mes_example",
    "world_scenario": "scenario",
}
_QUOTES = re.compile(r'["“”„«»「」『』]')
# What stands in quotation marks, up to the end where the last is missing.
_SPOKEN = re.compile(
    r'("[^"]*(?:"|\Z)|[“”„][^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)|»[^«]*(?:«|\Z)'
    r"|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z))"
)


@dataclass(frozen=True, slots=True)
class Card:
    """What a card says, as options of an assistant."""

    name: str
    is_mended: bool = False  # whether the card's name had to be changed to be one
    persona: str = ""
    examples: str = ""
    greetings: tuple[str, ...] = ()  # what it says to who arrives; poses stand between asterisks
    lore: books.Book | None = None  # the lorebook in it, None if there is none with a usable fact
    # Which fields are used, who made it, what was mended, changed, cut or left out.
    notes: tuple[str, ...] = ()
    original: Any = None  # the card as it came


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
        lower = lower if _OLDER.get(lower, "") in inner else _OLDER.get(lower, lower)
        if lower not in ("spec", "spec_version", "data"):
            fields[lower if lower in KNOWN else str(name)] = each
    if not fields.keys() & {"name", *_PERSONA, "first_mes"}:
        what = "this is no character card: it has neither a name nor a description"
        raise Refusal("this is a lorebook, no card" if books.is_book(value) else f"{what}. {READ}")
    return fields


def read_card(value: Any, name: str = "") -> Card:
    """A card as it can be used, of the JSON value of its file; `name` counts instead of its own."""
    fields, notes = fields_of(value), list[str]()
    texts = {field: _texts(field, fields.get(field), notes) for field in (*USED[:-1], *SHOWN)}
    own, nickname = "".join(texts["name"]), "".join(texts["nickname"])
    called = as_name(name or own)
    if not called:
        raise Refusal("the card has no name; add `= <name>`")
    is_mended = not name and called != own.strip()
    notes += [f"the name was mended to `{called}`"] if is_mended else []
    version = str(value.get("spec_version"))[:20]
    if re.fullmatch(r"(?:[4-9]|[1-9]\d)(?:\.\d+)?", version):
        notes.append(f"version {version} is read as version 3")
    cleaner = Cleaner(as_name(nickname) or called)

    told = " ".join(text for field in (*_PERSONA, "first_mes") for text in texts[field])
    usual = whoever(told)

    def clean(field: str, text: str, most: int, user: str = usual) -> str:
        text, left = cleaner.clean(re.sub("<START>", "\n", text, flags=re.I), most, user)
        hint = "; put facts into lore" if field in _PERSONA else ""
        cut = f"{field}: {most:,} characters used, {left:,} left out{hint}"
        notes.extend([cut] if left else [])
        return text

    description, *others = ("".join(texts[field]) for field in _PERSONA)
    most = max(REST_CHARS, PERSONA_CHARS - len(description)) // 2 - 2
    rest = [clean(*pair, most) for pair in zip(_PERSONA[1:], others, strict=True)]
    room = PERSONA_CHARS - sum(len(text) + 2 for text in rest if text)
    persona = "\n\n".join(filter(None, (clean("description", description, room), *rest)))
    said = [text for field in _GREETINGS for text in texts[field] if text]
    if len(said) > GREETINGS:
        notes.append(f"{len(said) - GREETINGS} greetings beyond {GREETINGS} left out")
    said = [
        clean(f"greeting {number}", text, GREETING_CHARS, GREETED)
        for number, text in enumerate(said[:GREETINGS], 1)
    ]
    greetings = tuple(dict.fromkeys(filter(None, said)))
    examples = clean("mes_example", "".join(texts["mes_example"]), EXAMPLES_CHARS)
    lore, book_notes = None, list[str]()
    if book := fields.get("character_book"):
        try:
            lore, book_notes = books.read_book(book, called)
        except Refusal as error:
            book_notes = [str(error)]
    filled = [field for field, each in fields.items() if each not in (None, "", [], {})]
    left = [field for field in filled if field not in (*USED, *SHOWN)]
    lines = [f"Used: {', '.join(field for field in filled if field in USED)}."]
    lines += [f"Kept for exports, not used: {', '.join(left)}."] if left else []
    for field in SHOWN:
        line = " ".join(", ".join(map(str.strip, texts[field])).split())[:GREETING_CHARS]
        lines += [f"{field}: {line}"] if line else []
    lines += [*notes, *(f"{field}: kept, not used" for field in NOT_OBEYED if field in filled)]
    lines += [*cleaner.notes(), *(f"Lorebook: {note}" for note in book_notes)]
    lore = lore if lore and lore.facts else None
    return Card(called, is_mended, persona, examples, greetings, lore, tuple(lines), value)


def _texts(field: str, value: Any, notes: list[str]) -> list[str]:
    """The texts of a field of any type; notes say what had to be changed for it."""
    is_list, is_text = field in _LISTS, isinstance(value, str)
    if is_list and isinstance(value, list):
        return [storable(each) for each in value if isinstance(each, str)]
    if value in (None, "") or (is_text and not is_list):
        return [storable(value or "")]
    texts, instead = list[str](), "not used"
    if field == "tags" and is_text:
        texts, instead = value.split(","), "split at its commas"
    elif is_text and not value.strip().isdigit():
        texts, instead = [value], "read as one greeting"
    elif not is_list and isinstance(value, int | float) and not isinstance(value, bool):
        texts, instead = [str(value)], "read as text"
    wanted = "list" if is_list else "text"
    notes.append(f"{field}: a value of type {type(value).__name__}, not a {wanted}: {instead}")
    return list(map(storable, texts))


def report(contents: Contents, name: str = "") -> list[str]:
    """What a file holds and what becomes of it, in lines; raises `Refusal` for other files."""
    value = contents.value
    if books.is_book(value):
        return ["A lorebook.", *books.read_book(value)[1]]
    card = read_card(value, name)
    lines = [f"A card of {card.name}, from a {contents.form.upper()} file."]
    lines += contents.notes + card.notes
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
        line = " ".join((_QUOTES.sub("", part) if is_spoken else part).split())
        if not is_spoken:
            line = re.sub(rf"^(?:{re.escape(own)}|[Ss]?[Hh]e|They|I)\s+", "", line)
        if any(map(str.isalnum, line)):
            result.append((is_spoken, line))
    return result


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
    if card.lore != came.lore:
        data.pop("character_book", None)
        if card.lore:
            name = "" if came.lore else card.name  # the original's stays
            data["character_book"] = books.exported(replace(card.lore, name=name))
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
