"""What a failed model call means, and what to do about it: one table. No I/O.

The texts are those of public documents and reports: OpenAI, Azure, Anthropic, Google, Bedrock,
Mistral, DeepSeek, Groq, xAI, Cohere, Moonshot, MiniMax, Zhipu, DashScope, SiliconFlow, OpenRouter,
Together, Fireworks, Cerebras, Hugging Face, llama.cpp, Ollama, vLLM, SGLang, LM Studio, TabbyAPI.
"""

import email.utils
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.windows import is_overflow, named_window

# What each kind of failure is called, by what is done about it.
WAIT = {  # tried again, after the time that headers or the text ask for
    "timeout": "no answer in time",
    "rate_limit": "too many requests",
    "server": "an error of the server",
    "connection": "no connection; check `EVENNIA_AI_LLM_API_BASE` and that the server runs",
    "bad_response": "an answer that cannot be read",
    "breaker_open": "not asked for a while after repeated failures",
}
ANSWERED = {  # the model is there: pay, shrink, reshape, or let the next one answer
    "credit": "the provider's account has no credit left",
    "context_window": "the prompt is larger than the model's window",
    "bad_request": "the request was refused as invalid",
    "refused": "refused by the provider's content policy",
    "empty": "only thoughts, no answer",
}
GIVE_UP = {
    "auth": "the key was refused; check `EVENNIA_AI_LLM_API_KEY`",
    "not_found": "unknown model or address; check `EVENNIA_AI_LLM_MODEL`",
    "unsendable": "the request holds what cannot be sent; check `EVENNIA_AI_LLM_API_KEY`",
}
_EXPLAINED = {**WAIT, **ANSWERED, **GIVE_UP}


@dataclass(frozen=True)
class Failure:
    """Why one model did not answer."""

    kind: str  # a key of the tables above; see `ModelError`
    status: int | None = None  # HTTP status, None where there was none
    retry_after_s: float | None = None  # seconds the server asked to wait, None if it did not
    # The provider's own words. They may quote the prompt: never logged.
    detail: str = field(default="", repr=False)
    window: int | None = None  # the window in tokens that an overflow names
    # All texts of the failure, also the server's body. Never logged.
    said: str = field(default="", repr=False)

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind in WAIT

    @property
    def is_answer(self) -> bool:
        """Whether it shows that the model is there."""
        return self.kind in ANSWERED

    @property
    def explained(self) -> str:
        """What it is, for people."""
        return _EXPLAINED.get(self.kind, self.kind)


