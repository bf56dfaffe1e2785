"""What an assistant hears: each line that reaches a body, as one event.

This is the only place that knows how a game speaks: which lines are speech, who speaks and under
which name, and who may know of it. A line's kind is Evennia's message type where it has one. Any
other line is speech if its speaker typed these words, else a pose. A line that reaches a body
through the room's `msg_contents` is for the room without those left out: the innermost function of
that name knows them by its parameter `exclude`. Any other line is for its sender and the body
alone, unless Evennia's own functions tell whom else it goes to.

`origin_of_line` is the only place of the package that looks at the call stack. It looks for the
command that runs, by whose method a function is, and for Evennia's own ways of sending to a room,
by the parameters that these document. No variable of a game's function is looked at.
"""

import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from inspect import getargvalues
from types import FrameType
from typing import Any

import regex
from django.conf import settings
from evennia import AccountDB, ChannelDB, Command, DefaultCharacter, DefaultObject, ObjectDB
from evennia.typeclasses.models import TypedObject
from evennia.utils.utils import make_iter

from evennia_ai import conf
from evennia_ai.game.seeing import (
    around,
    hearers,
    is_assistant,
    is_person,
    is_private_room,
    is_tagged,
    name_of,
    names_of,
    plain,
    seen,
    speaker_of,
    stable_id,
)
from evennia_ai.game.spoken import spoken, without_names
from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import ASKER, UNSEEN, Message, new_id, utc_iso
from evennia_ai.language.script import BEHIND, bordered
from evennia_ai.language.words import storable
from evennia_ai.turns.runtime import TO

# On the account, or the character, of a player who wants no assistant to listen.
IGNORED_TAG = ("ignored", "evennia_ai")
MOVE_TYPES = ("move", "traverse", "teleport", "follow")
# What the assistants' own signs are sent as, and what is shown to one who looks: no talk.
SIGN = "sign"
_NOT_HEARD = (SIGN, "look")
_SPOKEN = ("say", "whisper")
# The type of what a player says, and no character does.
OOC = "ooc"
# A line longer than this is cut before it is stored; telnet clients cannot send so much.
LINE_CHARS = 20_000


_DEPTH = 40
# Hooks in which Evennia, and games in other words, tell a room who enters and leaves the game.
# Evennia gives these lines no type: of a hook, what its own object sends without one is a move.
_COMING = ("at_post_puppet", "at_post_unpuppet")
# Evennia's emotes, each listener of which is shown other names.
_EMOTES = ("send_emote", "evennia.contrib.rpg.rpsystem.rpsystem")


@dataclass(frozen=True)
class Origin:
    """Where a line comes from.

    Attributes:
        caller: Who typed the command that sends it; None if no command does.
        key: The command's name.
        typed: The command's arguments, and what of them stands behind an equals sign.
        is_for_room: Whether it is sent to a room by a `msg_contents` that tells whom it leaves out,
            or said by Evennia's `at_say`; None if neither that nor `receivers` is known.
        excluded: Whom `msg_contents` leaves out.
        receivers: Whom Evennia's `at_say` whispers to, or an emote of `rpsystem` is shown to.
        comers: Whose hook it is, where it is sent as they enter or leave the game.
    """

    caller: TypedObject | None = None
    key: str = ""
    typed: tuple[str, ...] = ()
    is_for_room: bool | None = None
    excluded: Collection[Any] = ()
    receivers: Collection[Any] = ()
    comers: tuple[Any, ...] = ()


