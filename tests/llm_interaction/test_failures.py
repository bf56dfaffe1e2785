"""What is done about the errors of providers and servers, by their words."""

# ruff: noqa: E501 - the texts stand as they come

import unittest

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.failures import (
    failure_of,
    header_wait_s,
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
    # of all kinds
    ("auth", 400, "User location is not supported for the API use."),
    ("not_found", 400, "Invocation of model ID meta.llama3 with on-demand throughput isn\u2019t supported. Retry your request with the ID or ARN of an inference profile that contains this model."),
    ("not_found", 403, "You don't have access to the model with the specified model ID."),
    ("auth", 400, "The security token included in the request is expired"),
    ("auth", 403, "The security token included in the request is invalid."),
    ("server", 500, "model requires more system memory (8.4 GiB) than is available (5.6 GiB)"),
    ("server", 400, "The model has crashed without additional information. (Exit code: 18446744072635812000)"),
    ("server", 400, "Model unloaded."),
    ("server", 400, "{\"detail\":\"Function id 'x': DEGRADED function cannot be invoked\"}"),
    ("not_found", 404, "No models loaded. Please load a model in the developer page or use the `lms load` command."),
    ("context_window", 500, "Input prompt is too big compared to KV size. Please try increasing KV size."),
    ("context_window", 400, "Context size has been exceeded."),
    ("context_window", 400, "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33000 tokens: 32000 tokens from the input messages and 1000 tokens for the completion."),
    ("context_window", 400, "Requested tokens (9000) exceed context window of 8192"),
    ("context_window", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
    ("context_window", 400, "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough."),
    ("context_window", 400, "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again"),
    ("context_window", 400, "Invalid 'input': maximum context length exceeded"),
    ("context_window", 400, "The prompt (length 9000) is longer than the maximum model length of 8192"),
    ("context_window", 400, "This model's maximum context length is 16384 tokens. However, your request has 19427 input tokens. Please reduce the length of the input messages."),
    ("context_window", 400, "The request exceeds the maximum size: 4 MB input limit of tokens"),
    ("bad_response", 400, "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details. tool_use_failed"),
    ("bad_response", 500, "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]"),
    ("bad_response", 500, "error parsing tool call: raw='{\"text\":' err=unexpected end of JSON input"),
    ("bad_request", 400, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku"),
    ("bad_request", 400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    ("bad_request", 400, "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model"),
    ("bad_request", 400, "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384."),
    ("refused", 400, "Output blocked by content filtering policy"),
    ("refused", 400, "Input data may contain inappropriate content. DataInspectionFailed"),
    ("refused", 400, "\u7cfb\u7edf\u68c0\u6d4b\u5230\u8f93\u5165\u6216\u751f\u6210\u5185\u5bb9\u53ef\u80fd\u5305\u542b\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9"),
    ("refused", 200, "input new_sensitive (1026)"),
    ("refused", 403, "google/gemini requires moderation. Your input was flagged for \"violence\""),
    ("refused", 400, "Prohibited content: the prompt was blocked. PROHIBITED_CONTENT"),
    ("credit", 403, "The free tier of the model has been exhausted. If you wish to continue access the model on a paid basis, please disable the \"use free tier only\" mode. AllocationQuota.FreeTierOnly"),
    ("credit", 429, "you've reached your weekly usage limit, please upgrade to continue"),
    ("credit", 402, "Cloud credits expired - Please contact NVIDIA representatives"),
    ("credit", 400, "This organization has been disabled."),
    ("credit", 429, "You have run out of credits. Please add more."),
    ("credit", 401, "Your free trial has expired. Please upgrade your plan."),
    ("credit", 403, "Free quota exceeded; upgrade to a paid plan"),
    ("credit", 402, "You requested up to 65536 tokens, but can only afford 3410."),
    ("credit", 403, "ExceededBudget: over budget, Max Budget: 10.0"),
    ("credit", 400, "Budget has been exceeded! Current cost: 10.1, Max budget: 10.0"),
    ("rate_limit", 429, "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"),
    ("rate_limit", 429, "Resource has been exhausted (e.g. check quota)."),
    ("rate_limit", 429, "Rate limit of 150 per 86400s exceeded for UserByModelByDay. Please wait 45000 seconds before retrying."),
    ("rate_limit", 400, "Model is getting throttled. Try your request again."),
    ("rate_limit", 200, "error code: 1015"),
    ("rate_limit", 429, "\u60a8\u7684\u8d26\u6237\u5df2\u8fbe\u5230\u901f\u7387\u9650\u5236"),
    ("rate_limit", 200, "\u60a8\u5f53\u524d\u4f7f\u7528\u8be5API\u7684\u5e76\u53d1\u6570\u8fc7\u9ad8\uff0c\u8bf7\u964d\u4f4e\u5e76\u53d1"),
    ("rate_limit", 429, "Tokens per day limit exceeded - too many tokens processed."),
    ("rate_limit", 429, "This request would exceed the rate limit for your organization of 50,000 input tokens per minute."),
    ("rate_limit", 429, "x is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits"),
    ("server", 200, "\u8be5\u6a21\u578b\u5f53\u524d\u8bbf\u95ee\u91cf\u8fc7\u5927\uff0c\u8bf7\u60a8\u7a0d\u540e\u518d\u8bd5"),
    ("server", 503, "no available server"),
    ("server", 503, "No instances available (yet) for model"),
    ("server", 500, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ("server", 500, "EngineCore encountered an issue. See stack trace above for the root cause."),
    ("server", 524, "error code: 524"),
    ("server", 502, "<html><head><title>502 Bad Gateway</title></head></html>"),
    ("not_found", 400, "\u6a21\u578b\u4e0d\u5b58\u5728\uff0c\u8bf7\u68c0\u67e5\u6a21\u578b\u4ee3\u7801"),
    ("not_found", 404, "No endpoints found matching your data policy"),
    ("not_found", 404, "model \"llama9\" not found, try pulling it first"),
    ("not_found", 404, "The API deployment for this resource does not exist."),
    ("not_found", 400, "Model Not Exist"),
    ("not_found", 400, "Model gpt-4-vision-preview has been deprecated"),
    ("auth", 401, "Access denied due to invalid subscription key or wrong API endpoint."),
    ("auth", 403, "Country, region, or territory not supported"),
    ("auth", 401, "No auth credentials found"),
    ("auth", 401, "\u4ee4\u724c\u5df2\u8fc7\u671f\u6216\u9a8c\u8bc1\u4e0d\u6b63\u786e"),
    ("auth", 500, "litellm.AuthenticationError: Missing API Key"),
    # other words for the same
    ("credit", 403, "Insufficient account balance"),
    ("credit", 403, "token quota exhausted"),
    ("credit", 429, "You have reached your monthly spending cap"),
    ("credit", 429, "The usage limit has been reached. usage_limit_reached"),
    ("credit", 429, "Quota exceeded for metric: free_tier_requests, limit: 0"),
    ("credit", 403, "Billing account for project is not found or disabled"),
    ("credit", 403, "\u8be5\u4ee4\u724c\u989d\u5ea6\u5df2\u7528\u5c3d"),
    ("credit", 403, "Your prepaid balance has been depleted"),
    ("credit", 400, "You have reached your Anthropic usage limit for this month"),
    ("rate_limit", 429, "You exceeded your current requests list. LimitRequests"),
    ("context_window", 400, "The message you submitted was too long"),
    ("context_window", 400, "prompt_too_long"),
    ("auth", 400, "You must provide an API key"),
    ("not_found", 400, "unsupported model: x"),
    ("refused", 400, "The prompt was blocked due to safety"),
    ("rate_limit", 429, "max RPM: 3, please try again after 1 seconds"),
    ("rate_limit", 429, "Your account reached max organization concurrency: 1, please try again after 1 seconds"),
    ("rate_limit", 400, "Too many tokens per day, please wait before trying again."),
    ("server", 503, "Server busy, please try again later. Maximum pending requests exceeded"),
    ("server", 400, "Model is not ready for inference."),
    ("context_window", 400, "max_tokens must be at least 1, got -5."),
    ("context_window", 400, "prompt token count of 140000 exceeds the limit of 128000"),
    ("context_window", 400, "`prompt` length 9000 exceeds maximum 8192"),
    ("context_window", 500, "context shift is disabled"),
    ("context_window", 500, "failed to find free space in the KV cache"),
    ("context_window", 400, "the input token count is 40000 but model only supports up to 32768."),
    ("context_window", 400, "\u8f93\u5165\u957f\u5ea6\u8d85\u8fc7\u6a21\u578b\u6700\u5927\u4e0a\u4e0b\u6587"),
    ("bad_request", 400, "The maximum tokens you requested exceeds the model limit of 4096."),
    ("bad_request", 400, "max_tokens (8000) exceeds the maximum of 4096"),
    ("auth", 400, "API_KEY_INVALID"),
    ("not_found", 400, "model 'x' is not supported"),
    ("not_found", 400, "The provided model identifier is invalid."),
    ("not_found", 400, "No allowed providers are available for the selected model."),
    ("refused", 400, "This request has been flagged for potentially violating our usage policy"),
    ("refused", 400, "Content Exists Risk"),
    ("bad_response", 400, "Failed to generate JSON. See 'failed_generation' for more details."),
    ("bad_response", 500, "unexpected tokens remaining in message header"),
    # words of those above in texts that mean something else
    ("rate_limit", 429, "API usage rate limit exceeded, slow down."),
    ("rate_limit", 429, "Per-minute request quota exhausted."),
    ("rate_limit", 429, "Quota exhausted: 60 requests per minute."),
    ("rate_limit", 429, "You exceeded your current request quota for this minute."),
    ("rate_limit", 429, "You exceeded your current quota of 3 RPM."),
    ("rate_limit", 429, "Rate limit reached, remaining limit: 0"),
    ("server", 500, "container memory usage exceeded"),
    ("server", 503, "GPU memory usage has been exceeded"),
    ("server", 503, "insufficient GPU quota"),
    ("bad_request", 400, "System role for model gemma-2-9b-it is not supported."),
    ("bad_request", 400, "Function calling for model 'phi-3' is not supported"),
    ("bad_request", 400, "The parameter temperature for model o3-mini is not supported."),
    ("bad_request", 400, "Unsupported model parameter: temperature"),
    ("bad_request", 400, "logit_bias flagged as unsupported"),
    ("bad_request", 400, "parallel_tool_calls / concurrency is not supported"),
    ("bad_request", 400, "The tool results are not ready"),
)  # fmt: skip
BY_STATUS = {
    **dict.fromkeys((400, 412, 413, 422), "bad_request"),
    **dict.fromkeys((401, 403), "auth"),
    **{402: "credit", 404: "not_found", 429: "rate_limit"},
}


class TestFailures(unittest.TestCase):
    def test_each_is_sorted(self):
        """Each text means what its provider means by it; only what may pass is tried again.

        Money, keys, names and shapes do not mend themselves.
        """
        for kind, status, text in SAID:
            with self.subTest(text):
                failure = sorted_failure(BY_STATUS.get(status, "server"), status, text)
                self.assertEqual(failure.kind, kind)
                passes = kind in ("rate_limit", "server", "bad_response")
                self.assertEqual(failure.does == "wait", passes)

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
            (10.0, '{"retry_after_seconds": 10}'),
            (20.0, '{"estimated_time": 20.0}'),
            (15.0, "Rate limit resets in 15s"),
            (None, "Please try again later."),
            (None, "You tried 3 times."),
            (None, "An internal error: please retry (500)."),
            (None, "Try 2 more times; 8 GiB are needed, available: 3 models"),
        ):
            with self.subTest(text):
                self.assertEqual(told_wait_s(text), seconds)

    def test_waits_in_headers(self):
        """In seconds; none that cannot be read."""
        for seconds, headers in (
            (1.5, {"retry-after": "1.5"}),
            (None, {}),
            (None, {"retry-after": "-3"}),
            (None, {"retry-after": "soon"}),
            (None, {"retry-after": "nan"}),
        ):
            with self.subTest(headers):
                error = ValueError()
                error.headers = headers
                self.assertEqual(header_wait_s(error), seconds)

    def test_exceptions(self):
        """What the package raises itself says what it is; errors that cause each other end."""
        first, second = KeyError("a"), OSError("b")
        first.__cause__, second.__cause__ = second, first
        for error, kind in (
            (ModelError("no", kind="refused"), "refused"),
            (ValueError("no"), "bad_response"),
            (TimeoutError(), "timeout"),
            (first, "connection"),
        ):
            self.assertEqual(failure_of(error).kind, kind)
