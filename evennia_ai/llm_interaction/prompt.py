"""From an assistant's state to the request a model gets, within its budget."""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from twisted.internet.defer import Deferred, TimeoutError, inlineCallbacks

from evennia_ai.background import in_time
from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import Note, flat, note, shown_name
from evennia_ai.history.messages import OVERHEAD_TOKENS, SAID_ONCE, Message, mask_of, unmasked
from evennia_ai.language.tables import AUTO, DEFAULT, code_of, english_name, language_of
from evennia_ai.llm_interaction import conversation
from evennia_ai.llm_interaction.budget import NOTE_CHARS, NOTES_KEPT, Limits, TokenBudget
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_AWAKE,
    CONTEXT_UNASKED,
    CONTEXTS,
    SPOKEN,
    job_system_prompt,
    plain_identity,
    system_prompt,
    written_language,
)
from evennia_ai.llm_interaction.regions import (
    HEADINGS,
    Prompt,
    Regions,
    fit_prompt,
    note_line,
    text_tokens,
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
from evennia_ai.protocol import Assistant, Character
from evennia_ai.recall.values import brief

# When a tool is offered, to whoever speaks; the first of them may well serve any turn.
USUAL = ("", "met", "things", "carried", "older")
SERVES = (*USUAL, "asked", "obeyed", "full", "sleep")
# Observations of each person present, of the place and of each thing in it that the tail shows
# at most.
PROFILE_FACTS = 3
# Names of people and things that a prompt lists at most.
MOST_NAMES = 20
# Players of whom it is asked whom they see, before who is here is kept.
MOST_LOOKERS = 10
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

Notes = Mapping[str, str]  # by label


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
            _keep_notes(script, request, prompt)
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
    name, limits = model or script.model_name, script.limits(model)
    history, older = shown_history(script, request.audience)
    # Also of somebody whose words are in quarantine: what is said now is answered.
    asked = script.seen(request.audience).by_ids(request.source_ids)
    answered = tuple(message for message in asked if message.speaker)
    answers = {m.id for m in answered}
    recalls = script.tools.traits.recalls
    shown = [_as_shown(m, found, recalls) for m in history if m.id not in answers]
    if name != OFFLINE_MODEL:
        shown = [m for m in shown if m.metadata.get("model") != OFFLINE_MODEL]
    ids = [message.id for message in history]
    newer = frozenset(ids[ids.index(since) + 1 :]) if since in ids else frozenset[str]()
    fixed = _fixed(script, character, request, withdrawn, name)
    if not limits.calls_tools:
        shown = _without_calls(shown, newer, script.tools.traits.speaks)
        # What it has called all the same goes on as a call of a tool that is offered.
        called = {call["function"]["name"] for message in shown for call in message.tool_calls}
        offered = _offered(script, request, withdrawn, limits.model) if called else ()
        tools = tuple(tool for tool in offered if tool["function"]["name"] in called)
        fixed = replace(fixed, tools=tools)
    steady, passing = _steady_notes(script, request), tuple(_passing_notes(script, request))
    kept = {} if name == OFFLINE_MODEL else _kept_notes(script, request.asker, shown)
    regions = replace(
        fixed,
        history=tuple(shown),
        answered=answered,
        archived=older,
        retrieved=tuple(
            conversation.memory_row(hit, script.now(), limits.calls_tools)
            for hit in sorted(request.retrieved, key=lambda hit: hit.kind == "summary")
        ),
        newer=newer,
    )

    def with_notes(kept: Mapping[str, Notes]) -> Regions:
        holds = {label: text for notes in kept.values() for label, text in notes.items()}
        return replace(
            regions,
            tail=(*_changed_notes(steady, holds), *passing),
            kept={id: "\n".join(map(note, notes, notes.values())) for id, notes in kept.items()},
        )

    prompt = _fitted(script, with_notes(kept), model)
    if not kept.keys().isdisjoint(prompt.left_out):
        # What they said is said anew.
        kept = {id: notes for id, notes in kept.items() if id not in prompt.left_out}
        prompt = _fitted(script, with_notes(kept), model)
    return prompt


def _changed_notes(steady: Notes, holds: Notes) -> list[str]:
    """The notes that differ from those that the talk shows already.

    English is named only where another language was.
    """
    if conversation.LANGUAGE in holds:
        steady = {conversation.LANGUAGE: english_name(DEFAULT), **steady}
    return [note(label, text) for label, text in steady.items() if text != holds.get(label)]


def _kept_notes(
    script: Assistant, asker: str | None, history: Sequence[Message]
) -> dict[str, Notes]:
    """The notes that earlier prompts showed before messages of a history, by the messages' ids.

    None that names somebody who has hidden since.
    """
    shown, game = script.runtime.shown_notes, script.game.asked_by(asker)
    hidden = game.here().keys() - {person["id"] for person in game.present()}
    return {
        message.id: notes.texts
        for message in history
        if (notes := shown.get(message.id)) and hidden.isdisjoint(notes.people)
    }


def _keep_notes(script: Assistant, request: TurnRequest, prompt: Prompt) -> None:
    """Remember the notes that a prompt shows before the line to answer.

    So the next prompt begins with this one, and a server's cache holds. Who is here is kept only
    where nobody is masked or hides from anybody, as what is kept is shown to whoever asks next.
    """
    shown = script.runtime.shown_notes
    for message_id in prompt.left_out:
        shown.pop(message_id, None)
    if not request.source_ids:
        return
    notes = {
        line.label: line.text
        for line in conversation.read_lines(prompt.moment)
        if isinstance(line, Note) and line.label in conversation.STEADY
    }
    if conversation.HERE in notes and not _everybody_is_open(script):
        del notes[conversation.HERE]
    shown.pop(request.source_ids[0], None)
    if notes:
        game = script.game.asked_by(request.asker)
        people = game.present() if conversation.HERE in notes else ()
        ids = frozenset(str(person["id"]) for person in people)
        shown[request.source_ids[0]] = ShownNotes(notes, ids)
    while len(shown) > MOST_KEPT_NOTES:
        del shown[next(iter(shown))]


def _everybody_is_open(script: Assistant) -> bool:
    """Whether all who are here are seen by everybody, as far as the assistant sees them."""
    people = script.game.present()
    ids = {person["id"] for person in people}
    players = [person["id"] for person in people if person["player"]]
    return all(person.get("open", True) for person in people) and all(
        ids == {person["id"] for person in script.game.asked_by(player).present()}
        for player in players[:MOST_LOOKERS]
    )


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


def _as_shown(message: Message, found: Mapping[str, str], recalls: Collection[str]) -> Message:
    """A message as a prompt shows it.

    A search's result in full in its own turn, brief later; a reply without what it said before.
    """
    if once := message.metadata.get(SAID_ONCE):
        return replace(message, content=str(once), tokens=0)
    if message.role != "tool" or message.name not in recalls or mask_of(message):
        return message
    text = found.get(message.id) or brief(message.content)
    return message if text == message.content else replace(message, content=text, tokens=0)


def _fitted(script: Assistant, regions: Regions, model: str = "") -> Prompt:
    limits = script.limits(model)
    return fit_prompt(regions, limits.caps, limits.tokens, script.count)


def measure_fixed(script: Assistant, character: Character) -> Prompt:
    """Measure the tokens of the fixed regions without a turn, as at start; returns their prompt."""
    prompt = _fitted(script, _fixed(script, character, ORDINARY))
    _note_fixed(script, prompt)
    return prompt


def _note_fixed(script: Assistant, prompt: Prompt) -> None:
    sizes = prompt.budget.regions
    fixed = ("System", "Tools", "Ledger", "Examples")
    script.runtime.fixed_tokens = sum(sizes[name] for name in fixed)


def _fixed(
    script: Assistant,
    character: Character,
    request: TurnRequest,
    withdrawn: Sequence[str] = (),
    model: str = "",
) -> Regions:
    """What stands before the talk: tools, system text, notes of the ledger, examples."""
    limits = script.limits(model)
    notes = script.seen(request.audience, trusted=True).pinned()
    return Regions(
        _system(script, character, request, limits),
        _offered(script, request, withdrawn, limits.model) if limits.calls_tools else (),
        examples=_examples(script, character, request) if limits.model != OFFLINE_MODEL else (),
        ledger=tuple((HEADINGS[n.kind], note_line(n.id, n.at, n.by, n.text)) for n in notes),
        has_ids=limits.calls_tools,
    )


def _offered(
    script: Assistant, request: TurnRequest, withdrawn: Sequence[str], model: str
) -> tuple[dict[str, Any], ...]:
    """The schemas of the tools that may serve a turn; to the offline model they cost nothing."""
    if model == OFFLINE_MODEL and request.asker is not None:
        serves: Collection[str] = SERVES
    else:
        serves = _serving(script, request.audience, request.asker)
    return tuple(
        tool.schema()
        for tool in script.tools.offered()
        if tool.serves in serves and tool.name not in withdrawn
        # Nothing else may be done unasked.
        if request.context != CONTEXT_UNASKED or tool.silent or (tool.speaks and not tool.to_one)
    )


def _system(script: Assistant, character: Character, request: TurnRequest, limits: Limits) -> str:
    """The system text; base models get a description, no rules."""
    config, name, game = script.config, character.key, script.game.asked_by(request.asker)
    place, things = game.place(), [*game.things().values()]
    carried = game.carried()[:MOST_NAMES]
    where = conversation.place_text(place, things[:MOST_NAMES], carried)
    if limits.is_base and limits.model != OFFLINE_MODEL:
        return f"{plain_identity(name, config.persona, config.language)}\n\n{where}"
    return system_prompt(name, config.persona, where, limits.calls_tools, config.language)


def _examples(
    script: Assistant, character: Character, request: TurnRequest
) -> tuple[conversation.Exchange, ...]:
    """Exchanges that show how the assistant talks: the card's, else those of its language.

    That is the language that is set, else the persona's. A base model is shown the card's alone: it
    goes on with others as if they had been said here.
    """
    config, me = script.config, character.key
    own = conversation.own_examples(config.examples or "", me)
    if own or config.llm_api == "completion":
        return own
    language = code_of(config.language) if config.language != AUTO else language_of(config.persona)
    met = {person["key"] for person in script.game.asked_by(request.asker).present()}
    met |= {m.speaker_name for m in script.seen(request.audience).newest() if m.speaker_name}
    return conversation.shipped_examples(language or DEFAULT, me, met)


def _serving(script: Assistant, audience: str, asker: str | None) -> Collection[str]:
    """What tools may serve in a turn for an audience and whom it answers (`Tool.serves`).

    A call of another one is judged like any call; nothing depends on its being left out.
    """
    if asker is None:
        return USUAL
    game, seen = script.game.asked_by(asker), script.seen(audience)
    serves = {
        "": True,
        "asked": True,
        "obeyed": game.obeys(),
        "met": seen.profile(asker) is not None,
        "things": (has_things := game.has_things()),
        "carried": has_things and bool(game.carried()),
        "older": seen.has_summaries(),
        "full": script.usage() >= script.config.compact_sleep_threshold / 2,
    }
    return [name for name, does in serves.items() if does]


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


def _steady_notes(script: Assistant, request: TurnRequest) -> dict[str, str]:
    """What mostly holds from turn to turn, by label: time, people here, the language to answer in.

    The people are those whom the assistant sees, and the one who asks sees too.
    """
    game = script.game.asked_by(request.asker)
    people = sorted(game.present(), key=lambda person: str(person["key"]))
    named = ((each["key"], bool(each.get("assistant"))) for each in people)
    notes = {
        conversation.NOW: flat(game.time(script.now())),
        conversation.HERE: conversation.people_named(named),
    }
    if request.language:
        notes[conversation.LANGUAGE] = request.language
    return notes


def _passing_notes(script: Assistant, request: TurnRequest) -> list[str]:
    """What is told for one turn, as notes: what is known of who and what is here, what was done.

    It holds what the assistant sees, and the one who asks may see too.
    """
    audience, asker, game = request.audience, request.asker, script.game.asked_by(request.asker)
    seen = script.seen(audience, trusted=True)
    people = sorted(game.present(), key=lambda person: person["id"] != asker)
    rows = []
    place = str(game.place()["id"])
    for known in (*(str(person["id"]) for person in people), place, *game.things()):
        if (profile := seen.profile(known)) and (facts := profile.facts(audience, PROFILE_FACTS)):
            rows.append(note(f"{conversation.ABOUT} {shown_name(profile.name)}", "; ".join(facts)))
    present = {str(person["id"]): str(person["key"]) for person in people}
    for lines in script.of_features(lambda each: [*each.lines(script, request, present)]):
        rows += [note(conversation.MIND, line) for line in lines or ()]
    rows += [note(conversation.DONE, what) for what in request.done]
    rows += [note(conversation.UNDONE, why) for why in request.undone]
    if request.reason:
        rows.append(
            note(
                conversation.NOBODY,
                f"{request.reason.rstrip('.')}. Say or do one short thing of your own in the "
                "language of the talk, or nothing.",
            )
        )
    return rows


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
    name = model or script.model_name
    if name in fallbacks:
        fallbacks = fallbacks[fallbacks.index(name) + 1 :]
    reserve, is_awaited = prompt.budget.regions["Reserve"], purpose in SPOKEN
    is_aloud = is_awaited or purpose == READ_AHEAD
    offered = (tool["function"]["name"] for tool in prompt.tools)
    request = ModelRequest(
        model=name,
        messages=prompt.messages,
        tools=prompt.tools,
        # Nobody waits for what is read ahead, or for a job: its one try may take the whole time.
        timeout_s=config.llm_timeout_s if is_awaited else config.turn_timeout_s,
        within_s=config.turn_timeout_s,
        purpose=purpose,
        prompt_tokens=prompt.budget.total - reserve,
        called=frozenset(script.tools.tools if is_aloud else offered),
        reported=not is_aloud,
        max_tokens=max_tokens or reserve,
    )
    if name == OFFLINE_MODEL:
        return request
    extra = {"temperature": TEMPERATURE, **config.llm_extra} if is_aloud else config.llm_extra
    if is_aloud and config.llm_api == "completion":
        extra = {**NO_REPEATS, **extra}
    request = replace(request, fallback_models=fallbacks, thinking=config.llm_thinking, extra=extra)
    if config.llm_api != "completion":
        return request
    if purpose in CONTEXTS and not is_awaited:
        text, stops = as_task_prompt(request.messages, FACTS), FACTS_STOPS
    else:
        text, stops = as_transcript(request.messages, character.key), STOPS
    return replace(request, api="completion", prompt=text, stop=stops, messages=(), tools=())


@inlineCallbacks
def ask_job(
    script: Assistant,
    request: ModelRequest,
    budget: TokenBudget,
    audience: str = PUBLIC,
    trigger: str = "",
) -> Generator[Deferred[Any], Any, ModelReply]:
    """Make a job's request, and log its budget and what it used.

    Fails with `ModelError` also where the answer never comes.
    """
    event = note_request(script, budget, request.purpose, request.model, audience, trigger)
    try:
        reply: ModelReply = yield in_time(
            script.spend.complete(request), request.within_s + GRACE_S
        )
    except TimeoutError as error:
        raise ModelError(f"{request.model} did not answer in time", kind="timeout") from error
    script.spent(reply, request.purpose, script.budgets.answered(event, reply))
    return reply


def job_prompt(
    script: Assistant,
    character: Character,
    rules: str,
    text: str,
    tokens: int,
    tools: Sequence[dict[str, Any]],
) -> Prompt:
    """The prompt of a job that the assistant does on itself: rules, tools, a text of `tokens`."""
    language = written_language(script.config.language, text.splitlines())
    if script.limits().is_base and script.model_name != OFFLINE_MODEL:
        system = plain_identity(character.key, script.config.persona, language)
    else:
        system = job_system_prompt(character.key, script.config.persona, rules, language)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": text})
    limits = script.limits()
    sizes = {
        "System": text_tokens(system, script.count),
        "Tools": tools_tokens(tools, script.count),
        "History": tokens + OVERHEAD_TOKENS,
        "Reserve": limits.caps.reserve,
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


def asked_once_more(asked: ModelRequest, fault: str) -> ModelRequest:
    """A request whose reply was no answer, with the fault in one sentence before the line.

    It begins as the first did, so that a server's cache holds.
    """
    return replace(asked, messages=conversation.asked_again(asked.messages, fault))
