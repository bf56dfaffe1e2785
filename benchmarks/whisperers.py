"""What a compaction costs where people also whisper, and what it leaves, at several limits.

Twenty rounds of six speakers, four of whom whisper as well, are told to an assistant in memory,
then `compact` is asked of it. The model is a script: it notes the one thing that was said aloud
and is worth noting, of the lines that it is shown, and closes with a summary.

    python -m benchmarks.whisperers
    python -m benchmarks.whisperers --limits 4096 6000

Prints JSON: for each limit model calls, their prompt tokens, lines of talk kept of those that a
window asks for, journal entries that hold the fact and for whom they are, the usage before and
after, and what was told to staff.
"""

import argparse
import re

from benchmarks.figures import show
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, Speaker, is_talk
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.due import MANUAL
from evennia_ai.sleep.compaction.report import Done
from evennia_ai.testing import FakeAssistant, ScriptedModel, call
from tests.steps import verify_history

LIMITS = (4096, 6000, 8000, 10_000, 12_000, 16_000, 100_000)
SPEAKERS = ("Alice", "Bram", "Cora", "Dirk", "Esme", "Fitz")
WHISPERERS = SPEAKERS[:4]
ROUNDS = 20
FACT = "Cora's boat is called Windhover."
TALK = (
    "I was down at the harbour this morning, and the boats were late again; nobody there could "
    "say why, not even the old man at the crane.",
    "They say the bridge will be closed for a week from Monday on, so whoever wants to go to the "
    "market had better leave before that.",
    "Have you tried the stew? It is better than yesterday's, though I would have put in less salt "
    "and let it stand for another hour or two.",
    "My brother means to sell the mill, if he finds somebody who buys it for what he paid himself, "
    "and I do not think that he ever will.",
    "The road to the north is muddy from the rain; I would not take a cart there before the wind "
    "has dried it, and that may well take days.",
    "I owe the smith four coins for the hinges, and he will not let me forget it as long as I walk "
    "past his door every single morning.",
)


def speaker(name):
    """A speaker of that name."""
    return Speaker(name, f"o{SPEAKERS.index(name)}.{name.lower()}")


def scene():
    """The messages of the talk, about two hundred."""
    messages = []
    for number in range(ROUNDS):
        for place, name in enumerate(SPEAKERS):
            text = FACT if (number, name) == (2, "Cora") else TALK[(number + place) % len(TALK)]
            aside = name in WHISPERERS and (number + place) % 2 == 0
            audience = private([speaker(name).id]) if aside and text != FACT else PUBLIC
            channel = "whisper" if audience != PUBLIC else "say"
            heard = Message("user", text, speaker=speaker(name), audience=audience, channel=channel)
            messages.append(heard)
            if (number + place) % 3 == 0:
                answer = f"So it is, {name}."
                messages.append(Message("assistant", answer, audience=audience, channel=channel))
        if number % 5 == 0:
            messages.append(Message("user", "", speaker=speaker("Fitz"), channel="leave"))
    return messages


def answer(request):
    """What the scripted model says."""
    shown = str(request.messages[-1]["content"])
    names = [tool["function"]["name"] for tool in request.tools]
    summary = "They spoke of the harbour, the bridge, the stew, the mill and the road."
    if "add_journal_entry" not in names:
        return summary
    calls = []
    if (line := re.search(r"^(\d+)\. .*Windhover", shown, re.MULTILINE)) is not None:
        calls += call("add_journal_entry", content=FACT, importance=6, lines=[int(line[1])])
    return ModelReply(content=f"SUMMARY: {summary}", tool_calls=tuple(calls), model=request.model)


def measured(limit):
    """The figures at one limit."""
    model = ScriptedModel(default=answer)
    aria = FakeAssistant(model, max_context_tokens=limit)
    measure_fixed(aria, aria.obj)
    aria.history.append(scene())
    before, talk = aria.usage(), sum(map(is_talk, scene()))
    job, outcomes = Compaction(aria, MANUAL), []
    job.extract().addCallback(lambda _: job.run()).addCallback(outcomes.append)
    kept = [m for m in aria.history.messages() if is_talk(m)]
    entries = [e for e in aria.journal.recent() if "Windhover" in e.content]
    facts = [e for e in entries if e.source_type == "assistant"]
    return {
        "limit": limit,
        "success": bool(outcomes) and isinstance(outcomes[0], Done),
        "history_tokens": outcomes[0].record.report.original_tokens,
        "calls": len(model.requests),
        "prompt_tokens": sum(request.prompt_tokens for request in model.requests),
        "talk_kept": len(kept),
        "talk": talk,
        "entries_of_the_fact": [entry.audience for entry in facts],
        "usage_before": round(before, 2),
        "usage_after": round(aria.usage(), 2),
        "verified": verify_history(aria) == (),
        "told": [text for kind, text in aria.audits if kind == "log" and "hardly room" in text],
    }


def main():
    """Print the figures at each limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--limits", type=int, nargs="*", default=LIMITS)
    options = parser.parse_args()
    show({"limits": [measured(limit) for limit in options.limits]})


if __name__ == "__main__":
    main()
