"""Cards in and out of a game: files in ``server/ai_cards``, and assistants made of them."""

import json
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from evennia import DefaultObject
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import conf, services
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.cards.books import Book, is_book
from evennia_ai.cards.books import exported as book_json
from evennia_ai.cards.card import Card, exported, read_card, report
from evennia_ai.cards.chats import READ, OldChat, read_chat
from evennia_ai.cards.container import FILE_BYTES, Contents, packed, read
from evennia_ai.errors import Refusal
from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, in_order, utc_iso
from evennia_ai.history.stored import as_dict, as_text
from evennia_ai.options import check_option
from evennia_ai.rag_memory.entities import unmet_id
from evennia_ai.staff.bodies import good_name, new_body
from evennia_ai.staff.configuration import Tuning
from evennia_ai.staff.lore import NOBODY, book_for, own_book, take_book

# Where a script keeps the card it was made from.
KEY, CATEGORY = "card", "ai_card"
CARD, LOREBOOK, CHAT = "card", "lorebook", "chat"
# Most files that a refusal lists.
FILES = 50
# Old lines that are stored in one write.
AT_ONCE = 200


def card_path(name: str) -> Path:
    """The file of a name in the folder of cards; of a path only the last part counts.

    `Refusal` for a name that leads elsewhere, or is none.
    """
    last = Path(name.strip()).name
    if not last or last.startswith(".") or re.search(r"[\\:\x00-\x1f]", last):
        raise Refusal(f"`{name.strip()}` is no name of a file in {conf.cards_dir()}")
    return conf.cards_dir() / last


def file_names() -> list[str]:
    """The files in the folder of cards."""
    return sorted(each.name for each in conf.cards_dir().glob("*"))


def file_data(name: str) -> "Deferred[bytes]":
    """Fires with what a file in the folder of cards holds."""
    path = card_path(name)

    def load() -> bytes:
        if not path.is_file():
            names = file_names()
            there = ", ".join(names[:FILES])
            if len(names) > FILES:
                there += f" and {len(names) - FILES} more"
            listed = f"There are: {there}." if names else "The folder is empty."
            raise Refusal(f"there is no file `{path.name}` in {path.parent}. {listed}")
        if path.stat().st_size > FILE_BYTES:
            raise Refusal(f"the file is larger than {FILE_BYTES:,} bytes")
        return path.read_bytes()

    return services.on_disk(load)


def card_contents(name: str) -> "Deferred[Contents]":
    """Fires with the JSON value of a file, read beside the reactor."""
    return file_data(name).addCallback(lambda data: services.on_disk(read, data))


def described(data: bytes, now: float, name: str = "") -> tuple[str, list[str]]:
    """What a file is, `CARD`, `LOREBOOK` or `CHAT`, and what it holds, in lines.

    Raises `Refusal` for other files; `name` counts instead of a card's own.
    """
    try:
        contents = read(data)
    except Refusal as error:
        try:
            chat = read_chat(data, now)
        except Refusal:
            raise Refusal(f"{error}; chats: {READ}") from None
        return CHAT, [f"An old chat: {chat.note}.", f"Lines by {chat.names}."]
    return LOREBOOK if is_book(contents.value) else CARD, report(contents, name)


def keep_file(name: str, data: bytes) -> "Deferred[Path]":
    """Write a new file into the folder of cards; fires with its path.

    It replaces none: where there is one of this name, a number stands behind its own.
    """
    path = card_path(name)

    def save() -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        free, number = path, 1
        while True:
            try:
                with free.open("xb") as file:
                    file.write(data)
                return free
            except FileExistsError:
                number += 1
                free = path.with_stem(f"{path.stem}-{number}")

    return services.on_disk(save)


def export_book(book: Book) -> "Deferred[Path]":
    """Write a book of lore into a new file in the folder of cards; fires with the file's path."""
    name, data = re.sub(r"[^\w-]+", "_", book.name), json.dumps(book_json(book), indent=1)
    return keep_file(f"{name}-lore.json", data.encode())


@inlineCallbacks
def usable_card(file: str, name: str) -> Steps[Card]:
    """Fires with a card that can be taken; a name that had to be mended must be confirmed."""
    contents = yield card_contents(file)
    card = yield services.on_disk(read_card, contents.value, name)
    if card.is_mended:
        raise Refusal(f"the name was mended to `{card.name}`: confirm with `= {card.name}`")
    options_of(card)
    return replace(card, notes=(*contents.notes, *card.notes))


def options_of(card: Card) -> dict[str, Any]:
    """The options that a card sets, in their stored form; raises `ConfigError`."""
    values: dict[str, Any] = {"examples": card.examples or None, "greetings": card.greetings}
    if card.persona:
        values["persona"] = card.persona
    return {name: check_option(name, value) for name, value in values.items()}


