"""OpenAI's client without its conversion of every message in a prompt.

The client tries each message against every form a message may have, to find files and dates to
convert: about 0.5 ms of Python a message, 0.3 s for a long history, at each call. It does so on
a background thread, but holds the lock the reactor waits for. This package sends plain JSON, and
`extra_body` passes it through unchanged.

Importing the client takes long: import this module on a background thread only.
"""

from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions

# What grows with the conversation and with the tools.
_LONG = ("messages", "tools")


class _Completions(AsyncCompletions):
    async def create(self, *, extra_body: Any = None, **options: Any) -> Any:
        """As OpenAI's, for messages and tools of plain JSON values."""
        long = {name: options.pop(name) for name in _LONG if name in options}
        body = {**long, **(extra_body or {})}
        return await super().create(messages=(), extra_body=body, **options)


class _Chat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class PlainClient(AsyncOpenAI):
    """A client that sends chat messages as they are."""

    @property
    def chat(self) -> AsyncChat:
        """Chat completions."""
        return _Chat(self)
