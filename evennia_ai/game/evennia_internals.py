"""All that relies on Evennia's internals: caches, pickle field, timer, permissions, commands.

`AttributeStore` keeps values in an object's Attributes: load a copy, transform it, save it once.
Inside `transaction()` all writes take effect or none; it rolls back the database *and* Evennia's
caches.

Builders read and change an assistant's configuration. Its life (`is_life`: talk, memories) is for
admins, who read it with `aihistory` and `aimemory`: the Attributes that hold it are locked, and as
Evennia's building commands ask for no lock, their texts are sealed (`history.stored`) when they are
stored and open when they are read, so that nothing above knows of it.
"""

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db import transaction as db_transaction
from evennia.commands.cmdhandler import _ERROR_UNTRAPPED, cmdhandler
from evennia.typeclasses.models import TypedObject
from evennia.typeclasses.tags import PermissionHandler
from evennia.utils.dbserialize import deserialize
from evennia.utils.evmenu import InputCmdSet
from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.errors import StoreError
from evennia_ai.history.live import HISTORY, TAIL
from evennia_ai.history.messages import base32
from evennia_ai.history.stored import holds_sealed, put_aside, seal, unseal
from evennia_ai.rag_memory.journal import JOURNAL
from evennia_ai.rag_memory.seen import KEY as QUARANTINE
from evennia_ai.turns.assistant import Place, Reader, is_sound
from evennia_ai.turns.waiting import KEY as WAITING

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from evennia import Command, DefaultCharacter, DefaultScript
    from evennia.typeclasses.attributes import Attribute
    from evennia.typeclasses.models import TypedObject


# Attributes without a category that hold talk or what was made of it. Those with a category
# whose name begins with `CATEGORIES` do as well.
LIFE = {HISTORY, TAIL, JOURNAL, WAITING, QUARANTINE}
LIFE |= {"compaction_outbox", "last_extraction", "summaries_stale"}
CATEGORIES = "ai_"
# Evennia checks them for code that names an `accessing_obj`.
LOCKS = "attrread:perm(Admin);attredit:perm(Admin)"
# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0
# What a body is told of a command that raised an error.
FAILED = "The command `{}` has failed."


def is_life(key: str, category: str | None) -> bool:
    """Whether an Attribute holds talk or memories."""
    if category:
        return category.startswith(CATEGORIES)
    return key in LIFE


# Stands for a stored None, which must differ from nothing stored.
_STORED_NONE = object()
# Keys named in one query; databases bound the number of values in it.
_MOST_NAMED = 500


@dataclass
class _Transaction:
    """The open transaction: the objects and Attributes that it wrote, and its callbacks."""

    touched: list[tuple["TypedObject", "Attribute | None"]] = field(default_factory=list)
    callbacks: list[Callable[[], Any]] = field(default_factory=list)


# Only the reactor thread writes Attributes, so one is enough.
_open: _Transaction | None = None


def _touch(obj: "TypedObject", attribute: "Attribute | None") -> None:
    if _open is not None:
        _open.touched.append((obj, attribute))


def on_commit(callback: Callable[[], Any]) -> None:
    """Call behind the outermost transaction that is open, or now; never if that is rolled back."""
    if _open is not None:
        _open.callbacks.append(callback)
    else:
        callback()


@contextmanager
def transaction() -> Iterator[None]:
    """One database transaction over any objects' Attributes.

    If it fails, every Attribute written inside is thrown out of Evennia's caches, which would
    otherwise go on showing the values that were rolled back. One inside another is a part of it:
    if it fails, both do.
    """
    global _open
    if _open is not None:
        with db_transaction.atomic(savepoint=False):
            yield
        return
    _open = mine = _Transaction()
    try:
        with db_transaction.atomic():
            yield
            connection.validate_no_broken_transaction()  # one inside has failed
    except BaseException:
        _forget(mine.touched)
        raise
    finally:
        _open = None
    for callback in mine.callbacks:
        callback()


def _forget(touched: list[tuple["TypedObject", "Attribute | None"]]) -> None:
    """Drop rolled-back values from the Attribute cache and from their objects' handlers."""
    for _, attribute in touched:
        if attribute is not None:
            attribute.flush_from_cache(force=True)
    for obj in {id(obj): obj for obj, _ in touched}.values():
        obj.attributes.reset_cache()


def stable_id(obj: "TypedObject") -> str:
    """An id made of the dbref and the second of creation, as ``o12.1v3k9fa``.

    The first letter is the kind: `o` an object, `a` an account, `s` a script. Two things that had
    the same dbref one after the other have different ids; a renamed one keeps its own.
    """
    kind = {"accountdb": "a", "scriptdb": "s"}.get(obj._meta.concrete_model._meta.model_name, "o")
    return f"{kind}{obj.pk}.{base32(int(obj.db_date_created.timestamp()))}"


