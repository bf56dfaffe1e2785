"""From an assistant's state to the request a model gets, within its budget."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from twisted.internet.defer import TimeoutError, inlineCallbacks

from evennia_ai.background import Steps, in_time
from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    SAID_ONCE,
    Counter,
    Message,
    flat,
    note,
    shown_name,
    unmasked,
)
from evennia_ai.language.tables import AUTO, DEFAULT, code_of, english_name, language_of
from evennia_ai.life import Body, Offered, Surroundings, Thinker, View
from evennia_ai.llm_interaction import conversation
from evennia_ai.llm_interaction.budget import REGIONS, Limits, TokenBudget
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_AWAKE,
    CONTEXT_PRE_COMPACTION,
    CONTEXT_UNASKED,
    SPOKEN,
)
from evennia_ai.llm_interaction.conversation import (
    plain_identity,
    system_prompt,
)
from evennia_ai.llm_interaction.regions import (
    HEADINGS,
    Prompt,
    Regions,
    fit_prompt,
    note_line,
    tools_tokens,
)
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.llm_interaction.transcript import (
    FACTS,
    FACTS_STOPS,
    STOPS,
    as_task_prompt,
    as_transcript,
)
from evennia_ai.llm_interaction.values import OFFLINE_MODEL as OFFLINE_MODEL
from evennia_ai.llm_interaction.values import (
    READ_AHEAD,
    ModelReply,
    ModelRequest,
    ShownNotes,
    TurnRequest,
)

# When a tool is offered, to whoever speaks; the first of them may well serve any turn.
USUAL = ("", "met", "things", "carried", "older")
SERVES = (*USUAL, "asked", "obeyed", "full", "sleep")
# Observations of each person present, of the place and of each thing in it that the tail shows
# at most.
PROFILE_FACTS = 3
# Names of people and things that a prompt lists at most.
MOST_NAMES = 20
# Messages before which notes are kept.
MOST_KEPT_NOTES = 500
# Where neither the owner nor `llm_extra` says otherwise: lively, and seldom off the point.
TEMPERATURE = 0.5
# A base model goes on with what it wrote: of 20 lines one of 270 million parameters answered nine
# with the same greeting; with these, which llama.cpp's and OpenAI's servers know, none.
NO_REPEATS = {"frequency_penalty": 0.5, "presence_penalty": 0.5}
# Time behind a job's deadline after which its call is given up; until then it ends by itself.
GRACE_S = 2.0
# A turn that anybody may hear and nobody asked for.
ORDINARY = TurnRequest()

Person = Mapping[str, Any]  # somebody who is here, as the game tells it


def build_prompt(script: Thinker, request: TurnRequest = ORDINARY, **options: Any) -> Prompt:
    """The prompt of a model call that is made now; its budget is noted.

    Arguments and result are those of `draft_prompt`.
    """
    prompt = draft_prompt(script, request, **options)
    model, log = options.get("model", ""), script.prompts
    if request.context == CONTEXT_AWAKE:
        log.left_out = frozenset(prompt.left_out)
    if request.context == CONTEXT_AWAKE and not model:
        log.fixed_tokens = prompt.budget.fixed
        # The notes that it tells before the line to answer stay there, so that the next prompt
        # begins with this one, and a server's cache holds.
        notes = log.shown_notes
        for key in (*prompt.left_out, *request.source_ids):
            notes.pop(key, None)
        if request.source_ids and prompt.told.texts:
            notes[request.source_ids[0]] = prompt.told
        while len(notes) > MOST_KEPT_NOTES:
            del notes[next(iter(notes))]
    name = model or script.model_name
    _note(script, prompt.budget, purpose=request.context, model=name, audience=request.audience)
    return prompt


def _note(script: Thinker, budget: TokenBudget, **about: Any) -> TokenBudget:
    """Log the budget of a request that is about to be made; returns the event."""
    return script.prompts.note(replace(budget, at=script.now(), **about))


def draft_prompt(
    script: Thinker,
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
        request: What the turn is for; only what its audience and its asker may know is shown.
        withdrawn: Names of tools not offered any more.
        since: Id of the newest message when the turn began. What came after it stands behind the
            present moment, so that the turn's tool results come last.
        found: What this turn's searches gave, by the id of the result, where less is stored.
        model: The model it is for, if not its own: a fallback may have a smaller window.
    """
    draft = _Draft(script, request, script.limits(model))
    limits, traits = draft.limits, script.tools.traits
    seen, has_summaries = script.seen(request.audience, True), script.config.compact_enabled
    history, older = shown_history(seen, has_summaries, script.limits().tokens)
    # Also of somebody whose words are in quarantine: what is said now is answered.
    asked = script.seen(request.audience).by_ids(request.source_ids)
    answered = tuple(message for message in asked if message.speaker)
    answers = {message.id for message in answered}
    shown = [_as_shown(m, found) for m in history if m.id not in answers]
    if not draft.is_offline:
        shown = [m for m in shown if m.metadata.get("model") != OFFLINE_MODEL]
    newer = frozenset[str]()
    if since:
        newer = frozenset(message.id for message in history if message.id > since)
    called = frozenset[str]()
    if not limits.calls_tools:
        shown = _without_calls(shown, newer, traits.speaks)
        # What it has called all the same goes on as a call of a tool that is offered.
        called = frozenset(c["function"]["name"] for m in shown for c in m.tool_calls)
    regions = replace(
        draft.fixed(withdrawn, called),
        history=tuple(shown),
        answered=answered,
        archived=older,
        retrieved=tuple(
            conversation.memory_row(hit, script.now(), limits.calls_tools)
            for hit in sorted(request.retrieved, key=lambda hit: hit.kind == "summary")
        ),
        newer=newer,
    )
    people = frozenset(str(person["id"]) for person in draft.present)
    steady, passing = draft.steady_notes(), draft.passing_notes()
    # Of what earlier prompts told, nothing stays that names somebody who is not seen now.
    kept: dict[str, Mapping[str, str]] = {}
    if not draft.is_offline:
        notes = script.prompts.shown_notes
        told_before = ((m.id, notes[m.id]) for m in shown if m.id in notes)
        kept = {key: told.texts for key, told in told_before if told.people <= people}
    while True:
        holds = {label: text for texts in kept.values() for label, text in texts.items()}
        now = steady
        if conversation.LANGUAGE in holds:  # English is named where another one was
            now = {conversation.LANGUAGE: english_name(DEFAULT), **steady}
        told = {label: text for label, text in now.items() if text != holds.get(label)}
        regions = replace(
            regions,
            tail=(*map(note, told, told.values()), *passing),
            kept={key: "\n".join(map(note, each, each.values())) for key, each in kept.items()},
        )
        prompt = fit_prompt(regions, limits.caps, limits.tokens, script.count)
        if kept.keys().isdisjoint(prompt.left_out):
            named = frozenset[str]()
            if conversation.HERE in told:
                named = people
            return replace(prompt, told=ShownNotes(told, named))
        # What they said is said anew.
        kept = {key: texts for key, texts in kept.items() if key not in prompt.left_out}


