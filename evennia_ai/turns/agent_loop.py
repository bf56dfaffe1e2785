"""The ReAct loop: ask the model, run its tools, until it is done or a bound is reached.

At a bound, while somebody waits, the model is asked once more without tools, then the offline
model; if that says nothing either, a sign is shown.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, inlineCallbacks, succeed

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, SpendError, ToolError, WindowError
from evennia_ai.feature import Feature
from evennia_ai.history.audience import PUBLIC, is_private, private
from evennia_ai.history.messages import (
    ANSWERED,
    ASKER,
    MEMORIES,
    SAID_ONCE,
    Message,
    Speaker,
    new_id,
)
from evennia_ai.language.words import storable
from evennia_ai.llm_interaction.budget import TRACE, ReplyTrace, TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_UNASKED
from evennia_ai.llm_interaction.conversation import asked_again
from evennia_ai.llm_interaction.prompt import (
    OFFLINE_MODEL,
    build_prompt,
    draft_prompt,
    model_request,
)
from evennia_ai.llm_interaction.reply import CLEANED_CHARS, clean_reply, said_once
from evennia_ai.llm_interaction.tool_calls import storable_call
from evennia_ai.llm_interaction.values import (
    READ_AHEAD,
    ModelReply,
    ModelRequest,
    TurnReport,
    TurnRequest,
    used,
)
from evennia_ai.rag_memory.provenance import drawn_on, hits_in
from evennia_ai.recall.values import brief
from evennia_ai.sleep.compaction.rules import check_room
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.runtime import Group
from evennia_ai.turns.spend import SpendHandler
from evennia_ai.turns.tools.base import NOT_SAID, ToolCall, ToolContext, ToolRegistry
from evennia_ai.turns.tools.execution import (
    Outcome,
    batches,
    read_answer,
    run_call,
    show_question,
)

T = TypeVar("T")
# While no model answers, those who wait are shown so at most this often.
TROUBLE_SHOWN_S = 60.0
# Characters of a reply that are compared with the memories in its prompt, a few milliseconds.
_DRAWN_CHARS = 8_000
# Tokens one turn may use, in full contexts: enough for eight calls at half a context each.
TURN_CONTEXTS = 4
# A reply that took more than this share of its time limit is not asked for again.
SLOW_SHARE = 0.5
# Share of a turn's time behind which no tools are called any more.
TOOLS_SHARE = 2 / 3
# Calls that the offline model has at least behind a bound: it may look something up.
OFFLINE_CALLS = 3
# A call that starts shortly before the turn's deadline still gets this long.
LEAST_TIMEOUT_S = 1.0
# So often a prompt is made shorter because a model's window is smaller than was known. Where the
# server names no figure, each time halves it: from the default limit down to 1,600 tokens.
FITS = 6
# A note of less importance is not what somebody ordered.
REMEMBERED_IMPORTANCE = 8
# Who is asked: the assistant's own model; at a bound the same for the last time, without tools;
# then the offline model.
OWN, LAST, OFFLINE = range(3)


class Agent(Assistant):
    """An assistant that asks a model and acts.

    Attributes:
        tools: What it can do.
        features: Those that the game lists.
        known_features: Those, and all others that ship: what they have stored is forgotten, too.
    """

    tools: ToolRegistry
    features: Sequence[Feature]
    known_features: Sequence[Feature]

    @cached_property
    def spend(self) -> SpendHandler:
        """What its calls cost, and the one way to a model."""
        return SpendHandler(self, self.read_ahead)

    @inlineCallbacks
    def run_turn(self, request: TurnRequest) -> Steps[TurnReport]:
        """Think and act until done.

        Each reply is stored before its tools run, and their results after it. If a crash, a stop
        or an error comes between, prompts show that the call was interrupted
        (`history.messages.mended`).

        Returns:
            A Deferred that fires with a `TurnReport`, or fails with `ModelError` when no model
            answered; what was stored until then stays.
        """
        turn, aside = _Turn(self, request), ""
        report = turn.report
        yield turn.follow_order()
        while (answer := (yield turn.next_answer())) is not None:
            reply, text, calls = answer.reply, answer.text, turn.permitted(answer.calls)
            if self.moderator is not None:
                text, calls = yield turn.moderated(text, calls)
            if not calls:
                yield turn.end(text, aside, reply)
                break
            aside = text or aside
            outcomes: list[Outcome] = yield turn.act(text, calls, reply)
            is_noticed = bool(aside or report.spoken or turn.tools.has_acted)
            concluded = is_noticed and all(outcome.concluded for outcome in outcomes)
            ended = any(outcome.ended for outcome in outcomes)
            # The offline model costs nothing, and says what came of it.
            if ended or (concluded and reply.model != OFFLINE_MODEL):
                if aside and not report.spoken and turn.is_fit(aside, reply.model):
                    yield turn.speak(aside)
                break
        show_question(turn.tools)
        return report

    def read_ahead(self, asker: str = "") -> Deferred[None]:
        """Let its model read what an answer to somebody (stable id) will begin with, if it is ours.

        A model on the game's machine may read a prompt for a minute. Its server keeps what it has
        read, so that a later prompt that begins in the same way is read in a moment. Nothing is
        said or learned, nobody is billed, and no cap is used up. Fires when it is over, whatever
        came of it.
        """
        is_own = self.enabled and self.mind.model.facts(self.model_name).own
        if not is_own or self.limits().only_talks or self.spend.own_wait_s():
            return succeed(None)
        prompt = draft_prompt(self, TurnRequest(asker=asker))
        request = model_request(self, prompt, READ_AHEAD, max_tokens=1)
        self.log(f"{self.model_name} reads {request.prompt_tokens:,} tokens ahead")
        return self.spend.read_ahead(request).addCallbacks(
            lambda reply: self.log(f"{self.model_name} has read ahead in {reply.seconds:.1f} s"),
            lambda failure: self.log(f"reading ahead: {failure.getErrorMessage()}"),
        )

    def of_features(self, ask: Callable[[Feature], T]) -> list[T | None]:
        """What each feature answers; None for one that raises, which is logged."""
        return [
            self.survived(f"the feature {feature.name}", partial(ask, feature), None)
            for feature in self.features
        ]

    def on_mind(self, turn: TurnRequest, present: Mapping[str, str]) -> list[str]:
        """What features add to a prompt, a line each."""
        added = self.of_features(lambda each: [*each.lines(self, turn, present)])
        return [line for lines in added for line in lines or ()]

    def model_failed(self, error: ModelError, request: TurnRequest) -> None:
        """No model answered: show it to those who wait, and alert staff once for a model."""
        name, fallback = self.model_name, self.config.llm_offline_fallback
        if name not in self.mind.down:
            self.mind.down.add(name)
            instead = "what was asked is tried again"
            if fallback:
                instead = "the offline model answers"
            self.alert(f"no model answers ({error}); {instead} until one does")
            self.runtime.trouble.passes = True
        else:
            self.log(f"no model answers: {error}", warning=True)
        runtime = self.runtime
        runtime.counts["model failures"] += 1
        if not fallback or self.now() - runtime.trouble_shown_at > TROUBLE_SHOWN_S:
            runtime.trouble_shown_at = self.now()
            self.show("trouble", request.audience, request.channel, request.asker)

    def model_answered(self) -> None:
        """A model answered; tell staff if it had been down."""
        if self.model_name in self.mind.down:
            self.mind.down.discard(self.model_name)
            self.tell_staff(f"{self.obj.key}: the model answers again")

    def turn_failed(self, error: Exception, group: Group, is_shown: bool) -> None:
        """A turn broke off: keep the question, show it to who asked, unless it `is_shown`.

        What cannot be stored is tried again for as long as that lasts, and told as such.
        """
        runtime, is_model = self.runtime, isinstance(error, ModelError)
        if not is_model:  # staff know of a model that is down
            self.log_error("turn", error)
        if isinstance(error, self.cannot_store):
            runtime.postpone(group, self.now(), gives_up=False)
            self.survived("telling staff", partial(self.storing_failed, error), None)
            return
        runtime.trouble.passes = True
        known = runtime.unanswered.get(group.key)
        if not runtime.postpone(group, self.now()):
            tell = self.trouble if is_model else self.alert
            tell(f"gave up answering {group.events[-1].speaker_name}, after several tries: {error}")
        elif not is_shown and (known is None or known.group != group):
            runtime.trouble_shown_at = self.now()
            self.show_to(group, "trouble")

    def may_embed(self, texts: Iterable[str]) -> bool:
        """Whether texts may be embedded now."""
        return self.spend.may_embed(texts)

    def repair_when_ready(self) -> None:
        """Repair compactions and the index."""
        self.memory.empty_outbox()
        self.memory.mend()
        check_room(self)

    def over_spend(self) -> bool:
        """Whether a cap lets no call be made for the assistant itself."""
        return self.spend.reached() is not None


@dataclass(frozen=True)
class _Answer:
    """A reply, read."""

    reply: ModelReply
    text: str  # what it says, cleaned
    calls: Sequence[ToolCall]
    fault: str = ""  # why it is no answer


class _Turn:
    """One turn that runs: what it is for, and what it has done so far."""

    def __init__(self, script: Agent, request: TurnRequest):
        self.script, self.character, self.request = script, script.obj, request
        self.report = TurnReport()
        self.tools = ToolContext(
            script,
            script.tools,
            request.audience,
            request.asker,
            request.channel,
            self.report.spoken,
            request.source_ids,
            request.retrieved,
            unasked=request.context == CONTEXT_UNASKED,
            deadline=request.deadline,
        )
        read_answer(self.tools)
        newest = script.seen(request.audience, trusted=True).newest()
        # What the turn itself adds comes behind it.
        self.since = next((message.id for message in newest), None)
        self.model = ""  # whom the prompt is made for, if not its own model
        self.withdrawn: tuple[str, ...] = ()  # the tools that this level has not
        self.found: dict[str, str] = {}  # results of searches, of which less is stored, by id
        self.event: TokenBudget | None = None  # of the newest prompt for its own model
        self.budget: TokenBudget | None = None  # of the last request that was answered
        self.asked = 0  # requests made
        self.replies = 0  # what came of them, also what was no answer
        self.faults: list[str] = []  # why replies were no answers
        self.replaced: tuple[str, ...] = ()  # what the game's moderation says instead
        self.is_moderated = False  # whether it replaced or refused something,
        self.is_refused = False  # and whether that was all of the newest reply
        self.level = OWN
        self.calls_left = request.max_iterations
        self.tools_until = request.deadline - (1 - TOOLS_SHARE) * script.config.turn_timeout_s

    @inlineCallbacks
    def next_answer(self) -> Steps[_Answer | None]:
        """The next reply, by the first level that gives one; None where the turn is over."""
        while not self.is_bound() or self.next_level():
            answer: _Answer | None = yield self.ask()
            if answer is not None:
                return answer
            if not self.next_level():
                break
        return None

    def is_bound(self) -> bool:
        """Whether a bound of this level is reached."""
        if not self.calls_left:
            return True
        is_late = self.script.now() >= self.tools_until
        is_long = self.report.used.tokens > TURN_CONTEXTS * self.script.limits().tokens
        return self.level == OWN and (is_late or is_long)

    def next_level(self) -> bool:
        """Go on at a bound, if somebody waits: without tools, then with the offline model.

        Returns whether there is such a level; the one behind the last is the trouble emote.
        """
        if not self.is_needed():
            return False
        if self.level == OWN:
            self.level, self.calls_left = LAST, 1
            self.withdrawn = tuple(self.script.tools.tools)
        elif self.level == LAST and self.wants_offline():
            self.level, self.calls_left = OFFLINE, max(self.calls_left, OFFLINE_CALLS)
            self.model, self.withdrawn = OFFLINE_MODEL, ()
        else:
            self.script.trouble("a turn reached its bounds without an answer")
            self.show_trouble()
            return False
        return True

    def show_trouble(self) -> None:
        """Show those who wait that no answer comes."""
        request = self.request
        self.script.show("trouble", request.audience, request.channel, request.asker)

    @inlineCallbacks
    def ask(self) -> Steps[_Answer | None]:
        """One model call; fires with its reply, or None if there is none.

        The offline model has a prompt of its own, of which nothing is noted.
        """
        script, is_offline = self.script, self.level == OFFLINE
        self.report.fell_back |= is_offline
        make_prompt = draft_prompt if is_offline else build_prompt
        self.calls_left -= 1
        answer: _Answer | None = None
        for fits_left in range(FITS, -1, -1):
            yield script.breathe()
            with script.state.pinned():
                prompt = make_prompt(
                    script,
                    self.request,
                    withdrawn=self.withdrawn or self.tools.withdrawn,
                    since=self.since,
                    found=self.found,
                    model=self.model,
                )
            if not prompt.fits:
                script.trouble(f"the prompt cannot fit: {prompt.budget}")
                if not is_offline:
                    return None
            if not is_offline:  # another one may be of a compaction that runs beside the turn
                self.event = script.prompts.events()[-1]
            yield script.breathe()
            asked = model_request(script, prompt, self.request.context, model=self.model)
            try:
                # Whoever waits must not wait for the same model again.
                answer = yield self._try(asked) if is_offline else self._complete(asked, fits_left)
                break
            except WindowError as error:
                if not fits_left:
                    raise
                window = script.limits(error.model).facts.window or "unknown"
                script.log(f"the prompt is too large for {error.model} (window: {window})")
                # The next one is made for it.
                self.model = "" if error.model == script.model_name else error.model
        if answer is None:
            return None
        self.budget = script.prompts.answered(self.event or prompt.budget, answer.reply)
        self._count(answer.reply, self.budget)
        script.prompts.newest.append((self.budget.at, [*prompt.messages, *prompt.tools]))
        yield script.breathe()
        if self.level != LAST:
            return answer
        if not answer.text:
            return None
        return replace(answer, calls=())

    @inlineCallbacks
    def _complete(self, asked: ModelRequest, fits_left: int) -> Steps[_Answer | None]:
        """Fires with the answer of the assistant's model; None where the next level is to answer.

        Also with None if no model answers, or a cap stops, a turn that has spoken or acted: it
        would do so twice. Fails with `WindowError` if a shorter prompt may be answered.
        """
        try:
            answer: _Answer = yield self._answered(asked)
        except SpendError:
            if self.is_needed():
                raise  # the question is kept
            return None
        except ModelError as error:
            is_too_large = isinstance(error, WindowError) and fits_left > 0
            if is_too_large or self.tools.unasked:
                raise
            self.script.model_failed(error, self.request)
            if self.is_needed() and not self.wants_offline():
                raise
        else:
            self.script.model_answered()
            if not (answer.fault and self.is_needed()):
                return answer
            self._count(answer.reply)
        self.level = LAST  # it was asked again already
        return None

    def is_needed(self) -> bool:
        """Whether somebody waits for words, and got none yet."""
        return not (self.tools.unasked or self.report.spoken or self.tools.has_acted)

    def wants_offline(self) -> bool:
        """Whether the offline model answers where the assistant's own does not."""
        return self.script.config.llm_offline_fallback and self.script.model_name != OFFLINE_MODEL

    @inlineCallbacks
    def follow_order(self) -> Steps[None]:
        """Do what the asker's own line orders, for a model that has no tools.

        The offline model reads the line, never the reply; its calls are judged like any call. The
        model is told what came of them.
        """
        script, request = self.script, self.request
        has_tools, is_posed = script.limits().calls_tools, request.channel == "pose"
        if has_tools or is_posed or self.tools.unasked or not self.tools.own_lines(posed=False):
            return
        model = OFFLINE_MODEL
        prompt = draft_prompt(script, request, since=self.since, model=model)
        asked = model_request(script, prompt, request.context, model=model)
        reply: ModelReply = yield script.spend.complete(asked)
        calls = list(filter(_is_order, script.tools.read(reply.tool_calls)))
        if calls:
            outcomes: list[Outcome] = yield self.act("", calls, reply)
            done = tuple(outcome.said for outcome in outcomes if outcome.acted)
            undone = tuple(outcome.said for outcome in outcomes if not outcome.acted)
            self.request = replace(request, done=done, undone=undone)

    @inlineCallbacks
    def _answered(self, asked: ModelRequest) -> Steps[_Answer]:
        """A model's answer, in the time that the turn has left.

        One that is no answer is asked for once more, if somebody waits, with the fault in one
        sentence; not where it took long and the offline model answers as well: people wait. Then
        the next model is asked.
        """
        answer: _Answer = yield self._try(asked)
        if not (answer.fault and self.is_needed()):
            return answer
        requests = []
        if not self.wants_offline() or answer.reply.seconds <= SLOW_SHARE * asked.timeout_s:
            again = asked_again(asked.messages, answer.fault)
            requests.append(replace(asked, messages=again))
        if asked.fallback_models:
            model, *others = asked.fallback_models
            requests.append(replace(asked, model=model, fallback_models=tuple(others)))
        for request in requests:
            self._count(answer.reply)
            answer = yield self._try(request)
            if not answer.fault:
                break
        return answer

    @inlineCallbacks
    def _try(self, asked: ModelRequest) -> Steps[_Answer]:
        """Fires with what a model answers to one request, read."""
        script, request = self.script, self.request
        self.asked += 1
        mark, asker = "", request.asker
        if request.source_ids:  # it marks the call, when a reload interrupts it
            mark = " ".join((script.scope, request.context, str(self.asked), *request.source_ids))
        # An answer of the offline model counts once, however often that looks something up.
        if asked.model == OFFLINE_MODEL and self.replies:
            asker = None
        asked = replace(
            asked,
            within_s=min(asked.within_s, max(request.deadline - script.now(), LEAST_TIMEOUT_S)),
            has_next=self.is_needed() and self.wants_offline() and self.level != OFFLINE,
            key=mark,
        )
        reply: ModelReply = yield script.spend.complete(asked, asker)
        yield script.breathe()
        content = storable(reply.content or "")
        text, fault = clean_reply(content, [self.character.key]), ""
        # The offline model may repeat itself; nothing is silence where nobody waits.
        is_silent = not text and (bool(reply.tool_calls) or not self.is_needed())
        if reply.model != OFFLINE_MODEL and not is_silent:
            fault = self.tools.fault(text)
        if fault:
            self.faults.append(fault)
            script.audit("fault", model=reply.model, why=fault)
        if len(content) > CLEANED_CHARS:
            text = content  # stored as it came; what is spoken of it is cut
        return _Answer(reply, text, script.tools.read(reply.tool_calls), fault)

    def _count(self, reply: ModelReply, budget: TokenBudget | None = None) -> None:
        """Count and log a reply, with the budget of its prompt if it is used."""
        self.replies += 1
        self.report.used = used((self.report.used, reply))
        self.script.spent(reply, self.request.context, budget)

    def permitted(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """The calls that may be made; of a turn that nobody asked for those that speak or pose."""
        if not self.tools.unasked:
            return calls
        traits = self.script.tools.traits
        aloud = traits.speaks - traits.to_one
        for name in {call.name for call in calls} - traits.silent - aloud:
            self.script.audit("tool_refused", tool=name, why="nobody asked for it")
        return [call for call in calls if call.name in aloud]

    @inlineCallbacks
    def moderated(
        self, text: str, calls: Sequence[ToolCall]
    ) -> Steps[tuple[str, Sequence[ToolCall]]]:
        """Fires with a reply as moderation lets it be said and stored."""
        script, private_talk = self.script, is_private(self.request.audience)
        whole, passed = text, []
        if text:
            text = yield script.judge_said(text, self._channel, private_talk)
        for call in calls:
            passed.append((yield self.judged(call, private_talk)))
        if text != whole:
            self.replaced += (text,)
        self.is_moderated = self.is_moderated or text != whole or passed != list(calls)
        self.is_refused = bool(whole and not text)
        return text, passed

    @inlineCallbacks
    def judged(self, call: ToolCall, private_talk: bool) -> Steps[ToolCall]:
        """Fires with a tool call as it may be stored and run.

        If what it says is refused, its text is `NOT_SAID`, which no tool says.
        """
        text = call.arguments.get("text")
        if not call.tool.speaks or call.fault or not isinstance(text, str):
            return call  # what cannot be read is not run either
        passed = yield self.script.judge_said(text, call.name, private_talk or call.tool.to_one)
        if passed == text:
            return call
        arguments = {**call.arguments, "text": passed or NOT_SAID}
        function = {**call.raw["function"], "arguments": json.dumps(arguments, ensure_ascii=False)}
        return replace(call, arguments=arguments, raw={**call.raw, "function": function})

    @inlineCallbacks
    def act(self, text: str, calls: Sequence[ToolCall], reply: ModelReply) -> Steps[list[Outcome]]:
        """Store the calls and run them; fires with what came of them.

        What is whispered to one person is stored apart.
        """
        request, outcomes = self.request, list[Outcome]()
        for person, batch in batches(calls, self._whispered_to):
            audience, answered = request.audience, ""
            if person:
                audience = private([person])
            self.store(audience, text, batch, reply)
            text, of_batch = "", list[Outcome]()
            for call in batch:
                of_batch.append((yield run_call(call, self.tools)))
            if any(outcome.ended for outcome in of_batch):
                answered = request.audience
            meta = {**self._meta, ANSWERED: answered}
            results = list[Message]()
            for outcome in of_batch:
                result = replace(outcome.message, audience=audience, metadata=meta)
                if result.name in self.script.tools.traits.recalls:
                    # Of what was found in memory only ids and beginnings are stored.
                    kept = replace(result, id=new_id("m"), content=brief(result.content))
                    self.found[kept.id] = result.content
                    self.tools.retrieved += tuple(hits_in(result.content))
                    result = kept
                results.append(result)
            self.script.history.append(results)
            self.report.tools += [call.name for call in batch]
            outcomes += of_batch
        return outcomes

    def _whispered_to(self, call: ToolCall) -> str:
        """Stable id of whom a call in a public turn whispers to; empty if it whispers to nobody."""
        target = str(call.arguments.get("target") or "")
        if not call.tool.to_one or self.request.audience != PUBLIC or not target:
            return ""
        try:
            return self.script.game.named(target, "people").id
        except ToolError:
            return ""

    @property
    def _meta(self) -> dict[str, Any]:
        """What all messages of the turn note: its context, and whom it answers."""
        meta = {"context": self.request.context}
        if self.request.asker:
            meta[ASKER] = self.request.asker
        return meta

    @property
    def _channel(self) -> str:
        """How it answers: as it was spoken to; a pose is answered aloud."""
        if self.request.channel == "pose":
            return "say"
        return self.request.channel

    def store(self, audience: str, text: str, calls: Sequence[ToolCall], reply: ModelReply) -> None:
        """Add the assistant's message to the history, unless it is empty."""
        if not calls and not text:
            return
        tool_calls = tuple(storable_call(call.raw) for call in calls)
        metadata: dict[str, Any] = {"model": reply.model, **self._meta}
        newest = (line for of, _, line in self.script.runtime.said if of in (PUBLIC, audience))
        if text and (once := said_once(text, newest)) != text:
            metadata[SAID_ONCE] = once
        if self.tools.retrieved:  # a note must not rest on what only repeats a memory
            said = " ".join([text, *(call["function"]["arguments"] for call in tool_calls)])
            if memories := drawn_on(self.tools.retrieved, said[:_DRAWN_CHARS]):
                metadata[MEMORIES] = [hit.to_dict() for hit in memories]
        if self.budget and (text or any(call.tool.speaks for call in calls)):
            # What a reply that is stored now rests on.
            request, report, tools = self.request, self.report, self.tools
            trace = ReplyTrace(
                budget=self.budget,
                answers=request.source_ids,
                given={hit.turn_id: hit.score for hit in request.retrieved},
                found=tools.found,
                opened=tuple(tools.opened),
                tools=tuple(report.tools),
                calls=self.replies,
                **report.used.figures(),
                faults=tuple(dict.fromkeys(self.faults)),
                moderated=self.is_moderated,
            )
            metadata[TRACE] = trace.to_text()
        message = Message(
            "assistant",
            text,
            speaker=Speaker(self.character.key, self.character.stable_id),
            audience=audience,
            channel=self._channel,
            tool_calls=tool_calls,
            metadata=metadata,
        )
        self.script.history.append([message])

    @inlineCallbacks
    def end(self, text: str, aside: str, reply: ModelReply) -> Any:
        """Store and say the last reply, or what was said beside a call, unless it is unfit."""
        script, request = self.script, self.request
        said = text
        if not self.report.spoken:
            said = text or aside
        if self.is_refused and not (said or self.report.spoken):
            # Who asked sees it, and `ai/why` names it.
            script.runtime.refused = (script.now(), request.audience)
            self.show_trouble()
            return
        if said in self.report.spoken:
            said = text = ""
        if said and not self.is_fit(said, reply.model):
            return
        self.store(request.audience, text, (), reply)
        if said:
            yield self.speak(said)

    def is_fit(self, text: str, model: str) -> bool:
        """Whether a reply may be said. The offline model and moderation may repeat themselves."""
        try:
            if model == OFFLINE_MODEL or text in self.replaced:
                self.tools.check_listener()
            else:
                self.tools.check_speech(text)
        except ToolError as error:
            self.script.log(f"a reply was not said: {error}")
            return False
        return True

    @inlineCallbacks
    def speak(self, text: str) -> Any:
        """Say the reply to the turn's audience; fires when it was said."""
        try:
            told = yield self.tools.speak(text)
        except ToolError as error:
            self.script.trouble(f"could not speak: {error}")
        else:
            if told:  # a refusal, or no more than that it was said; it may repeat the words
                self.script.log(f"as it spoke, the game answered in {len(told)} texts")


def _is_order(call: ToolCall) -> bool:
    """Whether a call does something: looks and searches are no orders, nor is a mere note."""
    tool = call.tool
    if call.fault or tool.silent or tool.recalls:
        return False
    if "importance" in call.arguments:
        return bool(call.arguments["importance"] >= REMEMBERED_IMPORTANCE)
    return tool.is_act or tool.concludes
