"""From an assistant's state to the request a model gets, within its budget."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import moment_lines, one_line, quoted, row
from evennia_ai.history.messages import OVERHEAD_TOKENS, Counter, Message, mask_of, unmasked
from evennia_ai.language.times import leaves_words
from evennia_ai.llm_interaction.budget import NOTE_CHARS, NOTES_KEPT, TokenBudget
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_AWAKE,
    CONTEXT_PRE_COMPACTION,
    CONTEXT_UNASKED,
    CONTEXTS,
    PromptContext,
    plain_identity,
    system_prompt,
    written_language,
)
from evennia_ai.llm_interaction.limits import AS_TEXT, Limits
from evennia_ai.llm_interaction.offline.acts import asks_to_remember
from evennia_ai.llm_interaction.regions import (
    HEADINGS,
    Prompt,
    Regions,
    fit_prompt,
    note_line,
    text_tokens,
    tools_tokens,
)
from evennia_ai.llm_interaction.tool_calls import as_text, main_arguments, tool_instructions
from evennia_ai.llm_interaction.transcript import (
    FACTS,
    FACTS_STOPS,
    STOPS,
    as_task_prompt,
    as_transcript,
)
from evennia_ai.llm_interaction.values import OFFLINE_MODEL as OFFLINE_MODEL
from evennia_ai.llm_interaction.values import READ_AHEAD, ModelRequest, TurnRequest
from evennia_ai.protocol import Assistant, Character
from evennia_ai.recall.values import Hit, brief

# When a tool is offered, to whoever speaks; the first of them may well serve any turn.
USUAL = ("", "met", "things", "carried", "older")
SERVES = (*USUAL, "obeyed", "errand", "remember", "full", "sleep")
# Of so many of the newest lines, those of the one who asks may leave words for somebody, or ask to
# remember something.
WISH_LINES = 12
# Observations of each person present, of the place and of each thing in it that the tail shows
# at most.
PROFILE_FACTS = 3
# Above this window a prompt holds the examples of how the assistant talks.
EXAMPLES_WINDOW_TOKENS = 8_000
EXAMPLES_HEAD = "How you talk (examples of style; never say these lines again):"
# What such a model writes beyond a hundred words is seldom sense, and people wait for each of them.
SMALL_REPLY_TOKENS = 80
# It falls into loops without one, where the game's owner sets no other.
SMALL_REPEAT_PENALTY = 1.1
# A reply that was not sound is asked for again with one of these temperatures, and with about so
# many of the newest messages.
COOL, WARM = 0.3, 0.9
MESSAGES_AGAIN = 4
# A turn that anybody may hear and nobody asked for.
ORDINARY = TurnRequest()


def build_prompt(
    script: Assistant, character: Character, request: TurnRequest = ORDINARY, **options: Any
) -> Prompt:
    """The prompt of a model call that is made now; its budget is noted.

    Arguments and result are those of `draft_prompt`.
    """
    prompt = draft_prompt(script, character, request, **options)
    model = options.get("model", "")
    if request.context == CONTEXT_AWAKE:
        if not model:
            _note_fixed(script, prompt)
        script.runtime.left_out = frozenset(prompt.left_out)
    name = model or script.model_name
    note_request(script, prompt.budget, request.context, name, request.audience)
    return prompt


def note_request(
    script: Assistant,
    budget: TokenBudget,
    purpose: str,
    model: str,
    audience: str = PUBLIC,
    trigger: str = "",
) -> TokenBudget:
    """Log the budget of a request that is about to be made; returns the event."""
    event = replace(
        budget,
        at=script.now(),
        purpose=purpose,
        model=model,
        audience=audience,
        trigger=trigger,
        notes=tuple(note[:NOTE_CHARS] for note in budget.notes[:NOTES_KEPT]),
        usage=round(script.usage(), 4),
    )
    return script.budgets.note(event)


def draft_prompt(
    script: Assistant,
    character: Character,
    request: TurnRequest = ORDINARY,
    withdrawn: Sequence[str] = (),
    since: str | None = None,
    found: Mapping[str, str] = MappingProxyType({}),
    model: str = "",
) -> Prompt:
    """The prompt of one model call, of which nothing is noted.

    Its `budget` says what was left out; `fits` is False where not even the fixed regions lie
    within the limit.

    Args:
        script: The assistant's script.
        character: Its body.
        request: What the turn is for; only what its audience and its asker may know is shown.
        withdrawn: Names of tools not offered any more.
        since: Id of the newest message when the turn began. What came after it stands behind the
            present moment, so that the turn's tool results come last.
        found: What this turn's searches gave, by the id of the result, where less is stored.
        model: The model it is for, if not its own: a fallback may have a smaller window.
    """
    regions = _fixed(script, character, request, withdrawn)
    place, system = script.game.place(request.asker), regions.system
    # A small model says again what stands nearest to its answer, and reads a description of the
    # room anew at each line, if it does not stand before the talk.
    if script.limits().is_small and (text := place.pop("description", "")):
        system += f"\n\nDescription of {one_line(place['key'])}: {quoted(text)}"
    history, older = shown_history(script, request.audience)
    recalls = script.tools.traits.recalls
    present = present_lines(script, place, request.audience, request.asker)
    regions = replace(
        regions,
        system=system,
        history=tuple(_as_shown(m, found, recalls) for m in history),
        archived=older,
        retrieved=_memory_lines(request.retrieved),
        tail=(*request.answering, *present, *request.talks),
        since=since,
    )
    return _fitted(script, regions, model)


def _memory_lines(hits: Sequence[Hit]) -> tuple[str, ...]:
    """Memories as lines of the prompt: id, day, speaker, text; summaries of earlier times last."""
    lines, related = list[str](), list[str]()
    for hit in hits:
        line = row(hit.turn_id, str(hit.at or "")[:10], one_line(hit.speaker), hit.text)
        (related if hit.kind == "summary" else lines).append(line)
    return (*lines, *(["Related past experiences:", *related] if related else ()))


def _as_shown(message: Message, found: Mapping[str, str], recalls: Collection[str]) -> Message:
    """A message as a prompt shows it: a search's result in full in its own turn, brief later."""
    if message.role != "tool" or message.name not in recalls or mask_of(message):
        return message
    text = found.get(message.id) or brief(message.content)
    return message if text == message.content else replace(message, content=text, tokens=0)