class AttributeStore:
    """A store in the Attributes of a typeclassed object.

    `readers` tell which values somebody else may have put into which Attributes. A value that
    cannot be used is put aside before it is overwritten.
    """

    def __init__(self, obj: "TypedObject", readers: Mapping[Place, Reader] = MappingProxyType({})):
        self.obj = obj
        self._readers = readers
        self._id = ""

    def _owner(self, key: str, category: str | None) -> str:
        """Whom the texts of an Attribute are sealed for; empty for one that builders may read."""
        if not is_life(key, category):
            return ""
        self._id = self._id or stable_id(self.obj)
        return self._id

    def _attribute(self, key: str, category: str | None) -> Any:
        """An Attribute or None; Evennia takes an empty key for all of the category."""
        if not key:
            return None
        return self.obj.attributes.get(key, category=category, return_obj=True)

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Load Attributes of a category that are not cached yet, also absent ones, in few queries.

        Evennia asks the database once for each key: dozens of queries at an assistant's first
        tick, and one for each summary ever made.
        """
        if not settings.TYPECLASS_AGGRESSIVE_CACHE:
            return
        cache = self.obj.attributes.backend._cache
        missing = [key for key in keys if f"{key}-{category}" not in cache]
        rows = (row for part in self._rows(missing, category) for row in part)
        found = {attribute.db_key: attribute for attribute in rows}
        for key in missing:
            cache.setdefault(f"{key}-{category}", found.get(key))

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A copy of a value as plain data, or the default."""
        attribute, owner = self._attribute(key, category), self._owner(key, category)
        if attribute is None:
            return default
        if not owner:  # it may hold database objects
            return deserialize(attribute.value)
        return unseal(attribute.db_value, owner)

    def get_own(self, key: str, category: str | None = None) -> list[Any]:
        """The items of a stored list that this store has sealed, not those put in by hand."""
        owner = self._owner(key, category)
        items = getattr(self._attribute(key, category), "db_value", None)
        if not isinstance(items, list):
            return []
        return [unseal(item, owner) for item in items if holds_sealed(item, owner)]

    def stamp(self, key: str, category: str | None = None) -> object:
        """The stored value's own object, which Evennia replaces at every change."""
        attribute = self._attribute(key, category)
        if attribute is None:
            return None
        if attribute.db_value is None:
            return _STORED_NONE
        return attribute.db_value

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""
        return tuple(self.stamp(key, category) for key in keys)

    def set(self, key: str, value: object, category: str | None = None) -> None:
        """Store a value; a new Attribute is made and filled in one transaction."""
        owner, reader = self._owner(key, category), self._readers.get((category, key))
        with transaction():
            if reader is not None and not is_sound(reader, old := self.get(key, category)):
                put_aside(self, old, key, category)
            attribute = self._attribute(key, category)
            if attribute is None:
                self.obj.attributes.add(key, None, category)
                attribute = self._attribute(key, category)
            _touch(self.obj, attribute)
            if owner:
                value = seal(value, owner)
                if not attribute.db_lock_storage:
                    attribute.lock_storage = LOCKS
            attribute.value = value

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value."""
        self.delete_all([key], category)

    def delete_all(self, keys: Iterable[str], category: str | None = None) -> None:
        """Remove values of a category; Evennia takes four queries for each of them."""
        for rows in self._rows(keys, category):
            attributes = [*rows]
            rows.delete()
            self._changed(attributes, category)

    def move(self, keys: Iterable[str], category: str, to: str) -> None:
        """Put values of a category into another one, without writing them again."""
        keys, moved = [*keys], 0
        for rows in self._rows(keys, category):
            attributes = [*rows]
            moved += rows.update(db_category=to)
            self._changed(attributes, category, to)
        if moved < len(keys):
            raise StoreError(f"Of {len(keys)} values of `{category}` only {moved} are there.")

    def _rows(self, keys: Iterable[str], category: str | None) -> Iterator["QuerySet[Attribute]"]:
        """Attributes of some keys, as queries of so many as one may name."""
        keys = [*keys]
        for start in range(0, len(keys), _MOST_NAMED):
            part = keys[start : start + _MOST_NAMED]
            yield self.obj.db_attributes.filter(db_category=category, db_key__in=part)

    def _changed(self, attributes: Iterable["Attribute"], *categories: str | None) -> None:
        """Drop from Evennia's caches what a query has changed in some categories."""
        _touch(self.obj, None)
        for attribute in attributes:
            attribute.flush_from_cache(force=True)
            for category in categories:
                self.obj.attributes.backend._delete_cache(attribute.db_key, category)

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted, without loading the values."""
        rows = self.obj.db_attributes.filter(db_category=category)
        return tuple(sorted(rows.values_list("db_key", flat=True)))

    def categories(self, beginning: str) -> tuple[str, ...]:
        """All categories with such a beginning, sorted."""
        rows = self.obj.db_attributes.filter(db_category__startswith=beginning)
        return tuple(sorted(set(rows.values_list("db_category", flat=True))))

    transaction, on_commit = staticmethod(transaction), staticmethod(on_commit)


def restart_timer(script: "DefaultScript") -> None:
    """Start the timer of an active script after a crash; one paused by hand stays paused.

    It ticks at the interval of its class from now on, whatever that was.
    """
    task, interval_s = script.ndb._task, script.tick_interval_s
    if script.interval != interval_s:
        script.interval = interval_s
    if task is not None and task.running:
        task.interval = interval_s
    elif script.is_active and not script.db._manually_paused:
        script.start()


def has_failed(told: str) -> bool:
    """Whether Evennia tells with a line that a command has raised an error, which it has logged."""
    return _ERROR_UNTRAPPED[0].strip() in told or _ERROR_UNTRAPPED[1].strip() in told


def passes(somebody: TypedObject, lock: str, of: TypedObject) -> bool:
    """Whether somebody passes a lock such as ``tool:perm(Player)``; superusers as all others.

    `of` is whose lock it is, which functions such as `objtag` and `holds` look at.
    """
    options = {"no_superuser_bypass": True, "default": False, "access_type": lock.partition(":")[0]}
    return bool(of.locks.check_lockstring(somebody, lock, **options))


def as_player(somebody: TypedObject) -> TypedObject:
    """A copy of a character or an account, which a lock passes as it passes a player.

    It is no superuser, and the default rank of an account stands for each higher one. All else is
    theirs: id, tags, attributes, methods. Ask locks with it, and change nothing by it.
    """
    held = somebody.permissions
    held.all()  # read once for all copies
    twin = object.__new__(type(somebody))
    vars(twin).update(vars(somebody))
    twin._state = copy.copy(somebody._state)
    twin._state.fields_cache = dict(somebody._state.fields_cache)
    permissions = _PlayersPermissions(twin)
    permissions._cache, permissions._cache_complete = held._cache, held._cache_complete
    vars(twin)["permissions"] = permissions
    if "is_superuser" in vars(twin):
        vars(twin)["is_superuser"] = False
    elif account := getattr(somebody, "account", None):
        twin.db_account = as_player(account)
    return twin


class _PlayersPermissions(PermissionHandler):  # type: ignore[misc]
    """The permissions of a copy, the rank of a player for each higher one."""

    def all(self, *args: Any, **options: Any) -> list[str]:
        """The permissions, by name."""
        ranks = [rank.lower() for rank in settings.PERMISSION_HIERARCHY]
        own = str(settings.PERMISSION_ACCOUNT_DEFAULT).lower()
        if own in ranks:
            ranks = ranks[ranks.index(own) + 1 :]
        return [own if name.removesuffix("s") in ranks else name for name in super().all()]

    def _getcache(self, key: str | None = None, category: str | None = None) -> list[Any]:
        names = self.all()
        return [tag for tag in super()._getcache(key, category) if tag.db_key in names]


def act(function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
    """Make a function of an act whose steps may wait.

    It returns what the act gives, or raises its error; where a step waits, a Deferred of that.
    """
    steps = inlineCallbacks(function)

    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        done = steps(*args, **kwargs)
        if not done.called:
            return done
        outcomes: list[Any] = []
        done.addBoth(outcomes.append)
        if isinstance(outcomes[0], Failure):
            outcomes[0].raiseException()
        return outcomes[0]

    return begin


@contextmanager
def told_meanwhile(body: "DefaultCharacter") -> Iterator[list[str]]:
    """Lines that a body alone is told meanwhile: what a game says to whoever types."""
    lines: list[str] = []
    body.ndb.ai_told = [*(body.ndb.ai_told or ()), lines]
    try:
        yield lines
    finally:
        body.ndb.ai_told = [each for each in body.ndb.ai_told if each is not lines] or None


@act
def run_command(body: "DefaultCharacter", command: "Command", arguments: str) -> Any:
    """Run a command as a body once, to its end; what the body alone is told by it.

    No parser, nick or stack of commands sees the arguments. A command whose `func` yields, or
    returns a Deferred, has ended when that function has, or after `MOST_S`. Of an error, which
    Evennia logs, it is told that the command has failed.
    """
    command, ended = copy.copy(command), Deferred[bool]()
    command.retain_instance = True  # else Evennia runs a copy
    func, waits, failed = command.func, False, FAILED.format(command.key)

    def end(outcome: object = None) -> object:
        if not ended.called:
            ended.callback(isinstance(outcome, Failure))
        return outcome

    def run() -> Any:
        nonlocal waits
        result = func()
        waits = isinstance(result, Generator | Deferred)
        if isinstance(result, Deferred):
            result.addBoth(end)
        if isinstance(result, Generator):
            return _to_the_end(result, end)
        return result

    def give_up(*_: object) -> bool:
        if body.ndb._getinput is not None:  # nobody will answer what it asks
            body.cmdset.remove(InputCmdSet)
            del body.ndb._getinput
        return False

    command.func = run
    with told_meanwhile(body) as lines:
        running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
        running.addBoth(lambda _: waits or end())
        if (yield ended.addTimeout(MOST_S, reactor, give_up)):
            lines.append(failed)
    return tuple(failed if has_failed(line) else line for line in lines)


def _to_the_end(
    steps: Generator[Any, Any, Any], end: Callable[[object], object]
) -> Generator[Any, Any, Any]:
    """The same steps; `end` gets their outcome."""
    outcome = None
    try:
        yield from steps
    except Exception:
        outcome = Failure()
        raise
    finally:
        end(outcome)
