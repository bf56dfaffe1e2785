"""Measure the longest reactor stall while many assistants talk, compact and dream. Prints JSON.

Assistants talk to a local server (a separate process) that answers after half a second. Their
memory is the embedded Mem0 that a game has. Each begins with a history just under its compaction
trigger and with journal entries that no dream has seen yet. Some are sent to sleep in turn.

A heartbeat every 5 ms measures how late the reactor is. A quiet phase of the same process shows the
machine's own noise.

    python -m benchmarks.stalls
"""

import gc
import itertools
import os
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from benchmarks.figures import show, spread
from benchmarks.talker import running
from benchmarks.world import world
from evennia_ai import services
from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
from evennia_ai.llm_interaction.prompt import measure_fixed

ASSISTANTS, LINES_A_SECOND, TALKING_S = 100, 10.0, 60.0
BEAT_S = 0.005
QUIET_S = 5.0
# Time between filling the world and the quiet phase, for the recall index to catch up.
SETTLE_S = 5.0
# A context that histories of a few hundred messages fill up to the trigger.
CONTEXT_TOKENS = 16_000
# Usage each assistant begins with: above the sleep trigger of 0.7, up to the emergency one of 0.8.
FILLED = (0.70, 0.795)
TICK_S = 2.0
JOURNAL_ENTRIES = 40
# Seconds after which the next assistant goes to sleep; its dream follows at its next tick.
SLEEPER_EVERY_S = 2.0
NAMES = ("Mirabel", "Osric", "Tamsin", "Alder", "Wren", "Hobb", "Isolde", "Corin")
GOODS = ("barrels of ale", "silver coins", "sacks of flour", "lanterns", "goats", "letters")
PLACES = ("the Mill Bridge", "Lantern Street", "the Old Ferry", "Saltmarsh", "Crow Hill")


def line(rng: random.Random) -> str:
    """Return a line with the names, numbers and places that a retention check looks for."""
    who, whom = rng.sample(NAMES, 2)
    facts = (
        f"{who} owes {whom} {rng.randint(2, 90)} {rng.choice(GOODS)} since the fair",
        f"they meet at {rng.choice(PLACES)} when the bell strikes {rng.randint(1, 12)}",
        f'{whom} said "never before the {rng.randint(2, 28)}th of the month"',
    )
    return f"I hear that {', and '.join(rng.sample(facts, 2))}. What do you make of it?"


class Heartbeat:
    """Measures how late the reactor is.

    Args:
        reactor: The reactor.
    """

    def __init__(self, reactor: Any):
        self.reactor = reactor
        self.late: list[float] = []
        self._due = 0.0

    def start(self) -> None:
        """Start the heartbeat."""
        self._due = time.perf_counter() + BEAT_S
        self.reactor.callLater(BEAT_S, self._beat)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.late.append(max(0.0, (now - self._due) * 1000))
        self._due = now + BEAT_S
        self.reactor.callLater(BEAT_S, self._beat)

    def take(self) -> dict[str, Any]:
        """Return the figures since the last call, in milliseconds."""
        late, self.late = self.late, []
        return {"late_ms": spread(late)}


def _person_beside(body: Any) -> Speaker:
    """Create a character in the same room, as the speaker of messages."""
    from evennia import create_object

    from evennia_ai.game.seeing import speaker_of

    mira = create_object("evennia.objects.objects.DefaultCharacter", "Mira", body.location)
    return speaker_of(mira)


class Crew:
    """Assistants near their compaction trigger.

    Args:
        make: Makes an assistant by its name.
        count: Number of assistants.
        rng: Random source of the conversation.
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
        """Give it a conversation that fills the context to between the triggers, and a journal."""
        type(script).reply_cooldown_s = 0
        config = {"sleep_after_idle_s": None, "llm_timeout_s": 30.0}
        script.state.configure({"max_context_tokens": CONTEXT_TOKENS, **config})
        measure_fixed(script)
        wanted = self.rng.uniform(*FILLED)
        while script.usage() < wanted:
            heard, own = self._heard(script), Speaker(body.key, body.stable_id)
            reply = replace(heard, role="assistant", speaker=own, content=line(self.rng))
            script.history.append([heard, reply])
        script.history.replace(script.history.messages())
        for _ in range(JOURNAL_ENTRIES):
            body.journal.add(line(self.rng), importance=6)

    def _heard(self, script: Any) -> Message:
        """Return a line that somebody next to one of them whispers to it."""
        speaker = self._people[script]
        circle = f"private:{speaker.id}"
        return Message("user", line(self.rng), speaker=speaker, audience=circle, channel="whisper")

    def hear(self) -> None:
        """Let somebody speak to one of them."""
        script = self.rng.choice(self.scripts)
        event = replace(self._heard(script), id=new_id("m"), created_at=utc_iso(time.time()))
        script.hear(event)

    def tick(self) -> None:
        """Fire the next one's timer. As in Evennia, nobody waits for the tick's Deferred."""
        next(self._turns).at_tick()

    def sleep(self) -> None:
        """Let one of those awake fall asleep."""
        awake = [script for script in self.scripts if script.state.mode == "awake"]
        if awake:
            self.rng.choice(awake).fall_asleep()

    def counts(self) -> dict[str, int]:
        """Return what all of them did since they were made."""
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
        """Return what they did since the measurement began."""
        return {name: count - self.before[name] for name, count in self.counts().items()}


def run(url: str) -> dict[str, Any]:
    """Run the phases: quiet, then talk with compactions and dreams."""
    figures: dict[str, Any] = {"assistants": ASSISTANTS}
    address = {"LLM_API_BASE": url, "LLM_API_KEY": "sk-bench", "LLM_MODEL": "scripted/model"}
    with world(process=address) as make:
        from django.conf import settings
        from twisted.internet import reactor
        from twisted.internet.task import LoopingCall, deferLater

        os.environ["EVENNIA_AI_LLM_MODEL"] = "loopback"
        settings.EVENNIA_AI_SPEND_CAPS = {}  # the game's own would be reached within a minute
        heart = Heartbeat(reactor)
        crew = Crew(make, ASSISTANTS, random.Random(7))
        loops = (
            (LoopingCall(crew.hear), 1.0 / LINES_A_SECOND),
            (LoopingCall(crew.sleep), SLEEPER_EVERY_S),
            (LoopingCall(crew.tick), TICK_S / ASSISTANTS),
        )

        def quiet(_: Any) -> Any:
            crew.before = crew.counts()
            heart.start()
            return deferLater(reactor, QUIET_S)

        def talk(_: Any) -> Any:
            figures["quiet"] = heart.take()
            for loop, seconds in loops:
                loop.start(seconds, now=False)
            return deferLater(reactor, TALKING_S)

        def over(_: Any) -> None:
            figures["talking"] = heart.take()
            figures["done"] = crew.done()

        def end(result: Any) -> None:
            reactor.stop()
            if result is not None:
                print(result, file=sys.stderr)

        def begin() -> None:
            done = services.mind().warm_up("scripted/model")
            done.addCallback(lambda _: services.mind().memories.ids("nobody"))
            done.addCallback(lambda _: services.mind().recall.count("nobody"))
            done.addCallback(lambda _: gc.freeze())  # as `startstop.warm_up`
            done.addCallback(lambda _: deferLater(reactor, SETTLE_S))
            done.addCallback(quiet).addCallback(talk).addCallback(over).addBoth(end)

        reactor.callWhenRunning(begin)
        reactor.run()
    return figures


if __name__ == "__main__":
    with running() as url:
        show(run(url))
