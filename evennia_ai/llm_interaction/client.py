"""The model client: one request in, one reply or one `ModelError` out, off the reactor thread.

::

    client = ModelClient(api_base="http://127.0.0.1:1234/v1")
    reply = yield client.complete(ModelRequest(messages=(...), model="any"))

A request is tried at its model, with back-off, then at each fallback model. A model that keeps
failing is skipped by a circuit breaker. Neither prompt text nor keys reach a log line.
"""

import asyncio
import random as random_module
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from evennia_ai.background import AsyncioThread
from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction import wire
from evennia_ai.llm_interaction.breaker import OPEN, Breaker, BreakerPolicy, Breakers
from evennia_ai.llm_interaction.retry import Failure, RetryPolicy
from evennia_ai.llm_interaction.tokens import counter_for

# The offline model needs milliseconds; it is asked even when all time is used up.
_OFFLINE_GRACE_S = 5.0
# An attempt with less than this share of its time left is not begun.
_LEAST_SHARE = 0.1

# LiteLLM keeps connections and a task of its own on the loop it is first used from: one loop
# serves all clients of the process.
_shared_thread = AsyncioThread("evennia-ai-model")

_SAYS = {
    "timeout": "no answer in time",
    "rate_limit": "too many requests",
    "server": "an error of the server",
    "connection": "no connection; check `EVENNIA_AI_LLM_API_BASE` and that the server runs",
    "bad_response": "an answer that cannot be read",
    "refused": "refused by the provider's content policy",
    "auth": "the key was refused; check `EVENNIA_AI_LLM_API_KEY`",
    "not_found": "unknown model or address; check `EVENNIA_AI_LLM_MODEL`",
    "context_window": "the prompt is larger than the model's window",
    "bad_request": "the request was refused as invalid",
    "breaker_open": "left alone for a while after repeated failures",
}


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What is asked of a model.

    Args:
        model: LiteLLM's name, or a bare name where an address is configured.
        messages: Chat messages, plain dicts. Hidden from `repr`, as the prompt is.
        tools: Tools in the chat format.
        fallback_models: Models to try next, in order.
        api: ``chat``, or ``completion`` for base models.
        prompt: The transcript, for ``completion``.
        stop: Texts at which the model stops.
        max_tokens: Most tokens of the reply.
        temperature: Sampling temperature; None leaves it to the provider.
        timeout_s: Seconds for one attempt.
        purpose: What it is for, as ``tick``, ``summary``, ``extraction``; for logs and bills.
    """

    model: str
    messages: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    tools: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    fallback_models: tuple[str, ...] = ()
    api: str = "chat"
    prompt: str | None = field(default=None, repr=False)
    stop: tuple[str, ...] = ()
    max_tokens: int = 1024
    temperature: float | None = None
    timeout_s: float = 60.0
    purpose: str = "tick"


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What a model answered. An empty reply is a reply: no content and no tool calls.

    Args:
        content: The text, whole and as it came; clean it before it is said.
        tool_calls: ``{"id", "type", "function": {"name", "arguments"}}``; `arguments` is the
            text as received, which need not be JSON; ids are unique in the conversation.
        finish_reason: As the provider says it.
        model: The model that answered, by its name in the request.
        prompt_tokens: Tokens of the prompt, by the provider or counted.
        completion_tokens: Tokens of the reply, by the provider or counted.
        cost: US dollars by LiteLLM's price list, 0 for the offline model, None if unknown.
        attempts: HTTP calls made, failed ones and other models' included.
        seconds: From the request to the reply.
        content_tokens: Tokens of `content`, counted on the background thread so that the
            reactor never has to.
    """

    content: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str = "stop"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    attempts: int = 1
    seconds: float = 0.0
    content_tokens: int | None = None


@dataclass(frozen=True)
class ProbeReport:
    """Whether a model can be reached.

    Args:
        model: The model asked.
        ok: Whether it answered.
        seconds: How long that took.
        kind: The failure's kind, see `ModelError`; empty if it answered.
        detail: One line for people, keys masked.
        breaker: State of the model's circuit breaker.
    """

    model: str
    ok: bool
    seconds: float
    kind: str
    detail: str
    breaker: str


