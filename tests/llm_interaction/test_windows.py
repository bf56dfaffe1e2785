"""A model's window is read from servers' answers and from errors."""

# ruff: noqa: E501 - the texts stand as they come

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.failures import is_overflow, named_window
from evennia_ai.llm_interaction.models import Model
from evennia_ai.llm_interaction.servers import (
    HALVED,
    LEAST_TOKENS,
    MOST_TOKENS,
    NAMED,
    PROPS,
    TABLE,
    Window,
    window_in,
)
from tests.strategies import FEW

LLAMA = (
    '{"error": {"code": 400, "message": "request (12031 tokens) exceeds the available context size '
    '(8192 tokens), try increasing it", "type": "exceed_context_size_error", '
    '"n_prompt_tokens": 12031, "n_ctx": 8192}}'
)
OPENAI = "This model's maximum context length is 8192 tokens. However, "
# Texts of errors and the window that each names.
ERRORS = (
    (LLAMA, 8192),
    (LLAMA.replace('"', "'"), 8192),
    (f"{OPENAI}you requested 9000 tokens (8000 in the messages, 1000 in the completion).", 8192),
    (f"{OPENAI}you requested 9000 tokens.", 8192),
    (f"{OPENAI}your messages resulted in 9,001 tokens.", 8192),
    ("`max_tokens` is too large: 1024. This model's maximum context length is 4096 tokens and your request has 3500 input tokens (1024 > 4096 - 3500).", 4096),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000),
    ("input length and max_tokens exceed context limit: 188240 + 21333 > 200000", 200000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576),
    ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
    ("The model is loaded with context length of only 4096 tokens", 4096),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs`", 4096),
    ("Current length is 9000 while limit is 8192", 8192),
    ("Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33000 tokens: 32000 tokens from the input messages and 1000 tokens for the completion.", 32768),
    ("Requested tokens (9000) exceed context window of 8192", 8192),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.", 272000),
    ("Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.", 32768),
    ("Input is too long for requested model.", None),
    # numbers that are no limits
    ("prompt too long; exceeded max context length by 512 tokens", None),
    ("maximum context length exceeded by 512 tokens", None),
    ("invalid params, context window exceeds limit (2013)", None),
    ("context length exceeded (error 1301)", None),
    ("Context size has been exceeded. 4000 tokens were sent", None),
    ("This model's maximum context length is 128k tokens.", None),
)  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
sizes = st.integers(1000, 200_000)


FACTS = {"general.x": 4, "llama.context_length": 131072}
# Answers of servers, and the window of the model `m` in each.
ANSWERS = (
    ({"default_generation_settings": {"n_ctx": 4096}}, 4096),  # llama.cpp
    ({"data": [{"id": "/x/smol.gguf", "meta": {"n_ctx": 8192, "n_ctx_train": 9999}}]}, 8192),
    ({"data": [{"id": "a", "max_model_len": 4096}, {"id": "m", "max_model_len": 512}]}, 512),
    ({"data": [{"id": "a", "max_model_len": 4096}, {"id": "b", "max_model_len": 512}]}, None),
    ({"models": [{"name": "x", "context_length": 999}, {"name": "m:latest"}]}, None),  # Ollama
    ({"models": [{"name": "x"}, {"name": "m:latest", "context_length": 4096}]}, 4096),
    ({"models": []}, None),
    ({"model_info": FACTS}, 131072),
    ({"model_info": FACTS, "parameters": 'stop   "x"\nnum_ctx          8192\n'}, 8192),
    ({"model_info": FACTS, "parameters": "num_ctx 1"}, 131072),
)


class TestAnswers(unittest.TestCase):
    def test_servers(self):
        """The window is where each kind of server names it, that of the model asked for."""
        for answer, tokens in ANSWERS:
            with self.subTest(answer):
                self.assertEqual(window_in(answer, "m", PROPS), tokens and Window(tokens, PROPS))

    @given(anything, st.sampled_from(["data", "models", "n_ctx", "model_info", "meta"]))
    @FEW
    def test_any_answer(self, answer, key):
        """An answer of any form gives a window within bounds, or none."""
        for shaped in (answer, {key: answer}, {key: [{"id": "m", "n_ctx": answer}, answer]}):
            found = window_in(shaped, "m", PROPS)
            self.assertTrue(found is None or LEAST_TOKENS <= found.tokens <= MOST_TOKENS)

    def test_what_overflow_errors_name(self):
        """The window is read from the errors of the usual servers."""
        for text, window in ERRORS:
            with self.subTest(text):
                self.assertTrue(is_overflow(text))
                self.assertEqual(named_window(text), window)

    def test_other_errors(self):
        """An error about something else is no overflow, and absurd figures are none."""
        for text in (
            "max_tokens is too large: 4096",
            "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for x",
            "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        ):
            self.assertFalse(is_overflow(text), text)
        self.assertIsNone(named_window("n_ctx: 7, context length 999999999999999999"))

    @given(st.text())
    @FEW
    def test_any_text(self, text):
        """Whatever a text holds, its figure lies within bounds."""
        window = named_window(text + ' "n_ctx": ' + text)
        self.assertTrue(window is None or LEAST_TOKENS <= window <= MOST_TOKENS)


class TestKnown(unittest.TestCase):
    def test_least_and_its_source(self):
        """The least of table, server and overflow counts, with its source."""
        model = new_model()
        self.assertIsNone(model.window())
        self.assertEqual(model.window(9000), Window(9000, TABLE))
        model.serves(Window(8192, PROPS))
        self.assertEqual(model.window(9000), Window(8192, PROPS))
        model.refuses(4096, 6500)
        self.assertEqual(model.window(9000), Window(4096, NAMED))
        # What an overflow told holds until the server says another window.
        for served, limit in ((8192, 4096), (6000, 6000)):
            model.serves(Window(served, PROPS))
            self.assertEqual(model.window().tokens, limit)

    def test_a_named_window_replaces_a_guess(self):
        """A guess gives way to a window that is named."""
        model = new_model()
        model.refuses(None, 2000)
        self.assertEqual(model.window(), Window(1000, HALVED))
        model.refuses(1500, 0)
        model.refuses(None, 0)
        self.assertEqual(model.window(), Window(1500, NAMED))
        # A server that refuses far less than its table says has another window.
        model = new_model()
        model.refuses(None, 5000)
        self.assertEqual(model.window(128000), Window(2500, HALVED))

    @given(
        st.lists(st.tuples(sizes, st.none() | sizes)),
        st.none() | sizes,
        st.none() | sizes,
    )
    @FEW
    def test_the_limit_falls_below_what_was_refused(self, refused, listed, served):
        """After each overflow the limit is less than the refused request, whatever it named."""
        model = new_model()
        if served:
            model.serves(Window(served, PROPS))
        for prompt, named in refused:
            model.refuses(named, prompt + 500)
            self.assertLess(model.window(listed).tokens, prompt + 500)
            self.assertGreaterEqual(model.window(listed).tokens, 1)


def new_model():
    return Model(lambda: 0.0)
