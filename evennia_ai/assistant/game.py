"""Acting and seeing in the game, for one assistant's body. The only way a tool touches Evennia.

Text of models never reaches Evennia's parsers: it is escaped and sent as a mapping's value.
"""

import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from evennia import AccountDB, DefaultCharacter, DefaultObject, ObjectDB
from evennia.utils import logger
from evennia.utils.ansi import raw, strip_ansi
from evennia.utils.create import create_message

from evennia_ai.assistant.identity import find, stable_id
from evennia_ai.errors import ToolError
from evennia_ai.history.audience import STAFF, is_private, members
from evennia_ai.llm_interaction.reply import speakable
from evennia_ai.rag_memory.profile import Profile

if TYPE_CHECKING:
    from evennia_ai.assistant_character import AssistantCharacter

PRIVATE_TAG = ("private", "evennia_ai")
DESCRIPTION_CHARS = 600
# Words of a text that are looked up as names; databases limit the values in a query.
_NAME_WORDS = 60
# Evennia finds links (|lc, |lu, |lt, |le) after it has turned doubled pipes into single ones, so
# doubling does not protect them: the pipe before such a tag becomes a broken one.
_LINK_TAG = re.compile(r"\|(?=l[cute])")


def plain(text: object) -> str:
    """Game text without colours and markup."""
    return strip_ansi(str(text or "")).strip()


def literal(text: str) -> str:
    """A text escaped so that clients find neither colours nor links; link tags get a ``¦``."""
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = text.replace("$", "\\$")
    return str(raw(_LINK_TAG.sub("¦", text)))


def is_private_room(room: DefaultObject | None) -> bool:
    """Whether a room is marked private: tag `private` of category `evennia_ai`."""
    if room is None:
        return False
    key, category = PRIVATE_TAG
    # By category, because Evennia caches that there is none; a key would be a query each prompt.
    return key in room.tags.get(category=category, return_list=True)


