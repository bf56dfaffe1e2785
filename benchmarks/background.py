"""Measure how long people wait for answers while an assistant compacts. Prints JSON.

A player talks with an assistant whose model is a server on loopback: a turn takes it 0.3 s, a
summary 20 s. In each round plain answers come first; then the context fills up to the sleep
threshold, and later to the emergency threshold. An answer's time runs from the line to the
assistant's words. Each phase is divided by the plain answers of its own round, and the median of
the rounds is quoted, so that other work on the machine changes both alike. The same talk is
measured with `compact_background` on and, for one round, off.

    python -m benchmarks.background
    python -m benchmarks.background --summary-s 5 --answers 10 --rounds 5
"""

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.world import world

# Share of the context before the talk begins, at the background trigger and in an emergency.
BEFORE, FULL, NEARLY_FULL = 0.55, 0.71, 0.81
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
        name: The assistant's name.
        background: Its `compact_background`.
        answers: Answers in each phase without a compaction.
    """

    def __init__(self, make: Any, name: str, background: bool, answers: int):
        from evennia import create_object

        from evennia_ai.llm_interaction.prompt import measure_fixed

        self.script, self.body = make(name)
        self.answers, self.number = answers, 0
        config = {
            "compact_background": background,
            "max_context_tokens": CONTEXT_TOKENS,
            "compact_preserve_token_share": 0.1,
            "emotes": {"thinking": None},
            "sleep_after_idle_s": None,
        }
        type(self.script).reply_cooldown_s, type(self.script).stale_after_s = 0, 600
        for option, value in config.items():
            self.script.attributes.add(option, value)
        self.player = create_object(
            "evennia.objects.objects.DefaultCharacter", key="Mira", location=self.body.location
        )
        type(self.player).has_account = property(lambda one: one.key == "Mira")
        measure_fixed(self.script, self.body)

    def fill_to(self, share: float) -> None:
        """Store talk until the context is so full."""
        from evennia_ai.history.messages import Message
        from evennia_ai.llm_interaction.prompt import context_usage

        while context_usage(self.script) < share:
            self.number += 1
            role = "user" if self.number % 2 else "assistant"
            self.script.history.append([Message(role, WORDS.format(self.number) * 3)])

    def answer_s(self) -> float:
        """Say a line; return the seconds until it is answered."""
        from tests.waiting import pump_until

        self.pause(PAUSE_S)
        self.number += 1
        counts, began = self.script.runtime.counts, time.monotonic()
        before = counts["turns"]
        self.player.at_say(f"{self.body.key}, what of barrel {self.number}?")
        pump_until(lambda: counts["turns"] > before, ANSWER_S)
        taken = time.monotonic() - began
        print(f"{self.body.key}: {taken:.2f} s", file=sys.stderr, flush=True)
        return taken

    def pause(self, seconds: float) -> None:
        """Let the reactor turn for a while."""
        from tests.waiting import pump_until

        end = time.monotonic() + seconds
        pump_until(
            lambda: time.monotonic() >= end and not self.script.runtime.lock.running, ANSWER_S
        )

    def several(self) -> list[float]:
        """The times of some answers."""
        return [self.answer_s() for _ in range(self.answers)]

    def while_behind(self) -> list[float]:
        """The times of the answers for as long as a compaction runs in the background."""
        taken = []
        while self.script.runtime.behind is not None:
            taken.append(self.answer_s())
        return taken

    def settle(self) -> None:
        """Let what runs in the background end."""
        from tests.waiting import pump_until

        pump_until(lambda: self.script.runtime.behind is None, ANSWER_S)

    def tick(self) -> None:
        """A tick of the timer."""
        from tests.waiting import wait_for

        wait_for(self.script.at_tick(), ANSWER_S)

    def figures(self, rounds: int) -> dict[str, Any]:
        """Talk through all phases, so many times."""
        from tests.steps import verify_history

        self.fill_to(BEFORE)
        self.answer_s()  # the first call loads what is slow
        taken = [self.phases() for _ in range(rounds)]
        every = {name: [each for one in taken for each in one[name]] for name in taken[0]}
        records = self.script.history.compactions()
        return {
            **{name: spread(answers) for name, answers in every.items()},
            **{f"{point}_to_plain": to_plain(taken, f"{point}_s") for point in ("p50", "p95")},
            "compactions": [f"{r.trigger}: {r.report.level}" for r in records],
            "violations": len(verify_history(self.script)),
        }

    def phases(self) -> dict[str, list[float]]:
        """One round: the times of the answers, by phase."""
        phases = {"before": self.several()}
        self.fill_to(FULL)
        self.tick()
        phases["during"] = self.while_behind()
        self.settle()
        phases["after"] = self.several()
        self.fill_to(NEARLY_FULL)
        self.tick()  # the timer sees it, or the line before did
        phases["emergency"] = [self.answer_s() for _ in range(4)]
        self.settle()
        self.fill_to(NEARLY_FULL)  # by so much said at once that the line's own tick sees it
        phases["burst"] = [self.answer_s()]
        self.pause(PAUSE_S)
        phases["behind_emergency"] = self.while_behind()
        self.settle()
        return phases


def spread(taken: list[float]) -> dict[str, float]:
    """Number, median and 95th percentile in seconds."""
    ordered = sorted(taken)
    if not ordered:
        return {"answers": 0}
    at = {"p50_s": 0.5, "p95_s": 0.95, "max_s": 1.0}
    last = len(ordered) - 1
    return {
        "answers": len(ordered),
        **{name: round(ordered[round(share * last)], 3) for name, share in at.items()},
    }


def to_plain(rounds: Sequence[Mapping[str, list[float]]], point: str) -> dict[str, float]:
    """Each phase by the plain answers of its round; the median of the rounds.

    Args:
        rounds: The times of answers by phase, for each round.
        point: Which figure of `spread`.
    """
    found: dict[str, list[float]] = {}
    for phases in rounds:
        plain = spread(phases["before"])[point]
        for name, taken in phases.items():
            if taken:
                found.setdefault(name, []).append(spread(taken)[point] / plain)
    return {name: round(median(ratios), 2) for name, ratios in found.items()}


def measure(turn_s: float, summary_s: float, answers: int, rounds: int) -> dict[str, Any]:
    """Both talks, one after the other."""
    from evennia_ai.llm_interaction.client import ModelClient
    from tests.loopback import Answer, LoopbackServer, call, calls, text

    def respond(body: Mapping[str, Any]) -> Answer:
        tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
        if not tools:
            return text(SUMMARY, delay_s=summary_s)
        if "say" not in tools:
            made = calls(call("noop"))
            return Answer(tool_calls=made.tool_calls, delay_s=turn_s)
        said = len(body["messages"])
        return text(f"That is a long story, and number {said} is part of it.", delay_s=turn_s)

    with LoopbackServer(respond) as server:
        client = ModelClient(api_base=server.url, api_key="none")
        with world(client) as make:
            from django.conf import settings

            settings.EVENNIA_AI_LLM_MODEL = "openai/loopback"
            settings.EVENNIA_AI_SPEND_CAPS = {"player": {"calls_minute": 100_000}}
            found = {}
            for name, on in (("Aria", True), ("Osric", False)):
                talk = Talk(make, name, on, answers)
                found["background" if on else "in_front"] = talk.figures(rounds if on else 1)
                talk.player.delete()
    return {"turn_s": turn_s, "summary_s": summary_s, **found}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turn-s", type=float, default=0.3)
    parser.add_argument("--summary-s", type=float, default=20.0)
    parser.add_argument("--answers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
        figures = measure(options.turn_s, options.summary_s, options.answers, options.rounds)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
