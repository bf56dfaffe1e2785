"""`ai/why`: what a reply rests on, and where words are that seem to be forgotten."""

from collections.abc import Iterable

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.commands.history import hit_line, message_line
from evennia_ai.llm_interaction.reply_trace import ReplyTrace
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit
from evennia_ai.staff.explanation import (
    Explanation,
    Source,
    explanation,
    found_message,
    refused_since,
)
from evennia_ai.staff.show import (
    as_record,
    audience_mark,
    cached_part,
    counted,
    cuts,
    escaped,
    moment,
    price,
)
from evennia_ai.turns.runtime import PROMPTS_KEPT

# Hits that are shown where words are nowhere.
NEAREST = 5


@inlineCallbacks
def why(script: AssistantScript, words: str, seen: Seen, is_full: bool = False) -> Steps[list[str]]:
    """Explain the newest reply, or the newest message that holds these words; see `found_message`.

    Only of what the viewer may see; with the whole prompt if `is_full`. Fires with escaped lines.
    """
    message, hits = yield found_message(words, seen, script.obj.key, script.tools.traits.speaks)
    refused = "" if words else refused_since(script.runtime.refused, message, seen)
    news = [f"Moderation refused a newer reply, {moment(refused)}."] if refused else []
    name = script.obj.key
    if message is None:
        silent = f"{name} has no reply in its live history. Name words: ai/why {name} = words"
        return _not_found(script, words, hits) if words else [*news, escaped(silent)]
    known = explanation(script, message, seen, words)
    lines = [*news, f"{escaped(message.id)} {message_line(message, name)}"]
    lines += map(escaped, known.whereabouts)
    if hits is not None:
        ids = [hit.turn_id for hit in hits]
        place = f"as result {ids.index(message.id) + 1}" if message.id in ids else "not at all"
        lines.append(escaped(f"A search for these words finds it {place}."))
    if known.trace:
        lines += map(escaped, _rests_on(known, known.trace))
    elif known.is_reply:
        lines.append("This reply has no trace that can be read.")
    if is_full:
        lines += _prompt(known)
    return lines


def _prompt(known: Explanation) -> list[str]:
    """The whole prompt, part by part."""
    if not known.prompt:
        return [f"Its prompt is not kept: only those of the {PROMPTS_KEPT} newest turns are."]
    parts = (as_record(f"[{role}] {text}") for role, text in known.prompt)
    return ["The whole prompt:", *parts]


def _not_found(script: AssistantScript, words: str, hits: Iterable[Hit] | None) -> list[str]:
    name = script.obj.key
    nearest = [hit_line(hit) for hit in list(hits or ())[:NEAREST]]
    lines = [escaped(f"`{words}` is nowhere in the history or the archive of {name}.")]
    return [
        *lines,
        *(["Search finds nearest:", *nearest] if nearest else ["Search finds nothing."]),
    ]


def _rests_on(known: Explanation, trace: ReplyTrace) -> list[str]:
    """What a reply rests on, in lines."""
    lines = [f"Prompt: {trace.budget}", *cuts(trace.budget)]
    if not trace.answers:
        lines.append("It answers nobody's line.")
    for what, sources in known.sources.items():
        lines += [what, *map(_line, sources)]
    if not (trace.given or trace.found or trace.opened):
        lines.append("Memory gave nothing to this turn.")
    cached = cached_part(trace.cached_tokens, None)
    tokens = f"{trace.prompt_tokens:,} tokens in{cached}, {trace.completion_tokens:,} out"
    if trace.cuts:
        lines.append(f"Guards cut what its model wrote: it {', '.join(trace.cuts)}.")
    if trace.moderated:
        lines.append("Moderation replaced or refused part of what its model wrote.")
    return [
        *lines,
        f"Tools called: {', '.join(known.tools) or 'none'}",
        f"Model: {trace.budget.model}",
        f"Cost: {counted(trace.calls, 'call')}, {tokens}, {price(trace.cost)}",
    ]


def _line(source: Source) -> str:
    """A source: its id, its score, when, whose, and its beginning."""
    rated = "" if source.score is None else f"score {source.score:.3f} "
    shown = f"{moment(source.at)} {audience_mark(source.audience)}{source.who}: {source.text}"
    if source.is_hidden:
        shown = "not for you to see"
    elif not source.who:
        shown = "no longer stored"
    return f"  ({source.id}) {rated}{shown}"
