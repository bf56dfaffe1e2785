"""Which models run on the game's own machine."""

import unittest

from evennia_ai.llm_interaction.servers import is_near, runs_here

HERE = "http://127.0.0.1:8000/v1"


class TestRunsHere(unittest.TestCase):
    def test_the_rule(self):
        """Model, game's model, configured address, environment: whether it runs here."""
        ollama = (("OLLAMA_API_BASE", "http://10.0.0.5:11434"),)
        for model, home, base, environ, here in (
            ("offline/extractive", "openai/gpt-4o", None, (), True),
            ("openai/gpt-4o", "openai/gpt-4o", None, (), False),
            ("gpt-4o", "gpt-4o", None, (), False),
            ("openai/qwen", "openai/qwen", HERE, (), True),
            ("qwen", "qwen", HERE, (), True),
            ("qwen", "openai/other", HERE, (), True),
            ("Qwen/Qwen2", "Qwen/Qwen2", "http://localhost:8000/v1", (), True),
            ("openai/qwen", "openai/qwen", "http://[::1]:8000/v1", (), True),
            ("openai/qwen", "openai/qwen", "http://10.0.0.5:8000/v1", (), False),
            ("openai/qwen", "openai/qwen", "https://localhost.example.com/v1", (), False),
            ("anthropic/claude", "openai/qwen", HERE, (), False),
            ("ollama/llama3", "ollama/llama3", None, (), True),
            ("ollama_chat/llama3", "openai/gpt-4o", "https://api.example.com", (), True),
            ("ollama/llama3", "ollama/llama3", "http://10.0.0.5:11434", (), False),
            ("ollama/llama3", "openai/gpt-4o", None, ollama, False),
            ("ollama/llama3", "ollama/llama3", HERE, ollama, True),
            ("", "", None, (), False),
        ):
            with self.subTest(model=model, base=base, environ=environ):
                self.assertEqual(runs_here(model, home, base, environ), here)

    def test_addresses(self):
        """Those of the machine and of its own network."""
        near = ("http://127.0.0.1/v1", "http://192.168.1.5/v1", "http://[::1]:1", "http://gpu.lan/")
        far = ("https://llm.example.com/v1", "http://8.8.8.8/", "", "https://local.example.org")
        for address in (*near, *far):
            with self.subTest(address=address):
                self.assertEqual(is_near(address), address in near)
