"""The model client: one request in, one reply or one `ModelError` out, off the reactor thread.

::

    client = ModelClient(api_base="http://127.0.0.1:1234/v1")
    reply = yield client.complete(ModelRequest(messages=(...), model="any"))

A request is tried at its model, with back-off, then at each fallback model, within one time limit.
While another model waits, a try gets at most half of the time that is left. A model that keeps
failing is left alone for a while. Prompts and keys never reach a log line.

The client learns the window of each model: from LiteLLM's table, from the server at the configured
address, and from overflow errors (`windows.KnownWindow`).
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from evennia_ai.background import AsyncioThread
from evennia_ai.errors import ModelError, WindowError
from evennia_ai.llm_interaction import wire
from evennia_ai.llm_interaction.failures import Failure, failure_of
from evennia_ai.llm_interaction.models import Models, RetryPolicy, ask_server
from evennia_ai.llm_interaction.own_machine import is_near
from evennia_ai.llm_interaction.profiles import Profile, taught
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.trial import TRIAL, speech_of
from evennia_ai.llm_interaction.values import (
    FORM,
    READ_AHEAD,
    SPEAKS_AND_CALLS,
    ModelFacts,
    ModelReply,
    ModelRequest,
    used,
)
from evennia_ai.llm_interaction.windows import SHOWN, Window

T = TypeVar("T")
_log = Logger(namespace="evennia_ai.model")

# The offline model needs milliseconds; it is asked even when all time is used up.
_OFFLINE_GRACE_S = 5.0
# Longest time of one call of a trial.
TRIAL_S = 30.0
# Longest time of a probe.
PROBE_S = 20.0
# No try begins with less than this share of a whole try's time.
_LEAST_SHARE = 0.1
# A server is asked for its window again after this long: it may have been started anew.
_ASK_AGAIN_S = 300.0

# LiteLLM keeps connections and a task on the loop it is first used from: one loop serves all
# clients of the process.
_thread = AsyncioThread("evennia-ai-model")
# For what a provider did not count.
_count = TokenCounter("gpt-4")


class ModelClient:
    """Talks to models. All methods are for the reactor thread and do not block.

    Args:
        api_base: Address of an OpenAI-compatible or other server; None for the provider's own.
        api_key: Its key; never shown.
        home_model: The model `api_base` and `api_key` were configured for. Models of other
            providers are sent to their own addresses. By default each request's first model.
        clock: Monotonic seconds.
        retry: When to try again, and when to pause calls to a model.
        profiles: Where what is learned of models is kept; by default only in memory.
    """

    def __init__(
        self,
        api_base: str | None = None,
        api_key: str | None = None,
        home_model: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        profiles: Path | None = None,
    ):
        self._address = (api_base or None, api_key or None)
        self._home = home_model
        self._clock = clock
        self._retry = retry
        self.models = Models(retry, clock, profiles)
        self._caller: wire.Caller | None = None
        self._in_flight: set[Deferred[Any]] = set()

    def __repr__(self) -> str:
        base, key = self._address
        shown = wire.masked(base, key) if base else None
        return f"<ModelClient api_base={shown!r} api_key={'***' if key else None}>"

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model; fires with a `ModelReply`, or fails with `ModelError` if no model answers.

        Cancelling the Deferred cancels the HTTP call; it then fails with Twisted's
        `CancelledError`, which does not count against the model.
        """
        return self._start(self._complete(request))

    def warm_up(self) -> Deferred[None]:
        """Load what is slow and ask the server for its window; fires when calls will be quick."""
        done = self._start(self._warm_up())
        if home := self._home:
            done.addCallback(lambda _: self.facts(home)).addCallback(lambda _: None)
        return done

    def probe(self, model: str) -> Deferred[ModelReply]:
        """Ask a model for one word, once, even one that is left alone; fires with its reply.

        Fails with `ModelError`, whose text is one line for people, keys masked.
        """
        return self._start(self._probe(model))

    def trial(self, model: str) -> Deferred[ModelReply]:
        """Find out whether a model talks well with tools and calls them; what is found is kept.

        Fires with what the calls cost, as one reply without words; its `attempts` are 0 where the
        answer was known. Fails with `ModelError` if the model answered none of them.
        """
        return self._start(self._trial(model))

    @property
    def in_flight(self) -> int:
        """Calls in flight."""
        return len(self._in_flight)

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""
        running = list(self._in_flight)
        for deferred in running:
            deferred.cancel()
        return len(running)

    def facts(self, model: str) -> ModelFacts:
        """What is known of a model now."""
        if self._caller is None:
            is_free = model.startswith(wire.OFFLINE_PREFIX)
            return ModelFacts(price=(0.0, 0.0) if is_free else None)
        where = self._endpoint(model, model)
        profile = self.models.of(where.model).profile
        can_call = profile.speech == FORM or (
            profile.speech == SPEAKS_AND_CALLS and "no_tools" not in profile.flags
        )
        price = wire.price_of(self._caller.litellm, where)
        return ModelFacts(
            self._window(where),
            calls_tools=can_call if profile.speech else None,
            profile=tuple(profile.said()),
            price=price,
            speech=profile.speech,
            own=not any(price or ()) and is_near(where.api_base or ""),
        )

    def _window(self, where: wire.Endpoint) -> Window | None:
        listed = wire.window_of(self._ready().litellm, where.model)
        return self.models.of(where.model).window.limit(listed)

    def _start(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        deferred = _thread.submit(work)
        self._in_flight.add(deferred)

        def end(result: T) -> T:
            self._in_flight.discard(deferred)
            return result

        return deferred.addBoth(end)

    def _ready(self) -> wire.Caller:
        """The caller, LiteLLM imported. On the background thread, where it may block."""
        if self._caller is None:
            self._caller = wire.Caller(wire.load())
        return self._caller

    async def _warm_up(self) -> None:
        await wire.rehearse(self._ready().litellm)
        await asyncio.to_thread(_count, "warm")
        if self._home:
            await self._look_up(self._endpoint(self._home, self._home))

    def _endpoint(self, model: str, home: str) -> wire.Endpoint:
        return wire.endpoint(self._ready().litellm, model, self._home or home, *self._address)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        began = self._clock()
        ends = began + request.within_s
        models = (request.model, *request.fallback_models)
        failures: dict[str, Failure] = {}
        outcomes: list[ModelReply | Failure] = []  # of every HTTP call
        for place, model in enumerate(models):
            where = self._endpoint(model, request.model)
            await self._look_up(where)
            # For a fallback nobody has made room for the reply yet.
            size = request.prompt_tokens + (request.max_tokens if place else 0)
            window = self._window(where)
            if request.prompt_tokens and window and size > window.tokens:
                outcome: ModelReply | Failure = Failure("context_window")
            else:
                has_next = request.has_next or place + 1 < len(models)
                outcome = await self._ask(request, where, ends, has_next, outcomes)
            if isinstance(outcome, ModelReply):
                tokens = outcome.completion_tokens
                reply = replace(
                    outcome,
                    model=model,
                    attempts=len(outcomes),
                    prompt_tokens=outcome.prompt_tokens or request.prompt_tokens,
                    completion_tokens=tokens or await asyncio.to_thread(_count, outcome.content),
                )
                return self._billed(reply, outcomes[:-1], began)
            failures[model] = outcome
            said = f"{_described(model, outcome)} ({request.purpose})"
            _thread.notify(_log.warn, "{said}", said=said)
            if not place and outcome.does == "shrink":
                break  # a shorter prompt for this model is better than another model
        said = "no model answered: "
        said += "; ".join(_described(model, failure) for model, failure in failures.items())
        for model, failure in failures.items():
            if failure.does == "shrink":
                raise WindowError(said, model)
        # The error's kind is that of the first model that was asked.
        kinds = [failure.kind for failure in failures.values()]
        asked = [kind for kind in kinds if kind != "breaker_open"]
        retryable = any(failure.retryable for failure in failures.values())
        raise ModelError(said, retryable, (asked or kinds)[0])

    def _billed(
        self, reply: ModelReply, before: Iterable[ModelReply | Failure], began: float
    ) -> ModelReply:
        """A reply with the time since `began`, and with what the replies before it cost."""
        replies = [reply, *(each for each in before if isinstance(each, ModelReply))]
        return replace(reply, **used(replies).figures(), seconds=self._clock() - began)

    async def _look_up(self, where: wire.Endpoint) -> None:
        """Ask the configured server for a model's window, if that is due."""
        known, now = self.models.of(where.model), self._clock()
        if now < known.next_lookup or where.api_base is None:
            return
        known.next_lookup = now + _ASK_AGAIN_S
        name = where.model.removeprefix(f"{where.provider}/")
        window = await ask_server(where.api_base, where.api_key, name)
        known.window = known.window.told(window)
        if window and window.source == SHOWN:  # it is not loaded yet
            known.next_lookup = now

    async def _ask(
        self,
        request: ModelRequest,
        where: wire.Endpoint,
        ends: float,
        has_next: bool,
        outcomes: list[ModelReply | Failure],
    ) -> ModelReply | Failure:
        """Try one model as often as policy and the time until `ends` allow.

        While another level waits (`has_next`), a try has at most half of the time that is left. A
        model that does not answer somebody who waits is not tried again, and then left alone.

        A request that is refused for its shape, or whose reply was only thoughts, is sent again at
        once in another one. The outcome of each HTTP call is added to `outcomes`.
        """
        model = self.models.of(where.model)
        profile, tries = model.profile, 0
        outcome: ModelReply | Failure = Failure("breaker_open")
        while not model.is_resting:
            limit_s = min(request.timeout_s, self._share_s(ends, has_next))
            if where.is_offline:
                limit_s = max(_OFFLINE_GRACE_S, limit_s)
            outcome = await self._attempt(where, request, limit_s, profile)
            outcomes.append(outcome)
            if where.is_offline or request.purpose == READ_AHEAD:
                return outcome
            # The longest wait that leaves time for a further try.
            spare_s = self._share_s(ends, has_next) - _LEAST_SHARE * request.timeout_s
            new = taught(profile, request, outcome)
            if new != profile and spare_s >= 0 and not request.is_own:
                profile = new
                continue
            if isinstance(outcome, ModelReply):
                break
            tries += 1
            wait_s = self._retry.wait_s(outcome, tries)
            is_hung = request.has_next and outcome.kind == "timeout" and outcome.status is None
            if wait_s is None or wait_s > spare_s or is_hung or request.is_own:
                rest_s = outcome.row.get("rest_s") or outcome.retry_after_s or 0.0
                model.rest(self._retry.cooldown_s if is_hung else rest_s)
                break
            said = f"`{where.model}` ({request.purpose}): {outcome.kind}"
            again = f"{said}; trying again in {wait_s:.1f} s"
            _thread.notify(_log.warn, "{said}", said=again)
            await asyncio.sleep(wait_s)
        if isinstance(outcome, ModelReply):
            if outcome.is_empty:
                return Failure("empty")
            # A trial may have ended meanwhile.
            speech = self.models.of(where.model).profile.speech
            self.models.keep(where.model, replace(profile, speech=speech))
        return outcome

    def _share_s(self, ends: float, has_next: bool) -> float:
        """Seconds until `ends`, or half of them while another level waits."""
        return max(0.0, ends - self._clock()) / (2 if has_next else 1)

    async def _attempt(
        self,
        where: wire.Endpoint,
        request: ModelRequest,
        limit_s: float,
        profile: Profile,
    ) -> ModelReply | Failure:
        """Make one HTTP call; what it tells of the model is noted."""
        model = self.models.of(where.model)
        try:
            async with asyncio.timeout(limit_s):
                reply = await self._ready().call(where, request, profile)
        except Exception as error:  # noqa: BLE001 - LiteLLM raises dozens of kinds; all are sorted
            failure = failure_of(error, wire.texts_of(request))
        else:
            if request.purpose != TRIAL:  # it ends no pause that another call was asked for
                model.succeeded()
            return reply
        if failure.is_answer:
            model.succeeded()
        elif failure.kind != "unsendable":
            model.failed()
        if failure.does == "shrink":
            size = request.prompt_tokens and request.prompt_tokens + request.max_tokens
            model.window = model.window.overflowed(failure.window, size)
        if failure.kind == "connection":  # one that comes back may have another window
            model.next_lookup = -math.inf
        return failure

    async def _probe(self, model: str) -> ModelReply:
        where = self._endpoint(model, model)
        request = ModelRequest(
            model=model,
            messages=({"role": "user", "content": "Answer with the one word: ready"},),
            max_tokens=16,
            timeout_s=PROBE_S,
            purpose="probe",
        )
        await self._look_up(where)
        began = self._clock()
        outcome = await self._attempt(where, request, PROBE_S, self.models.of(where.model).profile)
        if isinstance(outcome, ModelReply):
            return replace(outcome, model=model, seconds=self._clock() - began)
        detail = _described(model, outcome)
        if said := wire.masked(outcome.said, *self._address):
            detail = f"{detail}. It said: {said}"
        raise ModelError(detail, outcome.retryable, outcome.kind)

    async def _trial(self, model: str) -> ModelReply:
        where, began = self._endpoint(model, model), self._clock()
        nothing = ModelReply(content="", model=model, attempts=0, cost=0.0)
        if where.is_offline or self.models.of(where.model).profile.speech:
            return nothing
        outcomes: list[ModelReply | Failure] = []

        async def ask(request: ModelRequest) -> ModelReply:
            ends = self._clock() + request.timeout_s
            outcome = await self._ask(request, where, ends, False, outcomes)
            if isinstance(outcome, ModelReply):
                return outcome
            raise ModelError(_described(model, outcome), outcome.retryable, outcome.kind)

        try:
            speech = await speech_of(ask, where.model, TRIAL_S)
        except ModelError as error:
            if not any(isinstance(each, ModelReply) for each in outcomes):
                raise
            # What was asked is paid for; the rest is tried again later.
            _thread.notify(_log.warn, "{said}", said=f"{error} (trial)")
        else:
            profile = self.models.of(where.model).profile
            self.models.keep(where.model, replace(profile, speech=speech))
        return self._billed(replace(nothing, attempts=len(outcomes)), outcomes, began)


def _described(model: str, failure: Failure) -> str:
    status = f" (HTTP {failure.status})" if failure.status else ""
    return f"`{model}`: {failure.explained}{status}"
