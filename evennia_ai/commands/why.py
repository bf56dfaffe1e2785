"""`ai/why`: what a reply rests on, and where words are that seem to be forgotten."""

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import pause
from evennia_ai.commands.budget import cached_part, cuts, price
from evennia_ai.commands.history import hit_line, message_line
from evennia_ai.commands.show import audience_mark, counted, escaped, moment
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.audience import visible
from evennia_ai.history.messages import Message
from evennia_ai.history.records import COMMITTED, ROLLED_BACK, CompactionRecord, SummaryRecord
from evennia_ai.llm_interaction.contributors import newest_turn
from evennia_ai.llm_interaction.reply_trace import ReplyTrace
from evennia_ai.recall.values import Hit, Query

# Hits among which words are looked for, and those shown where they are nowhere.
SEARCHED, NEAREST = 20, 5
BEGINNING_CHARS = 60
# Pages of the journal that are read for an id that holds no time.
JOURNAL_PAGES = 100


@inlineCallbacks
def why(
    script: AssistantScript, words: str, audience: str
) -> Generator[Deferred[Any], Any, list[str]]:
    """Explain the newest reply, or the newest message that holds these words.

    Only of what the audience may see. Looks in the live history, then through the search index,
    then through the whole archive, with pauses. Fires with escaped lines.
    """
    live = [m for m in script.history.messages() if visible(m.audience, audience)]
    heard = [m for m in live[::-1] if not m.is_summary and _holds(_spoken(m, script), words)]
    found = next((m for m in heard if _is_reply(m, script)), None)
    if not words:
        return _explained(script, found, words, audience) if found else _silent(script)
    if found := found or next(iter(heard), None):
        return _explained(script, found, words, audience)
    query = Query(words, SEARCHED, audience, (), script.obj.key, True, True)
    hits = yield script.memory.search(query)
    found = yield _archived(script, words, audience, hits)
    if found is None:
        return _not_found(script, words, hits)
    return _explained(script, found, words, audience, hits)


def _silent(script: AssistantScript) -> list[str]:
    name = script.obj.key
    return [escaped(f"{name} has no reply in its live history. Name words: ai/why {name} = words")]


def _not_found(script: AssistantScript, words: str, hits: Iterable[Hit]) -> list[str]:
    name = script.obj.key
    nearest = [hit_line(hit) for hit in list(hits)[:NEAREST]]
    lines = [escaped(f"`{words}` is nowhere in the history or the archive of {name}.")]
    return [
        *lines,
        *(["Search finds nearest:", *nearest] if nearest else ["Search finds nothing."]),
    ]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _holds(text: str, words: str) -> bool:
    return _plain(words) in _plain(text)


def _spoken(message: Message, script: AssistantScript) -> str:
    """The text of a message, with what its calls say."""
    said = [message.content]
    for call in message.tool_calls:
        if call["function"]["name"] in script.tools.traits.speaks:
            said.append(_text_of(call["function"]["arguments"]))
    return " ".join(said)


def _text_of(arguments: str) -> str:
    try:
        read = json.loads(arguments)
    except ValueError:
        return ""
    return str(read.get("text") or "") if isinstance(read, Mapping) else ""


def _is_reply(message: Message, script: AssistantScript) -> bool:
    return message.role == "assistant" and bool(_spoken(message, script).strip())


@inlineCallbacks
def _archived(
    script: AssistantScript, words: str, audience: str, hits: Iterable[Hit]
) -> Generator[Deferred[Any], Any, Message | None]:
    """Fires with the archived message that holds the words: a hit, or else the newest of all."""
    history = script.history

    def fits(message: Message) -> bool:
        said = _spoken(message, script)
        return visible(message.audience, audience) and _holds(said, words)

    for message in history.by_ids(hit.turn_id for hit in hits):
        if fits(message):
            return message
    restored = history.restored_segments()
    for key in reversed(history.store.keys(ARCHIVE)):
        segment = None if key in restored else history.segment(key)
        found = next(filter(fits, reversed(segment.messages)), None) if segment else None
        if found is not None:
            return found
        yield pause()
    return None


def _explained(
    script: AssistantScript,
    message: Message,
    words: str,
    audience: str,
    hits: Iterable[Hit] | None = None,
) -> list[str]:
    """All that is known of one message; `hits` are what a search for the words gave."""
    name = script.obj.key
    lines = [f"{escaped(message.id)} {message_line(message, name)}"]
    lines += map(escaped, _whereabouts(script, message, words, audience))
    if hits is not None:
        ids = [hit.turn_id for hit in hits]
        place = f"as result {ids.index(message.id) + 1}" if message.id in ids else "not at all"
        lines.append(escaped(f"A search for these words finds it {place}."))
    if _is_reply(message, script):
        trace = ReplyTrace.of(message)
        no_trace = "No trace was stored with this reply: an earlier version said it."
        rest = _rests_on(script, trace, message, audience) if trace else [no_trace]
        lines += map(escaped, rest)
    return lines


