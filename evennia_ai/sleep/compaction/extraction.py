"""Pre-compaction extraction: before lines leave, a model notes what must not be lost of them.

A job beside the talk, not a turn: nothing of it enters the history. Each scope has passes of its
own over numbered lines.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, ToolError, WindowError
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    Message,
    new_id,
    said_and_done,
    total_tokens,
    utc_iso,
)
from evennia_ai.llm_interaction.budget import most_requests, packed
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_PRE_COMPACTION,
    PRE_COMPACTION_RULES,
    job_system_prompt,
    plain_identity,
    written_language,
)
from evennia_ai.llm_interaction.prompt import (
    OFFLINE_MODEL,
    ask_job,
    job_prompt,
    model_request,
    with_exchange,
)
from evennia_ai.llm_interaction.regions import Prompt
from evennia_ai.llm_interaction.summary import FITS, message_lines, request_text
from evennia_ai.llm_interaction.tokens import count_tokens
from evennia_ai.llm_interaction.tool_calls import storable_call, tool_call
from evennia_ai.llm_interaction.transcript import read_facts
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.folding import (
    ENTRY,
    LINES,
    OBSERVATION,
    Note,
    grounded,
    write_notes,
)
from evennia_ai.sleep.compaction.plan import EMERGENCY, MANUAL

MIN_MESSAGES = 5
MAX_ITERATIONS = 5
EMERGENCY_MAX_ITERATIONS = 3
SIGNAL = "pre_compaction"
# Why one ended early: somebody spoke to the sleeper.
CALLED = "called"


@inlineCallbacks
def run_pre_compaction_extraction(
    script: Assistant, character: Character, max_iterations: int = MAX_ITERATIONS
) -> Steps[dict[str, Any]]:
    """Let the assistant save facts of its whole live history, and write them at once.

    A rollback of the next compaction takes back what is written here, too.

    Fires with ``{"success", "facts_recorded", "iterations", "stopped_by"}``, also if a model fails.
    """
    raw = [message for message in script.history.messages() if not message.is_summary]
    report = yield extract(script, raw, MANUAL, max_iterations)
    return dict(report)


@inlineCallbacks
def extract(
    script: Assistant,
    messages: Sequence[Message],
    trigger: str,
    most: int | None = None,
    stops: Callable[[], bool] = lambda: False,
) -> Steps[dict[str, Any]]:
    """The extraction of these messages, scope by scope.

    Args:
        script: The assistant's script.
        messages: Messages of any scopes, oldest first. Before a compaction (without `most`) those
            that an extraction looked through since the last one are not shown again.
        trigger: What fired the compaction, as `plan.MANUAL`.
        most: Most model calls in all, but that each scope's lines are shown once; by default as
            configured, fewer in an emergency.
        stops: Returns whether to end early; it is asked after each model call.

    Returns:
        A Deferred as that of `run_pre_compaction_extraction`.
    """
    config = script.config
    extractor = _Extractor(script, trigger, most or config.pre_compact_max_iterations, stops)
    if most is None and trigger == EMERGENCY:
        extractor.most = EMERGENCY_MAX_ITERATIONS
    before = set(script.state.looked_through) if most is None else set()
    if not config.pre_compact_extraction_enabled:
        extractor.stopped_by = "disabled"
        return extractor.report()
    if len(messages) < MIN_MESSAGES:
        extractor.stopped_by = "too few messages"
        return extractor.report()
    script.state.signals = {SIGNAL: {"since": utc_iso(script.now()), "trigger": trigger}}
    error = ""
    try:
        for scope in dict.fromkeys(message.audience for message in messages):
            part = [m for m in messages if m.audience == scope and m.id not in before]
            yield script.breathe()
            yield extractor.look_through(script.memory.quarantine.messages(part))
            if extractor.stopped_by == CALLED:
                break
    except ModelError as failure:
        script.log_error("pre-compaction extraction", failure)
        extractor.stopped_by, error = "error", str(failure)
    finally:
        script.state.signals = {}
    with script.history.store.transaction():
        written = write_notes(script, extractor.notes)
        script.state.extracted = [*script.state.extracted, *written]
        looked = (*script.state.looked_through, *extractor.looked_through)
        script.state.looked_through = list(dict.fromkeys(looked))
    return extractor.report(error)


@dataclass
class _Extractor:
    """Looks through the lines of scopes for what to note; stores nothing."""

    script: Assistant
    trigger: str
    most: int
    stops: Callable[[], bool]
    notes: list[Note] = field(default_factory=list)
    looked_through: list[str] = field(default_factory=list)  # ids of messages that are done
    iterations: int = 0
    # ``noop``, ``no_tool_call``, ``other_tool``, ``iterations``, ``disabled``, ``called``,
    # ``too few messages`` or ``error``.
    stopped_by: str = "noop"

    def report(self, error: str = "") -> dict[str, Any]:
        """``{"success", "facts_recorded", "iterations", "stopped_by"}``, and ``error``."""
        failed = {"error": error} if error else {}
        return {
            "success": not error,
            "facts_recorded": sum(note.tool == ENTRY for note in self.notes),
            "iterations": self.iterations,
            "stopped_by": self.stopped_by,
            **failed,
        }

    @inlineCallbacks
    def look_through(self, messages: Sequence[Message]) -> Steps[None]:
        """The passes over one scope: one, or as many as its lines need.

        Where a model's window is smaller than was known, smaller ones are tried.
        """
        for tries_left in reversed(range(FITS)):
            try:
                yield self._passes(messages)
                return
            except WindowError:
                if not tries_left:
                    raise

    @inlineCallbacks
    def _passes(self, messages: Sequence[Message]) -> Steps[None]:
        script = self.script
        said = said_and_done(messages, script.tools.traits)
        if not said:
            return
        is_numbered = script.config.llm_api == "chat"
        lines = message_lines(said, is_numbered)
        owners = dict(enumerate(said, 1))
        empty, begun = self._prompt().budget, 0
        room = max(100, empty.limit - empty.total - 2 * OVERHEAD_TOKENS)
        runs = yield script.mind.work(packed, lines, room, script.count)
        for run in runs[: most_requests(total_tokens(messages))]:
            yield self._pass(said[0].audience, run, owners)
            if self.stopped_by == CALLED:
                return
            for line in run:
                begun += is_numbered and line.startswith(f"{begun + 1}. ")
            # The last line of a run may go on in the next one.
            self.looked_through += [message.id for message in said[: max(0, begun - 1)]]
        self.looked_through += [message.id for message in messages]

    def _prompt(self, text: str = "", tokens: int = 0) -> Prompt:
        """The prompt of a pass that shows this text of so many tokens."""
        script, limits = self.script, self.script.limits()
        config, name = script.config, script.obj.key
        language = written_language(config.language, text.splitlines())
        if limits.is_base and limits.model != OFFLINE_MODEL:
            system = plain_identity(name, config.persona, language)
        else:
            system = job_system_prompt(name, config.persona, PRE_COMPACTION_RULES, language)
        reserve, schemas = limits.caps.reserve, script.tools.note_schemas()
        return job_prompt(system, text, tokens, reserve, limits.tokens, script.count, schemas)

    @inlineCallbacks
    def _pass(self, scope: str, lines: Sequence[str], owners: Mapping[int, Message]) -> Steps[None]:
        """One pass over lines that fit into a request."""
        script, text = self.script, request_text(lines)
        tokens = yield script.mind.work(count_tokens, text, script.count)
        prompt = self._prompt(text, tokens)
        left = max(1, self.most - self.iterations)
        self.stopped_by = "iterations"
        for _ in range(left):
            yield script.breathe()
            reply, calls = yield self._ask(prompt, scope)
            self.iterations += 1
            results = []
            for call in calls:
                results.append((yield self._noted(call, scope, owners)))
                yield script.breathe()
            names = {call["function"]["name"] for call in calls}
            if names - {ENTRY, OBSERVATION} - script.tools.ending:
                self.stopped_by = "other_tool"
            elif names & script.tools.ending or not calls:
                self.stopped_by = "noop" if calls else "no_tool_call"
            if self.stopped_by != "iterations":
                return
            if self.stops():
                self.stopped_by = CALLED
                cited = (source for note in self.notes for source in note.sources)
                self.looked_through += cited
                return
            stored = [storable_call(call) for call in calls]
            said = reply.content or ""
            prompt = with_exchange(prompt, said, stored, results, script.count)
            if not prompt.fits:
                return

    @inlineCallbacks
    def _ask(self, prompt: Prompt, scope: str) -> Steps[Any]:
        """One model call; fires with the reply and its calls."""
        script, purpose = self.script, CONTEXT_PRE_COMPACTION
        limits = script.limits()
        model = "" if limits.calls_tools or limits.is_base else OFFLINE_MODEL
        request = model_request(script, script.obj, prompt, purpose, model=model)
        reply = yield ask_job(script, request, prompt.budget, scope, self.trigger)
        calls = reply.tool_calls
        if not calls and script.config.llm_api == "completion" and reply.model != OFFLINE_MODEL:
            facts = [json.dumps({"content": fact}) for fact in read_facts(reply.content or "")]
            calls = tuple(tool_call(new_id("call_"), ENTRY, fact) for fact in facts)
            calls += tuple(tool_call(new_id("call_"), name, "{}") for name in script.tools.ending)
        return reply, calls

    @inlineCallbacks
    def _noted(
        self, call: Mapping[str, Any], scope: str, owners: Mapping[int, Message]
    ) -> Steps[str]:
        """Take the note of a call, unless it is none or nothing new; fires with the result."""
        name = str(call["function"].get("name") or "")
        if name not in (ENTRY, OBSERVATION):
            return "ok"
        try:
            fields = self.script.tools.read_note(call)
        except ToolError as error:
            return f"error: {error}"
        lines = fields.pop(LINES, ())
        note = yield grounded(self.script, Note(name, fields, scope), lines, owners, self.notes)
        if isinstance(note, str):
            return note
        self.notes.append(note)
        return "Noted."
