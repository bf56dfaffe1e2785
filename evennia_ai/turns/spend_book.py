"""What model calls cost a game, and the caps on that in a day and in a month (UTC).

A `SpendTable` adds the amounts up; `SharedSpend` is what all assistants share.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import date, timedelta
from math import copysign, inf
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import SpendError
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.stored import as_amount, as_count, as_time
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.values import (
    OFFLINE_MODEL,
    PROBE,
    ModelReply,
    ModelRequest,
    probe_request,
)
from evennia_ai.options import UNITS, WINDOWS

# Of a limit by the minute.
RATE_S = 60.0
# A model whose trial found nothing is tried out again after this long.
TRIAL_AGAIN_S = 60.0
# What was spent further ahead than this was noted while the clock was wrong.
SET_BACK_S = 2 * 86_400.0
# Share of a cap at which staff are warned.
NEAR = 0.8
# What spend can be added up by, and for how many days it is kept.
SPEND_BY, KEPT_DAYS = ("day", "assistant", "purpose", "model", "account"), 400
# What begins an account that stands for a guest of one day, and for somebody who is forgotten until
# the month is over.
GUEST, FORGOTTEN = "guest ", "forgotten "
# Most model calls that one ordinary player causes in a minute, by default.
CALLS_A_MINUTE = 20
# Most lines of one ordinary player that the offline model answers in a minute: it costs nothing, so
# only a flood meets this limit.
OFFLINE_A_MINUTE = 60
# A reply shorter than this is not worth a call.
LEAST_REPLY_TOKENS = 16


_Bound = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)] | None
_Limits = dict[Literal["tokens_day", "cost_day", "tokens_month", "cost_month"], _Bound]


class SpendCaps(BaseModel):
    """The setting ``EVENNIA_AI_SPEND_CAPS``: its parts, and the limits that each may name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    game: _Limits = {}
    account: _Limits = {}
    call: dict[Literal["tokens", "cost"], _Bound] = {}
    player: dict[Literal["calls_minute"], _Bound] = {}


# What holds while the setting is not set, for models that do not run on the game's own machine.
DEFAULT = SpendCaps(game={"tokens_day": 2_000_000})
# What holds while the setting cannot be read: no call that costs anything.
CLOSED = SpendCaps(game={"tokens_day": 0})


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of calls."""

    calls: int = 0  # how many
    prompt: int = 0  # tokens of prompts, and of texts that were embedded
    reply: int = 0  # tokens of replies
    cached: int = 0  # tokens of prompts that came out of a provider's cache
    own: int = 0  # tokens of models on the game's own machine
    cost: float = 0.0  # US dollars; calls whose price is unknown count 0
    unpriced: int = 0  # calls whose price is unknown

    @classmethod
    def of(cls, reply: ModelReply, is_own: bool = False) -> "Amount":
        """One call, as its reply says, of a model on the game's own machine if it `is_own`.

        What is no amount there counts 0.
        """
        prompt, answer, cached = (
            max(0, as_count(tokens))
            for tokens in (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
        )
        own = int(is_own) * (prompt + answer)
        cost = max(0.0, float(as_amount(reply.cost)))
        return cls(1, prompt, answer, cached, own, cost, int(reply.cost is None))

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt + self.reply

    def __add__(self, other: "Amount") -> "Amount":
        # Rounded, or adding leaves dust; a token of a cheap model costs a few millionths of a cent.
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Amount(*(round(mine + theirs, 12) for mine, theirs in pairs))


class SpendTable(Protocol):
    """Amounts by day (UTC), assistant, purpose, model and account (`SPEND_BY`)."""

    def note(self, amount: Amount, **of: str) -> None:
        """Add an amount to the row of a day, assistant, purpose, model and account."""

    def sums(self, by: str, since: str, until: str = ..., **of: str) -> dict[str, Amount]:
        """What was spent from one day to another by what `of` names, added up by a column."""

    def rename(self, account: str, heir: str) -> None:
        """Let another account, or nobody, have spent what an account did."""

    def tidy(self, day: str) -> None:
        """Drop what is too old, and who stands for somebody in a day or month that is over."""

    def limits(self, assistant: str) -> dict[str, float]:
        """An assistant's caps, by `OWN_LIMITS`, which the option `spend_caps` may only lower."""

    def set_limits(self, assistant: str, limits: Mapping[str, float]) -> None:
        """Store them; none at all if they are empty."""


def oldest_day(day: str) -> str:
    """The oldest day that is kept on a day."""
    return str(date.fromisoformat(day) - timedelta(KEPT_DAYS))


def span(window: str, now: float) -> tuple[str, str]:
    """The first and the last day that count to the present ``day`` or ``month``.

    A clock that is set back a little frees nothing.
    """
    first, ahead = (utc_iso(as_time(at))[:10] for at in (now, now + SET_BACK_S))
    if window == "month":
        first = f"{first[:7]}-01"
    return first, ahead