def _without_calls(
    messages: Sequence[Message], newer: Collection[str], speaks: Collection[str]
) -> list[Message]:
    """A history for a model that has no tools: what was said by calls of tools is said.

    What the turn itself called, in messages of `newer` ids, stays as the model called it.
    """
    shown = []
    for message in messages:
        if message.id in newer:
            shown.append(message)
            continue
        if message.role == "tool":
            continue
        if message.tool_calls:
            made = (call.get("function") or {} for call in message.tool_calls)
            said = (spoken_text(call) for call in made if call.get("name") in speaks)
            text = "\n".join(filter(None, (message.content, *said)))
            message = replace(message, content=text, tool_calls=(), tokens=0)
        if message.content or message.role != "assistant":
            shown.append(message)
    return shown


def _as_shown(message: Message, found: Mapping[str, str]) -> Message:
    """A message as a prompt shows it.

    A search's result in full in its own turn; a reply without what it said before.
    """
    text = message.metadata.get(SAID_ONCE) or found.get(message.id)
    if not text:
        return message
    return replace(message, content=str(text), tokens=0)


def measure_fixed(script: Thinker) -> Prompt:
    """Measure the tokens of the fixed regions without a turn, as at start; returns their prompt."""
    limits = script.limits()
    fixed = _Draft(script, ORDINARY, limits).fixed()
    prompt = fit_prompt(fixed, limits.caps, limits.tokens, script.count)
    script.prompts.fixed_tokens = prompt.budget.fixed
    return prompt


