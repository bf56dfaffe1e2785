"""What an assistant's model calls cost: the one way to a model, and the caps that bound it.

A call counts when its reply is there. What the calls that go on are likely to cost counts towards
the caps until then, so that no more than one call goes beyond a cap.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from math import inf
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, fail, inlineCallbacks, succeed
from twisted.python.failure import Failure

from evennia_ai.background import Steps
from evennia_ai.errors import SpendError
from evennia_ai.history.messages import new_id
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE, CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest
from evennia_ai.protocol import Assistant, SpendRows
from evennia_ai.sleep.compaction.due import BETTER
from evennia_ai.turns.runtime import OWN_CALLS_A_MINUTE
from evennia_ai.turns.spend_book import (
    CALLS_A_MINUTE,
    NEAR,
    OFFLINE_A_MINUTE,
    Amount,
    Cap,
    SpendRow,
    caps_of,
    fitted,
    likely,
    read_limits,
)

# The holder of the game's row, and what begins the holder of an assistant's own.
GAME, OWN = "game", "assistant "
RATE_S = 60.0
# A model whose trial found nothing is tried out again after this long.
TRIAL_AGAIN_S = 60.0
# Calls that count towards no limit of the assistant's own: answers, those of a compaction, which
# are bounded by what leaves, and those that staff ask for.
NOT_OWN = (CONTEXT_AWAKE, "tick", "summary", CONTEXT_PRE_COMPACTION)
# Bytes of a text in a token, fewest, where a text is embedded.
_EMBEDDED_BYTES = 3


class SharedSpend:
    """What all assistants of a game share: the rows, and the calls that go on.

    Args:
        store: Where the rows are kept.
        setting: Returns the setting ``EVENNIA_AI_SPEND_CAPS``.
        note: Notes a call for charts: assistant (scope), purpose, account, reply, epoch seconds.
        runs_here: Returns whether a model, by name, runs on the game's own machine.
    """

    def __init__(
        self,
        store: SpendRows,
        setting: Callable[[], object],
        note: Callable[[str, str, str, ModelReply, float], None] = lambda *call: None,
        runs_here: Callable[[str], bool] = lambda model: False,
    ):
        self.store, self.note, self.runs_here = store, note, runs_here
        # Of each call that goes on: its holders, and what it is likely to cost.
        self.calls: dict[str, tuple[frozenset[str], Amount]] = {}
        self.unpriced: set[str] = set()  # models whose last reply came without a price
        # What staff were told of caps, by holder and cap: the day or month, and how far.
        self.alerted: dict[tuple[str, Cap], tuple[str, str]] = {}
        self._setting = setting
        # When models were last tried out, by name, and those that are being tried.
        self._tried: dict[str, float] = {}
        self._trying: set[str] = set()
        self._rows: dict[str, SpendRow] = {}
        # Of the calls that each player caused lately: when, and whether of the offline model.
        self._made: dict[str, list[tuple[float, bool]]] = {}

    def limits(self, scope: str) -> Mapping[str, float]:
        """The limits of ``game``, ``account``, ``call`` or ``player``."""
        return read_limits(self._setting())[0].get(scope, {})

    def may_call(self, payer: str, now: float, is_offline: bool = False) -> bool:
        """Whether a player (`GameHandler.payer`), or nobody, may cause a call now.

        Calls of the offline model (`is_offline`) have a limit of their own, against floods.
        """
        if not payer:
            return True
        made = [offline for _, offline in self._recent(payer, now)]
        if made.count(True) >= OFFLINE_A_MINUTE:
            return False
        most = self.limits("player").get("calls_minute", CALLS_A_MINUTE)
        return is_offline or made.count(False) < most

    def note_call(self, payer: str, now: float, is_offline: bool = False) -> None:
        """Note a call; players who have caused none lately are forgotten."""
        if payer:
            self._made[payer] = [*self._recent(payer, now), (now, is_offline)]
            self._made = {who: calls for who in self._made if (calls := self._recent(who, now))}

    def drop_call(self, payer: str, at: float) -> None:
        """Forget a call of a model that gave no answer."""
        if (at, False) in self._made.get(payer, ()):
            self._made[payer].remove((at, False))

    def busy(self, now: float) -> set[str]:
        """The players who may cause no call now."""
        return {payer for payer in self._made if not self.may_call(payer, now)}

    def _recent(self, payer: str, now: float) -> list[tuple[float, bool]]:
        return [call for call in self._made.get(payer, ()) if 0 <= now - call[0] < RATE_S]

    @property
    def is_default(self) -> bool:
        """Whether the game has not set its caps: models on its own machine are spared then."""
        return self._setting() is None

    def probe(self, client: ModelClient, model: str, now: float) -> "Deferred[ModelReply]":
        """Try a model as `ModelClient.probe`, counted for the game; `SpendError` at its cap."""
        return self._for_game(client.probe, model, now)

    def try_out(self, client: ModelClient, model: str, now: float) -> None:
        """Find out in the background how a model may call tools, if that is unknown.

        It is counted for the game and under its cap. Where no answer came, or the cap is reached,
        it is tried again after a while.
        """
        is_known = model == OFFLINE_MODEL or client.facts(model).calls_tools is not None
        is_new = 0 <= now - self._tried.get(model, -inf) < TRIAL_AGAIN_S
        if is_known or is_new or model in self._trying:
            return
        self._tried[model] = now
        self._trying.add(model)
        done = self._for_game(client.trial, model, now)
        # A server that does not answer shows in the calls that matter.
        done.addErrback(lambda _: None).addCallback(lambda _: self._trying.discard(model))

    @inlineCallbacks
    def _for_game(
        self, ask: "Callable[[str], Deferred[ModelReply]]", model: str, now: float
    ) -> Steps[ModelReply]:
        """Fires with what `ask` gives for a model; that counts for the game."""
        for cap in caps_of("the game", self.limits(GAME), self.is_default):
            is_spared = cap.spares_own and self.runs_here(model)
            if not is_spared and cap.is_reached(self.row(GAME).at(now)):
                raise SpendError(f"{cap} is reached, {cap.until}")
        reply: ModelReply = yield ask(model)
        if model != OFFLINE_MODEL and reply.attempts:
            self.count([GAME], Amount.of(reply).on(self.runs_here(model)), now)
        return reply

    def count(self, holders: Iterable[str], amount: Amount, now: float) -> None:
        """Add an amount to the rows of holders, in one transaction."""
        try:
            with self.store.transaction():
                self._rows.pop(GAME, None)  # a doctor in a shell counts its call there, too
                for holder in holders:
                    self.put(holder, self.row(holder).at(now).plus(amount))
        except BaseException:
            self._rows.clear()  # they may be stored otherwise by now
            raise

    def row(self, holder: str) -> SpendRow:
        """The row of a holder, as it is stored."""
        if holder not in self._rows:
            self._rows[holder] = _read(self.store.load(holder))
        return self._rows[holder]

    def put(self, holder: str, row: SpendRow) -> None:
        """Store a row."""
        self._rows.pop(holder, None)
        self.store.save(holder, json.dumps(row.to_dict()))
        self._rows[holder] = row

    def drop(self, scope: str) -> None:
        """Delete the row of an assistant that is deleted."""
        self._rows.pop(OWN + scope, None)
        self.store.save(OWN + scope, "")


def _read(text: str) -> SpendRow:
    """A row; an empty one if it cannot be read."""
    try:
        return SpendRow.from_dict(json.loads(text or "{}"))
    except (ValueError, RecursionError):  # `Unreadable` is one
        return SpendRow()


class SpendHandler:
    """One assistant's spend, and what it shares with the others.

    A holder is the assistant itself (``""``), the game, or an account.
    """

    def __init__(self, script: Assistant, shared: SharedSpend):
        self._script, self.shared = script, shared

    def row(self, holder: str = "") -> SpendRow:
        """What a holder has spent in the present day and month."""
        stored = self.shared.row(holder or self._holder)
        row = stored.at(self._script.now())
        if row.day.label < stored.day.label or row.month.label < stored.month.label:
            self._put(holder, row)  # made while the clock was wrong
        return row

    @property
    def _holder(self) -> str:
        return OWN + self._script.scope

    @property
    def limits(self) -> Mapping[str, float]:
        """The caps that `spend_caps` may only lower; the same object until they are changed."""
        return self.shared.row(self._holder).limits

    def keep_limits(self, limits: Mapping[str, float | None]) -> None:
        """Keep caps, by `OWN_LIMITS`, out of reach of Evennia's commands; None: no cap."""
        row = self.row()
        kept = {name: cap for name, cap in {**row.limits, **limits}.items() if cap is not None}
        self._put("", replace(row, limits=kept))

    def today(self) -> dict[str, Any]:
        """``{"day", "calls", "tokens", "cost", "unpriced", ...}``: the `Amount` of today."""
        day = self.row().day
        return {"day": day.label, **asdict(day.spent)}

    def add(self, tokens: int, cost: float | None) -> None:
        """Count what was spent without a call through `complete`."""
        self._count(Amount(1, tokens, cost or 0.0, unpriced=int(cost is None)), "")

    def reached(
        self, asker: str | None = None, share: float = 1.0, models: Iterable[str] | None = None
    ) -> Cap | None:
        """The cap that lets no call be made now, of what somebody (stable id) asks; None if none.

        Without `asker` it is a call for the assistant itself. `share` is how much of a cap may be
        used up. `models` are its own, if not given.
        """
        own = self._script.model_name, *self._script.config.llm_fallback_models
        caps = self._all_caps(self._account(asker), own if models is None else models)
        return next((cap for key, cap in caps if cap.is_reached(self.row(key), share)), None)

    def _all_caps(self, account: str, models: Iterable[str] = ()) -> list[tuple[str, Cap]]:
        """The caps of a call, each with its holder, but those that spare all of the `models`."""
        is_own = bool(models) and all(map(self.shared.runs_here, models))
        caps = ((key, cap) for key in dict.fromkeys(("", GAME, account)) for cap in self.caps(key))
        return [(key, cap) for key, cap in caps if not (is_own and cap.spares_own)]

    def caps(self, holder: str = "") -> tuple[Cap, ...]:
        """The caps of a holder."""
        if not holder:
            return caps_of(self.name_of(""), self._script.config.spend_caps)
        limits = self.shared.limits(GAME if holder == GAME else "account")
        # The name of an account takes a query.
        return caps_of(self.name_of(holder), limits, self.shared.is_default) if limits else ()

    def name_of(self, holder: str) -> str:
        """Who that is, in words."""
        if not holder:
            return self._script.key
        if holder == GAME:
            return "the game"
        return f"account {self._script.game.account_name(holder)}"

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
        is_capped = any(cap.unit == "cost" for _, cap in self._all_caps(""))
        return is_capped and self._script.model_name in self.shared.unpriced

    def complete(self, request: ModelRequest, asker: str | None = None) -> "Deferred[ModelReply]":
        """Ask a model within the caps, for somebody (stable id) or for the assistant itself.

        Fires with the reply; fails as `ModelClient.complete`, and with `SpendError` at a cap or
        where a player, or the assistant itself, has caused enough calls for a while. Summaries that
        are made again wait for their turn instead.
        """
        script, now, payer = self._script, self._script.now(), self._payer(asker)
        if not self.may_answer(asker, request.model):
            return fail(SpendError("this player has caused enough calls for a while"))
        is_offline = request.model == OFFLINE_MODEL
        self.shared.note_call(payer, now, is_offline)
        if is_offline:
            return script.mind.model.complete(request)
        is_remake = script.runtime.compacting == BETTER
        if asker is not None or request.purpose in NOT_OWN and not is_remake:
            return self._counted(request, self._account(asker), payer)
        wait_s = self.own_wait_s()
        if wait_s and (not is_remake or script.state.mode == "sleep"):
            return fail(SpendError("the assistant has made enough calls for itself for a while"))
        request = self._own(request, wait_s)
        waited = script.rest(wait_s) if wait_s else succeed(None)
        return waited.addCallback(lambda _: self._paid(request, ""))

    def try_out(self) -> None:
        """Find out how the assistant's own model may call tools, as `SharedSpend.try_out`."""
        script = self._script
        if script.config.llm_api != "completion":  # a base model calls none
            self.shared.try_out(script.mind.model, script.model_name, script.now())

    def _counted(self, request: ModelRequest, account: str, payer: str) -> "Deferred[ModelReply]":
        """A paid call that counts for its payer only if the model itself gave the answer."""
        now = self._script.now()

        def replied(reply: ModelReply) -> ModelReply:
            if reply.model == OFFLINE_MODEL:  # as a fallback
                self.shared.drop_call(payer, now)
                self.shared.note_call(payer, now, is_offline=True)
            return reply

        def failed(failure: Failure) -> Failure:
            if not isinstance(failure.value, CancelledError):  # the provider may go on with it
                self.shared.drop_call(payer, now)
            return failure

        return self._paid(request, account).addCallbacks(replied, failed)

    def own_wait_s(self) -> float:
        """Seconds until the assistant may make a call for itself; 0 if it may now."""
        times = self._script.runtime.own_calls
        if len(times) < OWN_CALLS_A_MINUTE:
            return 0.0
        return max(0.0, times[0] + RATE_S - self._script.now())

    def _own(self, request: ModelRequest, wait_s: float) -> ModelRequest:
        """Note a call that the assistant makes for itself: it is tried once, at one model."""
        self._script.runtime.own_calls.append(self._script.now() + wait_s)
        return replace(request, fallback_models=(), is_own=True)

    def ahead(self, request: ModelRequest) -> "Deferred[ModelReply]":
        """Let a model of the game's own read ahead: nobody is billed, and no cap is used up."""
        if self.own_wait_s():
            return fail(SpendError("the assistant has made enough calls for itself for a while"))
        return self._script.mind.model.complete(self._own(request, 0.0))

    def may_answer(self, asker: str | None, model: str = "") -> bool:
        """Whether somebody (stable id), or nobody, may cause a call now, of a model or its own."""
        is_offline = (model or self._script.model_name) == OFFLINE_MODEL
        return self.shared.may_call(self._payer(asker), self._script.now(), is_offline)

    def _payer(self, asker: str | None) -> str:
        return self._script.game.payer(asker) if asker else ""

    def _account(self, asker: str | None) -> str:
        return self._script.game.account_id(asker) if asker else ""

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
            self._alert("", asked, asked.limit, self.row().day.label)
            raise SpendError(f"{asked} leaves no room for it")
        for key, cap in self._all_caps(account, models):
            if cap.is_reached(self.row(key)):
                self.tell_staff(account)
                raise SpendError(f"{cap} is reached, {cap.until}")
            holder = key or self._holder
            going_on = (each for holders, each in shared.calls.values() if holder in holders)
            if cap.is_reached(self.row(key).plus(sum(going_on, Amount()))):
                raise SpendError(f"calls that go on may use all that {cap} leaves")
        amount = likely(asked, price).on(all(map(shared.runs_here, models)))
        call = new_id("s")
        shared.calls[call] = (frozenset(self._keys(account)), amount)
        spent = Amount()  # a call that fails is not billed
        try:
            reply: ModelReply = yield script.mind.model.complete(asked)
            if reply.model != OFFLINE_MODEL:
                unpriced = shared.unpriced
                (unpriced.add if reply.cost is None else unpriced.discard)(request.model)
                spent = Amount.of(reply).on(shared.runs_here(reply.model))
        except CancelledError:
            spent = amount  # the provider may go on with it
            raise
        finally:
            self._settle(call, account, spent)
        shared.note(script.scope, request.purpose, account, reply, script.now())
        return reply

    def _put(self, holder: str, row: SpendRow) -> None:
        if holder or self._script.pk:  # a deleted assistant has nothing to keep
            self.shared.put(holder or self._holder, row)

    def _settle(self, call: str, account: str, amount: Amount) -> None:
        """Count what a call has cost; where that fails, the reply must not be lost with it."""
        del self.shared.calls[call]
        if amount != Amount():
            self._script.survived("counting a call", lambda: self._count(amount, account), None)

    def _count(self, amount: Amount, account: str) -> None:
        """Add an amount to the rows of all its holders."""
        self.shared.count(self._keys(account), amount, self._script.now())
        self.tell_staff(account)

    def _keys(self, account: str) -> list[str]:
        own = self._holder if self._script.pk else ""  # a deleted assistant has nothing to keep
        return list(filter(None, (own, GAME, account)))

    def tell_staff(self, account: str) -> None:
        """Alert staff of an account's caps that are reached or nearly so, once in a window each."""
        for key, cap in self._all_caps(account):
            row = self.row(key)
            self._alert(key, cap, cap.spent(row), row.window(cap.window).label)

    def _alert(self, holder: str, cap: Cap, spent: float, window: str) -> None:
        is_reached, alerted = spent >= cap.limit, self.shared.alerted
        news = window, "reached" if is_reached else "near"
        if spent < NEAR * cap.limit or alerted.get((holder or self._holder, cap)) == news:
            return
        alerted[holder or self._holder, cap] = news
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
        self.add(tokens, tokens * price[0] if price else None)
        return True
