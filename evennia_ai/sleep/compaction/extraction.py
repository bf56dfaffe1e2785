"""Pre-compaction extraction: facts are saved into the journal before anything is folded."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.history.messages import Message, new_id, utc_iso
from evennia_ai.history.pairs import said_and_done
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.continuation import extraction_instruction
from evennia_ai.llm_interaction.prompt import context_limit, draft_prompt
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.plan import Plan, circle_windows, is_extraction, windows
from evennia_ai.sleep.compaction.triggers import MUCH_LESS, make_plan

MIN_MESSAGES = 5
# Journal entries among which those of an extraction that a crash cut short are looked for.
MOST_ENTRIES = 100
MAX_ITERATIONS = 5
EMERGENCY_MAX_ITERATIONS = 3
SIGNAL = "pre_compaction"
_STOPPED = {"reply": "no_tool_call", "silence": "no_tool_call"}


@inlineCallbacks
def run_pre_compaction_extraction(
    script: Assistant,
    character: Character,
    max_iterations: int = MAX_ITERATIONS,
    trigger: str = "manual",
    beside: bool = False,
    archived: Sequence[Message] = (),
) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Let the assistant save facts into its journal before the history is folded.

    One pass for each audience whose messages would leave, on the full history that audience may
    see, with `noop`, `add_journal_entry` and `update_entity_observation` only. Of a history that
    does not fit into one prompt only what would leave is shown, if need be in parts; to a private
    circle then its own words, and of what was said aloud the nearest that fits. What it did is
    noted (`state.extraction`), so that a rollback of the compaction takes it back too. `trigger` is
    what fired the compaction, as in `CompactionRecord`. With `beside` turns go on meanwhile.
    `archived` are messages to look at in place of the live ones.

    Fires with ``{"success", "facts_recorded", "iterations", "stopped_by"}``, also if a model fails.
    """
    if not script.config.pre_compact_extraction_enabled:
        return _report(True, 0, 0, "disabled")
    if len(archived or script.history.messages()) < MIN_MESSAGES:
        return _report(True, 0, 0, "too few messages")
    trace = _ExtractionTrace(script, character)
    trace.begin()
    script.state.signal(SIGNAL, {"since": utc_iso(script.now()), "trigger": trigger})
    try:
        yield script.breathe()
        iterations, stopped = yield _passes(
            script, character, max_iterations, trace.id, beside, archived
        )
    except ModelError as error:
        script.log_error("pre-compaction extraction", error)
        return {**_report(False, trace.facts(), 0, "error"), "error": str(error)}
    finally:
        script.state.signal(SIGNAL, None)
        trace.save()
    return _report(True, trace.facts(), iterations, _STOPPED.get(stopped, stopped))


@inlineCallbacks
def _passes(
    script: Assistant,
    character: Character,
    max_iterations: int,
    extraction_id: str,
    beside: bool,
    archived: Sequence[Message],
) -> Generator[Deferred[Any], Any, tuple[int, str]]:
    """The turns; fires with model calls made and the last reason.

    The limit bounds them all together, but that each part of each audience's history is shown
    once: what is folded was looked at.
    """
    iterations, stopped = 0, "noop"
    views, limit = _views(script, character, archived), context_limit(script)
    while views:
        yield script.breathe()
        audience, shown = views.pop(0)
        raw = {m.id for m in script.history.messages() if not m.is_summary}
        instruction = "" if shown else _instruction(script, character, audience)
        request = TurnRequest(
            audience,
            CONTEXT_PRE_COMPACTION,
            rules=script.config.pre_compact_prompt,
            source_ids=(extraction_id,),
            max_iterations=max(1, max_iterations - iterations),
            hidden_ids=frozenset(raw - shown if shown or archived else ()),
            archived=tuple(m for m in archived if m.id in shown),
            beside=beside,
            instruction=instruction,
        )
        report = yield script.run_turn(request)
        yield script.breathe()
        iterations, stopped = iterations + report.iterations, report.stopped_by
        # The window may be smaller than was known: then show less at once.
        if context_limit(script) < MUCH_LESS * limit:
            views, limit = _views(script, character, archived), context_limit(script)
    return iterations, stopped


def _instruction(script: Assistant, character: Character, audience: str) -> str:
    """What a turn that is shown all says behind the prompt of one awake; empty if it cannot."""
    leaving = make_plan(script, automatic=False).leaving
    ids = [m.id for m in leaving if visible(m.audience, audience)]
    return extraction_instruction(script, character, audience, ids)


