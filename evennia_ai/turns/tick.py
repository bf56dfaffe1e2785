"""The tick: what an assistant does every few seconds, awake and asleep.

`Living.tick` is called by the script, one at a time. It looks for reasons not to think first, as
most ticks have nothing to do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from twisted.internet.defer import (
    CancelledError,
    TimeoutError,
    inlineCallbacks,
    maybeDeferred,
)

from evennia_ai.background import Steps, in_time
from evennia_ai.errors import AssistantError, ModelError, SpendError
from evennia_ai.history.audience import STAFF, is_private
from evennia_ai.history.messages import SUMMARY_TITLE, SYNTHESIS_TITLE, Message
from evennia_ai.language.words import plain, telling_words
from evennia_ai.llm_interaction.contexts import CONTEXT_UNASKED
from evennia_ai.llm_interaction.conversation import (
    answer_language,
)
from evennia_ai.llm_interaction.prompt import shown_history
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, TurnReport, TurnRequest
from evennia_ai.options import within_hours
from evennia_ai.rag_memory.finder import chosen, used
from evennia_ai.rag_memory.provenance import attributed
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit, Query
from evennia_ai.routine import BARRED, LOST, THERE, WALKS, Stop, read_routine
from evennia_ai.routine import SLEEP as SLEEPS
from evennia_ai.sleep import run_sleep_tick, without_words
from evennia_ai.sleep.compaction.behind import compact_behind
from evennia_ai.sleep.compaction.compact import Compaction, Done, Skipped, due
from evennia_ai.sleep.compaction.plan import COUNT, EMERGENCY, REQUEST, SLEEP
from evennia_ai.sleep.compaction.rules import check_room, firing
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.turns.agent_loop import Agent
from evennia_ai.turns.runtime import (
    HOUR_S,
    IDLE_S,
    Cue,
    Group,
    Used,
    by_speaker,
    resolved,
    wants_answer,
)
from evennia_ai.turns.spend_book import RATE_S
from evennia_ai.turns.tools.execution import expire
from evennia_ai.turns.turn_taking import THREAD_S

# Asleep by schedule, an assistant that was woken falls asleep again after this quiet time.
SCHEDULE_IDLE_S = 300.0
# A server that has not answered for so long may have dropped what it had read.
KEEP_WARM_S = 300.0
# Events heard asleep or switched off are merged into the history when there are this many.
STORED_UNANSWERED = 50
# Last characters of what was said that memory is searched for, and hits asked for.
QUERY_CHARS, RETRIEVED = 400, 12
# Newest lines in which keys of lore are looked for, beside those answered.
LORE_LINES = 4
# Time behind a turn's deadline after which it is cut off; until then it ends by itself.
GRACE_S = 2.0
Hits = tuple[Hit, ...]
# It speaks unasked only when nobody has spoken for this long.
QUIET_S = 120.0
# A reason is of use for this long; and what is one without any.
CUE_S, QUIET = 300.0, "it has been quiet here for a while"
# Lines in a row that nobody answers, most; and the share of a spend limit for such turns.
MOST_UNANSWERED, SPEND_SHARE = 2, 0.5
# It goes to bed when it has been quiet for this long.
BED_S = 300.0
_WHY = {BARRED: "the way is barred", LOST: "no way leads there"}


class Living(Agent):
    """An assistant that has ticks."""

    @inlineCallbacks
    def tick(self) -> Steps[str]:
        """One tick; fires with a word for what it did, as ``idle``, ``turn``, ``asleep``."""
        if not self.ready:
            return "warming up" if self.enabled else "disabled"
        expire(self)
        if not self.enabled:
            self.runtime.summaries.stop()
            self._store_many()
            return "disabled"
        check_room(self)
        self._see_company()
        if walked := (yield self._life()):
            return str(walked)
        if self.state.mode == "sleep":
            if not self.runtime.is_called():
                if self.runtime.summaries.is_compacting:
                    self.runtime.summaries.stop()
                slept: str = yield self._sleeping()
                return slept
            self.wake()
        elif self._bedtime():
            self.fall_asleep()
            return "fell asleep"
        yield self.check_emergency()
        if not self.config.compact_background:  # else it is done when the tick has ended
            job = due(self, COUNT, REQUEST)
            if job is not None:
                yield job.extract_and_run()
        done: str = yield self._awake()
        return done

    def _see_company(self) -> None:
        """Read ahead when the first player comes near after a quiet time."""
        runtime, now = self.runtime, self.now()
        players = [person for person, is_played in self.game.here().items() if is_played]
        quiet_s = now - max(runtime.company_at, runtime.last_turn_at)
        if players:
            runtime.company_at = now
        if players and quiet_s > KEEP_WARM_S:
            self.read_ahead(players[0])

    @inlineCallbacks
    def _life(self) -> Steps[str]:
        """Do what is due by features, and by the day's plan while nobody calls.

        Fires with what the tick did, empty if it goes on. What fails must not keep anybody from an
        answer.
        """
        for feature in self.features:
            try:
                did = yield maybeDeferred(feature.due, self)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - a hook of a game may raise anything
                self.log_error(f"the feature {feature.name}", error)
                continue
            if did:
                return str(did)
        if self.runtime.is_called():
            return ""
        return self.survived("following the routine", self.follow_routine, "")

    def follow_routine(self) -> str:
        """Take one step by the plan of the day; returns what the tick did, empty for nothing."""
        now = self.now()
        if self.config.routine is None:
            return ""
        routine = read_routine(self.config.routine)
        clock = self.game.clock(routine.is_game, now)
        stop = routine.at(clock.hour, clock.minute)
        is_asleep, is_done = self.state.mode == "sleep", self.state.routine == stop.label
        quiet_s = self.runtime.quiet_s(now)
        if stop.place.lower() == SLEEPS:
            self.state.routine_alert = ""  # the next day it tries again
            if is_asleep or quiet_s < BED_S:
                return ""
            self.fall_asleep()
            self.state.routine = stop.label
            return "fell asleep"
        if is_done or (is_asleep and self.state.routine_alert == stop.label):
            return ""  # nor does it wake for what it has tried in vain
        if is_asleep:
            self.wake()
        if quiet_s < THREAD_S:
            return ""  # it never leaves a talk
        return self._step(stop)

    def _step(self, stop: Stop) -> str:
        """Go one exit on; where it has arrived, do what is planned there."""
        step = self.game.step_towards(stop.place)
        if step == WALKS:
            return step
        if step == THERE:
            self.state.routine, self.state.routine_alert = stop.label, ""
            if stop.doing:
                self.runtime.cue = Cue(
                    f"it is {stop.label}; by your day's plan you do this: {stop.doing}",
                    self.now(),
                )
                self.act_out(stop.doing)
            return "routine"
        if self.state.routine_alert != stop.label:
            self.state.routine_alert = stop.label
            self.alert(f"cannot follow its routine at {stop.label}: {_WHY[step]}")
        return ""

    @inlineCallbacks
    def check_emergency(self) -> Steps[bool]:
        """Compact before any other work if the context is nearly full; fires with whether it was.

        With `compact_background` it begins now and nobody waits for it: until it has ended, prompts
        leave out the oldest lines.
        """
        if not firing(self, EMERGENCY) or self.runtime.summaries.is_compacting:
            return False  # there is room, or it is being made
        job = Compaction(self, EMERGENCY)
        if not job.plan.leaving:
            return False
        share = self.usage()
        self.log(f"context nearly full ({share:.1%} of its room): compacting now", warning=True)
        if self.config.compact_background:
            compact_behind(job)
            return True
        outcome = yield job.extract_and_run()
        if not isinstance(outcome, Done):
            why = outcome.reason if isinstance(outcome, Skipped) else outcome.detail
            self.log(f"emergency compaction: {why}", warning=True)
        return True

    @inlineCallbacks
    def _awake(self) -> Steps[str]:
        runtime = self.runtime
        now = self.now()
        late = [late.group for late in runtime.unanswered.values() if late.due <= now]
        if not late and not runtime.passed():
            unasked: str = yield self._speak_unasked()
            return unasked
        if 0 <= now - runtime.last_turn_at < self.reply_cooldown_s:  # else it was set back
            return "cooldown"
        self._begin_answering(late)
        yield self.breathe()
        turns = refused = broken = 0
        for group in runtime.answering:
            shown_at = runtime.trouble_shown_at
            try:
                if not self._may_answer(group):
                    runtime.unanswered.pop(group.key, None)
                elif self._refuses(group):
                    refused += 1
                else:
                    turns += 1
                    yield in_time(self.think(group), self.config.turn_timeout_s + GRACE_S)
            except CancelledError:
                raise  # the server stops: the next start answers
            except Exception as error:  # noqa: BLE001 - the turns of others must not be lost with it
                if not (isinstance(error, SpendError) and self._refuses(group)):
                    broken += not isinstance(error, AssistantError)
                    self.turn_failed(error, group, runtime.trouble_shown_at != shown_at)
            runtime.answered(group)
        did = {"error": broken, "turn": turns, "over budget": refused, "heard": True}
        return next(word for word, holds in did.items() if holds)

    @inlineCallbacks
    def _speak_unasked(self) -> Steps[str]:
        """One turn that nobody asked for, if all rules let it be; fires with what the tick did."""
        runtime, now = self.runtime, self.now()
        if self.why_not():
            return "idle"
        used, cue, runtime.cue = self.lately, runtime.cue, None
        reason = QUIET
        if cue is not None and 0 <= now - cue.at < CUE_S:
            reason = cue.text
        # Before the call: one that a crash cuts short has cost as much.
        self.state.unasked = used = replace(used, at=(*used.at, now))
        self.game.manners.cued_at = now
        request = TurnRequest(
            audience=self.game.audience(),
            context=CONTEXT_UNASKED,
            max_iterations=1,
            deadline=now + self.config.turn_timeout_s,
            reason=reason,
        )
        try:
            running = self.run_turn(request)
            report: TurnReport = yield in_time(running, self.config.turn_timeout_s + GRACE_S)
        except (ModelError, TimeoutError) as error:
            self.log(f"nothing is said unasked: {error}", warning=True)
            return "idle"
        finally:
            runtime.last_turn_at = self.now()
        runtime.counts["unasked"] += 1
        if report.spoken:
            self.state.unasked = replace(used, unanswered=used.unanswered + 1)
        return "unasked"

    @property
    def lately(self) -> Used:
        """What counts now of how often it spoke unasked."""
        return self.state.unasked.since(self.now(), self.runtime.player_spoke_at)

    def why_not(self) -> str:
        """Why it does not speak unasked now, in words; empty if it may."""
        return next((why for why, holds in RULES if not holds(self)), "")

    def _refuses(self, group: Group) -> bool:
        """Leave a group unanswered if its player, or a spend limit, has used enough.

        That is said once a minute; the group is remembered all the same. Returns whether it is so.
        """
        runtime, spend, now = self.runtime, self.spend, self.now()
        asker, emote = group.events[-1].speaker_id or None, "busy"
        if spend.may_answer(asker):
            if spend.reached(asker) is None:
                return False
            emote = "spend"
            spend.tell_staff(spend.account(asker))
        runtime.counts["declined"] += 1
        runtime.unanswered.pop(group.key, None)
        if not 0 <= now - runtime.declined.get(group.key, float("-inf")) < RATE_S:
            runtime.declined[group.key] = now
            self.show_to(group, emote)
        return True

    def _begin_answering(self, late: Sequence[Group]) -> None:
        """Store what was heard and note what is answered now, in one transaction.

        That is what was just heard with `late` questions, whose turns failed before and are due
        again, in the order in which they were first asked.
        """
        runtime = self.runtime
        queue = runtime.queue
        try:
            with self.store.transaction():
                new = self.store_events() if runtime.passed() else ()  # first: it may fail
                wanted = list(filter(wants_answer, new))
                # What somebody asked before and got no answer to is answered with what they ask.
                keys = {group.key for group in (*late, *by_speaker(wanted))}
                before = [each.group for key, each in runtime.unanswered.items() if key in keys]
                before.sort(key=lambda group: group.events[0].id)
                events = [*(event for group in before for event in group.events), *wanted]
                runtime.answering = by_speaker({event.id: event for event in events}.values())
                self.save_queue()
        except Exception:  # what was heard must not be lost with a write that failed
            runtime.queue = queue
            runtime.answering, runtime.queue_saved = (), False
            raise

    def store_events(self) -> tuple[Message, ...]:
        """Store queued events in the history, in one write; returns them as stored."""
        events = resolved(self.runtime.passed(), self.game.here())
        dropped, self.runtime.dropped = self.runtime.dropped, 0
        if dropped:
            self.trouble(f"{dropped} lines were missed: the queue of heard lines was full")
        stored = self.history.append(events)
        self.of_features(lambda each: each.heard(self, stored))
        self.runtime.take()  # only now: a write that fails must not lose what was heard
        return tuple(stored)

    def _store_many(self) -> None:
        """Store what is heard without being answered, before the queue overflows."""
        if len(self.runtime.passed()) >= STORED_UNANSWERED:
            self.store_events()
            self.save_queue()

    def _may_answer(self, group: Group) -> bool:
        """Whether a group may be answered now: it is not too old, and its speaker is still here."""
        if group.audience == STAFF:
            return False
        now, stale_s = self.now(), self.stale_after_s
        if all(self.runtime.age_s(event, now) > stale_s for event in group.events):
            return False
        if any(event.channel == "page" for event in group.events):
            return True
        here = self.game.here()
        if group.key[1] not in here:
            return False
        return is_private(group.audience) or any(here.values())

    @inlineCallbacks
    def think(self, group: Group) -> Steps[TurnReport]:
        """One turn for one audience; fires with its report.

        Whatever hangs in it, it is cut off soon after the turn's deadline.
        """
        runtime, last = self.runtime, group.events[-1]
        deadline = self.now() + self.config.turn_timeout_s
        asker, seen = last.speaker_id or None, self.seen(group.audience, trusted=True)
        given = yield self._retrieved(group, seen)
        spoken = (event.content for event in group.events)
        request = TurnRequest(
            audience=group.audience,
            channel=last.channel or "say",
            asker=asker,
            source_ids=tuple(event.id for event in group.events),
            retrieved=given,
            max_iterations=self.config.max_react_iterations,
            deadline=deadline,
            language=answer_language(
                self.config.language,
                spoken,
                runtime.languages.of.get(asker or "", runtime.languages.last),
            ),
        )
        shown_to = request.audience, request.channel, request.asker
        try:
            self.game.show_typing(True, *shown_to)
            report: TurnReport = yield self.run_turn(request)
            runtime.counts["turns"] += 1
            runtime.counts["answers"] += bool(report.spoken)
            runtime.counts["fell back"] += bool(report.spoken) and report.fell_back
            if runtime.trouble.passes and self.model_name not in self.mind.down:
                runtime.trouble.text = ""
            if report.spoken and last.channel in ("say", "pose"):
                self.note_reply(last.speaker_id)
            runtime.unanswered.pop(group.key, None)
            return report
        finally:
            self.game.show_typing(False, *shown_to)
            runtime.last_turn_at = self.now()

    @inlineCallbacks
    def _retrieved(self, group: Group, seen: Seen) -> Steps[Hits]:
        """Fires with lore and memories of what was said that the prompt does not hold already."""
        own_name = self.obj.key
        said = " ".join(event.content for event in group.events)[-QUERY_CHARS:]
        newest = islice(seen.newest(), LORE_LINES)
        lines = {m.id: m.content for m in (*group.events, *newest)}
        text = "\n".join(lines.values())
        facts = used((yield self.game.lore(text, said, group.audience)))
        lore = tuple(Hit(fact.id, 1.0, "", fact.text, None, kind="lore") for fact in facts)
        if not telling_words(said, [own_name]):
            return lore
        heard = [event.id for event in group.events]
        hits = yield seen.search(Query(said, RETRIEVED, exclude=heard, own_name=own_name))
        limit = self.limits().tokens
        history, _ = shown_history(seen, self.config.compact_enabled, limit)
        texts, ids = set[str](), set[str]()
        for message in history:
            if message.id in self.prompts.left_out:
                continue
            text = message.content
            if message.is_summary:  # searches find it by the text of its synthesis
                text = f"{SYNTHESIS_TITLE} {text.removeprefix(SUMMARY_TITLE).lstrip()}"
            texts.add(plain(text))
            ids.add(message.id)
        if not self.config.compact_enabled:  # the prompt holds the raw history instead
            ids |= {hit.turn_id for hit in hits if hit.kind == "summary"}
        # What it said itself before was perhaps made up.
        told = [hit for hit in hits if hit.kind != "message" or hit.speaker != own_name]
        given = chosen(told, said, own_name, ids, texts)
        return (*lore, *(attributed(self.journal, self.history, hit) for hit in given))

    @inlineCallbacks
    def _sleeping(self) -> Steps[str]:
        """A tick in sleep: run the sleep cycle once, then only compact while usage is high."""
        self._store_many()
        state = self.state
        first = not state.dreamt
        if not first and not firing(self, SLEEP, COUNT):
            return "asleep"
        state.set_mode("sleep", "dreaming")
        report = yield run_sleep_tick(self, self.obj, first=first)
        if first:
            state.last_sleep = SleepReport(self.now(), without_words(report))
        else:  # what it did joins the report of the dream
            did = without_words({n: step for n, step in report.items() if not step.get("skipped")})
            dream = state.last_sleep
            state.last_sleep = replace(dream, steps={**dream.steps, **did})
        if state.mode == "sleep":  # nobody woke it meanwhile
            # What waits for a model call of its own goes on at the next tick.
            state.dreamt = not any(step.get("waiting") for step in report.values())
            state.set_mode("sleep", "sleeping")
        return "dreamt"

    def _bedtime(self) -> bool:
        """Whether an assistant awake should fall asleep: long quiet, or quiet in its hours."""
        runtime, config = self.runtime, self.config
        if runtime.passed():
            return False
        quiet = self.now() - max(runtime.last_heard_at, runtime.last_turn_at)
        idle = config.sleep_after_idle_s
        if idle is not None and quiet >= idle:
            return True
        if config.sleep_schedule is None:
            return False
        soon = min(SCHEDULE_IDLE_S, idle or SCHEDULE_IDLE_S)
        now = self.now()
        return quiet >= soon and within_hours(
            config.sleep_schedule, lambda is_game: self.game.clock(is_game, now)
        )


# Why nobody speaks unasked, and what must hold that it does; in the order in which it is asked.
RULES: tuple[tuple[str, Callable[[Living], bool]], ...] = (
    ("its option `initiative` is 0", lambda s: s.config.initiative > 0),
    ("it is on the offline model", lambda s: s.model_name != OFFLINE_MODEL),
    ("the window of its model is too small", lambda s: not s.limits().only_talks),
    ("it is switched off or asleep", lambda s: s.enabled and s.state.mode == "awake"),
    ("no player who is not idle is here", lambda s: bool(s.game.company(IDLE_S))),
    ("somebody spoke in the last two minutes", lambda s: s.runtime.quiet_s(s.now()) >= QUIET_S),
    (
        "an assistant spoke unasked here in the last two minutes",
        lambda s: not 0 <= s.now() - s.game.manners.cued_at < QUIET_S,
    ),
    (
        "it has spoken unasked often enough for this hour",
        lambda s: sum(0 <= s.now() - at < HOUR_S for at in s.lately.at) < s.config.initiative,
    ),
    (
        "nobody answered its last two lines; it waits until a player speaks",
        lambda s: s.lately.unanswered < MOST_UNANSWERED,
    ),
    # The last, as it asks the database.
    ("half of a spend limit is used up", lambda s: s.spend.reached(share=SPEND_SHARE) is None),
)
