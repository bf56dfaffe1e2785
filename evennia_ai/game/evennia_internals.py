"""All that relies on Evennia's internals: the Attribute cache, the pickle field, the script timer.

`AttributeStore` keeps values in an object's Attributes: load a copy, transform it, save it once.
Inside `transaction()` all writes take effect or none; it rolls back the database *and* Evennia's
caches.

Evennia walks through a value twice in Python before it pickles it, and wraps every list and dict
at each reading, as it may hold database objects or be changed in place. For 600 messages that is
25 ms each way on the reactor. Plain data needs neither, so it is copied by `marshal` instead;
everything else goes through Evennia.

Builders read and change an assistant's configuration. Its life (`is_life`: talk, memories) is for
admins, who read it with `aihistory` and `aimemory`: the Attributes that hold it are locked, and as
Evennia's building commands ask for no lock, their texts are sealed (`history.stored`) when they are
stored and open when they are read, so that nothing above knows of it.
"""

import marshal
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pickle import dumps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db import transaction as db_transaction
from evennia.commands.cmdhandler import _ERROR_UNTRAPPED
from evennia.utils.dbserialize import deserialize
from evennia.utils.picklefield import DEFAULT_PROTOCOL, PickledObject

from evennia_ai.errors import StoreError
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.live import HISTORY, TAIL
from evennia_ai.history.stored import holds_sealed, put_aside, seal, unseal
from evennia_ai.rag_memory.journal import JOURNAL
from evennia_ai.rag_memory.seen import KEY as QUARANTINE
from evennia_ai.turns.schema import Place, Reader, is_sound
from evennia_ai.turns.tools.waiting import KEY as WAITING

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from evennia import DefaultScript
    from evennia.typeclasses.attributes import Attribute
    from evennia.typeclasses.models import TypedObject

# Attributes without a category that hold talk or what was made of it. Those with a category
# whose name begins with `CATEGORIES` do as well.
LIFE = {HISTORY, TAIL, JOURNAL, WAITING, QUARANTINE}
LIFE |= {"event_queue", "compaction_outbox", "last_extraction", "summaries_stale"}
CATEGORIES = "ai_"
# Evennia checks them for code that names an `accessing_obj`.
LOCKS = "attrread:perm(Admin);attredit:perm(Admin)"
# How packed database objects and sessions begin inside a stored value.
_PACKED = b"__packed_"


def is_life(key: str, category: str | None) -> bool:
    """Whether an Attribute holds talk or memories."""
    return category.startswith(CATEGORIES) if category else key in LIFE


def read(attribute: "Attribute", owner: str = "") -> Any:
    """A copy of an Attribute's value: database objects unpacked, texts of `owner` unsealed."""
    value = unseal(attribute.db_value, owner) if owner else attribute.db_value
    try:
        data = marshal.dumps(value)
    except ValueError:
        return unseal(deserialize(attribute.value), owner)
    if _PACKED in data:
        return unseal(deserialize(attribute.value), owner)
    return value if owner else marshal.loads(data)


def write(attribute: "Attribute", value: object, owner: str = "") -> None:
    """Store a copy of a value in an Attribute, its texts sealed for `owner` if there is one."""
    if owner and not attribute.db_lock_storage:  # made by hand
        attribute.lock_storage = LOCKS
    try:
        data = marshal.dumps(value)
    except ValueError:  # not of plain types alone
        attribute.value = seal(deserialize(value), owner) if owner else value
        return
    plain = seal(value, owner) if owner else marshal.loads(data)
    rows = type(attribute)._default_manager.filter(pk=attribute.pk)
    # The field itself would first copy it in Python.
    packed = PickledObject(b64encode(dumps(plain, DEFAULT_PROTOCOL)).decode("ascii"))
    if not rows.update(db_value=packed):
        attribute.value = plain  # the row is gone: what Evennia does then
        return
    attribute.db_value = plain


# Stands for a stored None, which must differ from nothing stored.
_STORED_NONE = object()
# Keys named in one query; databases bound the number of values in it.
_MOST_NAMED = 500


@lru_cache(maxsize=1_000)
def _cache_key(key: str, category: str | None) -> str:
    return f"{key.lower()}-{category}"


def _stamp(attribute: "Attribute | None") -> object:
    if attribute is None:
        return None
    return _STORED_NONE if attribute.db_value is None else attribute.db_value


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


