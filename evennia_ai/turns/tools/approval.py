"""What becomes of calls that wait for approval: staff approve or refuse them, or they expire.

The assistant learns it by a notice in its history, for those who may know of the call.
"""

from collections.abc import Collection, Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.errors import ToolError
from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant, Character
from evennia_ai.turns.tools.base import ToolContext
from evennia_ai.turns.tools.execution import Failures, execute_tool_calls
from evennia_ai.turns.tools.waiting import KEY, WaitingCall, WaitingCalls

# Characters of a result that the assistant is told.
RESULT_CHARS = 2_000


def waiting_calls(script: Assistant) -> tuple[WaitingCall, ...]:
    """The calls of an assistant that wait for an answer now, oldest first."""
    now = script.now()
    return tuple(call for call in _load(script).calls if not call.is_over(now))


@inlineCallbacks
def approve(
    script: Assistant, character: Character, number: int, by: str
) -> Generator[Deferred[Any], Any, str]:
    """Do what a waiting call asks for, in the situation of now. Call it under the turn lock.

    Locks are checked again for the assistant and for the one who asked, who must be here unless
    they paged. What forbids it is told in words, as to a model.

    Returns:
        A Deferred that fires with what came of it, or fails with `ToolError` if no such call waits.
    """
    call = _found(script, number)
    _save(script, _load(script).without([number]))  # a crash from here on must not do it twice
    script.audit("tool_approved", tool=call.tool, number=number, by=by, audience=call.known_to)
    try:
        text: str = yield _act(script, character, call)
    except BaseException:
        _note(script, call, f"Your call {call.act} was broken off. It may be done or not.")
        raise
    shown = text if len(text) <= RESULT_CHARS else f"{text[:RESULT_CHARS]}..."
    _note(script, call, f"Staff approved your call {call.act}. Its result: {shown}")
    return text


@inlineCallbacks
def _act(
    script: Assistant, character: Character, call: WaitingCall
) -> Generator[Deferred[Any], Any, str]:
    """Run a call; fires with its result."""
    if call.asker and call.channel != "page" and call.asker not in script.game.here():
        return "It was not done: the one who asked for it has left."
    ctx = ToolContext(
        script,
        character,
        call.audience,
        call.asker or None,
        call.channel,
        source_message_ids=call.sources,
    )
    made = {"id": "", "function": {"name": call.tool, "arguments": call.arguments}}
    outcome = yield execute_tool_calls(script.tools, [made], ctx, Failures(), approved=True)
    result: str = outcome.results[0].content
    return result


def refuse(script: Assistant, number: int, by: str) -> WaitingCall:
    """Drop a waiting call, under the turn lock; raises `ToolError` if no such call waits."""
    call = _found(script, number)
    script.audit("tool_not_approved", tool=call.tool, number=number, by=by, audience=call.known_to)
    _close(script, call, f"Staff refused your call {call.act}. It was not done.")
    return call


def expire(script: Assistant) -> int:
    """Drop the calls that nobody answered in time; returns how many."""
    if script.state.store.stamp(KEY) is None:
        return 0  # most assistants never had one, and every tick asks
    over = [call for call in _load(script).calls if call.is_over(script.now())]
    for call in over:
        script.audit("tool_expired", tool=call.tool, number=call.number, audience=call.known_to)
        _close(script, call, f"Nobody approved your call {call.act} in time. It was not done.")
    return len(over)


def drop_calls(script: Assistant, people: Collection[str]) -> None:
    """Drop, without a word, the calls that these people asked for (stable ids)."""
    held = _load(script)
    if gone := [call.number for call in held.calls if call.asker in people]:
        _save(script, held.without(gone))


def _load(script: Assistant) -> WaitingCalls:
    return WaitingCalls.from_stored(script.state.store.get(KEY))


def _save(script: Assistant, held: WaitingCalls) -> None:
    script.state.store.set(KEY, held.to_stored())


def _found(script: Assistant, number: int) -> WaitingCall:
    call = _load(script).get(number)
    if call is None or call.is_over(script.now()):
        raise ToolError(f"No call {number} waits for approval.")
    return call


def _close(script: Assistant, call: WaitingCall, says: str) -> None:
    """Take a call off the list and note in the history what came of it, both or neither."""
    with script.state.store.transaction():
        _save(script, _load(script).without([call.number]))
        _note(script, call, says)


def _note(script: Assistant, call: WaitingCall, says: str) -> None:
    script.history.append([Message("system", says, audience=call.known_to, channel="tool")])
