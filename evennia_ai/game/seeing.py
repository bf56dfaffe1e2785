"""What a body sees: who and what is there, by the game's own locks and hooks, by which names.

And stable ids of people and places, which are never used again, unlike dbrefs. And one decision on
who of the people in a room answers a line, for all assistants there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from django.conf import settings
from evennia import AccountDB, DefaultCharacter, DefaultObject, DefaultRoom, ObjectDB, ScriptDB
from evennia.typeclasses.models import TypedObject
from evennia.utils.ansi import strip_ansi
from evennia.utils.funcparser import FuncParser

from evennia_ai.game.evennia_internals import stable_id as stable_id
from evennia_ai.history.messages import MASK, Message, Speaker
from evennia_ai.language.script import normalized
from evennia_ai.language.words import telling_words
from evennia_ai.turns.runtime import TO
from evennia_ai.turns.turn_taking import DIRECT, Line, Person, Talk, answerers

# The stable id of a character or an account, as `aihistory/raw` shows it.
STABLE_ID = re.compile(r"[oa]\d+\.\w+")
PRIVATE_TAG = ("private", "evennia_ai")
_DBREF = re.compile(r"(?<!\s)\s*\(#\d{1,20}\)$")
_telling = lru_cache(maxsize=1_024)(telling_words)
# A room's line reaches its listeners within this time, one after the other.
SAME_LINE_S = 0.5


def plain(text: object) -> str:
    """Game text without colours and markup, its letters in one normal form."""
    return normalized("NFC", str(strip_ansi(str(text or ""))).strip())


def name_of(obj: DefaultObject, looker: DefaultObject | None = None) -> str:
    """What a looker, or a stranger, calls something: its sdesc, recog or mask where it has one."""
    if obj is looker:
        return plain(obj.key)
    name = _DBREF.sub("", plain(obj.get_display_name(looker)))
    return " ".join(name.split()) or plain(obj.key)


def names_of(obj: DefaultObject, looker: DefaultObject) -> tuple[str, ...]:
    """All names by which a looker may know something; the true ones only if it is shown so."""
    name, key = name_of(obj, looker), plain(obj.key)
    if obj is not looker and name.lower() != key.lower():
        return (name,)
    return (key, *map(plain, obj.aliases.all()))


def is_private_room(room: DefaultObject | None) -> bool:
    """Whether a room is marked private: tag `private` of category `evennia_ai`."""
    return room is not None and is_tagged(room, PRIVATE_TAG)


def is_tagged(obj: TypedObject, tag: tuple[str, str]) -> bool:
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
    if among is None:
        among = place.contents
    visible: list[DefaultObject] = place.filter_visible(among, looker)
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


def around(obj: DefaultObject) -> list[DefaultObject]:
    """Everything in the room of an object besides it, seen or not; nothing if it is nowhere."""
    if obj.location is None:
        return []
    return [each for each in obj.location.contents if each is not obj]


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


def described(obj: DefaultObject, looker: DefaultObject) -> str:
    """A description as a looker is shown it; empty where a thing has none of its own."""
    text = str(obj.get_display_desc(looker) or "")
    if text == str(getattr(obj, "default_description", "")):
        return ""
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = FuncParser(settings.FUNCPARSER_OUTGOING_MESSAGES_MODULES).parse(text)
    return plain(text)


def face_of(obj: DefaultObject, looker: DefaultObject) -> str:
    """The id by which a looker knows somebody: the stable id, or that of the mask they wear.

    Whom the lock `enable_recog` lets nobody recognize, as in Evennia's `rpsystem`, is known by the
    name they show alone, and so is everybody who shows the same.
    """
    if obj.access(looker, "enable_recog", default=True):
        return stable_id(obj)
    shown = name_of(obj, looker).casefold().encode()
    return f"{MASK}{blake2b(shown, digest_size=6).hexdigest()}"


def speaker_of(obj: TypedObject, listener: TypedObject | None = None) -> Speaker:
    """Who somebody is, for a message: the name that a listener knows, and the stable id."""
    name = str(obj.key)
    if listener is not None:
        name = name_of(obj, listener)
    return Speaker(name, stable_id(obj))


def player_ids(somebody: TypedObject) -> tuple[str, ...]:
    """The stable ids of an account, or of a character's, with all its characters."""
    people, account = [somebody], getattr(somebody, "account", somebody)
    if hasattr(account, "characters"):
        people += [account, *account.characters.all()]
    return tuple(dict.fromkeys(map(stable_id, people)))


