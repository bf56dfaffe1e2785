"""The ReAct loop: ask the model, run its tools, until it is done or a bound is reached."""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.assistant.runtime import LiveAssistant
from evennia_ai.assistant.turn import TurnReport, TurnRequest
from evennia_ai.errors import ToolError
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import OVERHEAD_TOKENS, Message, Speaker, new_id
from evennia_ai.history.pairs import ANSWERED
from evennia_ai.llm_interaction import build_prompt, model_request
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION, CONTEXTS
from evennia_ai.llm_interaction.prompt import context_limit
from evennia_ai.llm_interaction.reply import CLEANED_CHARS, clean_reply, strip_thoughts
from evennia_ai.llm_interaction.tool_calls import batches, bounded, read_calls, storable_call
from evennia_ai.protocol import Character
from evennia_ai.rag_memory.recalled import MEMORIES, drawn_on
from evennia_ai.tools.base import ToolContext
from evennia_ai.tools.execution import Failures, execute_tool_calls

# Texts of a model that are longer than this are never tokenised on the reactor thread.
_COUNT_CHARS = 20_000
# Characters of a reply that are compared with the memories it was shown, a few milliseconds.
_DRAWN_CHARS = 8_000
# Tokens one turn may use, in full contexts: enough for eight calls at half a context each.
TURN_CONTEXTS = 4
# A call that is begun shortly before the turn's deadline still gets this long.
LEAST_TIMEOUT_S = 1.0


@inlineCallbacks
def run_turn(
    script: LiveAssistant, character: Character, turn: TurnRequest
) -> Generator[Deferred[Any], Any, TurnReport]:
    """Think and act until done.

    Each reply enters the history before its tools run, each result behind it, so that a crash
    in between leaves a call whose result is filled in at the next start. What is stopped or fails
    in between is given its result at once, or, where that cannot be stored, by the next turn.

    Returns:
        A Deferred that fires with a `TurnReport`, or fails with `ModelError` when no model
        answered; what was stored until then stays.
    """
    if turn.context != CONTEXT_PRE_COMPACTION:  # of that a rollback must leave no trace
        script.history.heal()
    report, failures = TurnReport(), Failures()
    ctx = ToolContext(
        script,
        character,
        turn.audience,
        turn.asker,
        turn.channel,
        report.spoken,
        turn.source_ids,
        turn.retrieved,
        turn.askers,
        whole_history=turn.context == CONTEXT_PRE_COMPACTION,
    )
    extracting = CONTEXTS[turn.context].extracting
    usable, aside = script.tools.traits.extracts, ""
    while report.iterations < turn.max_iterations:
        reply = yield _ask(script, character, turn, failures, report)
        if reply is None:
            break
        text, calls = _read_reply(script, character, reply)
        if not calls:
            _store_reply(script, character, turn, text, (), reply)
            _speak(script, ctx, turn, text or ("" if report.spoken else aside), report)
            break
        aside = text or aside
        if extracting and any(call["function"]["name"] not in usable for call in calls):
            report.stopped_by = "other_tool"
        ended = yield _act(script, character, turn, ctx, failures, report, text, calls, reply)
        if ended or report.stopped_by == "other_tool":
            report.stopped_by = "noop" if ended else "other_tool"
            _speak_aside(script, ctx, turn, aside, report)
            break
    return report


@inlineCallbacks
def _act(
    script: LiveAssistant,
    character: Character,
    turn: TurnRequest,
    ctx: ToolContext,
    failures: Failures,
    report: TurnReport,
    text: str,
    calls: Sequence[Mapping[str, Any]],
    reply: Any,
) -> Generator[Deferred[Any], Any, bool]:
    """Store the calls and run them, what is whispered to one person apart from all else.

    Returns:
        A Deferred that fires with whether a tool ended the turn.
    """
    ended = False
    registry, extracting = script.tools, CONTEXTS[turn.context].extracting
    for batch in batches(calls, registry.ending, lambda call: _whispered_to(script, turn, call)):
        audience = _reply_audience(script, turn, batch)
        stored = [storable_call(call) for call in batch]
        _store_reply(script, character, replace(turn, audience=audience), text, stored, reply)
        try:
            outcome = yield execute_tool_calls(registry, batch, ctx, failures, extracting)
            answered = turn.audience if outcome.ended else ""
            meta = {"context": turn.context, ANSWERED: answered}
            script.history.append(
                replace(result, audience=audience, metadata=meta) for result in outcome.results
            )
        except Exception:
            _heal(script)
            raise
        report.tools += outcome.used
        ended, text = ended or outcome.ended, ""
    return ended


def _heal(script: LiveAssistant) -> None:
    """Answer the calls of a turn that ends in mid-air; the next one does where this fails."""
    try:
        script.history.heal()
    except Exception as error:  # noqa: BLE001 - what ended the turn is to be told, not this
        script.log_error("a tool call without a result", error)


