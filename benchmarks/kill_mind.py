"""Kill the mind's process at random while assistants talk, dream and compact. Prints JSON.

The Server's side is this process: Evennia on an SQLite file, assistants near their compaction
trigger, and a `RemoteMind`. The mind is a process as in a game, with Mem0 and the recall index on
disk. Each assistant is asked one question after another by a person of its own. The model is a
local server that names the question in its answer. Some assistants are sent to sleep, and some
compact, by hand or in the background. The mind is killed with SIGKILL at random moments, one time
in four while it starts. In the end each assistant dreams once more and everything is checked:

- ``answered``: questions that the model answered; ``offline``: that the offline model answered;
  ``declined``: whoever asked saw only the emote `trouble`;
- ``unanswered``: nothing came within `BOUND_S` seconds; ``answered_twice``; ``strange``: answers
  to no question;
- ``lost``, ``doubled``, ``changed``: heard lines and stored messages that are nowhere, in more than
  one place, or not as they were; ``violations``: what verification found;
- ``memory_lost``, ``ghosts``: semantic memory compared with the journal;
- ``recall_missing``: turns that the recall index does not get back within `SETTLE_S` seconds.

``back_s`` lasts from a kill until the next process is reached, with the pauses between starts.

    python -m benchmarks.kill_mind --kills 100
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import LoopingCall, deferLater

from benchmarks import kill_look, kill_steps, stalls
from benchmarks.talker import EXTRACTING, respond
from benchmarks.world import world
from tests.loopback import Answer, LoopbackServer

MODEL_S, TICK_S, DEED_EVERY_S = 1.0, 2.0, 3.0
# Pause between an answer and the next question; latest moment of a kill after the mind is reached,
# and after a process was started; one kill in so many is of the latter kind.
ASK_S, MOMENT_S, STARTING_S, STARTING_EVERY = (0.5, 6.0), 20.0, 2.0, 4
BOUND_S, REACH_S, SETTLE_S, CALM_S = 120.0, 120.0, 60.0, 20.0
MARK = re.compile(r"\bQ(\d+)\b")
DEEDS = ("sleep", "compact", "behind")
KINDS = ("answered", "offline", "declined", "unanswered")
KEPT = ("lost", "doubled", "changed", "violations")
MEMORY = ("memory_lost", "ghosts", "recall_missing")
FAULTS = ("unanswered", "answered_twice", "strange", *KEPT, *MEMORY)


@dataclass
class Question:
    """What somebody asked, and what came of it.

    Args:
        whom: Name of the assistant.
        asked_at: Monotonic seconds.
        answers: Models of the answers, in order: ``model`` or ``offline``.
        lines: What was said, in order, with the seconds since it was asked.
        signs: How often the emote `trouble` was shown.
        waited_s: Seconds until the first answer.
        left: Where the question was after `BOUND_S` without an answer.
    """

    whom: str
    asked_at: float
    answers: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    signs: int = 0
    waited_s: float = 0.0
    left: str = ""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.answers:
            return "answered" if "model" in self.answers else "offline"
        return "declined" if self.signs else "unanswered"


class Record:
    """What was asked, heard and stored in the whole run.

    Attributes:
        heard: Ids of heard lines.
        asked: Numbers of questions by the ids of their lines.
        stored: Digests of stored messages by id.
        strange: Answers to no question.
        errors: What assistants logged as errors, and how often.
    """

    def __init__(self) -> None:
        self.questions: dict[int, Question] = {}
        self.heard: list[str] = []
        self.asked: dict[str, int] = {}
        self.stored: dict[str, str] = {}
        self.strange: list[str] = []
        self.errors: Counter[str] = Counter()

    def arm(self) -> None:
        """Note what histories store, once it is committed, and what is logged as an error."""
        from evennia_ai.assistant_script import AssistantScript
        from evennia_ai.game.evennia_internals import on_commit
        from evennia_ai.history.live import HistoryHandler

        def appending(inner: Any) -> Any:
            def append(history: Any, messages: Any) -> Any:
                stored = inner(history, messages)
                noted = {m.id: kill_steps.sha(m) for m in stored}
                on_commit(lambda: self.stored.update(noted))
                return stored

            return append

        def logging(inner: Any) -> Any:
            def log_error(script: Any, what: str, error: Exception) -> Any:
                self.errors[f"{what}: {type(error).__name__}: {error}"[:200]] += 1
                return inner(script, what, error)

            return log_error

        kill_steps._wrap(HistoryHandler, "append", appending)
        kill_steps._wrap(AssistantScript, "log_error", logging)

    def ask(self, whom: str) -> int:
        """Note a new question to an assistant; returns its number."""
        number = len(self.questions) + 1
        self.questions[number] = Question(whom, time.monotonic())
        return number


class Guest:
    """Somebody who asks one assistant one question after another.

    Args:
        script: The assistant's script.
        record: Where questions are noted.
        rng: Random source.
    """

    def __init__(self, script: Any, record: Record, rng: random.Random):
        from evennia import create_object

        self.script, self.record, self.rng = script, record, rng
        where = script.obj.location
        self.body = create_object("evennia.objects.objects.DefaultCharacter", "Mira", where)
        self.body.at_msg_receive = self._received
        self.open: int | None = None
        self._newest = ""
        self._next_at = time.monotonic()

    def look(self, may_ask: bool) -> None:
        """Give up a question that has waited too long; ask the next one if it is time."""
        now = time.monotonic()
        question = self.record.questions[self.open] if self.open is not None else None
        if question is not None and now - question.asked_at > BOUND_S:
            question.left = self._place()
            self._close()
        if may_ask and self.open is None and now >= self._next_at:
            self._ask()

    def _ask(self) -> None:
        from evennia_ai.assistant_character import new_event
        from evennia_ai.game.identity import stable_id
        from evennia_ai.history.audience import private

        self.open = self.record.ask(self.script.obj.key)
        text = f"Q{self.open}: {stalls.line(self.rng)}"
        event = new_event(self.body, "whisper", text, private([stable_id(self.body)]))
        self._newest = event.id
        self.record.heard.append(event.id)
        self.record.asked[event.id] = self.open
        self.script.hear(event)

    def _place(self) -> str:
        """Where the newest question is."""
        runtime, newest = self.script.runtime, self._newest
        places = {
            "queued": runtime.heard(),
            "in a turn": [event for group in runtime.answering for event in group.events],
            "put off": [e for late in runtime.unanswered.values() for e in late.events()],
        }
        found = [place for place, events in places.items() if newest in {e.id for e in events}]
        return " and ".join(found) or "passed over"

    def _close(self) -> None:
        self.open, self._next_at = None, time.monotonic() + self.rng.uniform(*ASK_S)

    def _received(self, text: Any = None, from_obj: Any = None, **options: Any) -> bool:
        """Evennia's hook: see what the assistant says or shows."""
        if from_obj is self.script.obj and isinstance(text, tuple):
            line, kind = str(text[0]), text[1].get("type")
            if kind == "whisper":
                self._answered(line)
            elif self.open is not None and str(self.script.config.emotes["trouble"]) in line:
                self.record.questions[self.open].signs += 1
        return True

    def _answered(self, line: str) -> None:
        """Note an answer with the question that its trace names, which may be an earlier one."""
        from evennia_ai.llm_interaction.reply_trace import ReplyTrace
        from evennia_ai.llm_interaction.values import OFFLINE_MODEL

        newest = self.script.history.messages()[-1]
        trace = ReplyTrace.of(newest)
        answers = trace.answers if trace else ()
        numbers = [self.record.asked[id] for id in answers if id in self.record.asked]
        if not numbers:
            self.record.strange.append(f"{self.script.obj.key}, asked Q{self.open}: {line[:120]}")
            return
        is_offline = newest.metadata.get("model") == OFFLINE_MODEL
        question = self.record.questions[numbers[-1]]
        question.answers.append("offline" if is_offline else "model")
        waited_s = time.monotonic() - question.asked_at
        question.waited_s = question.waited_s or waited_s
        question.lines.append(f"{waited_s:.0f} s: {line[:80]}")
        if self.open in numbers:
            self._close()


