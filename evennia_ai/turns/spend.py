"""What an assistant's model calls cost: the one way to a model, and the caps that bound it.

A call counts when its reply is there. What the calls that go on are likely to cost counts towards
the caps until then, so that no more than one call goes beyond a cap.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from math import inf

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, SpendError
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE, CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelReply, ModelRequest
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.runtime import OWN_CALLS_A_MINUTE
from evennia_ai.turns.spend_book import (
    NEAR,
    RATE_S,
    Amount,
    Cap,
    Holder,
    RunningCall,
    caps_of,
    fitted,
    likely,
    span,
)

# Calls that count towards no limit of the assistant's own: answers, those of a compaction, which
# are bounded by what leaves, and those that staff ask for.
NOT_OWN = (CONTEXT_AWAKE, "tick", "summary", CONTEXT_PRE_COMPACTION)
# Bytes of a text in a token, fewest, where a text is embedded.
_EMBEDDED_BYTES = 3


class SpendHandler:
    """One assistant's spend, and what it shares with the others.

    `when_tried` is called when its model was tried out.
    """

    def __init__(self, script: Assistant, when_tried: Callable[[], Deferred[None]]):
        self._script, self.shared, self._when_tried = script, script.shared_spend, when_tried

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
        if models is None:
            models = self._script.model_name, *self._script.config.llm_fallback_models
        caps = self._all_caps(self.account(asker), models)
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
        if account and (limits := shared.limits("account")):
            # The name of an account takes a query.
            name = f"account {self._script.game.account_name(account)}"
            caps += caps_of(name, limits, shared.is_default, ("account", account))
        is_own = bool(models) and all(map(shared.runs_here, models))
        return [cap for cap in caps if not (is_own and cap.spares_own)]

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
            script.mind.model, script.model_name, script.now(), self._when_tried
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

    def read_ahead(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model for what nobody is billed, and no cap counts."""
        return self._script.mind.model.complete(self._own(request))

    def may_answer(self, asker: str | None, model: str = "") -> bool:
        """Whether somebody (stable id), or nobody, may cause a call now, of a model or its own."""
        is_offline = (model or self._script.model_name) == OFFLINE_MODEL
        return self.shared.may_call(self._payer(asker), self._script.now(), is_offline)

    def _payer(self, asker: str | None) -> str:
        if not asker:
            return ""
        return self._script.game.payer(asker)

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
        asked = fitted(request, price, shared.call_limits(script.config.spend_caps))
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
                shared.unpriced.discard(request.model)
                if reply.cost is None:
                    shared.unpriced.add(request.model)
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
        price, cost = self._script.mind.model.facts(model).price, 0.0
        if price is not None:
            cost = tokens * price[0]
        self.add(Amount(1, tokens, cost=cost, unpriced=int(price is None)), "embedding", model)
        return True