class ModelClient:
    """Talks to models. All methods are for the reactor thread and do not block.

    Args:
        api_base: Address of an OpenAI-compatible or other server; None for the provider's own.
        api_key: Its key; never shown.
        home_model: The model `api_base` and `api_key` were configured for. Models of other
            providers are sent to their own addresses. By default each request's first model.
        thread: Where calls run; by default one thread for all clients.
        clock: Monotonic seconds.
        random: Source of jitter, numbers in 0..1.
        retry: When to try again.
        breaker: When to leave a model alone.
        count: Counts the tokens of a text, on the background thread.
    """

    def __init__(
        self,
        api_base: str | None = None,
        api_key: str | None = None,
        home_model: str | None = None,
        thread: AsyncioThread | None = None,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        breaker: BreakerPolicy = BreakerPolicy(),  # noqa: B008 - frozen
        count: Callable[[str], int] | None = None,
    ):
        self._address = (api_base or None, api_key or None)
        self._home = home_model
        self._thread = thread or _shared_thread
        self._clock = clock
        self._random = random
        self._retry = retry
        self._breakers = Breakers(breaker, clock)
        self._count = count
        self._litellm: Any = None
        self._caller: wire.Caller | None = None
        self._windows: dict[str, int | None] = {}
        self._flying: set[Deferred[Any]] = set()

    def __repr__(self) -> str:
        base, key = self._address
        shown = wire.masked(base, key) if base else None
        return f"<ModelClient api_base={shown!r} api_key={'***' if key else None}>"

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        """Ask a model.

        Returns:
            A Deferred that fires with a `ModelReply`, or fails with `ModelError` when no model
            answered. Cancelling it cancels the HTTP call; it then fails with Twisted's
            `CancelledError`, which says nothing of the model.
        """
        return self._start(self._complete(request))

    def warm_up(self) -> "Deferred[None]":
        """Import LiteLLM and read the vocabulary now; fires when calls will be quick."""
        return self._start(self._warm_up())

    def probe(self, model: str, api: str = "chat", timeout_s: float = 20.0) -> "Deferred[Any]":
        """Ask a model for one word, once, past its breaker; fires with a `ProbeReport`."""
        return self._start(self._probe(model, api, timeout_s))

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""
        flying = list(self._flying)
        for deferred in flying:
            deferred.cancel()
        return len(flying)

    def in_flight(self) -> int:
        """How many calls are in flight."""
        return len(self._flying)

    def window(self, model: str) -> int | None:
        """Most tokens a model takes in; None if unknown, or LiteLLM is not loaded yet."""
        if model not in self._windows:
            if self._litellm is None:
                return None
            self._windows[model] = wire.window_of(self._litellm, model)
        return self._windows[model]

    def breaker_states(self) -> dict[str, str]:
        """The state of each model's circuit breaker by LiteLLM's name of the model."""
        return self._breakers.states()

    def _start(self, work: Any) -> "Deferred[Any]":
        deferred = self._thread.submit(work)
        self._flying.add(deferred)
        deferred.addBoth(self._landed, deferred)
        return deferred

    def _landed(self, result: Any, deferred: "Deferred[Any]") -> Any:
        self._flying.discard(deferred)
        return result

    def _ready(self) -> wire.Caller:
        """The caller, LiteLLM imported. On the background thread, where it may block."""
        if self._caller is None:
            self._litellm = wire.load()
            self._caller = wire.Caller(self._litellm)
        return self._caller

    def _counter(self) -> Callable[[str], int]:
        return self._count or counter_for("gpt-4")

    async def _warm_up(self) -> None:
        self._ready()
        await wire.rehearse(self._litellm)
        await asyncio.to_thread(self._counter(), "warm")

    def _endpoint(self, model: str, home: str) -> wire.Endpoint:
        return wire.endpoint(self._litellm, model, self._home or home, *self._address)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        course = _Course(request, self._ready(), self._clock, self._retry)
        models = (request.model, *request.fallback_models)
        for place, model in enumerate(models):
            where = self._endpoint(model, request.model)
            left = sum(not name.startswith(wire.OFFLINE_PREFIX) for name in models[place:])
            outcome = await self._ask(course, where, course.share_s(where, left))
            if not isinstance(outcome, Failure):
                return await self._reply(course, model, where, outcome)
            course.failures.append((model, outcome))
            self._thread.notify(_log_failure, _described(model, outcome), request.purpose)
        raise course.error()

    async def _ask(self, course: "_Course", where: wire.Endpoint, share_s: float) -> Any:
        """Try one model as often as policy, breaker and its share of time allow.

        Returns:
            LiteLLM's response, or the last `Failure`.
        """
        breaker = self._breakers.of(where.model, where.api_base)
        until = self._clock() + share_s
        outcome: Any = Failure("breaker_open", True)
        for attempt in range(1, self._retry.attempts + 1):
            if not breaker.admits():
                break
            outcome = await self._attempt(course, where, breaker, until)
            wait_s = self._wait_s(outcome, attempt, breaker, until, course.request)
            if wait_s is None:
                break
            self._say_again(course.request, where, outcome, wait_s)
            await asyncio.sleep(wait_s)
        return outcome

    async def _attempt(
        self, course: "_Course", where: wire.Endpoint, breaker: Breaker, until: float
    ) -> Any:
        """One HTTP call: LiteLLM's response or a `Failure`; the breaker is told."""
        course.attempts += 1
        limit_s = min(course.request.timeout_s, max(0.0, until - self._clock()))
        try:
            outcome = await _outcome(course.caller.call(where, course.request), limit_s)
        except BaseException:
            breaker.abandoned()
            raise
        _tell(breaker, outcome)
        return outcome

    def _wait_s(
        self, outcome: Any, attempt: int, breaker: Breaker, until: float, request: ModelRequest
    ) -> float | None:
        """Seconds until the next attempt, None if the outcome stands."""
        if not isinstance(outcome, Failure):
            return None
        wait_s = self._retry.wait_s(outcome, attempt, self._random())
        least_s = _LEAST_SHARE * request.timeout_s
        in_time = wait_s is not None and self._clock() + wait_s + least_s <= until
        if in_time and breaker.state != OPEN:
            return wait_s
        if outcome.retry_after_s:
            breaker.rest(min(outcome.retry_after_s, self._retry.rest_cap_s))
        return None

    def _say_again(
        self, request: ModelRequest, where: wire.Endpoint, failure: Failure, wait_s: float
    ) -> None:
        self._thread.notify(_log_retry, where.model, request.purpose, failure.kind, wait_s)

    async def _reply(
        self, course: "_Course", model: str, where: wire.Endpoint, response: Any
    ) -> ModelReply:
        content = wire.content_of(response)
        prompt, completion = wire.usage_of(response)
        tokens = await asyncio.to_thread(self._counter(), content) if content else 0
        if not prompt:
            prompt = await asyncio.to_thread(wire.prompt_tokens, course.request, self._counter())
        return ModelReply(
            content=content,
            tool_calls=wire.tool_calls_of(response, wire.call_ids(course.request.messages)),
            finish_reason=str(getattr(response.choices[0], "finish_reason", "") or "stop"),
            model=model,
            prompt_tokens=prompt,
            completion_tokens=completion or tokens,
            cost=wire.cost_of(self._litellm, response, where),
            attempts=course.attempts,
            seconds=self._clock() - course.began,
            content_tokens=tokens,
        )

    async def _probe(self, model: str, api: str, timeout_s: float) -> ProbeReport:
        caller = self._ready()
        where = self._endpoint(model, model)
        request = ModelRequest(
            model=model,
            messages=({"role": "user", "content": "Answer with the one word: ready"},),
            prompt="The opposite of no is",
            api=api,
            max_tokens=16,
            timeout_s=timeout_s,
            purpose="probe",
        )
        began = self._clock()
        outcome = await _outcome(caller.call(where, request), timeout_s)
        breaker = self._breakers.of(where.model, where.api_base)
        _tell(breaker, outcome)
        return self._report(model, outcome, self._clock() - began, breaker.state)

    def _report(self, model: str, outcome: Any, seconds: float, state: str) -> ProbeReport:
        if not isinstance(outcome, Failure):
            detail = f"`{model}` answered in {seconds:.1f} s"
            return ProbeReport(model, True, seconds, "", detail, state)
        said = wire.masked(outcome.detail, *self._address)
        detail = f"{_described(model, outcome)}. It said: {said}" if said else ""
        return ProbeReport(
            model, False, seconds, outcome.kind, detail or _described(model, outcome), state
        )


