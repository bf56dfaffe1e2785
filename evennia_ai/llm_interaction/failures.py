"""What a failed model call means, and what to do about it, by the tables of `servers.toml`. No I/O.

The texts there are those of public documents and reports: OpenAI, Azure, Anthropic, Google,
Bedrock, Mistral, DeepSeek, Groq, xAI, Cohere, Moonshot, MiniMax, Zhipu, DashScope, SiliconFlow,
OpenRouter, Together, Fireworks, Cerebras, Hugging Face, llama.cpp, Ollama, vLLM, SGLang, LM Studio,
TabbyAPI.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evennia_ai.errors import ModelError
from evennia_ai.history.stored import as_count
from evennia_ai.llm_interaction.servers import as_window

SERVERS = tomllib.loads(Path(__file__).with_name("servers.toml").read_text("utf-8"))
KINDS: dict[str, dict[str, Any]] = SERVERS["failures"]
# How a text asks to wait: "retry in 38.4s", "try again in 1m26.4s", "retry_after_seconds: 10". A
# number without a unit is a time only behind the names of such fields.
_ASKED = re.compile(
    r"(?:(?P<field>retry.?after|estimated_time)|retry.?delay|(?:re)?try(?:ing)?(?: again)?|wait"
    r"|available|resets?)"
    r"(?:_?seconds)?\W{1,5}(?:(?:in|after|for|at least)\W{1,3})*(?=\d)"
    r"(?:(?P<h>\d{1,9}) ?h(?:ours?)?(?![a-z]))? ?"
    r"(?:(?P<m>\d{1,9}) ?m(?:in(?:ute)?s?)?(?![a-z]))? ?"
    r"(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)(?: ?(?P<unit>m?s(?![a-z])|milli|sec))?)?",
    re.I,
)
# What names a wait, whatever else the text says; not the address of a page on rate limits.
_WAITS = re.compile(r"minute|\bseconds?\b|\b[TR]PM\b|(?<!/)\brate[ _-]limit", re.I)
# LiteLLM or the client failed on a malformed body, and calls that a 500.
_OF_MALFORMED = {"AttributeError", "LookupError", "TypeError", "ValueError"}

# A number of tokens, not of thousands, and what may stand in front of it.
_NUMBER = r"(\d[\d,]{0,15})(?![\d.,]{0,15}[km]\b)"
_IS = r"""["'`\s=]+(?:(?:is|was|of|to|at|only|allowed|set|for|this|the|model)\b["'`\s:=]*){0,6}"""


def joined(lines: str) -> str:
    """An expression from its alternatives, a line each."""
    return "|".join(lines.replace("{is}", _IS).replace("{number}", _NUMBER).splitlines())


_WINDOWS = [re.compile(joined(each), re.I) for each in SERVERS["window"]["named"].splitlines()]
_OVERFLOW = {name: re.compile(joined(of), re.I) for name, of in SERVERS["overflow"].items()}


def _expressions(field_name: str) -> dict[str, re.Pattern[str]]:
    """The expression that each kind has in a field, as far as it has one."""
    rows = ((kind, row[field_name]) for kind, row in KINDS.items() if field_name in row)
    return {kind: re.compile(joined(lines), re.I | re.S) for kind, lines in rows}


_SAID, _ENDED = _expressions("said"), _expressions("ended")
_BY_CLASS = {kind: set(row.get("classes", ())) for kind, row in KINDS.items()}
_BY_STATUS = {status: kind for kind, row in KINDS.items() for status in row.get("statuses", ())}


@dataclass(frozen=True)
class Failure:
    """Why one model did not answer."""

    kind: str  # a key of `failures` in `servers.toml`
    status: int | None = None  # HTTP status, None where there was none
    retry_after_s: float | None = None  # seconds the server asked to wait, None if it did not
    window: int | None = None  # the window in tokens that an overflow names
    # All texts of the failure, also the server's body. They may quote the prompt: never logged.
    said: str = field(default="", repr=False)

    @property
    def row(self) -> dict[str, Any]:
        """What the table says of its kind."""
        return KINDS[self.kind]

    @property
    def does(self) -> str:
        """What is done about it."""
        return str(self.row["does"])

    @property
    def explained(self) -> str:
        """What it is, for people."""
        said = str(self.row["words"])
        if self.status:
            said += f" (HTTP {self.status})"
        return said


def failure_of(error: BaseException, asked: str = "") -> Failure:
    """What an exception of LiteLLM, of the HTTP client or of a time limit means.

    `asked` are the texts of the request, which a server may quote.
    """
    if isinstance(error, ModelError):
        return Failure(error.kind)
    chain = [error]
    while len(chain) < 10 and (cause := chain[-1].__cause__ or chain[-1].__context__):
        chain.append(cause)
    # LiteLLM's own exceptions carry invented ones.
    real = [link for link in chain if not type(link).__module__.startswith("litellm")]
    holders = [holder for link in real for holder in (link, getattr(link, "response", None))]
    codes = (as_count(getattr(holder, "status_code", None)) for holder in holders)
    status = next(filter(None, codes), None)
    # Clients keep the server's body beside their own text.
    said = " ".join(f"{link} {getattr(link, 'body', '')}" for link in chain)
    wait_s = next(filter(None, map(header_wait_s, chain)), None)
    return sorted_failure(_kind(chain, status), status, said, wait_s, asked)


def sorted_failure(
    kind: str,
    status: int | None,
    said: str,
    wait_s: float | None = None,
    asked: str = "",
) -> Failure:
    """A failure by what the server said.

    Args:
        kind: As far as exception and status tell.
        status: HTTP status; None where there was none.
        said: All the texts of the failure.
        wait_s: The seconds that a header asked to wait.
        asked: The texts of the request.
    """
    if not KINDS[kind].get("vague"):
        return Failure(kind, status, wait_s, said=said)
    if is_overflow(said, asked):
        return Failure("context_window", status, wait_s, named_window(said, asked), said)
    if wait_s is None:
        wait_s = told_wait_s(said)
    found = next((name for name, of in _SAID.items() if of.search(said)), kind)
    if found == "credit" and (wait_s is not None or _WAITS.search(said)):
        found = "rate_limit"
    # A server's own word for its trouble tells less than a 422 does.
    if (kind, found, status) == ("bad_request", "server", 422):
        found = kind
    return Failure(found, status, wait_s, said=said)


def header_wait_s(error: BaseException) -> float | None:
    """Seconds that the header `Retry-After` of an error asks to wait; None without such a number.

    The header may also be a date, which no provider is known to send.
    """
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        headers = headers or getattr(holder, "litellm_response_headers", None) or {}
        value = str(headers.get("retry-after"))
        if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value):
            return float(value)
    return None


