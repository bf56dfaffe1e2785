"""Ids of people and places that are never used again, unlike dbrefs."""

from typing import TYPE_CHECKING, Any

from evennia_ai.game.seeing import name_of
from evennia_ai.history.messages import Speaker, base32

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject


def stable_id(obj: "TypedObject") -> str:
    """An id made of the dbref and the second of creation, as ``o12.1v3k9fa``.

    The first letter is the kind: `o` an object, `a` an account, `s` a script. Two things that had
    the same dbref one after the other have different ids; a renamed one keeps its own.
    """
    kind = {"accountdb": "a", "scriptdb": "s"}.get(obj._meta.concrete_model._meta.model_name, "o")
    return f"{kind}{obj.pk}.{base32(int(obj.db_date_created.timestamp()))}"


def speaker_of(obj: "TypedObject", listener: "TypedObject | None" = None) -> Speaker:
    """Who somebody is, for a message: the name that a listener knows, and the stable id."""
    name = str(obj.key) if listener is None else name_of(obj, listener)
    return Speaker(name, stable_id(obj))


def player_ids(somebody: "TypedObject") -> tuple[str, ...]:
    """The stable ids of an account, or of a character's, with all its characters."""
    account = somebody if hasattr(somebody, "characters") else getattr(somebody, "account", None)
    people = [somebody, *((account, *account.characters.all()) if account is not None else ())]
    return tuple(dict.fromkeys(map(stable_id, people)))


def find(identifier: str) -> Any:
    """The object or account a stable id names, or None if it is gone."""
    from evennia import AccountDB, ObjectDB, ScriptDB

    models = {"o": ObjectDB, "a": AccountDB, "s": ScriptDB}
    number = identifier[1:].split(".", 1)[0]
    if identifier[:1] not in models or not number.isdecimal():
        return None
    model = models[identifier[0]]
    # What Evennia has loaded it keeps; a query takes 0.3 ms.
    obj = model.get_cached_instance(int(number)) or model.objects.filter(pk=int(number)).first()
    return obj if obj is not None and stable_id(obj) == identifier else None
