"""The model client: one request in, one reply or one `ModelError` out, off the reactor thread.

::

    client = ModelClient(api_base="http://127.0.0.1:1234/v1")
    reply = yield client.complete(ModelRequest(messages=(...), model="any"))

A request is tried at its model, twice if need be, then at each fallback model, within one time
limit. While another model waits, a try gets at most half of the time that is left, and a model that
fails is left alone for a while. Prompts and keys never reach a log line.

The client learns the window of each model: from LiteLLM's table, from the server at the configured
address, and from overflow errors (`models.Model`).
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from evennia_ai.background import AsyncioThread
from evennia_ai.errors import ModelError, WindowError
from evennia_ai.llm_interaction import wire
from evennia_ai.llm_interaction.failures import Failure, failure_of
from evennia_ai.llm_interaction.models import Model, Models
from evennia_ai.llm_interaction.profiles import ModelProfile, taught
from evennia_ai.llm_interaction.servers import SHOWN, ask_server, is_near
from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.llm_interaction.trial import TRIAL, speech_of
from evennia_ai.llm_interaction.values import (
    FORM,
    PROBE,
    READ_AHEAD,
    SPEAKS_AND_CALLS,
    ModelFacts,
    ModelReply,
    ModelRequest,
    used,
)

T = TypeVar("T")
_log = Logger(namespace="evennia_ai.model")

# The offline model needs milliseconds; it is asked even when all time is used up.
_OFFLINE_GRACE_S = 5.0
# Longest time of one call of a trial.
TRIAL_S = 30.0
# Longest wait for a try. If the server asks for more, the next model is tried at once.
_MOST_WAIT_S = 30.0
# A server is asked for its window again after this long: it may have been started anew.
_ASK_AGAIN_S = 300.0

# LiteLLM keeps connections and a task on the loop it is first used from: one loop serves all
# clients of the process.
_thread = AsyncioThread("evennia-ai-model")


class ModelClient:
    """Talks to models. All methods are for the reactor thread and do not block.

    Args:
        api_base: Address of an OpenAI-compatible or other server; None for the provider's own.
        api_key: Its key; never shown.
        home_model: The model `api_base` and `api_key` were configured for. Models of other
            providers are sent to their own addresses. By default each request's first model.
        clock: Monotonic seconds.
        pause_s: Most seconds before a second try where the server asks for no wait.
        profiles: Where what is learned of models is kept; by default only in memory.
    """

    def __init__(
        self,
        api_base: str | None = None,
        api_key: str | None = None,
        home_model: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause_s: float = 0.5,
        profiles: Path | None = None,
    ):
        self._address = (api_base or None, api_key or None)
        self._home = home_model
        self._clock = clock
        self._pause_s = pause_s
        self.models = Models(clock, profiles)
        self._litellm: ModuleType | None = None
        self._in_flight: set[Deferred[Any]] = set()

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model; fires with a `ModelReply`, or fails with `ModelError` if no model answers.

        Cancelling the Deferred cancels the HTTP call; it then fails with Twisted's
        `CancelledError`, which does not count against the model.
        """
        return self._start(self._complete(request))

    def warm_up(self) -> Deferred[None]:
        """Load what is slow and ask the server for its window; fires when calls will be quick."""
        return self._start(self._warm_up())

    def trial(self, model: str) -> Deferred[ModelReply]:
        """Find out whether a model talks well with tools and calls them; what is found is kept.

        Fires with what the calls cost, as one reply without words; its `attempts` are 0 where the
        answer was known. Fails with `ModelError` if the model answered none of them.
        """
        return self._start(self._trial(model))

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""
        running = list(self._in_flight)
        for deferred in running:
            deferred.cancel()
        return len(running)

    def facts(self, model: str) -> ModelFacts:
        """What is known of a model now."""
        if self._litellm is None:
            return ModelFacts()
        where = self._endpoint(model, model)
        known = self.models[where.model]
        speech, calls_tools = known.profile.speech, None
        if speech:
            may_call = speech == SPEAKS_AND_CALLS and "no_tools" not in known.profile.flags
            calls_tools = speech == FORM or may_call
        price = wire.price_of(self._litellm, where)
        return ModelFacts(
            known.window(wire.window_of(self._litellm, where.model)),
            calls_tools=calls_tools,
            profile=tuple(known.profile.said()),
            price=price,
            speech=speech,
            own=not any(price or ()) and is_near(where.api_base or ""),
        )

    def _start(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        deferred = _thread.submit(work)
        self._in_flight.add(deferred)

        def end(result: T) -> T:
            self._in_flight.discard(deferred)
            return result

        return deferred.addBoth(end)

    def _ready(self) -> ModuleType:
        """LiteLLM, imported. On the background thread, where it may block."""
        if self._litellm is None:
            self._litellm = wire.load()
        return self._litellm

    async def _warm_up(self) -> None:
        await wire.rehearse(self._ready())
        await asyncio.to_thread(counter_for)
        if self._home:
            await self._look_up(self._endpoint(self._home, self._home))

    def _endpoint(self, model: str, home: str) -> wire.Endpoint:
        return wire.endpoint(self._ready(), model, self._home or home, *self._address)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        began = self._clock()
        failures: dict[str, Failure] = {}
        outcomes: list[ModelReply | Failure] = []  # of every HTTP call
        names, ends = (request.model, *request.fallback_models), began + request.within_s
        for name in names:
            where = self._endpoint(name, request.model)
            model = await self._look_up(where)
            has_next = request.has_next or name != names[-1]
            # A request that nobody else would answer waits for the end of its model's rest.
            rest_s, most_wait_s = model.rest_s, 0.0
            if request.purpose == PROBE:
                rest_s = 0.0
            elif not (has_next or request.is_own):
                most_wait_s = max(0.0, min((ends - self._clock()) / 2, _MOST_WAIT_S))
            size = request.prompt_tokens
            if failures:  # nobody has made room for the reply yet
                size += request.max_tokens
            window = model.window(wire.window_of(self._ready(), where.model))
            outcome: ModelReply | Failure
            if request.prompt_tokens and window and size > window.tokens:
                outcome = Failure("context_window")
            elif rest_s > most_wait_s:
                outcome = Failure("breaker_open")
            else:
                # Not all that wait ask in the same moment.
                await asyncio.sleep(rest_s * random.uniform(1.0, 1.1))
                outcome = await self._ask(request, where, ends, has_next, outcomes)
            if isinstance(outcome, ModelReply):
                return self._billed(replace(outcome, model=name), outcomes[:-1], began)
            failures[name] = outcome
            said = f"`{name}`: {outcome.explained} ({request.purpose})"
            _thread.notify(_log.warn, "{said}", said=said)
            if name == request.model and outcome.does == "shrink":
                break  # a shorter prompt for this model is better than another model
        told = ""
        if request.purpose == PROBE:  # it quotes nobody's talk
            told = wire.masked(" ".join(each.said for each in failures.values()), *self._address)
        raise _no_answer(failures, told)

    def _billed(
        self, reply: ModelReply, before: Sequence[ModelReply | Failure], began: float
    ) -> ModelReply:
        """A reply with the time since `began`, and with what the calls before it cost."""
        replies = [reply, *(each for each in before if isinstance(each, ModelReply))]
        attempts = sum(each.attempts for each in replies) + len(before) + 1 - len(replies)
        figures = used(replies).figures()
        return replace(reply, **figures, attempts=attempts, seconds=self._clock() - began)

    async def _look_up(self, where: wire.Endpoint) -> Model:
        """What is known of a model; its server is asked for the window, if that is due."""
        model, now = self.models[where.model], self._clock()
        if now >= model.next_lookup and where.api_base is not None:
            model.next_lookup = now + _ASK_AGAIN_S
            name = where.model.removeprefix(f"{where.provider}/")
            if window := await ask_server(where.api_base, where.api_key, name):
                model.serves(window)
                if window.source == SHOWN:  # it is not loaded yet
                    model.next_lookup = now
        return model

    async def _ask(
        self,
        request: ModelRequest,
        where: wire.Endpoint,
        ends: float,
        has_next: bool,
        outcomes: list[ModelReply | Failure],
    ) -> ModelReply | Failure:
        """Try one model, twice if the first failure may pass and the time until `ends` allows it.

        While another level waits (`has_next`), a try has at most half of the time that is left, and
        a model that failed is then left alone for a while; one that hung is not tried again.

        A request that is refused for its shape, or whose reply was only thoughts, is sent again at
        once in another one. The outcome of each HTTP call is added to `outcomes`.
        """
        model, is_second = self.models[where.model], False
        profile = model.profile

        def share_s() -> float:
            return max(0.0, ends - self._clock()) / (1 + has_next)

        while True:
            limit_s = min(request.timeout_s, share_s())
            if where.is_offline:
                limit_s = max(_OFFLINE_GRACE_S, limit_s)
            outcome = await self._attempt(where, request, limit_s, profile)
            outcomes.append(outcome)
            if where.is_offline or request.purpose in (READ_AHEAD, PROBE):
                return outcome
            new = taught(profile, request, outcome)
            if new != profile and share_s() and not request.is_own:
                profile = new
                continue
            if isinstance(outcome, ModelReply):
                if outcome.is_empty:
                    return Failure("empty")
                # A trial may have ended meanwhile.
                self.models.keep(where.model, replace(profile, speech=model.profile.speech))
                return outcome
            # Half of the pause is random, so that assistants do not try again at the same moment.
            wait_s = self._pause_s * random.uniform(0.5, 1.0)
            wait_s = max(outcome.retry_after_s or 0.0, wait_s)
            is_hung = has_next and outcome.kind == "timeout" and outcome.status is None
            is_last = is_second or is_hung or request.is_own or outcome.does != "wait"
            if is_last or wait_s >= min(share_s(), _MOST_WAIT_S):
                rest_s = outcome.retry_after_s or 0.0
                if has_next or outcome.does == "pay":
                    rest_s = max(rest_s, outcome.row.get("rest_s", 0.0))
                model.rest(rest_s)
                return outcome
            is_second = True
            await asyncio.sleep(wait_s)

    async def _attempt(
        self, where: wire.Endpoint, request: ModelRequest, limit_s: float, profile: ModelProfile
    ) -> ModelReply | Failure:
        """Make one HTTP call; what it tells of the model is noted."""
        model = self.models[where.model]
        outcome: ModelReply | Failure
        try:
            async with asyncio.timeout(limit_s):
                outcome = await wire.call(self._ready(), where, request, profile)
        except Exception as error:  # noqa: BLE001 - LiteLLM raises dozens of kinds; all are sorted
            outcome = failure_of(error, wire.texts_of(request))
        if isinstance(outcome, ModelReply):
            if request.purpose != TRIAL:  # it ends no pause that another call was asked for
                model.rests_until = -math.inf
            return outcome
        if outcome.does == "shrink":
            size = request.prompt_tokens and request.prompt_tokens + request.max_tokens
            model.refuses(outcome.window, size)
        if outcome.kind == "connection":  # one that comes back may have another window
            model.next_lookup = -math.inf
        return outcome

    async def _trial(self, model: str) -> ModelReply:
        where, began = self._endpoint(model, model), self._clock()
        known = self.models[where.model]
        replies: list[ModelReply] = []

        async def ask(request: ModelRequest) -> ModelReply:
            replies.append(await self._complete(request))
            return replies[-1]

        if not (where.is_offline or known.profile.speech):
            try:
                speech = await speech_of(ask, model, TRIAL_S)
            except ModelError:
                # What was asked is paid for; the rest is tried again later.
                if not replies:
                    raise
            else:
                self.models.keep(where.model, replace(known.profile, speech=speech))
        nothing = ModelReply(content="", model=model, attempts=0, cost=0.0)
        return self._billed(nothing, replies, began)


def _no_answer(failures: Mapping[str, Failure], told: str) -> ModelError:
    """The error of models that did not answer, by name, in the order in which they were asked.

    `told` is what their servers said, as far as it may be shown.
    """
    rows = [f"`{name}`: {failure.explained}" for name, failure in failures.items()]
    said = f"no model answered: {'; '.join(rows)}"
    if told:
        said += f". It said: {told}"
    for name, failure in failures.items():
        if failure.does == "shrink":
            return WindowError(said, name)
    # The error's kind is that of the first model that was asked.
    kinds = [failure.kind for failure in failures.values()]
    asked = [kind for kind in kinds if kind != "breaker_open"]
    retryable = any(failure.does == "wait" for failure in failures.values())
    return ModelError(said, retryable, (asked or kinds)[0])
