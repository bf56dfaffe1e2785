"""The tick: what an assistant does every few seconds, awake and asleep.

`run_tick` is called by the script, one at a time. It looks for reasons not to think first, as
most ticks have nothing to do.
"""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.assistant.config import within_hours
from evennia_ai.assistant.events import Group, addressed, by_audience, resolved
from evennia_ai.assistant.runtime import RETRY_WAITS_S, LiveAssistant
from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import STAFF, is_private
from evennia_ai.history.messages import SPEECH, one_line, quoted
from evennia_ai.language.words import plain, telling_words
from evennia_ai.llm_interaction.prompt import context_usage, shown_history
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.protocol import Character
from evennia_ai.rag_memory.injection import chosen, experiences, memory_line, worth_quoting
from evennia_ai.rag_memory.working_memory import note, visible_conversations
from evennia_ai.recall.values import Query
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.extraction import SIGNAL
from evennia_ai.sleep.compaction.plan import Plan
from evennia_ai.sleep.compaction.publishing import SUMMARISING
from evennia_ai.sleep.compaction.service import (
    EMERGENCY_MAX_ITERATIONS,
    compact_conversation_history,
    extract_first,
)
from evennia_ai.sleep.compaction.triggers import (
    check_feasible,
    count_fires,
    is_held_up,
    make_plan,
    wants_compaction,
    worth_a_try,
)

# Two assistants may exchange this many replies before a person has to speak.
ASSISTANT_REPLIES = 2
# Asleep by schedule, an assistant that was woken falls asleep again after this quiet time.
SCHEDULE_IDLE_S = 300.0
# Events heard asleep or switched off are merged into the history when there are this many.
STORED_UNANSWERED = 50
# What was just said is looked up by its last characters; of the hits some are shown already.
QUERY_CHARS, RETRIEVED = 400, 12
# Conversations of those present that a prompt's tail names.
TALKS_SHOWN = 3


