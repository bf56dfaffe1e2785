"""New assistants: their names and their bodies."""

import re
from typing import Any

from evennia import AccountDB, DefaultCharacter, create_object
from evennia.utils.utils import class_from_module

from evennia_ai.assistant_character import BODY, OWNER_LOCKS, AssistantMixin
from evennia_ai.assistant_script import all_assistants
from evennia_ai.errors import Refusal
from evennia_ai.language.script import folded, normalized

NAME_CHARS = 40
# Marks that commands and prompts are written with stand in no name.
_NAME = re.compile(r"[^\W_][^=:;,/|#*{}\[\]\"<>\\]*")


def new_body(caller: Any, key: str, typeclass: str) -> AssistantMixin:
    """A new assistant in somebody's room, which is theirs."""
    room, locks = getattr(caller, "location", None), OWNER_LOCKS.format(id=caller.id)
    if room is None:
        raise Refusal("You are nowhere; go into a room first.")
    body = create_object(typeclass, key=key, location=room, home=room, locks=locks)
    body.ensure_assistant().log(f"made by {caller.key}")
    return body


def good_name(text: str) -> str:
    """A valid, free name for an assistant; raises `Refusal` otherwise."""
    name = normalized("NFC", text.strip())
    if not name:
        raise Refusal("Usage: ai/create <name>[:<typeclass>]")
    if len(name) > NAME_CHARS or not _NAME.fullmatch(name) or not name.isprintable():
        raise Refusal(
            f"`{name[:NAME_CHARS]}` cannot be a name: use up to {NAME_CHARS} characters, begin "
            "with a letter or digit, and use none of = : ; , / | # * { } [ ] < > and quotes."
        )
    if bearer := bearer_of(name):
        raise Refusal(f"There is {bearer} already. Choose another name.")
    return name


def bearer_of(name: str) -> str:
    """Who bears a name, in any case and normal form; empty if it is free.

    Neither assistants nor players and other characters may be mistaken for a new assistant.
    """
    wanted = folded(name)
    assistants = [script.own_name for script in all_assistants()]
    accounts = AccountDB.objects.values_list("username", flat=True)
    characters = DefaultCharacter.objects.all_family().values_list("db_key", flat=True)
    for kind, keys in (
        ("an assistant", assistants),
        ("an account", accounts),
        ("a character", characters),
    ):
        for key in keys:
            if folded(key) == wanted:
                return f"{kind} called {key}"
    return ""


def body_class(path: str) -> str:
    """The typeclass of a new body, checked; raises `Refusal` if it cannot be an assistant."""
    if not path:
        return BODY
    try:
        found = class_from_module(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise Refusal(f"There is no typeclass `{path}`: {error}") from error
    if not (isinstance(found, type) and issubclass(found, AssistantMixin)):
        raise Refusal(f"`{path}` is no assistant: it must inherit from `AssistantMixin`.")
    return path
