"""What an assistant hears: each line that reaches a body, as one event.

This is the only place that knows how a game speaks: which lines are speech, who speaks and under
which name, and who may know of it. A line's kind is Evennia's message type where it has one. Any
other line is speech if its speaker typed these words, else a pose. A line that was sent to few is
private to them, whatever it is called.
"""

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import regex
from evennia import AccountDB, ChannelDB, ObjectDB
from evennia.utils.utils import make_iter

from evennia_ai import conf
from evennia_ai.game.seeing import (
    hearers,
    is_assistant,
    is_person,
    is_private_room,
    name_of,
    names_of,
    plain,
    seen,
    speaker_of,
    stable_id,
)
from evennia_ai.game.sending import Origin, line_and_type, origin_of_line
from evennia_ai.game.spoken import spoken
from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import Message, new_id, utc_iso
from evennia_ai.language.script import BEHIND, bordered
from evennia_ai.language.words import storable

if TYPE_CHECKING:
    from evennia import DefaultCharacter, DefaultObject, DefaultScript
    from evennia.typeclasses.models import TypedObject

# On the account, or the character, of a player who wants no assistant to listen.
IGNORED_TAG = ("ignored", "evennia_ai")
MOVE_TYPES = ("move", "traverse", "teleport", "follow")
# What the assistants' own signs are sent as, and what is shown to one who looks: no talk.
SIGN = "sign"
_NOT_HEARD = (SIGN, "look")
# A line longer than this is cut before it is stored; telnet clients cannot send so much.
LINE_CHARS = 20_000
# Weather that was seen among as many newest messages is not stored again.
LATELY = 30


def heard_event(listener: "DefaultCharacter", text: object, from_obj: object) -> Message | None:
    """What a message means to a listener, or None if it is nothing to hear.

    `text` is what `at_msg_receive` gets: a text, or a text and its options.
    """
    shown, kind = line_and_type(text)
    line = storable(shown[:LINE_CHARS])
    if not line or kind in _NOT_HEARD or not (kind is None or isinstance(kind, str)):
        return None
    origin = origin_of_line(listener)
    speaker = _body(next(iter(make_iter(from_obj)), None) if from_obj else origin.caller)
    if speaker is listener or any(map(is_ignored, filter(None, (speaker, origin.caller)))):
        return None
    if speaker is None or not is_person(speaker):
        return None if kind in MOVE_TYPES else _thing_event(listener, speaker, line, origin)
    room = listener.location
    is_here = room is not None and speaker.location is room
    is_unseen = is_here and not seen(room, listener, [speaker])
    if kind in MOVE_TYPES or origin.is_coming:
        audience = room_audience(listener, speaker)
        line = _as_known(line, listener)
        return None if is_unseen else event_of(listener, speaker, "move", line, audience)
    names = (*names_of(speaker, listener), plain(speaker.key))
    if is_unseen:
        line = _without_name(line, names[-1])
        names = (UNSEEN, *names)
    circle = _circle(listener, speaker, origin, kind)
    is_pose, is_speech = kind in ("pose", "emote"), kind in ("say", "whisper")
    typed = origin.typed if origin.caller is speaker else ()
    words = "" if is_pose else spoken(line, names, typed, is_speech)
    if words and not is_speech and _is_named(room, line, words):
        words = ""
    channel, words = ("say", words) if words or is_speech else ("pose", line)
    audience = room_audience(listener, speaker)
    if circle is not None:
        audience = private(map(stable_id, circle))
        if channel == "say":
            channel = "whisper" if is_here else "page"
    words = _as_known(words, listener) if channel == "pose" else words
    if channel == "pose" and not from_obj and not any(name in line for name in names):
        return noticed_event(listener, words, None, audience)  # nobody's act, such as a bell
    return event_of(listener, speaker, channel, words, audience, is_unseen)


def _is_named(room: "DefaultObject | None", line: str, words: str) -> bool:
    """Whether words of a line belong to the name that it gives to a thing here."""
    holders = (room, *room.contents) if room is not None else ()
    things = (obj for holder in holders for obj in holder.contents if not is_person(obj))
    keys = (plain(thing.key).casefold() for thing in things)
    return any(words.casefold() in key and key in line.casefold() for key in keys)


def _as_known(line: str, listener: "DefaultObject") -> str:
    """A line with the names that a listener knows for the true ones that a game shows in it.

    True names are whole words, in upper or lower case, and hidden unless the known name has them.
    """
    people = list(filter(is_person, listener.location.contents if listener.location else ()))
    shown, hidden = line.casefold(), {}
    for person in people:  # few are asked for their names: that takes time
        key = plain(person.key)
        if key and key.casefold() in shown:
            name = name_of(person, listener)
            if not regex.search(bordered(key), name, regex.V1):
                hidden[key] = name
    if not hidden:
        return line
    # What somebody is called may hold another one's true name.
    names = {*hidden, *filter(None, (name_of(person, listener) for person in people))}
    words = sorted(names, key=len, reverse=True)
    quoted = (f"(?<=['’]){regex.escape(word)}{BEHIND}" for word in words)
    pattern = "|".join(f"({bordered(w)}|{q})" for w, q in zip(words, quoted, strict=True))
    flags = regex.V1 | regex.IGNORECASE
    return regex.sub(pattern, lambda m: hidden.get(words[m.lastindex - 1], m[0]), line, flags=flags)


