"""What a failed model call means, and what to do about it, by the tables of `servers.toml`. No I/O.

The texts there are those of public documents and reports: OpenAI, Azure, Anthropic, Google,
Bedrock, Mistral, DeepSeek, Groq, xAI, Cohere, Moonshot, MiniMax, Zhipu, DashScope, SiliconFlow,
OpenRouter, Together, Fireworks, Cerebras, Hugging Face, llama.cpp, Ollama, vLLM, SGLang, LM Studio,
TabbyAPI.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.waits import header_wait_s, told_wait_s
from evennia_ai.llm_interaction.windows import as_window

SERVERS = tomllib.loads(Path(__file__).with_name("servers.toml").read_text("utf-8"))
KINDS: dict[str, dict[str, Any]] = SERVERS["failures"]
# What is done about a failure which shows that the model is there.
_ANSWERED = ("pay", "shrink", "reshape", "next")
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
    def row(self) -> Mapping[str, Any]:
        """What the table says of its kind."""
        return KINDS[self.kind]

    @property
    def does(self) -> str:
        """What is done about it."""
        return str(self.row["does"])

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.does == "wait"

    @property
    def is_answer(self) -> bool:
        """Whether it shows that the model is there."""
        return self.does in _ANSWERED

    @property
    def explained(self) -> str:
        """What it is, for people."""
        return str(self.row["words"])


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
    window = None
    if KINDS[kind].get("vague"):
        wait_s = told_wait_s(said) if wait_s is None else wait_s
        found = next((name for name, of in _SAID.items() if of.search(said)), kind)
        if is_overflow(said, asked):
            kind, window = "context_window", named_window(said, asked)
        elif found == "credit" and (wait_s is not None or _WAITS.search(said)):
            kind = "rate_limit"
        # A server's own word for its trouble tells less than a 422 does.
        elif (kind, found, status) != ("bad_request", "server", 422):
            kind = found
    return Failure(kind, status, wait_s, window, said)


def _status(error: BaseException) -> int | None:
    """The HTTP status a server sent; LiteLLM's own exceptions carry invented ones."""
    if type(error).__module__.partition(".")[0] == "litellm":
        return None
    code = getattr(error, "status_code", None)
    code = code or getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int) else None


def _kind(chain: Sequence[BaseException], status: int | None) -> str:
    if isinstance(chain[0], ModelError):
        return chain[0].kind
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    named = next((kind for kind, of in _BY_CLASS.items() if of & names), None)
    if named is None and _OF_MALFORMED & names:
        named = "bad_response"
    if status is None or status < 400:
        if named is None and "BadRequestError" in names:
            return "bad_request"
        return named or ("server" if "APIError" in names else "bad_response")
    # A 400 may be about the content; otherwise the status says more than a name.
    if status in (400, 412, 422):
        return named if named == "refused" else "bad_request"
    return _BY_STATUS.get(status, "server" if status >= 500 else "bad_request")


def failure_of_end(reasons: Iterable[object]) -> Failure | None:
    """The failure that a provider's word for the end of a reply tells; None if it is a reply."""
    words = [str(reason) for reason in reasons]
    found = (kind for kind, of in _ENDED.items() if any(map(of.match, words)))
    return next(map(Failure, found), None)


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
