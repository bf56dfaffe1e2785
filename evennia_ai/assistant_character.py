"""The assistant's body: a character that hears what happens around it."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evennia import DefaultCharacter, ScriptDB
from evennia.utils.create import create_script
from evennia.utils.utils import lazy_property, make_iter

from evennia_ai import conf
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.game.evennia_internals import AttributeStore, is_life
from evennia_ai.game.hearing import (
    channel_event,
    heard_event,
    is_ignored,
    line_and_type,
    origin_of_line,
    paged_event,
    room_audience,
    subscribe,
)
from evennia_ai.game.seeing import find, is_to_answer, name_of, stable_id
from evennia_ai.history.messages import SPEECH, Message
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import JournalEntry, JournalHandler
from evennia_ai.turns.runtime import ANSWER

if TYPE_CHECKING:
    from evennia import DefaultAccount, DefaultObject

    Speaking = DefaultObject | DefaultAccount

# The typeclass of new assistants, in a module that is imported when it is first used: it imports
# the game's own characters.
BODY = "evennia_ai.body.Assistant"
# Who made an assistant may change and delete it, besides the game's admins.
OWNER_LOCKS = (
    "control:id({id}) or perm(Admin);edit:id({id}) or perm(Admin);delete:id({id}) or perm(Admin)"
)


# Where a body names itself. Evennia's `copy` and `spawn` put one body's Attributes on another and
# call no hook of the first, so one that names another is a copy.
BODY_NAME, CATEGORY = "assistant_body", "evennia_ai"


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

    def ensure_assistant(self) -> AssistantScript:
        """The assistant's script, made if it is missing."""
        script = self.assistant
        if script is None:
            script = create_script(self.script_typeclass, key=self.key, obj=self)  # type: ignore
            self.begin_life()
            subscribe(self)
        return script

    def begin_life(self) -> None:
        """Give a copied body the original's options and none of its life; others get a name."""
        attributes = self.attributes  # type: ignore[attr-defined]
        named = attributes.get(BODY_NAME, category=CATEGORY)
        if named == self.stable_id:
            return
        attributes.add(BODY_NAME, self.stable_id, category=CATEGORY)
        if named is None:
            return
        for attribute in attributes.all():
            if is_life(attribute.db_key, attribute.db_category):
                AttributeStore(self).delete(attribute.db_key, attribute.db_category)  # type: ignore
        if original := getattr(find(str(named)), "assistant", None):
            self.assistant.state.configure_as(original.state)  # type: ignore[union-attr]

    @property
    def assistant(self) -> AssistantScript | None:
        """The assistant's script, or None if there is none."""
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

        def index(entry: JournalEntry) -> None:
            if script := self.assistant:
                script.memory.remember_entry(entry)

        return JournalHandler(AttributeStore(self), on_add=index)

    @lazy_property
    def entities(self) -> EntityHandler:
        """What is known of people, places and things."""
        return EntityHandler(AttributeStore(self))

    def search(self, searchdata: Any, *args: Any, **options: Any) -> Any:
        """Evennia's search; a name that the body types for an object means that one alone.

        Only as long as it stays where it was.
        """
        means = self.ndb.ai_means or {}  # type: ignore[attr-defined]
        meant, place = means.get(str(searchdata).strip().casefold(), (None, None))
        if meant is None or meant.location is not place:
            return super().search(searchdata, *args, **options)  # type: ignore[misc]
        if options.get("quiet"):
            return [meant]
        return meant

    def at_msg_receive(
        self, text: object = None, from_obj: "Speaking | None" = None, **kwargs: Any
    ) -> bool:
        """Hear a message: what others say, whisper, pose, and their coming and going."""
        if script := self.assistant:  # a fault must not keep a line from others in the room
            script.survived("hearing a line", lambda: self._take_in(text, from_obj), None)
        return super().at_msg_receive(text=text, from_obj=from_obj, **kwargs)  # type: ignore

    def _take_in(self, text: object, from_obj: "Speaking | None") -> None:
        """Hear a line; what a game says to whoever acts is noted, too."""
        origin = origin_of_line(self)  # type: ignore[arg-type]
        by, own = origin.caller or from_obj, (None, self, self.location)  # type: ignore[attr-defined]
        if not origin.is_for_room and by in own:
            for told in self.ndb.ai_told or ():  # type: ignore[attr-defined]
                told += filter(None, line_and_type(text)[:1])
        self.listen(heard_event(self, text, from_obj, origin))  # type: ignore[arg-type]

    def listen(self, event: Message | None) -> None:
        """Take in an event, if it is one, and decide whether it is answered."""
        script = self.assistant
        if script is None or event is None or script.obj is not self:
            return
        if event.channel in SPEECH:  # a fault of one assistant must not keep a line from the room
            what, heard = f"deciding who answers line {event.id}", event
            answers = script.survived(what, lambda: is_to_answer(self, heard, time.time()), False)  # type: ignore
            event = replace(event, metadata={**event.metadata, ANSWER: answers})
        script.hear(event)

    def hear_page(
        self, account: "DefaultAccount", text: str, puppet: "DefaultObject | None" = None
    ) -> bool:
        """Hear a page of an account; returns whether there is anybody to hear it, and may.

        `puppet` is the character the account typed it as; any it plays if None.
        """
        if is_ignored(account):
            return False
        self.listen(paged_event(self, account, text, puppet))
        return self.assistant is not None

    @property
    def is_connected(self) -> bool:
        """Evennia's channels pass over who is not; one that listens to some always is."""
        return bool(conf.setting("CHANNELS") or super().is_connected)  # type: ignore[misc]

    def at_pre_channel_msg(self, message: str, channel: Any, **kwargs: Any) -> str:
        """Take the line of a channel as it is."""
        return message

    def channel_msg(self, message: str, channel: Any, senders: Any = None, **kwargs: Any) -> None:
        """Hear a channel that the setting ``EVENNIA_AI_CHANNELS`` names."""
        sender = next(iter(make_iter(senders or None)), None)
        self.listen(channel_event(self, message, channel, sender))

    def at_post_channel_msg(self, message: str, channel: Any, **kwargs: Any) -> None:
        """Nothing follows a line of a channel."""

    def at_object_receive(
        self,
        moved_obj: "DefaultObject",
        source_location: "DefaultObject",
        move_type: str = "move",
        **kwargs: Any,
    ) -> None:
        """Called when something comes into its hands; a player's gift is noted."""
        super().at_object_receive(moved_obj, source_location, move_type=move_type, **kwargs)  # type: ignore
        script = self.assistant
        is_gift = move_type == "give" and source_location.has_account
        if script is not None and is_gift:
            audience, what = room_audience(self, source_location), name_of(moved_obj, self)  # type: ignore
            script.of_features(lambda each: each.given(script, source_location, what, audience))

    def at_rename(self, oldname: str, newname: str) -> None:
        """The script goes by the name of its body."""
        super().at_rename(oldname, newname)  # type: ignore[misc]
        script = self.assistant
        if script is not None and script.key == oldname:
            script.key = newname


class AssistantCharacter(AssistantMixin, DefaultCharacter):
    """An assistant's body. Create one with ``create/drop Aria:evennia_ai.…AssistantCharacter``."""