def _fitted(script: Assistant, regions: Regions, model: str = "") -> Prompt:
    """The regions as a prompt, its tools counted in the form in which they are sent."""
    limits, own = script.limits(model), script.limits()
    cost = (lambda *_: 0) if own.only_speaks else _tools_cost(own)
    return fit_prompt(regions, limits.caps, limits.tokens, script.count, cost)


def _tools_cost(limits: Limits) -> Callable[[Sequence[dict[str, Any]], Counter], int]:
    """What counts the tokens of tools as they are sent: described as text, or as schemas."""
    if limits.protocol not in AS_TEXT:
        return tools_tokens
    brief = limits.is_small
    return lambda tools, count: text_tokens(tool_instructions(tools, brief), count)


def measure_fixed(script: Assistant, character: Character) -> Prompt:
    """Measure the tokens of the fixed regions without a turn, as at start; returns their prompt."""
    prompt = _fitted(script, _fixed(script, character, ORDINARY))
    _note_fixed(script, prompt)
    return prompt


def _note_fixed(script: Assistant, prompt: Prompt) -> None:
    sizes = prompt.budget.regions
    script.runtime.fixed_tokens = sizes["System"] + sizes["Tools"] + sizes["Ledger"]


def _fixed(
    script: Assistant, character: Character, request: TurnRequest, withdrawn: Sequence[str] = ()
) -> Regions:
    """The tool schemas, the system text and the notes of the ledger."""
    situation, small = CONTEXTS[request.context], script.limits().is_small
    serves = _serving(script, request.audience, request.asker)
    tools = tuple(
        tool.schema()
        for tool in script.tools.offered(not situation.speaks, small)
        if (tool.serves in serves or not situation.speaks) and tool.name not in withdrawn
        # Nothing else may be done unasked.
        if request.context != CONTEXT_UNASKED or tool.silent or (tool.speaks and not tool.to_one)
    )
    rules = situation.short_rules if small else None
    system = _system(script, character, situation, rules, script.config.language)
    notes = script.seen(request.audience, trusted=True).pinned()
    ledger = tuple((HEADINGS[n.kind], note_line(n.id, n.at, n.by, n.text)) for n in notes)
    return Regions(system, tools, ledger=ledger)