def _views(
    script: Assistant, character: Character, archived: Sequence[Message] = ()
) -> list[tuple[str, frozenset[str]]]:
    """Audience and ids of the messages shown to it, for each turn there is to be; no ids: all."""
    plan = Plan(tuple(archived), (), ()) if archived else make_plan(script, automatic=False)
    return [
        (audience, shown)
        for audience in plan.audiences or (PUBLIC,)
        for shown in _parts_shown(script, character, plan, audience, bool(archived))
        if shown or not archived
    ]


def _parts_shown(
    script: Assistant,
    character: Character,
    plan: Plan,
    audience: str,
    is_archived: bool,
) -> list[frozenset[str]]:
    """What each of an audience's turns is shown; no ids where one prompt has all that leaves."""
    known = [m for m in plan.leaving if visible(m.audience, audience)]
    said = said_and_done(known, script.tools.traits)
    leaving = [m if m.tokens else m.counted(script.counter) for m in said]
    rules = script.config.pre_compact_prompt
    prompt = draft_prompt(script, character, audience, CONTEXT_PRE_COMPACTION, rules=rules)
    if not is_archived and {m.id for m in leaving}.isdisjoint(prompt.budget.left_out):
        return [frozenset()]
    room = prompt.budget.limit - prompt.budget.total + prompt.budget.regions["History"]
    if audience == PUBLIC:
        parts = windows(leaving, room)
    else:  # what was said aloud the public turns were shown
        parts = circle_windows(leaving, audience, room)
    return [frozenset(m.id for m in part) for part in parts]


class _ExtractionTrace:
    """What an extraction leaves behind, found by comparing before and after."""

    def __init__(self, script: Assistant, character: Character):
        self.id = new_id("x")
        self._script = script
        self._character = character
        self._messages = {message.id for message in script.history.messages()}
        self._entries = character.journal.count()

    def begin(self) -> None:
        """Note the extraction's id, so that what a crash cuts short can be completed."""
        state = self._script.state
        state.note_extraction({**state.extraction, "begun": self.id})

    def facts(self) -> int:
        """How many journal entries were made."""
        return len(self._made())

    def _made(self) -> list[str]:
        """Ids of the entries made; what others wrote meanwhile has another source."""
        since = int(self._character.journal.count() - self._entries)
        entries = self._character.journal.recent(since) if since > 0 else ()
        return [e.id for e in entries if self.id in e.source_message_ids]

    def _said(self) -> list[str]:
        """Ids of the messages of the extraction itself, not of what arrived meanwhile."""
        return [
            message.id
            for message in self._script.history.messages()
            if message.id not in self._messages and is_extraction(message)
        ]

    def save(self) -> None:
        """Note it on the script; an earlier extraction without a compaction is taken in."""
        state = self._script.state
        state.note_extraction(_merged(state.extraction, self.id, self._said(), self._made()))


def _merged(
    earlier: Mapping[str, Any], extraction_id: str, messages: Iterable[str], entries: Iterable[str]
) -> dict[str, Any]:
    """What an extraction did, with what is noted of an earlier one without a compaction.

    Observations have the extraction's id among their sources.
    """
    return {
        "ids": [*earlier.get("ids", ()), extraction_id],
        "messages": [*earlier.get("messages", ()), *messages],
        "entries": [*earlier.get("entries", ()), *entries],
    }


def complete_extraction(script: Assistant, character: Character) -> None:
    """Note what an extraction did that a crash cut short, by the id it had noted; at start."""
    noted = script.state.extraction
    begun = noted.get("begun")
    if not begun:
        return
    known = {*noted.get("messages", ())}
    for record in script.history.compactions():
        known.update(record.extraction.get("messages", ()))
    said = [
        message.id
        for message in script.history.messages()
        if is_extraction(message) and message.id not in known
    ]
    newest = character.journal.recent(MOST_ENTRIES)
    entries = [entry.id for entry in newest if begun in entry.source_message_ids]
    script.state.note_extraction(_merged(noted, begun, said, entries))


def _report(success: bool, facts: int, iterations: int, stopped_by: str) -> dict[str, Any]:
    return {
        "success": success,
        "facts_recorded": facts,
        "iterations": iterations,
        "stopped_by": stopped_by,
    }