class AttributeStore:
    """A store in the Attributes of a typeclassed object.

    `readers` tell which values somebody else may have put into which Attributes. A value that
    cannot be used is put aside before it is overwritten.
    """

    def __init__(self, obj: "TypedObject", readers: Mapping[Place, Reader] = MappingProxyType({})):
        self.obj = obj
        self._readers = readers
        self._written: dict[Place, object] = {}
        self._id = ""

    def _owner(self, key: str, category: str | None) -> str:
        """Whom the texts of an Attribute are sealed for; empty for one that builders may read."""
        if not is_life(key, category):
            return ""
        self._id = self._id or stable_id(self.obj)
        return self._id

    def _attribute(self, key: str, category: str | None) -> Any:
        """An Attribute or None, from Evennia's own cache if it is there.

        Every tick asks for dozens of them, and Evennia's handler takes ten times as long.
        """
        cache, place = self._cache(), _cache_key(key, category)
        if place in cache:
            return cache[place]
        return self.obj.attributes.get(key, category=category, return_obj=True)

    def _cache(self) -> dict[str, Any]:
        """Evennia's cache of Attributes, by key and category; None stands for none there."""
        cache: dict[str, Any] = self.obj.attributes.backend._cache
        return cache if settings.TYPECLASS_AGGRESSIVE_CACHE else {}

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Load Attributes of a category that are not cached yet, also absent ones, in one query.

        Evennia asks the database once for each key: dozens of queries at an assistant's first
        tick, and one for each summary ever made.
        """
        cache = self._cache()
        missing = [key for key in keys if _cache_key(key, category) not in cache]
        if not missing or not settings.TYPECLASS_AGGRESSIVE_CACHE:
            return
        rows = self.obj.db_attributes.filter(db_category=category)
        if len(missing) <= _MOST_NAMED:
            rows = rows.filter(db_key__in=missing)
        found = {attribute.db_key: attribute for attribute in rows}
        for key in missing:
            cache.setdefault(_cache_key(key, category), found.get(key))

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A copy of a value as plain data, or the default."""
        attribute = self._attribute(key, category)
        return default if attribute is None else read(attribute, self._owner(key, category))

    def get_own(self, key: str, category: str | None = None) -> list[Any]:
        """The items of a stored list that this store has sealed, not those put in by hand."""
        attribute, owner = self._attribute(key, category), self._owner(key, category)
        items = attribute.db_value if attribute is not None else None
        items = items if isinstance(items, list) else []
        return [unseal(item, owner) for item in items if holds_sealed(item, owner)]

    def stamp(self, key: str, category: str | None = None) -> object:
        """The stored value's own object, which Evennia replaces at every change."""
        return _stamp(self._attribute(key, category))

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""
        return tuple(self.stamp(key, category) for key in keys)

    def set(self, key: str, value: object, category: str | None = None) -> None:
        """Store a value in one write; a new Attribute is made and filled in one transaction."""
        attribute, owner = self._attribute(key, category), self._owner(key, category)
        if attribute is None:
            with transaction():
                locks = LOCKS if owner else ""
                self.obj.attributes.add(key, None, category, lockstring=locks)
                attribute = self._attribute(key, category)
                _touch(self.obj, attribute)
                write(attribute, value, owner)
        else:
            _touch(self.obj, attribute)
            if reader := self._readers.get((category, key)):
                is_ours = self._written.get((category, key)) is _stamp(attribute)
                if not is_ours and not is_sound(reader, old := read(attribute, owner)):
                    put_aside(self, old, key, category)
            write(attribute, value, owner)
        if (category, key) in self._readers:
            self._written[category, key] = _stamp(attribute)

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value."""
        self.delete_all([key], category)

    def delete_all(self, keys: Iterable[str], category: str | None = None) -> None:
        """Remove values of a category; Evennia takes four queries for each of them."""
        self.preload(keys := [*keys], category)
        backend = self.obj.attributes.backend
        for part, attributes in self._parts(keys, category):
            _touch(self.obj, None)
            part.delete()
            for attribute in attributes:
                attribute.flush_from_cache(force=True)
                backend._delete_cache(attribute.db_key, category)

    def move(self, keys: Iterable[str], category: str, to: str) -> None:
        """Put values of a category into another one, without writing them again."""
        self.preload(keys := [*keys], category)
        backend, moved = self.obj.attributes.backend, 0
        for part, attributes in self._parts(keys, category):
            moved += part.update(db_category=to)
            for attribute in attributes:
                _touch(self.obj, attribute)
                attribute.db_category = to
                backend._delete_cache(attribute.db_key, category)
                backend._set_cache(attribute.db_key, to, attribute)
        if moved < len(keys):
            raise StoreError(f"Of {len(keys)} values of `{category}` only {moved} are there.")

    def _parts(
        self, keys: Sequence[str], category: str | None
    ) -> Iterator[tuple["QuerySet[Attribute]", list["Attribute"]]]:
        """Attributes of some keys that exist, as queries of so many as one may name."""
        found = [each for key in keys if (each := self._attribute(key, category)) is not None]
        for start in range(0, len(found), _MOST_NAMED):
            part = found[start : start + _MOST_NAMED]
            yield type(part[0])._default_manager.filter(pk__in=[each.pk for each in part]), part

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted, without loading the values."""
        rows = self.obj.db_attributes.filter(db_category=category)
        return tuple(sorted(rows.values_list("db_key", flat=True)))

    def categories(self, beginning: str) -> tuple[str, ...]:
        """All categories with such a beginning, sorted."""
        rows = self.obj.db_attributes.filter(db_category__startswith=beginning)
        return tuple(sorted(set(rows.values_list("db_category", flat=True))))

    transaction, on_commit = staticmethod(transaction), staticmethod(on_commit)


def pace(script: "DefaultScript", interval_s: float) -> None:
    """Tick at another interval from now on, as long as the server runs.

    The script's own interval stays as it is stored, and a stopped timer stays stopped.
    """
    task = script.ndb._task
    if task is None or not task.running:
        return
    changes = task.interval != interval_s
    if changes:
        task.interval = interval_s
        task.starttime = task.clock.seconds()  # its ticks are multiples of the interval from here
    planned = task.call if task.call is not None and task.call.active() else None
    if planned and (changes or planned.getTime() - task.clock.seconds() > interval_s):
        planned.reset(interval_s)


def restart_timer(script: "DefaultScript") -> None:
    """Start the timer of an active script after a crash; one paused by hand stays paused."""
    running = script.ndb._task is not None and script.ndb._task.running
    if script.is_active and not running and not script.db._manually_paused:
        script.start()
    pace(script, script.interval)


def has_failed(told: str) -> bool:
    """Whether Evennia tells with a line that a command has raised an error, which it has logged."""
    return _ERROR_UNTRAPPED[0].strip() in told or _ERROR_UNTRAPPED[1].strip() in told