def origin_of_line(listener: DefaultObject) -> Origin:
    """The origin of the line that a listener's `at_msg_receive` was called with."""
    frame, origin = sys._getframe(1), Origin()
    is_own = True  # whether a frame belongs to this line, and not to one that led to it
    for _ in range(_DEPTH):
        if frame is None or frame.f_globals.get("__name__", "").startswith("twisted."):
            break
        sender = None
        if frame.f_code.co_varnames[:1] == ("self",):
            sender = frame.f_locals.get("self")
        if isinstance(sender, Command):
            caller = sender.caller
            if not isinstance(caller, ObjectDB):  # an account
                caller = getattr(getattr(sender, "session", None), "puppet", None) or caller
            parts = [getattr(sender, name, None) for name in ("args", "rhs")]
            typed = tuple(plain(part) for part in parts if isinstance(part, str))
            return replace(origin, caller=caller, key=str(sender.key), typed=typed)
        is_own &= frame.f_code is not DefaultObject.msg.__code__ or sender is listener
        if is_own:
            origin = _sent_by(frame, sender, listener, origin)
        frame = frame.f_back
    return origin


def _sent_by(frame: FrameType, sender: object, listener: DefaultObject, origin: Origin) -> Origin:
    """An origin with what a function's parameters show of a line; the innermost way of it holds."""
    way, local = frame.f_code.co_name, frame.f_locals
    is_said = frame.f_code is DefaultObject.at_say.__code__
    if way in _COMING:
        return replace(origin, comers=(sender,))
    if is_said and origin.is_for_room is not False and not local["kwargs"].get("whisper"):
        # It leaves out those whom it tells in other words.
        left_out = {*origin.excluded}.difference(make_iter(local["receivers"] or ()))
        return replace(origin, is_for_room=True, excluded=left_out)
    if origin.is_for_room is not None:
        return origin
    if way == "msg_contents" and sender is listener.location:
        left_out = local.get("exclude") or ()
        # What an iterator holds is gone when it has been read.
        if "exclude" in getargvalues(frame).args and not isinstance(left_out, Iterator):
            return replace(origin, is_for_room=True, excluded=make_iter(left_out))
        return replace(origin, is_for_room=False)
    if is_said or (way, frame.f_globals.get("__name__")) == _EMOTES:
        receivers = make_iter(local["receivers"] or ())
        return replace(origin, is_for_room=False, receivers=receivers)
    return origin


def line_and_type(text: object) -> tuple[str, object]:
    """A message's plain line and Evennia's type of it: it is a text, or a text and its options."""
    match text:
        case [line, {"type": kind}, *_]:
            return plain(line), kind
        case [line, *_]:
            return plain(line), None
    return plain(text), None


def _is_of(origin: Origin, setting: str) -> bool:
    """Whether a setting names the command that sends a line, with or without its prefix."""

    def bare(name: str) -> str:
        return name.casefold().lstrip(settings.CMD_IGNORE_PREFIXES) or name

    return bool(origin.key) and bare(origin.key) in map(bare, conf.setting(setting))


def heard_event(
    listener: DefaultCharacter, text: object, from_obj: object, origin: Origin
) -> Message | None:
    """What a message means to a listener, or None if it is nothing to hear.

    `text` is what `at_msg_receive` gets: a text, or a text and its options.
    """
    shown, kind = line_and_type(text)
    line = storable(shown[:LINE_CHARS])
    if not line or kind in _NOT_HEARD or not isinstance(kind, str | None):
        return None
    if kind not in _SPOKEN and not re.search(r"\w", line):
        return None  # a break between poses, such as a row of dashes
    speaker = _body(next(iter(make_iter(from_obj or origin.caller)), None))
    if speaker is listener or any(map(is_ignored, (speaker, origin.caller))):
        return None
    is_moving = kind in MOVE_TYPES or (kind is None and speaker in origin.comers)
    if speaker is None or not is_person(speaker):
        if is_moving:
            return None
        return _thing_event(listener, speaker, line, kind, origin)
    is_unseen = _is_unseen(listener, speaker)
    if is_moving:
        if is_unseen:
            return None
        audience = room_audience(listener, speaker)
        return event_of(listener, speaker, "move", _as_known(line, listener), audience)
    if kind == OOC or _is_of(origin, "OOC_COMMANDS"):
        return None
    return _person_event(listener, speaker, line, kind, origin, bool(from_obj), is_unseen)


