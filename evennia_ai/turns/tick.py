"""The tick: what an assistant does every few seconds, awake and asleep.

`run_tick` is called by the script, one at a time. It looks for reasons not to think first, as
most ticks have nothing to do.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.errors import AssistantError, ModelError, SpendError
from evennia_ai.history.audience import STAFF, is_private
from evennia_ai.history.frames import (
    SUMMARY_TITLE,
    SYNTHESIS_TITLE,
    answer_line,
    one_line,
    quoted,
)
from evennia_ai.history.messages import SPEECH, Message
from evennia_ai.language.words import plain, telling_words
from evennia_ai.llm_interaction.budget import shortened
from evennia_ai.llm_interaction.prompt import context_usage, shown_history
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.hearsay import attributed
from evennia_ai.rag_memory.injection import chosen
from evennia_ai.rag_memory.working_memory import note, visible_conversations
from evennia_ai.recall.values import Hit, Query
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.behind import better_follows
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.due import (
    COUNT,
    EMERGENCY,
    REQUEST,
    SLEEP,
    check_room,
    due,
    firing,
)
from evennia_ai.sleep.compaction.extraction import SIGNAL
from evennia_ai.sleep.compaction.report import Done, Skipped
from evennia_ai.turns.events import Group, by_speaker, resolved, wants_answer
from evennia_ai.turns.heard import RETRY_WAITS_S, Unanswered
from evennia_ai.turns.options import within_hours
from evennia_ai.turns.spend import RATE_S

# Asleep by schedule, an assistant that was woken falls asleep again after this quiet time.
SCHEDULE_IDLE_S = 300.0
# Events heard asleep or switched off are merged into the history when there are this many.
STORED_UNANSWERED = 50
# Last characters of what was said that memory is searched for, and hits asked for.
QUERY_CHARS, RETRIEVED = 400, 12
# Lines that a prompt names again as those to answer, and most characters of each.
ANSWERED_LINES, ANSWERED_CHARS = 12, 400
# Conversations of those present that a prompt's tail names.
TALKS_SHOWN = 3


@inlineCallbacks
def run_tick(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    """One tick; fires with a word for what it did, as ``idle``, ``turn``, ``asleep``."""
    if not script.ready:
        return "warming up" if script.enabled else "disabled"
    script.runtime.see_clock(script.now())
    script.approvals.expire()
    if not script.enabled:
        script.runtime.stop_behind()
        _store_many(script)
        return "disabled"
    check_room(script)
    if script.state.mode == "sleep":
        script.runtime.stop_behind()
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


def is_called(script: Assistant) -> bool:
    """Whether somebody has spoken to the assistant since its last tick."""
    return any(map(wants_answer, script.runtime.heard()))


@inlineCallbacks
def check_emergency(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, bool]:
    """Compact before any other work if the context is nearly full; fires with whether it was.

    With `compact_background` no model is asked but the offline one: the better summary follows.
    """
    emergency = due(script, EMERGENCY)
    if emergency is None:
        return False
    behind, share = script.runtime.behind, context_usage(script)
    if behind is not None and behind[1] == EMERGENCY and share < 1.0:
        return False  # room is being made
    script.log(f"context nearly full ({share:.1%} of its room): compacting now", warning=True)
    script.runtime.stop_behind()
    extracts = better_follows(script)
    job = Compaction(script, character, EMERGENCY, emergency.plan, extracts=extracts)
    if not extracts:
        yield job.extract()
    outcome = yield job.run()
    if not isinstance(outcome, Done):
        why = outcome.reason if isinstance(outcome, Skipped) else outcome.detail
        script.log(f"emergency compaction: {why}", warning=True)
    return True


@inlineCallbacks
def check_count(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, bool]:
    """Compact if the count windows overflow or the assistant asked; fires with whether it did.

    With `compact_background` that is done behind the ticks (`begin_behind`).
    """
    if script.config.compact_background:
        return False
    found = due(script, COUNT, REQUEST)
    script.runtime.compaction_requested = False
    if found is None:
        return False
    job = Compaction(script, character, found.trigger, found.plan)
    yield job.extract()
    yield job.run()
    return True


@inlineCallbacks
def _awake(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    runtime = script.runtime
    late = runtime.due(script.now())
    if late is None and not runtime.heard():
        return "idle"
    if script.now() - runtime.last_turn_at < script.reply_cooldown_s:
        return "cooldown"
    _begin_answering(script, late)
    yield script.breathe()
    turns = capped = broken = 0
    for group in runtime.answering:
        try:
            if not _may_answer(script, group):
                runtime.unanswered.pop(group.key, None)
            elif emote := _refusal(script, group):
                capped += emote == "spend"
                _refuse(script, group, emote)
            else:
                turns += 1
                yield think(script, character, group)
        except CancelledError:
            raise  # the server stops: the next start answers
        except Exception as error:  # noqa: BLE001 - the turns of others must not be lost with it
            broken += 1
            script.turn_failed(error, group)
        runtime.answered(group)
    if broken:
        return "error"
    return "turn" if turns else "over budget" if capped else "heard"


def _refusal(script: Assistant, group: Group) -> str:
    """The emote that says why nobody answers a group now; empty if it may be answered."""
    asker = group.events[-1].speaker_id or None
    if not script.spend.may_answer(asker):
        return "busy"
    return "spend" if script.spend.reached(asker) else ""


def _refuse(script: Assistant, group: Group, emote: str) -> None:
    """Leave a group unanswered, as its player or a spend cap has used enough; say so once a minute.

    It is remembered all the same.
    """
    runtime, now = script.runtime, script.now()
    runtime.counts["declined"] += 1
    runtime.unanswered.pop(group.key, None)
    if emote == "spend":
        script.spend.tell_staff(group.events[-1].speaker_id or None)
    if not 0 <= now - runtime.declined.get(group.key, float("-inf")) < RATE_S:
        runtime.declined[group.key] = now
        script.show_to(group, script.config.emotes[emote])


def _begin_answering(script: Assistant, late: Unanswered | None) -> None:
    """Store what was heard and note what of it is answered now, in one transaction."""
    runtime = script.runtime
    queue, stored = runtime.queue, runtime.stored
    try:
        with script.store.transaction():
            heard = _heard(script) if late is None or runtime.heard() else late.group.events
            wanted = list(filter(wants_answer, heard))
            if late is not None and late.group.events is heard and not wanted:
                runtime.unanswered.pop(late.group.key)
            # What somebody asked before and got no answer to is answered with what they say now.
            keys = (group.key for group in by_speaker(wanted))
            before = [runtime.unanswered[k].group for k in keys if k in runtime.unanswered]
            events = {e.id: e for e in (*(e for group in before for e in group.events), *wanted)}
            runtime.answering = by_speaker(events.values())
            script.save_queue()
    except Exception:  # what was heard must not be lost with a write that failed
        runtime.queue, runtime.stored = queue, stored
        runtime.answering, runtime.queue_saved = (), False
        raise


def _heard(script: Assistant) -> tuple[Message, ...]:
    """Everything heard and not answered; what is queued is stored."""
    new = store_events(script) if script.runtime.passed() else ()  # first, because it may fail
    return (*script.runtime.take_stored(), *new)


def store_events(script: Assistant) -> tuple[Message, ...]:
    """Store queued events in the history, in one write; returns them as stored."""
    events = resolved(script.runtime.passed(), script.game.here())
    dropped, script.runtime.dropped = script.runtime.dropped, 0
    if dropped:
        script.trouble(f"{dropped} lines were missed: the queue of heard lines was full")
    stored = script.history.append(events)
    script.runtime.take()  # only now: a write that fails must not lose what was heard
    return tuple(stored)


def store_meanwhile(script: Assistant) -> None:
    """Store what is heard while something holds the turn lock, before the queue overflows.

    Not in a turn: its reply would follow lines that it does not answer. Not between a tool call
    and its result. Not during an export or a rollback, which need a history that stands still; a
    compaction splices by ids, so new messages do not disturb it. The next tick, or the next start
    (`Runtime.pending`), answers what is stored here.
    """
    runtime, state = script.runtime, script.state
    if len(runtime.passed()) < STORED_UNANSWERED or runtime.answering:
        return
    is_compacting = script.runtime.compacting or SIGNAL in state.signals()
    if (runtime.lock.is_exclusive and not is_compacting) or not script.history.is_answered:
        return
    try:
        runtime.stored = (*runtime.stored, *store_events(script))
    except Exception as error:  # noqa: BLE001 - it stays queued, and what holds the lock goes on
        script.log_error("storing what is heard", error)


def _store_many(script: Assistant) -> None:
    """Store what is heard without being answered, before the queue overflows."""
    script.runtime.take_stored()
    if len(script.runtime.passed()) >= STORED_UNANSWERED:
        store_events(script)
        script.save_queue()


def _may_answer(script: Assistant, group: Group) -> bool:
    """Whether a group may be answered now: it is not too old, and its speaker is still here."""
    if group.audience == STAFF:
        return False
    now, stale_s = script.now(), script.stale_after_s
    if all(script.runtime.age_s(event, now) > stale_s for event in group.events):
        return False
    if any(event.channel == "page" for event in group.events):
        return True
    here = script.game.here()
    if group.key[1] not in here:
        return False
    return is_private(group.audience) or any(here.values())


@inlineCallbacks
def think(
    script: Assistant, character: Character, group: Group
) -> Generator[Deferred[Any], Any, Any]:
    """One turn for one audience; fires with its report, or None if no model answered."""
    config, now = script.config, script.now()
    last = group.events[-1]
    recalled: Recalled = yield _retrieved(script, character, group)
    request = TurnRequest(
        audience=group.audience,
        channel=last.channel or "say",
        asker=last.speaker_id or None,
        source_ids=tuple(event.id for event in group.events),
        retrieved=recalled.given,
        passed_over=recalled.passed_over,
        max_iterations=config.max_react_iterations,
        deadline=now + script.turn_timeout_s,
        talks=_talks(script, group.audience, last.speaker_id or None),
        answering=_answering(group),
    )
    report, shown_at = None, script.runtime.trouble_shown_at
    shown_to = request.audience, request.channel, request.asker
    try:
        script.game.show_typing(True, *shown_to)
        report = yield script.run_turn(request)
        script.runtime.counts["turns"] += 1
        if script.runtime.error_passes and script.model_name not in script.mind.down:
            script.runtime.last_error = ""
        if report.spoken and last.channel in ("say", "pose"):
            script.note_reply(last.speaker_id)
        script.runtime.unanswered.pop(group.key, None)
    except AssistantError as error:
        if isinstance(error, SpendError) and (emote := _refusal(script, group)):
            _refuse(script, group, emote)
            return None
        if not isinstance(error, ModelError):  # staff know of a model that is down
            script.log_error("turn", error)
        known = script.runtime.unanswered.get(group.key)
        is_first = known is None or known.group != group
        if not script.runtime.postpone(group, script.now()):
            script.trouble(f"gave up answering after {len(RETRY_WAITS_S)} more tries: {error}")
        elif is_first and script.runtime.trouble_shown_at == shown_at:
            script.show_trouble(group)
        script.runtime.error_passes = True
    finally:
        script.game.show_typing(False, *shown_to)
        runtime = script.runtime
        runtime.last_turn_at = script.now()
        for event in group.events:
            if event.speaker_id and event.channel in SPEECH:
                runtime.conversations = note(
                    runtime.conversations,
                    event.speaker_id,
                    event.content,
                    script.now(),
                    group.audience,
                )
    return report


def _answering(group: Group) -> tuple[str, ...]:
    """The newest lines of a group, as the prompt names them again at its end."""
    return tuple(
        answer_line(e.speaker.key, e.speaker.id, e.channel, shortened(e.content, ANSWERED_CHARS))
        for e in group.events[-ANSWERED_LINES:]
        if e.speaker
    )


def _talks(script: Assistant, audience: str, asker: str | None) -> tuple[str, ...]:
    """What those present last spoke of with the assistant, newest first."""
    shut_out = script.memory.quarantine.people
    people = [each for each in script.game.present(asker) if each["id"] not in shut_out]
    names = {person["id"]: person["key"] for person in people}
    talks = visible_conversations(script.runtime.conversations, audience, script.now())
    here = [talk for talk in talks if talk["partner"] in names][:TALKS_SHOWN]
    return tuple(
        f"{one_line(names[talk['partner']])} last spoke of: {quoted(talk['topic'])}"
        for talk in here
    )


class Recalled(NamedTuple):
    """Memories for a prompt, and those that were found and not taken."""

    given: tuple[Hit, ...] = ()
    passed_over: tuple[Hit, ...] = ()


@inlineCallbacks
def _retrieved(
    script: Assistant, character: Character, group: Group
) -> Generator[Deferred[Any], Any, Recalled]:
    """Fires with memories about what was just said that are not in the prompt already."""
    said = " ".join(event.content for event in group.events)[-QUERY_CHARS:]
    if not telling_words(said, [character.key]):
        return Recalled()
    heard = [event.id for event in group.events]
    query = Query(said, RETRIEVED, exclude=heard, own_name=character.key)
    hits = yield script.seen(group.audience, trusted=True).search(query)
    history, _ = shown_history(script, group.audience)
    shown = [message for message in history if message.id not in script.runtime.left_out]
    texts = {plain(_indexed_text(message)) for message in shown}
    ids = {message.id for message in shown}
    if not script.config.compact_enabled:  # the prompt holds the raw history instead
        ids |= {hit.turn_id for hit in hits if hit.kind == "summary"}
    given = chosen(hits, said, character.key, ids, texts)
    taken = {hit.turn_id for hit in given}
    return Recalled(
        tuple(attributed(script, hit) for hit in given),
        tuple(hit for hit in hits if hit.turn_id not in taken),
    )


def _indexed_text(message: Message) -> str:
    """The text of a message as searches find it: a summary's is that of its synthesis."""
    if not message.is_summary:
        return message.content
    return f"{SYNTHESIS_TITLE} {message.content.removeprefix(SUMMARY_TITLE).lstrip()}"


