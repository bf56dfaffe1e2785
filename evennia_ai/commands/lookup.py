"""Finding the assistant somebody means."""

import difflib
from collections.abc import Sequence
from typing import Any

from evennia_ai.assistant_script import all_assistants
from evennia_ai.errors import AssistantError
from evennia_ai.protocol import Assistant


class Refusal(AssistantError):
    """A command cannot do what was asked; the text tells the caller why, in plain words."""


def find_assistant(caller: Any, name: str = "") -> Any:
    """The assistant a name means: whole names before beginnings, those here before others.

    Args:
        caller: Who asks; assistants in the same room come first.
        name: A name, an alias, the beginning of a name, or ``#dbref``. Empty: the only one here.

    Returns:
        The assistant's script.

    Raises:
        Refusal: If there is none, or more than one.
    """
    known = all_assistants()
    place = getattr(caller, "location", None)
    here = [script for script in known if place is not None and script.obj.location is place]
    wanted = name.strip().lower()
    if not wanted:
        return _only(here, "here", "There is no assistant here. Name the one you mean.")
    for fits in (_is_called, _begins_with):
        for group in (here, known):
            found = [script for script in group if fits(script, wanted)]
            if found:
                return _only(found, f"called `{name.strip()}`", "")
    name, names = name.strip(), [script.obj.key for script in known]
    if not names:
        raise Refusal(
            f"There is no assistant called `{name}`, nor any other. Make one: ai/create {name}"
        )
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Do you mean {close[0]}?" if close else ""
    raise Refusal(f"There is no assistant called `{name}`.{hint} Type `ai` for a list.")


def named(name: str) -> Any:
    """The first assistant of exactly this name or alias, or None."""
    wanted = name.strip().lower()
    return next((script for script in all_assistants() if _is_called(script, wanted)), None)


def _is_called(script: Assistant, wanted: str) -> bool:
    body = script.obj
    names = [body.key.lower(), *(alias.lower() for alias in body.aliases.all())]
    return wanted in names or wanted == f"#{body.pk}"


def _begins_with(script: Assistant, wanted: str) -> bool:
    return bool(script.obj.key.lower().startswith(wanted))


def _only(found: Sequence[Any], where: str, none: str) -> Any:
    if not found:
        raise Refusal(none)
    if len(found) > 1:
        listed = ", ".join(f"{script.obj.key} (#{script.obj.pk})" for script in found)
        raise Refusal(f"There is more than one assistant {where}: {listed}. Say which.")
    return found[0]
