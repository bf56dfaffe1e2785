"""Acting and seeing in the game, for one assistant's body. The only way a tool touches Evennia.

Text of models never reaches Evennia's parsers: it is escaped and sent as a mapping's value.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice, product
from typing import Any

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
from evennia.commands.default.general import CmdDrop, CmdGet, CmdGive
from evennia.objects.objects import ExitCommand
from evennia.typeclasses.models import TypedObject
from evennia.utils import logger
from evennia.utils.ansi import raw
from evennia.utils.create import create_message
from evennia.utils.gametime import gametime
from twisted.internet.defer import Deferred

from evennia_ai import conf
from evennia_ai.errors import NotObeyedError, ToolError
from evennia_ai.game.evennia_internals import (
    FAILED,
    act,
    as_player,
    passes,
    run_command,
    told_meanwhile,
)
from evennia_ai.game.hearing import SIGN, is_ignored, room_audience
from evennia_ai.game.lore import verdicts
from evennia_ai.game.seeing import (
    RoomMemory,
    around,
    described,
    face_of,
    find,
    hearers,
    is_assistant,
    is_person,
    manners_of,
    name_of,
    names_of,
    plain,
    rooms_from,
    seen,
    speaker_of,
    stable_id,
)
from evennia_ai.history.audience import STAFF, is_private, members
from evennia_ai.history.messages import UNSEEN, Speaker, utc_iso
from evennia_ai.language.script import folded
from evennia_ai.language.times import spoken_time, spoken_units
from evennia_ai.language.words import without_article
from evennia_ai.life import Named, Told
from evennia_ai.llm_interaction.reply import clean_reply, pieces, speakable
from evennia_ai.rag_memory.entities import Profile, bare, is_named
from evennia_ai.rag_memory.finder import Verdict
from evennia_ai.routine import BARRED, LOST, THERE, WALKS
from evennia_ai.turns.spend_book import GUEST

DESCRIPTION_CHARS = 600
# Names that a model is told of where it named something that is not there.
MOST_NAMED = 12
# Locks that Evennia and this package ask before they move a thing or somebody.
_ACT_LOCKS = ("traverse", "get", "get_from", "drop", "give")
# Rooms among which a routine looks for a place, the nearest first.
MOST_ROOMS = 300
# What the assistant calls a room that it cannot see.
DARK = "a place too dark to see"
# Evennia finds links (|lc, |lu, |lt, |le) after it has turned doubled pipes into single ones, so
# doubling does not protect them: the pipe before such a tag becomes a broken one.
_LINK_TAG = re.compile(r"\|(?=l[cute])")
# What `rpsystem` puts before a speech for the speaker's name.
_OWN_REFERENCE = re.compile(r"[/@]me\s+", re.IGNORECASE)
# What a player types to carry things, and Evennia's commands for it, for a game without its own.
ACT_BY = {
    "get": "get {thing}",
    "get_from": "get {thing} from {box}",
    "drop": "drop {thing}",
    "give": "give {thing} to {person}",
}
_EVENNIAS = {"get": CmdGet, "get_from": CmdGet, "drop": CmdDrop, "give": CmdGive}


def literal(text: str) -> str:
    """A text escaped so that clients find neither colours nor links; link tags get a ``¦``."""
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = text.replace("$", "\\$")
    return str(raw(_LINK_TAG.sub("¦", text)))


def _refusal(what: str, told: Sequence[str]) -> ToolError:
    """The error for what the game did not do, with what it told the body of it."""
    reason = " ".join(told).rstrip(".")
    return ToolError(": ".join(filter(None, (what, reason))))


class GameHandler:
    """The game as one assistant meets it: text is escaped, errors are `ToolError`.

    In a turn for somebody (`asked_by`) it shows and touches only what they may see, too.
    """

    def __init__(self, character: DefaultCharacter, asker: str | None = None):
        self.character, self.asker = character, asker

    def asked_by(self, asker: str | None) -> "GameHandler":
        """The game in a turn for somebody, by stable id."""
        return GameHandler(self.character, asker)

    @property
    def _room(self) -> DefaultObject:
        room = self.character.location
        if room is None:
            raise ToolError("you are nowhere; staff must put you into a room")
        return room

    def _name(self, obj: DefaultObject) -> str:
        return name_of(obj, self.character)

    def say(self, text: str, to: str | None = None) -> Told:
        """Speak aloud, in pieces of MUD length; `to` somebody here (stable id) where it says so."""
        return self._utter("say", self._pieces(text), partial(self._speak, to=to))

    def emote(self, text: str) -> Told:
        """Pose: the name, then the text."""
        return self._utter("pose", self._pieces(text)[:1], self._pose)

    @act
    def _utter(self, way: str, pieces: Sequence[str], show: Callable[[str], None]) -> Any:
        """Say or pose, by the command that ``EVENNIA_AI_SPEAK_BY`` names for it, else by `show`."""
        told = list[str]()
        command = self._command(conf.setting("SPEAK_BY").get(way))
        for piece in pieces:
            if command is not None:
                lines = yield run_command(self.character, command, piece.replace("\n", " "))
                if FAILED.format(command.key) in lines:
                    raise ToolError(f"the game's command `{command.key}` failed")
                told += lines
                continue
            with told_meanwhile(self.character) as lines:
                try:
                    show(piece)
                except ToolError as error:
                    raise _refusal(str(error), lines) from error
                except Exception as error:  # noqa: BLE001 - of the game's own hooks and rooms
                    logger.log_trace()
                    raise ToolError(f"the game failed to show it: {error!r}") from error
            told += lines
        return tuple(told)

    def _whisper(self, people: Sequence[DefaultObject], pieces: Sequence[str]) -> Told:
        """Whisper to some people here; what the game tells the body of it."""
        return self._utter("whisper", pieces, partial(self._speak, people=people))

    def _speak(
        self, text: str, people: Sequence[DefaultObject] = (), to: str | None = None
    ) -> None:
        """Speak by Evennia's hooks, which only in their own form can name a listener."""
        body, kind, options = self.character, "say", dict[str, Any]()
        if people:
            kind, options = "whisper", {"whisper": True, "receivers": people}
        speech = body.at_pre_say(text, **options)
        if not speech:
            raise ToolError("the game lets you say nothing here")
        if reference := _OWN_REFERENCE.match(speech):
            return self._pose(speech[reference.end() :], kind, people)
        listener = next((obj for obj in self._room.contents if to and stable_id(obj) == to), None)
        if listener is not None and type(body).at_say is DefaultObject.at_say:
            line = '{object} says to {listener}, "{speech}"'
            options = {"msg_location": line, "mapping": {"listener": listener}}
        body.at_say(speech, msg_self=None, **options)

    def _pose(self, text: str, kind: str = "pose", people: Iterable[Any] = ()) -> None:
        """Show a text behind the body's name, as each knows it, to some people or the room."""
        body, line = self.character, "{actor} {pose}"
        if not people:
            mapping = {"actor": body, "pose": text}
            self._room.msg_contents(text=(line, {"type": kind}), mapping=mapping, from_obj=body)
        for person in people:
            shown = line.format(actor=body.get_display_name(person), pose=text)
            person.msg(text=(shown, {"type": kind}), from_obj=body)

    def whisper(self, target: str, text: str, audience: str = "public") -> Told:
        """Whisper to somebody present; in a private talk only to its members."""
        person = self._meant(target, "people")
        if is_private(audience) and stable_id(person) not in members(audience):
            raise ToolError(f"this talk is private and {self._name(person)} is not part of it")
        return self._whisper([person], self._pieces(text))

    def _page(self, speaker_id: str, shown: str) -> None:
        """Answer a page: shown if they are online, kept as a page if not."""
        account = self._account(speaker_id, has_paged=True)
        if account is None:
            raise ToolError("they are gone")
        locks = f"read:id({account.id}) or perm(Admin);delete:id({account.id}) or perm(Admin)"
        create_message(
            self.character, shown, receivers=[account], locks=locks, tags=[("page", "comms")]
        )
        name = plain(self.character.get_display_name(account))
        account.msg(f"|c{name}|n |wpages:|n {shown}", from_obj=self.character)

    @act
    def speak(
        self, text: str, audience: str, channel: str, asker: str | None, to: str | None = None
    ) -> Any:
        """Answer a turn's audience the way it spoke; a whisper goes to all of a talk.

        Said aloud, words and poses come in their order; `to` is the stable id of whom the words
        are for, where they say so.
        """
        if audience == STAFF:
            raise ToolError("what is for staff alone is not spoken")
        told: tuple[str, ...] = ()
        if channel == "page" and asker:
            self._page(asker, " ".join(self._pieces(text)))
        elif is_private(audience) and (channel == "whisper" or not self.only_present(audience)):
            people = self._shown_to(audience)
            if not people:
                raise ToolError("nobody whom this is for is here")
            told = yield self._whisper(people, self._pieces(text))
        else:
            for piece in pieces(text, self.character.key):
                if piece.is_spoken:
                    told += yield self.say(piece.text, to)
                else:
                    told += yield self.emote(piece.text)
        return told

    def show(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Show a line about the assistant to a turn's audience alone; nobody hears it as speech."""
        if people := self._shown_to(audience, channel, asker):
            self._pose(literal(text), SIGN, people)

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

    def _shown_to(self, audience: str, channel: str = "", asker: str | None = None) -> list[Any]:
        """Who may know of a turn: those here, its circle alone, or the account that paged."""
        if channel == "page" and asker and (account := self._account(asker, has_paged=True)):
            return [account]
        is_open, circle = not is_private(audience), members(audience)
        return [find(each) for each in self.here() if is_open or each in circle]

    def account_id(self, asker: str) -> str:
        """Who answers for what somebody asks: an account, a guest's address; empty for nobody."""
        return holder_of(self._account(asker))

    def _account(self, asker: str, has_paged: bool = False) -> AccountDB | None:
        """The account behind somebody; of who `has_paged` the one that did, whoever plays now."""
        found = find(asker)
        account = getattr(found, "account", found)
        if account is not None and not has_paged:
            return account
        for message in reversed(self.character.assistant.history.messages()):
            if message.channel == "page" and message.speaker_id == asker:
                return find(message.metadata.get("account", "")) or account
        return account

    def payer(self, asker: str) -> str:
        """Whose lines caused what somebody asks, to bound that; empty for staff."""
        account, room = self._account(asker), self.character.location
        if account is None and room is not None:  # a scripted character, or an assistant
            asker = manners_of(room).talk.player
            account = self._account(asker)
        if account is None:
            return asker
        person = find(asker)
        if account.is_superuser or account.check_permstring("Builder"):
            return ""
        if isinstance(person, DefaultObject) and self.character.assistant.may_change(person):
            return ""
        return holder_of(account)

    def account_name(self, account: str) -> str:
        """The name of an account, by stable id."""
        return plain(getattr(find(account), "key", account))

    def look(self, target: str | None = None) -> str:
        """The room, or one thing in it or carried, as the assistant sees it."""
        body, lookers, thing = self.character, self._lookers, self._room
        if target:
            thing = self._meant(target, "")
        if not self._is_visible(thing):
            raise ToolError(f"you cannot see {target or 'anything here'}")
        mine, theirs = ({*seen(thing, looker)} - {*lookers} for looker in (lookers[0], lookers[-1]))
        if mine <= theirs:
            with told_meanwhile(body) as told:  # some rooms send it, and return nothing
                text = thing.return_appearance(body) or "\n".join(told)
        else:
            both = ", ".join(map(self._name, mine & theirs))
            text = "\n".join(filter(None, (self._name(thing), described(thing, body), both)))
        return plain(text)[: 4 * DESCRIPTION_CHARS]

    @act
    def move(self, direction: str) -> Any:
        """Walk through an exit, by its locks; returns what is seen there.

        For whom it does not obey, it walks only where they may walk too.
        """
        way = self._meant(direction, "exit")
        if not self._lets(way, "traverse"):
            raise ToolError(f"the way `{self._name(way)}` is barred to you")
        yield self._go(way)
        return self.look()

    @act
    def _go(self, way: DefaultObject) -> Any:
        """Walk through an exit, by its locks, to the end; `ToolError` where that fails."""
        before, command = self._room, getattr(way, "exit_command", ExitCommand)()
        command.obj = way
        told = yield run_command(self.character, command, "")
        if self.character.location is before:
            raise _refusal(f"you could not go `{self._name(way)}`", told)

    def step_towards(self, place: str) -> str:
        """Walk through the next exit on the way to a room, by name: a word of `turns.tick`.

        By ways that are open to the body; where there are none, up to the barred one.
        """
        way = self._way(bare(place), True) or self._way(bare(place), False)
        if way is None:
            return LOST
        if way is self._room:
            return THERE
        try:
            walk = self._go(way)
        except ToolError:
            return BARRED
        if isinstance(walk, Deferred):  # where it does not arrive, the next step tries again
            walk.addErrback(lambda failure: failure.trap(ToolError))
        return WALKS

    def _way(self, place: str, is_open: bool) -> DefaultObject | None:
        """The first exit of a shortest way to a room within `MOST_ROOMS`; the room if here."""
        body = self.character
        for room, path in islice(rooms_from(self._room, body, is_open), MOST_ROOMS):
            names = {bare(plain(n)) for n in (room.key, f"#{room.id}", *room.aliases.all())}
            if place in names or (place == "home" and room is body.home):
                return (*path, room)[0]
        return None

    def _command(self, name: str | None) -> Command | None:
        """A command that the body has and that a player may type."""
        command = self.character.cmdset.current.get(name)
        if command is None or not command.access(as_player(self.character), "cmd"):
            return None
        return command

    @act
    def _carry(self, deed: str, thing: DefaultObject, place: DefaultObject) -> Any:
        """Get, drop or give a thing by typing the command for it once; what was done in words.

        Raises `ToolError` with what the game told the body, if the thing is not in its place then,
        nor came anything else to hand that was to be got.
        """
        body, before, means = self.character, self.character.contents, {}
        if deed == "get" and thing.location is not self._room:
            deed = "get_from"
        typed = conf.setting("ACT_BY").get(deed, ACT_BY[deed])
        objects = {"{thing}": thing, "{box}": thing.location, "{person}": place}
        named = {slot: obj for slot, obj in objects.items() if slot in typed}
        for slot, obj in named.items():
            name = self._name(obj)
            typed = typed.replace(slot, name)
            # Without the number that begins it, too: Evennia takes that for a count.
            for key in (name, name.lstrip("0123456789").strip()):
                means[key.casefold()] = (obj, obj.location)
        name, _, arguments = typed.partition(" ")
        command = body.cmdset.current.get(name) or _EVENNIAS[deed]()
        if not command.access(as_player(body), "cmd"):
            raise ToolError(f"you may not `{name}` here")
        # Where names alone do not tell them apart, the command asks as it asks players.
        if len({obj for obj, _ in means.values()}) == len(named):
            body.ndb.ai_means = means
        try:
            told = yield run_command(body, command, arguments)
        finally:
            body.ndb.ai_means = None
        burden = f"You carry {', '.join(self.carried()) or 'nothing'}."
        has_come = place is body and not {*body.contents} <= {*before}
        if thing.location is not place and not has_come:
            raise ToolError(f"{_refusal(f'`{typed}` failed', told)}. {burden}")
        return f"You {typed}. {burden}"

    def get(self, thing: str) -> str | Deferred[str]:
        """Pick something up in the room, for whoever asks; tells what is carried then."""
        return self._carry("get", self._ordered(self._meant(thing, "lying")), self.character)

    def drop(self, thing: str) -> str | Deferred[str]:
        """Put down something carried, for whoever asks; tells what is carried then."""
        return self._carry("drop", self._ordered(self._meant(thing, "carried")), self._room)

    @act
    def give(self, thing: str, to: str) -> Any:
        """Hand something carried, else something that lies here, to somebody seen here."""
        body, person = self.character, self._meant(to, "people")
        if person not in self._seen():
            raise ToolError("you do not see whom to give it to")
        gift = self._ordered(self._meant(thing, "lying or carried"))
        if gift.location is not body:
            before = {*body.contents}
            yield self._carry("get", gift, body)
            if gift.location is not body:  # a barrel stays: what it handed out is given
                [came, *_] = (each for each in body.contents if each not in before)
                gift = self._ordered(came)
        told = yield self._carry("give", gift, person)
        return told

    def _ordered(self, thing: DefaultObject) -> DefaultObject:
        """A thing that the assistant may fetch or give for whoever asks, else `NotObeyedError`.

        It may for those it obeys, and for anybody who passes the thing's lock `give`.
        """
        if not self._may_order(thing):
            asker = self.identify(self.asker or "") or Profile("", "whoever asks")
            raise NotObeyedError(asker.name)
        return thing

    def _may_order(self, thing: DefaultObject) -> bool:
        return self._lets(thing, "give", default=False, no_superuser_bypass=True)

    def _lets(self, thing: DefaultObject, lock: str, **strict: bool) -> bool:
        """Whether a thing's lock passes whoever asks; those it obeys need not pass it."""
        if self.asker is None or self.obeys():
            return True
        person = find(self.asker)
        return person is not None and bool(thing.access(person, lock, **strict))

    def company(self, idle_s: float) -> tuple[str, ...]:
        """Players seen here who are not idle and let assistants listen, by stable id."""
        since = time.time() - idle_s

        def is_company(obj: DefaultObject) -> bool:
            is_active = any(session.cmd_last_visible > since for session in obj.sessions.all())
            return is_active and not is_ignored(obj)

        return tuple(map(stable_id, filter(is_company, self._seen())))

    def audience(self) -> str:
        """Who can know what is said aloud here: everybody, or those in a private room."""
        return room_audience(self.character, self.character)

    @property
    def manners(self) -> RoomMemory:
        """What is remembered of the talk in this room."""
        return manners_of(self._room)

    def present(self) -> tuple[dict[str, Any], ...]:
        """People here: id, name, assistant; the id is that of a mask they wear, if any."""
        return tuple(
            {
                "id": face_of(obj, self.character),
                "key": self._name(obj),
                "assistant": is_assistant(obj),
            }
            for obj in self._seen()
            if is_person(obj)
        )

    def here(self) -> dict[str, bool]:
        """Everything in the room, seen or not, by stable id: whether somebody plays it."""
        return {stable_id(obj): bool(obj.has_account) for obj in around(self.character)}

    @property
    def _lookers(self) -> list[DefaultObject]:
        """The assistant, and whoever asks."""
        person = find(self.asker or "")
        return [each for each in (self.character, person) if isinstance(each, DefaultObject)]

    def _is_visible(self, place: DefaultObject) -> bool:
        """Whether the assistant, and whoever asks, can see a place or a thing."""
        return all(place.access(looker, "view", default=True) for looker in self._lookers)

    def _seen(self) -> list[DefaultObject]:
        """What is seen in the room besides the assistant; somebody always sees themselves."""
        room = self.character.location
        if room is None:
            return []
        objects = seen(room, self.character)
        for person in self._lookers[1:]:
            theirs = {person, *seen(room, person)}
            objects = [obj for obj in objects if obj in theirs]
        return objects

    def clock(self, is_game: bool, now: float) -> datetime:
        """Date and time, of the game's own time or of the server's time zone at `now`."""
        if is_game:
            now = gametime(absolute=True)
        return datetime.fromtimestamp(now, get_default_timezone())

    def reaches(self, person: str, anywhere: bool) -> bool:
        """Whether a player can be told something now: seen here, or `anywhere`.

        An account that plays nobody is told by a page, as it has paged.
        """
        found = find(person)
        if found is None or is_ignored(found):
            return False
        if isinstance(found, AccountDB):
            return anywhere and found.sessions.count() > 0
        return bool(found.has_account) and (anywhere or found in self._seen())

    def tell(self, person: str, text: str) -> None:
        """Tell a player something as it is: by a whisper here, by a page elsewhere."""
        found, words = find(person), literal(text)
        if found in self._seen():
            self._whisper([found], [words])
        else:
            self._page(person, words)

    def player_called(self, name: str) -> Speaker:
        """The one player's character that a name means: here, or anywhere."""
        wanted = name.strip()
        known = [find(profile.id) for profile in self.character.entities.called(name)]
        anywhere = [find(wanted), *known, *ObjectDB.objects.filter(db_key__iexact=wanted)]
        for among in (self._seen(), anywhere):
            people = {obj for obj in among if obj and is_person(obj) and not is_assistant(obj)}
            called = [
                obj
                for obj in people
                if wanted == face_of(obj, self.character)
                or folded(wanted) == folded(self._name(obj))
            ]
            if len(called) > 1:
                raise ToolError(f"several players are called `{name[:60]}`")
            if called:
                return speaker_of(called[0], self.character)
        raise ToolError(f"no players are called `{name[:60]}`")

    def time(self, now: float) -> str:
        """The time as people say it: of the game's calendar, else of the server's time zone.

        A game has a calendar of its own if it sets ``TIME_UNITS`` (as for Evennia's contrib
        `custom_gametime`) or ``TIME_GAME_EPOCH``, or changes ``TIME_FACTOR``. Else no date is told:
        that of the players' world is seldom the game's.
        """
        if units := getattr(settings, "TIME_UNITS", None):
            return spoken_units(gametime(absolute=True), units)
        changed = settings.TIME_FACTOR != settings_default.TIME_FACTOR
        is_own = changed or settings.TIME_GAME_EPOCH is not None
        return spoken_time(self.clock(is_own, now), with_date=is_own)

    def place(self) -> dict[str, Any]:
        """The room as the assistant, and whoever asks, see it: id, name, description, exits.

        A room that one of them cannot see has no id. Besides, what the assistant is called but for
        its name: its aliases, and what strangers see, as a description in Evennia's `rpsystem`.
        """
        room, body = self.character.location, self.character
        others = dict.fromkeys((name_of(body), *names_of(body, body)))
        called = [name for name in others if name != plain(body.key)]
        place = {"id": "", "key": "nowhere", "description": "", "exits": [], "called": called}
        if room is None:
            return place
        if not self._is_visible(room):
            return {**place, "key": DARK}
        exits = [self._name(way) for way in self._seen() if way.destination]
        own = {"id": stable_id(room), "key": self._name(room), "exits": exits}
        return {**place, **own, "description": described(room, body)[:DESCRIPTION_CHARS]}

    def things(self) -> dict[str, str]:
        """What is seen here besides people and ways out: names by id."""
        return {stable_id(o): self._numbered(o) for o in self._lying()}

    def _lying(self) -> list[DefaultObject]:
        return [o for o in self._seen() if not o.destination and not is_person(o)]

    def has_things(self) -> bool:
        """Whether the assistant may fetch or give some thing that it carries or that lies here."""
        body = self.character
        around = [*self._lying(), *self._boxed()]
        things = [*body.contents, *(obj for obj in around if obj.access(body, "get"))]
        return any(map(self._may_order, things))

    def carried(self) -> tuple[str, ...]:
        """What the body carries, by name."""
        return tuple(map(self._numbered, self.character.contents))

    def _numbered(self, thing: DefaultObject) -> str:
        return plain(thing.get_numbered_name(1, self.character, return_string=True))

    def identify(self, name: str) -> Profile | None:
        """Somebody or something seen here, by name, or here by stable id, as nobody knows it yet.

        The id is that of a mask where they wear one.
        """
        room, wanted = self.character.location, name.strip()
        if room is None:
            return None
        visible = {room, self.character, *self._seen()}
        for obj in [room, *room.contents]:
            names: tuple[str, ...] = ()
            if obj in visible:
                names = names_of(obj, self.character)
            if wanted == stable_id(obj) or folded(wanted) in map(folded, names):
                [shown, *_], kind = (*names, UNSEEN), self._kind(obj).replace("exit", "thing")
                return Profile(face_of(obj, self.character), shown, kind)
        return None

    def _kind(self, obj: DefaultObject) -> str:
        """What something is, as `Named.kind` has it."""
        if obj is self.character.location:
            return "place"
        if is_person(obj):
            return "person"
        return "exit" if obj.destination else "thing"

    def named(self, name: str, place: str) -> Named:
        """What a name or a stable id means in a place of `parameters.Name`; `ToolError` if none."""
        return self._as_named(self._meant(name, place))

    def named_here(self) -> list[Named]:
        """All that a word may name here: people, things, exits, what it carries."""
        if self.character.location is None:
            return []
        return list(map(self._as_named, self._within_reach("")))

    def _as_named(self, obj: DefaultObject) -> Named:
        return Named(stable_id(obj), names_of(obj, self.character), self._kind(obj))

    def _meant(self, name: str, place: str) -> DefaultObject:
        """The object that a name or a stable id means in a place of `parameters.Name`."""
        body = self.character
        lying = [*self._seen(), *self._boxed()]
        reach = [*self._within_reach(name), body]
        places = {
            "exit": [obj for obj in lying if obj.destination],
            "carried": body.contents,
            "lying": lying,
            "lying or carried": [*body.contents, *lying],
            "people": [obj for obj in reach if is_person(obj) and obj is not body],
        }
        among = places.get(place, reach)
        objects = self._called(name, among)
        if not objects:
            known = ", ".join(map(self._name, among[:MOST_NAMED])) or "nothing"
            raise ToolError(f"there is no `{name}` here; there is: {known}")
        people = [obj for obj in objects if is_person(obj)]
        if len(people) > 1:
            ids = ", ".join(f"{self._name(o)} [{face_of(o, body)}]" for o in people)
            raise ToolError(f"there are several `{name}` here, say which id: {ids}")
        return objects[0]

    def _called(self, name: str, among: Sequence[DefaultObject]) -> list[DefaultObject]:
        """Those of some things that an id or a name means, in whole or without its article.

        Of people only those whom a description means: `Per Ray` is not Ray.
        """
        wanted, body = name.strip(), self.character
        among = list(dict.fromkeys(among))
        objects = [o for o in among if wanted in (stable_id(o), face_of(o, body))]
        bare = without_article(wanted)
        for called in (wanted, bare):
            if not objects:
                hits = body.search(called, candidates=among, quiet=True)
                objects = [obj for obj in hits if obj in among]
                if called != wanted:
                    objects = [o for o in objects if not is_person(o) or self._is_title(bare, o)]
        if objects:
            return objects
        wanted = plain(wanted).lower()  # Evennia's search tells normal forms apart
        return [o for o in among if wanted in (n.lower() for n in names_of(o, body))]

    def _is_title(self, wanted: str, person: DefaultObject) -> bool:
        """Whether these words are somebody's name that is in small letters or has an article."""
        names = names_of(person, self.character)
        titles = [name for name in names if name != without_article(name)]
        if names[0] == names[0].lower():
            titles.append(names[0])
        return wanted.lower() in (without_article(name).lower() for name in titles)

    def _boxed(self) -> list[DefaultObject]:
        """What lies in containers here, as far as whoever asks may take it, too.

        A container is what the lock `get_from` opens, as in Evennia's contrib `containers`.
        """
        return [
            obj
            for box in [*self._seen(), *self.character.contents]
            if box.access(self.character, "get_from") and self._lets(box, "get_from")
            for obj in box.contents
            if all(obj in seen(box, looker) for looker in self._lookers)
        ]

    def _within_reach(self, name: str) -> list[DefaultObject]:
        """What a name may mean: what is seen and carried, the room, and whoever has it as id.

        Where somebody asks, that id names nobody unseen but them.
        """
        is_meant = self.asker in (None, name.strip())
        by_id = [obj for obj in self._room.contents if is_meant and stable_id(obj) == name.strip()]
        return [*by_id, *self._seen(), *self.character.contents, self._room]

    def people_named(self, text: str) -> tuple[str, ...]:
        """The stable ids of those whom a text names: who is here, and people it knows of."""
        named = self.character.entities.called(text)
        known = [profile.id for profile in named if profile.kind == "person"]
        known += [each["id"] for each in self.present() if is_named(each["key"], text)]
        own = stable_id(self.character)
        return tuple(each for each in dict.fromkeys(known) if each != own)

    def allowed(self, lock: str) -> bool:
        """Whether a tool's lock passes both the assistant and the one who asked."""
        body, people = self.character, [self.character]
        if self.asker is not None:
            people.append(find(self.asker))
        return all(person is not None and passes(person, lock, body) for person in people)

    def needs_rank(self, lock: str, objects: Iterable[Named]) -> bool:
        """Whether an act passes a lock only by more than a player's rights; whose does not matter.

        What the assistant alone has such rights to is refused. Those it obeys need not pass the
        locks of objects.

        Args:
            lock: The tool's.
            objects: What the act is done to.

        Raises:
            ToolError: If the assistant passes a lock by such rights and the one who asks does not
                pass it.
        """
        things = [thing for named in objects if (thing := find(named.id)) is not None]
        things += [thing.location for thing in things if thing.location is not None]

        def passed(somebody: TypedObject | None, **strict: bool) -> set[tuple[object, str]]:
            if somebody is None:
                return set()
            locks: Iterable[tuple[Any, str]] = product(things, _ACT_LOCKS)
            names = {(each, name) for each, name in locks if each.access(somebody, name, **strict)}
            if passes(somebody, lock, self.character):
                names.add((None, lock))
            return names

        def by_rank(somebody: TypedObject | None) -> set[tuple[object, str]]:
            player = somebody and as_player(somebody)
            return passed(somebody) - passed(player, no_superuser_bypass=True)

        person = find(self.asker or "")
        own, theirs = by_rank(self.character), by_rank(person)
        if own - passed(person):
            raise ToolError("that is barred to whoever asks: it needs more than a player's rights")
        if self.obeys():
            theirs &= {(None, lock)}
        return bool(own | theirs)

    def obeys(self) -> bool:
        """Whether whoever asks controls the body or passes the option `obeys`."""
        person, body = find(self.asker or ""), self.character
        lock = f"tool:{body.assistant.config.obeys}"
        return person is not None and bool(
            body.access(person, "control") or passes(person, lock, body)
        )

    def lore(self, text: str, line: str, audience: str) -> Deferred[list[Verdict]]:
        """Fires with what of the game's lore is found, and why the rest is not used."""
        return verdicts(self.character, text, line, audience)

    def only_present(self, audience: str) -> bool:
        """Whether all who can hear here are members of a private audience: it may be said aloud."""
        room, circle = self.character.location, members(audience) | {stable_id(self.character)}
        return room is None or all(stable_id(obj) in circle for obj in hearers(room))

    def _pieces(self, text: str) -> list[str]:
        shown, left_out = speakable(clean_reply(text, [self.character.key]))
        if left_out:
            logger.log_info(
                f"[ai] {self.character.key}: {left_out} characters of a reply "
                "were too long to be said"
            )
        return [literal(piece) for piece in shown]


def holder_of(account: AccountDB | None) -> str:
    """Whose limits an account has: its own, and as a guest those of the address it plays from.

    Empty for none. No address is kept, but a hash of it under the game's secret key, another one
    each day.
    """
    if account is None:
        return ""
    if not isinstance(account, DefaultGuest):
        return stable_id(account)
    for session in account.sessions.all():
        account.ndb.ai_address = session.address  # for what is answered after it has left
    return hidden_holder(account.ndb.ai_address or stable_id(account))


def hidden_holder(who: str, begins: str = GUEST) -> str:
    """A holder of limits that stands for a guest today, or for somebody `FORGOTTEN` this month.

    It names nobody.
    """
    span = 7
    if begins == GUEST:
        span = 10
    text = f"{utc_iso(time.time())[:span]} {who}"
    key = hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{begins}{key[:16]}"
