"""Who may read what an assistant stores: builders its configuration, admins also its talk.

Evennia's building commands ask for no lock before they show, change or copy an Attribute. So the
handler of an assistant's Attributes asks who has typed the command. Code is not restricted: it may
read `script.db.conversation_history` and the rest as before.
"""

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from evennia.commands.command import Command, InterruptCommand
from evennia.typeclasses.attributes import AttributeHandler, ModelAttributeBackend
from evennia.utils.utils import lazy_property, make_iter

from evennia_ai.assistant.config import CAPS
from evennia_ai.assistant.spend import KEY as SPEND
from evennia_ai.assistant.state import UNDO
from evennia_ai.history.aside import FORMER
from evennia_ai.history.live import HISTORY, TAIL
from evennia_ai.llm_interaction.budget_log import KEY as BUDGETS
from evennia_ai.rag_memory.journal import JOURNAL
from evennia_ai.rag_memory.profiles import PROFILES
from evennia_ai.rag_memory.quarantine import KEY as QUARANTINE
from evennia_ai.tools.waiting import KEY as WAITING

if TYPE_CHECKING:
    from evennia.objects.models import ObjectDB
    from evennia.typeclasses.attributes import Attribute

# Attributes without a category that hold talk or what was made of it. Those with a category
# whose name begins with `CATEGORIES` do as well.
LIFE = {
    HISTORY,
    TAIL,
    FORMER,
    JOURNAL,
    PROFILES,
    BUDGETS,
    "event_queue",
    WAITING,
    "compaction_intent",
    "last_extraction",
    "summaries_owed",
    QUARANTINE,
}
CATEGORIES = "ai_"
# What builders may read and not change with building commands: spend, caps, and their undo.
SPENDING = {*CAPS, SPEND, UNDO}
# The modules of commands that show and change the Attributes of any object.
_BUILDING = (
    "evennia.commands.default.building",
    "evennia.utils.eveditor",
    "evennia.utils.evmenu",
)
_CAPPED = "Spend and spend caps are for admins; a builder lowers caps with `aiconfig`."
_REFUSED = "What {name} has heard and remembers is for admins; `aiconfig` shows its options."


def is_life(key: object, category: str | None) -> bool:
    """Whether an Attribute, or one of several keys, holds talk or memories."""
    if str(category or "").startswith(CATEGORIES):
        return True
    return not category and any(str(each).lower() in LIFE for each in make_iter(key))


def is_spending(key: object, category: str | None) -> bool:
    """Whether an Attribute, or one of several keys, is of spend and its caps."""
    return not category and any(str(each).lower() in SPENDING for each in make_iter(key))


def is_admin(person: Any) -> bool:
    """Whether somebody may read stored talk."""
    return bool(person.locks.check_lockstring(person, "read:perm(Admin)"))


def _callers() -> Iterator[FrameType]:
    """The frames of what runs now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _command() -> Command | None:
    """The building command that runs now, if one does."""
    for frame in _callers():
        kinds = type(frame.f_locals.get("self")).__mro__  # `isinstance` would ask the object
        if Command in kinds and any(kind.__module__ in _BUILDING for kind in kinds):
            command: Command = frame.f_locals["self"]
            return command
    return None


def _is_served() -> bool:
    """Whether Evennia's REST API asks, which builders may use."""
    names = (str(frame.f_globals.get("__name__")) for frame in _callers())
    return any(name.startswith("evennia.web.api") for name in names)


def copied_body() -> "ObjectDB | None":
    """The object of which Evennia makes a copy now, if it does."""
    copying = (frame for frame in _callers() if frame.f_code.co_name == "copy_object")
    return next((frame.f_locals.get("original_object") for frame in copying), None)