def _thing_event(
    listener: "DefaultCharacter", thing: "DefaultObject | None", line: str, origin: Origin
) -> Message | None:
    """What comes from nobody, as a notice: a crate that speaks, weather, a script's line.

    It is none where no player is there to see it, where it was heard lately, or where the body
    alone is told it without a source, as what the game says to whoever types.
    """
    room, script = listener.location, listener.assistant
    if room is None or script is None or not any(obj.has_account for obj in room.contents):
        return None
    line, receivers = _as_known(line, listener), origin.receivers or ()
    people = [obj for obj in receivers if obj is not listener and is_person(obj)]
    if (receivers and not people and thing is None) or is_told(script, line, LATELY):
        return None
    if thing is not None and thing.location is room and not seen(room, listener, [thing]):
        line = _without_name(line, plain(thing.key))
    audience = private(map(stable_id, people)) if people else STAFF if receivers else PUBLIC
    return noticed_event(listener, line, None, audience)


def _without_name(line: str, name: str) -> str:
    """A line that does not begin with the name of somebody or something unseen."""
    return re.sub(rf"^\W*{re.escape(name)}(?!\w)", UNSEEN, line)


def is_told(script: "DefaultScript", text: str, newest: int = 0) -> bool:
    """Whether a notice is one of those that wait, or stand among the newest messages."""
    lines = [*(script.history.messages()[-newest:] if newest else ()), *script.runtime.queue]
    return any(line.channel == "notice" and line.content == text for line in lines)


def _body(obj: object) -> "DefaultObject | None":
    """The character that speaks: of an account one that it plays."""
    if isinstance(obj, AccountDB):
        return next(iter(obj.get_all_puppets()), None)
    return obj if isinstance(obj, ObjectDB) else None


def _circle(
    listener: "DefaultObject", speaker: "DefaultObject", origin: Origin, kind: str | None
) -> "set[DefaultObject] | None":
    """Who besides a listener knows of a line; None if everybody in the room does."""
    receivers, room = origin.receivers, listener.location
    if kind != "whisper":
        if receivers is None:
            return None
        everybody = set(filter(is_person, room.contents if room is not None else ()))
        if len(receivers) > 1 and everybody <= {*receivers, speaker}:
            return None
    return {speaker, *(receivers or ())} - {listener}


def event_of(
    listener: "DefaultObject",
    speaker: "TypedObject",
    channel: str,
    content: str,
    audience: str,
    is_unseen: bool = False,
) -> Message:
    """An event with its own id and time; the speaker bears the name that the listener knows."""
    known = speaker_of(speaker, listener)
    return Message(
        "user",
        storable(content),
        id=new_id("m"),
        created_at=utc_iso(time.time()),
        speaker=replace(known, key=UNSEEN) if is_unseen else known,
        audience=audience,
        channel=channel,
        metadata={"assistant": is_assistant(speaker)},
    )


def paged_event(
    listener: "DefaultObject", account: AccountDB, text: str, puppet: "DefaultObject | None"
) -> Message:
    """A page of an account, which typed it as `puppet`; any that it plays if None."""
    body = puppet or _body(account) or account
    event = event_of(listener, body, "page", text[:LINE_CHARS], private([stable_id(body)]))
    # The answer is for who paged, whoever plays that character by then.
    return replace(event, metadata={**event.metadata, "account": stable_id(account)})


def noticed_event(
    listener: "DefaultObject", text: str, from_obj: "TypedObject | None", audience: str
) -> Message:
    """What a game lets an assistant know without speech; without a cause it is a bare notice."""
    if audience == PUBLIC and is_private_room(listener.location):
        audience = room_audience(listener, listener)
    event = event_of(listener, from_obj or listener, "notice", plain(text)[:LINE_CHARS], audience)
    return event if from_obj is not None else replace(event, role="system", speaker=None)


def subscribe(listener: "DefaultCharacter") -> None:
    """Let a body hear the channels that ``EVENNIA_AI_CHANNELS`` names."""
    for name in conf.setting("CHANNELS"):
        for channel in ChannelDB.objects.channel_search(name):
            if not channel.has_connection(listener):
                channel.connect(listener)


def channel_event(
    listener: "DefaultObject", text: str, channel: "TypedObject", sender: "TypedObject | None"
) -> Message | None:
    """A line on a channel, for staff alone unless everybody may listen there; never answered."""
    names = [name.lower() for name in conf.setting("CHANNELS")]
    if sender is None or channel.key.lower() not in names or is_ignored(sender):
        return None
    audience = PUBLIC if channel.locks.get("listen") == "listen:all()" else STAFF
    words = storable(plain(text)[:LINE_CHARS])
    return event_of(listener, sender, f"on {channel.key}"[:24], words, audience)


def is_ignored(speaker: "TypedObject") -> bool:
    """Whether a player wants no assistant to listen, by `ai/ignore`."""
    key, category = IGNORED_TAG
    known = (speaker, getattr(speaker, "account", None))
    return any(key in each.tags.get(category=category, return_list=True) for each in known if each)


def room_audience(listener: "DefaultObject", speaker: "DefaultObject") -> str:
    """Public, or in a room marked private those who stand there besides a listener."""
    room = listener.location
    if not is_private_room(room):
        return PUBLIC
    people = {*filter(is_person, room.contents), *hearers(room), speaker}
    return private(stable_id(obj) for obj in people - {listener})
