"""What model calls have cost in a day and in a month (UTC), and which caps that reaches.

A `SpendRow` holds the spend of one holder: an assistant, an account, or the whole game. All values
are plain and frozen; `assistant.spend` reads, changes and stores them.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from math import copysign, inf, isfinite

from evennia_ai.history.messages import utc_iso
from evennia_ai.history.records import as_amount, as_count, as_time
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest

# A window that lies further ahead than this was made while the clock was wrong.
SET_BACK_S = 2 * 86_400.0
# Share of a cap at which staff are warned.
NEAR = 0.8
# Length of a window's label in an ISO 8601 time.
_LABELS = {"day": 10, "month": 7}
UNITS = ("tokens", "cost")
LIMITS = tuple(f"{unit}_{window}" for window in _LABELS for unit in UNITS)
# The limits of an assistant's own: the option `spend_caps`.
OWN_LIMITS = (*LIMITS, "tokens_call")
# The setting's parts and the limits that each may name.
SCOPES: Mapping[str, tuple[str, ...]] = {
    "game": LIMITS,
    "account": LIMITS,
    "call": UNITS,
    "player": ("calls_minute",),
}
# Most model calls that one ordinary player causes in a minute, by default.
CALLS_A_MINUTE = 20
# Most lines of one ordinary player that the offline model answers in a minute: it costs nothing, so
# only a flood meets this limit.
OFFLINE_A_MINUTE = 60
# What holds while the setting is not set, for models that do not run on the game's own machine.
DEFAULT: Mapping[str, Mapping[str, float]] = {"game": {"tokens_day": 2_000_000}}
# What holds while the setting cannot be read: no call that costs anything.
CLOSED: Mapping[str, Mapping[str, float]] = {"game": {"tokens_day": 0}}
# A reply shorter than this is not worth a call.
LEAST_REPLY_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Amount(Stored):
    """A sum of calls."""

    calls: int = 0  # how many
    tokens: int = 0  # of prompts and replies; tokens of texts that were embedded
    cost: float = 0.0  # US dollars; calls whose price is unknown count 0
    cached: int = 0  # prompt tokens that came out of a provider's cache, which are among the tokens
    cached_cost: float = 0.0  # what these cost, which is part of the cost
    own: int = 0  # tokens of models on the game's own machine, which are among the tokens
    unpriced: int = 0  # calls whose price is unknown, which are among the calls

    @classmethod
    def of(cls, reply: ModelReply) -> "Amount":
        """One call, as its reply says; what is no amount there counts 0."""
        tokens, cached = reply.prompt_tokens + reply.completion_tokens, reply.cached_tokens
        costs = reply.cost, reply.cached_cost
        cost, cached_cost = (max(0.0, float(as_amount(each))) for each in costs)
        counts = max(0, as_count(tokens)), cost, max(0, as_count(cached)), cached_cost
        return cls(1, *counts, unpriced=int(reply.cost is None))

    def on(self, is_own: bool) -> "Amount":
        """The amount of a model on the game's own machine, if it `is_own`."""
        return replace(self, own=self.tokens) if is_own else self

    def __add__(self, other: "Amount") -> "Amount":
        # Rounded, or adding leaves dust; a token of a cheap model costs a few millionths of a cent.
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Amount(*(round(mine + theirs, 12) for mine, theirs in pairs))


@dataclass(frozen=True, slots=True)
class Window(Stored):
    """What was spent in one day or month.

    `label` is the day or month, as ``2026-05-17`` or ``2026-05``.
    """

    label: str = ""
    spent: Amount = Amount()

    def at(self, now: float, length: int) -> "Window":
        """The window of a time: this one, or a new one once it has passed.

        A clock that is set back frees nothing. A window far ahead becomes the present one.
        """
        label, ahead = (utc_iso(as_time(at))[:length] for at in (now, now + SET_BACK_S))
        if self.label < label:
            return Window(label)
        return self if self.label <= ahead else replace(self, label=label)