def _system(
    script: Assistant,
    character: Character,
    context: PromptContext,
    rules: str | None,
    language: str,
) -> str:
    """The system text; base models get a description, no rules."""
    config, name = script.config, character.key
    if config.llm_api == "completion" and script.model_name != OFFLINE_MODEL:
        return plain_identity(name, config.persona, language)
    persona, limits = config.persona, script.limits()
    has_room = limits.tokens >= EXAMPLES_WINDOW_TOKENS and not limits.is_small
    if config.examples and has_room and context.speaks:
        persona += f"\n\n{EXAMPLES_HEAD}\n{config.examples}"
    return system_prompt(context, name, persona, rules, language)


def _serving(script: Assistant, audience: str, asker: str | None) -> Collection[str]:
    """What tools may serve in a turn for an audience and whom it answers (`Tool.serves`).

    A call of another one is judged like any call; nothing depends on its being left out.
    """
    if asker is None or script.model_name == OFFLINE_MODEL:  # which pays nothing for them
        return USUAL if asker is None else SERVES
    game, seen = script.game, script.seen(audience)
    newest = islice(seen.newest(), WISH_LINES)
    lines = [message.content for message in newest if message.speaker_id == asker]
    asks: dict[str, Callable[[str], bool]] = {
        "errand": leaves_words,
        "remember": partial(asks_to_remember, me=script.obj.key),
    }
    # A tool that was offered stays, as caches hold what begins alike.
    wishes = script.runtime.wishes
    wishes |= {wish for wish in asks.keys() - wishes if any(map(asks[wish], lines))}
    serves = {
        "": True,
        "obeyed": game.obeys(asker),
        "met": seen.profile(asker) is not None or asker in seen.bonds(),
        "things": (has_things := game.has_things_for(asker)),
        "carried": has_things and bool(game.carried()),
        "older": bool(seen.summaries()),
        "full": script.usage() >= script.config.compact_sleep_threshold / 2,
    }
    return [*wishes, *(name for name, does in serves.items() if does)]


def shown_history(script: Assistant, audience: str) -> tuple[tuple[Message, ...], int]:
    """The live messages an audience may see, and how many archived ones could not fit.

    With compaction switched off there are no summaries: the raw history is shown instead, from
    the archive and unmasked, as far back as the limit could hold.
    """
    seen = script.seen(audience, trusted=True)
    live = seen.messages()
    if script.config.compact_enabled:
        return tuple(live), 0
    raw = [unmasked(m) for m in live if not m.is_summary]
    if len(raw) == len(live):
        return tuple(raw), 0
    shown, older = seen.as_if_never_compacted(raw, script.limits().tokens)
    return tuple(shown), older


def build_llm_messages(
    script: Assistant,
    character: Character,
    audience: str = PUBLIC,
    context: str = CONTEXT_AWAKE,
    **fields: Any,
) -> list[dict[str, Any]]:
    """The messages sent to the model, within budget; arguments as for `TurnRequest`."""
    return list(build_prompt(script, character, TurnRequest(audience, context, **fields)).messages)


def present_lines(
    script: Assistant, place: Mapping[str, Any], audience: str, asker: str | None = None
) -> list[str]:
    """The volatile tail: time, place, people present, what is known of them and what is here.

    It holds what the assistant sees, and `asker` (stable id) may see too; `place` is the game's.
    """
    seen = script.seen(audience, trusted=True)
    people = sorted(script.game.present(asker), key=lambda person: person["id"] != asker)
    lines = moment_lines(
        script.game.time(script.now()),
        place["key"],
        ((person["key"], person["id"]) for person in people),
        place.get("exits") or (),
        place.get("description") or "",
        script.game.carried()[:20],
        {person["id"] for person in people if person.get("assistant")},
    )
    for person in people:
        if profile := seen.profile(person["id"]):
            lines += profile.lines(audience, limit=PROFILE_FACTS)
    lines += seen.feelings({person["id"]: person["key"] for person in people}, script.now())
    for here in (place["id"], *script.game.things(asker)):
        profile = seen.profile(here)
        about = profile.lines(audience, limit=PROFILE_FACTS) if profile else []
        lines += about if len(about) > 1 else []  # that it is here is said elsewhere
    return lines


