"""Running the tools a model called: look up, check, run, and one result for each call.

An act needs an asker: whose own words of this turn name what the act is about. A model may take any
text in its prompt for an order: somebody else's line, a name, a note, a memory, in whatever
encoding. So what counts is not what the model read but what the asker typed in this turn. An act
acts on objects, and the asker must have named each of them exactly. Else it waits until they
confirm it with a yes.

A call at level `confirm` waits: staff approve or refuse it, or it expires. A call that needs more
than a player's rights waits for a command of the one who asked. The assistant learns what came of
it by a notice in its history, for those who may know of the call.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import regex
from twisted.internet.defer import CancelledError, inlineCallbacks, maybeDeferred

from evennia_ai.background import Steps, in_time
from evennia_ai.errors import (
    AssistantError,
    BoundError,
    NotObeyedError,
    RankError,
    ToolError,
    UnaskedError,
)
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message
from evennia_ai.language.script import is_unparted, normalized
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import content_words, is_common, words
from evennia_ai.life import Named
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.runtime import BESIDE, Proposal
from evennia_ai.turns.tools.base import (
    ENOUGH,
    MOST_ACTS,
    NOT_SAID,
    WITHDRAW_AFTER,
    Name,
    Tool,
    ToolCall,
    ToolContext,
    ToolRegistry,
)
from evennia_ai.turns.waiting import WaitingCall, cut

RESULT_CHARS = 20_000
# Characters of the result of a call that staff approved that the assistant is told.
TOLD_CHARS = 2_000
WAITS = (
    "Not done yet: staff were asked to approve this, as number {number}. You will learn what comes "
    "of it. Do not call it again; say that it takes a while, if somebody waits."
)
TOOL_TIMEOUT_S = 60.0
# Most characters of a value that an asker is shown.
SHOWN_CHARS = 60
_TAKEN = "\0"  # stands for a stretch that names something already
# Signs that go on with a word, and a hyphen or an apostrophe between a name and more of it. What is
# joined to a stretch that is taken is its ending.
_GOES_ON = rf"[{_TAKEN}\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}\p{{Cf}}]"
_BEFORE = rf"(?<!{_GOES_ON}|{_GOES_ON}[-‐‑'’‘`´])"
_BEHIND = rf"(?!{_GOES_ON}|[-‐‑]{_GOES_ON})"
# The article that French and Italian join to a thing: `l'anneau`, `d'argent`.
_ELIDED = rf"(?:(?<=(?<!{_GOES_ON})[dl]['’])|{_BEFORE})"
# Where somebody else's words may begin.
_QUOTE = regex.compile(r"[[\p{Quotation_Mark}《》〈〉❝❞❛❜″‶]--['’‘‚‛]]|<<|(?<!\w)['‘‚‛`]", regex.V1)
_COLON = regex.compile(r":(?=\s)|：")


@dataclass(frozen=True)
class Outcome:
    """What came of a call."""

    call: ToolCall
    said: str  # its result, or why there is none
    acted: bool = False  # whether it did something, or is not to be tried again
    failed: bool = False

    @property
    def message(self) -> Message:
        """Its one result in the history."""
        text = self.said
        if self.failed:
            text = as_text({"error": text})
        return Message(
            "tool", text, tool_call_id=str(self.call.raw.get("id", "")), name=self.call.name
        )

    @property
    def ended(self) -> bool:
        """Whether it ended the turn."""
        return self.call.tool.ends_turn and self.acted

    @property
    def concluded(self) -> bool:
        """Whether it leaves nothing new to tell the model."""
        return self.call.tool.concludes and self.acted and not self.failed


def batches(
    calls: Iterable[ToolCall], addressee: Callable[[ToolCall], str]
) -> Iterator[tuple[str, list[ToolCall]]]:
    """Calls in the batches they are stored and run in, with whom alone each is for, if any.

    No batch is private to two people. Calls of tools that end the turn come last, so that all
    others are still made. `addressee` gives the only person a call is meant for, or nothing.
    """
    person, batch = "", list[ToolCall]()
    for call in sorted(calls, key=lambda call: call.tool.ends_turn):
        only_for = addressee(call)
        if only_for and person and only_for != person:
            yield person, batch
            batch = []
        person = only_for or person
        batch.append(call)
    if batch:
        yield person, batch


@inlineCallbacks
def run_call(call: ToolCall, ctx: ToolContext) -> Steps[Outcome]:
    """Run a call; fires with what came of it.

    A tool that fails, is unknown, refused or called with bad arguments gives an error as its
    result; nothing is raised. A call at level `confirm`, or that needs more than a player's rights,
    waits, unless it is approved.
    """
    try:
        outcome: Outcome = yield _checked_and_run(call, ctx)
    except AssistantError as error:
        # Of a bound nothing failed, and nothing is left to tell the model.
        is_bound = isinstance(error, BoundError)
        ctx.script.audit("tool_refused", tool=call.name, why=str(error)[:200])
        outcome = Outcome(call, str(error), acted=is_bound, failed=not is_bound)
        if not is_bound:
            ctx.refusals.append(str(error))
    except CancelledError:
        raise  # the turn was stopped; the next start or turn gives the call its result
    except Exception as error:  # noqa: BLE001 - a game's own tool must not end the turn
        ctx.script.log_error(f"tool `{call.name}` failed", error)
        outcome = Outcome(call, f"the tool failed ({type(error).__name__})", failed=True)
    ctx.failures[call.name] = ctx.failures[call.name] + 1 if outcome.failed else 0
    return outcome


@inlineCallbacks
def _checked_and_run(call: ToolCall, ctx: ToolContext) -> Steps[Outcome]:
    """Fires with what came of a call that may be made; raises `AssistantError` if it may not."""
    registry, approved = ctx.tools, ctx.approved
    _check_usable(call, ctx, registry.offered())
    tool, objects = call.tool, named_objects(call, ctx)
    ids = {key: each.id for key, each in objects.items()}
    call = replace(call, arguments={**call.arguments, **ids}, objects=objects)
    if approved is None:
        _check_authority(call, ctx)
    level = registry.level(call.name)
    if level == "dry run":
        ctx.script.audit("tool_dry_run", tool=call.name, audience=ctx.audience)
        return Outcome(call, "Dry run: this tool is being tried out and did nothing.")
    if level == "confirm" and (approved is None or approved.by_asker):
        waiting, key = _add_waiting(call, ctx), ctx.character.key
        ctx.script.tell_controllers(
            f"{key} waits for your approval: {waiting.line}. Type: ai/approve {key} = "
            f"{waiting.number} or ai/refuse {key} = {waiting.number}",
            waiting.known_to,
        )
        return Outcome(call, WAITS.format(number=waiting.number))
    running = maybeDeferred(tool.run, ctx, **call.arguments)
    result = yield in_time(running, min(TOOL_TIMEOUT_S, ctx.left_s()))
    ctx.script.audit("tool", tool=call.name, audience=ctx.audience)
    ctx.has_acted = ctx.has_acted or tool.public_act
    return Outcome(call, as_text(result), acted=True)


def _check_usable(call: ToolCall, ctx: ToolContext, offered: Collection[Tool]) -> None:
    """Raise `ToolError` if a call's tool may not be used now, or not so."""
    tool, name = call.tool, call.name
    if tool not in offered:
        known = ", ".join(each.name for each in offered)
        raise ToolError(f"there is no tool `{name}`; these are: {known}")
    if name in ctx.withdrawn:
        raise ToolError(f"`{name}` failed {WITHDRAW_AFTER} times and is withdrawn for this turn")
    if tool.public_act and ctx.is_secret:
        raise ToolError("this talk is private; answer in plain text, others would notice that")
    if not ctx.game.allowed(tool.lock):
        raise ToolError(f"`{name}` is not allowed for you or for the one who asks")
    is_posted = tool.obeyed and ctx.script.config.post
    if is_posted and ctx.asker and not ctx.game.obeys():
        raise NotObeyedError(ctx.asker_name())
    if tool.public_act:
        ctx.acts += 1
        if ctx.acts > MOST_ACTS:
            raise BoundError(f"{ENOUGH}you have done {MOST_ACTS} things in this turn; call noop")
    if call.fault:
        raise ToolError(call.fault)
    if tool.speaks and call.arguments.get("text") == NOT_SAID:
        raise ToolError("that may not be said here; say something else or call noop")


