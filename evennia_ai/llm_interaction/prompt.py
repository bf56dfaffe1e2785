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
from evennia_ai.llm_interaction.budget import NOTE_CHARS, NOTES_KEPT, Room, TokenBudget
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
from evennia_ai.llm_interaction.offline.acts import asks_to_remember
from evennia_ai.llm_interaction.regions import (
    HEADINGS,
    Caps,
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
from evennia_ai.llm_interaction.windows import Window
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
# Largest size of the prompt's part about room, time and people.
TAIL_TOKENS = 800
# Largest size of a summary by a base model.
PLAIN_SUMMARY_TOKENS = 200
# Below this window, a model that writes its calls as text gets few tools and short rules.
SMALL_WINDOW_TOKENS = 16_000
# Above it a prompt holds the examples of how the assistant talks.
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


# How models are told of their tools, and why so.
NATIVE = "native (the provider's tool calling)"
CARRIED = "native (the model's template carries tools)"
DROPPED = "text (the model's template drops tools: calls are written as text)"
BASE = "text (base models write calls as text)"
AS_TEXT = (DROPPED, BASE)


def tool_protocol(script: Assistant) -> str:
    """How an assistant's model is told of its tools, as far as is known now."""
    if script.model_name == OFFLINE_MODEL:
        return NATIVE
    if script.config.llm_api == "completion":
        return BASE
    carries = script.mind.model.facts(script.model_name).carries_tools
    return NATIVE if carries is None else CARRIED if carries else DROPPED


def context_limit(script: Assistant, model: str = "") -> int:
    """Most tokens a request to a model (its own by default) and the reply may hold.

    The configured limit, the model's window or the spend limit of a call.
    """
    window = learned_window(script, model)
    known = window.tokens if window else None
    bounds = (script.config.max_context_tokens, known, script.spend.call_limits.get("tokens"))
    return min(int(bound) for bound in bounds if bound)


def learned_window(script: Assistant, model: str = "") -> Window | None:
    """The window of a model (its own by default), and where the figure comes from."""
    return script.mind.model.facts(model or script.model_name).window


def limit_source(script: Assistant) -> tuple[str, str]:
    """What sets the limit of its requests, and what makes it larger, in words."""
    limit, window = context_limit(script), learned_window(script)
    if limit == script.config.max_context_tokens:
        return "`max_context_tokens`", "Raise `max_context_tokens`"
    if window and limit == window.tokens:
        name = f"the window of {script.model_name}, by {window.source}"
        return name, "Give the model's server a larger window"
    return "the spend limit of a call", "Raise the spend limit of a call"


def context_caps(script: Assistant, model: str = "", limit: int = 0) -> Caps:
    """The caps of the regions as they hold under a limit, by default that of a model, its own."""
    config, most = script.config, script.summary_max_tokens
    is_base = config.llm_api == "completion"
    return Caps(
        config.memory_inject_tokens,
        TAIL_TOKENS,
        config.reply_reserve_tokens,
        min(most, PLAIN_SUMMARY_TOKENS) if is_base else most,
        config.ledger_max_tokens,
    ).under(limit or context_limit(script, model))


def room_of(script: Assistant) -> Room:
    """The room of its history beside the fixed regions of the last prompt; constant time."""
    limit = context_limit(script)
    volatile = context_caps(script, limit=limit).volatile
    return Room(limit, script.runtime.fixed_tokens, volatile)


def context_usage(script: Assistant) -> float:
    """The share of its room that history, summaries and queued events take; constant time.

    Of the history it is the largest view any one audience has.
    """
    tokens = script.history.widest_tokens() + script.runtime.queued_tokens()
    return room_of(script).usage(tokens)


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
        usage=round(context_usage(script), 4),
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
    if is_small(script) and (text := place.pop("description", "")):
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
    caps, limit = context_caps(script, model), context_limit(script, model)
    cost = (lambda *_: 0) if only_speaks(script) else _tools_cost(script)
    return fit_prompt(regions, caps, limit, script.count, cost)


def _tools_cost(script: Assistant) -> Callable[[Sequence[dict[str, Any]], Counter], int]:
    """What counts the tokens of tools as they are sent: described as text, or as schemas."""
    if tool_protocol(script) not in AS_TEXT:
        return tools_tokens
    brief = is_small(script)
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
    situation = CONTEXTS[request.context]
    serves = _serving(script, request.audience, request.asker)
    tools = tuple(
        tool.schema()
        for tool in script.tools.offered(not situation.speaks, is_small(script))
        if (tool.serves in serves or not situation.speaks) and tool.name not in withdrawn
        # Nothing else may be done unasked.
        if request.context != CONTEXT_UNASKED or tool.silent or (tool.speaks and not tool.to_one)
    )
    rules = situation.short_rules if is_small(script) else None
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
    persona, has_room = config.persona, context_limit(script) >= EXAMPLES_WINDOW_TOKENS
    if config.examples and has_room and context.speaks and not is_small(script):
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
        "full": context_usage(script) >= script.config.compact_sleep_threshold / 2,
    }
    return [*wishes, *(name for name, does in serves.items() if does)]


def is_small(script: Assistant) -> bool:
    """Whether the model gets few tools and short rules.

    It does where it has few parameters, and where calls are written as text, or do not reach it at
    all, and the window is small: such a model loses its way in a long prompt, and nothing is gained
    from tools that it does not call.
    """
    facts = script.mind.model.facts(script.model_name)
    if facts.small or context_limit(script) >= SMALL_WINDOW_TOKENS:
        return facts.small
    return tool_protocol(script) in AS_TEXT or facts.carries_tools is False


def only_speaks(script: Assistant) -> bool:
    """Whether the model has so few parameters that it gets no tools, and only speaks.

    It looks and notes again and again, and says the results; memories are given to it. The offline
    model takes the notes and makes the summaries.
    """
    return script.mind.model.facts(script.model_name).small


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
    shown, older = seen.as_if_never_compacted(raw, context_limit(script))
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
    name, small = model or script.model_name, is_small(script)
    if name in fallbacks:
        fallbacks = fallbacks[fallbacks.index(name) + 1 :]
    situation, reserve = CONTEXTS.get(purpose), prompt.budget.regions["Reserve"]
    is_aloud = purpose == READ_AHEAD or (situation is not None and situation.speaks)
    is_brief = small and is_aloud and name != OFFLINE_MODEL
    request = ModelRequest(
        model=name,
        messages=prompt.messages,
        tools=prompt.tools,
        timeout_s=config.llm_timeout_s,
        purpose=purpose,
        prompt_tokens=prompt.budget.total - reserve,
        called=main_arguments(prompt.tools),
        reported=not is_aloud,
        max_tokens=max_tokens or (min(reserve, SMALL_REPLY_TOKENS) if is_brief else reserve),
    )
    if name == OFFLINE_MODEL:
        return request
    extra = {**({"repeat_penalty": SMALL_REPEAT_PENALTY} if small else {}), **config.llm_extra}
    thinking = config.llm_thinking
    request = replace(request, fallback_models=fallbacks, thinking=thinking, extra=extra)
    tools = () if is_brief and only_speaks(script) else prompt.tools
    if prompt.tools and tool_protocol(script) in AS_TEXT:
        shown = as_text(prompt.messages, tool_instructions(tools, small), request.called)
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
    sizes = {
        "System": text_tokens(system, script.count),
        "Tools": _tools_cost(script)(tools, script.count),
        "History": tokens + OVERHEAD_TOKENS,
        "Reserve": context_caps(script).reserve + summary_tokens,
    }
    return Prompt(messages, tuple(tools), TokenBudget.of(sizes, context_limit(script)))


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
