"""Measure how long people wait for answers while an assistant compacts. Prints JSON.

A player talks with an assistant whose model is a server on loopback: a turn takes it 0.3 s, a
summary 20 s. In each round plain answers come first; then the context fills up to the sleep
threshold, and answers are measured for as long as the compaction runs. An answer's time runs from
the line to the assistant's words. `during_to_plain` divides the answers of a round by its plain
ones and is the median of the rounds, so that other work on the machine changes both alike.

    python -m benchmarks.background
"""

import contextlib
import sys
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from django.conf import settings

from benchmarks.figures import show, spread
from benchmarks.world import world
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.prompt import measure_fixed
from tests.loopback import Answer, LoopbackServer, call, calls, text
from tests.steps import verify_history
from tests.waiting import pump_until, wait_for

ROUNDS, PLAIN_ANSWERS = 3, 12
TURN_S, SUMMARY_S = 0.3, 20.0
# Share of the context before the talk begins, and at the background trigger.
BEFORE, FULL = 0.55, 0.71
CONTEXT_TOKENS = 24_000
ANSWER_S = 150.0
# Seconds between two lines of the player.
PAUSE_S = 0.1
WORDS = "Mirabel owes Osric {0} barrels of ale since the fair, and they meet at the old mill {0}. "
SUMMARY = (
    "Mira and the assistant spoke of what Mirabel owes Osric: ale, by the barrel, since the fair. "
    "The two meet at the old mill, where each debt is counted again. Mira asked after several of "
    "the barrels, and was told that it is a long story. Nothing was promised, and no day is set. "
    "Osric has not been paid yet; Mirabel hopes for a better harvest. Both are said to be patient."
)


class Talk:
    """One assistant, the player who talks with it, and the times of its answers.

    Args:
        make: As `benchmarks.world.world` gives it.
    """

    def __init__(self, make: Any):
        from evennia import create_object

        self.script, self.body = make("Aria")
        self.number = 0
        type(self.script).reply_cooldown_s, type(self.script).stale_after_s = 0, 600
        type(self.script).compact_preserve_token_share = 0.1
        self.script.state.configure(
            {
                "max_context_tokens": CONTEXT_TOKENS,
                "emotes": {"thinking": None},
                "sleep_after_idle_s": None,
            }
        )
        self.player = create_object(
            "evennia.objects.objects.DefaultCharacter", key="Mira", location=self.body.location
        )
        type(self.player).has_account = property(lambda one: one.key == "Mira")
        measure_fixed(self.script)

    def fill_to(self, share: float) -> None:
        """Store talk until the context is so full."""
        while self.script.usage() < share:
            self.number += 1
            role = "user" if self.number % 2 else "assistant"
            self.script.history.append([Message(role, WORDS.format(self.number) * 3)])

    def answer_s(self) -> float:
        """Say a line; return the seconds until it is answered."""
        runtime, end = self.script.runtime, time.monotonic() + PAUSE_S
        pump_until(lambda: time.monotonic() >= end and not runtime.lock.running, ANSWER_S)
        self.number += 1
        before, began = runtime.counts["turns"], time.monotonic()
        self.player.at_say(f"Aria, what of barrel {self.number}?")
        pump_until(lambda: runtime.counts["turns"] > before, ANSWER_S)
        taken = time.monotonic() - began
        print(f"{taken:.2f} s", file=sys.stderr, flush=True)
        return taken

    def round(self) -> dict[str, list[float]]:
        """The times of plain answers, and of those while a compaction runs."""
        plain, during = [self.answer_s() for _ in range(PLAIN_ANSWERS)], []
        self.fill_to(FULL)
        wait_for(self.script.at_tick(), ANSWER_S)
        while self.script.runtime.summaries.running is not None:
            during.append(self.answer_s())
        return {"plain": plain, "during": during}

    def figures(self) -> dict[str, Any]:
        """Talk through all rounds."""
        self.fill_to(BEFORE)
        self.answer_s()  # the first call loads what is slow
        rounds = [self.round() for _ in range(ROUNDS)]
        ratios = {
            point: median(spread(r["during"])[point] / spread(r["plain"])[point] for r in rounds)
            for point in ("median", "p95")
        }
        records = self.script.history.compactions()
        return {
            **{f"{name}_s": spread(sum((r[name] for r in rounds), [])) for name in rounds[0]},
            "during_to_plain": {point: round(ratio, 2) for point, ratio in ratios.items()},
            "compactions": [f"{r.trigger}: {r.report.level}" for r in records],
            "violations": len(verify_history(self.script)),
        }


def respond(body: Mapping[str, Any]) -> Answer:
    """The model's answer to a request."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if not tools:
        return text(SUMMARY, delay_s=SUMMARY_S)
    if "say" not in tools:
        return calls(call("noop"), delay_s=TURN_S)
    said = len(body["messages"])
    return text(f"That is a long story, and number {said} is part of it.", delay_s=TURN_S)


def measure() -> dict[str, Any]:
    """Talk with an assistant whose model is a server; return the figures."""
    with LoopbackServer(respond) as server:
        client = ModelClient(api_base=server.url, api_key="none")
        with world(client) as make:
            settings.EVENNIA_AI_LLM_MODEL = "openai/loopback"
            settings.EVENNIA_AI_SPEND_CAPS = {"player": {"calls_minute": 100_000}}
            return Talk(make).figures()


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
        figures = measure()
    show(figures)