def _check_authority(call: ToolCall, ctx: ToolContext) -> None:
    """Raise `ToolError` for a call that may not be done, or that the one who asks must confirm.

    What needs more than a player's rights is shown to them at once, and waits for their command.
    """
    touched = call.objects.values() if call.tool.is_act else ()
    if not ctx.game.needs_rank(call.tool.lock, touched):
        return check_asked(call, ctx)
    asker, name = str(ctx.asker), ctx.asker_name()
    waiting = _add_waiting(call, ctx, by_asker=True)
    question = (
        f"asks {name}: {waiting.act}? That needs more than a player's rights. If you want it, "
        f"type: ai/yes {ctx.character.key}"
    )
    ctx.game.show(question, private([asker]), ctx.channel, asker)
    raise RankError(name)


def named_objects(call: ToolCall, ctx: ToolContext) -> dict[str, Named]:
    """The objects that a call's arguments mean, by argument name; `ToolError` if one is not here.

    A call that was approved means those it was made for, by their ids, whoever bears the name now.
    """
    objects: dict[str, Named] = {}
    for key, parameter in call.tool.parameters.items():
        if not isinstance(parameter, Name) or key not in call.arguments:
            continue
        if ctx.approved is None:
            objects[key] = ctx.game.named(call.arguments[key], parameter.place)
            continue
        name, id = ctx.approved.object(key)
        with suppress(ToolError):
            objects[key] = ctx.game.named(id, parameter.place)
        if key not in objects or objects[key].id != id:
            raise ToolError(f"`{name}` is not here")
    return objects


