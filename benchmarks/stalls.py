"""The longest stall of the reactor with many assistants talking, compacting and dreaming.

Prints JSON. Assistants talk to a server on loopback (in a process of its own) that answers after
half a second; their memory is the embedded Mem0 that a game has. Each begins with a history just
under its compaction trigger and with journal entries that no dream has seen yet; some are sent
to sleep in turn. A heartbeat every 5 ms measures how late the reactor comes to it, and how much
processor time of its own the reactor spent between two beats: what is late beyond that was spent
waiting, for Python's lock or for a processor. Beside the talk stands a quiet phase of the same
process, as the machine's own noise.

    python -m benchmarks.stalls --assistants 100 --seconds 60
    python -m benchmarks.stalls --trace 30    # stacks of the reactor when it is 30 ms late
"""

import argparse
import gc
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.world import world
from evennia_ai.history.messages import new_id, utc_iso

BEAT_S = 0.005
QUIET_S = 5.0
# Between the filling of the world and the quiet phase: the recall index takes in what it got.
SETTLE_S = 5.0
# A context in which histories of some hundred messages fill it up to the trigger.
CONTEXT_TOKENS = 16_000
# Usage each assistant begins with: over the sleep trigger of 0.7, up to the awake one of 0.8.
FILLED = (0.70, 0.795)
TICK_S = 2.0
JOURNAL_ENTRIES = 40
# One assistant goes to sleep in so many seconds, its dream follows at its next tick.
SLEEPER_EVERY_S = 2.0
NAMES = ("Mirabel", "Osric", "Tamsin", "Alder", "Wren", "Hobb", "Isolde", "Corin")
GOODS = ("barrels of ale", "silver coins", "sacks of flour", "lanterns", "goats", "letters")
PLACES = ("the Mill Bridge", "Lantern Street", "the Old Ferry", "Saltmarsh", "Crow Hill")


def line(rng: random.Random) -> str:
    """Something somebody says: names, numbers and a place, as a retention gate looks for."""
    who, whom = rng.sample(NAMES, 2)
    facts = (
        f"{who} owes {whom} {rng.randint(2, 90)} {rng.choice(GOODS)} since the fair",
        f"they meet at {rng.choice(PLACES)} when the bell strikes {rng.randint(1, 12)}",
        f'{whom} said "never before the {rng.randint(2, 28)}th of the month"',
    )
    return f"I hear that {', and '.join(rng.sample(facts, 2))}. What do you make of it?"


class Heartbeat:
    """Measures how late the reactor is, and its own processor time between beats.

    Args:
        reactor: The reactor.
        trace_ms: Note the reactor's stack when a beat is so late; 0 for never.
    """

    def __init__(self, reactor: Any, trace_ms: float = 0.0):
        self.reactor = reactor
        self.late: list[float] = []
        self.busy: list[float] = []
        self.stacks: Counter[str] = Counter()
        self._trace_s = trace_ms / 1000
        self._due = self._used = 0.0

    def start(self) -> None:
        """Begin."""
        self._due, self._used = time.perf_counter() + BEAT_S, time.thread_time()
        self.reactor.callLater(BEAT_S, self._beat)
        if self._trace_s:
            ident = threading.get_ident()
            threading.Thread(target=self._watch, args=(ident,), daemon=True).start()

    def _beat(self) -> None:
        now, used = time.perf_counter(), time.thread_time()
        self.late.append(max(0.0, (now - self._due) * 1000))
        self.busy.append((used - self._used) * 1000)
        self._due, self._used = now + BEAT_S, used
        self.reactor.callLater(BEAT_S, self._beat)

    def _watch(self, ident: int) -> None:
        """On a thread of its own: one stack for each stall that lasts."""
        noted = 0.0
        while True:
            time.sleep(self._trace_s / 4)
            due = self._due
            if due != noted and time.perf_counter() - due > self._trace_s:
                noted = due
                self.stacks["".join(traceback.format_stack(sys._current_frames()[ident])[-9:])] += 1

    def take(self) -> dict[str, Any]:
        """The figures since the last take, milliseconds."""
        late, self.late = self.late, []
        busy, self.busy = self.busy, []
        return {"beats": len(late), **spread(late), "own_processor_time": spread(busy)}