def find(identifier: str) -> Any:
    """The object or account a stable id names, or None if it is gone."""
    models = {"o": ObjectDB, "a": AccountDB, "s": ScriptDB}
    number = identifier[1:].partition(".")[0]
    if identifier[:1] not in models or not number.isdecimal():
        return None
    model = models[identifier[0]]
    # What Evennia has loaded it keeps; a query takes 0.3 ms.
    obj = model.get_cached_instance(int(number)) or model.objects.filter(pk=int(number)).first()
    if obj is None or stable_id(obj) != identifier:
        return None
    return obj


@dataclass
class RoomMemory:
    """What is remembered of a room while the server runs.

    Attributes:
        talk: Who talked with whom.
        line: The newest line.
        chosen: Who answers it.
        heard_by: The assistants that have asked so far.
        cued_at: When one of its assistants spoke unasked last, seconds since the epoch.
    """

    talk: Talk = field(default_factory=Talk)
    line: Line | None = field(default=None, repr=False)  # `examine` shows what a room remembers
    chosen: tuple[str, ...] = ()
    heard_by: set[str] = field(default_factory=set)
    cued_at: float = float("-inf")


def manners_of(room: DefaultRoom) -> RoomMemory:
    """What is remembered of a room; it goes with the room's object."""
    known = room.ndb.ai_manners
    if known is None:
        known = room.ndb.ai_manners = RoomMemory()
    return known


def is_to_answer(listener: DefaultCharacter, event: Message, at: float) -> bool:
    """Whether a listener is the one, or among those, who answer what was just heard.

    Evennia hands a line to its listeners one after the other, in one go. The first one's question
    decides for all of them.

    Args:
        listener: An assistant's body.
        event: A line it heard: said, posed, whispered or paged.
        at: Now, in seconds since the epoch.
    """
    room = listener.location
    if room is None or event.channel == "page":
        return True
    own, known, words = listener.stable_id, manners_of(room), event.content
    if event.channel == "pose" and event.speaker is not None:  # what stands behind the name
        words = re.sub(f"^{re.escape(event.speaker.key)}", "", words, flags=re.IGNORECASE)
    receivers: tuple[str, ...] = ()
    if to := event.metadata.get(TO):
        receivers = (to,)
    elif event.channel in DIRECT:
        receivers = (own,)
    line = Line(event.speaker_id, words.strip(), event.channel or "say", at, receivers)
    before = known.line
    is_same = (
        before is not None
        and own not in known.heard_by
        and at - before.at < SAME_LINE_S
        and before == replace(line, at=before.at)
    )
    if not is_same:
        speaker, present = find(event.speaker_id), room.contents
        if speaker is not None:
            # Whether an assistant answers must not tell the speaker that somebody hidden is there.
            visible = {speaker, *seen(room, speaker)}
            present = [obj for obj in present if is_assistant(obj) or obj in visible]
        people = [_person(obj, speaker) for obj in filter(is_person, present)]
        known.chosen, known.talk = answerers(
            line, people, known.talk, lambda id: _concern(find(id), line.text)
        )
        known.line, known.heard_by = line, set()
    known.heard_by.add(own)
    return own in known.chosen


def _person(obj: DefaultObject, speaker: DefaultObject | None) -> Person:
    # Who speaks may know it by another name, or somebody by that name.
    person, script = Person(stable_id(obj), names_of(obj, speaker or obj), "scripted"), None
    if obj.has_account:
        return replace(person, kind="player")
    if is_assistant(obj):
        person = replace(person, names=tuple(dict.fromkeys((*person.names, *names_of(obj, obj)))))
        script = obj.assistant
    if script is None or not script.enabled:
        return person

    def assistant() -> Person:
        attention, awake = script.config.attention, script.state.mode == "awake"
        return replace(person, kind="assistant", attention=attention, awake=awake)

    return script.survived("taking part in a talk", assistant, person)


def _concern(body: DefaultCharacter, text: str) -> float:
    """How much words concern an assistant: by its persona and by whom and what it knows."""

    def known_words() -> set[str]:
        names = [profile.name for profile in body.entities.called(text)]
        return set().union(*map(_telling, (body.assistant.config.persona, *names)))

    known = body.assistant.survived("weighing what was said", known_words, set())
    said = _telling(text)
    return len(said & known) / max(1, len(said))