def model_request(
    script: Assistant,
    character: Character,
    prompt: Prompt,
    purpose: str,
    max_tokens: int | None = None,
    model: str = "",
) -> ModelRequest:
    """The request for a prompt, by the assistant's API and tool protocol.

    `model` is its own, the offline one, or a fallback, after which only later ones are asked.
    """
    config, fallbacks = script.config, tuple(script.config.llm_fallback_models)
    name, limits = model or script.model_name, script.limits()
    if name in fallbacks:
        fallbacks = fallbacks[fallbacks.index(name) + 1 :]
    situation, reserve = CONTEXTS.get(purpose), prompt.budget.regions["Reserve"]
    is_aloud = purpose == READ_AHEAD or (situation is not None and situation.speaks)
    is_brief = limits.is_small and is_aloud and name != OFFLINE_MODEL
    request = ModelRequest(
        model=name,
        messages=prompt.messages,
        tools=prompt.tools,
        timeout_s=config.llm_timeout_s,
        within_s=config.turn_timeout_s,
        purpose=purpose,
        prompt_tokens=prompt.budget.total - reserve,
        called=main_arguments(prompt.tools),
        reported=not is_aloud,
        max_tokens=max_tokens or (min(reserve, SMALL_REPLY_TOKENS) if is_brief else reserve),
    )
    if name == OFFLINE_MODEL:
        return request
    penalty = {"repeat_penalty": SMALL_REPEAT_PENALTY} if limits.is_small else {}
    extra = {**penalty, **config.llm_extra}
    thinking = config.llm_thinking
    request = replace(request, fallback_models=fallbacks, thinking=thinking, extra=extra)
    tools = () if is_brief and limits.only_speaks else prompt.tools
    if prompt.tools and limits.protocol in AS_TEXT:
        shown = as_text(prompt.messages, tool_instructions(tools, limits.is_small), request.called)
        request, tools = replace(request, messages=tuple(shown)), ()
    request = replace(request, tools=tools)
    if config.llm_api != "completion":
        return request
    if situation is not None and not situation.speaks:
        text, stops = as_task_prompt(request.messages, FACTS), FACTS_STOPS
    else:
        text, stops = as_transcript(request.messages, character.key), STOPS
    return replace(request, api="completion", prompt=text, stop=stops, messages=(), tools=())


def job_prompt(
    script: Assistant,
    character: Character,
    rules: str,
    text: str,
    tokens: int,
    tools: Sequence[dict[str, Any]],
    summary_tokens: int = 0,
) -> Prompt:
    """The prompt of a job that the assistant does on itself: rules, tools and one text.

    `tokens` are those of the text, `summary_tokens` those of a summary in the reply.
    """
    language = written_language(script.config.language, text.splitlines())
    system = _system(script, character, CONTEXTS[CONTEXT_PRE_COMPACTION], rules, language)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": text})
    limits = script.limits()
    sizes = {
        "System": text_tokens(system, script.count),
        "Tools": _tools_cost(limits)(tools, script.count),
        "History": tokens + OVERHEAD_TOKENS,
        "Reserve": limits.caps.reserve + summary_tokens,
    }
    return Prompt(messages, tuple(tools), TokenBudget.of(sizes, limits.tokens))


def job_room(prompt: Prompt) -> int:
    """Tokens of the text that the prompt of a job, here without any, has room for."""
    return max(100, prompt.budget.limit - prompt.budget.total - 2 * OVERHEAD_TOKENS)


def with_exchange(
    script: Assistant,
    prompt: Prompt,
    text: str,
    calls: Sequence[Mapping[str, Any]],
    results: Sequence[str],
) -> Prompt:
    """The prompt of a job with a reply's calls and their results behind it."""
    new = [{"role": "assistant", "content": text, "tool_calls": list(calls)}]
    for call, result in zip(calls, results, strict=True):
        name = call["function"]["name"]
        new.append({"role": "tool", "tool_call_id": call["id"], "name": name, "content": result})
    more = sum(text_tokens(str(each), script.count) for each in new)
    sizes = {**prompt.budget.regions, "History": prompt.budget.regions["History"] + more}
    budget = TokenBudget.of(sizes, prompt.budget.limit)
    return replace(prompt, messages=(*prompt.messages, *new), budget=budget)


def asked_once_more(asked: ModelRequest) -> ModelRequest:
    """A request whose reply was not sound, cooler (or warmer), with the newest lines only.

    What is left begins with a line of somebody's, so that no tool's result is without its call.
    """
    before, messages = asked.extra.get("temperature"), asked.messages
    temperature = COOL if before is None or before > (COOL + WARM) / 2 else WARM
    extra = {**asked.extra, "temperature": temperature}
    starts = range(min(len(messages) - 1, max(1, len(messages) - MESSAGES_AGAIN)), 0, -1)
    start = next((n for n in starts if messages[n].get("role") == "user"), 1)
    return replace(asked, extra=extra, messages=messages[:1] + messages[start:])