class _Course:
    """What happens to one request: its time, its attempts, its failures."""

    def __init__(
        self,
        request: ModelRequest,
        caller: wire.Caller,
        clock: Callable[[], float],
        retry: RetryPolicy,
    ):
        self.request = request
        self.caller = caller
        self.began = clock()
        self.attempts = 0
        self.failures: list[tuple[str, Failure]] = []
        self._clock = clock
        self._ends = self.began + retry.total_factor * request.timeout_s

    def share_s(self, where: wire.Endpoint, models_left: int) -> float:
        """Seconds the next model may take: an equal part of the time that is left."""
        if where.is_offline:
            return max(_OFFLINE_GRACE_S, self._ends - self._clock())
        return max(0.0, self._ends - self._clock()) / max(1, models_left)

    def error(self) -> ModelError:
        """The error to raise when no model answered: of the first model that was asked."""
        asked = [failure for _, failure in self.failures if failure.kind != "breaker_open"]
        kind = (asked or [self.failures[0][1]])[0].kind
        said = "; ".join(_described(model, failure) for model, failure in self.failures)
        retryable = any(failure.retryable for _, failure in self.failures)
        return ModelError(f"no model answered: {said}", retryable=retryable, kind=kind)


async def _outcome(call: Awaitable[Any], limit_s: float) -> Any:
    """A call's response within a time limit, or the `Failure` it ended in."""
    try:
        async with asyncio.timeout(limit_s):
            response = await call
        wire.check(response)
    except Exception as error:  # noqa: BLE001 - LiteLLM raises dozens of kinds; all are sorted
        return wire.failure_of(error)
    return response


def _tell(breaker: Breaker, outcome: Any) -> None:
    """Report to a breaker. A request refused as such shows that the model is there."""
    harmless = ("bad_request", "context_window", "refused")
    if isinstance(outcome, Failure) and outcome.kind not in harmless:
        breaker.failed()
    else:
        breaker.succeeded()


def _described(model: str, failure: Failure) -> str:
    status = f" (HTTP {failure.status})" if failure.status else ""
    return f"`{model}`: {_SAYS.get(failure.kind, failure.kind)}{status}"


_log = Logger(namespace="evennia_ai.model")


def _log_failure(described: str, purpose: str) -> None:
    _log.warn("{described} ({purpose})", described=described, purpose=purpose)


def _log_retry(model: str, purpose: str, kind: str, wait_s: float) -> None:
    _log.warn(
        "`{model}` ({purpose}): {kind}; trying again in {wait_s:.1f} s",
        model=model,
        purpose=purpose,
        kind=kind,
        wait_s=wait_s,
    )