def told_wait_s(text: str) -> float | None:
    """The most seconds that the text of an error asks to wait; None if it does not."""
    waits = []
    for asked in _ASKED.finditer(text):
        hours, minutes, seconds = (float(asked[unit] or 0) for unit in "hms")
        if (asked["unit"] or "").lower().startswith("m"):
            seconds /= 1000
        if asked["unit"] or asked["field"] or hours or minutes:
            waits.append(hours * 3600 + minutes * 60 + seconds)
    return max(waits, default=None)


def _kind(chain: Sequence[BaseException], status: int | None) -> str:
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    named = next((kind for kind, of in _BY_CLASS.items() if of & names), None)
    # A status says more than a name; but a 400 may be about the content.
    if status and status >= 400 and named != "refused":
        return "server" if status >= 500 else _BY_STATUS.get(status, "bad_request")
    if named:
        return named
    if "BadRequestError" in names:
        return "bad_request"
    if "APIError" in names and not _OF_MALFORMED & names:
        return "server"
    return "bad_response"


def failure_of_end(reasons: Iterable[object]) -> Failure | None:
    """The failure that a provider's word for the end of a reply tells; None if it is a reply."""
    for kind, pattern in _ENDED.items():
        if any(pattern.match(str(reason)) for reason in reasons):
            return Failure(kind)
    return None


def is_overflow(text: str, asked: str = "") -> bool:
    """Whether the text of an error, also a quoted JSON body, says that a prompt was too large.

    Args:
        text: What the server said.
        asked: The texts of the request. What a server quotes of them says nothing.
    """
    if _OVERFLOW["rate"].search(text):
        return "too large for model" in text.lower()
    if _OVERFLOW["of_reply"].search(text) and "context length" not in text:
        return False
    hits = [hit[0] in asked for hit in _OVERFLOW["says"].finditer(text)]
    return not all(hits) or (bool(hits) and named_window(text, asked) is not None)


def named_window(text: str, asked: str = "") -> int | None:
    """The window in the text of an error that is known to be an overflow; None without one.

    `asked` as for `is_overflow`.
    """
    hits = (hit for pattern in _WINDOWS for hit in pattern.finditer(text))
    counts = (as_window(hit[1]) for hit in hits if hit[0] not in asked)
    return next(filter(None, counts), None)