def as_text(result: object) -> str:
    """A tool's result as the text a model gets: texts as they are, the rest as JSON."""
    text = result
    if not isinstance(text, str):
        text = json.dumps(result, ensure_ascii=False, default=str)
    if len(text) <= RESULT_CHARS:
        return text
    return f"{text[:RESULT_CHARS]} [... {len(text) - RESULT_CHARS:,} more characters]"


def waiting_calls(assistant: Assistant, by_asker: bool = False) -> tuple[WaitingCall, ...]:
    """The calls that wait for staff now, or for those who asked, oldest first."""
    calls, now = assistant.state.waiting.calls, assistant.now()
    return tuple(call for call in calls if call.by_asker == by_asker and not call.is_over(now))


def _add_waiting(call: ToolCall, ctx: ToolContext, by_asker: bool = False) -> WaitingCall:
    """Store a call that waits, the ids of objects with their names."""
    assistant, known_to = ctx.script, ctx.audience
    if call.tool.to_one and known_to == PUBLIC and "target" in call.objects:
        known_to = private([call.objects["target"].id])
    names = {key: each.names[0] for key, each in call.objects.items()}
    ids = {key: each.id for key, each in call.objects.items()}
    new = WaitingCall(
        number=1,
        tool=call.name,
        arguments=json.dumps({**call.arguments, **names}, default=str),
        ids=json.dumps(ids),
        asker=ctx.asker or "",
        asker_name=ctx.asker_name() if ctx.asker else "",
        audience=ctx.audience,
        known_to=known_to,
        channel=ctx.channel,
        at=assistant.now(),
        sources=ctx.source_message_ids,
        by_asker=by_asker,
    )
    assistant.state.waiting = calls = assistant.state.waiting.with_call(new)
    waiting = calls.calls[-1]
    _audit(assistant, "waits", waiting)
    return waiting


@inlineCallbacks
def approve(assistant: Assistant, tools: ToolRegistry, number: int, by: str) -> Steps[str]:
    """Do what a waiting call asks for, in the situation of now. Call it under the turn lock.

    Locks are checked again for the assistant and for the one who asked, who must be here unless
    they paged. What forbids it is told in words, as to a model.

    Returns:
        A Deferred that fires with what came of it, or fails with `ToolError` if no such call
        waits.
    """
    assistant.runtime.lock.holder()
    call = _called(assistant, number)
    _drop(assistant, [call])  # a crash from here on must not do it twice
    _audit(assistant, "approved", call, by=by)
    text = "It was not done: the one who asked for it has left."
    ctx = ToolContext(
        assistant,
        tools,
        call.audience,
        call.asker or None,
        call.channel,
        source_message_ids=call.sources,
        approved=call,
    )
    [made] = tools.read([{"function": {"name": call.tool, "arguments": call.values}}])
    try:
        if not call.asker or call.channel == "page" or call.asker in assistant.game.here():
            outcome: Outcome = yield run_call(made, ctx)
            text = outcome.message.content
    except BaseException:
        _note(assistant, call, f"Your call {call.act} was broken off. It may be done or not.")
        raise
    who = "Staff approved"
    if call.by_asker:
        who = f"{call.asker_name or 'Who asked'} confirmed"
    _note(assistant, call, f"{who} your call {call.act}. Its result: {cut(text, TOLD_CHARS)}")
    return text