@inlineCallbacks
def _sleeping(script: Assistant, character: Character) -> Generator[Deferred[Any], Any, str]:
    """A tick in sleep: run the sleep cycle once, then only compact while usage is high."""
    _store_many(script)
    first = not script.state.dreamt
    if not first and not firing(script, SLEEP, COUNT):
        return "asleep"
    script.state.set_mode("sleep", "dreaming")
    report = yield run_sleep_tick(script, character, first=first)
    script.dreamt(report)
    if script.state.mode == "sleep":  # nobody woke it meanwhile
        script.state.dreamt = True
        script.state.set_mode("sleep", "sleeping")
    return "dreamt"


def _bedtime(script: Assistant) -> bool:
    """Whether an assistant awake should fall asleep: long quiet, or quiet in its hours."""
    runtime, config = script.runtime, script.config
    if runtime.heard():
        return False
    quiet = script.now() - max(runtime.last_heard_at, runtime.last_turn_at)
    idle = config.sleep_after_idle_s
    if idle is not None and quiet >= idle:
        return True
    if config.sleep_schedule is None:
        return False
    soon = SCHEDULE_IDLE_S if idle is None else min(SCHEDULE_IDLE_S, idle)
    return quiet >= soon and within_hours(config.sleep_schedule, script.clock_time)
