"""What an assistant's model calls cost: the one way to a model, and the caps that bound it.

A call counts when its reply is there. What the calls that go on are likely to cost counts towards
the caps until then, so that no more than one call goes beyond a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, succeed

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, SpendError
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE, CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, draft_prompt, model_request
from evennia_ai.llm_interaction.values import READ_AHEAD, ModelReply, ModelRequest, TurnRequest
from evennia_ai.turns.runtime import OWN_CALLS_A_MINUTE
from evennia_ai.turns.spend_book import (
    CALLS_A_MINUTE,
    DEFAULT,
    GAME,
    NEAR,
    OFFLINE_A_MINUTE,
    Amount,
    Cap,
    Holder,
    SpendCaps,
    SpendTable,
    caps_of,
    fitted,
    likely,
    span,
)

if TYPE_CHECKING:
    from evennia_ai.turns.assistant import Assistant

RATE_S = 60.0
# A model whose trial found nothing is tried out again after this long.
TRIAL_AGAIN_S = 60.0
# Calls that count towards no limit of the assistant's own: answers, those of a compaction, which
# are bounded by what leaves, and those that staff ask for.
NOT_OWN = (CONTEXT_AWAKE, "tick", "summary", CONTEXT_PRE_COMPACTION)
# Bytes of a text in a token, fewest, where a text is embedded.
_EMBEDDED_BYTES = 3


@dataclass(eq=False)
class RunningCall:
    """A call that goes on."""

    assistant: str  # the scope of who makes it
    account: str  # who pays besides; empty for nobody
    amount: Amount  # what it is likely to cost

    @property
    def payers(self) -> tuple[Holder, ...]:
        """Who pays for it."""
        return GAME, ("assistant", self.assistant), ("account", self.account)


@dataclass(eq=False)
class Made:
    """A call that a player caused."""

    at: float  # seconds since the epoch; -inf where no model answered, and it counts no more
    is_offline: bool  # whether the offline model answered it


class SharedSpend:
    """What all assistants of a game share: the table of spend, and the calls that go on.

    Args:
        table: Where spend is added up.
        setting: Returns the setting ``EVENNIA_AI_SPEND_CAPS``.
        runs_here: Returns whether a model, by name, runs on the game's own machine.
        hidden: Returns the account that stands this month for one that is forgotten.
    """

    def __init__(
        self,
        table: SpendTable,
        setting: Callable[[], object],
        runs_here: Callable[[str], bool] = lambda model: False,
        hidden: Callable[[str], str] = lambda account: "",
    ):
        self.table, self.runs_here = table, runs_here
        self._hidden = hidden
        self.calls: list[RunningCall] = []
        self.unpriced: set[str] = set()  # models whose last reply came without a price
        # What staff were told of caps: the first day that it counts from, and how far.
        self.alerted: dict[Cap, tuple[str, str]] = {}
        self._setting = setting
        self._day = ""  # of the newest call
        self._limits: dict[str, Mapping[str, float]] = {}  # of assistants, by scope
        self._tried: dict[str, float] = {}  # when models were last tried out; inf while they are
        self._made: dict[str, list[Made]] = {}  # the calls that each player caused lately

    def limits(self, scope: str) -> Mapping[str, float]:
        """The limits of ``game``, ``account``, ``call`` or ``player``."""
        setting = self._setting()
        caps = DEFAULT if setting is None else SpendCaps.model_validate(setting)
        limits = getattr(caps, scope)
        return {name: limit for name, limit in limits.items() if limit is not None}

    def limits_of(self, assistant: str) -> Mapping[str, float]:
        """The caps kept for an assistant (scope); the same object until they are changed."""
        if assistant not in self._limits:
            self._limits[assistant] = self.table.limits(assistant)
        return self._limits[assistant]

    def keep_limits(self, assistant: str, limits: Mapping[str, float | None]) -> None:
        """Keep caps, by `OWN_LIMITS`, out of reach of Evennia's commands; None: no cap."""
        both = {**self.limits_of(assistant), **limits}
        self.table.set_limits(assistant, {k: cap for k, cap in both.items() if cap is not None})
        self._limits.pop(assistant, None)

    def may_call(self, payer: str, now: float, is_offline: bool = False) -> bool:
        """Whether a player (`GameHandler.payer`), or nobody, may cause a call now.

        Calls of the offline model (`is_offline`) have a limit of their own, against floods.
        """
        if not payer:
            return True
        made = [call.is_offline for call in self._recent(payer, now)]
        if made.count(True) >= OFFLINE_A_MINUTE:
            return False
        most = self.limits("player").get("calls_minute", CALLS_A_MINUTE)
        return is_offline or made.count(False) < most

    def note_call(self, payer: str, now: float, is_offline: bool = False) -> Made:
        """Note a call; players who have caused none lately are forgotten."""
        made = Made(now, is_offline)
        if payer:
            self._made[payer] = [*self._recent(payer, now), made]
            self._made = {who: calls for who in self._made if (calls := self._recent(who, now))}
        return made

    def _recent(self, payer: str, now: float) -> list[Made]:
        return [call for call in self._made.get(payer, ()) if 0 <= now - call.at < RATE_S]

    @property
    def is_default(self) -> bool:
        """Whether the game has not set its caps: models on its own machine are spared then."""
        return self._setting() is None

    def probe(self, client: ModelClient, model: str, now: float) -> Deferred[ModelReply]:
        """Try a model as `ModelClient.probe`, counted for the game; `SpendError` at its cap."""
        return self._for_game("probe", client.probe, model, now)

    def try_out(
        self, client: ModelClient, model: str, now: float, then: Callable[[], Deferred[None]]
    ) -> Deferred[None] | None:
        """Find out in the background how a model may call tools, if that is unknown.

        It is counted for the game and under its cap. Where no answer came, or the cap is reached,
        it is tried again after a while. Behind it `then` is called. Fires when both are over. None
        if there is no trial.
        """
        is_known = model == OFFLINE_MODEL or client.facts(model).calls_tools is not None
        last = self._tried.get(model, -inf)
        if is_known or last == inf or 0 <= now - last < TRIAL_AGAIN_S:
            return None
        self._tried[model] = inf
        done = self._for_game("trial", client.trial, model, now)
        # A server that does not answer shows in the calls that matter.
        done.addErrback(lambda _: None).addCallback(lambda _: self._tried.update({model: now}))
        return done.addCallback(lambda _: then())

    @inlineCallbacks
    def _for_game(
        self, purpose: str, ask: Callable[[str], Deferred[ModelReply]], model: str, now: float
    ) -> Steps[ModelReply]:
        """Fires with what `ask` gives for a model; that counts for the game."""
        for cap in self.game_caps():
            is_spared = cap.spares_own and self.runs_here(model)
            if not is_spared and self.used(cap, now) >= cap.limit:
                raise SpendError(f"{cap} is reached, {cap.until}")
        reply: ModelReply = yield ask(model)
        if model != OFFLINE_MODEL and reply.attempts:
            amount = Amount.of(reply, self.runs_here(model))
            self.count(amount, now, purpose=purpose, model=model)
        return reply

    def game_caps(self) -> tuple[Cap, ...]:
        """The caps of the whole game."""
        return caps_of("the game", self.limits("game"), self.is_default)

    def count(
        self,
        amount: Amount,
        now: float,
        assistant: str = "",
        purpose: str = "",
        model: str = "",
        account: str = "",
    ) -> None:
        """Count what was spent now."""
        day, _ = span("day", now)
        self.table.note(
            amount, day=day, assistant=assistant, purpose=purpose, model=model, account=account
        )
        if self._day != day:
            self.table.tidy(day)
            self._day = day

    def spent(self, holder: Holder, window: str, now: float) -> Amount:
        """What a holder has spent in the present ``day`` or ``month``."""
        of = dict([holder]) if holder else {}
        return sum(self.table.sums("day", *span(window, now), **of).values(), Amount())

    def used(self, cap: Cap, now: float) -> float:
        """How much of a cap is used up."""
        return cap.used(self.spent(cap.holder, cap.window, now))

    def payer(self, account: str, now: float) -> str:
        """Who pays for an account: whoever stands for it, if it was forgotten this month.

        That matters where accounts have caps.
        """
        if not account or not self.limits("account"):
            return account
        hidden = self._hidden(account)
        was_forgotten = self.spent(("account", hidden), "month", now) != Amount()
        return hidden if was_forgotten else account

    def forget(self, accounts: Iterable[str]) -> None:
        """Let accounts that name nobody have spent what these did, and what goes on for them.

        Their caps count it until the month is over.
        """
        for account in accounts:
            heir = self._hidden(account)
            self.table.rename(account, heir)
            self._made.pop(account, None)
            self.alerted = {
                cap: told for cap, told in self.alerted.items() if cap.holder[1:] != (account,)
            }
            for call in self.calls:
                call.account = heir if call.account == account else call.account


