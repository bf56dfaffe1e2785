"""An OpenAI-compatible server on 127.0.0.1 that answers as a test tells it to, faults included.

::

    with LoopbackServer() as server:
        server.script(text("Hello"), rate_limited(0.2), HANG)
        client = ModelClient(api_base=server.url)

Every request to a model is kept in `server.requests`, what is asked about the server itself in
`server.lookups`.
"""

import itertools
import json
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.llm_interaction.trial import GUEST, ME, ORDER

# Offered in /v1/models; any other model name is answered as well.
MODELS = ("loopback", "loopback-small")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """What the server does with one request.

    Args:
        content: The reply's text.
        tool_calls: Calls in the chat format; `arguments` may be any text.
        status: HTTP status; other than 200 the body is an error of the provider's form.
        headers: More response headers.
        delay_s: Seconds to wait first.
        fault: ``hang``, ``reset``, ``truncate``, ``no_choices`` or none.
        finish_reason: As the provider says it; found from the reply where empty.
        usage: Overrides the counted ``{"prompt_tokens", "completion_tokens"}``.
        raw: A body to send as it is, instead of a reply.
    """

    content: str | None = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    fault: str = ""
    finish_reason: str = ""
    usage: Mapping[str, int] | None = None
    raw: str | bytes | None = None


@dataclass
class Record:
    """One request as the server saw it.

    Attributes:
        path: As ``/v1/chat/completions``.
        body: The parsed body, ``{}`` for GET.
        headers: Header names in lower case.
        at: Arrival, monotonic seconds.
        status: Status sent, None while nothing was.
        answered: Whether a whole successful reply was written.
        client_left: Whether the client closed the connection before that.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    status: int | None = None
    answered: bool = False
    client_left: bool = False


HANG = Answer(fault="hang")
RESET = Answer(fault="reset")
TRUNCATED = Answer(content="This text never ends", fault="truncate")
NO_CHOICES = Answer(fault="no_choices")
EMPTY = Answer(content="")


def text(content: str, **fields: Any) -> Answer:
    """A plain reply."""
    return Answer(content=content, **fields)


def slow(delay_s: float, content: str = "Sorry, I was thinking.") -> Answer:
    """A reply after a wait."""
    return Answer(content=content, delay_s=delay_s)


def call(name: str, arguments: Any = None, call_id: str | None = "auto") -> dict[str, Any]:
    """A tool call in the chat format; `arguments` that are no text are written as JSON."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    chosen = f"call_{name}_{next(_numbers)}" if call_id == "auto" else call_id
    return {"id": chosen, "type": "function", "function": {"name": name, "arguments": raw}}


def calls(*tool_calls: dict[str, Any], content: str | None = None, **fields: Any) -> Answer:
    """A reply that makes tool calls."""
    return Answer(content=content, tool_calls=tool_calls, **fields)


def form(say: str | None = None, pose: str | None = None, call: Any = None) -> Answer:
    """A reply that is a JSON object of words, pose and call."""
    return text(json.dumps({"say": say, "pose": pose, "call": call}))


def bad_arguments(name: str = "say", arguments: str = '{"text": "Hel') -> Answer:
    """A tool call whose arguments are not JSON."""
    return calls(call(name, arguments))


def unknown_tool(name: str = "launch_rocket") -> Answer:
    """A call of a tool that nobody offered."""
    return calls(call(name, {"target": "moon"}))


def refusal() -> Answer:
    """What a model says that will not do it."""
    return text("I'm sorry, but I can't help with that request.")


def huge(words: int = 200_000) -> Answer:
    """A reply that does not stop."""
    return text(" ".join(f"word{number % 997}" for number in range(words)))


def failure(status: int = 500, message: str = "The server had an error", **fields: Any) -> Answer:
    """An error reply of any status."""
    return Answer(content=message, status=status, **fields)


