"""The names a game may rely on are where they are said to be, and answer as they should."""

import inspect
import unittest
from importlib import import_module

import evennia_ai
from evennia_ai import llm_interaction
from evennia_ai.history.messages import Message
from tests.base import AssistantTest
from tests.waiting import wait_for

FUNCTIONS = {
    "llm_interaction": "build_llm_messages call_llm_simple count_conversation_tokens"
    " format_messages_for_compaction generate_context_summary",
    "rag_memory.memory": "prune_low_importance_entries clear_stale_conversations",
    "rag_memory.entity_store": "run_entity_consolidation_batch",
    "sleep": "run_sleep_tick",
    "sleep.compaction": "compact_conversation_history run_pre_compaction_extraction",
    "sleep.consolidation": "consolidate_memories_to_semantic prune_orphaned_memory_links",
}
TAKING_BOTH = (
    "run_sleep_tick compact_conversation_history run_pre_compaction_extraction"
    " consolidate_memories_to_semantic prune_orphaned_memory_links run_entity_consolidation_batch"
    " build_llm_messages"
)
IN_MEMORY = (
    "compact_conversation_history run_pre_compaction_extraction run_sleep_tick"
    " run_entity_consolidation_batch prune_low_importance_entries clear_stale_conversations"
)


class TestNames(unittest.TestCase):
    """Imports by the documented paths."""

    def test_the_face(self):
        """What games build on is importable from the package itself."""
        for name in ("AssistantCharacter", "AssistantCmdSet", "AssistantMixin", "AssistantScript"):
            self.assertIn("evennia_ai.", getattr(evennia_ai, name).__module__)
        self.assertLessEqual(len(dir(evennia_ai)), 12)
        self.assertTrue(all(getattr(evennia_ai, name) for name in dir(evennia_ai)))
        for module in (evennia_ai, llm_interaction):
            with self.assertRaises(AttributeError):
                _ = module.no_such_name

    def test_functions(self):
        """Each documented function is in its module; what was one of memory's is there, too."""
        for home, names in FUNCTIONS.items():
            module = import_module(f"evennia_ai.{home}")
            for name in names.split():
                self.assertTrue(callable(getattr(module, name)), name)
                if name in TAKING_BOTH.split():
                    first = list(inspect.signature(getattr(module, name)).parameters)[:2]
                    self.assertEqual(first, ["script", "character"], name)
        memory = import_module("evennia_ai.rag_memory")
        for name in IN_MEMORY.split():
            self.assertTrue(callable(getattr(memory, name)), name)
        self.assertIn("500 words", llm_interaction.DEFAULT_COMPACTION_PROMPT)

    def test_counting(self):
        """Stored counts are summed; what has none is counted; nothing is no tokens."""
        two = [Message("user", "hello"), Message("assistant", "hi")]
        for messages, tokens in (
            (None, 0),
            ([], 0),
            ([{"role": "user", "tokens": 7}], 7),
            (two, 12),
            ([Message("user", None)], 4),
        ):
            self.assertEqual(llm_interaction.count_conversation_tokens(messages), tokens)


class TestSummaryFunctions(AssistantTest):
    """The summary functions against a real script."""

    default = "They talked of the harvest."

    def test_simple_call(self):
        """A simple call fires with the text."""
        text = wait_for(llm_interaction.call_llm_simple(self.script, "Be brief.", "Who?"))
        self.assertEqual(text, self.default)
        (request,) = self.model.requests
        self.assertEqual(request.messages[1], {"role": "user", "content": "Who?"})

    def test_compact_prompt_overrides(self):
        """`compact_prompt` takes the place of the built-in prompt."""
        prompt = "Summarise in the style of a ballad."
        self.configure(compact_prompt=prompt)
        wait_for(llm_interaction.generate_context_summary(self.script, self.fill(20)))
        self.assertEqual(self.model.requests[0].messages[0]["content"], prompt)
