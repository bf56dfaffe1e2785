"""What long-term memory must be able to do, whoever does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from evennia_ai.recall.values import Hit, Turn

if TYPE_CHECKING:  # for annotations only
    from pathlib import Path

    from twisted.internet.defer import Deferred


class MemoryBackend(Protocol):
    """Long-term memory, found by meaning; Mem0 by default, another by `EVENNIA_AI_MEMORY_BACKEND`.

    Everything but `from_settings` returns a Deferred and works off the reactor thread; a failure
    is a `StoreError` of one sentence. A memory is a `Turn` with the id, time and audience
    of the journal entry it was made from. A back end may have `billed_embedder`, LiteLLM's name of
    the model that embeds texts if somebody is billed for it.
    """

    @classmethod
    def from_settings(cls, directory: Path, setting: Callable[[str], Any]) -> MemoryBackend:
        """Make one; nothing slow happens before the first call.

        `directory` is the folder for derived data; files belong into a folder of their own in it.
        `setting` reads a setting of the game by its name without ``EVENNIA_AI_``.
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