def _person_event(
    listener: DefaultCharacter,
    speaker: DefaultObject,
    line: str,
    kind: object,
    origin: Origin,
    is_sent: bool,
    is_unseen: bool,
) -> Message | None:
    """What a line of somebody's means; `is_sent`: whether the game names them as its sender."""
    names = (*names_of(speaker, listener), plain(speaker.key))
    words, is_speech = "", kind in _SPOKEN
    if is_unseen:
        line = _without_name(line, names[-1])
        names = (UNSEEN, *names)
    if not is_speech and not re.search(r"\w", without_names(line, names)):
        return None  # as between poses, such as ``==== Char ====``
    if kind not in ("pose", "emote"):
        typed: tuple[str, ...] = ()
        if origin.caller is speaker:
            typed = origin.typed
        words = spoken(line, names, typed, is_speech)
    circle = _circle(listener, speaker, kind, origin)
    audience = _audience(listener, speaker, circle)
    is_for_few = circle is not None and not origin.is_for_room
    if is_speech or (words and not _is_named(listener.location, line, words)):
        channel = "say"
        if is_for_few or circle == {speaker}:
            channel = _aside(listener, speaker)
        return event_of(listener, speaker, channel, words, audience, is_unseen)
    line = _as_known(line, listener)
    if not is_sent and not _is_act_of(listener, speaker, line, names):
        return noticed_event(listener, line, None, audience)  # nobody's act, such as a bell
    channel = "pose"
    if kind is None and is_for_few:
        channel = "notice"
    return event_of(listener, speaker, channel, line, audience, is_unseen)


def _is_act_of(
    listener: DefaultCharacter, speaker: DefaultObject, line: str, names: Iterable[str]
) -> bool:
    """Whether a line names somebody, and nobody else who is here before."""
    place = _place(line, names)
    others = filter(is_person, {*around(listener)} - {speaker})
    ahead = (_place(line, names_of(each, listener)) < place for each in others)
    return place < len(line) and not any(ahead)


def _place(line: str, names: Iterable[str]) -> int:
    """Where a line first has one of some names; its length if it has none."""
    found = (regex.search(bordered(name), line, regex.V1) for name in names)
    return min((match.start() for match in found if match), default=len(line))


def _is_beside(listener: DefaultCharacter, speaker: DefaultObject) -> bool:
    """Whether somebody is in the same room as a listener."""
    return listener.location is not None and speaker.location is listener.location


def _is_unseen(listener: DefaultCharacter, obj: DefaultObject) -> bool:
    """Whether somebody or something is in the same room, and the listener does not see it."""
    return _is_beside(listener, obj) and not seen(listener.location, listener, [obj])


def _aside(listener: DefaultCharacter, speaker: DefaultObject) -> str:
    """The channel of what somebody says to a listener and not to the room."""
    if _is_beside(listener, speaker):
        return "whisper"
    return "page"


def _circle(
    listener: DefaultObject,
    speaker: DefaultObject | None,
    kind: object,
    origin: Origin,
) -> set[DefaultObject] | None:
    """Who besides a listener knows of a line; None if everybody in the room does."""
    people = {*filter(is_person, around(listener))}
    told = {*filter(is_person, origin.receivers)}
    is_for_all = {listener, *people} <= told or _is_of(origin, "PUBLIC_COMMANDS")
    if origin.is_for_room:
        left_out = {*origin.excluded} - {speaker}
        told, is_for_all = people - left_out, not left_out
    if is_for_all and kind != "whisper":
        return None
    sender = speaker
    if speaker is None or not is_person(speaker):
        sender = origin.caller
    return {*told, sender} - {listener, None}


def _audience(
    listener: DefaultObject,
    speaker: DefaultObject,
    circle: set[DefaultObject] | None,
) -> str:
    """Who may know of a line: a circle, or all in the room."""
    if circle is not None:
        return private(map(stable_id, circle))
    return room_audience(listener, speaker)


