"""What an assistant's model calls cost today, kept across restarts."""

import time
from collections.abc import Callable
from typing import Any

from evennia_ai.history.messages import SCHEMA_VERSION, utc_iso
from evennia_ai.history.records import as_amount, as_count, sound
from evennia_ai.protocol import Store

_SPENT = {"tokens": as_count, "calls": as_count, "cost": as_amount}


class SpendHandler:
    """Counts tokens, calls and money by day (UTC).

    Args:
        store: Where the script's values are kept.
        now: Clock, seconds since the epoch.
    """

    def __init__(self, store: Store, now: Callable[[], float] = time.time):
        self.store = store
        self._now = now

    def today(self) -> dict[str, Any]:
        """``{"day", "tokens", "calls", "cost"}`` of today; zeros if nothing was spent."""
        day = utc_iso(self._now())[:10]
        value = self.store.get("spend", default={})
        if isinstance(value, dict) and value.get("day") == day:
            return sound(value, _SPENT, {}) or {}
        return {"version": SCHEMA_VERSION, "day": day, "tokens": 0, "calls": 0, "cost": 0.0}

    def add(self, tokens: int, cost: float | None) -> None:
        """Count one call; calls that cost nothing are not written down."""
        if tokens <= 0 and not cost:
            return
        today = self.today()
        self.store.set(
            "spend",
            {
                **today,
                "tokens": today["tokens"] + tokens,
                "calls": today["calls"] + 1,
                "cost": round(today["cost"] + (cost or 0.0), 6),
            },
        )

    def over(self, max_tokens_day: int | None) -> bool:
        """Whether today's tokens reached the cap."""
        return max_tokens_day is not None and self.today()["tokens"] >= max_tokens_day