# What names a wait, whatever else the text says; not the address of a page on rate limits.
_WAITS = re.compile(r"minute|\bseconds?\b|\b[TR]PM\b|(?<!/)\brate[ _-]limit", re.I)
# What a server's text says, most telling first.
_SAID: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I | re.S))
    for kind, pattern in (
        (
            "credit",
            r"insufficient[_ -]?(?:(?:user|account)[_ -])?(?:quota|credits?|balance|funds)"
            r"|payment.?required"
            r"|credits? balance|(?:balance|(?:token|user) quota) (?:is )?(?:too low|not enough"
            r"|insufficient|exhausted|below|negative)"
            r"|(?:out of|no|not[ _]enough|run out of|used up|used all|exhausted|depleted)"
            r"[\w\s]{0,30}(?:\b|_)(?:credits?|balance|funds)\b"
            r"|(?:credits?|balance) (?:(?:has|have|is|are) )?(?:been )?"
            r"(?:exhausted|depleted|used up|exceeded|expired)"
            r"|exceeded your (?:current quota|monthly|included|quota for this billing)"
            r"|(?:hard|spend(?:ing)?|budget)[_ ](?:limit|cap)"
            r"|billing[_ ](?:not_active|disabled|account|to be enabled)|account is not active"
            r"|Arrearage|overdue|in arrears|top.?up"
            r"|recharge|(?:add|enter) (?:a )?(?:payment|(?:more )?credits|billing)|purchase"
            r"|key limit exceeded|quota exceeded[^\n]{0,200}\blimit: 0\b"
            r"|account (?:\S+ )?(?:is |has been )?suspended"
            r"|organi[sz]ation[_ ](?:has been )?restricted"
            r"|reached (?:the|your) (?:\w+ )?(?:set|specified|monthly|weekly|usage|spend\w*)"
            r"[\w ]{0,20}limits?"
            r"|(?:monthly|weekly|usage)[ _]limit(?: has been)?[ _](?:reached|exceeded)"
            r"|free (?:tier|trial|quota)[^.]{0,40}(?:exhausted|expired|exceeded)"
            r"|over budget|budget has been exceeded|upgrade (?:to a paid|your plan)"
            r"|organi[sz]ation has been disabled"
            r"|\u4f59\u989d\u4e0d\u8db3|\u6b20\u8d39|\u989d\u5ea6(?:\u4e0d\u8db3|\u5df2\u7528)",
        ),
        (
            "auth",
            r"(?:invalid|incorrect|wrong|missing|expired|no)\W{0,3}(?:\w+ )?(?:api|auth\w*|access)"
            r"[ _-]?(?:key|token|credentials?)|api[ _]key[ _](?:not valid|is invalid|invalid"
            r"|expired)"
            r"|unauthori[sz]ed|an? (?:valid )?api key|security token included"
            r"|(?:location|country|region)[\w, ]{0,30}not supported",
        ),
        (
            "not_found",
            r"\bmodel\b[^.]{0,80}(?:not found|not exist|unknown|is not available|not a valid"
            r"|no longer|deprecated|decommissioned|end of life|retired"
            r"|not supported for this account"
            r"|identifier is invalid)|(?:^|[\"'.:] ?)(?:the )?(?:requested )?"
            r"model [\"'`]?[\w./:-]+[\"'`]? is not supported"
            r"|(?:unknown|invalid|no such|unsupported) model(?! (?:param|option|input|output|feat))"
            r"|not a valid model|model_not_(?:found|supported)"
            r"|no endpoints found for (?!.*tool)|no allowed providers|have access to (?:the )?model"
            r"|on-demand throughput|\u6a21\u578b\u4e0d\u5b58\u5728|\u65e0\u53ef\u7528\u6e20\u9053",
        ),
        (
            "rate_limit",
            r"rate.?limit|too many requests|resource.?exhausted|throttl|\b[TR]PM\b"
            r"|(?:requests|tokens) per (?:minute|day)|concurren\w+:? (?:limit|requests|exceeded|\d)"
            r"|error code: 1015|\u901f\u7387\u9650\u5236|\u5e76\u53d1|\u8fc7\u4e8e\u9891\u7e41",
        ),
        (
            "refused",
            r"content.?(?:policy|filter)|moderation|responsible.?ai|safety (?:system|reasons)"
            r"|(?:inappropriate|prohibited).?content|new_sensitive|usage polic"
            r"|blocked (?:by|due to|for) safety|sensitive words"
            r"|(?:high|exists) risk|\u654f\u611f|\u5185\u5bb9\u5b89\u5168",
        ),
        (
            "bad_response",
            r"tool_use_failed|failed_generation|malformed.?function|failed to (?:call a function"
            r"|parse)"
            r"|parsing tool call|looks like object, but|unexpected tokens remaining",
        ),
        (
            "server",
            r"overloaded|over capacity|currently (?:loading|unavailable|experiencing)"
            r"|is loading|loading model|(?:model|server) (?:is )?not ready"
            r"|slots? (?:un|not )available|has crashed|unloaded|DEGRADED|out of memory"
            r"|\u8bbf\u95ee\u91cf\u8fc7\u5927|upstream|bad gateway"
            r"|internal (?:server )?error|temporarily|try again",
        ),
    )
)

# Names of exception classes anywhere in the chain, most telling first.
_BY_CLASS: tuple[tuple[str, set[str]], ...] = (
    ("unsendable", {"UnicodeEncodeError"}),
    ("bad_response", {"JSONDecodeError", "APIResponseValidationError", "ValidationError"}),
    ("refused", {"ContentPolicyViolationError"}),
    ("rate_limit", {"RateLimitError"}),
    ("auth", {"AuthenticationError", "PermissionDeniedError"}),
    ("not_found", {"NotFoundError"}),
    ("timeout", {"Timeout", "TimeoutError", "APITimeoutError"}),
    ("connection", {"APIConnectionError", "TransportError", "ClientError", "OSError"}),
    # LiteLLM or the client failed on a malformed body, and calls that a 500.
    ("bad_response", {"AttributeError", "LookupError", "TypeError", "ValueError"}),
)
_BY_STATUS = {
    401: "auth",
    402: "credit",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    410: "not_found",
    413: "context_window",
    **dict.fromkeys((424, 425, 498), "server"),
    429: "rate_limit",
}
# Kinds that a text may make another one of: some servers answer anything with 400, 500 or 200.
_VAGUE = {
    "auth",
    "bad_request",
    "bad_response",
    "context_window",
    "rate_limit",
    "refused",
    "server",
}


