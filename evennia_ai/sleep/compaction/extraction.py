"""Pre-compaction extraction: before lines leave, a model notes what must not be lost of them.

A job beside the talk, not a turn: nothing of it enters the history. Each scope has passes of its
own over numbered lines. A note of a summary's reply is checked and written here, too.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, ToolError, WindowError
from evennia_ai.history.audience import visible
from evennia_ai.history.messages import (
    MEMORIES,
    OVERHEAD_TOKENS,
    Message,
    new_id,
    said_and_done,
    total_tokens,
    utc_iso,
)
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.budget import most_requests, packed
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION, PRE_COMPACTION_RULES
from evennia_ai.llm_interaction.conversation import (
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
from evennia_ai.rag_memory.entities import observe
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.journal import JournalEntry, JournalHandler, score_importance
from evennia_ai.rag_memory.provenance import statement_of, supporting
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.sleep.sleeper import Sleeper

MIN_MESSAGES = 5
MAX_ITERATIONS = 5
EMERGENCY_MAX_ITERATIONS = 3
SIGNAL = "pre_compaction"
# Why one ended early: somebody spoke to the sleeper.
CALLED = "called"
# The two tools that note something, and the argument in which they name lines.
ENTRY, OBSERVATION, LINES = "add_journal_entry", "update_entity_observation", "lines"
# Newest journal entries in which a thing may be kept besides the summary.
JOURNAL_ENTRIES = 200


@dataclass(frozen=True)
class Note:
    """One thing to keep: a journal entry, or what was learned of somebody or something."""

    tool: str
    fields: Mapping[str, Any]  # the arguments of the tool, checked
    scope: str  # who may know it
    sources: tuple[str, ...] = ()  # ids of the messages it rests on
    at: str = ""  # when it was said, UTC ISO 8601; empty if no message bears it out
    told_by: str = ""  # name of the only person who said it, of somebody else

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.fields["content" if self.tool == ENTRY else "observation"])


@inlineCallbacks
def run_pre_compaction_extraction(
    script: Sleeper, character: Character, max_iterations: int = MAX_ITERATIONS
) -> Steps[dict[str, Any]]:
    """Let the assistant save facts of its whole live history, and write them at once.

    A rollback of the next compaction takes back what is written here, too.

    Fires with ``{"success", "facts_recorded", "iterations", "stopped_by"}``, also if a model fails.
    """
    raw = [message for message in script.history.messages() if not message.is_summary]
    report: dict[str, Any] = yield Extraction(script, MANUAL, max_iterations).run(raw)
    return report


@dataclass
class Extraction:
    """Looks through the lines of scopes for what to note."""

    script: Sleeper
    trigger: str  # what fired the compaction, as `plan.MANUAL`
    most: int  # most model calls in all, but that each scope's lines are shown once
    # Returns whether to end early; it is asked after each model call.
    stops: Callable[[], bool] = lambda: False
    notes: list[Note] = field(default_factory=list)
    iterations: int = 0
    # ``noop``, ``no_tool_call``, ``other_tool``, ``iterations``, ``disabled``, ``called``,
    # ``too few messages`` or ``error``.
    stopped_by: str = "noop"

    @inlineCallbacks
    def run(self, messages: Sequence[Message]) -> Steps[dict[str, Any]]:
        """The extraction of these messages, oldest first, scope by scope.

        It fires as `run_pre_compaction_extraction`.
        """
        script, state, error = self.script, self.script.state, ""
        if not script.config.pre_compact_extraction_enabled:
            self.stopped_by = "disabled"
        elif len(messages) < MIN_MESSAGES:
            self.stopped_by = "too few messages"
        else:
            state.signals = {SIGNAL: {"since": utc_iso(script.now()), "trigger": self.trigger}}
            try:
                for scope in dict.fromkeys(message.audience for message in messages):
                    part = [message for message in messages if message.audience == scope]
                    yield script.breathe()
                    yield self._look_through(script.memory.quarantine.messages(part))
                    if self.stopped_by == CALLED:
                        break
            except ModelError as failure:
                script.log_error("pre-compaction extraction", failure)
                self.stopped_by, error = "error", str(failure)
            finally:
                state.signals = {}
            with script.history.store.transaction():
                state.extracted = [*state.extracted, *write_notes(script, self.notes)]
        report = {
            "success": not error,
            "facts_recorded": sum(note.tool == ENTRY for note in self.notes),
            "iterations": self.iterations,
            "stopped_by": self.stopped_by,
        }
        if error:
            report["error"] = error
        return report

    @inlineCallbacks
    def _look_through(self, messages: Sequence[Message]) -> Steps[None]:
        """The passes over one scope: one, or as many as its lines need.

        Where a model's window is smaller than was known, smaller ones are tried.
        """
        script = self.script
        said = said_and_done(messages, script.tools.traits)
        if not said:
            return
        lines = message_lines(said, script.config.llm_api == "chat")
        owners = dict(enumerate(said, 1))
        for tries_left in reversed(range(FITS)):
            empty = self._prompt().budget
            room = max(100, empty.limit - empty.total - 2 * OVERHEAD_TOKENS)
            runs = yield script.mind.work(packed, lines, room, script.count)
            try:
                for run in runs[: most_requests(total_tokens(messages))]:
                    if self.stopped_by != CALLED:
                        yield self._pass(said[0].audience, run, owners)
                return
            except WindowError:
                if not tries_left:
                    raise

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
        script, text, ending = self.script, request_text(lines), self.script.tools.ending
        tokens = yield script.mind.work(count_tokens, text, script.count)
        prompt = self._prompt(text, tokens)
        self.stopped_by = "iterations"
        for _ in range(max(1, self.most - self.iterations)):
            yield script.breathe()
            reply, calls = yield self._ask(prompt, scope)
            self.iterations += 1
            results = []
            for call in calls:
                results.append((yield self._noted(call, scope, owners)))
                yield script.breathe()
            names = {call["function"]["name"] for call in calls}
            if names - {ENTRY, OBSERVATION} - ending:
                self.stopped_by = "other_tool"
            elif names & ending:
                self.stopped_by = "noop"
            elif not names:
                self.stopped_by = "no_tool_call"
            elif self.stops():
                self.stopped_by = CALLED
            if self.stopped_by != "iterations":
                return
            stored = [storable_call(call) for call in calls]
            prompt = with_exchange(prompt, reply.content or "", stored, results, script.count)
            if not prompt.fits:
                return

    @inlineCallbacks
    def _ask(self, prompt: Prompt, scope: str) -> Steps[Any]:
        """One model call; fires with the reply and its calls."""
        script, limits, ending = self.script, self.script.limits(), self.script.tools.ending
        model = "" if limits.calls_tools or limits.is_base else OFFLINE_MODEL
        request = model_request(script, prompt, CONTEXT_PRE_COMPACTION, model=model)
        reply = yield ask_job(script, request, prompt.budget, scope, self.trigger)
        calls = reply.tool_calls
        if not calls and limits.is_base and reply.model != OFFLINE_MODEL:
            facts = [json.dumps({"content": fact}) for fact in read_facts(reply.content or "")]
            calls = tuple(tool_call(new_id("call_"), ENTRY, fact) for fact in facts)
            calls += tuple(tool_call(new_id("call_"), name, "{}") for name in ending)
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
        script, lines = self.script, fields.pop(LINES, ())
        note = yield grounded(
            script.mind.work, script.journal, Note(name, fields, scope), lines, owners, self.notes
        )
        if isinstance(note, str):
            return note
        self.notes.append(note)
        return "Noted."


@inlineCallbacks
def grounded(
    work: Callable[..., Deferred[Any]],
    journal: JournalHandler,
    note: Note,
    lines: Iterable[int],
    owners: Mapping[int, Message],
    others: Iterable[Note],
) -> Steps[Note | str]:
    """Fires with a note and what it rests on, or with why it is not kept.

    Args:
        work: Calls a function that only computes.
        journal: What was written down before.
        note: The note, of one scope.
        lines: The numbers of the lines that it cites.
        owners: The messages of that scope by their numbers.
        others: Notes that were taken before.
    """
    cited = [owners[number] for number in lines if number in owners]
    newest = cited
    if not cited:  # it named no lines: those that share most of its words, the best first
        cited = yield work(_bearing_out, note.text, [*owners.values()])
        newest = cited[:1]
    at = max((message.created_at for message in newest), default="")
    said = [message for message in cited if message.role == "user"]
    own = [message for message in cited if message.role == "assistant"]
    stated = any(statement_of(message).content for message in said)
    if own and not stated and all(message.metadata.get(MEMORIES) for message in own):
        return "That repeats a memory; nobody said it now."
    texts = [n.text for n in others if n.tool == note.tool and visible(n.scope, note.scope)]
    if note.tool == ENTRY:
        texts += [
            entry.content
            for entry in journal.recent(JOURNAL_ENTRIES)
            if visible(entry.audience, note.scope) and entry.may_consolidate
        ]
    told = words(note.text)
    if told and any(words(text)[: len(told)] == told for text in texts):
        return "That is in your journal already."
    tellers = {message.speaker_name for message in said if message.speaker_name}
    told_by = ""
    if len(tellers) == 1 and note.fields.get("entity") not in tellers:
        told_by = tellers.pop()
    sources = tuple(dict.fromkeys(message.id for message in cited))
    return replace(note, sources=sources, at=at, told_by=told_by)


def _bearing_out(text: str, lines: Sequence[Message]) -> list[Message]:
    """What bears a note out: statements of people, else what was said from memory; best first."""
    said = [statement_of(message) for message in lines if message.role == "user"]
    own = [m for m in lines if m.role == "assistant" and m.metadata.get(MEMORIES)]
    best = supporting(text, said) or supporting(text, own)
    by_id = {message.id: message for message in lines}
    return [by_id[each] for each in best]


def write_notes(script: Sleeper, notes: Sequence[Note]) -> list[str]:
    """Write notes; returns the ids by which a rollback finds them.

    These are an id that all that is written has among its sources, and those of the entries.
    """
    if not notes:
        return []
    extraction_id, now = new_id("x"), script.now()
    entries, entities = list[JournalEntry](), script.entities
    for note in notes:
        fact, sources = dict(note.fields), (*note.sources, extraction_id)
        if note.tool == ENTRY:
            entry = script.journal.new(
                note.text,
                importance=fact.get("importance") or score_importance(note.text),
                entities=filter(None, [fact.get("about")]),
                audience=note.scope,
                source_message_ids=sources,
            )
            entries.append(entry)
            continue
        name, text = str(fact.pop("entity")), str(fact.pop("observation"))
        here = script.game.identify(name)
        profile = entities.met(here, name, now, sources, note.scope)
        if profile.kind == "person":
            fact["told_by"] = note.told_by
        profile = observe(profile, text, note.at or now, sources, note.scope, **fact)
        entities.put({profile.id: profile})
    script.journal.put(*entries)
    return [extraction_id, *(entry.id for entry in entries)]