@dataclass(frozen=True, slots=True)
class SpendRow(Stored):
    """What one holder has spent in the present day and month."""

    day: Window = Window()
    month: Window = Window()
    # An assistant's caps, by `OWN_LIMITS`: the option `spend_caps` may only lower them.
    limits: Mapping[str, float] = field(default_factory=dict)

    def at(self, now: float) -> "SpendRow":
        """The row at a time; windows that have passed are empty."""
        day, month = (self.window(name).at(now, length) for name, length in _LABELS.items())
        return replace(self, day=day, month=month)

    def window(self, name: str) -> Window:
        """The window ``day`` or ``month``."""
        return self.day if name == "day" else self.month

    def plus(self, amount: Amount) -> "SpendRow":
        """The row with an amount more spent."""
        day, month = (replace(each, spent=each.spent + amount) for each in (self.day, self.month))
        return replace(self, day=day, month=month)


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit of what may be spent."""

    holder: str  # whose spend it limits, in words: ``the game``, ``Aria``
    window: str  # ``day``, ``month`` or ``call``
    unit: str  # ``tokens`` or ``cost``
    limit: float
    spares_own: bool = False  # whether models on the game's own machine do not count

    def spent(self, row: SpendRow) -> float:
        """How much of it is used up."""
        spent = row.window(self.window).spent
        spared = spent.own if self.spares_own and self.unit == "tokens" else 0
        return float(getattr(spent, self.unit) - spared)

    def is_reached(self, row: SpendRow, share: float = 1.0) -> bool:
        """Whether it, or a share of it, is used up."""
        return self.spent(row) >= share * self.limit

    def shown(self, number: float) -> str:
        """A number in the cap's unit, in words."""
        return f"{number:,.0f} tokens" if self.unit == "tokens" else f"${number:,.4g}"

    def __str__(self) -> str:
        return f"{self.holder}'s spend limit of {self.shown(self.limit)} a {self.window}"

    @property
    def until(self) -> str:
        """When it ends by itself."""
        ends = {"day": "until tomorrow (UTC)", "month": "until the next month (UTC)"}
        return ends.get(self.window, "until an admin raises it")


def caps_of(
    holder: str, limits: Mapping[str, float | None], spares_own: bool = False
) -> tuple[Cap, ...]:
    """The caps of a holder from limits as ``{"tokens_day": 1000}``; None is no limit."""
    return tuple(
        Cap(holder, window, unit, limit, spares_own)
        for window in _LABELS
        for unit in UNITS
        if (limit := limits.get(f"{unit}_{window}")) is not None
    )


# US dollars for a token of a prompt, of a reply.
Price = tuple[float, float]


def likely(request: ModelRequest, price: Price | None) -> Amount:
    """What a call will cost at most if its prompt was counted well."""
    prompt, reply = request.prompt_tokens, request.max_tokens
    per_prompt, per_reply = price or (0.0, 0.0)
    return Amount(1, prompt + reply, prompt * per_prompt + reply * per_reply)


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
    return request if room == request.max_tokens else replace(request, max_tokens=room)


def read_limits(value: object) -> tuple[Mapping[str, Mapping[str, float]], tuple[str, ...]]:
    """The caps of the setting ``EVENNIA_AI_SPEND_CAPS``, and what is wrong with it.

    If anything is wrong, the caps are `CLOSED`: a cap that cannot be read must not be none.
    """
    if value is None:
        return DEFAULT, ()
    if not isinstance(value, Mapping):
        return CLOSED, (f"it is of type `{type(value).__name__}`, not a dict",)
    wrong = []
    for scope, part in value.items():
        if not (names := SCOPES.get(scope, ())):
            wrong.append(f"`{scope}` is none of {', '.join(SCOPES)}")
        elif not isinstance(part, Mapping) or not (
            set(part) <= set(names) and all(x is None or _is_limit(x) for x in part.values())
        ):
            wrong.append(f"`{scope}` takes a dict of {', '.join(names)} to numbers from 0 up")
    if wrong:
        return CLOSED, tuple(wrong)
    caps = {
        scope: {name: limit for name, limit in part.items() if limit is not None}
        for scope, part in value.items()
    }
    return caps, ()


def _is_limit(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


def lifts(before: object, after: object) -> bool:
    """Whether a change of a cap (None: no cap) lets more be spent than before."""
    if before == after or before is None:
        return False
    return after is None or float(str(after)) > float(str(before))
