"""What a failed model call means, and what to do about it: one table. No I/O.

What is done follows from the kind:

- wait: `rate_limit`, `server`, `connection`, `timeout`, `bad_response` are tried again, after the
  time that headers or the text ask for;
- pay: `credit` is not tried again for a while, and staff are told;
- shrink: `context_window` wants a shorter prompt;
- reshape: `bad_request` may be about the shape of the request, see `profiles`;
- give up: `auth`, `not_found`, `refused`, `local_model`; the next model answers.

The texts are those of public documents and reports: OpenAI, Azure, Anthropic, Google, Bedrock,
Mistral, DeepSeek, Groq, xAI, Cohere, Moonshot, MiniMax, Zhipu, DashScope, SiliconFlow, OpenRouter,
Together, Fireworks, Cerebras, Hugging Face, llama.cpp, Ollama, vLLM, SGLang, LM Studio, TabbyAPI.
"""

import re
from collections.abc import Sequence

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.retry import Failure, retry_after_s, told_wait_s
from evennia_ai.llm_interaction.windows import figures_of, is_overflow

RETRIED = frozenset({"timeout", "rate_limit", "server", "connection", "bad_response"})

# What a server's text says, most telling first. A text that names a wait is a wait.
_SAID: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I | re.S))
    for kind, pattern in (
        (
            "credit",
            r"insufficient[_ -]?(?:quota|credits?|balance|funds|user quota)|payment.?required"
            r"|credits? balance|balance (?:is )?(?:too low|not enough|insufficient)"
            r"|(?:out of|no|not enough|run out of|used up|exhausted|depleted)"
            r"[\w\s]{0,30}\b(?:credits?|balance|funds)\b"
            r"|credits? (?:(?:has|have|is|are) )?(?:been )?"
            r"(?:exhausted|depleted|used up|exceeded|expired)"
            r"|exceeded your (?:current quota|monthly|included)"
            r"|(?:hard|spend(?:ing)?|budget)[_ ]limit"
            r"|billing_not_active|account is not active|Arrearage|overdue|in arrears|top.?up"
            r"|recharge|add (?:a )?(?:payment|more credits|billing)|purchase"
            r"|\u4f59\u989d\u4e0d\u8db3|\u6b20\u8d39",
        ),
        (
            "auth",
            r"(?:invalid|incorrect|wrong|missing|expired|no)\W{0,3}(?:\w+ )?(?:api|auth\w*|access)"
            r"[ _-]?(?:key|token|credentials?)|api key (?:not valid|is invalid|expired)"
            r"|unauthori[sz]ed",
        ),
        (
            "not_found",
            r"\bmodel\b[^.]{0,80}(?:not found|not exist|unknown|is not available|not a valid"
            r"|no longer|deprecated|decommissioned|not supported for this account)"
            r"|(?:unknown|invalid|no such) model|not a valid model|model_not_found"
            r"|no endpoints found for (?!.*tool)",
        ),
        (
            "rate_limit",
            r"rate.?limit|too many requests|resource.?exhausted|throttl|tokens per minute|\bTPM\b"
            r"|requests per (?:minute|day)|concurren\w+ (?:limit|requests)",
        ),
        (
            "refused",
            r"content.?(?:policy|filter)|moderation|responsible.?ai|safety (?:system|reasons)",
        ),
        (
            "server",
            r"overloaded|over capacity|currently (?:loading|unavailable|experiencing)|is loading"
            r"|loading model|upstream|bad gateway|internal (?:server )?error|temporarily|try again",
        ),
    )
)

# Names of exception classes anywhere in the chain, most telling first.
_BY_CLASS: tuple[tuple[str, str], ...] = (
    ("LocalModelError", "local_model"),
    ("JSONDecodeError", "bad_response"),
    ("APIResponseValidationError", "bad_response"),
    ("ValidationError", "bad_response"),
    ("ContextWindowExceededError", "context_window"),
    ("ContentPolicyViolationError", "refused"),
    ("RateLimitError", "rate_limit"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("NotFoundError", "not_found"),
    ("Timeout", "timeout"),
    ("TimeoutError", "timeout"),
    ("APITimeoutError", "timeout"),
    ("APIConnectionError", "connection"),
    ("TransportError", "connection"),
    ("ClientError", "connection"),
    ("OSError", "connection"),
    # LiteLLM or the client failed on a malformed body, and calls that a 500.
    ("AttributeError", "bad_response"),
    ("LookupError", "bad_response"),
    ("TypeError", "bad_response"),
    ("ValueError", "bad_response"),
)
_BY_STATUS = {
    401: "auth",
    402: "credit",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    425: "server",
    429: "rate_limit",
}
# Kinds that a text may make another one of: some servers answer anything with 400, 500 or 200.
_VAGUE = ("bad_request", "server", "bad_response", "rate_limit", "refused", "context_window")


def failure_of(error: BaseException) -> Failure:
    """What an exception of LiteLLM, of the HTTP client or of a time limit means."""
    chain = [error]
    while len(chain) < 10 and (cause := chain[-1].__cause__ or chain[-1].__context__):
        chain.append(cause)
    status = next((code for link in chain if (code := _status(link))), None)
    # Clients keep the server's body beside their own text.
    said = " ".join(f"{link} {getattr(link, 'body', '')}" for link in chain)
    wait_s = next((s for link in chain if (s := retry_after_s(_headers(link))) is not None), None)
    return sorted_failure(_kind(chain, status), status, said, wait_s, str(error))


def sorted_failure(
    kind: str, status: int | None, said: str, wait_s: float | None = None, detail: str = ""
) -> Failure:
    """A failure by what the server said.

    Args:
        kind: As far as exception and status tell.
        status: HTTP status; None where there was none.
        said: All the texts of the failure.
        wait_s: The seconds that a header asked to wait.
        detail: What staff may see of the texts.
    """
    overflow = None
    if wait_s is None and kind in _VAGUE:
        wait_s = told_wait_s(said)
    if kind in _VAGUE and is_overflow(said, kind == "context_window"):
        kind, overflow = "context_window", figures_of(said)
    elif kind in _VAGUE:
        found = next((name for name, pattern in _SAID if pattern.search(said)), kind)
        if found == "credit" and wait_s is not None:
            found = "rate_limit"
        # A server's own word for its trouble tells less than a 400 does.
        kind = kind if (kind, found) == ("bad_request", "server") and status == 422 else found
    return Failure(kind, kind in RETRIED, status, wait_s, detail, overflow, said)


def _status(error: BaseException) -> int | None:
    """The HTTP status a server sent; LiteLLM's own exceptions carry invented ones."""
    if type(error).__module__.partition(".")[0] == "litellm":
        return None
    code = getattr(error, "status_code", None)
    code = code or getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int) else None


def _headers(error: BaseException) -> dict[str, str]:
    for source in (getattr(error, "response", None), error):
        for name in ("headers", "litellm_response_headers"):
            headers = getattr(source, name, None)
            if headers:
                return {str(key).lower(): str(value) for key, value in headers.items()}
    return {}


def _kind(chain: Sequence[BaseException], status: int | None) -> str:
    if isinstance(chain[0], ModelError):
        return chain[0].kind
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    named = next((kind for name, kind in _BY_CLASS if name in names), None)
    if status is None or status < 400:
        if named is None and "BadRequestError" in names:
            return "bad_request"
        return named or ("server" if "APIError" in names else "bad_response")
    # A 400 may be about the window or the content; otherwise the status says more than a name.
    if status in (400, 413, 422):
        return named if named in ("context_window", "refused") else "bad_request"
    return _BY_STATUS.get(status, "server" if status >= 500 else "bad_request")
