"""Counting tokens by the best counter there is."""

import contextlib
import importlib.util
import os
import unittest
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction import tokens as token_counter
from evennia_ai.llm_interaction.tokens import (
    counter_for,
    encoding_name,
    estimate,
    use_shipped_vocabularies,
)
from tests.strategies import FEW

VOCABULARIES = {"cl100k_base", "o200k_base"}
SAMPLES = (
    "The miller said that the old bridge by the river would be mended before the first snow.",
    "def cut(points):\n    return tuple(p for p in points if p % 2 == 0)\n",
    '{"name": "look", "arguments": {"target": "the mill", "count": 12}}',
)


def count_tokens(text, model="gpt-4"):
    return counter_for(model)(text)


@contextlib.contextmanager
def fresh_counters(*replaced):
    """Counters that are made anew, without the environment's vocabularies, in patched modules."""
    token_counter._tiktoken_counter.cache_clear()
    with contextlib.ExitStack() as patches:
        patches.callback(token_counter._tiktoken_counter.cache_clear)
        patches.enter_context(mock.patch.dict(os.environ))
        os.environ.pop("TIKTOKEN_CACHE_DIR", None)
        for each in replaced:
            patches.enter_context(each)
        yield


class TestCounters(unittest.TestCase):
    def test_families(self):
        """Newer families have their own vocabulary; unknown models the older one."""
        newer = ("gpt-4o-mini", "openai/gpt-4.1", "azure/x/GPT-5", "o3-mini")
        for model in (*newer, "gpt-4", "claude-x", "ollama/llama3", ""):
            name = "o200k_base" if model in newer else "cl100k_base"
            self.assertEqual(encoding_name(model), name)

    def test_shipped_vocabularies(self):
        """Vocabularies come from the folder litellm ships, and litellm is not imported for it."""
        with fresh_counters():
            self.assertTrue(use_shipped_vocabularies())
            self.assertTrue(os.environ["TIKTOKEN_CACHE_DIR"].endswith("tokenizers"))
            self.assertEqual({encoding_name(m) for m in ("gpt-4", "gpt-4o")}, VOCABULARIES)
            self.assertNotIn(estimate, map(counter_for, ("gpt-4", "gpt-4o")))
            self.assertEqual(count_tokens("hello world"), 2)

    def test_odd_texts(self):
        """Marks that mean something to a tokenizer are text; long texts are counted by pieces."""
        self.assertGreater(count_tokens("<|endoftext|>"), 3)
        piece = "barrel " * 10_000
        whole = count_tokens(piece * 3)
        self.assertLess(abs(whole - 3 * count_tokens(piece)), 10)
        self.assertGreater(whole, 29_000)

    @FEW
    @given(st.text(), st.sampled_from(("gpt-4", "gpt-4o")))
    def test_any_text(self, text, model):
        """Any text can be counted; none is nothing, some is something, no more than its bytes."""
        tokens = count_tokens(text, model)
        self.assertEqual(tokens > 0, bool(text))
        self.assertLessEqual(tokens, len(text.encode("utf-8", "surrogatepass")))

    def test_above_tiktoken(self):
        """For English, code and JSON it is no less than the true count, and no two and a half."""
        for text in SAMPLES:
            true = count_tokens(text)
            self.assertTrue(true <= estimate(text) < 2.5 * true, text)

    def test_the_estimate(self):
        """Without vocabularies nothing is downloaded; one that cannot be read is none."""
        find = importlib.util.find_spec
        for replaced in (
            mock.patch("importlib.util.find_spec", lambda name: name != "litellm" and find(name)),
            mock.patch("tiktoken.get_encoding", side_effect=OSError("no network")),
            mock.patch("tiktoken.get_encoding", side_effect=ValueError("no such vocabulary")),
        ):
            with fresh_counters(replaced):
                self.assertIs(counter_for("gpt-4"), estimate)
                self.assertEqual(count_tokens("a" * 40), 13)