@dataclass(frozen=True)
class _Draft:
    """What a prompt is made from."""

    script: Thinker
    request: TurnRequest
    limits: Limits

    @property
    def is_offline(self) -> bool:
        """Whether it is for the offline model."""
        return self.limits.model == OFFLINE_MODEL

    @property
    def game(self) -> Surroundings:
        """What the one who asks may see, too."""
        return self.script.game.asked_by(self.request.asker)

    @cached_property
    def present(self) -> tuple[Person, ...]:
        """Those whom the assistant sees, and the one who asks sees too."""
        return self.game.present()

    def fixed(self, withdrawn: Collection[str] = (), called: Collection[str] = ()) -> Regions:
        """What stands before the talk: tools, system text, notes of the ledger, examples.

        A model that speaks only is offered the tools that it has `called` all the same.
        """
        script, limits, config, game = self.script, self.limits, self.script.config, self.game
        me, things = script.obj.key, list(game.things().values())[:MOST_NAMES]
        where = conversation.place_text(game.place(), things, game.carried()[:MOST_NAMES])
        # Examples are the card's, else those of its language: the one that is set, else the
        # persona's. A base model goes on with others as if they had been said here.
        examples: tuple[conversation.Exchange, ...] = ()
        if not self.is_offline:
            examples = conversation.own_examples(config.examples or "", me)
        if limits.is_base and not self.is_offline:
            system = f"{plain_identity(me, config.persona, config.language)}\n\n{where}"
        else:
            system = system_prompt(me, config.persona, where, limits.calls_tools, config.language)
            if not (examples or self.is_offline):
                language = code_of(config.language)
                if config.language == AUTO:
                    language = language_of(config.persona)
                newest = script.seen(self.request.audience).newest()
                # With names that nobody here bears.
                met = {person["key"] for person in self.present}
                met |= {message.speaker_name for message in newest if message.speaker_name}
                examples = conversation.shipped_examples(language or DEFAULT, me, met)
        notes = script.seen(self.request.audience, trusted=True).pinned()
        return Regions(
            system,
            tuple(tool.schema() for tool in self._offered(called) if tool.name not in withdrawn),
            examples=examples,
            ledger=tuple((HEADINGS[n.kind], note_line(n.id, n.at, n.by, n.text)) for n in notes),
            has_ids=limits.calls_tools,
        )

    def _offered(self, called: Collection[str]) -> Sequence[Offered]:
        """The tools that may serve the turn (`Tool.serves`).

        To the offline model they cost nothing. A call of another one is judged like any call;
        nothing depends on its being left out.
        """
        script, asker, game = self.script, self.request.asker, self.game
        if not (self.limits.calls_tools or called):
            return ()
        tools = script.tools.offered()
        if not self.limits.calls_tools:
            tools = [tool for tool in tools if tool.name in called]
        serves = {*SERVES}
        if asker is None:
            serves = {*USUAL}
        elif not self.is_offline:
            seen, has_things = script.seen(self.request.audience), game.has_things()
            serves_now = {
                "obeyed": game.obeys(),
                "met": seen.profile(asker) is not None,
                "things": has_things,
                "carried": has_things and bool(game.carried()),
                "older": seen.has_summaries(),
                "full": script.usage() >= script.config.compact_sleep_threshold / 2,
                "sleep": False,
            }
            serves -= {name for name, does in serves_now.items() if not does}
        tools = [tool for tool in tools if tool.serves in serves]
        if self.request.context == CONTEXT_UNASKED:  # nothing else may be done unasked
            tools = [tool for tool in tools if tool.silent or (tool.speaks and not tool.to_one)]
        return tools

    def steady_notes(self) -> dict[str, str]:
        """What mostly holds from turn to turn, by label: time, people, language."""
        here = sorted((str(one["key"]), bool(one.get("assistant"))) for one in self.present)
        notes = {
            conversation.NOW: flat(self.game.time(self.script.now())),
            conversation.HERE: conversation.people_named(here),
        }
        if self.request.language:
            notes[conversation.LANGUAGE] = self.request.language
        return notes

    def passing_notes(self) -> list[str]:
        """What is told for one turn: what is known of who and what is here, what was done.

        It holds what the assistant sees, and the one who asks may see too.
        """
        script, request, game = self.script, self.request, self.game
        seen, rows = script.seen(request.audience, trusted=True), list[str]()
        people = sorted(self.present, key=lambda person: person["id"] != request.asker)
        names = {str(person["id"]): str(person["key"]) for person in people}
        for known in (*names, str(game.place()["id"]), *game.things()):
            profile = seen.profile(known)
            if profile and (facts := profile.facts(request.audience, PROFILE_FACTS)):
                rows.append(
                    note(f"{conversation.ABOUT} {shown_name(profile.name)}", "; ".join(facts))
                )
        rows += [note(conversation.MIND, line) for line in script.on_mind(request, names)]
        rows += [note(conversation.DONE, what) for what in request.done]
        rows += [note(conversation.UNDONE, why) for why in request.undone]
        if request.reason:
            reason = request.reason.rstrip(".")
            wish = "Say or do one short thing of your own in the language of the talk, or nothing."
            rows.append(note(conversation.NOBODY, f"{reason}. {wish}"))
        return rows


def shown_history(seen: View, has_summaries: bool, limit: int) -> tuple[tuple[Message, ...], int]:
    """The live messages a viewer may see, and how many archived ones could not fit.

    With compaction switched off there are no summaries: the raw history is shown instead, from
    the archive and unmasked, as far back as the limit could hold.
    """
    live = seen.messages()
    if has_summaries:
        return tuple(live), 0
    raw = [unmasked(m) for m in live if not m.is_summary]
    if len(raw) == len(live):
        return tuple(raw), 0
    shown, older = seen.as_if_never_compacted(raw, limit)
    return tuple(shown), older


