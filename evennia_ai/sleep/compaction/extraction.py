"""Pre-compaction extraction: before lines leave, a model notes what must not be lost of them.

A job beside the talk, not a turn: nothing of it enters the history. Each scope has passes of its
own over numbered lines, and each note cites the numbers it rests on, so that its sources are exact
and its audience is the scope. Nothing is written before all is there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, ToolError, WindowError
from evennia_ai.history.audience import visible
from evennia_ai.history.messages import Message, new_id, total_tokens, utc_iso
from evennia_ai.history.pairs import MEMORIES, said_and_done
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.budget import TOKENS_A_PASS, most_requests, packed
from evennia_ai.llm_interaction.contexts import (
    CLOSE_WITH_SUMMARY,
    CONTEXT_PRE_COMPACTION,
    CONTEXTS,
    SUMMARY_MARK,
)
from evennia_ai.llm_interaction.prompt import (
    OFFLINE_MODEL,
    job_prompt,
    job_room,
    model_request,
    note_request,
    with_exchange,
)
from evennia_ai.llm_interaction.regions import Prompt
from evennia_ai.llm_interaction.summary import message_lines, request_text, summary_prompt
from evennia_ai.llm_interaction.tokens import count_tokens
from evennia_ai.llm_interaction.tool_calls import storable_call, tool_call
from evennia_ai.llm_interaction.transcript import read_facts
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.entities import observe, profile_met
from evennia_ai.rag_memory.journal_entry import score_importance
from evennia_ai.rag_memory.provenance import statement_of, supporting
from evennia_ai.sleep.compaction.due import BETTER, EMERGENCY, MANUAL

MIN_MESSAGES = 5
MAX_ITERATIONS = 5
EMERGENCY_MAX_ITERATIONS = 3
SIGNAL = "pre_compaction"
# The two tools that note something, and the argument in which they name lines.
ENTRY, OBSERVATION, LINES = "add_journal_entry", "update_entity_observation", "lines"
# Newest journal entries among which the same words are looked for.
_JOURNAL_SEEN = 200
# So often lines are packed anew because a model's window is smaller than was known.
_FITS = 6


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


@dataclass
class Extraction:
    """What the passes over some scopes gave, nothing of it stored yet."""

    notes: tuple[Note, ...] = ()
    # The replies with which passes closed, by the key of the part they sum up.
    summaries: dict[str, ModelReply] = field(default_factory=dict)
    iterations: int = 0
    # ``noop``, ``no_tool_call``, ``other_tool``, ``iterations``, ``summary``, ``disabled``, ``too
    # few messages`` or ``error``.
    stopped_by: str = "noop"
    error: str = ""  # what failed, if anything did

    @property
    def report(self) -> dict[str, Any]:
        """``{"success", "facts_recorded", "iterations", "stopped_by"}``, and ``error``."""
        facts = sum(note.tool == ENTRY for note in self.notes)
        failed = {"error": self.error} if self.error else {}
        return {
            "success": not self.error,
            "facts_recorded": facts,
            "iterations": self.iterations,
            "stopped_by": self.stopped_by,
            **failed,
        }


@inlineCallbacks
def run_pre_compaction_extraction(
    script: Assistant, character: Character, max_iterations: int = MAX_ITERATIONS
) -> Steps[dict[str, Any]]:
    """Let the assistant save facts of its whole live history, and write them at once.

    Before a compaction `Extractor` is used, whose notes the commit writes. A rollback of the next
    compaction takes back what is written here, too.

    Fires with ``{"success", "facts_recorded", "iterations", "stopped_by"}``, also if a model fails.
    """
    raw = [message for message in script.history.messages() if not message.is_summary]
    scopes = dict.fromkeys(message.audience for message in raw)
    parts = {scope: [m for m in raw if m.audience == scope] for scope in scopes}
    extraction = yield Extractor(script, MANUAL, most=max_iterations).run(parts)
    if extraction.notes:
        with script.history.store.transaction():
            written = write_notes(script, extraction.notes)
            script.state.extracted = [*script.state.extracted, *written]
    return dict(extraction.report)


def write_notes(script: Assistant, notes: Sequence[Note]) -> list[str]:
    """Write notes; returns the ids by which a rollback finds them.

    These are an id that all that is written has among its sources, and those of the entries.
    """
    if not notes:
        return []
    extraction_id, now = new_id("x"), script.now()
    ids, profiles, changed = [extraction_id], dict(script.entities.profiles()), set[str]()
    for note in notes:
        sources = (*note.sources, extraction_id)
        if note.tool == ENTRY:
            importance = note.fields.get("importance") or score_importance(note.text)
            entry = script.journal.add(
                note.text, importance=importance, audience=note.scope, source_message_ids=sources
            )
            ids.append(entry.id)
            continue
        fact = dict(note.fields)
        name, text = str(fact.pop("entity")), str(fact.pop("observation"))
        here = script.game.identify(name)
        profile = profile_met(profiles, here, name, now, sources, note.scope)
        fact["told_by"] = note.told_by if profile.kind == "person" else ""
        at = note.at or now
        profiles[profile.id] = observe(profile, text, at, sources, note.scope, **fact)
        changed.add(profile.id)
    if changed:
        script.entities.put({key: profiles[key] for key in changed})
    return ids


@dataclass
class Extractor:
    """Looks through the lines of scopes for what to note; stores nothing."""

    script: Assistant
    trigger: str  # what fired the compaction
    instructions: str | None = None  # additional instructions for the summary
    summarises: bool = False  # whether a pass may close with the summary of its lines
    # Most model calls in all, but that each part's lines are shown once; by default as configured,
    # fewer in an emergency and behind one.
    most: int | None = None
    extraction: Extraction = field(default_factory=Extraction)

    @inlineCallbacks
    def run(self, parts: Mapping[str, Sequence[Message]]) -> Steps[Extraction]:
        """Look through messages of one scope each, oldest first, by any key.

        Fires with what was found, also if a model fails.
        """
        script, config = self.script, self.script.config
        if not config.pre_compact_extraction_enabled:
            return Extraction(stopped_by="disabled")
        if sum(map(len, parts.values())) < MIN_MESSAGES:
            return Extraction(stopped_by="too few messages")
        is_chat = config.llm_api == "chat" and script.model_name != OFFLINE_MODEL
        may_summarise = is_chat and not config.compact_model and script.limits().calls_tools
        self.summarises = self.summarises and may_summarise
        if self.most is None:
            is_urgent = self.trigger in (EMERGENCY, BETTER)
            self.most = EMERGENCY_MAX_ITERATIONS if is_urgent else config.pre_compact_max_iterations
        script.state.signals = {SIGNAL: {"since": utc_iso(script.now()), "trigger": self.trigger}}
        try:
            for key, messages in parts.items():
                yield script.breathe()
                yield self.look_through(key, script.memory.quarantine.messages(messages))
        except ModelError as error:
            script.log_error("pre-compaction extraction", error)
            self.extraction.stopped_by, self.extraction.error = "error", str(error)
        finally:
            script.state.signals = {}
        return self.extraction

    @inlineCallbacks
    def look_through(self, key: str, messages: Sequence[Message]) -> Steps[None]:
        """The passes over one part: one, or as many as its lines need."""
        script = self.script
        said = said_and_done(messages, script.tools.traits)
        if not said:
            return
        lines = message_lines(said, script.config.llm_api == "chat")
        owners = dict(enumerate(said, 1))
        for _ in range(_FITS):
            room = job_room(self._prompt())
            runs = yield script.mind.work(packed, lines, room, script.count)
            runs = runs[: most_requests(total_tokens(messages), TOKENS_A_PASS)]
            try:
                for run in runs:
                    reply = yield self._pass(said[0].audience, run, owners)
                    if reply is not None and len(runs) == 1:
                        self.extraction.summaries[key] = reply
                return
            except WindowError as error:
                last = error
        raise last

    def _prompt(self, text: str = "", tokens: int = 0) -> Prompt:
        """The prompt of a pass that shows this text of so many tokens."""
        script = self.script
        rules, more = CONTEXTS[CONTEXT_PRE_COMPACTION].rules, 0
        if self.summarises:
            prompt = summary_prompt(script, self.instructions or "")
            rules, more = f"{rules}\n{CLOSE_WITH_SUMMARY}\n{prompt}", script.limits().caps.summary
        tools = script.tools.note_schemas()
        return job_prompt(script, script.obj, rules, text, tokens, tools, more)

    @inlineCallbacks
    def _pass(
        self, scope: str, lines: Sequence[str], owners: Mapping[int, Message]
    ) -> Steps[ModelReply | None]:
        """One pass over lines that fit into a request; fires with a summary it closed with."""
        script, extraction = self.script, self.extraction
        text = request_text(lines)
        tokens = yield script.mind.work(count_tokens, text, script.count)
        prompt = self._prompt(text, tokens)
        left = max(1, (self.most or 0) - extraction.iterations)
        extraction.stopped_by = "iterations"
        for _ in range(left):
            yield script.breathe()
            reply, calls = yield self._ask(prompt, scope)
            extraction.iterations += 1
            results = []
            for call in calls:
                results.append((yield self._noted(call, scope, owners)))
                yield script.breathe()
            names = {call["function"]["name"] for call in calls}
            if names - {ENTRY, OBSERVATION} - script.tools.ending:
                extraction.stopped_by = "other_tool"
            elif names & script.tools.ending or not calls:
                extraction.stopped_by = "noop" if calls else "no_tool_call"
            summary = _closing(reply) if self.summarises else None
            if summary is not None and extraction.stopped_by != "other_tool":
                extraction.stopped_by = "summary"
            if extraction.stopped_by != "iterations":
                return summary
            stored = [storable_call(call) for call in calls]
            prompt = with_exchange(script, prompt, reply.content or "", stored, results)
            if not prompt.fits:
                break
        return None

    @inlineCallbacks
    def _ask(self, prompt: Prompt, scope: str) -> Steps[Any]:
        """One model call; fires with the reply and its calls."""
        script, purpose = self.script, CONTEXT_PRE_COMPACTION
        event = note_request(script, prompt.budget, purpose, script.model_name, scope, self.trigger)
        limits = script.limits()
        model = "" if limits.calls_tools or limits.is_base else OFFLINE_MODEL
        request = model_request(script, script.obj, prompt, purpose, model=model)
        reply = yield script.spend.complete(request)
        script.spent(reply, purpose, script.budgets.answered(event, reply))
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
        cited = [owners[number] for number in fields.pop(LINES, ()) if number in owners]
        note = Note(name, fields, scope)
        at = max((message.created_at for message in cited), default="")
        if not cited:  # it named no lines: those that share most of its words, the best first
            cited = yield self.script.mind.work(_bearing_out, note.text, [*owners.values()])
            at = cited[0].created_at if cited else ""
        if _is_recalled(cited):
            return "That repeats a memory; nobody said it now."
        if self._is_known(note):
            return "That is in your journal already."
        said = [message for message in cited if message.role == "user"]
        tellers = {m.speaker_name for m in said if m.speaker_name}
        is_other = all(m.speaker_name != fields.get("entity") for m in said)
        note = replace(
            note,
            sources=tuple(dict.fromkeys(message.id for message in cited)),
            at=at,
            told_by=tellers.pop() if len(tellers) == 1 and is_other else "",
        )
        self.extraction.notes += (note,)
        return "Noted."

    def _is_known(self, note: Note) -> bool:
        """Whether the journal, or this extraction, says the same in these words, or goes on so."""
        mine = [n for n in self.extraction.notes if n.tool == note.tool]
        texts = [n.text for n in mine if visible(n.scope, note.scope)]
        if note.tool == ENTRY:
            entries = self.script.journal.recent(_JOURNAL_SEEN)
            texts += [
                e.content for e in entries if visible(e.audience, note.scope) and e.may_consolidate
            ]
        told = words(note.text)
        return bool(told) and any(words(text)[: len(told)] == told for text in texts)


def _bearing_out(text: str, lines: Sequence[Message]) -> list[Message]:
    """What bears a note out: statements of people, else what was said from memory; best first."""
    said = {m.id: m for m in lines if m.role == "user" and statement_of(m).content}
    own = {m.id: m for m in lines if m.role == "assistant" and m.metadata.get(MEMORIES)}
    found = supporting(text, [statement_of(m) for m in said.values()]) or supporting(
        text, own.values()
    )
    return [(said | own)[each] for each in found]


def _is_recalled(cited: Sequence[Message]) -> bool:
    """Whether a note rests on what the assistant said from memory, and on questions, alone."""
    own = [message for message in cited if message.role == "assistant"]
    asked = [message for message in cited if message.role == "user"]
    return (
        bool(own)
        and all(message.metadata.get(MEMORIES) for message in own)
        and not any(statement_of(message).content for message in asked)
    )


def _closing(reply: ModelReply) -> ModelReply | None:
    """The reply as that of a summary's request, if it closes with a whole summary."""
    if reply.finish_reason == "length":
        return None
    _, mark, text = (reply.content or "").partition(SUMMARY_MARK)
    return replace(reply, content=text.strip(), tool_calls=()) if mark and text.strip() else None