class GuardedAttributes(AttributeHandler):  # type: ignore[misc]
    """The Attributes of an assistant's script or body.

    A building command of anybody but an admin finds no Attribute with talk and cannot write one.
    No building command copies them: whatever is made from an assistant begins a life of its own.
    """

    def _refuses(self, accessing_obj: Any = None) -> Command | None | bool:
        """What is refused an Attribute with talk: a command, or True for `accessing_obj`."""
        if accessing_obj is not None:
            return not is_admin(accessing_obj)
        command = _command()
        return None if command is None or is_admin(command.caller) else command

    def _tell(self, command: Command | bool, why: str = _REFUSED) -> None:
        if isinstance(command, Command):
            command.caller.msg(why.format(name=self.obj.key))

    def refuse_write(self, accessing_obj: Any = None, why: str = _REFUSED) -> bool:
        """Whether a write is refused; a command ends with it."""
        refused = self._refuses(accessing_obj)
        if isinstance(refused, Command):
            self._tell(refused, why)
            raise InterruptCommand
        return bool(refused)

    def has(self, key: Any = None, category: str | None = None) -> Any:
        """As Evennia's."""
        if is_life(key, category) and (refused := self._refuses()):
            self._tell(refused)
            return [False for _ in key] if len(make_iter(key)) > 1 else False
        return super().has(key, category)

    def get(
        self,
        key: Any = None,
        default: Any = None,
        category: str | None = None,
        return_obj: bool = False,
        strattr: bool = False,
        raise_exception: bool = False,
        accessing_obj: Any = None,
        default_access: bool = True,
        return_list: bool = False,
    ) -> Any:
        """As Evennia's."""
        options = (return_obj, strattr, raise_exception, accessing_obj, default_access, return_list)
        if key is None and self._refuses(accessing_obj):
            shown = self._without_life(super().all(category))
            return shown if return_obj else [attribute.value for attribute in shown]
        if key is not None and is_life(key, category) and self._refuses(accessing_obj):
            if raise_exception:
                raise AttributeError
            return [] if return_list else default
        return super().get(key, default, category, *options)

    def all(self, *args: Any, **options: Any) -> Any:
        """As Evennia's, but without talk in the REST API, and in a building command, to copy."""
        found = super().all(*args, **options)
        is_open = _command() is None and not _is_served()
        return found if is_open else self._without_life(found)

    def _keeps_out(self, key: Any, category: str | None, accessing_obj: Any) -> bool:
        """Whether a change of Attributes is refused."""
        if is_life(key, category):
            return self.refuse_write(accessing_obj)
        return is_spending(key, category) and self.refuse_write(accessing_obj, _CAPPED)

    def add(
        self, key: Any, value: Any, category: str | None = None, *args: Any, **options: Any
    ) -> Any:
        """As Evennia's."""
        if self._keeps_out(key, category, options.get("accessing_obj")):
            return None
        return super().add(key, value, category, *args, **options)

    def remove(self, key: Any = None, category: str | None = None, **options: Any) -> Any:
        """As Evennia's."""
        if self._keeps_out(key, category, options.get("accessing_obj")):
            return None
        return super().remove(key, category=category, **options)

    def clear(self, *args: Any, **options: Any) -> Any:
        """As Evennia's; whoever may delete an assistant deletes all of it."""
        if type(_command()).__name__ == "CmdWipe":
            self.refuse_write()
        return super().clear(*args, **options)

    @staticmethod
    def _without_life(attributes: Iterable["Attribute"]) -> list["Attribute"]:
        return [a for a in attributes if not is_life(a.db_key, a.db_category)]


class _Rows:
    """The rows of an assistant's Attributes, as `examine` lists them to somebody."""

    def __init__(self, rows: Any, is_hidden: bool):
        self._rows, self._is_hidden = rows, is_hidden

    def all(self) -> Any:
        """The rows, without talk where that is hidden."""
        rows = self._rows.all()
        return GuardedAttributes._without_life(rows) if self._is_hidden else rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


class StoredPrivacy:
    """For the typeclasses of an assistant's script and body."""

    def swap_typeclass(self, *args: Any, **options: Any) -> Any:
        """As Evennia's; with another typeclass, what is stored would be open to builders."""
        self.attributes.refuse_write()
        return super().swap_typeclass(*args, **options)  # type: ignore[misc]

    @lazy_property
    def attributes(self) -> GuardedAttributes:
        """As Evennia's `attributes`."""
        return GuardedAttributes(self, ModelAttributeBackend)

    @property
    def db_attributes(self) -> Any:
        """As Evennia's `db_attributes`, which `examine` lists."""
        rows = super().db_attributes  # type: ignore[misc]
        command = _command()
        lists = command is not None and hasattr(command, "format_attributes")
        return _Rows(rows, True) if lists and not is_admin(command.caller) else rows