class Executioner:
    """Kills the mind's process, and measures how long it is away.

    Args:
        link: The Server's way to it.
        rng: Random source.
        moment_s: Latest moment of a kill after the process is reached.
    """

    def __init__(self, link: Any, rng: random.Random, moment_s: float):
        self.link, self.rng, self.moment_s = link, rng, moment_s
        self.by_moment: Counter[str] = Counter()
        self.cut_off = 0
        self.back_s: list[float] = []
        self._since, self._killed = 0.0, 0

    def watch(self) -> None:
        """Note when another process is reached; the connection of a killed one ends a bit later."""
        if self._since and self.link.is_reached and self.link.facts["pid"] != self._killed:
            self.back_s.append(time.monotonic() - self._since)
            self._since = 0.0

    @inlineCallbacks
    def run(self, kills: int) -> Generator[Deferred[Any], Any, None]:
        """Kill so many times."""
        from twisted.internet import reactor

        while self.by_moment.total() < kills:
            is_early = self.by_moment.total() % STARTING_EVERY == STARTING_EVERY - 1
            met = self._is_starting if is_early else self.is_back
            if not (yield kill_look.until(met, REACH_S)):
                raise RuntimeError(f"the mind does not come back: {self.link.trouble}")
            within_s = STARTING_S if is_early else self.moment_s
            yield deferLater(reactor, self.rng.uniform(0.0, within_s))  # type: ignore[arg-type]
            self._kill()

    def is_back(self) -> bool:
        """Whether another process is reached than the one that was killed last."""
        return not self._since and bool(self.link.is_reached)

    def _is_starting(self) -> bool:
        process = self.link._process
        return not self.link.is_reached and process is not None and process.poll() is None

    def _kill(self) -> None:
        is_reached = self.link.is_reached
        if not is_reached and not self._is_starting():
            return
        self.cut_off += self.link.waiting
        self._killed = self.link.facts["pid"] if is_reached else self.link._process.pid
        os.kill(self._killed, signal.SIGKILL)
        self.by_moment["working" if is_reached else "starting"] += 1
        self._since = self._since or time.monotonic()
        print(f"kill {self.by_moment.total()}", file=sys.stderr, flush=True)


