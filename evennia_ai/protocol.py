"""What a service may use: the assistant, its body, its stores, and the mind that works for it.

Services take an `Assistant`, which is `game.parts.Assistant`, and never import Evennia;
`evennia_ai.testing.FakeAssistant` is one without a game. Everything here is called on the reactor
thread. What returns a Deferred does its work elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:  # for annotations only
    from pathlib import Path

    from twisted.internet.defer import Deferred

    from evennia_ai.background import Worker
    from evennia_ai.game.parts import Assistant as Assistant
    from evennia_ai.game.world import GameHandler as GameHandler
    from evennia_ai.llm_interaction.values import ModelFacts, ModelReply, ModelRequest
    from evennia_ai.mind.mind import MindStatus
    from evennia_ai.rag_memory.journal import JournalHandler
    from evennia_ai.rag_memory.profiles import EntityHandler
    from evennia_ai.rag_memory.recall_jobs import RecallJobs
    from evennia_ai.recall.values import Hit, Turn
else:
    Assistant = GameHandler = Any

P = ParamSpec("P")
T = TypeVar("T")


class Store(Protocol):
    """Values by key and category, copied in and out."""

    def get(self, key: str, category: str | None = None, default: object = None) -> Any:
        """A copy of a value as plain data, or the default."""

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Prepare for reading these keys."""

    def get_own(self, key: str) -> list[Any]:
        """The items of a stored list that the store wrote itself, not those put in by hand."""

    def stamp(self, key: str, category: str | None = None) -> object:
        """An object that is another one as soon as the value is replaced or changed."""

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""

    def set(self, key: str, value: object, category: str | None = None) -> None:
        """Store a value."""

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value, if it exists."""

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted."""

    def transaction(self) -> AbstractContextManager[None]:
        """A context manager: all writes inside it take effect, or none."""

    def on_commit(self, callback: Callable[[], Any]) -> None:
        """Call once the writes so far are certain: now, or after the transaction."""


class MemoryBackend(Protocol):
    """Long-term memory, found by meaning; Mem0 by default, another by `EVENNIA_AI_MEMORY_BACKEND`.

    Everything but `from_settings` returns a Deferred and works off the reactor thread; what fails
    fails with a `StoreError` of one sentence. A memory is a `Turn` with the id, time and audience
    of the journal entry it was made from. A back end may have `billed_embedder`, LiteLLM's name of
    the model that embeds texts if somebody is billed for it.
    """

    @classmethod
    def from_settings(
        cls, directory: Path, setting: Callable[[str], Any], worker: Worker | None = None
    ) -> MemoryBackend:
        """Make one; nothing slow happens before the first call.

        `directory` is the folder for derived data; files belong into a folder of their own in it.
        `setting` reads a setting of the game by its name without ``EVENNIA_AI_``. `worker` is a
        daemon thread to work on; without one the back end starts its own when needed.
        """

    def add(self, scope: str, turns: Sequence[Turn]) -> Deferred[None]:
        """Store turns; one with a known id replaces the old one."""

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> Deferred[list[Hit]]:
        """Fires with hits of the kind ``memory``, best first, only those `audience` may see."""

    def ids(self, scope: str) -> Deferred[set[str]]:
        """Fires with the ids of all turns of a scope."""

    def delete(self, scope: str, ids: Iterable[str]) -> Deferred[int]:
        """Delete turns with every copy of their text; fires with how many there were."""

    def status(self) -> Deferred[dict[str, Any]]:
        """Fires with ``{"ok", "detail", "path"}``."""

    def close(self) -> Deferred[None]:
        """Release files and locks."""


class ModelBackend(Protocol):
    """What asks models (`llm_interaction.client.ModelClient`)."""

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model; fails with `ModelError`. Cancelling the Deferred cancels the call."""

    def probe(self, model: str) -> Deferred[ModelReply]:
        """Ask a model for one word; fails with a `ModelError` of one line for people."""

    def facts(self, model: str) -> ModelFacts:
        """What is known of a model. Answers at once."""

    def forget(self, model: str) -> Deferred[None]:
        """Forget what was learned of a model; fires when it is done."""

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""

    def warm_up(self) -> Deferred[None]:
        """Load what is slow; fires when it is loaded."""


class Mind(Protocol):
    """All that computes or waits: models, long-term memory, long work on texts.

    Deferreds fire on the reactor thread. `services.mind()` is the game's; `services.use` replaces
    it or a part of it.
    """

    @property
    def model(self) -> ModelBackend:
        """Answers requests to models."""

    @property
    def memories(self) -> MemoryBackend:
        """Long-term memory of all assistants."""

    @property
    def recall(self) -> RecallJobs:
        """The recall index of all assistants."""

    def work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Call a function that computes long, and only computes; fires with its result.

        `mind.work` lists the functions that run in the mind's process, if there is one.
        """

    @property
    def down(self) -> set[str]:
        """Names of the models whose last call for a turn failed."""

    def warm_up(self, model: str) -> Deferred[None]:
        """Load what is slow; fires when it is loaded."""

    def status(self) -> MindStatus:
        """How it is."""

    def leave(self) -> None:
        """The Server restarts: let calls in flight go on where they can, and cancel none."""

    def end(self) -> None:
        """The game stops: let nothing go on after `close`."""

    def close(self) -> Deferred[None]:
        """Cancel calls and release files; fires when that is done."""


@dataclass(frozen=True, slots=True)
class Named:
    """Something here that a name may mean.

    Args:
        id: Stable id.
        names: Its name and aliases.
        is_way: Whether it leads elsewhere.
    """

    id: str
    names: tuple[str, ...]
    is_way: bool = False


class Character(Protocol):
    """What a service may use of the assistant's body; `stable_id` survives a rename."""

    key: str
    stable_id: str
    journal: JournalHandler
    entities: EntityHandler
