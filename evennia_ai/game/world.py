"""Acting and seeing in the game, for one assistant's body. The only way a tool touches Evennia.

Text of models never reaches Evennia's parsers: it is escaped and sent as a mapping's value.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any

import regex
from django.conf import settings
from django.utils.timezone import get_default_timezone
from evennia import (
    AccountDB,
    Command,
    DefaultCharacter,
    DefaultGuest,
    DefaultObject,
    ObjectDB,
    settings_default,
)
from evennia.commands.cmdhandler import cmdhandler
from evennia.typeclasses.models import TypedObject
from evennia.utils import logger
from evennia.utils.ansi import raw
from evennia.utils.create import create_message
from evennia.utils.gametime import gametime
from twisted.internet.defer import Deferred

from evennia_ai import conf
from evennia_ai.errors import NotObeyedError, ToolError
from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.game.hearing import SIGN, is_ignored, room_audience
from evennia_ai.game.lore import verdicts
from evennia_ai.game.people import RoomMemory, manners_of
from evennia_ai.game.rights import as_player
from evennia_ai.game.running import (
    in_order,
    run_command,
    told_meanwhile,
)
from evennia_ai.game.seeing import (
    described,
    face_of,
    find,
    hearers,
    is_assistant,
    is_person,
    name_of,
    names_of,
    plain,
    seen,
    stable_id,
)
from evennia_ai.history.audience import STAFF, is_private, members
from evennia_ai.history.frames import UNSEEN
from evennia_ai.language.script import folded, normalized
from evennia_ai.language.times import spoken_time, spoken_units
from evennia_ai.llm_interaction.reply import clean_reply, pieces, speakable
from evennia_ai.protocol import Named, Told
from evennia_ai.rag_memory.entities import bare
from evennia_ai.rag_memory.lore import Verdict
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.turns.routine import BARRED, LOST, THERE, WALKS

DESCRIPTION_CHARS = 600
# Locks that Evennia and this package ask before they move a thing or somebody.
_ACT_LOCKS = ("traverse", "get", "get_from", "drop", "give")
# Exits of the longest way by a routine.
MOST_EXITS = 10
# What the assistant calls a room that it cannot see.
DARK = "a place too dark to see"
# Words of a text that are looked up as names; databases limit the values in a query.
_NAME_WORDS = 60
# Evennia finds links (|lc, |lu, |lt, |le) after it has turned doubled pipes into single ones, so
# doubling does not protect them: the pipe before such a tag becomes a broken one.
_LINK_TAG = re.compile(r"\|(?=l[cute])")
_ARTICLE = re.compile(r"^(?:the|an?|some|another|my|your)\s+", re.IGNORECASE)
# What `rpsystem` puts before a speech for the speaker's name.
_OWN_REFERENCE = re.compile(r"[/@]me\s+", re.IGNORECASE)
# Its form of speech inside a pose, which each listener understands as far as they know the
# language: `"hello"`, or `elvish"hello"`.
_SPEECH = re.compile(r'((?<!\w)\w+)?(".*")')
_MEASURE = re.compile(r"^.*\bof\s+", re.IGNORECASE)  # `a pint of ale` may be drawn as ale


def literal(text: str) -> str:
    """A text escaped so that clients find neither colours nor links; link tags get a ``¦``."""
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = text.replace("$", "\\$")
    return str(raw(_LINK_TAG.sub("¦", text)))


def _reason(told: Sequence[str]) -> str:
    return ": " + " ".join(told).rstrip(".") if told else ""


@dataclass(frozen=True)
class _Pose:
    """A text that each in a room is shown as they understand it.

    Evennia's `msg_contents` asks it for each listener's text, as it asks an object for its name.
    """

    text: str
    speaker: DefaultCharacter

    def get_display_name(self, looker: DefaultObject, **kwargs: Any) -> str:
        """What a listener gets of it."""
        process = getattr(looker, "process_language", None)
        if process is None:
            return self.text
        return _SPEECH.sub(lambda m: process(m[2], self.speaker, m[1]), self.text)


class GameHandler:
    """The game as one assistant meets it: text is escaped, errors are `ToolError`."""

    def __init__(self, character: DefaultCharacter):
        self.character = character

    @property
    def _room(self) -> DefaultObject:
        room = self.character.location
        if room is None:
            raise ToolError("you are nowhere; staff must put you into a room")
        return room

    def _name(self, obj: DefaultObject) -> str:
        return name_of(obj, self.character)

    def say(self, text: str, to: str | None = None) -> Told:
        """Speak aloud, in pieces of MUD length; `to` somebody here (stable id) where it says so.

        Only Evennia's own way of saying things can name a listener.
        """
        room = self._room
        person = next((obj for obj in room.contents if to and stable_id(obj) == to), None)
        options: dict[str, Any] = {}
        if person is not None and type(self.character).at_say is DefaultObject.at_say:
            line = '{object} says to {listener}, "{speech}"'
            options = {"msg_location": line, "mapping": {"listener": person}}
        return self._voice(self._pieces(text), **options)

    def _voice(
        self, pieces: list[str], people: Sequence[DefaultObject] | None = None, **options: Any
    ) -> Told:
        """Say by the game's own command, or the body's hooks; whisper to some people by those."""
        body = self.character
        if people:
            options = {"whisper": True, "receivers": people}

        def speak(piece: str) -> None:
            speech = body.at_pre_say(piece, **({} if "mapping" in options else options))
            if speech and (reference := _OWN_REFERENCE.match(speech)):
                self._pose(speech[reference.end() :], "whisper" if people else "say", people)
            elif speech:
                body.at_say(speech, msg_self=None, **options)
            else:
                raise ToolError("the game lets you say nothing here")

        way = "" if people else "say"
        return in_order(partial(self._utter, piece, partial(speak, piece), way) for piece in pieces)

    def emote(self, text: str) -> Told:
        """Pose by the game's own command, else: the name, then the text."""
        pieces = self._pieces(text)[:1]
        return in_order(partial(self._utter, p, partial(self._pose, p), "pose") for p in pieces)

    def _utter(self, text: str, act: Callable[[], object], way: str) -> Told:
        """Say or pose something by the command that ``EVENNIA_AI_SPEAK_BY`` names, else by hooks.

        Either is done once, whatever comes of it: what others have heard is never sent again.
        """
        name = conf.setting("SPEAK_BY").get(way)
        if name and (command := self._command(name)):
            return run_command(self.character, command, text.replace("\n", " "))
        return tuple(self._told(act))

    def _pose(
        self, text: str, kind: str = "pose", people: Sequence[DefaultObject] | None = None
    ) -> None:
        """Show a text behind the body's name, as each knows it, to some people or the room."""
        body, line, pose = self.character, "{actor} {pose}", _Pose(text, self.character)
        if people is None:
            mapping = {"actor": body, "pose": pose}
            self._room.msg_contents(text=(line, {"type": kind}), mapping=mapping, from_obj=body)
            return
        for person in people:
            name = body.get_display_name(person)
            shown = line.format(actor=name, pose=pose.get_display_name(person))
            person.msg(text=(shown, {"type": kind}), from_obj=body)

    def whisper(self, target: str, text: str, audience: str = "public") -> Told:
        """Whisper to somebody present; in a private talk only to its members."""
        person = self._person(target)
        if is_private(audience) and stable_id(person) not in members(audience):
            raise ToolError(f"this talk is private and {self._name(person)} is not part of it")
        return self._voice(self._pieces(text), [person])

    def _page(self, speaker_id: str, shown: str) -> None:
        """Answer a page: shown if they are online, kept as a page if not."""
        account = self._account_of(speaker_id)
        if account is None:
            raise ToolError("they are gone")
        locks = f"read:id({account.id}) or perm(Admin);delete:id({account.id}) or perm(Admin)"
        create_message(
            self.character, shown, receivers=[account], locks=locks, tags=[("page", "comms")]
        )
        name = plain(self.character.get_display_name(account))
        account.msg(f"|c{name}|n |wpages:|n {shown}", from_obj=self.character)

    def _account_of(self, speaker_id: str) -> AccountDB | None:
        """The account behind the speaker of a page: the one that sent the newest under that id."""
        script = self.character.assistant
        pages = (
            message.metadata.get("account")
            for message in reversed(script.history.messages() if script else ())
            if message.channel == "page" and message.speaker_id == speaker_id
        )
        found = find(next(pages, None) or speaker_id)
        return found if isinstance(found, AccountDB) else getattr(found, "account", None)

    def speak(
        self, text: str, audience: str, channel: str, asker: str | None, to: str | None = None
    ) -> Told:
        """Answer a turn's audience the way it spoke; a whisper goes to all of a talk.

        Said aloud, words and poses come in their order; `to` is the stable id of whom the words
        are for, where they say so.
        """
        if audience == STAFF:
            raise ToolError("what is for staff alone is not spoken")
        is_secret = is_private(audience) and not self.only_present(audience)
        if channel == "page" and asker:
            self._page(asker, " ".join(self._pieces(text)))
            return ()
        if is_secret or (channel == "whisper" and asker):
            first = self._person(asker or next(iter(members(audience))))
            circle = [obj for obj in self._room.contents if stable_id(obj) in members(audience)]
            return self._voice(self._pieces(text), list(dict.fromkeys([first, *circle])))
        return in_order(
            partial(self.say, piece.text, to)
            if piece.is_spoken
            else partial(self.emote, piece.text)
            for piece in pieces(text, self.character.key)
        )

    def show(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Show a line about the assistant to a turn's audience alone; nobody hears it as speech."""
        self._pose(literal(text), SIGN, self._shown_to(audience, channel, asker))

    def show_typing(self, is_typing: bool, audience: str, channel: str, asker: str | None) -> None:
        """Let web clients show that the assistant thinks, as Evennia 6.1 shows who types."""
        if not getattr(settings, "WEBCLIENT_TYPING_ENABLED", False):
            return
        for person in self._shown_to(audience, channel, asker):
            name = plain(self.character.get_display_name(person))
            state = {"name": name, "state": is_typing}
            for session in person.sessions.all():
                if session.protocol_flags.get("ISTYPING", True):
                    session.msg(is_typing={"type": "typing", "payload": state})

    def _shown_to(self, audience: str, channel: str, asker: str | None) -> list[Any]:
        """Who may know of a turn: those here, its circle alone, or the account that paged."""
        here = self.character.location.contents if self.character.location else ()
        account = self._account_of(asker) if channel == "page" and asker else None
        circle = members(audience) if is_private(audience) else None
        seers = [obj for obj in here if circle is None or stable_id(obj) in circle]
        return [account] if account else [obj for obj in seers if obj is not self.character]

    def account_id(self, asker: str) -> str:
        """Who answers for what somebody asks: an account, a guest's address; empty for nobody."""
        account = self._account(asker)
        return _holder(account) if account else ""

    def _account(self, asker: str) -> AccountDB | None:
        found = find(asker)
        account = found if isinstance(found, AccountDB) else getattr(found, "account", None)
        return account or self._account_of(asker)  # who paged need not be in the game

    def payer(self, asker: str) -> str:
        """Whose lines caused what somebody asks, to bound that; empty for staff."""
        person, account = find(asker), self._account(asker)
        room = self.character.location
        if account is None and room is not None:  # a scripted character, or an assistant
            asker = room.ndb.ai_manners.talk.player if room.ndb.ai_manners else asker
            person, account = find(asker), self._account(asker)
        if account is None:
            return asker
        controls = isinstance(person, DefaultObject) and self.character.assistant.may_change(person)
        is_staff = controls or account.is_superuser or account.check_permstring("Builder")
        return "" if is_staff else _holder(account)

    def account_name(self, account: str) -> str:
        """The name of an account, by stable id."""
        found = find(account)
        return plain(found.key) if found else account

    def look(self, target: str | None = None, asker: str | None = None) -> str:
        """The room, or one thing in it or carried, as the assistant sees it.

        Nothing is shown that `asker` may not see themselves.
        """
        body, person, text = self.character, self._asker(asker), ""
        if target and not self._found(target, [*self._within_reach(target, asker), body]):
            # A detail of Evennia's ExtendedRoom.
            text = getattr(self._room, "get_detail", lambda *_: "")(target, body)
        thing = self._room if target is None or text else self._thing(target, asker=asker)
        for looker in filter(None, (body, person)):
            if not thing.access(looker, "view", default=True):
                raise ToolError(f"you cannot see {target or 'anything here'}")
        if person is not None and not text:  # what the one who asks sees, if that is less
            mine, theirs = (set(seen(thing, each)) - {body, person} for each in (body, person))
            if not mine <= theirs:
                both = ", ".join(map(self._name, mine & theirs))
                text = "\n".join(filter(None, (self._name(thing), described(thing, body), both)))
        return plain(text or thing.return_appearance(body))[: 4 * DESCRIPTION_CHARS]

    def move(self, direction: str, asker: str | None = None) -> str:
        """Walk through an exit, by its locks; returns what is seen there.

        For an `asker` whom it does not obey, it walks only where they may walk too.
        """
        way = self._exit(direction, asker)
        if not self._lets(asker, way, "traverse"):
            raise ToolError(f"the way `{self._name(way)}` is barred to you")
        self._go(way)
        return self.look(asker=asker)

    def _exit(self, name: str, asker: str | None) -> DefaultObject:
        """The exit that a name or a stable id means."""
        wanted = folded(name.strip())
        self._room  # noqa: B018 - raises where there is none
        ways = [obj for obj in self._seen(asker) if obj.destination]
        by_id = [way for way in ways if name.strip() == stable_id(way)]
        by_name = [way for way in ways if wanted in map(folded, names_of(way, self.character))]
        for way in (*by_id, *by_name):
            return way
        known = ", ".join(map(self._name, ways)) or "none"
        raise ToolError(f"there is no exit `{name}`; exits: {known}")

    def _go(self, way: DefaultObject) -> None:
        """Walk through an exit, by its locks; `ToolError` where that fails."""
        before = self._room

        def walk() -> None:
            if way.access(self.character, "traverse"):
                way.at_traverse(self.character, way.destination)
            elif way.db.err_traverse:
                self.character.msg(way.db.err_traverse)
            else:
                way.at_failed_traverse(self.character)

        told = self._told(walk)
        if self.character.location is before:
            raise ToolError(f"you could not go `{self._name(way)}`{_reason(told)}")

    def step_towards(self, place: str) -> str:
        """Walk through the next exit on the way to a room, by name: a word of `turns.routine`.

        By ways that are open to the body; where there are none, up to the barred one.
        """
        way = self._way(bare(place), True) or self._way(bare(place), False)
        if way is None or way is self._room:
            return LOST if way is None else THERE
        try:
            self._go(way)
        except ToolError:
            return BARRED
        return WALKS

    def _way(self, place: str, is_open: bool) -> DefaultObject | None:
        """The first exit of a shortest way of at most `MOST_EXITS` to a room; the room if here."""
        body, known = self.character, {self._room}
        heads = [(self._room, self._room)]
        for _ in range(MOST_EXITS + 1):
            steps: list[tuple[DefaultObject, DefaultObject]] = []
            for room, first in heads:
                names = {bare(plain(n)) for n in (room.key, f"#{room.id}", *room.aliases.all())}
                if place in names or (place == "home" and room is body.home):
                    return first
                for way in room.exits:
                    is_seen = way.access(body, "view", default=True)
                    is_new = way.destination not in known
                    if is_seen and is_new and (not is_open or way.access(body, "traverse")):
                        known.add(way.destination)
                        steps.append((way.destination, way if first is self._room else first))
            heads = steps
        return None

    def _command(self, name: str) -> Command | None:
        """A command that the body has and that a player may type."""
        command = self.character.cmdset.current.get(name)
        may = command is not None and command.access(as_player(self.character), "cmd")
        return command if may else None

    def _own(self, name: str) -> Command | None:
        """A command that the body has and that a player may type, if it is the game's own."""
        own = self._command(name)
        return None if type(own).__module__.startswith("evennia.commands.") else own

    def _told(
        self, act: Callable[[], object], own: Command | None = None, arguments: str = ""
    ) -> list[str]:
        """Do something as the game does it; returns what the body alone is told.

        The game's own command is typed, with names alone; without one, and where that fails with
        an error, the hooks are called that Evennia's command calls.
        """
        body = self.character
        with told_meanwhile(body) as told:
            try:
                if own is not None:
                    # The command itself: no parser, nick or stack of commands sees the words.
                    cmdhandler(body, f" {arguments}", callertype="object", cmdobj=own)
                if own is None or any(map(has_failed, told)):  # made for players alone
                    told.clear()
                    act()
            except ToolError as error:
                raise ToolError(f"{error}{_reason(told)}") from error
        return told

    def get(self, thing: str, asker: str | None = None) -> str:
        """Pick something up in the room, for whoever asks; tells what is carried then."""
        lying = self._lying(thing, asker)
        self._check_order(lying, asker)
        taken = self._pick_up(lying)
        return f"You pick up {self._numbered(taken)}. {self._carried()}"

    def drop(self, thing: str, asker: str | None = None) -> str:
        """Put down something carried, for whoever asks; tells what is carried then."""
        body, room, burden = self.character, self._room, self._thing(thing, self.character.contents)
        self._check_order(burden, asker)
        name = self._numbered(burden)

        def put_down() -> None:
            if burden.at_pre_drop(body) and burden.move_to(room, quiet=True, move_type="drop"):
                burden.at_drop(body)
                self._show_act("$You() $conj(drop) {thing}.", thing=name)

        told = self._told(put_down, self._own("drop"), self._typed(burden))
        if burden.location is body:
            raise ToolError(f"you cannot drop {name}{_reason(told)}. {self._carried()}")
        return f"You drop {name}. {self._carried()}"

    def give(self, thing: str, to: str, asker: str | None = None) -> str:
        """Hand something carried, else something that lies here, to somebody here."""
        person = self._person(to, asker)
        if person is self.character:
            raise ToolError("you cannot give anything to yourself")
        gift = self._gift(thing, asker)
        self._check_order(gift, asker)
        if gift.location is not self.character:
            gift = self._pick_up(gift)
        is_seen, body = person in self._seen(), self.character
        receiver, name = self._name(person) if is_seen else UNSEEN, self._numbered(gift)

        def hand_over() -> None:
            if gift.at_pre_give(body, person) and gift.move_to(
                person, quiet=True, move_type="give"
            ):
                gift.at_give(body, person)
                if is_seen:
                    line = "$You() $conj(give) {thing} to {receiver}."
                    self._show_act(line, [person], thing=name, receiver=person)
                person.msg(f"{body.get_display_name(person)} gives you {name}.")

        own = self._own("give") if is_seen else None
        told = self._told(hand_over, own, f"{self._typed(gift)} to {self._typed(person)}")
        if gift.location is not person:
            raise ToolError(
                f"you could not give {name} to {receiver}{_reason(told)}. {self._carried()}"
            )
        return f"You give {name} to {receiver}. {self._carried()}"

    def _gift(self, name: str, asker: str | None) -> DefaultObject:
        """Something carried, else something that lies here."""
        carried = self._found(name, self.character.contents)
        return carried[0] if carried else self._lying(name, asker)

    def _show_act(self, line: str, exclude: Sequence[DefaultObject] = (), **mapping: Any) -> None:
        self._room.msg_contents(line, exclude=exclude, from_obj=self.character, mapping=mapping)

    def company(self, idle_s: float) -> tuple[str, ...]:
        """Players seen here who are not idle and let assistants listen, by stable id."""
        since = time.time() - idle_s
        return tuple(
            stable_id(obj)
            for obj in self._seen()
            if any(session.cmd_last_visible > since for session in obj.sessions.all())
            and not is_ignored(obj)
        )

    def audience(self) -> str:
        """Who can know what is said aloud here: everybody, or those in a private room."""
        return room_audience(self.character, self.character)

    @property
    def manners(self) -> RoomMemory:
        """What is remembered of the talk in this room."""
        return manners_of(self._room)

    def present(self, asker: str | None = None) -> tuple[dict[str, Any], ...]:
        """People here whom the assistant sees, and `asker` too: id, name, player, assistant.

        The id is that of a mask where they wear one.
        """
        return tuple(
            {
                "id": face_of(obj, self.character),
                "key": self._name(obj),
                "player": bool(obj.has_account),
                "assistant": is_assistant(obj),
            }
            for obj in self._seen(asker)
            if is_person(obj)
        )

    def here(self) -> dict[str, bool]:
        """Everything in the room, seen or not, by stable id: whether somebody plays it."""
        room = self.character.location
        others = room.contents if room is not None else ()
        return {stable_id(o): bool(o.has_account) for o in others if o is not self.character}

    def _asker(self, asker: str | None) -> DefaultObject | None:
        person = find(asker) if asker else None
        return person if isinstance(person, DefaultObject) else None

    def _seen(self, asker: str | None = None) -> list[DefaultObject]:
        """What is in the room besides the assistant, as far as it sees it, and `asker` too.

        Somebody always sees themselves.
        """
        room, person = self.character.location, self._asker(asker)
        if room is None:
            return []
        theirs = None if person is None else {*seen(room, person), person}
        return [obj for obj in seen(room, self.character) if theirs is None or obj in theirs]

    def clock(self, is_game: bool, now: float) -> datetime:
        """Date and time, of the game's own time or of the server's time zone at `now`."""
        seconds = gametime(absolute=True) if is_game else now
        return datetime.fromtimestamp(seconds, get_default_timezone())

    def reaches(self, person: str, anywhere: bool) -> bool:
        """Whether a player can be told something now: seen here, or `anywhere`.

        An account that plays nobody is told by a page, as it has paged.
        """
        found = find(person)
        if isinstance(found, AccountDB):
            return anywhere and found.sessions.count() > 0 and not is_ignored(found)
        if not isinstance(found, DefaultObject) or not found.has_account or is_ignored(found):
            return False
        return anywhere or found in self._seen()

    def tell(self, person: str, text: str) -> None:
        """Tell a player something as it is: by a whisper here, by a page elsewhere."""
        found, words = find(person), literal(text)
        if found in self._seen():
            self._voice([words], [found])
        else:
            self._page(person, words)

    def player_called(self, name: str) -> tuple[str, str]:
        """Name and stable id of the one player's character that a name means."""
        wanted = folded(name.strip())
        present = {each["id"]: each["key"] for each in self.present() if each["player"]}
        known = {**{p.id: p.name for p in self.people_in(name).values()}, **present}
        people = {}
        for each, key in known.items():
            person = find(each) if wanted in (folded(key), each) else None
            if isinstance(person, DefaultObject) and is_person(person) and not is_assistant(person):
                people[each] = key
        people = {each: people[each] for each in people if each in present} or people
        if len(people) != 1:
            raise ToolError(f"{'several' if people else 'no'} players are called `{name[:60]}`")
        [(person_id, key)] = people.items()
        return key, person_id

    def time(self, now: float) -> str:
        """The time as people say it: of the game's calendar, else of the server's time zone.

        A game has a calendar of its own if it sets ``TIME_UNITS`` (as for Evennia's contrib
        `custom_gametime`) or ``TIME_GAME_EPOCH``, or changes ``TIME_FACTOR``.
        """
        if units := getattr(settings, "TIME_UNITS", None):
            return spoken_units(gametime(absolute=True), units)
        changed = settings.TIME_FACTOR != settings_default.TIME_FACTOR
        return spoken_time(self.clock(changed or settings.TIME_GAME_EPOCH is not None, now))

    def place(self, asker: str | None = None) -> dict[str, Any]:
        """The room as the assistant and `asker` see it: id, name, description, exits.

        A room that one of them cannot see has no id.
        """
        room, body = self.character.location, self.character
        lookers = [*filter(None, (body, self._asker(asker)))]
        if room is None or not all(room.access(each, "view", default=True) for each in lookers):
            key = "nowhere" if room is None else DARK
            return {"id": "", "key": key, "description": "", "exits": []}
        return {
            "id": stable_id(room),
            "key": self._name(room),
            "description": described(room, body)[:DESCRIPTION_CHARS],
            "exits": [self._name(way) for way in self._seen(asker) if way.destination],
        }

    def things(self, asker: str | None = None) -> dict[str, str]:
        """What the assistant and `asker` see here besides people and ways out: names by id."""
        objects = (o for o in self._seen(asker) if not o.destination and not is_person(o))
        return {stable_id(o): self._numbered(o) for o in objects}

    def has_things_for(self, asker: str) -> bool:
        """Whether the assistant may fetch or give some thing that it carries or that lies here."""
        body = self.character
        lying = [obj for obj in self._seen(asker) if not obj.destination and not is_person(obj)]
        boxes = [obj for obj in (*lying, *body.contents) if obj.access(body, "get_from")]
        things = [*body.contents, *(obj for obj in lying if obj.access(body, "get"))]
        things += [obj for box in boxes for obj in box.contents]
        return any(self._may_order(obj, asker) for obj in things)

    def carried(self) -> tuple[str, ...]:
        """What the body carries, by name."""
        return tuple(map(self._numbered, self.character.contents))

    def identify(self, name: str) -> dict[str, str] | None:
        """Somebody or something seen here, by name, or here by stable id: id, key, kind.

        The id is that of a mask where they wear one.
        """
        room = self.character.location
        wanted = folded(name.strip())
        if room is None:
            return None
        visible = {room, self.character, *self._seen()}
        for obj in [room, *room.contents]:
            names = names_of(obj, self.character) if obj in visible else ()
            if name.strip() == stable_id(obj) or wanted in map(folded, names):
                kind = "place" if obj is room else "person" if is_person(obj) else "thing"
                key = self._name(obj) if obj in visible else UNSEEN
                return {"id": face_of(obj, self.character), "key": key, "kind": kind}
        return None

    def named(self, name: str, place: str, asker: str | None = None) -> Named:
        """What a name or a stable id means in a place of `parameters.Name`; `ToolError` if none."""
        match place:
            case "people":
                meant = self._person(name, asker)
                if meant is self.character:
                    raise ToolError("that is you yourself")
            case "exit":
                meant = self._exit(name, asker)
            case "carried":
                meant = self._thing(name, self.character.contents)
            case "lying":
                meant = self._lying(name, asker)
            case "lying or carried":
                meant = self._gift(name, asker)
            case _:
                meant = self._thing(name, asker=asker)
        return self._as_named(meant)

    def named_here(self, asker: str | None = None) -> list[Named]:
        """All that a word of `asker` may name here: people, things, exits, what it carries."""
        if self.character.location is None:
            return []
        return list(map(self._as_named, self._within_reach("", asker)))

    def _as_named(self, obj: DefaultObject) -> Named:
        kind = "person" if is_person(obj) else "exit" if obj.destination else "thing"
        if obj is self.character.location:
            kind = "place"
        return Named(stable_id(obj), names_of(obj, self.character), kind)

    def _within_reach(self, name: str, asker: str | None) -> list[DefaultObject]:
        """What a name may mean: what is seen and carried, the room, and whoever has it as id.

        Where somebody asks, that id names nobody unseen but them.
        """
        by_id = [obj for obj in self._room.contents if stable_id(obj) == name.strip()]
        if asker is not None and name.strip() != asker:
            by_id = []
        return [*by_id, *self._seen(asker), *self.character.contents, self._room]

    def addressee(self, name: str) -> dict[str, str] | None:
        """Whom `whisper` would reach by this name or stable id: id and key; None if nobody."""
        try:
            person = self._person(name)
        except ToolError:
            return None
        return {"id": stable_id(person), "key": self._name(person)}

    def people_in(self, text: str) -> dict[str, Profile]:
        """Profiles by stable id of everybody a text may name, apart from the assistant itself.

        They are characters of the game and people the assistant has a profile of.
        """
        profiles = self.character.entities.profiles()
        known = {key: profile for key, profile in profiles.items() if profile.kind == "person"}
        # Runs of up to three words, as names are usually written.
        parts = regex.findall(r"\w[\w'’-]*", text)[:_NAME_WORDS]
        runs = {" ".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, i + 4)}
        forms = {form for run in runs for form in (run, run.lower(), run.capitalize(), run.title())}
        forms |= {made for f in forms for made in (normalized("NFC", f), normalized("NFD", f))}
        for person in ObjectDB.objects.filter(db_key__in=forms) if forms else ():
            # A true name means nobody whom the body knows by another one.
            if isinstance(person, DefaultCharacter) and self._name(person) == plain(person.key):
                known[stable_id(person)] = Profile(stable_id(person), plain(person.key), "person")
        known.pop(stable_id(self.character), None)
        return known

    def allowed(self, lock: str, asker: str | None) -> bool:
        """Whether a tool's lock passes both the assistant and the one who asked."""
        people = [self.character] if asker is None else [self.character, find(asker)]
        return all(person is not None and self._passes(person, lock) for person in people)

    def needs_rank(self, lock: str, objects: Iterable[Named], asker: str | None) -> bool:
        """Whether an act passes a lock only by more than a player's rights; whose does not matter.

        What the assistant alone has such rights to is refused. Those it obeys need not pass the
        locks of objects.

        Args:
            lock: The tool's.
            objects: What the act is done to.
            asker: Stable id of the one who asks, None if nobody does.

        Raises:
            ToolError: If the assistant passes a lock by such rights and the one who asks does not
                pass it.
        """
        things = [thing for named in objects if (thing := find(named.id)) is not None]
        things += [thing.location for thing in things if thing.location is not None]

        def passed(somebody: TypedObject, **strict: bool) -> set[tuple[object, str]]:
            locks = product(things, _ACT_LOCKS)
            names = {(each, name) for each, name in locks if each.access(somebody, name, **strict)}
            return names | ({(None, lock)} if self._passes(somebody, lock) else set())

        def by_rank(somebody: TypedObject) -> set[tuple[object, str]]:
            return passed(somebody) - passed(as_player(somebody), no_superuser_bypass=True)

        own, person = by_rank(self.character), find(asker or "")
        if own - (passed(person) if person is not None else set()):
            raise ToolError("that is barred to whoever asks: it needs more than a player's rights")
        theirs = by_rank(person) if person is not None else set()
        if asker is not None and self.obeys(asker):
            theirs &= {(None, lock)}
        return bool(own | theirs)

    def has_turned_away(self, speaker: str) -> bool:
        """Whether somebody here talks with somebody else by now."""
        own, room = self.character.stable_id, self.character.location
        return room is not None and manners_of(room).talk.partners.get(speaker, (own,))[0] != own

    def obeys(self, asker: str) -> bool:
        """Whether `asker` controls the body or passes the option `obeys`."""
        person, script = find(asker), self.character.assistant
        return bool(person and script) and bool(
            self.character.access(person, "control")
            or self._passes(person, f"tool:{script.config.obeys}")
        )

    def lore(self, text: str, line: str, audience: str) -> Deferred[list[Verdict]]:
        """Fires with what of the game's lore is found, and why the rest is not used."""
        return verdicts(self.character, text, line, audience)

    def only_present(self, audience: str) -> bool:
        """Whether all who can hear here are members of a private audience: it may be said aloud."""
        room, circle = self.character.location, members(audience)
        listeners = hearers(room) if room is not None else ()
        return all(stable_id(o) in circle for o in listeners if o is not self.character)

    def _check_order(self, thing: DefaultObject, asker: str | None) -> None:
        """Raise a `ToolError` unless the assistant may fetch or give a thing for `asker`.

        It may for those it obeys, and for anybody who passes the thing's lock `give`.
        """
        if not self._may_order(thing, asker):
            known = self.identify(asker or "")
            raise NotObeyedError(known["key"] if known else "whoever asks")

    def _may_order(self, thing: DefaultObject, asker: str | None) -> bool:
        return self._lets(asker, thing, "give", default=False, no_superuser_bypass=True)

    def _lets(self, asker: str | None, thing: DefaultObject, lock: str, **strict: bool) -> bool:
        """Whether a thing's lock passes whoever asks; those it obeys need not pass it."""
        if asker is None or self.obeys(asker):
            return True
        person = find(asker)
        return person is not None and bool(thing.access(person, lock, **strict))

    def _lying(self, name: str, asker: str | None) -> DefaultObject:
        """What a name means in the room, or in a container: `sword`, `sword from the chest`.

        A container is what the lock `get_from` opens, as in Evennia's contrib `containers`; for an
        `asker` whom it does not obey, only what that opens to them too.
        """
        body, around, person = self.character, self._seen(asker), self._asker(asker)
        for box in [*around, *body.contents] if not self._found(name, around) else ():
            if not (box.access(body, "get_from") and self._lets(asker, box, "get_from")):
                continue
            theirs = seen(box, person or body)
            inside = [obj for obj in seen(box, body) if obj in theirs]
            ends = [n for n in names_of(box, body) if folded(name).endswith(folded(n))]
            parts = (name[: -len(ends[0])] if ends else name).split()
            for length in range(len(parts), 0 if ends else len(parts) - 1, -1):
                if objects := self._found(" ".join(parts[:length]), inside):
                    return objects[0]
        return self._thing(name, around)

    def _typed(self, thing: DefaultObject) -> str:
        """A name by which the game's commands find one thing: `coin-2` of several coins."""
        name = self._name(thing)
        alike = self.character.search(name, candidates=thing.location.contents, quiet=True)
        if thing not in alike or len(alike) < 2:
            return name
        number, template = alike.index(thing) + 1, settings.SEARCH_MULTIMATCH_TEMPLATE
        return str(template.format(number=number, name=name, aliases="", info="").strip())

    def _pick_up(self, thing: DefaultObject) -> DefaultObject:
        """What is carried after picking up a thing: the thing, or what it dispensed instead."""
        body, before, name = self.character, self.character.contents, self._numbered(thing)
        box = None if thing.location is self._room else thing.location
        opens = getattr(box, "at_pre_get_from", None)

        def pick_up() -> None:
            if not thing.access(body, "get"):
                body.msg(thing.db.get_err_msg or "")
            elif (
                thing.at_pre_get(body)
                and (opens is None or opens(body, thing))
                and thing.move_to(body, quiet=True, move_type="get")
            ):
                thing.at_get(body)
                self._show_act("$You() $conj(pick) up {thing}.", thing=name)

        typed = self._typed(thing) + (f" from {self._typed(box)}" if box else "")
        told = self._told(pick_up, self._own("get"), typed)
        for taken in (thing, *body.contents):
            if taken.location is body and taken not in before:
                return taken
        raise ToolError(f"you cannot pick up {name}{_reason(told) or ' now'}")

    def _numbered(self, thing: DefaultObject) -> str:
        return plain(thing.get_numbered_name(1, self.character, return_string=True))

    def _carried(self) -> str:
        return f"You carry {', '.join(self.carried()) or 'nothing'}."

    def _passes(self, obj: DefaultObject, lock: str) -> bool:
        # Without a superuser's bypass: an assistant acts with the rights they were granted.
        passes = self.character.locks.check_lockstring
        return bool(passes(obj, lock, no_superuser_bypass=True, default=False, access_type="tool"))

    def _pieces(self, text: str) -> list[str]:
        shown, left_out = speakable(clean_reply(text, [self.character.key]))
        if left_out:
            logger.log_info(
                f"[ai] {self.character.key}: {left_out} characters of a reply "
                "were too long to be said"
            )
        return [literal(piece) for piece in shown]

    def _person(self, name: str, asker: str | None = None) -> DefaultObject:
        thing = self._thing(name, asker=asker)
        if not is_person(thing):
            raise ToolError(f"{self._name(thing)} is not a person")
        return thing

    def _thing(
        self, name: str, among: Sequence[DefaultObject] | None = None, asker: str | None = None
    ) -> DefaultObject:
        """The thing or person that a name means, in the room or carried, or only `among` some.

        A stable id also names somebody unseen: who has whispered is answered.
        """
        if among is None:
            among = [*self._within_reach(name, asker), self.character]
        found = self._found(name, among)
        if not found:
            raise ToolError(f"there is no `{name}` here")
        people = [obj for obj in found if is_person(obj)]
        if len(people) > 1:
            ids = ", ".join(f"{self._name(o)} [{face_of(o, self.character)}]" for o in people)
            raise ToolError(f"there are several `{name}` here, say which id: {ids}")
        return found[0]

    def _found(self, name: str, among: Sequence[DefaultObject]) -> list[DefaultObject]:
        """Those of some things that a stable id or a name means, in whole or in its last words."""
        wanted = name.strip()
        if (obj := find(wanted)) is not None:  # whoever is called so
            return [obj] if obj in among else []
        if faces := [o for o in among if face_of(o, self.character) == wanted]:
            return faces
        bare = _ARTICLE.sub("", wanted)
        for name in dict.fromkeys((wanted, bare, _MEASURE.sub("", bare))):
            found = self.character.search(name, candidates=among, quiet=True)
            if here := [obj for obj in found if obj in among]:
                return here
        wanted = plain(wanted).lower()  # Evennia's search tells normal forms apart
        return [o for o in among if wanted in (n.lower() for n in names_of(o, self.character))]


def _holder(account: AccountDB) -> str:
    """Whose limits an account has: its own, and as a guest those of the address it plays from."""
    if not isinstance(account, DefaultGuest):
        return stable_id(account)
    for session in account.sessions.all():
        account.ndb.ai_address = session.address  # for what is answered after it has left
    return f"guest {account.ndb.ai_address or stable_id(account)}"
