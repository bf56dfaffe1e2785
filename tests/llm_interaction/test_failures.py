"""What is done about the errors of providers and servers, by their words."""

# ruff: noqa: E501 - the texts stand as they come

import unittest

from evennia_ai.errors import LocalModelError, ModelError
from evennia_ai.llm_interaction.failures import (
    failure_of,
    retry_after_s,
    sorted_failure,
    told_wait_s,
)

# Kind, status, text; the texts are of public documents and reports.
SAID = (
    # no credit
    ("credit", 429, "You exceeded your current quota, please check your plan and billing details. insufficient_quota"),  # OpenAI
    ("credit", 400, "Your credit balance is too low to access the Anthropic API."),
    ("credit", 402, "Insufficient Balance"),  # DeepSeek
    ("credit", 402, "This request requires more credits, or fewer max_tokens."),  # OpenRouter
    ("credit", 403, "Your team has used all available credits"),  # xAI: the status decides
    ("credit", 429, "Your account org-1 <ak-2> is suspended due to insufficient balance, please recharge"),  # Moonshot
    ("credit", 400, "Access denied, please make sure your account is in good standing. Arrearage"),  # DashScope
    ("credit", 429, "\u4f59\u989d\u4e0d\u8db3\u6216\u65e0\u53ef\u7528\u8d44\u6e90\u5305,\u8bf7\u5145\u503c\u3002"),  # Zhipu
    ("credit", 402, "You have exceeded your monthly included credits for Inference Providers."),  # Hugging Face
    ("credit", 200, "insufficient balance (1008)"),  # MiniMax
    ("credit", 400, "Billing hard limit has been reached"),
    ("credit", 403, "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys"),
    ("credit", 401, "You exceeded your current quota, please check your plan. insufficient_quota"),  # Perplexity
    ("credit", 400, "You have reached your specified API usage limits. You will regain access on 2026-12-01."),
    ("credit", 412, "Account x is suspended, possibly due to reaching the monthly spending limit"),  # Fireworks
    ("credit", 403, "This API method requires billing to be enabled."),  # Vertex
    ("credit", 403, "NOT_ENOUGH_BALANCE"),  # Novita
    ("credit", 403, "AccountOverdueError: your account has an overdue balance."),  # Volcengine
    ("credit", 402, "inference prohibited, please enter a payment method or add balance"),  # DeepInfra
    # wait
    ("rate_limit", 429, "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 3000. Please try again in 4s."),
    ("rate_limit", 429, "You exceeded your current quota. Please retry in 38.4s."),  # Gemini's free tier
    ("rate_limit", 429, "ThrottlingException: Too many tokens, please wait before trying again."),  # Bedrock
    ("rate_limit", 429, "Service tier capacity exceeded for this model."),  # Mistral
    ("server", 529, "Overloaded"),  # Anthropic
    ("server", 503, "The model is overloaded. Please try again later."),  # Gemini
    ("server", 503, "Loading model"),  # llama.cpp
    ("server", 503, "Model meta-llama/X is currently loading"),  # Hugging Face
    ("server", 502, "Upstream error from provider"),  # OpenRouter
    # shrink
    ("context_window", 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
    ("context_window", 400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ("context_window", 400, "The input token count (40000) exceeds the maximum number of tokens allowed (32768)."),
    ("context_window", 400, "This model's maximum prompt length is 8192 but the request contains 9000 tokens."),
    ("context_window", 400, "invalid params, context window exceeds limit (2013)"),
    ("context_window", 400, "Prompt exceeds max length"),
    ("context_window", 400, "the request exceeds the available context size. try increasing the context size"),
    ("context_window", 400, "Please reduce the length of the messages or completion."),
    ("context_window", 413, "Request too large for model `x` in organization on tokens per minute (TPM): Limit 6000, Requested 7500"),
    ("context_window", 400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    ("context_window", 400, "Range of input length should be [1, 30720]"),
    ("context_window", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs`"),
    ("context_window", 400, "Prompt length 9000 is greater than max_seq_len 8192"),
    ("context_window", 400, "Input is too long for requested model."),
    ("context_window", 500, "prompt too long; exceeded max context length by 512 tokens"),
    ("context_window", 400, "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000>= n_ctx: 4096)."),
    ("context_window", 413, "Request body too large for gpt-4o-mini model. Max size: 8000 tokens."),  # GitHub
    ("context_window", 422, "`inputs` must have less than 4095 tokens. Given: 5000"),
    ("context_window", 400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),  # SGLang
    ("context_window", 400, "Prompt \u8d85\u957f"),  # Zhipu
    ("context_window", 400, "Your request exceeded model token limit: 8192 (requested: 9000)"),  # Moonshot
    # give up
    ("auth", 401, "Incorrect API key provided: sk-1."),
    ("auth", 400, "API key not valid. Please pass a valid API key."),  # Gemini
    ("not_found", 404, "The model `gpt-9` does not exist or you do not have access to it."),
    ("not_found", 400, "x is not a valid model ID"),  # OpenRouter
    ("not_found", 400, "The model `llama-2` has been decommissioned and is no longer supported."),  # Groq
    ("refused", 400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. content_filter"),
    # reshape, or unknown
    ("bad_request", 400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ("bad_request", 422, "Extra inputs are not permitted"),
    ("bad_request", 400, "something went wrong"),
)  # fmt: skip
BY_STATUS = {400: "bad_request", 413: "bad_request", 422: "bad_request", 429: "rate_limit"}


class TestTexts(unittest.TestCase):
    def test_each_is_sorted(self):
        """Each text means what its provider means by it."""
        for kind, status, text in SAID:
            begun = {
                401: "auth",
                402: "credit",
                403: "auth",
                412: "bad_request",
                404: "not_found",
                200: "server",
            }
            before = begun.get(status) or BY_STATUS.get(status, "server")
            with self.subTest(text):
                self.assertEqual(sorted_failure(before, status, text).kind, kind)

    def test_only_trouble_that_passes_is_tried_again(self):
        """Money, keys, names and shapes do not mend themselves."""
        for kind, status, text in SAID:
            failure = sorted_failure(kind, status, text)
            passes = failure.kind in ("rate_limit", "server")
            self.assertEqual(failure.retryable, passes, text)

    def test_waits_in_texts(self):
        """Times are read in the forms that providers write them."""
        for seconds, text in (
            (38.4, "Quota exceeded. Please retry in 38.4s."),
            (38.0, "'details': [{'retryDelay': '38s'}]"),
            (86.4, "Please try again in 1m26.4s. Visit"),
            (0.02, "Please try again in 20ms."),
            (20.0, "Try again in 20 seconds"),
            (7200.0, "try again in 2 hours"),
            (12.0, '{"retry_after": 12}'),
            (None, "Please try again later."),
            (None, "You tried 3 times."),
        ):
            with self.subTest(text):
                self.assertEqual(told_wait_s(text), seconds)

    def test_waits_in_headers(self):
        """Of limits that are used up the longest counts, in seconds, as a time or as an epoch."""
        for seconds, headers in (
            (6.0, {"x-ratelimit-reset": "6"}),
            (62.0, {"x-ratelimit-reset-tokens": "1m2s", "x-ratelimit-reset-requests": "1s"}),
            (1.0, {"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "50",
                   "x-ratelimit-reset-requests": "1s"}),
            (10.0, {"x-ratelimit-reset": "1700000010"}),
            (10.0, {"x-ratelimit-reset": "1700000010000"}),
            (None, {"x-ratelimit-reset": "soon"}),
        ):  # fmt: skip
            with self.subTest(headers):
                self.assertEqual(retry_after_s(headers, now=1_700_000_000), seconds)


class TestExceptions(unittest.TestCase):
    def test_own_errors_keep_their_kind(self):
        """What the package raises itself says what it is."""
        self.assertEqual(failure_of(ModelError("no", kind="refused")).kind, "refused")
        self.assertEqual(failure_of(LocalModelError("no")).kind, "local_model")
        self.assertEqual(failure_of(ValueError("no")).kind, "bad_response")
        self.assertEqual(failure_of(TimeoutError()).kind, "timeout")

    def test_a_chain_without_an_end(self):
        """Errors that cause each other end."""
        first, second = KeyError("a"), OSError("b")
        first.__cause__, second.__cause__ = second, first
        self.assertEqual(failure_of(first).kind, "connection")
