"""What a character card says of somebody, in any version, made fit for an assistant.

A card was written by a stranger, for another program. Its persona, greetings and examples are used;
macros are filled in once, what looks like a part of our prompt loses its brackets. Its orders to
models (`system_prompt`, `post_history_instructions`) are kept for an export and never used.
"""

import re
from collections.abc import Iterator, Mapping
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


def _named(value: Any) -> dict[str, tuple[str, Any]]:
    """Names and values of a JSON object, by the names in lower case."""
    if not isinstance(value, dict):
        return {}
    return {str(name).lower(): (str(name), each) for name, each in value.items()}


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a card of any version by their names in version 3; raises `Refusal`."""
    outer = _named(value)
    for name in ("card", "character"):
        _, each = outer.get(name, ("", None))
        if isinstance(each, dict):
            return fields_of(each)
    inner = _named(outer.pop("data", ("", None))[1])
    named = inner
    if inner.keys().isdisjoint((*KNOWN, *_OLDER)):
        named = {**outer, **inner}
    fields = {}
    for lower, (name, each) in named.items():
        newer = _OLDER.get(lower, lower)
        if newer in KNOWN and (newer == lower or newer not in inner):
            fields[newer] = each
        elif lower not in ("spec", "spec_version"):
            fields[name] = each
    if fields.keys() & {"name", *_PERSONA, "first_mes"}:
        return fields
    if books.is_book(value):
        raise Refusal("this is a lorebook, no card")
    raise Refusal(f"this is no character card: it has neither a name nor a description. {READ}")


def read_card(value: Any, name: str = "") -> Card:
    """A card as it can be used, of the JSON value of its file; `name` counts instead of its own."""
    fields, notes = fields_of(value), list[str]()
    texts = {field: _texts(field, fields.get(field), notes) for field in (*USED[:-1], *SHOWN)}
    whole = {field: "".join(each) for field, each in texts.items()}
    called = as_name(name or whole["name"])
    if not called:
        raise Refusal("the card has no name; add `= <name>`")
    is_mended = not name and called != whole["name"].strip()
    if is_mended:
        notes.append(f"the name was mended to `{called}`")
    version = str(value.get("spec_version"))[:20]
    if re.fullmatch(r"(?:[4-9]|[1-9]\d)(?:\.\d+)?", version):
        notes.append(f"version {version} is read as version 3")
    cleaner = Cleaner(as_name(whole["nickname"]) or called)
    speaks_with = whoever(" ".join(whole[field] for field in (*_PERSONA, "first_mes")))

    def clean(field: str, text: str, most: int, user: str = speaks_with) -> str:
        text, left = cleaner.clean(re.sub("<START>", "\n", text, flags=re.I), most, user)
        if left:
            note = f"{field}: {most:,} characters used, {left:,} left out"
            if field in _PERSONA:
                note += "; put facts into lore"
            notes.append(note)
        return text

    first, *others = _PERSONA
    most = max(REST_CHARS, PERSONA_CHARS - len(whole[first])) // 2 - 2
    rest = [clean(field, whole[field], most) for field in others]
    room = PERSONA_CHARS - sum(len(text) + 2 for text in rest if text)
    persona = "\n\n".join(filter(None, (clean(first, whole[first], room), *rest)))
    said = [text for field in _GREETINGS for text in texts[field] if text]
    if len(said) > GREETINGS:
        notes.append(f"{len(said) - GREETINGS} greetings beyond {GREETINGS} left out")
    greetings = dict[str, None]()
    for number, text in enumerate(said[:GREETINGS], 1):
        if greeting := clean(f"greeting {number}", text, GREETING_CHARS, GREETED):
            greetings.setdefault(greeting)
    examples = clean("mes_example", whole["mes_example"], EXAMPLES_CHARS)
    notes += cleaner.notes()
    lore = _lore(fields.get("character_book"), called, notes)
    lines = (*_used(fields, texts), *notes)
    return Card(called, is_mended, persona, examples, tuple(greetings), lore, lines, value)


def _lore(raw: Any, char: str, notes: list[str]) -> books.Book | None:
    """The lorebook in a card of somebody, None if there is none with a usable fact."""
    if not raw:
        return None
    try:
        book, book_notes = books.read_book(raw, char)
    except Refusal as error:
        notes.append(f"Lorebook: {error}")
        return None
    notes += [f"Lorebook: {note}" for note in book_notes]
    if not book.facts:
        return None
    return book


def _used(fields: Mapping[str, Any], texts: Mapping[str, list[str]]) -> Iterator[str]:
    """Which fields of a card are used, which are kept, and who made it."""
    filled = [field for field, each in fields.items() if each not in (None, "", [], {})]
    yield f"Used: {', '.join(field for field in filled if field in USED)}."
    if left := [field for field in filled if field not in (*USED, *SHOWN)]:
        yield f"Kept for exports, not used: {', '.join(left)}."
    for field in SHOWN:
        if line := " ".join(", ".join(map(str.strip, texts[field])).split()):
            yield f"{field}: {line[:GREETING_CHARS]}"
    yield from (f"{field}: kept, not used" for field in NOT_OBEYED if field in filled)


def _texts(field: str, value: Any, notes: list[str]) -> list[str]:
    """The texts of a field; notes say what had to be changed for a value of another type."""
    if value in (None, ""):
        return [""]
    kind, texts, instead = "text", list[Any](), "not used"
    if field in _LISTS:
        kind = "list"
    match kind, value:
        case "text", str():
            return [storable(value)]
        case "list", list():
            return [storable(each) for each in value if isinstance(each, str)]
        case "text", int() | float() if not isinstance(value, bool):
            texts, instead = [str(value)], "read as text"
        case "list", str() if field == "tags":
            texts, instead = value.split(","), "split at its commas"
        case "list", str() if not value.strip().isdigit():
            texts, instead = [value], "read as one greeting"
    notes.append(f"{field}: a value of type {type(value).__name__}, not a {kind}: {instead}")
    return list(map(storable, texts))


def report(contents: Contents, name: str = "") -> list[str]:
    """What a file holds and what becomes of it, in lines; raises `Refusal` for other files."""
    value = contents.value
    if books.is_book(value):
        return ["A lorebook.", *books.read_book(value)[1]]
    card = read_card(value, name)
    lines = [f"A card of {card.name}, from a {contents.form.upper()} file."]
    lines += contents.notes + card.notes
    if card.persona:
        lines += ["Persona:", card.persona]
    lines += [f"Greeting: {greeting}" for greeting in card.greetings]
    if card.examples:
        lines += ["Examples:", card.examples]
    return lines


def acts(greeting: str, greeted: str, own: str) -> list[tuple[bool, str]]:
    """A greeting as acts in order: whether it is spoken (else posed), and the text.

    Poses stand between asterisks; without any, what is not in quotes is one. They do not begin
    with the name of who greets (`own`) again.
    """
    text, result = greeting.replace(GREETED, greeted), list[tuple[bool, str]]()
    has_poses, parts = "*" in text, _SPOKEN.split(text)
    if has_poses:
        parts = re.split(r"\*+", text)
    for place, part in enumerate(parts):
        is_spoken = place % 2 != has_poses or len(parts) == 1
        if is_spoken:
            part = _QUOTES.sub("", part)
        line = " ".join(part.split())
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
    came, data = Card(""), dict(_EMPTY)
    if original is not None:
        came = read_card(original, card.name)
        data |= fields_of(original)
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
            name = card.name
            if came.lore:
                name = ""  # the original's stays
            data["character_book"] = books.exported(replace(card.lore, name=name))
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