def failure_of(error: BaseException, asked: str = "") -> Failure:
    """What an exception of LiteLLM, of the HTTP client or of a time limit means.

    `asked` are the texts of the request, which a server may quote.
    """
    chain = [error]
    while len(chain) < 10 and (cause := chain[-1].__cause__ or chain[-1].__context__):
        chain.append(cause)
    status = next((code for link in chain if (code := _status(link))), None)
    # Clients keep the server's body beside their own text.
    said = " ".join(f"{link} {getattr(link, 'body', '')}" for link in chain)
    wait_s = next((s for link in chain if (s := retry_after_s(_headers(link))) is not None), None)
    return sorted_failure(_kind(chain, status), status, said, wait_s, str(error), asked)


def sorted_failure(
    kind: str,
    status: int | None,
    said: str,
    wait_s: float | None = None,
    detail: str = "",
    asked: str = "",
) -> Failure:
    """A failure by what the server said.

    Args:
        kind: As far as exception and status tell.
        status: HTTP status; None where there was none.
        said: All the texts of the failure.
        wait_s: The seconds that a header asked to wait.
        detail: What staff may see of the texts.
        asked: The texts of the request.
    """
    window = None
    if kind in _VAGUE:
        wait_s = told_wait_s(said) if wait_s is None else wait_s
        found = next((name for name, pattern in _SAID if pattern.search(said)), kind)
        if is_overflow(said, asked):
            kind, window = "context_window", named_window(said, asked)
        elif found == "credit" and (wait_s is not None or _WAITS.search(said)):
            kind = "rate_limit"
        # A server's own word for its trouble tells less than a 422 does.
        elif (kind, found, status) != ("bad_request", "server", 422):
            kind = found
    return Failure(kind, status, wait_s, detail, window, said)


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
    named = next((kind for kind, of in _BY_CLASS if of & names), None)
    if status is None or status < 400:
        if named is None and "BadRequestError" in names:
            return "bad_request"
        return named or ("server" if "APIError" in names else "bad_response")
    # A 400 may be about the content; otherwise the status says more than a name.
    if status in (400, 412, 422):
        return named if named == "refused" else "bad_request"
    return _BY_STATUS.get(status, "server" if status >= 500 else "bad_request")


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server wants the client to wait, never negative; None without such a header.

    Header names are in lower case. ``retry-after-ms`` is OpenAI's own; ``retry-after`` is seconds
    or an HTTP date (RFC 9110, 10.2.3), read by the response's own date or `now` (epoch seconds).
    Of limits that are used up, ``…ratelimit…reset…`` says when they are whole again: in seconds, as
    ``1m2s``, as an epoch in seconds or milliseconds, or as a date (RFC 3339).
    """
    clock = _epoch(headers.get("date")) or (time.time() if now is None else now)
    millis, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    seconds = _number(value) if millis is None else millis / 1000
    if seconds is None and (until := _epoch(value)) is not None:
        seconds = until - clock
    if seconds is None:
        resets = (
            _reset_s(value, clock)
            for name, value in headers.items()
            if re.search("ratelimit.*reset", name)
            and _number(headers.get(name.replace("reset", "remaining"), "0")) == 0
        )
        seconds = max((each for each in resets if each is not None), default=None)
    return None if seconds is None else max(0.0, seconds)


def _reset_s(value: str, now: float) -> float | None:
    number = _number(value)
    if number is None:
        if _SPOKEN.fullmatch(value.strip()):
            return _spoken_s(value)
        try:
            return datetime.fromisoformat(value).timestamp() - now
        except ValueError:
            return None
    if number > 1e11:
        number /= 1000
    return number - now if number > 1e9 else number


_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = (
    r"\d{1,15}(?:\.\d{1,15})?\s{0,9}(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|days?)"
    r"(?![a-z])"
)
_SPOKEN = re.compile(rf"(?:{_PART}\s*)+", re.I)
_ASKED = re.compile(
    r"(?:retry.?delay|(?:re)?try(?:ing)?(?: again)?|wait|available(?: again)?|resets?)\W{1,5}"
    rf"(?:(?:in|after|for|at least)\W{{1,3}})*(?P<time>{_SPOKEN.pattern})"
    r"|(?:retry.?after|reset\w*in|estimated_time)(?:_?seconds)?\W{1,5}(?P<seconds>\d{1,15}(?:\.\d{1,15})?)",
    re.I,
)


def told_wait_s(text: str) -> float | None:
    """Seconds that the text of an error asks to wait, as "retry in 38.4s"; None if it does not."""
    found = [
        float(each["seconds"]) if each["seconds"] else _spoken_s(each["time"])
        for each in _ASKED.finditer(text)
    ]
    return max(found, default=None)


def _spoken_s(text: str) -> float:
    """Seconds of a time as ``1m26.4s`` or ``20 seconds``."""
    parts = re.findall(r"(\d{1,15}(?:\.\d{1,15})?)\s{0,9}(ms|milli|[smhd])", text, re.I)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) < 1e14 else None


def _epoch(date: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None
