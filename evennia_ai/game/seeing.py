"""What a body sees: who and what is there, by the game's own locks and hooks, by which names.

And stable ids of people and places, which are never used again, unlike dbrefs.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from django.conf import settings
from evennia import AccountDB, DefaultCharacter, DefaultObject, ObjectDB, ScriptDB
from evennia.typeclasses.models import TypedObject
from evennia.utils.ansi import strip_ansi
from evennia.utils.funcparser import FuncParser

from evennia_ai.game.evennia_internals import stable_id as stable_id
from evennia_ai.history.messages import MASK, Speaker
from evennia_ai.language.script import normalized

# The stable id of a character or an account, as `aihistory/raw` shows it.
STABLE_ID = re.compile(r"[oa]\d+\.\w+")
PRIVATE_TAG = ("private", "evennia_ai")
_DBREF = re.compile(r"(?<!\s)\s*\(#\d{1,20}\)$")


def plain(text: object) -> str:
    """Game text without colours and markup, its letters in one normal form."""
    return normalized("NFC", str(strip_ansi(str(text or ""))).strip())


def name_of(obj: "DefaultObject", looker: "DefaultObject | None" = None) -> str:
    """What a looker, or a stranger, calls something: its sdesc, recog or mask where it has one."""
    if obj is looker:
        return plain(obj.key)
    name = _DBREF.sub("", plain(obj.get_display_name(looker)))
    return " ".join(name.split()) or plain(obj.key)


def names_of(obj: "DefaultObject", looker: "DefaultObject") -> tuple[str, ...]:
    """All names by which a looker may know something; the true ones only if it is shown so."""
    name, key = name_of(obj, looker), plain(obj.key)
    if obj is not looker and name.lower() != key.lower():
        return (name,)
    return (key, *(plain(alias) for alias in obj.aliases.all()))


def is_private_room(room: "DefaultObject | None") -> bool:
    """Whether a room is marked private: tag `private` of category `evennia_ai`."""
    return room is not None and is_tagged(room, PRIVATE_TAG)


def is_tagged(obj: "TypedObject", tag: tuple[str, str]) -> bool:
    """Whether something has a tag, of which key and category are given."""
    key, category = tag
    # By category, because Evennia caches that there is none; a key would be a query each time.
    return key in obj.tags.get(category=category, return_list=True)


def is_person(obj: DefaultObject) -> bool:
    """Whether an object is a character, or anything else that somebody plays."""
    return isinstance(obj, DefaultCharacter) or bool(getattr(obj, "has_account", False))


def seen(
    place: DefaultObject, looker: DefaultObject, among: Sequence[DefaultObject] | None = None
) -> list[DefaultObject]:
    """What is in a place, or of some things there, as far as the looker sees it.

    The place's own hook decides. The looker is left out.
    """
    if not place.access(looker, "view", default=True):
        return []  # it is dark
    objects = place.contents if among is None else among
    visible: list[DefaultObject] = place.filter_visible(objects, looker)
    return [obj for obj in visible if obj is not looker]


def rooms_from(
    start: DefaultObject, looker: DefaultObject, is_open: bool
) -> Iterator[tuple[DefaultObject, tuple[DefaultObject, ...]]]:
    """Rooms by the exits that a looker sees, the nearest first, each with the exits on the way.

    Only by exits that are open to the looker, if that is wanted.
    """
    paths: dict[DefaultObject, tuple[DefaultObject, ...]] = {start: ()}
    queue = [start]
    for room in queue:  # it grows meanwhile
        yield room, paths[room]
        for way in seen(room, looker, room.exits):
            if way.destination not in paths and (not is_open or way.access(looker, "traverse")):
                paths[way.destination] = (*paths[room], way)
                queue.append(way.destination)


def hearers(place: DefaultObject) -> Iterator[DefaultObject]:
    """Everything in a place by way of which somebody may hear what is said there, seen or not.

    What somebody plays, assistants, what has a hook of its own for messages, and whatever of these
    it holds, as a vehicle its crew.
    """
    for obj in place.contents:
        hooks = type(obj).at_msg_receive, type(obj).msg
        if obj.has_account or hooks != (DefaultObject.at_msg_receive, DefaultObject.msg):
            yield obj
        yield from hearers(obj)


def is_assistant(obj: DefaultObject) -> bool:
    """Whether an object is an assistant's body that nobody puppets."""
    return getattr(type(obj), "is_assistant_body", False) and not obj.has_account


def described(obj: "DefaultObject", looker: "DefaultObject") -> str:
    """A description as a looker is shown it; empty where a thing has none of its own."""
    text = str(obj.get_display_desc(looker) or "")
    if text == str(getattr(obj, "default_description", "")):
        return ""
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = FuncParser(settings.FUNCPARSER_OUTGOING_MESSAGES_MODULES).parse(text)
    return plain(text)


def face_of(obj: "DefaultObject", looker: "DefaultObject") -> str:
    """The id by which a looker knows somebody: the stable id, or that of the mask they wear.

    Whom the lock `enable_recog` lets nobody recognize, as in Evennia's `rpsystem`, is known by the
    name they show alone, and so is everybody who shows the same.
    """
    if obj.access(looker, "enable_recog", default=True):
        return stable_id(obj)
    shown = name_of(obj, looker).casefold().encode()
    return f"{MASK}{blake2b(shown, digest_size=6).hexdigest()}"


def speaker_of(obj: "TypedObject", listener: "TypedObject | None" = None) -> Speaker:
    """Who somebody is, for a message: the name that a listener knows, and the stable id."""
    name = str(obj.key) if listener is None else name_of(obj, listener)
    return Speaker(name, stable_id(obj))


def player_ids(somebody: "TypedObject") -> tuple[str, ...]:
    """The stable ids of an account, or of a character's, with all its characters."""
    account = somebody if hasattr(somebody, "characters") else getattr(somebody, "account", None)
    people = [somebody, *((account, *account.characters.all()) if account is not None else ())]
    return tuple(dict.fromkeys(map(stable_id, people)))


def find(identifier: str) -> Any:
    """The object or account a stable id names, or None if it is gone."""
    models = {"o": ObjectDB, "a": AccountDB, "s": ScriptDB}
    number = identifier[1:].split(".", 1)[0]
    if identifier[:1] not in models or not number.isdecimal():
        return None
    model = models[identifier[0]]
    # What Evennia has loaded it keeps; a query takes 0.3 ms.
    obj = model.get_cached_instance(int(number)) or model.objects.filter(pk=int(number)).first()
    return obj if obj is not None and stable_id(obj) == identifier else None
