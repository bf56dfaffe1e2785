"""Why an assistant said something: what a reply rests on.

Plain text, for the command `ai/why` and for the page of the same name.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.game.lore import lore
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.budget import PromptLog, ReplyTrace
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.staff.show import audience_mark, counted, cuts, moment, phrase, price, short

BEGINNING_CHARS = 60
# Names of the tools that say something.
Speaks = Collection[str]


@inlineCallbacks
def newest_lines(
    seen: Seen, fits: Callable[[Message], bool], most: int, before: str = ""
) -> Steps[list[Message]]:
    """Fires with the newest lines that fit, of the history and the archive; reads with pauses.

    With the id `before` only those before that line.
    """
    found = list[Message]()
    for stretch in seen.stretches():
        if before:  # it is still to come
            ids = [message.id for message in stretch]
            if before not in ids:
                continue
            stretch, before = stretch[ids.index(before) + 1 :], ""
        found += filter(fits, stretch)
        if len(found) >= most:
            break
        yield pause()
    return found[:most]


def explanation(message: Message, seen: Seen, speaks: Speaks) -> list[str]:
    """What a reply rests on, as far as a viewer may see it, in lines of plain text.

    One sentence first; then each source after its id in brackets. `speaks` are the names of the
    tools that say something.
    """
    trace = ReplyTrace.of(message)
    if trace is None:
        return ["This reply has no trace that can be read."]
    to, model, calls = "spoke unasked", trace.budget.model, counted(trace.calls, "call")
    for asked in seen.by_ids(trace.answers)[-1:]:
        to = f"answered {asked.speaker_name}, “{short(spoken(asked, speaks), BEGINNING_CHARS)}”"
    memories = len({*trace.given, *trace.found, *trace.opened})
    rests = "no memory"
    if memories:
        rests = counted(memories, "memory")
    lines = [f"It {to}, with {rests}, by {model} in {calls}."]
    lines += [f"Prompt: {trace.budget}", *cuts(trace.budget)]
    lists: dict[str, Mapping[str, float | None]] = {
        "It answers:": dict.fromkeys(trace.answers),
        "Memories in its prompt:": trace.given,
        "Memories found by its searches:": trace.found,
        "Memories it read in full:": dict.fromkeys(trace.opened),
    }
    for what, scores in lists.items():
        if scores:
            lines += [what, *_sources(scores, seen, speaks)]
    lines += [f"Its model wrote no answer and was asked again: {fault}" for fault in trace.faults]
    if trace.moderated:
        lines.append("Moderation replaced or refused part of what its model wrote.")
    tools = [*trace.tools, *(call["function"]["name"] for call in message.tool_calls)]
    cached = phrase(" ({:,} cached)", trace.cached_tokens)
    tokens = f"{trace.prompt_tokens:,} tokens in{cached}, {trace.completion_tokens:,} out"
    return [
        *lines,
        f"Tools called: {', '.join(tools) or 'none'}",
        f"Model: {model}",
        f"Cost: {calls}, {tokens}, {price(trace.cost)}",
    ]


def whole_prompt(message: Message, log: PromptLog) -> list[tuple[str, str]]:
    """Who each part of a reply's prompt is of, and its text; empty for all but the newest.

    A part is a message, or a tool that the prompt offers.
    """
    trace, parts = ReplyTrace.of(message), list[tuple[str, str]]()
    for part in dict(log.newest).get(trace.budget.at, ()) if trace else ():
        if "function" in part:
            parts.append(("tool", json.dumps(part["function"], ensure_ascii=False)))
            continue
        text = str(part.get("content") or "")
        if calls := part.get("tool_calls"):
            text += json.dumps(calls, ensure_ascii=False)
        parts.append((str(part["role"]), text))
    return parts


def holds(text: str, words: str) -> bool:
    """Whether a text holds these words in this order, in any case."""
    words, text = (" ".join(each.casefold().split()) for each in (words, text))
    return words in text


def spoken(message: Message, speaks: Speaks) -> str:
    """The text of a message, with what its calls say, of the tools that `speaks` names."""
    calls = (call["function"] for call in message.tool_calls)
    said = (spoken_text(call) for call in calls if call["name"] in speaks)
    return " ".join([message.content, *said])


def is_reply(message: Message, speaks: Speaks) -> bool:
    """Whether the assistant spoke in a message."""
    return message.role == "assistant" and bool(spoken(message, speaks).strip())


def _sources(scores: Mapping[str, float | None], seen: Seen, speaks: Speaks) -> Iterator[str]:
    """What ids stand for, in lines: id, score, when, whose, and the beginning of it."""
    messages = {message.id: message for message in seen.by_ids(scores)}
    for each, score in scores.items():
        rated = "" if score is None else f"score {score:.3f} "
        if message := messages.get(each):
            who, text = message.speaker_name or message.role, spoken(message, speaks)
            shown = _source(message.created_at, message.audience, who, text)
        else:
            shown = _derived(seen, each) or "not for you to see, or no longer stored"
        yield f"  ({each}) {rated}{shown}"


def _source(at: str, audience: str, who: str, text: str) -> str:
    return f"{moment(at)} {audience_mark(audience)}{who}: {short(text, BEGINNING_CHARS)}"


def _derived(seen: Seen, wanted: str) -> str:
    """What an id stands for that is no message's; empty for nothing that the viewer may see."""
    if entry := seen.entry(wanted):
        return _source(entry.timestamp, entry.audience, "journal", entry.content)
    if record := seen.summary(wanted):
        return _source(record.created_at, record.audience, "summary", record.text)
    for profile in seen.profiles():
        for item in profile.observations:
            if item.id == wanted:
                return _source(item.at, item.audience, f"observation of {profile.name}", item.text)
    for fact in lore().facts():
        if fact.id == wanted and (not fact.tell or seen.shows(STAFF)):
            return _source("", PUBLIC, "lore", f"{', '.join(fact.keys)}: {fact.text}")
    return ""