def build_llm_messages(
    script: Thinker,
    character: Body,
    audience: str = PUBLIC,
    context: str = CONTEXT_AWAKE,
    **fields: Any,
) -> list[dict[str, Any]]:
    """The messages sent to the model, within budget; arguments as for `TurnRequest`."""
    return list(build_prompt(script, TurnRequest(audience, context, **fields)).messages)


def model_request(
    script: Thinker,
    prompt: Prompt,
    purpose: str,
    max_tokens: int | None = None,
    model: str = "",
) -> ModelRequest:
    """The request for a prompt, by the assistant's API and tool protocol.

    `model` is its own, the offline one, or a fallback, after which only later ones are asked.
    """
    config, name, timeout_s = (
        script.config,
        model or script.model_name,
        script.config.turn_timeout_s,
    )
    reserve, is_job = prompt.budget.regions["Reserve"], purpose not in (*SPOKEN, READ_AHEAD)
    called: Iterable[str] = script.tools.tools
    if is_job:
        called = (tool["function"]["name"] for tool in prompt.tools)
    if purpose in SPOKEN:  # else nobody waits: its one try may take the whole time
        timeout_s = config.llm_timeout_s
    request = ModelRequest(
        model=name,
        messages=prompt.messages,
        tools=prompt.tools,
        timeout_s=timeout_s,
        within_s=config.turn_timeout_s,
        purpose=purpose,
        prompt_tokens=prompt.budget.total - reserve,
        called=frozenset(called),
        reported=is_job,
        max_tokens=max_tokens or reserve,
    )
    if name == OFFLINE_MODEL:
        return request
    fallbacks = tuple(config.llm_fallback_models)
    if name in fallbacks:
        fallbacks = fallbacks[fallbacks.index(name) + 1 :]
    is_base, defaults = config.llm_api == "completion", dict[str, Any]()
    if not is_job:
        defaults["temperature"] = TEMPERATURE
        if is_base:
            defaults |= NO_REPEATS
    extra = {**defaults, **config.llm_extra}
    request = replace(request, fallback_models=fallbacks, thinking=config.llm_thinking, extra=extra)
    if not is_base:
        return request
    if purpose == CONTEXT_PRE_COMPACTION:
        text, stops = as_task_prompt(prompt.messages, FACTS), FACTS_STOPS
    else:
        text, stops = as_transcript(prompt.messages, script.obj.key), STOPS
    return replace(request, api="completion", prompt=text, stop=stops, messages=(), tools=())


@inlineCallbacks
def ask_job(
    script: Thinker,
    request: ModelRequest,
    budget: TokenBudget,
    audience: str = PUBLIC,
    trigger: str = "",
) -> Steps[ModelReply]:
    """Make a job's request, and log its budget and what it used.

    Fails with `ModelError` also where the answer never comes.
    """
    about = {"purpose": request.purpose, "model": request.model, "audience": audience}
    event = _note(script, budget, **about, trigger=trigger)
    try:
        reply: ModelReply = yield in_time(
            script.spend.complete(request), request.within_s + GRACE_S
        )
    except TimeoutError as error:
        raise ModelError(f"{request.model} did not answer in time", kind="timeout") from error
    script.spent(reply, request.purpose, script.prompts.answered(event, reply))
    return reply


def job_prompt(
    system: str,
    text: str,
    size: int,
    reserve: int,
    limit: int,
    count: Counter,
    tools: Sequence[dict[str, Any]] = (),
) -> Prompt:
    """The prompt of a job that the assistant does on itself: rules, tools, a text of a size."""
    sizes = dict.fromkeys(REGIONS, 0) | {
        "System": count(system) + OVERHEAD_TOKENS,
        "Tools": tools_tokens(tools, count),
        "History": size + OVERHEAD_TOKENS,
        "Reserve": reserve,
    }
    messages = ({"role": "system", "content": system}, {"role": "user", "content": text})
    return Prompt(messages, tuple(tools), TokenBudget(regions=sizes, limit=limit))


def with_exchange(
    prompt: Prompt,
    text: str,
    calls: Sequence[Mapping[str, Any]],
    results: Sequence[str],
    count: Counter,
) -> Prompt:
    """The prompt of a job with a reply's calls and their results behind it."""
    new = [{"role": "assistant", "content": text, "tool_calls": list(calls)}]
    for call, result in zip(calls, results, strict=True):
        name = call["function"]["name"]
        new.append({"role": "tool", "tool_call_id": call["id"], "name": name, "content": result})
    sizes = {**prompt.budget.regions}
    sizes["History"] += sum(count(str(each)) + OVERHEAD_TOKENS for each in new)
    budget = replace(prompt.budget, regions=sizes)
    return replace(prompt, messages=(*prompt.messages, *new), budget=budget)
