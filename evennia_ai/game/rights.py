"""A player's rights: what somebody may do in the game without those that only staff have."""

import copy
from typing import Any

from django.conf import settings
from evennia.typeclasses.models import TypedObject
from evennia.typeclasses.tags import PermissionHandler


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
        higher = {*ranks[ranks.index(own) + 1 :]} if own in ranks else {*ranks}
        return [own if name.removesuffix("s") in higher else name for name in super().all()]

    def _getcache(self, key: str | None = None, category: str | None = None) -> list[Any]:
        names = self.all()
        return [tag for tag in super()._getcache(key, category) if tag.db_key in names]