def _is_named(room: DefaultObject | None, line: str, words: str) -> bool:
    """Whether words of a line belong to the name that it gives to a thing here."""
    if room is None:
        return False
    things = (obj for holder in (room, *room.contents) for obj in holder.contents)
    keys = (plain(thing.key).casefold() for thing in things if not is_person(thing))
    return any(words.casefold() in key and key in line.casefold() for key in keys)


def _as_known(line: str, listener: DefaultObject) -> str:
    """A line with the names that a listener knows for the true ones that a game shows in it.

    True names are whole words, in upper or lower case, and hidden unless the known name has them.
    """
    hidden, lower = {}, line.casefold()
    people = [listener, *filter(is_person, around(listener))]
    for person in people:  # few are asked for their names: that takes time
        key = plain(person.key)
        if key and key.casefold() in lower:
            name = name_of(person, listener)
            if not regex.search(bordered(key), name, regex.V1):
                hidden[key] = name
    if not hidden:
        return line
    # What somebody is called may hold another one's true name.
    names = [*hidden, *(name_of(person, listener) for person in people)]
    names.sort(key=len, reverse=True)
    pattern = "|".join(f"{bordered(w)}|(?<=['’]){regex.escape(w)}{BEHIND}" for w in names)
    flags = regex.V1 | regex.IGNORECASE
    known = {key.casefold(): name for key, name in hidden.items()}
    return regex.sub(pattern, lambda m: known.get(m[0].casefold(), m[0]), line, flags=flags)


def _thing_event(
    listener: DefaultCharacter,
    thing: DefaultObject | None,
    line: str,
    kind: object,
    origin: Origin,
) -> Message | None:
    """What comes from nobody, as a notice: a crate that speaks, weather, a script's line.

    It is none where no player is there to see it, where it was the notice before this one, or where
    the body alone is told it, without a source or while it acts, as what the game says to whoever
    types.
    """
    if not any(obj.has_account for obj in around(listener)):
        return None
    circle = _circle(listener, thing, kind, origin)
    is_answer = circle == set() and (thing is None or listener.ndb.ai_told is not None)
    if is_answer or listener.ndb.ai_noticed == line:
        return None
    listener.ndb.ai_noticed = line
    audience = _audience(listener, listener, circle)
    if thing is not None and _is_unseen(listener, thing):
        line = _without_name(line, plain(thing.key))
    return noticed_event(listener, _as_known(line, listener), None, audience)


def _without_name(line: str, name: str) -> str:
    """A line that does not begin with the name of somebody or something unseen."""
    return re.sub(rf"^\W*{re.escape(name)}(?!\w)", UNSEEN, line)


def _body(obj: object) -> DefaultObject | None:
    """The character that speaks: of an account one that it plays."""
    if isinstance(obj, AccountDB):
        return next(iter(obj.get_all_puppets()), None)
    if isinstance(obj, ObjectDB):
        return obj
    return None


def heard(
    listeners: Iterable[DefaultObject],
    speaker: DefaultObject,
    text: str,
    kind: str = "say",
    to: DefaultObject | None = None,
) -> None:
    """Let the assistants among some listeners hear a line, which they answer as if it were typed.

    For a game that speaks in ways that nothing tells, such as by its own protocol.

    Args:
        listeners: All who are told it. A line that not all players and assistants in the room are
            told is private to them.
        speaker: Who says or does it.
        text: The words without what the game shows around them; of a pose what stands behind the
            name, as ``waves.``
        kind: ``say``, ``whisper`` (private to the listeners) or ``pose``.
        to: Whom it is said to, where only that one is to answer.
    """
    if kind not in ("say", "whisper", "pose"):
        raise ValueError(f"`kind` is `{kind}`: it must be say, whisper or pose")
    if is_ignored(speaker):
        return
    told = {*listeners}
    people, words = {*filter(is_person, told), speaker}, plain(text)[:LINE_CHARS]
    for listener in filter(is_assistant, told - {speaker}):
        absent = {*around(listener)} - told - {speaker}
        is_for_some = any(obj.has_account or is_assistant(obj) for obj in absent)
        channel, content, circle = kind, words, None
        if kind == "whisper" or not _is_beside(listener, speaker) or is_for_some:
            channel, circle = _aside(listener, speaker), people - {listener}
        audience = _audience(listener, speaker, circle)
        if kind == "pose":
            channel, content = kind, f"{name_of(speaker, listener)} {words}"
        event = event_of(listener, speaker, channel, content, audience)
        if to is not None:
            event = replace(event, metadata={**event.metadata, TO: stable_id(to)})
        listener.listen(event)