def _whereabouts(script: AssistantScript, message: Message, words: str, audience: str) -> list[str]:
    """Whether a message can be in a prompt, and if not, what became of it."""
    name, history = script.obj.key, script.history
    live = [each.id for each in history.messages()]
    if message.id in live:
        newest = newest_turn(script, audience)
        until = newest.left_until if newest and visible(message.audience, newest.audience) else ""
        if until in live and live.index(message.id) <= live.index(until):
            return ["It is in the live history; the newest turn's prompt had no room for it."]
        return ["It is in the live history: prompts hold it word for word."]
    lines = []
    if made := _compaction_of(script, message.id):
        lines.append(f"Compaction {made.id} ({made.trigger}) folded it at {moment(made.at)}.")
    chain = [r for r in _chain(script, message.id) if visible(r.audience, audience)]
    if not chain:
        return [*lines, "No summary stands for it; compact/verify looks for the reason."]
    first, last = chain[0], chain[-1]
    lines.append(
        f"It is in summary {first.id}, made of {counted(len(first.source_ids), 'message')}."
    )
    if last is not first:
        ids = ", then ".join(record.id for record in chain[1:])
        lines.append(f"That summary was taken into {ids}, which prompts hold now.")
    keeping = [record.id for record in chain if words and _holds(record.text, words)]
    if words and keeping:
        lines.append(f"These words are in the text of {', '.join(keeping)}.")
    elif words:
        lines.append("No summary of it holds these words: they are in the archive alone.")
    return [*lines, f"The raw words: aihistory/expand {name} = {first.id}"]


def _compaction_of(script: AssistantScript, message_id: str) -> CompactionRecord | None:
    """The compaction by which a message left the live history."""
    made = reversed(script.history.compactions())
    return next((r for r in made if r.status == COMMITTED and message_id in r.leaving), None)


def _chain(script: AssistantScript, message_id: str) -> list[SummaryRecord]:
    """The summary made of a message, the one that took it over, and so on."""
    known = reversed(script.history.summaries())
    record = next(
        (r for r in known if message_id in r.source_ids and r.status != ROLLED_BACK), None
    )
    chain: list[SummaryRecord] = []
    while record is not None and record not in chain:
        chain.append(record)
        record = script.history.summary(record.absorbed_by) if record.absorbed_by else None
    return chain


def _rests_on(
    script: AssistantScript, trace: ReplyTrace, message: Message, audience: str
) -> list[str]:
    """What a reply rests on, in lines."""
    lines = [f"Prompt: {trace.budget}", *cuts(trace.budget)]
    answered = _sources(script, dict.fromkeys(trace.answers), audience)
    lines += ["It answers:", *answered] if answered else ["It answers nobody's line."]
    for what, scores in (
        ("Memories in its prompt:", trace.given),
        ("Memories found by its searches:", trace.found),
        ("Memories it read in full:", dict.fromkeys(trace.opened)),
        ("Found but not put into the prompt (there already, or too weak):", trace.passed_over),
    ):
        if scores:
            lines += [what, *_sources(script, scores, audience)]
    if not (trace.given or trace.found or trace.opened):
        lines.append("Memory gave nothing to this turn.")
    called = [call["function"]["name"] for call in message.tool_calls]
    tools = ", ".join([*trace.tools, *called]) or "none"
    cached = cached_part(trace.cached_tokens, None)
    tokens = f"{trace.prompt_tokens:,} tokens in{cached}, {trace.completion_tokens:,} out"
    if trace.cuts:
        lines.append(f"Guards cut what its model wrote: it {', '.join(trace.cuts)}.")
    return [
        *lines,
        f"Tools called: {tools}",
        f"Model: {trace.budget.model}",
        f"Cost: {counted(trace.calls, 'call')}, {tokens}, {price(trace.cost)}",
    ]


def _sources(
    script: AssistantScript, scores: Mapping[str, float | None], audience: str
) -> list[str]:
    """The beginnings of what ids stand for, with their scores."""
    known = {message.id: message for message in script.history.by_ids(scores)}
    lines = []
    for each, score in scores.items():
        if message := known.get(each):
            who, at = message.speaker_name or message.role, message.created_at
            text, owner = _spoken(message, script), message.audience
        else:
            who, at, text, owner = _derived(script, each)
        beginning = " ".join(text.split())
        if len(beginning) > BEGINNING_CHARS:
            beginning = f"{beginning[:BEGINNING_CHARS]}…"
        shown = f"{moment(at)} {audience_mark(owner)}{who}: {beginning}"
        if not who:
            shown = "no longer stored"
        elif not visible(owner, audience):
            shown = "not for you to see"
        rated = "" if score is None else f"score {score:.3f} "
        lines.append(f"  ({each}) {rated}{shown}")
    return lines


def _derived(script: AssistantScript, wanted: str) -> tuple[str, str, str, str]:
    """What an id stands for that is no message's: kind, time, text and audience."""
    if entry := script.obj.journal.get(wanted, JOURNAL_PAGES):
        return "journal", entry.timestamp, entry.content, entry.audience
    if record := script.history.summary(wanted):
        return "summary", record.created_at, record.text, record.audience
    for profile in script.obj.entities.profiles().values():
        for item in profile.observations:
            if item.id == wanted:
                return f"observation of {profile.name}", item.at, item.text, item.audience
    return "", "", "", ""
