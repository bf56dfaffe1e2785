"""The assistant's body: a character that hears what happens around it."""

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evennia import DefaultCharacter, ScriptDB
from evennia.utils.create import create_script
from evennia.utils.utils import lazy_property, make_iter

from evennia_ai.game.copies import begin_life
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.identity import speaker_of, stable_id
from evennia_ai.game.people import is_to_answer
from evennia_ai.game.world import (
    hearers,
    is_assistant,
    is_ignored,
    is_person,
    is_private_room,
    plain,
    seen,
)
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import SPEECH, Message, Speaker, new_id, utc_iso
from evennia_ai.language.words import storable
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.turns.events import ANSWER

if TYPE_CHECKING:
    from evennia import DefaultAccount, DefaultObject

    from evennia_ai.assistant_script import AssistantScript

    Speaking = DefaultObject | DefaultAccount

SCRIPT_CATEGORY = "evennia_ai"
MOVE_TYPES = ("move", "traverse", "teleport", "follow")
# A line longer than this is cut before it is stored; telnet clients cannot send so much.
LINE_CHARS = 20_000
# Who made an assistant may change and delete it, besides the game's admins.
OWNER_LOCKS = (
    "control:id({id}) or perm(Admin);edit:id({id}) or perm(Admin);delete:id({id}) or perm(Admin)"
)


class AssistantMixin:
    """Hearing and remembering, for any character typeclass.

    A game with a character class of its own writes
    ``class Assistant(AssistantMixin, Character)``.

    Attributes:
        is_assistant_body: What tells assistants from other characters.
        script_typeclass: The class of its script, for a game with a subclass of `AssistantScript`.
    """

    is_assistant_body = True
    script_typeclass = "evennia_ai.assistant_script.AssistantScript"

    @classmethod
    def create(
        cls,
        key: str,
        account: "DefaultAccount | None" = None,
        caller: "DefaultObject | None" = None,
        **kwargs: Any,
    ) -> tuple["AssistantMixin", list[str]]:
        """Make one, as Evennia's `create` does.

        It is no player's character: it takes none of an account's slots and is not listed among
        its characters. Whoever makes it owns it.
        """
        if caller is not None:
            kwargs.setdefault("locks", OWNER_LOCKS.format(id=caller.id))
        return super().create(key, caller=caller, **kwargs)  # type: ignore[misc,no-any-return]

    def at_object_creation(self) -> None:
        """Called once; gives the body its script."""
        super().at_object_creation()  # type: ignore[misc]
        self.permissions.add("Player")  # type: ignore[attr-defined]
        self.locks.add("puppet:pperm(Admin)")  # type: ignore[attr-defined]

    def at_first_save(self) -> None:
        """Called after the first save, when key and place are set."""
        super().at_first_save()  # type: ignore[misc]
        self.ensure_assistant()

    def ensure_assistant(self) -> "AssistantScript":
        """The assistant's script, made if it is missing."""
        script = self.assistant
        if script is None:
            script = create_script(self.script_typeclass, key=self.key, obj=self)  # type: ignore
            begin_life(self)
        return script

    @property
    def assistant(self) -> "AssistantScript | None":
        """The assistant's script, or None if there is none."""
        from evennia_ai.assistant_script import AssistantScript

        known = self.ndb.assistant_pk  # type: ignore[attr-defined]
        # Evennia's own cache first: everything heard asks for it, and a query takes 2 ms.
        if known and (script := ScriptDB.get_cached_instance(known)):
            return script
        for script in self.scripts.all():  # type: ignore[attr-defined]
            if isinstance(script, AssistantScript):
                self.ndb.assistant_pk = script.pk  # type: ignore[attr-defined]
                return script
        return None

    @lazy_property
    def stable_id(self) -> str:
        """The body's own id."""
        return stable_id(self)

    @lazy_property
    def journal(self) -> JournalHandler:
        """What the assistant found worth keeping."""
        return JournalHandler(AttributeStore(self), on_add=self._index_entry)

    @lazy_property
    def entities(self) -> EntityHandler:
        """What is known of people, places and things."""
        return EntityHandler(AttributeStore(self))

    def _index_entry(self, entry: JournalEntry) -> None:
        script = self.assistant
        if script is not None:
            script.memory.remember_entry(entry)

    def at_msg_receive(
        self, text: object = None, from_obj: "Speaking | None" = None, **kwargs: Any
    ) -> bool:
        """Hear a message: what others say, whisper, pose, and their coming and going."""
        try:
            self._listen(heard_event(self, text, from_obj))
        except Exception as error:  # noqa: BLE001 - the others in the room hear the line too
            script = self.assistant
            if script is not None:
                script.log_error("hearing a line", error)
        return super().at_msg_receive(text=text, from_obj=from_obj, **kwargs)  # type: ignore

    def _listen(self, event: Message | None) -> None:
        if event is not None and event.channel in SPEECH:
            answers = self._is_to_answer(event)
            event = replace(event, metadata={**event.metadata, ANSWER: answers})
        if event is not None:
            self.hear(event)

    def _is_to_answer(self, event: Message) -> bool:
        """Whether it answers; a fault of one assistant must not keep a line from the room."""
        try:
            return is_to_answer(self, event, time.time())
        except Exception as error:  # noqa: BLE001 - logged, and the line is heard
            script = self.assistant
            if script is not None:
                script.log_error(f"deciding who answers line {event.id}", error)
            return False

    def hear(self, event: Message) -> None:
        """Pass a heard event on to the assistant."""
        script = self.assistant
        if script is not None and script.obj is self:
            script.hear(event)

    def hear_page(
        self, account: "DefaultAccount", text: str, puppet: "DefaultObject | None" = None
    ) -> bool:
        """Hear a page of an account; returns whether there is anybody to hear it, and may.

        `puppet` is the character the account typed it as; any it plays if None.
        """
        if is_ignored(account):
            return False
        body = puppet or next(iter(make_iter(account.get_all_puppets())), None) or account
        event = new_event(body, "page", text, private([stable_id(body)]))
        # The answer is for who paged, whoever plays that character by then.
        self.hear(replace(event, metadata={**event.metadata, "account": stable_id(account)}))
        return self.assistant is not None

    def at_rename(self, oldname: str, newname: str) -> None:
        """The script goes by the name of its body."""
        super().at_rename(oldname, newname)  # type: ignore[misc]
        script = self.assistant
        if script is not None and script.key == oldname:
            script.key = newname

    def get_display_desc(self, looker: "DefaultObject", **kwargs: Any) -> str:
        """The description; it says so when the assistant is asleep."""
        desc = super().get_display_desc(looker, **kwargs)  # type: ignore[misc]
        script = self.assistant
        if script is not None and script.state.mode == "sleep":
            return f"{desc}\n{self.get_display_name(looker)} is asleep."  # type: ignore
        return str(desc)