class SpendHandler:
    """One assistant's spend, and what it shares with the others."""

    def __init__(self, script: Assistant, shared: SharedSpend):
        self._script, self.shared = script, shared

    @property
    def holder(self) -> Holder:
        """The assistant as one who pays."""
        return "assistant", self._script.scope

    def today(self) -> Amount:
        """What the assistant has spent today."""
        return self.shared.spent(self.holder, "day", self._script.now())

    def add(self, amount: Amount, purpose: str = "", model: str = "", account: str = "") -> None:
        """Count what was spent, and tell staff of caps that are reached."""
        script = self._script
        self.shared.count(amount, script.now(), script.scope, purpose, model, account)
        self.tell_staff(account)

    def reached(
        self, asker: str | None = None, share: float = 1.0, models: Iterable[str] | None = None
    ) -> Cap | None:
        """The cap that lets no call be made now, of what somebody (stable id) asks; None if none.

        Without `asker` it is a call for the assistant itself. `share` is how much of a cap may be
        used up. `models` are its own, if not given.
        """
        own = self._script.model_name, *self._script.config.llm_fallback_models
        caps = self._all_caps(self.account(asker), own if models is None else models)
        now = self._script.now()
        return next((c for c in caps if self.shared.used(c, now) >= share * c.limit), None)

    def caps(self) -> tuple[Cap, ...]:
        """The assistant's own caps."""
        script = self._script
        return caps_of(script.key, script.config.spend_caps, holder=self.holder)

    def _all_caps(self, account: str, models: Iterable[str] = ()) -> list[Cap]:
        """The caps of a call, but those that spare all of the `models`."""
        shared = self.shared
        caps = [*self.caps(), *shared.game_caps()]
        limits = shared.limits("account") if account else {}
        if limits:  # the name of an account takes a query
            name = f"account {self._script.game.account_name(account)}"
            caps += caps_of(name, limits, shared.is_default, ("account", account))
        is_own = bool(models) and all(map(shared.runs_here, models))
        return [cap for cap in caps if not (is_own and cap.spares_own)]

    @property
    def call_limits(self) -> dict[str, float]:
        """The limits of one call: ``tokens`` and ``cost``, as far as there are some."""
        limits = dict(self.shared.limits("call"))
        if (own := self._script.config.spend_caps.get("tokens_call")) is not None:
            limits["tokens"] = min(own, limits.get("tokens", own))
        return limits

    @property
    def is_unpriced(self) -> bool:
        """Whether caps of money do not count the assistant's model, as nobody knows its price."""
        is_capped = any(cap.unit == "cost" for cap in self._all_caps(""))
        return is_capped and self._script.model_name in self.shared.unpriced

    @inlineCallbacks
    def complete(self, request: ModelRequest, asker: str | None = None) -> Steps[ModelReply]:
        """Ask a model within the caps, for somebody (stable id) or for the assistant itself.

        Fires with the reply; fails as `ModelClient.complete`, and with `SpendError` at a cap or
        where a player, or the assistant itself, has caused enough calls for a while. A call counts
        for its player if the model itself gives the answer.
        """
        script, is_offline = self._script, request.model == OFFLINE_MODEL
        if not self.may_answer(asker, request.model):
            raise SpendError("this player has caused enough calls for a while")
        made = self.shared.note_call(self._payer(asker), script.now(), is_offline)
        reply: ModelReply
        if is_offline:
            reply = yield script.mind.model.complete(request)
            return reply
        if asker is None and request.purpose not in NOT_OWN:
            if self.own_wait_s():
                raise SpendError("the assistant has made enough calls for itself for a while")
            request = self._own(request)
        try:
            reply = yield self._paid(request, self.account(asker))
        except (ModelError, SpendError):  # if it is cancelled, the provider may go on with it
            made.at = -inf
            raise
        made.is_offline = reply.model == OFFLINE_MODEL  # as a fallback
        return reply

    def try_out(self) -> Deferred[None] | None:
        """Find out how the assistant's own model may call tools, as `SharedSpend.try_out`.

        Then the model reads its prompt ahead, if it runs on the game's machine.
        """
        script = self._script
        if script.config.llm_api == "completion":  # a base model calls none
            return None
        return self.shared.try_out(
            script.mind.model, script.model_name, script.now(), self.read_ahead
        )

    def own_wait_s(self) -> float:
        """Seconds until the assistant may make a call for itself; 0 if it may now."""
        times = self._script.runtime.own_calls
        if len(times) < OWN_CALLS_A_MINUTE:
            return 0.0
        return max(0.0, times[0] + RATE_S - self._script.now())

    def _own(self, request: ModelRequest) -> ModelRequest:
        """Note a call that the assistant makes for itself: it is tried once, at one model."""
        self._script.runtime.own_calls.append(self._script.now())
        return replace(request, fallback_models=(), is_own=True)

    def read_ahead(self, asker: str = "") -> Deferred[None]:
        """Let its model read what an answer to somebody (stable id) will begin with, if it is ours.

        A model on the game's machine may read a prompt for a minute. Its server keeps what it has
        read, so that a later prompt that begins in the same way is read in a moment. Nothing is
        said or learned, nobody is billed, and no cap is used up. Fires when it is over, whatever
        came of it.
        """
        script = self._script
        is_own = script.enabled and script.mind.model.facts(script.model_name).own
        if not is_own or script.limits().only_talks or self.own_wait_s():
            return succeed(None)
        prompt = draft_prompt(script, TurnRequest(asker=asker))
        request = model_request(script, prompt, READ_AHEAD, max_tokens=1)
        script.log(f"{script.model_name} reads {request.prompt_tokens:,} tokens ahead")
        return script.mind.model.complete(self._own(request)).addCallbacks(
            lambda reply: script.log(
                f"{script.model_name} has read ahead in {reply.seconds:.1f} s"
            ),
            lambda failure: script.log(f"reading ahead: {failure.getErrorMessage()}"),
        )

    def may_answer(self, asker: str | None, model: str = "") -> bool:
        """Whether somebody (stable id), or nobody, may cause a call now, of a model or its own."""
        is_offline = (model or self._script.model_name) == OFFLINE_MODEL
        return self.shared.may_call(self._payer(asker), self._script.now(), is_offline)

    def _payer(self, asker: str | None) -> str:
        return self._script.game.payer(asker) if asker else ""

    def account(self, asker: str | None) -> str:
        """The account that pays for what somebody (stable id) asks; empty for nobody."""
        if not asker:
            return ""
        return self.shared.payer(self._script.game.account_id(asker), self._script.now())

    @inlineCallbacks
    def _paid(self, request: ModelRequest, account: str) -> Steps[ModelReply]:
        script, shared = self._script, self.shared
        self.try_out()
        models = request.model, *request.fallback_models
        facts = (script.mind.model.facts(model) for model in models if model != OFFLINE_MODEL)
        # The highest known price among the models that may answer.
        prices = [each.price for each in facts if each.price]
        price = (max(p[0] for p in prices), max(p[1] for p in prices)) if prices else None
        asked = fitted(request, price, self.call_limits)
        if isinstance(asked, Cap):
            self._alert(asked, asked.limit)
            raise SpendError(f"{asked} leaves no room for it")
        for cap in self._all_caps(account, models):
            used = shared.used(cap, script.now())
            if used >= cap.limit:
                self.tell_staff(account)
                raise SpendError(f"{cap} is reached, {cap.until}")
            going_on = (call.amount for call in shared.calls if cap.holder in call.payers)
            if used + cap.used(sum(going_on, Amount())) >= cap.limit:
                raise SpendError(f"calls that go on may use all that {cap} leaves")
        amount = likely(asked, price, is_own=all(map(shared.runs_here, models)))
        call = RunningCall(script.scope, account, amount)
        shared.calls.append(call)
        spent, model = Amount(), request.model  # a call that fails is not billed
        try:
            reply: ModelReply = yield script.mind.model.complete(asked)
            if reply.model != OFFLINE_MODEL:
                unpriced = shared.unpriced
                (unpriced.add if reply.cost is None else unpriced.discard)(request.model)
                spent, model = Amount.of(reply, shared.runs_here(reply.model)), reply.model
        except CancelledError:
            spent = amount  # the provider may go on with it
            raise
        finally:
            shared.calls.remove(call)
            # `account` may be forgotten meanwhile. Where it fails, the reply must not be lost.
            count = partial(self.add, spent, request.purpose, model, call.account)
            if spent != Amount():
                script.survived("counting a call", count, None)
        return reply

    def tell_staff(self, account: str) -> None:
        """Alert staff of caps of a call that are reached or nearly so, once in a window each."""
        for cap in self._all_caps(account):
            self._alert(cap, self.shared.used(cap, self._script.now()))

    def _alert(self, cap: Cap, spent: float) -> None:
        is_reached, alerted = spent >= cap.limit, self.shared.alerted
        news = span(cap.window, self._script.now())[0], "reached" if is_reached else "near"
        if spent < NEAR * cap.limit or alerted.get(cap) == news:
            return
        alerted[cap] = news
        self._script.audit("spend limit", cap=str(cap), spent=spent, limit=cap.limit)
        if is_reached:
            self._script.alert(f"{cap} is reached: no replies {cap.until}")
        else:
            share = f"{cap.shown(spent)} ({spent / cap.limit:.0%})"
            self._script.alert(f"{share} of {cap} are spent")

    def may_embed(self, texts: Iterable[str]) -> bool:
        """Whether texts may be embedded now; if a model is billed for it, counts them as spent.

        False at a cap.
        """
        model = getattr(self._script.mind.memories, "billed_embedder", "")
        if not model:
            return True
        if self.reached(models=()) is not None:
            self.tell_staff("")
            return False
        tokens = sum(len(text.encode()) for text in texts) // _EMBEDDED_BYTES
        price = self._script.mind.model.facts(model).price
        cost = tokens * price[0] if price else 0.0
        self.add(Amount(1, tokens, cost=cost, unpriced=int(price is None)), "embedding", model)
        return True
