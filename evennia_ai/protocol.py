"""What a service may use: the assistant, its body, its stores, and the mind that works for it.

Services name these types for the type checker alone, and never import Evennia. Everything is called
on the reactor thread. What returns a Deferred does its work elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # for annotations only
    from twisted.internet.defer import Deferred

    from evennia_ai.game.parts import Assistant as Assistant
    from evennia_ai.game.world import GameHandler as GameHandler
    from evennia_ai.mind.mind import Mind as Mind
    from evennia_ai.rag_memory.entity_store import EntityHandler
    from evennia_ai.rag_memory.journal import JournalHandler

    # What the game tells the body alone while it speaks, at once or at the end of its command.
    Told = tuple[str, ...] | Deferred[tuple[str, ...]]
else:
    Assistant = GameHandler = Mind = Told = Any


@dataclass(frozen=True, slots=True)
class Named:
    """Something or somebody in the game, as the argument of a call names it."""

    id: str  # stable id
    names: tuple[str, ...]  # its name and aliases
    kind: str = "thing"  # or ``person``, ``exit``, ``place``, ``assistant``


class Character(Protocol):
    """What a service may use of the assistant's body; `stable_id` survives a rename."""

    key: str
    stable_id: str
    journal: JournalHandler
    entities: EntityHandler