def refuse(assistant: Assistant, number: int, by: str) -> WaitingCall:
    """Drop a waiting call, under the turn lock; raises `ToolError` if no such call waits."""
    assistant.runtime.lock.holder()
    call = _called(assistant, number)
    _audit(assistant, "not_approved", call, by=by)
    _close(assistant, call, f"Staff refused your call {call.act}. It was not done.")
    return call


def expire(assistant: Assistant) -> None:
    """Drop the calls that nobody answered in time."""
    for call in assistant.state.waiting.calls:
        if call.is_over(assistant.now()):
            _audit(assistant, "expired", call)
            _close(
                assistant, call, f"Nobody confirmed your call {call.act} in time. It was not done."
            )


def drop_calls(assistant: Assistant, people: Collection[str]) -> None:
    """Drop, without a word, the calls that these people asked for (stable ids)."""
    _drop(assistant, [call for call in assistant.state.waiting.calls if call.asker in people])


def _drop(assistant: Assistant, calls: Collection[WaitingCall]) -> None:
    numbers = [call.number for call in calls]
    assistant.state.waiting = assistant.state.waiting.without(numbers)


def _called(assistant: Assistant, number: int) -> WaitingCall:
    for call in assistant.state.waiting.calls:
        if call.number == number and not call.is_over(assistant.now()):
            return call
    raise ToolError(f"No call {number} waits for approval.")


def _audit(assistant: Assistant, what: str, call: WaitingCall, **more: str) -> None:
    facts = {"tool": call.tool, "number": call.number, "audience": call.known_to}
    assistant.audit(f"tool_{what}", **facts, **more)


def _close(assistant: Assistant, call: WaitingCall, says: str) -> None:
    """Take a call off the list and note in the history what came of it, both or neither."""
    with assistant.store.transaction():
        _drop(assistant, [call])
        _note(assistant, call, says)


def _note(assistant: Assistant, call: WaitingCall, says: str) -> None:
    notice = Message("system", says, audience=call.known_to, channel="tool")
    assistant.history.append([notice])


def read_answer(ctx: ToolContext) -> None:
    """Read in a turn's lines whether they confirm what their asker was asked before it.

    A yes is one only as the asker's next line. If somebody else spoke before it, and it was said to
    more than the assistant alone, it may be an answer to them: the assistant asks again.
    """
    asker, proposals = ctx.asker or "", ctx.script.runtime.proposals
    proposal = proposals.get(asker)
    lines = ctx.own_lines(posed=False)
    if proposal is None or not proposal.next_line or not lines:
        return
    is_next = proposal.next_line in ctx.source_message_ids
    if not is_next or not proposal.is_confirmed(lines, ctx.character.key, ctx.script.now()):
        del proposals[asker]
    elif proposal.is_crossed and ctx.audience != private([asker]):
        del proposals[asker]
        ctx.proposal = proposal
    else:
        ctx.confirmed = proposal


def show_question(ctx: ToolContext) -> None:
    """Show the question of a turn, as the last thing in it: the next line answers nothing else."""
    proposal, asker = ctx.proposal, ctx.asker
    if proposal is None or asker is None:
        return
    asked = replace(proposal, at=ctx.script.now(), next_line="", is_crossed=False)
    ctx.script.runtime.proposals[asker] = asked
    ctx.game.show(asked.question, private([asker]), ctx.channel, asker)


def check_asked(call: ToolCall, ctx: ToolContext) -> None:
    """Raise `ToolError` for an act that nobody asked for in this turn; its asker is then asked."""
    if not call.tool.is_act:
        return
    if ctx.asker is None:
        raise ToolError("nobody asked for this; speak, pose or call noop")
    names = {key: each.names[0] for key, each in call.objects.items()}
    shown = {k: " ".join(str(v).split())[:SHOWN_CHARS] for k, v in call.arguments.items()}
    what = ", ".join((call.name.replace("_", " "), *(shown | names).values()))
    question = f'asks {ctx.asker_name()}: {what}? Say "yes" if you want this.'
    arguments = json.dumps(call.arguments, sort_keys=True, default=str)
    act = Proposal(call.name, arguments, question)
    if ctx.confirmed == act:
        ctx.confirmed = None
        ctx.script.runtime.proposals.pop(ctx.asker, None)
        return
    if _are_named(call.objects.values(), ctx):
        return
    if ctx.proposal is None:
        ctx.proposal = act
    raise UnaskedError(ctx.asker_name(), ctx.proposal == act)


