"""Traits of tools: class attributes, collected by name."""

import unittest
from typing import ClassVar

from evennia_ai.turns.tools import BUILTIN_TOOLS, Tool
from evennia_ai.turns.tools.execution import ToolRegistry


class Sing(Tool):
    """Sing a line, which a game adds."""

    name = "sing"
    speaks: ClassVar[bool] = True

    def run(self, ctx, **arguments):
        """Sing it."""
        return "Done."


class Ring(Tool):
    """Ring a bell: a plain tool."""

    name = "ring"

    def run(self, ctx, **arguments):
        """Ring it."""
        return "Done."


class TestToolTraits(unittest.TestCase):
    """What the package asks of tools without knowing their names."""

    def test_builtin(self):
        """The package's own tools have the traits that memory, compaction and turns rely on."""
        traits = ToolRegistry(BUILTIN_TOOLS).traits
        self.assertEqual(traits.speaks, {"say", "emote", "whisper"})
        self.assertEqual(traits.to_one, {"whisper"})
        self.assertEqual(traits.silent, {"noop"})
        self.assertEqual(traits.recalls, {"search_memory", "expand_memory"})
        extracting = {"add_journal_entry", "update_entity_observation", "noop"}
        self.assertEqual(traits.extracts, extracting)
        self.assertLess(traits.recalls | traits.speaks, traits.tells_nothing_new)
        self.assertTrue(traits.tells_nothing_new.isdisjoint({"look", "move"}))