def take_card(script: AssistantScript, card: Card, file: str, by: str) -> list[str]:
    """Give an assistant what a card says, all of it or nothing; returns a report in lines."""
    notes = list[str]()
    with script.store.transaction():
        Tuning(script, by, is_admin=False).set(options_of(card))
        script.store.set(KEY, {"file": file, "json": json.dumps(card.original)}, CATEGORY)
        if card.lore:
            book = book_for(script.own_name, f"npc:{script.obj.stable_id}")
            _, notes = take_book(card.lore, book, file, is_of_card=True)
    script.log(f"{by} imports the card {file}")
    script.audit("card", act="import", file=file, by=by)
    lore = [f"Lorebook: {note}" for note in notes]
    return [f"{card.name} has the card {file}.", *card.notes, *lore]


def make_of_card(maker: DefaultObject, card: Card, file: str, typeclass: str) -> list[str]:
    """Make an assistant of a card in somebody's room, all of it or nothing; returns a report."""
    key = good_name(card.name)
    if card.lore:
        book_for(key, NOBODY)
    body = new_body(maker, key, typeclass)
    try:
        return take_card(body.assistant, card, file, maker.key)
    except Exception:
        body.delete()
        raise


def export_card(script: AssistantScript, form: str) -> "Deferred[Path]":
    """Write an assistant's card as it is now into a new file of the folder; fires with its path.

    Nothing of its memory goes along. A PNG has the picture of the file it was made from.
    """
    form = form.strip().lower() or "png"
    config, body = script.config, script.obj
    stored = as_dict(script.store.get(KEY, CATEGORY))
    original = json.loads(as_text(stored.get("json")) or "null")
    card = Card(
        body.key,
        persona=config.persona,
        examples=config.examples or "",
        greetings=config.greetings,
        lore=own_book(body),
        original=original,
    )
    name, source = re.sub(r"[^\w-]+", "_", body.key) or "assistant", str(stored.get("file") or "")
    data = file_data(source) if source else services.on_disk(bytes)
    data.addErrback(lambda failure: failure.trap(Refusal) and b"")  # the file is gone
    data.addCallback(lambda old: services.on_disk(lambda: packed(exported(card), form, old)))
    return data.addCallback(lambda new: keep_file(f"{name}-export.{form}", new))


@inlineCallbacks
def take_chat(
    script: AssistantScript, person: DefaultObject, file: str, by: str, named: str = ""
) -> Steps[list[str]]:
    """Take an old talk between an assistant without a history and a player; fires with a report.

    `named` is the assistant's name in the file, if it is another. Call it under the turn lock. The
    lines are private to the two and keep their times; compaction, search and forgetting treat them
    as any others. The file is deleted once they are stored: it is somebody's talk. Where a kill cut
    an import of the file short, it goes on behind what is stored.
    """
    script.runtime.lock.holder()  # raises without the lock
    body, history = script.obj, script.history
    data = yield file_data(file)
    chat: OldChat = yield services.on_disk(read_chat, data, script.now())
    own = named or body.key
    names = chat.speakers(own, person.key)
    speakers = {name: Speaker(name, unmet_id(name)) for name in names}
    speakers[person.key] = speaker_of(person, body)
    speakers[own] = Speaker(body.key, body.stable_id)
    # What others say in a talk that somebody brought is theirs to have forgotten.
    meta = {"imported": True, "account": stable_id(person)}
    circle = private([stable_id(person)])
    messages = [
        Message(
            "assistant" if name == own else "user",
            line.text,
            created_at=utc_iso(line.at),
            speaker=speakers[name],
            audience=circle,
            channel="whisper",
            metadata=meta,
        )
        for line, name in zip(chat.lines, names, strict=True)
    ]
    refusal = f"{body.key} has a history already; import old talk into a new assistant"
    if history.recorded[0] > len(messages):
        raise Refusal(refusal)
    live = (message for message in history.messages() if not message.is_summary)
    archived = chain.from_iterable(segment.messages for segment in history.segments())
    stored = [(each.content, each.metadata) for each in in_order([*archived, *live])]
    if stored != [(each.content, each.metadata) for each in messages[: len(stored)]]:
        raise Refusal(refusal)
    for start in range(len(stored), len(messages), AT_ONCE):
        history.append(messages[start : start + AT_ONCE])
        yield script.breathe()
    yield services.on_disk(card_path(file).unlink, missing_ok=True)
    script.audit("card", act="chat", file=file, by=by)
    report = [f"{chat.note}."]
    if others := sorted({*names} - {own, person.key}):
        report.append(f"Others in it, as they are named: {', '.join(others)}.")
    return [*report, f"Private to {body.key} and {person.key}. The file is deleted."]
