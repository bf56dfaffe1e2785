"""Tool calls and their results: where a history may be cut, and what a provider takes.

A provider refuses a request that holds a result without its call or a call without its result.
Ids of calls are not unique forever: a result belongs to the nearest earlier call with its id that
has none yet.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from evennia_ai.history.messages import COMINGS, Message, call_ids, tool_calls

INTERRUPTED = '{"error": "interrupted before it was done"}'
# Key of a result's metadata: the audience whose turn the calls ended, empty if they ended none.
# The result itself may be for fewer. Older versions stored no such key.
ANSWERED = "answered"
# Key of the metadata of what a turn stored: the stable id of whom it answers. Likewise.
ASKER = "asker"
# Key of the metadata of what was passed on for somebody: the stable id of whom it was for.
FOR = "for"
# Key of a reply's metadata: the shown memories that it may repeat.
MEMORIES = "memories"
# Key of a reply's metadata: what later prompts show of it, where it repeats the ones before.
SAID_ONCE = "said_once"
# Characters of a tool's result that a summary or an extraction is made from.
RESULT_CHARS = 200


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """Names of tools by trait, which is a class attribute of `evennia_ai.turns.tools.Tool`.

    A game's own tools have traits too, so nothing else knows a tool by name.
    """

    speaks: frozenset[str] = frozenset()  # others hear the argument `text`
    to_one: frozenset[str] = frozenset()  # only the person in the argument `target` hears it
    silent: frozenset[str] = frozenset()  # does nothing, so that text beside the call is still said
    # The result consists of memories; summaries are made without it.
    recalls: frozenset[str] = frozenset()
    # The result only confirms the call, or repeats what is known already.
    tells_nothing_new: frozenset[str] = frozenset()
    extracts: frozenset[str] = frozenset()  # may be used while dreaming and before a compaction

    @classmethod
    def of(cls, tools: Mapping[str, object]) -> "ToolTraits":
        """The traits of tools by name; each tool has an attribute for each trait."""
        return cls(
            **{
                trait.name: frozenset(n for n, tool in tools.items() if getattr(tool, trait.name))
                for trait in fields(cls)
            }
        )


def pairing(messages: Sequence[Message]) -> dict[int, int]:
    """Index of each tool result to the index of its call's message; without a call left out."""
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


def said_and_done(messages: Sequence[Message], traits: ToolTraits) -> list[Message]:
    """What was said and done: the messages as a summary and an extraction read them.

    Searches of memory leave, calls and results: they repeat what was said earlier. So do arrivals
    and departures, for which nobody asks later. Other results are cut to their first
    `RESULT_CHARS` characters. What is changed has no token count.
    """
    kept: list[Message] = []
    for message in messages:
        if message.channel in COMINGS:
            continue
        if message.role == "tool":
            if message.name in traits.recalls:
                continue
            if len(message.content) > RESULT_CHARS:
                short = f"{message.content[:RESULT_CHARS]}..."
                message = replace(message, content=short, tokens=0)
        elif made := tool_calls(message):
            calls = tuple(c for c in made if c["function"]["name"] not in traits.recalls)
            if not calls and not message.content:
                continue
            if len(calls) < len(made):
                message = replace(message, tool_calls=calls, tokens=0)
        kept.append(message)
    return kept


def cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indices at which a history may be cut without parting a tool call from its results.

    Results stand right behind their calls. The indices are sorted, in 0..len(messages); both ends
    are always among them.
    """
    inner = (n for n, message in enumerate(messages) if n and message.role != "tool")
    return tuple(dict.fromkeys((0, *inner, len(messages))))


def newest_turn(messages: Sequence[Message]) -> int:
    """Index at which the newest message begins, or the newest exchange that cannot be parted."""
    return cut_points(messages)[-2:][0]


def unanswered(messages: Sequence[Message]) -> list[tuple[int, str, str]]:
    """Tool calls without a result: index of the message, id of the call, name of the tool."""
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
                missing.append((*key, call["function"]["name"]))
    return missing


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as a provider takes them: every call answered at once, no result alone.

    Results stand right behind their call; a call without one gets `INTERRUPTED`; a result
    without a call, or a second one, is left out. What is stored stays as it is.
    """
    results: dict[int, list[Message]] = {}
    for result, call in pairing(messages).items():
        results.setdefault(call, []).append(messages[result])
    for call, call_id, name in unanswered(messages):
        stand_in = Message("tool", INTERRUPTED, tool_call_id=call_id, name=name)
        results.setdefault(call, []).append(stand_in)
    said = [(message, *results.get(n, ())) for n, message in enumerate(messages)]
    return tuple(message for some in said if some[0].role != "tool" for message in some)