@inlineCallbacks
def run_tick(script: LiveAssistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    """One tick; fires with a word for what it did, as ``idle``, ``turn``, ``asleep``."""
    if not script.ready:
        return "warming up" if script.enabled else "disabled"
    if not script.enabled:
        _store_many(script)
        return "disabled"
    check_feasible(script)
    if script.state.mode == "sleep":
        if not script.is_called():
            slept: str = yield _sleeping(script, character)
            return slept
        script.wake()
    elif _bedtime(script):
        script.fall_asleep()
        return "fell asleep"
    yield check_emergency(script, character)
    yield check_count(script, character)
    done: str = yield _awake(script, character)
    return done


def is_called(script: LiveAssistant) -> bool:
    """Whether somebody has spoken to the sleeping or dreaming assistant."""
    heard = script.runtime.heard()
    if not heard:
        return False
    others = [person for person in script.game.present() if person["player"]]
    return addressed(heard, script.obj.key, listeners=len(others) - 1)


@inlineCallbacks
def check_emergency(
    script: LiveAssistant, character: Character
) -> Generator[Deferred[Any], Any, bool]:
    """Compact before any other work if the context is nearly full; fires with whether it was."""
    threshold = script.config.compact_emergency_threshold
    if not wants_compaction(script, threshold, by_count=False):
        return False
    if not worth_a_try(script, threshold):
        return False
    plan = make_plan(script, automatic=False, threshold=threshold)
    if plan.empty or is_held_up(script, threshold, plan):
        _note_hopeless(script, threshold, plan)
        return False
    share = context_usage(script)
    script.log(f"context nearly full ({share:.1%} of the limit): compacting now", warning=True)
    yield extract_first(script, character, plan, threshold, EMERGENCY_MAX_ITERATIONS)
    result = yield compact_conversation_history(
        script, character, force=True, threshold=threshold, trigger="emergency"
    )
    if not result["success"] or result.get("skipped"):
        script.log(
            f"emergency compaction: {result.get('error') or result.get('reason')}", warning=True
        )
    return True


def _note_hopeless(script: LiveAssistant, threshold: float, plan: Plan) -> None:
    """Say once that folding does not help; the prompt is cut to its limit all the same."""
    if not script.runtime.hopeless_told:
        script.runtime.hopeless_told = True
        share, held = context_usage(script), len(plan.held)
        older = f", {held} older ones of private talk that a summary would not shorten"
        script.alert(
            f"the context is at {share:.0%} (trigger {threshold:.0%}) and no compaction can help: "
            f"it is filled by the newest messages{older if held else ''} and fixed regions. "
            "Raise `max_context_tokens`."
        )


@inlineCallbacks
def check_count(script: LiveAssistant, character: Character) -> Generator[Deferred[Any], Any, bool]:
    """Compact where the two windows overflow or the assistant asked; fires with whether it did."""
    asked, script.runtime.compaction_requested = script.runtime.compaction_requested, False
    config = script.config
    threshold = config.compact_sleep_threshold
    if not (count_fires(script) or asked) or not wants_compaction(
        script, threshold if asked else 1.0
    ):
        return False
    plan = make_plan(script, automatic=True)
    if plan.empty:
        return False
    yield extract_first(script, character, plan, threshold, config.pre_compact_max_iterations)
    yield compact_conversation_history(script, character, trigger="request" if asked else "count")
    return True


@inlineCallbacks
def _awake(script: LiveAssistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    runtime = script.runtime
    late = runtime.due(script.now())
    if not runtime.queue and not runtime.stored and late is None:
        return "idle"
    if script.now() - runtime.last_turn_at < script.config.reply_cooldown_s:
        return "cooldown"
    runtime.answering = _groups_to_answer(script, character, late)
    script.save_queue()
    turns = len(runtime.answering)
    for group in runtime.answering:
        if script.over_spend():
            runtime.unanswered.clear()
            runtime.answering = ()
            _tell_spent(script)
            return "over budget"
        try:
            yield think(script, character, group)
        except CancelledError:
            raise  # by a stop of the server: what is not answered is taken up at the next start
        except Exception as error:  # noqa: BLE001 - the turns of others must not be lost with it
            script.log_error("turn", error)
        runtime.answered(group)
    return "turn" if turns else "heard"


def _groups_to_answer(script: LiveAssistant, character: Character, late: Any) -> tuple[Group, ...]:
    """Store what was heard, or take up a turn that failed; those groups that call for a turn."""
    runtime = script.runtime
    heard = runtime.queue or runtime.stored
    groups = _all_heard(script) if heard else (late.group,)
    wanted = tuple(group for group in groups if _calls_for_turn(script, character, group))
    for group in groups:
        if group not in wanted:
            runtime.unanswered.pop(group.audience, None)
    return wanted


def _all_heard(script: LiveAssistant) -> tuple[Group, ...]:
    """What was heard, by audience: what was stored while something held the lock, and the queue."""
    runtime = script.runtime
    new = store_events(script) if runtime.queue else ()  # first, as it may fail
    return by_audience(event for group in (*runtime.take_stored(), *new) for event in group.events)


def _tell_spent(script: LiveAssistant) -> None:
    """Say once a day that the cap is reached."""
    today = script.spend.today()["day"]
    if script.runtime.spent_told != today:
        script.runtime.spent_told = today
        script.alert("the spend cap of today is reached; no reply until tomorrow (UTC)")


def store_events(script: LiveAssistant) -> tuple[Group, ...]:
    """Queued events become messages of the history, in one write; returns them by audience."""
    here = [person["id"] for person in script.game.present()]
    events = resolved(script.runtime.queue, here)
    dropped, script.runtime.dropped = script.runtime.dropped, 0
    if dropped:
        script.trouble(f"{dropped} lines were missed: the queue of heard lines was full")
    stored = script.history.append(events)
    script.runtime.take()  # only now: a write that fails must not lose what was heard
    return by_audience(stored)


def store_meanwhile(script: LiveAssistant) -> None:
    """Store what is heard while something holds the turn lock, before the queue overflows.

    Only where it is safe. Not in a turn: its reply would stand behind lines it does not answer.
    Not while a tool call waits for its result: nothing may part the two. And not under a holder
    that wants the history to stand still, as an export or a rollback; a compaction by command
    splices by ids, so that its summaries and its extraction do not mind. The next tick sees to
    what is stored here, or the next start (`runtime.pending`).
    """
    runtime, state = script.runtime, script.state
    if len(runtime.queue) < STORED_UNANSWERED or runtime.answering:
        return
    is_compacting = state.intent.get("phase") == SUMMARISING or SIGNAL in state.signals()
    if (runtime.exclusive and not is_compacting) or not script.history.is_answered:
        return
    try:
        runtime.stored = (*runtime.stored, *store_events(script))
    except Exception as error:  # noqa: BLE001 - it stays queued, and what holds the lock goes on
        script.log_error("storing what is heard", error)


def _store_many(script: LiveAssistant) -> None:
    """Store what is heard without being answered, before the queue overflows."""
    script.runtime.take_stored()
    if len(script.runtime.queue) >= STORED_UNANSWERED:
        store_events(script)
        script.save_queue()


def _calls_for_turn(script: LiveAssistant, character: Character, group: Group) -> bool:
    """Whether a group of events makes the assistant think."""
    triggers = group.triggers(script.config.greet_arrivals)
    if not triggers or group.audience == STAFF:
        return False
    people = [event for event in triggers if not event.metadata.get("assistant")]
    if people:
        script.runtime.assistant_replies = 0
    elif script.runtime.assistant_replies >= ASSISTANT_REPLIES:
        return False
    else:
        script.runtime.assistant_replies += 1
    private = is_private(group.audience)
    return private or any(person["player"] for person in script.game.present())


@inlineCallbacks
def think(
    script: LiveAssistant, character: Character, group: Group
) -> Generator[Deferred[Any], Any, Any]:
    """One turn for one audience; fires with its report, or None if no model answered."""
    config, now = script.config, script.now()
    triggers = group.triggers(config.greet_arrivals) or group.events
    last = triggers[-1]
    request = TurnRequest(
        audience=group.audience,
        channel=last.channel or "say",
        asker=last.speaker_id or None,
        askers=tuple({event.speaker_id for event in triggers} - {""}),
        source_ids=tuple(event.id for event in group.events),
        retrieved=(yield _retrieved(script, character, group)),
        max_iterations=config.max_react_iterations,
        deadline=now + config.turn_timeout_s,
        talks=tuple(_talks(script, group.audience)),
    )
    report = None
    try:
        report = yield script.run_turn(request)
        script.runtime.counts["turns"] += 1
        script.runtime.unanswered.pop(group.audience, None)
    except AssistantError as error:
        script.log_error("turn", error)
        if not script.runtime.postpone(group, script.now()):
            script.trouble(f"gave up answering after {len(RETRY_WAITS_S)} more tries: {error}")
    finally:
        script.runtime.last_turn_at = script.now()
        note_talk(script, group)
    return report


def _talks(script: LiveAssistant, audience: str) -> list[str]:
    """What those present spoke of with the assistant before, newest first."""
    names = {person["id"]: person["key"] for person in script.game.present()}
    talks = visible_conversations(script.runtime.conversations, audience, script.now())
    here = [talk for talk in talks if talk["partner"] in names][:TALKS_SHOWN]
    return [f"{one_line(names[t['partner']])} last spoke of: {quoted(t['topic'])}" for t in here]


def note_talk(script: LiveAssistant, group: Group) -> None:
    """Keep in working memory who speaks of what."""
    runtime = script.runtime
    for event in group.events:
        partner = event.speaker_id
        if partner and event.channel in SPEECH:
            runtime.conversations = note(
                runtime.conversations, partner, event.content, script.now(), group.audience
            )


@inlineCallbacks
def _retrieved(
    script: LiveAssistant, character: Character, group: Group
) -> Generator[Deferred[Any], Any, tuple[str, ...]]:
    """Lines of what memory holds about what was just said, what is in the prompt left out."""
    said = " ".join(event.content for event in group.events)[-QUERY_CHARS:]
    if not telling_words(said, [character.key]):
        return ()
    hits = yield script.memory.search(
        Query(
            said,
            RETRIEVED,
            group.audience,
            exclude=[event.id for event in group.events],
            own_name=character.key,
        )
    )
    shown = _shown(script, group.audience)
    ids = {message.id for message in shown}
    ids |= {m.metadata.get("summary_id") for m in shown if m.is_summary}
    memories = chosen(
        worth_quoting(hits, character.key, said),
        said,
        shown_ids=ids,
        shown_texts={plain(message.content) for message in shown},
        names=[character.key],
    )
    lines = [memory_line(hit, said) for hit in memories]
    # Switched off, compaction leaves no trace: the prompt holds the raw history in its place.
    related = experiences(hits, said, ids) if script.config.compact_enabled else ()
    if related:
        lines += ["Related past experiences:", *(memory_line(hit, said) for hit in related)]
    return tuple(lines)


def _shown(script: LiveAssistant, audience: str) -> list[Any]:
    """Messages that the audience's prompt holds, as far as the last prompt tells."""
    budgets = script.runtime.budgets
    left_out = set(budgets[-1].left_out) if budgets else set()
    history, _ = shown_history(script, audience)
    return [message for message in history if message.id not in left_out]


@inlineCallbacks
def _sleeping(script: LiveAssistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    """A tick in sleep: dream once, later only compact while usage is high."""
    _store_many(script)
    first = not script.state.dreamt
    if not first and not wants_compaction(script, script.config.compact_sleep_threshold):
        return "asleep"
    script.state.set_mode("sleep", "dreaming")
    report = yield run_sleep_tick(script, character, first=first)
    script.dreamt(report)
    if script.state.mode == "sleep":  # nobody woke it meanwhile
        script.state.set_dreamt(True)
        script.state.set_mode("sleep", "sleeping")
    return "dreamt"


def _bedtime(script: LiveAssistant) -> bool:
    """Whether an assistant awake should fall asleep: long quiet, or quiet in its hours."""
    runtime, config = script.runtime, script.config
    if runtime.queue or runtime.stored:
        return False
    quiet = script.now() - max(runtime.last_heard_at, runtime.last_turn_at)
    idle = config.sleep_after_idle_s
    if idle is not None and quiet >= idle:
        return True
    if config.sleep_schedule is None:
        return False
    soon = SCHEDULE_IDLE_S if idle is None else min(SCHEDULE_IDLE_S, idle)
    return quiet >= soon and within_hours(config.sleep_schedule, script.clock_time)