class GameHandler:
    """The game as one assistant meets it; see `protocol.GamePort`."""

    def __init__(self, character: "AssistantCharacter"):
        self.character = character

    @property
    def _room(self) -> DefaultObject:
        room = self.character.location
        if room is None:
            raise ToolError("you are nowhere; staff must put you into a room")
        return room

    def say(self, text: str) -> None:
        """Speak aloud, in pieces of MUD length."""
        self._room  # noqa: B018 - raises where there is none
        for piece in self._pieces(text):
            speech = self.character.at_pre_say(piece)
            if speech:
                self.character.at_say(speech, msg_self=None)

    def emote(self, text: str) -> None:
        """Pose: the name, then the text."""
        pieces = self._pieces(text)
        if pieces:
            line = f"{self.character.key} {pieces[0]}"
            self._room.msg_contents(
                text=("{pose}", {"type": "pose"}),
                mapping={"pose": line},
                from_obj=self.character,
            )

    def whisper(self, target: str, text: str, audience: str = "public") -> None:
        """Whisper to somebody present; in a private talk only to its members."""
        person = self._person(target)
        if is_private(audience) and stable_id(person) not in members(audience):
            raise ToolError(f"this talk is private and {person.key} is not part of it")
        self._whisper([person], text)

    def _whisper(self, people: list[DefaultObject], text: str) -> None:
        for piece in self._pieces(text):
            speech = self.character.at_pre_say(piece, whisper=True, receivers=people)
            if speech:
                self.character.at_say(speech, msg_self=None, receivers=people, whisper=True)

    def _whisper_all(self, asker: str, text: str, audience: str) -> None:
        """Whisper to the one who asked and to the other members of the talk who are here."""
        circle = [obj for obj in self._room.contents if stable_id(obj) in members(audience)]
        self._whisper(list(dict.fromkeys([self._person(asker), *circle])), text)

    def page(self, target_id: str, text: str) -> None:
        """Answer a page: shown if they are online, kept as a page if not."""
        account = find(self._pager(target_id) or target_id)
        if not isinstance(account, AccountDB):
            account = getattr(account, "account", None)
        if account is None:
            raise ToolError("whoever paged is gone")
        shown = " ".join(self._pieces(text))
        locks = f"read:id({account.id}) or perm(Admin);delete:id({account.id}) or perm(Admin)"
        create_message(
            self.character, shown, receivers=[account], locks=locks, tags=[("page", "comms")]
        )
        account.msg(f"|c{self.character.key}|n |wpages:|n {shown}", from_obj=self.character)

    def _pager(self, speaker_id: str) -> str | None:
        """The account that sent the newest page under a speaker's id; None if none is known."""
        script = self.character.assistant
        for message in reversed(script.history.messages() if script else ()):
            if message.channel == "page" and message.speaker_id == speaker_id:
                account: str | None = message.metadata.get("account")
                return account
        return None

    def speak(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Answer a turn's audience the way it spoke."""
        if audience == STAFF:
            raise ToolError("what is for staff alone is not spoken")
        if channel == "page" and asker:
            self.page(asker, text)
        elif not is_private(audience) or self.only_present(audience):
            if channel == "whisper" and asker:
                self._whisper_all(asker, text, audience)
            else:
                self.say(text)
        else:
            self._whisper_all(asker or next(iter(members(audience))), text, audience)

    def look(self, target: str | None = None) -> str:
        """The room, or one thing in it or carried, as the assistant sees it."""
        thing = self._room if target is None else self._thing(target)
        if not thing.access(self.character, "view", default=True):
            raise ToolError(f"you cannot see {target}")
        return plain(thing.return_appearance(self.character))[: 4 * DESCRIPTION_CHARS]

    def move(self, direction: str) -> str:
        """Walk through an exit, by its locks; returns what is seen there."""
        wanted, before = direction.strip().lower(), self._room
        for way in before.exits:
            if wanted in (name.lower() for name in (way.key, *way.aliases.all())):
                break
        else:
            known = ", ".join(way.key for way in before.exits) or "none"
            raise ToolError(f"there is no exit `{direction}`; exits: {known}")
        if not way.access(self.character, "traverse"):
            raise ToolError(f"the way `{way.key}` is barred to you")
        way.at_traverse(self.character, way.destination)
        if self.character.location is before:
            raise ToolError(f"you could not go `{way.key}`")
        return self.look()

    def present(self) -> tuple[dict[str, Any], ...]:
        """Characters here besides the assistant: id, name, whether a player, an assistant."""
        room = self.character.location
        if room is None:
            return ()
        return tuple(
            {
                "id": stable_id(obj),
                "key": obj.key,
                "player": bool(obj.has_account),
                "assistant": is_assistant(obj),
            }
            for obj in room.contents
            if obj is not self.character and isinstance(obj, DefaultCharacter)
        )

    def place(self) -> dict[str, Any]:
        """The room: id, name, description, exits, whether it is private."""
        room = self.character.location
        if room is None:
            return {"id": "", "key": "nowhere", "description": "", "exits": [], "private": False}
        return {
            "id": stable_id(room),
            "key": plain(room.key),
            "description": plain(room.db.desc)[:DESCRIPTION_CHARS],
            "exits": [plain(way.key) for way in room.exits],
            "private": is_private_room(room),
        }

    def things(self) -> tuple[str, ...]:
        """Stable ids of what is here besides people and ways out."""
        room = self.character.location
        found = room.contents if room is not None else ()
        return tuple(
            stable_id(thing)
            for thing in found
            if not thing.destination and not isinstance(thing, DefaultCharacter)
        )

    def identify(self, name: str) -> dict[str, str] | None:
        """Somebody or something here, by name or stable id: id, key, kind; None if not here."""
        room = self.character.location
        wanted = name.strip().lower()
        for obj in [room, *room.contents] if room is not None else []:
            names = [obj.key, *obj.aliases.all()]
            if wanted == stable_id(obj) or wanted in (plain(n).lower() for n in names):
                kind = "place" if obj is room else "thing"
                kind = "person" if isinstance(obj, DefaultCharacter) else kind
                return {"id": stable_id(obj), "key": plain(obj.key), "kind": kind}
        return None

    def addressee(self, name: str) -> dict[str, str] | None:
        """Whom `whisper` would reach by this name or stable id: id and key; None if nobody."""
        try:
            person = self._person(name)
        except ToolError:
            return None
        return {"id": stable_id(person), "key": plain(person.key)}

    def people_in(self, text: str) -> dict[str, Profile]:
        """Profiles by stable id of everybody a text may name, apart from the assistant itself.

        They are characters of the game and people the assistant has a profile of.
        """
        profiles = self.character.entities.profiles()
        known = {key: profile for key, profile in profiles.items() if profile.kind == "person"}
        # Runs of up to three words, as names are usually written.
        words = re.findall(r"\w[\w'-]*", text)[:_NAME_WORDS]
        runs = {" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, i + 4)}
        forms = {form for run in runs for form in (run, run.lower(), run.capitalize(), run.title())}
        for person in ObjectDB.objects.filter(db_key__in=forms) if forms else ():
            if isinstance(person, DefaultCharacter):
                known[stable_id(person)] = Profile(stable_id(person), plain(person.key), "person")
        known.pop(stable_id(self.character), None)
        return known

    def allowed(self, lock: str, asker: str | None) -> bool:
        """Whether a tool's lock passes both the assistant and the one who asked."""
        if not self._passes(self.character, lock):
            return False
        if asker is None:
            return True
        person = find(asker)
        return person is not None and self._passes(person, lock)

    def only_present(self, audience: str) -> bool:
        """Whether everybody here is a member of a private audience: it may be said aloud."""
        circle = members(audience)
        return all(p["id"] in circle for p in self.present() if p["player"] or p["assistant"])

    def _passes(self, obj: DefaultObject, lock: str) -> bool:
        # Without a superuser's bypass: an assistant acts with the rights they were granted.
        return bool(
            self.character.locks.check_lockstring(
                obj, lock, no_superuser_bypass=True, default=False, access_type="tool"
            )
        )

    def _pieces(self, text: str) -> list[str]:
        split = speakable(text, [self.character.key])
        if split.left_out:
            logger.log_info(
                f"[ai] {self.character.key}: {split.left_out} characters of a reply "
                "were too long to be said"
            )
        return [literal(piece.replace("\n", " ")) for piece in split.pieces]

    def _person(self, name: str) -> DefaultCharacter:
        thing = self._thing(name)
        if not isinstance(thing, DefaultCharacter):
            raise ToolError(f"{thing.key} is nobody to whisper to")
        return thing

    def _thing(self, name: str) -> DefaultObject:
        wanted = name.strip()
        for obj in [*self._room.contents, *self.character.contents]:
            if wanted == stable_id(obj) and obj is not self.character:
                return obj
        places = (self._room, self.character)
        found = self.character.search(wanted, quiet=True)
        here = [obj for obj in found if obj.location in places or obj is self._room]
        if not here:
            raise ToolError(f"there is no `{name}` here")
        people = [obj for obj in here if isinstance(obj, DefaultCharacter)]
        if len(people) > 1:
            ids = ", ".join(f"{plain(obj.key)} [{stable_id(obj)}]" for obj in people)
            raise ToolError(f"there are several `{name}` here, say which id: {ids}")
        return here[0]


def is_assistant(obj: DefaultObject) -> bool:
    """Whether an object is an assistant's body that nobody puppets."""
    return getattr(type(obj), "is_assistant_body", False) and not obj.has_account
