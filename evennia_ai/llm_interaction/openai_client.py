"""OpenAI's client without its walk through every message of a prompt.

The client looks for files and dates to convert, trying each message against every form a message
may have, in Python: some 0.5 ms a message, 0.3 s for a long history, and as often as the model is
called. It does so on a background thread, but with the lock the reactor waits for. What this
package sends is JSON already; in `extra_body` it goes out as it is.

Imports the client, which takes long: import this on a background thread only.
"""

from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions

# What grows with the conversation and with the tools.
_LONG = ("messages", "tools")


class _Completions(AsyncCompletions):
    async def create(self, *, extra_body: Any = None, **options: Any) -> Any:  # type: ignore
        """As OpenAI's, for messages and tools of plain JSON values."""
        long = {name: options.pop(name) for name in _LONG if name in options}
        body = {**long, **(extra_body or {})}
        return await super().create(messages=(), extra_body=body, **options)


class _Chat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:  # type: ignore[override]
        return _Completions(self._client)


class PlainClient(AsyncOpenAI):
    """A client that sends chat messages as they are."""

    @property
    def chat(self) -> AsyncChat:  # type: ignore[override]
        """Chat completions."""
        return _Chat(self)