def rate_limited(retry_after: float | str | None = None) -> Answer:
    """Status 429, with Retry-After in seconds or as an HTTP date."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return failure(429, "Rate limit reached", headers=headers)


def too_long() -> Answer:
    """What OpenAI answers to a prompt larger than the window."""
    return failure(400, "This model's maximum context length is 4096 tokens.")


def echo(body: Mapping[str, Any]) -> Answer:
    """The last message's content, or the end of the prompt."""
    messages = body.get("messages") or ()
    said = messages[-1].get("content") if messages else str(body.get("prompt", ""))[-200:]
    return text(str(said or ""))


# How a client's trial of a model is known.
TRIAL = f"You are {ME}."


class LoopbackServer:
    """The server, on a thread of its own.

    Args:
        respond: ``body -> Answer`` for requests beyond the script; `echo` by default.
        port: Port to listen on, 0 for a free one.

    Attributes:
        pages: Answers by path, as ``/props``, to what is asked about the server itself. Without
            one, ``/v1/models`` lists `MODELS`, and other paths are not found.
        page_status: Status of all of these answers, if it is set.
        drops_tools: Whether its model calls no tool when it is asked to.
        takes_form: Whether it obeys a JSON schema.

    A client's trial of that is answered, counted in `trials`, and not kept among the requests, nor
    is what is read ahead with a reply of one token.
    """

    def __init__(
        self,
        respond: Callable[[dict[str, Any]], Answer] = echo,
        port: int = 0,
        drops_tools: bool = False,
        takes_form: bool = False,
    ):
        self.respond = respond
        self.drops_tools, self.takes_form, self.trials = drops_tools, takes_form, 0
        self.requests: list[Record] = []
        self.lookups: list[Record] = []
        self.pages: dict[str, Any] = {}
        self.page_status = 0
        self._script: deque[Answer] = deque()
        self._lock = threading.Condition()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="loopback", daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        """The base address to give to a client, ``http://127.0.0.1:<port>/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "LoopbackServer":
        """Begin to serve."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Release what hangs and close the port."""
        self.release()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "LoopbackServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def script(self, *answers: Answer) -> None:
        """Queue answers for the next requests, in order."""
        with self._lock:
            self._script.extend(answers)

    def release(self) -> None:
        """Let all hanging requests, present and future, be answered with status 503."""
        self._released.set()

    def wait_for_requests(self, count: int, timeout_s: float = 10.0) -> list[Record]:
        """Block until so many requests have come; for threads other than the client's."""
        with self._lock:
            if not self._lock.wait_for(lambda: len(self.requests) >= count, timeout_s):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came")
            return list(self.requests)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The parsed bodies of all requests, in order."""
        return [record.body for record in self.requests]

    @property
    def succeeded(self) -> list[Record]:
        """The requests that got a whole successful reply."""
        return [record for record in self.requests if record.answered]

    def answer_for(self, record: Record) -> Answer:
        """Keep a request and choose its answer."""
        with self._lock:
            if TRIAL in str(record.body.get("messages", ())):
                self.trials += 1
                said, given = "A fine morning to you, friend.", {"thing": "lamp", "to": GUEST}
                is_order = ORDER in str(record.body["messages"][-1]["content"])
                if "response_format" in record.body and self.takes_form:
                    made = {"name": "give", "arguments": given}
                    return form(said, call=made if is_order else None)
                if is_order and not self.drops_tools:
                    return calls(call("give", given))
                return text(said)
            if record.body.get("max_tokens") == 1:
                return text("")
            self.requests.append(record)
            self._lock.notify_all()
            if self._script:
                return self._script.popleft()
        return self.respond(record.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: LoopbackServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that left: tests do that on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Headers and body in one packet, at once: Nagle's algorithm would add 40 ms to each reply.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._show_page(self._record({}))

    def _show_page(self, record: Record) -> None:
        """Answer what is asked about the server itself."""
        owner, path = self.server.owner, self.path.partition("?")[0].rstrip("/")
        owner.lookups.append(record)
        listed = [{"id": name, "object": "model", "owned_by": "tests"} for name in MODELS]
        pages = {"/v1/models": {"object": "list", "data": listed}, **owner.pages}
        record.status = owner.page_status or (200 if path in pages else 404)
        self._send(record.status, pages.get(path, _error("No such page")))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        record = self._record(json.loads(raw or b"{}"))
        if self.path.startswith("/api/"):
            self._show_page(record)
            return
        answer = self.server.owner.answer_for(record)
        time.sleep(answer.delay_s)
        if answer.fault == "hang":
            self._hang(record)
        elif answer.fault == "reset":
            self._reset(record)
        else:
            self._answer(record, answer)

    def _record(self, body: dict[str, Any]) -> Record:
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Record(self.path, body, headers, time.monotonic())

    def _answer(self, record: Record, answer: Answer) -> None:
        is_good, record.status = answer.status == 200, answer.status
        payload = _reply(record, answer) if is_good else _error(answer.content or "")
        try:
            self._send(answer.status, payload, answer)
        except OSError:
            record.client_left = True
            return
        record.answered = is_good and not answer.fault and not self._client_left()

    def _send(self, status: int, payload: Any, answer: Answer = EMPTY) -> None:
        raw = json.dumps(payload) if answer.raw is None else answer.raw
        raw = raw if isinstance(raw, bytes) else raw.encode()
        if answer.fault == "truncate":
            raw = raw[: len(raw) // 2]
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _hang(self, record: Record) -> None:
        released = self.server.owner._released
        while not released.wait(0.02):
            if self._client_left():
                record.client_left = True
                self.close_connection = True
                return
        self._answer(record, failure(503, "Released"))

    def _reset(self, record: Record) -> None:
        """Close with RST instead of FIN: linger on, for no time."""
        record.status = 0
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.connection.close()

    def _client_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        if not readable:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "tests", "code": None}}


def _usage(body: Mapping[str, Any], answer: Answer) -> dict[str, int]:
    usage = dict(answer.usage or {})
    usage.setdefault("prompt_tokens", count_tokens(body))
    usage.setdefault("completion_tokens", encode_length(answer.content or ""))
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    return usage


def _reply(record: Record, answer: Answer) -> dict[str, Any]:
    """The body of a reply: of a chat, or of a completion."""
    reason = answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop")
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    if record.path.endswith("/chat/completions"):
        calls = {"tool_calls": list(answer.tool_calls)} if answer.tool_calls else {}
        choice["message"] = {"role": "assistant", "content": answer.content, **calls}
        kind = "chat.completion"
    else:
        choice |= {"text": answer.content, "logprobs": None}
        kind = "text_completion"
    return {
        "id": f"reply-{time.monotonic_ns()}",
        "object": kind,
        "created": int(time.time()),
        "model": record.body.get("model", "loopback"),
        "choices": [] if answer.fault == "no_choices" else [choice],
        "usage": _usage(record.body, answer),
    }


def check_pairs(body: Mapping[str, Any]) -> None:
    """Raise `AssertionError` unless each tool call has one result, and each result its call.

    Args:
        body: A request's body. Results must stand straight after the message that called.
    """
    waiting: list[str] = []
    for place, message in enumerate(body.get("messages") or ()):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            assert call_id in waiting, f"message {place}: result `{call_id}` without its call"
            waiting.remove(call_id)
            continue
        assert not waiting, f"message {place}: calls {waiting} have no result"
        waiting = [made["id"] for made in message.get("tool_calls") or ()]
        assert len(set(waiting)) == len(waiting), f"message {place}: call ids repeat: {waiting}"
    assert not waiting, f"the last calls {waiting} have no result"


def encode_length(content: str) -> int:
    """Tokens of a text by the counter the package uses for GPT-4 (tiktoken's cl100k_base)."""
    return counter_for("gpt-4")(content)


def count_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of a whole request: messages with their frames, tool schemas, or the prompt.

    The frame is OpenAI's published one, 3 a message and 3 for the reply's start.
    """
    total = 3 + encode_length(str(body.get("prompt") or ""))
    if tools := body.get("tools"):
        total += encode_length(json.dumps(tools, ensure_ascii=False))
    return total + sum(_message_tokens(message) for message in body.get("messages") or ())


def _message_tokens(message: Mapping[str, Any]) -> int:
    return 3 + sum(encode_length(part) for part in _parts(message))


def _parts(message: Mapping[str, Any]) -> Iterable[str]:
    for value in message.values():
        if value is not None:
            yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
