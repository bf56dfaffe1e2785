"""What stands in for a memory back end that cannot be made: everything says why."""

from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from evennia_ai.errors import StoreError


class UnusableBackend:
    """A `protocol.MemoryBackend` whose every call fails with the reason; searches go on without.

    Args:
        reason: One sentence.
    """

    def __init__(self, reason: str):
        self._reason = reason

    @classmethod
    def from_settings(cls, *args: Any) -> "UnusableBackend":
        """One without a known reason."""
        return cls("There is no memory back end.")

    def _refused(self, *args: Any, **options: Any) -> "Deferred[Any]":
        return fail(StoreError(self._reason))

    add = add_extracted = extraction_prompt = search = _refused
    ids = sources = source_of = delete = _refused

    def status(self) -> "Deferred[dict[str, Any]]":
        """Fires with the reason."""
        return succeed({"ok": False, "detail": self._reason, "count": 0, "path": ""})

    def close(self) -> "Deferred[None]":
        """Nothing to release."""
        return succeed(None)