class Evening:
    """Assistants with their guests, and what they do beside talking.

    Args:
        make: Makes an assistant by its name.
        count: Number of assistants.
        seed: Seed of what happens.
    """

    def __init__(self, make: Any, count: int, seed: int):
        self.rng, self.record = random.Random(seed), Record()
        self.crew = stalls.Crew(make, count, self.rng)
        self.record.arm()
        self.guests = [Guest(script, self.record, self.rng) for script in self.crew.scripts]
        self.deeds: Counter[str] = Counter()
        self.may_ask = True

    def look(self) -> None:
        """Let everybody ask who has waited long enough."""
        for guest in self.guests:
            guest.look(self.may_ask)

    def deed(self) -> None:
        """Send one to sleep, or let it compact by hand or in the background."""
        from evennia_ai.commands.compaction import compact_now

        deed, script = self.rng.choice(DEEDS), self.rng.choice(self.crew.scripts)
        self.deeds[deed] += 1
        kill_steps.restore(script)
        if deed == "sleep":
            self.crew.sleep()
        elif deed == "behind":
            kill_steps.lower(script, "compact_sleep_threshold")
        else:  # it may fail as the command does, which tells the admin
            script.run_exclusive(lambda: compact_now(script)).addErrback(self._failed)

    def _failed(self, failure: Any) -> None:
        from evennia_ai.errors import AssistantError

        failure.trap(AssistantError)
        self.deeds["compact refused"] += 1

    @property
    def is_over(self) -> bool:
        """Whether no question is open and no assistant is at work."""
        runtimes = [guest.script.runtime for guest in self.guests]
        busy = any(each.in_flight is not None or each.behind is not None for each in runtimes)
        return not busy and all(guest.open is None for guest in self.guests)

    @inlineCallbacks
    def check(self, notes: list[str]) -> Generator[Deferred[Any], Any, Counter[str]]:
        """Check what is stored; fires with counts by the names of `KEPT` and `MEMORY`."""
        found: Counter[str] = Counter()
        for guest in self.guests:
            kill_steps.restore(guest.script)
            script, own = guest.script, []
            counts = yield script.run_exclusive(lambda s=script, n=own: self._checked(s, n))
            found.update(counts)
            notes += [f"{script.obj.key}: {note}" for note in own]
        found.update(self._messages(notes))
        return found

    @inlineCallbacks
    def _checked(self, script: Any, notes: list[str]) -> Generator[Deferred[Any], Any, Any]:
        from evennia_ai.rag_memory.episodic_index import is_indexed, turn_of_message
        from evennia_ai.sleep.consolidation import is_memorable

        yield kill_look.until(lambda: not script.state.outbox, SETTLE_S)
        found = kill_look._proof(script, notes)
        found.update((yield kill_look._memories(script, notes)))
        held = yield script.mind.memories.ids(script.scope)
        entries, now = script.obj.journal.recent(10**6), script.now()
        memorable = [entry for entry in entries if is_memorable(entry, now)]
        found["memory_lost"] = sum(entry.id not in held for entry in memorable)
        said = [message for messages in kill_look.kept_lists(script) for message in messages]
        turns = (turn_of_message(message, script.tools.traits) for message in said)
        ids = [turn.id for turn in turns if turn]
        ids += [entry.id for entry in entries if is_indexed(entry, now)]
        found["recall_missing"] = yield self._missing(script, ids)
        return found

    @inlineCallbacks
    def _missing(self, script: Any, ids: list[str]) -> Generator[Deferred[Any], Any, int]:
        """Fires with how many turns the index still lacks when it has had time to be filled."""
        from twisted.internet import reactor

        end = time.monotonic() + SETTLE_S
        while True:
            missing = yield script.memory.missing(ids)
            if missing == 0 or time.monotonic() > end:
                return len(ids) if missing is None else missing
            yield deferLater(reactor, 0.5)  # type: ignore[arg-type]

    def _messages(self, notes: list[str]) -> dict[str, int]:
        """Compare what was heard and stored with what is kept or still queued."""
        everything = [
            message
            for guest in self.guests
            for messages in kill_look.kept_lists(guest.script)
            for message in messages
        ]
        times = Counter(message.id for message in everything)
        digests = {message.id: kill_steps.sha(message) for message in everything}
        waiting = {event.id for guest in self.guests for event in guest.script.runtime.pending()}
        queued = [event.id for guest in self.guests for event in guest.script.runtime.queue]
        stored = self.record.stored
        lost = [each for each in stored if each not in times]
        lost += [each for each in self.record.heard if each not in {*times, *waiting}]
        doubled = [each for each, count in times.items() if count > 1]
        doubled += [each for each in queued if each in times]
        changed = [each for each, was in stored.items() if digests.get(each, was) != was]
        faults = {"lost": lost, "doubled": doubled, "changed": changed}
        notes += [f"{name}: {ids[:5]}" for name, ids in faults.items() if ids]
        return {name: len(ids) for name, ids in faults.items()}

    def asked(self, notes: list[str]) -> dict[str, Any]:
        """What came of the questions."""
        questions = self.record.questions
        kinds = Counter(question.kind for question in questions.values())
        twice = [f"Q{n}: {q.lines}" for n, q in questions.items() if len(q.answers) > 1]
        nothing = {n: q for n, q in questions.items() if q.kind == "unanswered"}
        silent = [f"Q{n} to {q.whom} ({q.left})" for n, q in nothing.items()]
        notes += [f"unanswered: {silent[:20]}"] if silent else []
        notes += [f"answered twice: {twice[:5]}"] if twice else []
        notes += self.record.strange[:5]
        waited = sorted(q.waited_s for q in questions.values() if q.answers)
        return {
            "questions": len(questions),
            **{kind: kinds[kind] for kind in KINDS},
            "answered_twice": len(twice),
            "strange": len(self.record.strange),
            "waited_s": spread(waited),
            "left_after_bound": dict(Counter(q.left for q in questions.values() if q.left)),
        }


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and maximum, in seconds."""
    ends = {"median": median(seconds or [0.0]), "max": max(seconds, default=0.0)}
    return {name: round(value, 1) for name, value in ends.items()}


def answer(body: Mapping[str, Any], number: int) -> Answer:
    """The model: as `talker`, but a reply names the newest question of its request."""
    made = respond(body, number)
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    marks = MARK.findall(json.dumps(body["messages"]))
    if made.content and marks and tools and not tools <= EXTRACTING:
        newest = max(map(int, marks))
        made = replace(made, content=f"About Q{newest}: I shall remember the {number}th thing.")
    return replace(made, delay_s=MODEL_S)


@inlineCallbacks
def play(make: Any, options: Any) -> Generator[Deferred[Any], Any, dict[str, Any]]:
    """Play and kill; fires with the figures of the module's docstring."""
    from twisted.internet import reactor

    from evennia_ai import services

    began, notes = time.monotonic(), []
    mind: Any = services.mind()
    yield mind.warm_up("loopback")
    yield mind.memories.ids("nobody")
    evening = Evening(make, options.assistants, options.seed)
    yield deferLater(reactor, 1.0)  # type: ignore[arg-type]
    yield kill_look.until(lambda: not mind.link.waiting, REACH_S)  # what was stored is indexed
    killer = Executioner(mind.link, random.Random(options.seed), options.moment)
    deeds = LoopingCall(evening.deed)
    for call, every_s in (
        (LoopingCall(evening.crew.tick), TICK_S / options.assistants),
        (LoopingCall(evening.look), 0.2),
        (LoopingCall(killer.watch), 0.05),
        (deeds, DEED_EVERY_S),
    ):
        call.start(every_s)
    yield killer.run(options.kills)
    yield kill_look.until(killer.is_back, REACH_S)
    yield deferLater(reactor, CALM_S)  # type: ignore[arg-type]
    deeds.stop()
    evening.may_ask = False
    yield kill_look.until(lambda: evening.is_over, BOUND_S + SETTLE_S)
    done = evening.crew.done()
    found = yield evening.check(notes)
    return {
        "assistants": options.assistants,
        "kills": killer.by_moment.total(),
        "by_moment": dict(killer.by_moment),
        "requests_cut_off": killer.cut_off,
        "restarts": mind.status().restarts,
        "back_s": spread(killer.back_s),
        **evening.asked(notes),
        "stored": len(evening.record.stored),
        **{name: found[name] for name in (*KEPT, *MEMORY)},
        "deeds": dict(sorted(evening.deeds.items())),
        "done": {name: done[name] for name in ("turns", "dreams", "compactions", "errors")},
        "errors": dict(evening.record.errors.most_common(20)),
        "notes": notes[:50],
        "seconds": round(time.monotonic() - began, 1),
    }


