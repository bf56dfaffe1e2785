"""The offline model behind LiteLLM."""

import asyncio
import json
import unittest

import litellm

from evennia_ai.llm_interaction.offline.provider import PROVIDER, register
from tests.llm_interaction.offline.requests import TOOLS

ASKED = [{"role": "user", "content": "Alice: remember that I like jam"}]


class TestProvider(unittest.TestCase):
    def setUp(self):
        self.handler = register(litellm)

    def test_registers_once(self):
        """Registering again changes nothing."""
        self.assertIs(register(litellm), self.handler)
        entries = [e for e in litellm.custom_provider_map if e["provider"] == PROVIDER]
        self.assertEqual(len(entries), 1)

    def test_tool_calls(self):
        """Tool calls come back in the chat format, with arguments as JSON and an id."""
        request = {"messages": ASKED, "tools": TOOLS, "max_tokens": 50}
        answer = asyncio.run(litellm.acompletion(model="offline/extractive", **request))
        (call,) = answer.choices[0].message.tool_calls
        self.assertEqual(call.function.name, "add_journal_entry")
        self.assertEqual(json.loads(call.function.arguments)["content"], "Alice: I like jam")
        self.assertTrue(call.id)
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")

    def test_words(self):
        """Words come back as content, without tokens or cost."""
        messages = [{"role": "user", "content": "hello"}]
        answer = litellm.completion(model="offline/extractive", messages=messages)
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.usage.total_tokens, 0)
        self.assertEqual(litellm.completion_cost(answer, model="offline/extractive"), 0)
