"""Why a message is as it is: what a reply rests on, and what became of a line.

Plain values, for the command `ai/why` and for the page of the same name.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps, pause
from evennia_ai.game.lore import lore
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import Message, utc_iso
from evennia_ai.history.records import COMMITTED, ROLLED_BACK, CompactionRecord, SummaryRecord
from evennia_ai.llm_interaction.contributors import newest_turn
from evennia_ai.llm_interaction.reply_trace import ReplyTrace
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit, Query
from evennia_ai.staff.show import counted, moment

# Hits among which words are looked for.
SEARCHED = 20
BEGINNING_CHARS = 60
# Names of the tools that say something.
Speaks = Collection[str]


@dataclass(frozen=True)
class Source:
    """Something that a reply rests on.

    Args:
        id: Of a message, a journal entry, a summary or an observation.
        who: Its speaker, or its kind; empty if it is no longer stored.
        at: When, as it is stored.
        text: The beginning of it; empty if the viewer may not see it.
        audience: Who may know it.
        score: Of the search that found it; None where nothing was searched.
        is_hidden: Whether the viewer may not see it.
    """

    id: str
    who: str = ""
    at: str = ""
    text: str = ""
    audience: str = ""
    score: float | None = None
    is_hidden: bool = False


@dataclass(frozen=True)
class Explanation:
    """All that is known of one message.

    Args:
        message: The message.
        whereabouts: Sentences on whether it can be in a prompt, and if not, what became of it.
        trace: What its turn was made of; None for a message that is no reply, or an old one.
        is_reply: Whether the assistant said it.
        sources: Lists of what it rests on, by the sentence that introduces each.
        tools: Names of the tools called before it and with it.
        prompt: The whole prompt of its turn: who each part is of, and its text; empty for all but
            the newest replies since the server started.
    """

    message: Message
    whereabouts: tuple[str, ...]
    trace: ReplyTrace | None = None
    is_reply: bool = False
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    prompt: tuple[tuple[str, str], ...] = ()


@inlineCallbacks
def found_message(
    words: str, seen: Seen, own_name: str, speaks: Speaks
) -> Steps[tuple[Message | None, tuple[Hit, ...] | None]]:
    """The newest reply, or the newest message that holds these words, that a viewer may see.

    Looks in the live history, then through the search index, then through the whole archive, with
    pauses. Fires with the message, or None, and what the search gave if there was one. `speaks` are
    the names of the tools that say something.
    """
    heard = [m for m in seen.newest() if not m.is_summary and holds(spoken(m, speaks), words)]
    found = next((m for m in heard if is_reply(m, speaks)), None)
    if found or not words:
        return found, None
    if heard:
        return heard[0], None
    query = Query(words, SEARCHED, own_name=own_name, observations=True, tools=True)
    hits = tuple((yield seen.search(query)))
    found = yield _archived(words, seen, hits, speaks)
    return found, hits


def refused_since(refused: tuple[float, str] | None, message: Message | None, seen: Seen) -> str:
    """When moderation refused a reply newer than a message, as it is stored; empty if it did not.

    Only of a turn that the viewer may know of; `refused` is when it was and the turn's audience.
    """
    at, whose = refused or (0.0, PUBLIC)
    moment_of = utc_iso(at)
    is_newer = at and (message is None or moment_of > message.created_at)
    return moment_of if is_newer and seen.shows(whose) else ""


def explanation(
    script: AssistantScript, message: Message, seen: Seen, words: str = ""
) -> Explanation:
    """What is known of a message, as far as a viewer may see it."""
    speaks = script.tools.traits.speaks
    answer, trace = is_reply(message, speaks), ReplyTrace.of(message)
    where = tuple(_whereabouts(script, message, words, seen))
    if trace is None or not answer:
        return Explanation(message, where, None, answer)
    lists = {
        "It answers:": dict.fromkeys(trace.answers),
        "Memories in its prompt:": trace.given,
        "Memories found by its searches:": trace.found,
        "Memories it read in full:": dict.fromkeys(trace.opened),
        "Found but not put into the prompt (there already, or too weak):": trace.passed_over,
    }
    sources = {
        what: tuple(_sources(scores, seen, speaks)) for what, scores in lists.items() if scores
    }
    called = (call["function"]["name"] for call in message.tool_calls)
    prompt = tuple(map(_part, script.runtime.prompt_of(trace.budget.at)))
    return Explanation(message, where, trace, answer, sources, (*trace.tools, *called), prompt)


def _part(part: Mapping[str, Any]) -> tuple[str, str]:
    """A message of a prompt, or a tool that it offers: who it is of, and its text."""
    if "function" in part:
        return "tool", json.dumps(part["function"], ensure_ascii=False)
    calls = (call["function"] for call in part.get("tool_calls") or ())
    lines = [str(part.get("content") or ""), *(f"{c['name']} {c['arguments']}" for c in calls)]
    return str(part["role"]), "\n".join(filter(None, lines))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def holds(text: str, words: str) -> bool:
    """Whether a text holds these words in this order, in any case."""
    return _plain(words) in _plain(text)


def spoken(message: Message, speaks: Speaks) -> str:
    """The text of a message, with what its calls say, of the tools that `speaks` names."""
    said = [message.content]
    for call in message.tool_calls:
        if call["function"]["name"] in speaks:
            said.append(_text_of(call["function"]["arguments"]))
    return " ".join(said)


def _text_of(arguments: str) -> str:
    try:
        read = json.loads(arguments)
    except ValueError:
        return ""
    return str(read.get("text") or "") if isinstance(read, Mapping) else ""


def is_reply(message: Message, speaks: Speaks) -> bool:
    """Whether the assistant spoke in a message."""
    return message.role == "assistant" and bool(spoken(message, speaks).strip())


@inlineCallbacks
def _archived(words: str, seen: Seen, hits: Iterable[Hit], speaks: Speaks) -> Steps[Message | None]:
    """Fires with the archived message that holds the words: a hit, or else the newest of all."""
    for stretch in chain([seen.by_ids(hit.turn_id for hit in hits)], seen.stretches()):
        found = next((m for m in stretch if holds(spoken(m, speaks), words)), None)
        if found is not None:
            return found
        yield pause()
    return None


def _whereabouts(script: AssistantScript, message: Message, words: str, seen: Seen) -> list[str]:
    """Whether a message can be in a prompt, and if not, what became of it."""
    name, history = script.obj.key, script.history
    live = [each.id for each in history.messages()]
    if message.id in live:
        newest = newest_turn(script, seen.audience)
        is_shown = newest and script.seen(newest.audience).shows(message.audience)
        until = newest.left_until if newest and is_shown else ""
        if until in live and live.index(message.id) <= live.index(until):
            return ["It is in the live history; the newest turn's prompt had no room for it."]
        return ["It is in the live history: prompts hold it word for word."]
    lines = []
    if made := _compaction_of(history.compactions(), message.id):
        lines.append(f"Compaction {made.id} ({made.trigger}) summarised it at {moment(made.at)}.")
    summaries = _chain(seen, message.id)
    if not summaries:
        return [*lines, "No summary stands for it; compact/verify looks for the reason."]
    first, last = summaries[0], summaries[-1]
    lines.append(
        f"It is in summary {first.id}, made of {counted(len(first.source_ids), 'message')}."
    )
    if last is not first:
        ids = ", then ".join(record.id for record in summaries[1:])
        lines.append(f"That summary was merged into {ids}, which prompts hold now.")
    keeping = [record.id for record in summaries if words and holds(record.text, words)]
    if words and keeping:
        lines.append(f"These words are in the text of {', '.join(keeping)}.")
    elif words:
        lines.append("No summary of it holds these words: they are in the archive alone.")
    return [*lines, f"The raw words: aihistory/expand {name} = {first.id}"]


def _compaction_of(records: Sequence[CompactionRecord], message_id: str) -> CompactionRecord | None:
    """The compaction by which a message left the live history."""
    made = (r for r in reversed(records) if r.status == COMMITTED and message_id in r.leaving)
    return next(made, None)


def _chain(seen: Seen, message_id: str) -> list[SummaryRecord]:
    """The summary made of a message, the one that took it over, and so on."""
    records = reversed(seen.summaries())
    record = next(
        (r for r in records if message_id in r.source_ids and r.status != ROLLED_BACK), None
    )
    summaries: list[SummaryRecord] = []
    while record is not None and record not in summaries:
        summaries.append(record)
        record = seen.summary(record.absorbed_by) if record.absorbed_by else None
    return summaries


def _sources(scores: Mapping[str, float | None], seen: Seen, speaks: Speaks) -> Iterator[Source]:
    """What ids stand for, with their scores."""
    messages = {message.id: message for message in seen.by_ids(scores)}
    for each, score in scores.items():
        if message := messages.get(each):
            who, text = message.speaker_name or message.role, _beginning(spoken(message, speaks))
            yield Source(each, who, message.created_at, text, message.audience, score)
        elif source := _derived(seen, each):
            yield replace(source, score=score)
        elif seen.exists(each):
            yield Source(each, "somebody", score=score, is_hidden=True)
        else:
            yield Source(each, score=score)


def _beginning(text: str) -> str:
    short = " ".join(text.split())
    return short if len(short) <= BEGINNING_CHARS else f"{short[:BEGINNING_CHARS]}…"


def _derived(seen: Seen, wanted: str) -> Source | None:
    """What an id stands for that is no message's."""
    if entry := seen.entry(wanted):
        text = _beginning(entry.content)
        return Source(wanted, "journal", entry.timestamp, text, entry.audience)
    if record := seen.summary(wanted):
        text = _beginning(record.text)
        return Source(wanted, "summary", record.created_at, text, record.audience)
    for profile in seen.profiles():
        for item in profile.observations:
            if item.id == wanted:
                who = f"observation of {profile.name}"
                return Source(wanted, who, item.at, _beginning(item.text), item.audience)
    fact = next((fact for fact in lore().facts() if fact.id == wanted), None)
    if fact is not None and seen.shows(STAFF if fact.tell else PUBLIC):
        return Source(wanted, "lore", "", _beginning(f"{', '.join(fact.keys)}: {fact.text}"))
    return None
