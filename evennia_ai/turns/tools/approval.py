"""Calls that wait for approval: staff approve or refuse them, or they expire.

The assistant learns it by a notice in its history, for those who may know of the call.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ToolError
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.execution import execute_tool_calls
from evennia_ai.turns.tools.waiting import WaitingCall

# Characters of a result that the assistant is told.
RESULT_CHARS = 2_000


class Approvals:
    """The calls of one assistant that wait."""

    def __init__(self, assistant: Assistant):
        self._assistant, self._state = assistant, assistant.state

    def waiting(self) -> tuple[WaitingCall, ...]:
        """Those that wait for an answer now, oldest first."""
        now = self._assistant.now()
        return tuple(call for call in self._state.waiting.calls if not call.is_over(now))

    def ask(
        self, tool: Tool, raw: object, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> WaitingCall:
        """Let a call wait and tell staff; `raw` are its arguments as the model wrote them."""
        known_to = ctx.audience
        if tool.to_one and known_to == PUBLIC:
            person = ctx.game.addressee(str(arguments.get("target") or ""))
            known_to = private([person["id"]]) if person else known_to
        heard = (m for m in ctx.seen.newest() if ctx.asker and m.speaker_id == ctx.asker)
        new = WaitingCall(
            number=1,
            tool=tool.name,
            arguments=raw if isinstance(raw, str) else json.dumps(raw or {}, default=str),
            asker=ctx.asker or "",
            asker_name=next((message.speaker_name for message in heard), ""),
            audience=ctx.audience,
            known_to=known_to,
            channel=ctx.channel,
            at=self._assistant.now(),
            sources=ctx.source_message_ids,
        )
        self._state.waiting = calls = self._state.waiting.with_call(new)
        call, key = calls.calls[-1], ctx.character.key
        self._audit("waits", call)
        self._assistant.tell_controllers(
            f"{key} waits for your approval: {call.line}. Type: ai/approve {key} = {call.number} "
            f"or ai/refuse {key} = {call.number}",
            known_to,
        )
        return call

    @inlineCallbacks
    def approve(self, number: int, by: str) -> Steps[str]:
        """Do what a waiting call asks for, in the situation of now. Call it under the turn lock.

        Locks are checked again for the assistant and for the one who asked, who must be here unless
        they paged. What forbids it is told in words, as to a model.

        Returns:
            A Deferred that fires with what came of it, or fails with `ToolError` if no such call
            waits.
        """
        call = self._called(number)
        self._drop([call])  # a crash from here on must not do it twice
        self._audit("approved", call, by=by)
        script, text = self._assistant, "It was not done: the one who asked for it has left."
        ctx = ToolContext(
            script,
            call.audience,
            call.asker or None,
            call.channel,
            source_message_ids=call.sources,
            approved=True,
        )
        made = {"id": "", "function": {"name": call.tool, "arguments": call.arguments}}
        try:
            if not call.asker or call.channel == "page" or call.asker in script.game.here():
                outcome = yield execute_tool_calls([made], ctx)
                text = outcome.results[0].content
        except BaseException:
            self._note(call, f"Your call {call.act} was broken off. It may be done or not.")
            raise
        shown = text if len(text) <= RESULT_CHARS else f"{text[:RESULT_CHARS]}..."
        self._note(call, f"Staff approved your call {call.act}. Its result: {shown}")
        return text

    def refuse(self, number: int, by: str) -> WaitingCall:
        """Drop a waiting call, under the turn lock; raises `ToolError` if no such call waits."""
        call = self._called(number)
        self._audit("not_approved", call, by=by)
        self._close(call, f"Staff refused your call {call.act}. It was not done.")
        return call

    def expire(self) -> None:
        """Drop the calls that nobody answered in time."""
        for call in self._state.waiting.calls:
            if call.is_over(self._assistant.now()):
                self._audit("expired", call)
                self._close(call, f"Nobody approved your call {call.act} in time. It was not done.")

    def drop(self, people: Collection[str]) -> None:
        """Drop, without a word, the calls that these people asked for (stable ids)."""
        self._drop([call for call in self._state.waiting.calls if call.asker in people])

    def _drop(self, calls: Collection[WaitingCall]) -> None:
        self._state.waiting = self._state.waiting.without([call.number for call in calls])

    def _called(self, number: int) -> WaitingCall:
        for call in self.waiting():
            if call.number == number:
                return call
        raise ToolError(f"No call {number} waits for approval.")

    def _audit(self, what: str, call: WaitingCall, **more: str) -> None:
        facts = {"tool": call.tool, "number": call.number, "audience": call.known_to}
        self._assistant.audit(f"tool_{what}", **facts, **more)

    def _close(self, call: WaitingCall, says: str) -> None:
        """Take a call off the list and note in the history what came of it, both or neither."""
        with self._assistant.store.transaction():
            self._drop([call])
            self._note(call, says)

    def _note(self, call: WaitingCall, says: str) -> None:
        notice = Message("system", says, audience=call.known_to, channel="tool")
        self._assistant.history.append([notice])
