"""What the rest of the package knows about tools: which names have which trait.

Each trait is a class attribute of `evennia_ai.tools.Tool`, so that a game's own tools have them
too. Pure functions take a `ToolTraits` as a parameter and know no tool by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """Names of tools by trait; a tool without any is a plain one.

    Args:
        speaks: Others hear the argument `text`.
        to_one: Only the person in the argument `target` hears it.
        silent: Does nothing, so that text beside the call is still said.
        recalls: The result consists of memories.
        tells_nothing_new: The result only confirms the call, or repeats what is known already.
        extracts: May be used while dreaming and before a compaction.
    """

    speaks: frozenset[str] = frozenset()
    to_one: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    recalls: frozenset[str] = frozenset()
    tells_nothing_new: frozenset[str] = frozenset()
    extracts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tools: Mapping[str, object]) -> "ToolTraits":
        """The traits of tools by name; each tool has an attribute for each trait."""

        def having(trait: str) -> frozenset[str]:
            return frozenset(name for name, tool in tools.items() if getattr(tool, trait))

        return cls(**{field.name: having(field.name) for field in fields(cls)})
