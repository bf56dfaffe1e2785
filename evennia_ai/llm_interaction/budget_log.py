"""The log of token budgets: one event for each request to a model.

The newest events are in memory and are saved together from time to time, so that a turn writes
nothing more to the database. The audit log has a line for each answered request.
"""

from collections import deque
from collections.abc import Collection

from evennia_ai.history.audience import members
from evennia_ai.history.records import as_dict, as_list
from evennia_ai.history.stored import each_readable
from evennia_ai.llm_interaction.budget import BudgetEvent
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.protocol import Store

KEY = "token_budgets"
EVENTS_KEPT = 50
# A crash loses the events since the last save.
SAVED_EVERY = 10


class BudgetLog:
    """The newest budgets of one assistant.

    Args:
        store: Where they are saved.
        kept: The events in memory, oldest first; filled from the store if it is empty.
    """

    def __init__(self, store: Store, kept: "deque[BudgetEvent]"):
        self._store, self._kept, self._unsaved = store, kept, 0
        if not kept:
            saved = as_list(as_dict(store.get(KEY)).get("events"))
            kept.extend(each_readable(saved, BudgetEvent.from_dict, []))

    def note(self, event: BudgetEvent) -> BudgetEvent:
        """Log an event; returns it."""
        self._kept.append(event)
        self._unsaved += 1
        if self._unsaved >= SAVED_EVERY:
            self.save()
        return event

    def answered(self, event: BudgetEvent, reply: ModelReply) -> BudgetEvent:
        """Add the figures of the reply to a logged event; returns it as it is now."""
        full = event.answered(reply)
        for place, known in enumerate(self._kept):
            if known is event:
                self._kept[place] = full
        return full

    def events(self) -> tuple[BudgetEvent, ...]:
        """The logged events, oldest first."""
        return tuple(self._kept)

    def forget(self, people: Collection[str]) -> None:
        """Drop the events of private talk with these people (stable ids)."""
        left = [event for event in self._kept if members(event.audience).isdisjoint(people)]
        if len(left) < len(self._kept):
            self._kept.clear()
            self._kept.extend(left)
            self._unsaved += 1
            self.save()

    def save(self) -> None:
        """Save the events that are in memory."""
        if self._unsaved:
            events = [event.to_dict() for event in self._kept]
            self._store.set(KEY, {"events": events})
            self._unsaved = 0