class Collections:
    """Times Python's garbage collections, on whichever thread: they stop all threads."""

    def __init__(self) -> None:
        self.taken_ms: dict[int, list[float]] = {0: [], 1: [], 2: []}
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        else:
            self.taken_ms[info["generation"]].append((now - self._began) * 1000)

    def take(self) -> dict[str, Any]:
        """By generation how many there were since the last take, and the longest."""
        taken, self.taken_ms = self.taken_ms, {0: [], 1: [], 2: []}
        return {
            f"generation_{number}": {"times": len(ms), "max_ms": round(max(ms, default=0.0), 2)}
            for number, ms in taken.items()
        }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, high percentiles and maximum of values in milliseconds."""
    ordered = sorted(values)
    last = len(ordered) - 1
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
    return {name: round(ordered[int(share * last)], 2) for name, share in shares.items()}


def _person_beside(body: Any) -> dict[str, str]:
    """A character in the same room, as the speaker of messages."""
    from evennia import create_object

    from evennia_ai.assistant.identity import speaker_of

    mira = create_object("evennia.objects.objects.DefaultCharacter", "Mira", body.location)
    return dict(speaker_of(mira))


class Crew:
    """Assistants near their compaction trigger.

    Args:
        make: Makes an assistant by its name.
        count: How many.
        rng: Source of what is said.
    """

    def __init__(self, make: Any, count: int, rng: random.Random):
        self.rng = rng
        made = [make(f"Aria{number}") for number in range(count)]
        self.scripts = [script for script, _ in made]
        self._people = {script: _person_beside(body) for script, body in made}
        self._turns = itertools.cycle(self.scripts)
        for script, body in made:
            self._prepare(script, body)
        self.before = self.counts()

    def _prepare(self, script: Any, body: Any) -> None:
        for name, value in (
            ("max_context_tokens", CONTEXT_TOKENS),
            ("reply_cooldown_s", 0),
            ("sleep_after_idle_s", None),
            ("llm_timeout_s", 30.0),
        ):
            script.state.configure(name, value)
        self._fill(script)
        for _ in range(JOURNAL_ENTRIES):
            body.journal.add(line(self.rng), importance=6)

    def _fill(self, script: Any) -> None:
        """A talk that uses the context up to somewhere between the triggers."""
        from evennia_ai.llm_interaction.prompt import context_usage, measure_fixed

        measure_fixed(script, script.obj)
        wanted = self.rng.uniform(*FILLED)
        while context_usage(script) < wanted:
            script.history.append(self._exchange(script))
        script.history.checkpoint()

    def _exchange(self, script: Any) -> list[dict[str, Any]]:
        own = {"key": script.obj.key, "id": script.obj.stable_id}
        heard = {**self._heard(script), "role": "user"}
        return [heard, {**heard, "role": "assistant", "speaker": own, "content": line(self.rng)}]

    def _heard(self, script: Any) -> dict[str, Any]:
        """A line whispered to one of them by who stands beside it."""
        speaker = self._people[script]
        return {
            "content": line(self.rng),
            "channel": "whisper",
            "audience": f"private:{speaker['id']}",
            "speaker": speaker,
        }

    def hear(self) -> None:
        """One of them is spoken to."""
        script = self.rng.choice(self.scripts)
        event = {"id": new_id("m"), "created_at": utc_iso(time.time()), "metadata": {}}
        script.hear({**self._heard(script), **event})

    def tick(self) -> None:
        """The next one's timer. A tick's Deferred is not waited for, as Evennia does not."""
        next(self._turns).at_tick()

    def sleep(self) -> None:
        """One of those awake falls asleep."""
        awake = [script for script in self.scripts if script.state.mode == "awake"]
        if awake:
            self.rng.choice(awake).fall_asleep()

    def counts(self) -> dict[str, int]:
        """What all of them did since they were made."""
        did: Counter[str] = Counter()
        for script in self.scripts:
            did.update(script.runtime.counts)
        return {
            "turns": did["turns"],
            "dreams": did["tick dreamt"],
            "compactions": sum(len(script.history.compactions()) for script in self.scripts),
            "messages": sum(script.history.recorded[0] for script in self.scripts),
            "model_calls": did["calls"],
            "late_ticks": did["late"],
            "errors": did["errors"],
            "troubles": did["troubles"],
        }

    def done(self) -> dict[str, int]:
        """What they did since the start of the measured time."""
        return {name: count - self.before[name] for name, count in self.counts().items()}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assistants", type=int, default=100)
    parser.add_argument("--lines", type=float, default=10.0, help="lines heard in a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--trace", type=float, default=0.0, help="ms late; print stacks to stderr")
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.talker", "--delay", "0.5"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        port = server.stdout.readline().strip()
        print(json.dumps(run(f"http://127.0.0.1:{port}/v1", options), indent=2))
    finally:
        server.kill()


def run(url: str, options: Any) -> dict[str, Any]:
    """The phases: quiet, then talk with compactions and dreams."""
    from evennia_ai.llm_interaction.client import ModelClient

    figures: dict[str, Any] = dict(vars(options))
    client = ModelClient(api_base=url, api_key="sk-bench", home_model="scripted/model")
    with world(client, mem0=True) as make:
        from twisted.internet import reactor
        from twisted.internet.task import LoopingCall, deferLater

        from evennia_ai import services

        os.environ["EVENNIA_AI_LLM_MODEL"] = "loopback"
        heart, collections = Heartbeat(reactor, options.trace), Collections()
        crew = Crew(make, options.assistants, random.Random(7))
        figures["history_tokens"] = sum(s.history.tokens() for s in crew.scripts) // len(
            crew.scripts
        )
        loops = (
            (LoopingCall(crew.hear), 1.0 / options.lines),
            (LoopingCall(crew.sleep), SLEEPER_EVERY_S),
            (LoopingCall(crew.tick), TICK_S / options.assistants),
        )

        def quiet(_: Any) -> Any:
            crew.before = crew.counts()
            heart.start()
            return deferLater(reactor, QUIET_S)

        def talk(_: Any) -> Any:
            figures["quiet"] = heart.take()
            collections.take()
            for loop, seconds in loops:
                loop.start(seconds, now=False)
            return deferLater(reactor, options.seconds)

        def over(_: Any) -> None:
            figures["talking"] = heart.take()
            figures["garbage_collections"] = collections.take()
            figures["done"] = crew.done()
            for stack, times in heart.stacks.most_common(40):
                print(f"--- {times} times\n{stack}", file=sys.stderr)

        def end(result: Any) -> None:
            reactor.stop()
            if result is not None:
                print(result, file=sys.stderr)

        def begin() -> None:
            done = services.warm_up()
            done.addCallback(lambda _: services.mind().memories.sources("nobody"))
            done.addCallback(lambda _: services.mind().worker.submit(int))
            done.addCallback(lambda _: deferLater(reactor, SETTLE_S))
            done.addCallback(quiet).addCallback(talk).addCallback(over).addBoth(end)

        reactor.callWhenRunning(begin)
        reactor.run()
    return figures


if __name__ == "__main__":
    main()