def event_of(
    listener: DefaultObject,
    speaker: TypedObject,
    channel: str,
    content: str,
    audience: str,
    is_unseen: bool = False,
) -> Message:
    """An event with its own id and time; the speaker bears the name that the listener knows.

    What another assistant answers goes with whom it answers, when they are forgotten.
    """
    known, metadata = speaker_of(speaker, listener), {"assistant": is_assistant(speaker)}
    if is_unseen:
        known = replace(known, key=UNSEEN)
    if is_assistant(speaker) and (script := speaker.assistant) and script.runtime.asker:
        metadata[ASKER] = script.runtime.asker
    return Message(
        "user",
        storable(content),
        id=new_id("m"),
        created_at=utc_iso(time.time()),
        speaker=known,
        audience=audience,
        channel=channel,
        metadata=metadata,
    )


def paged_event(
    listener: DefaultObject, account: AccountDB, text: str, puppet: DefaultObject | None
) -> Message:
    """A page of an account, which typed it as `puppet`; any that it plays if None."""
    body = puppet or _body(account) or account
    event = event_of(listener, body, "page", text[:LINE_CHARS], private([stable_id(body)]))
    # The answer is for who paged, whoever plays that character by then.
    return replace(event, metadata={**event.metadata, "account": stable_id(account)})


def noticed_event(
    listener: DefaultObject, text: str, from_obj: TypedObject | None, audience: str
) -> Message:
    """What a game lets an assistant know without speech; without a cause it is a bare notice."""
    if audience == PUBLIC:
        audience = room_audience(listener, listener)
    event = event_of(listener, from_obj or listener, "notice", plain(text)[:LINE_CHARS], audience)
    if from_obj is None:
        return replace(event, role="system", speaker=None)
    return event


def subscribe(listener: DefaultCharacter) -> None:
    """Let a body hear the channels that ``EVENNIA_AI_CHANNELS`` names."""
    for name in conf.setting("CHANNELS"):
        for channel in ChannelDB.objects.channel_search(name):
            if not channel.has_connection(listener):
                channel.connect(listener)


def channel_event(
    listener: DefaultObject, text: str, channel: TypedObject, sender: TypedObject | None
) -> Message | None:
    """A line on a channel, for staff alone unless everybody may listen there; never answered."""
    names = map(str.lower, conf.setting("CHANNELS"))
    if sender is None or channel.key.lower() not in names or is_ignored(sender):
        return None
    audience = STAFF
    if channel.locks.get("listen") == "listen:all()":
        audience = PUBLIC
    words = storable(plain(text)[:LINE_CHARS])
    return event_of(listener, sender, f"on {channel.key}"[:24], words, audience)


def is_ignored(speaker: TypedObject | None) -> bool:
    """Whether a player wants no assistant to listen, by `ai/ignore`."""
    known = (speaker, getattr(speaker, "account", None))
    # A session, before it has logged in, has no tags.
    return any(is_tagged(each, IGNORED_TAG) for each in known if hasattr(each, "tags"))


def room_audience(listener: DefaultObject, speaker: DefaultObject) -> str:
    """Public, or in a room marked private those who stand there besides a listener."""
    room = listener.location
    if not is_private_room(room):
        return PUBLIC
    people = {*filter(is_person, room.contents), *hearers(room), speaker}
    return private(map(stable_id, people - {listener}))
