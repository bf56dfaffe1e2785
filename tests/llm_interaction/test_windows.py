"""A model's window is read from servers' answers and from errors, and counted in our tokens."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.windows import (
    CUT,
    HALVED,
    LEAST_TOKENS,
    LOADED,
    MODELS,
    MOST_TOKENS,
    NAMED,
    PROPS,
    SHOWN,
    TABLE,
    KnownWindow,
    Overflow,
    Refused,
    Window,
    figures_of,
    from_loaded,
    from_models,
    from_props,
    from_shown,
    is_overflow,
    least,
    may_be_asked,
    root_of,
)
from tests.strategies import FEW

LLAMA = (
    '{"error": {"code": 400, "message": "request (12031 tokens) exceeds the available context size '
    '(8192 tokens), try increasing it", "type": "exceed_context_size_error", '
    '"n_prompt_tokens": 12031, "n_ctx": 8192}}'
)
OPENAI = "This model's maximum context length is 8192 tokens. However, "
# Texts of errors and the window, the prompt and the total that each names.
ERRORS = (
    (LLAMA, 8192, 12031, None),
    (LLAMA.replace('"', "'"), 8192, 12031, None),
    (f"{OPENAI}you requested 9000 tokens (8000 in the messages, 1000 in the completion).",)
    + (8192, 8000, 9000),
    (f"{OPENAI}you requested 9000 tokens.", 8192, None, 9000),
    (f"{OPENAI}your messages resulted in 9,001 tokens.", 8192, 9001, None),
    (
        "`max_tokens` is too large: 1024. This model's maximum context length is 4096 tokens and "
        "your request has 3500 input tokens (1024 > 4096 - 3500).",
        4096,
        3500,
        None,
    ),
    (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        4096,
        5000,
        None,
    ),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000, None),
    ("input length and max_tokens exceed context limit: 188240 + 21333 > 200000", 200000)
    + (188240, None),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",)
    + (1048576, 1200000, None),
    ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length",)
    + (32768, 40000, None),
    ("The model is loaded with context length of only 4096 tokens", 4096, None, None),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs`", 4096, 4000, None),
    ("Current length is 9000 while limit is 8192", 8192, 9000, None),
    ("Input is too long for requested model.", None, None, None),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
sizes = st.integers(1000, 200_000)


class TestErrors(unittest.TestCase):
    def test_what_overflow_errors_name(self):
        """Window, prompt and total are read from the errors of the usual servers."""
        for text, *figures in ERRORS:
            with self.subTest(text):
                self.assertTrue(is_overflow(text))
                self.assertEqual(figures_of(text), Overflow(*figures))

    def test_other_errors(self):
        """An error about something else is no overflow, and absurd figures are none."""
        self.assertFalse(is_overflow("max_tokens is too large: 4096"))
        self.assertEqual(figures_of("n_ctx: 7, context length 999999999999999999"), Overflow())

    @given(st.text())
    @FEW
    def test_any_text(self, text):
        """Whatever a text holds, its figures lie within bounds."""
        said = figures_of(text + ' "n_ctx": ' + text)
        for figure in (said.window, said.prompt, said.total):
            self.assertTrue(figure is None or LEAST_TOKENS <= figure <= MOST_TOKENS)


class TestAnswers(unittest.TestCase):
    def test_llama(self):
        """llama.cpp: the slot's window, and the one in the list of models."""
        props = {"default_generation_settings": {"n_ctx": 4096}}
        self.assertEqual(from_props(props), Window(4096, PROPS))
        listed = {"data": [{"id": "/x/smol.gguf", "meta": {"n_ctx": 8192, "n_ctx_train": 9999}}]}
        self.assertEqual(from_models(listed, "smol"), Window(8192, MODELS))

    def test_vllm(self):
        """vLLM: the entry of the model, not another one's."""
        entries = [{"id": "a", "max_model_len": 4096}, {"id": "b", "max_model_len": 32768}]
        self.assertEqual(from_models({"data": entries}, "b"), Window(32768, MODELS))
        self.assertIsNone(from_models({"data": entries}, "c"))

    def test_ollama(self):
        """Ollama: the loaded window, the configured one, the largest."""
        loaded = {"models": [{"name": "x:1b", "context_length": 1}, {"name": "y:latest"}]}
        loaded["models"][1]["context_length"] = 4096
        self.assertEqual(from_loaded(loaded, "y"), Window(4096, LOADED))
        self.assertIsNone(from_loaded({"models": []}, "y"))
        info = {"model_info": {"general.x": 4, "llama.context_length": 131072}}
        self.assertEqual(from_shown(info), Window(131072, SHOWN))
        told = {**info, "parameters": 'stop   "x"\nnum_ctx                        8192\n'}
        self.assertEqual(from_shown(told), Window(8192, SHOWN))
        self.assertEqual(from_shown({**info, "parameters": "num_ctx 1"}), Window(131072, SHOWN))

    @given(anything)
    @FEW
    def test_any_answer(self, answer):
        """An answer of any form gives a window within bounds, or none."""
        shaped = (
            from_props(answer),
            from_props({"default_generation_settings": {"n_ctx": answer}}),
            from_models(answer, "m"),
            from_models({"data": [{"id": "m", "max_model_len": answer}, answer]}, "m"),
            from_loaded({"models": answer}, "m"),
            from_shown({"parameters": answer, "model_info": {"a.context_length": answer}}),
        )
        found = least(shaped)
        self.assertTrue(found is None or LEAST_TOKENS <= found.tokens <= MOST_TOKENS)

    def test_who_is_asked(self):
        """Own servers are asked; providers, and what is no address, are not."""
        for address in ("http://127.0.0.1:8080/v1", "https://llm.example.org", "http://box:1/v1/"):
            self.assertTrue(may_be_asked(address), address)
        for address in ("https://api.openai.com/v1", "https://x.ai", "http://[", "nothing"):
            self.assertFalse(may_be_asked(address), address)
        self.assertEqual(root_of("http://box:1/v1/"), "http://box:1")