# Who pays: an ``assistant`` or an ``account``, and which; or the whole game.
Holder = tuple[str, str] | tuple[()]
GAME: Holder = ()


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit of what may be spent."""

    name: str  # whose spend it limits, in words: ``the game``, ``Aria``
    window: str  # ``day``, ``month`` or ``call``
    unit: str  # ``tokens`` or ``cost``
    limit: float
    spares_own: bool = False  # whether models on the game's own machine do not count
    holder: Holder = GAME  # whose spend it limits

    def used(self, spent: Amount) -> float:
        """How much of it an amount uses up."""
        used = float(getattr(spent, self.unit))
        if self.spares_own and self.unit == "tokens":
            used -= spent.own
        return used

    def shown(self, number: float) -> str:
        """A number in the cap's unit, in words."""
        if self.unit == "tokens":
            return f"{number:,.0f} tokens"
        return f"${number:,.4g}"

    def __str__(self) -> str:
        return f"{self.name}'s spend limit of {self.shown(self.limit)} a {self.window}"

    @property
    def until(self) -> str:
        """When it ends by itself."""
        ends = {"day": "until tomorrow (UTC)", "month": "until the next month (UTC)"}
        return ends.get(self.window, "until an admin raises it")


def caps_of(
    name: str,
    limits: Mapping[str, float | None],
    spares_own: bool = False,
    holder: Holder = GAME,
) -> tuple[Cap, ...]:
    """The caps of a holder from limits as ``{"tokens_day": 1000}``; None is no limit."""
    return tuple(
        Cap(name, window, unit, limit, spares_own, holder)
        for window in WINDOWS
        for unit in UNITS
        if (limit := limits.get(f"{unit}_{window}")) is not None
    )


# US dollars for a token of a prompt, of a reply.
Price = tuple[float, float]


def likely(request: ModelRequest, price: Price | None, is_own: bool = False) -> Amount:
    """What a call will cost at most if its prompt was counted well; `is_own` as of `Amount.of`."""
    prompt, reply = request.prompt_tokens, request.max_tokens
    per_prompt, per_reply = price or (0.0, 0.0)
    own = int(is_own) * (prompt + reply)
    return Amount(1, prompt, reply, own=own, cost=prompt * per_prompt + reply * per_reply)


def fitted(
    request: ModelRequest, price: Price | None, limits: Mapping[str, float | None]
) -> ModelRequest | Cap:
    """A request whose reply is as long as the caps of a call allow; the cap if none is possible.

    Args:
        request: As it would be made without caps.
        price: Of its model; a cap of money does nothing where it is unknown.
        limits: ``tokens`` and ``cost`` of a call, as far as there are caps.
    """
    prompt, room = request.prompt_tokens, request.max_tokens
    least = min(LEAST_REPLY_TOKENS, room)
    for unit, limit in limits.items():
        rates = price if unit == "cost" else (1.0, 1.0)
        if limit is None or rates is None:
            continue
        left = limit - prompt * rates[0]
        most = left / rates[1] if rates[1] else copysign(inf, left)
        if most < least:
            return Cap("the call", "call", unit, limit)
        room = int(min(room, most))
    return replace(request, max_tokens=room)


def lifts(before: object, after: object) -> bool:
    """Whether a change of a cap (None: no cap) lets more be spent than before."""
    if before == after or before is None:
        return False
    return after is None or float(str(after)) > float(str(before))


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
        caps = DEFAULT
        if setting is not None:
            caps = SpendCaps.model_validate(setting)
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

    def call_limits(self, own: Mapping[str, float | None]) -> dict[str, float]:
        """The limits of one call: ``tokens`` and ``cost``, as far as there are some.

        An assistant may have an `own` one, ``tokens_call``.
        """
        limits = dict(self.limits("call"))
        if (tokens := own.get("tokens_call")) is not None:
            limits["tokens"] = min(tokens, limits.get("tokens", tokens))
        return limits

    @property
    def is_default(self) -> bool:
        """Whether the game has not set its caps: models on its own machine are spared then."""
        return self._setting() is None

    def probe(self, client: ModelClient, model: str, now: float) -> Deferred[ModelReply]:
        """Ask a model for one word, counted for the game; `SpendError` at its cap."""
        return self._for_game(PROBE, lambda name: client.complete(probe_request(name)), model, now)

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
        of: dict[str, str] = {}
        if holder:
            of[holder[0]] = holder[1]
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
        if self.spent(("account", hidden), "month", now) != Amount():  # it was forgotten
            return hidden
        return account

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
                if call.account == account:
                    call.account = heir