def _are_named(objects: Iterable[Named], ctx: ToolContext) -> bool:
    """Whether a call has an object besides the asker, and the asker's lines name each of these."""
    wanted = {each.id: each for each in objects if each.id != ctx.asker}
    here = {each.id: each for each in (*ctx.game.named_here(), *wanted.values())}
    own = Named(ctx.character.stable_id, (ctx.character.key,), "assistant")
    here[own.id] = own
    stretches = [
        owners
        for line in ctx.own_lines(posed=False)
        for owners in named_stretches(line, here.values(), ctx.character.key, ctx.tools.tools)
        if _is_clear([here[each] for each in owners])
    ]
    return bool(wanted) and _can_share(stretches, [*wanted])


def _is_clear(owners: Sequence[Named]) -> bool:
    """Whether it does not matter which of those that bear a name is meant: one, or things alike."""
    if len(owners) == 1:
        return owners[0].kind != "assistant"
    looks = {(each.kind, spelled(each.names[0])) for each in owners}
    return len(looks) == 1 and owners[0].kind == "thing"


def _can_share(stretches: Sequence[frozenset[str]], wanted: Sequence[str]) -> bool:
    """Whether each of some ids can have a stretch of its own among those that name it."""
    if not wanted:
        return True
    first, *others = wanted
    return any(
        _can_share([*stretches[:at], *stretches[at + 1 :]], others)
        for at, owners in enumerate(stretches)
        if first in owners and owners not in stretches[:at]  # equal ones are as good
    )


def named_stretches(
    line: str, here: Iterable[Named], own: str, orders: Collection[str] = ()
) -> list[frozenset[str]]:
    """Whom or what each stretch of a line names: ids of those that bear that very name.

    Names count in whole, as they are spelled but for capitals, and in scripts without spaces as a
    run of characters. Stretches do not overlap; the longest name has the first choice. A name that
    is an ordinary word names something only in a line that speaks of nothing else. What stands
    behind a quotation mark, or behind the name of a person and a colon, is somebody else's.

    Args:
        line: What somebody typed.
        here: All that a name may mean.
        own: The assistant's name.
        orders: Names of tools, which are ordinary words.
    """
    table, owners = table_of(line), dict[str, list[Named]]()
    for each in here:
        for name in filter(None, map(spelled, each.names)):
            owners.setdefault(name, []).append(each)
    text = _QUOTE.split(spelled(line), 1)[0]
    people = [name for name in owners if any(each.kind == "person" for each in owners[name])]
    for colon in _COLON.finditer(text):
        head = text[: colon.start()]
        if any(regex.search(_bordered(name, owners[name]), head) for name in people):
            text = head
            break
    is_bare = not [word for word in content_words(text, table) if word not in words(own)]
    stretches: list[frozenset[str]] = []
    for name in sorted(owners, key=len, reverse=True):
        if name not in text:
            continue
        is_courtesy = name in BESIDE or name in orders
        is_ordinary = is_courtesy or is_common(name) or not content_words(name, table)
        text, times = regex.subn(_bordered(name, owners[name]), _TAKEN * len(name), text)
        if is_bare or not is_ordinary:
            stretches += [frozenset(each.id for each in owners[name])] * times
    return stretches


def spelled(text: str) -> str:
    """A text for comparing names: in one normal form, without capitals, one blank between words.

    Accents, full-width letters and letters that look alike stay as they are: they tell names apart.
    """
    return " ".join(normalized("NFC", text.lower()).split())


def _bordered(name: str, owners: Iterable[Named]) -> str:
    """A pattern for a name as a whole word, or as a run of characters."""
    before, behind = _BEFORE, _BEHIND
    if all(each.kind == "thing" for each in owners):
        before = _ELIDED
    if is_unparted(name[0]):
        before = ""
    if is_unparted(name[-1]) or regex.match(r"\p{Hangul}", name[-1]):
        behind = r"(?![\p{M}\p{Cf}])"
    return f"{before}{regex.escape(name)}{behind}"