class TestKnown(unittest.TestCase):
    def test_least_and_its_source(self):
        """The least of table, server and overflow counts, with its source."""
        known = KnownWindow()
        self.assertIsNone(known.limit())
        self.assertEqual(known.limit(9000), Window(9000, TABLE))
        known = known.told(Window(8192, PROPS))
        self.assertEqual(known.limit(9000), Window(8192, PROPS))
        known = known.overflowed(Overflow(4096), Refused(6000, 500))
        self.assertEqual(known.limit(9000), Window(4096, NAMED))

    def test_a_server_with_another_window(self):
        """What an overflow told holds until the server says another window."""
        known = KnownWindow().told(Window(8192, PROPS)).overflowed(Overflow(4096), Refused(0, 0))
        for served, limit in ((None, 4096), (8192, 4096), (6000, 6000)):
            known = known.told(served and Window(served, PROPS))
            self.assertEqual(known.limit().tokens, limit)

    def test_a_named_window_replaces_a_guess(self):
        """A guess gives way to a window that is named, a named one only to a smaller one."""
        known = KnownWindow().overflowed(Overflow(), Refused(2000, 0))
        self.assertEqual(known.limit(), Window(1000, HALVED))
        known = known.overflowed(Overflow(1500), Refused(0, 0))
        self.assertEqual(known.limit(), Window(1500, NAMED))
        self.assertEqual(known.overflowed(Overflow(1600), Refused(0, 0)), known)

    def test_ratio(self):
        """A model that counts more tokens leaves less room; short prompts do not count."""
        known = KnownWindow(served=Window(4096, PROPS))
        self.assertEqual(known.counted(100, 300), known)
        self.assertEqual(known.counted(1000, 900), known)
        known = known.counted(1000, 1210)
        self.assertEqual((known.ratio, known.limit().tokens), (1.25, 3276))
        self.assertIn("4,096 of its own tokens, 1.25 for one of ours", known.limit().source)
        self.assertEqual(known.counted(1000, 1100), known)
        self.assertEqual(known.overflowed(Overflow(total=4700), Refused(3000, 500)).ratio, 1.4)

    def test_prompts_that_are_cut(self):
        """Counts that stay at a ceiling while prompts grow are its window."""
        for counts, tokens in (
            # what a server counts of 1,500, 3,000, 6,000, 6,500 and 7,000 of our tokens
            ((1400, 2900, 4080, 4090, 4085), 4090),
            ((1400, 2900, 4080, 4090, 6600), None),  # one was read whole
            ((1400, 1500, 2900, 1600, 2700), None),  # what it had in its cache is left out
            ((900, 900, 900, 900, 900), None),  # no count at all
            ((800, 1600, 3300, 3500, 3800), None),  # its tokens are larger than ours
        ):
            with self.subTest(counts=counts):
                known = KnownWindow()
                for ours, theirs in zip((1500, 3000, 6000, 6500, 7000), counts, strict=True):
                    known = known.counted(ours, theirs)
                self.assertEqual(known.limit(), tokens and Window(tokens, CUT))

    def test_a_wrong_table(self):
        """A server that refuses far less than its table says has another window."""
        known = KnownWindow().overflowed(Overflow(), Refused(4000, 1000), 128000)
        self.assertEqual(known.limit(128000), Window(2500, HALVED))

    @given(
        st.lists(st.tuples(sizes, st.none() | sizes, st.none() | sizes, st.none() | sizes)),
        st.none() | sizes,
        st.none() | sizes,
    )
    @FEW
    def test_the_limit_falls_below_what_was_refused(self, refused, listed, served):
        """After each overflow the limit is less than the refused request, whatever it named."""
        known = KnownWindow(served and Window(served, PROPS))
        for prompt, *named in refused:
            request = Refused(prompt, 500)
            known = known.overflowed(Overflow(*named), request, listed)
            self.assertLess(known.limit(listed).tokens, prompt + 500)
            self.assertGreaterEqual(known.limit(listed).tokens, 1)
            self.assertGreaterEqual(known.ratio, 1)

    @given(st.lists(sizes, min_size=1), st.floats(1.0, 7.0), st.integers(1000, 100_000))
    @FEW
    def test_no_second_overflow(self, prompts, theirs, window):
        """Once one prompt was counted by the server, prompts within the limit fit."""
        known = KnownWindow(served=Window(window, PROPS)).counted(1000, round(1000 * theirs))
        for ours in prompts:
            if ours <= known.limit().tokens:
                self.assertLessEqual(int(ours * theirs), window * 1.001)