@inlineCallbacks
def _ask(
    script: LiveAssistant,
    character: Character,
    turn: TurnRequest,
    failures: Failures,
    report: TurnReport,
) -> Generator[Deferred[Any], Any, Any]:
    """One model call; fires with its reply, or None where a bound is reached."""
    stopped = _bound_reached(script, turn, report)
    if stopped:
        report.stopped_by = stopped
        return None
    prompt = build_prompt(
        script,
        character,
        turn.audience,
        turn.context,
        retrieved=turn.retrieved,
        withdrawn=failures.withdrawn,
        rules=turn.rules,
        talks=turn.talks,
        hidden_ids=turn.hidden_ids,
    )
    if not prompt.fits:
        report.stopped_by = "too_large"
        script.trouble(f"the prompt cannot fit: {prompt.budget}")
        return None
    request = model_request(script, character, prompt, purpose=turn.context)
    left_s = turn.deadline - script.now()
    request = replace(request, timeout_s=min(request.timeout_s, max(left_s, LEAST_TIMEOUT_S)))
    report.iterations += 1
    reply = yield script.mind.complete(request)
    report.prompt_tokens += reply.prompt_tokens
    report.completion_tokens += reply.completion_tokens
    script.spent(reply, turn.context)
    return reply


def _bound_reached(script: LiveAssistant, turn: TurnRequest, report: TurnReport) -> str:
    """Which bound forbids a further model call: time, tokens of the turn, or today's cap."""
    if script.now() >= turn.deadline:
        return "deadline"
    if report.prompt_tokens + report.completion_tokens > TURN_CONTEXTS * context_limit(script):
        return "tokens"
    return "spend" if script.over_spend() else ""


def _read_reply(
    script: LiveAssistant, character: Character, reply: Any
) -> tuple[str, list[dict[str, Any]]]:
    """What a reply says, cleaned, and its tool calls in the API's form."""
    content = reply.content or ""
    first, left_out = bounded(reply.tool_calls)
    calls = [dict(call) for call in first]
    if left_out:
        script.log(f"{left_out} tool calls of one reply were too many and left out", warning=True)
    if not calls:
        written, content = read_calls(content, lambda: new_id("call_"))
        calls = [dict(call) for call in written]
    whole = strip_thoughts(content)
    if len(whole) > CLEANED_CHARS:
        return whole, calls  # kept as it came; only what is spoken of it is cleaned and cut
    return clean_reply(content, [character.key]), calls


def _reply_audience(
    script: LiveAssistant, turn: TurnRequest, calls: Sequence[Mapping[str, Any]]
) -> str:
    """Who may know of a reply and its results: a whisper in a public turn is between two."""
    people = {_whispered_to(script, turn, call) for call in calls} - {None}
    return private(str(person) for person in people) if people else turn.audience


def _whispered_to(script: LiveAssistant, turn: TurnRequest, call: Mapping[str, Any]) -> str | None:
    """Stable id of whom a call in a public turn whispers to; None if it whispers to nobody."""
    to_one = script.tools.traits.to_one
    if call["function"].get("name") not in to_one or turn.audience != PUBLIC:
        return None
    target = str(_arguments(call).get("target") or "")
    person = script.game.addressee(target) if target else None
    return None if person is None else str(person["id"])


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        read = json.loads(call["function"].get("arguments") or "{}")
    except ValueError:
        return {}
    return read if isinstance(read, Mapping) else {}


def _store_reply(
    script: LiveAssistant,
    character: Character,
    turn: TurnRequest,
    text: str,
    calls: Sequence[Any],
    reply: Any,
) -> None:
    """The assistant's message into the history; nothing for an empty or an unspoken reply."""
    if not calls and not (text and CONTEXTS[turn.context].speaks):
        return
    metadata: dict[str, Any] = {"model": reply.model, "context": turn.context}
    if memories := _drawn_on(turn, text, calls):
        metadata[MEMORIES] = memories
    is_long = len(text) > _COUNT_CHARS and reply.content_tokens
    message = Message(
        "assistant",
        text,
        speaker=Speaker(character.key, character.stable_id),
        audience=turn.audience,
        channel=turn.channel,
        tokens=reply.content_tokens + OVERHEAD_TOKENS if is_long else 0,
        tool_calls=tuple(calls),
        metadata=metadata,
    )
    script.history.append([message])


def _drawn_on(turn: TurnRequest, text: str, calls: Sequence[Any]) -> list[str]:
    """The memories in the prompt that a reply may repeat: an extraction must not learn them."""
    said = " ".join([text, *(str(call["function"].get("arguments")) for call in calls)])
    return drawn_on(turn.retrieved, said[:_DRAWN_CHARS]) if turn.retrieved else []


def _speak(
    script: LiveAssistant, ctx: ToolContext, turn: TurnRequest, text: str, report: TurnReport
) -> None:
    """Say the reply to the turn's audience."""
    report.stopped_by = "reply" if text else "silence"
    if not text or not CONTEXTS[turn.context].speaks or text in report.spoken:
        return
    try:
        script.game.speak(text, turn.audience, turn.channel, turn.asker)
    except ToolError as error:
        script.trouble(f"could not speak: {error}")
        return
    report.spoken.append(text)


def _speak_aside(
    script: LiveAssistant, ctx: ToolContext, turn: TurnRequest, aside: str, report: TurnReport
) -> None:
    """Say what stood beside tool calls, if the turn ends and nothing was said."""
    stopped = report.stopped_by
    if aside and not report.spoken:
        _speak(script, ctx, turn, aside, report)
    report.stopped_by = stopped
