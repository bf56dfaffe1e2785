"""The body of a new assistant: a character of the game's own class that hears and remembers.

Evennia finds an object's class by its path, so the class stands in a module of its own.
"""

from typing import TYPE_CHECKING

from django.conf import settings
from evennia.utils.utils import class_from_module

from evennia_ai.assistant_character import AssistantMixin

if TYPE_CHECKING:
    from evennia import DefaultCharacter as Character
else:
    Character = class_from_module(
        settings.BASE_CHARACTER_TYPECLASS, fallback=settings.FALLBACK_CHARACTER_TYPECLASS
    )


class Assistant(AssistantMixin, Character):
    """A character of the class that the setting ``BASE_CHARACTER_TYPECLASS`` names."""
