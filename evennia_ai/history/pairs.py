"""Tool calls and their results: where a history may be cut, and how to mend one that was.

A provider refuses a request that holds a result without its call or a call without its result.
Ids of calls are not unique for ever, so that a result belongs to the nearest earlier call with
its id that has none yet.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from evennia_ai.history.messages import Message, call_ids, tool_calls

INTERRUPTED = '{"error": "interrupted before it was done"}'
# Key of a result's metadata under which the audience stands whose turn the calls ended, an empty
# text where they ended none. The result itself may be for fewer. Older versions stored no such key.
ANSWERED = "answered"


def pairing(messages: Sequence[Message]) -> dict[int, int]:
    """Which assistant message each tool result answers.

    Returns:
        Index of a result to index of its call's message. Results without a call are left out.
    """
    waiting: dict[str, list[int]] = {}
    pairs: dict[int, int] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
            for call_id in call_ids(message):
                waiting.setdefault(call_id, []).append(index)
        elif message.role == "tool":
            callers = waiting.get(message.tool_call_id)
            if callers:
                pairs[index] = callers.pop()
    return pairs


def cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indices at which a history may be cut without parting a tool call from its result.

    Args:
        messages: Messages, oldest first.

    Returns:
        Sorted indices in 0..len(messages); both ends are always among them.
    """
    forbidden = [0] * (len(messages) + 2)
    for result, call in pairing(messages).items():
        forbidden[call + 1] += 1
        forbidden[result + 1] -= 1
    points, depth = [], 0
    for index in range(len(messages) + 1):
        depth += forbidden[index]
        if depth == 0:
            points.append(index)
    return tuple(points)


def newest_turn(messages: Sequence[Message]) -> int:
    """Index at which the newest message begins, or the newest exchange that cannot be parted."""
    return cut_points(messages)[-2:][0]


def unanswered(messages: Sequence[Message]) -> list[tuple[int, str, str]]:
    """Tool calls without a result.

    Returns:
        For each: index of the assistant message, id of the call, name of the tool.
    """
    answers = Counter(
        (call, messages[result].tool_call_id) for result, call in pairing(messages).items()
    )
    missing = []
    for index, message in enumerate(messages):
        for call in tool_calls(message):
            key = (index, str(call.get("id", "")))
            # An id may stand twice in one message: each of its calls needs a result.
            if answers[key] > 0:
                answers[key] -= 1
            else:
                function = call.get("function")
                name = function.get("name") if isinstance(function, Mapping) else function
                missing.append((*key, str(name or "")))
    return missing


def answered(
    messages: Sequence[Message], results: Sequence[tuple[int, Message]]
) -> tuple[Message, ...]:
    """The messages with late results put in behind their calls and what answers those already.

    Args:
        messages: Messages, oldest first.
        results: Each result with the index of its call's message.
    """
    last = {call: result for result, call in pairing(messages).items()}
    late: dict[int, list[Message]] = {}
    for call, result in results:
        late.setdefault(last.get(call, call) + 1, []).append(result)
    ordered: list[Message] = []
    for place, message in enumerate(messages):
        ordered += [*late.get(place, ()), message]
    return (*ordered, *late.get(len(messages), ()))


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as a provider takes them: every call answered at once, no result alone.

    Results stand right behind their call; a call without one gets `INTERRUPTED`; a result
    without a call, or a second one, is left out. What is stored stays as it is.
    """
    pairs = pairing(messages)
    results: dict[int, list[int]] = {}
    for result, call in pairs.items():
        results.setdefault(call, []).append(result)
    missing: dict[int, list[Message]] = {}
    for index, call_id, name in unanswered(messages):
        stand_in = Message("tool", INTERRUPTED, tool_call_id=call_id, name=name)
        missing.setdefault(index, []).append(stand_in)
    ordered: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        ordered.append(message)
        ordered.extend(messages[result] for result in results.get(index, ()))
        ordered.extend(missing.get(index, ()))
    return tuple(ordered)