def measure(options: Any) -> dict[str, Any]:
    """Make the world and its model, play in it, and return the figures."""
    outcome: list[Any] = []
    server = LoopbackServer()
    server.respond = lambda body: answer(body, len(server.requests))
    with server:
        settings = {"LLM_API_BASE": server.url, "LLM_API_KEY": "sk-bench", "LLM_MODEL": "loopback"}
        with world(process=settings) as make:
            from twisted.internet import reactor

            os.environ["EVENNIA_AI_LLM_MODEL"] = "loopback"

            def begin() -> None:
                play(make, options).addBoth(outcome.append).addBoth(lambda _: reactor.stop())

            reactor.callWhenRunning(begin)
            reactor.run()
            if options.log:
                from evennia_ai.conf import log_path

                shutil.copy(log_path(), options.log)
    if not isinstance(outcome[0], dict):
        outcome[0].raiseException()
    return {**outcome[0], "model_calls": len(server.requests)}


def main() -> None:
    """Print the figures. The exit code says whether something was lost, doubled or not answered."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--assistants", type=int, default=20)
    parser.add_argument("--moment", type=float, default=MOMENT_S, help="latest second of a kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="copy the assistants' log to this file")
    options = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
        figures = measure(options)
    print(json.dumps(figures, indent=2))
    sys.exit(any(figures[name] for name in FAULTS) or figures["kills"] < options.kills)


if __name__ == "__main__":
    main()