class AssistantCharacter(AssistantMixin, DefaultCharacter):
    """An assistant's body. Create one with ``create/drop Aria:evennia_ai.…AssistantCharacter``."""


def heard_event(
    listener: "DefaultObject", text: object, from_obj: "Speaking | None"
) -> Message | None:
    """What a message means to a listener, or None if it is nothing to hear.

    `text` is what `at_msg_receive` gets: a text, or a text and its options.
    """
    speaker = next(iter(make_iter(from_obj)), None) if from_obj else None
    if speaker is None or speaker is listener or not isinstance(text, tuple) or len(text) < 2:
        return None
    if not is_person(speaker) or not isinstance(text[1], dict):
        return None
    if is_ignored(speaker):
        return None
    kind, line = str(text[1].get("type")), storable(plain(text[0])[:LINE_CHARS])
    room = listener.location
    is_here = room is not None and speaker.location is room
    is_unseen = is_here and not seen(room, listener, [speaker])
    if is_unseen:
        line = re.sub(rf"^\W*{re.escape(plain(speaker.key))}(?!\w)", UNSEEN, line)
    if kind in ("say", "whisper", "pose"):
        content = spoken_part(line) if kind != "pose" else line
        if kind == "whisper":
            circle = {speaker, *(speaker.ndb.whispers_to or ())} - {listener}
            audience = private(stable_id(obj) for obj in circle)
        else:
            audience = _room_audience(listener, speaker)
        return new_event(speaker, kind, content, audience, is_unseen)
    if kind in MOVE_TYPES and not is_unseen:
        return new_event(speaker, "move", line, _room_audience(listener, speaker))
    return None


def spoken_part(line: str) -> str:
    """The words of ``Alice says, "hello"``; the whole line where there are no quotes."""
    first, last = line.find('"'), line.rfind('"')
    return line[first + 1 : last].strip() if 0 <= first < last else line


def new_event(
    speaker: "Speaking", channel: str, content: str, audience: str, is_unseen: bool = False
) -> Message:
    """An event with its own id and time; an unseen speaker is not named."""
    return Message(
        "user",
        storable(content),
        id=new_id("m"),
        created_at=utc_iso(time.time()),
        speaker=Speaker(UNSEEN, stable_id(speaker)) if is_unseen else speaker_of(speaker),
        audience=audience,
        channel=channel,
        metadata={"assistant": is_assistant(speaker)},
    )


def _room_audience(listener: "DefaultObject", speaker: "DefaultObject") -> str:
    """Public, or those who stand in a room marked private."""
    room = listener.location
    if not is_private_room(room):
        return PUBLIC
    people = {*filter(is_person, room.contents), *hearers(room), speaker}
    return private(stable_id(obj) for obj in people - {listener})
