"""Measure which share of each request a provider's prompt cache can serve. Prints JSON.

Providers charge less for a beginning they have seen lately. Each request (tools first, then the
messages, as providers hash them) is compared with all earlier ones of the last five minutes on a
simulated clock, a line every eight seconds. The talk has sleeps and emergency compactions. `merge`
are summaries of earlier summaries. For comparison the naive order is measured on the same turns:
retrieved memories and the present moment in the system message.

    python -m benchmarks.prompt_cache
"""

import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from benchmarks.figures import show
from benchmarks.world import world
from evennia_ai.llm_interaction.conversation import NOW
from evennia_ai.testing import call
from tests.models import ScriptedModel
from tests.waiting import pump_until, wait_for

LINES = (
    "{who} says the ferry to {place} was late again and the miller lost {n} sacks by it.",
    "They say the duke has raised the toll on the bridge at {place} to {n} pence for {who}.",
    "Have you heard how the goats of my sister {who} got into the garden at {place}?",
    "I would like another mug of the dark ale, please, and one for {who}.",
    "What do you remember of {who} and the {n} crowns that were hidden at {place}?",
    "{who} promised me {n} barrels by the new moon, to be left at {place}. Remember that.",
)
NAMES = ("Alder", "Brona", "Cedric", "Dorrit", "Egan", "Fenella", "Garth", "Hesper", "Ivo", "Jory")
PLACES = ("Saltmere", "Oakhollow", "the Salt Chapel", "Wendle Bridge", "Crow Tor", "Port Amber")
REPLY = "So I have heard, {name}. Tell me more of it, and sit down a while by the fire with us."
HEARD = re.compile(r'says: \\?"(.+?)\\?"(?:\\n|\n|"|$)')
LIFETIME_S = 300.0  # how long providers keep a prompt at least
LINES_SAID, SLEEPS = 150, 3
CONTEXT = {"max_context_tokens": 16000}
SECONDS = 8.0


class Sent(NamedTuple):
    """A request as it was sent."""

    at: float
    purpose: str
    text: str
    naive: str


def as_text(tools: Sequence[Any], messages: Sequence[Any]) -> str:
    """Return a request as one text, tools first, as providers hash it."""
    return json.dumps(list(tools)) + "".join(json.dumps(m) for m in messages)


def naive_text(request: Any) -> str:
    """Return the same request with the volatile blocks in the system message."""
    system, *rest = request.messages
    notes, others = list[str](), list[Any]()
    for message in rest:
        rows = str(message.get("content") or "").split("\n")
        if message["role"] != "user" or not any(row.startswith(f"({NOW}: ") for row in rows):
            others.append(message)
            continue
        notes += [row for row in rows if row.startswith("(")]
        said = "\n".join(row for row in rows if not row.startswith("("))
        others.append({**message, "content": said})
    first = {**system, "content": "\n".join([system["content"], *notes])}
    return as_text(request.tools, (first, *others))


def shares(sent: Sequence[Sent], field: str, count: Any) -> list[tuple[Sent, float]]:
    """Return each request but the first, with the share of its tokens that a cache can hold."""
    found = []
    for place, now in enumerate(sent[1:], 1):
        text = getattr(now, field)
        warm = [s for s in sent[:place] if now.at - s.at <= LIFETIME_S]
        most = max((len(os.path.commonprefix((getattr(s, field), text))) for s in warm), default=0)
        found.append((now, count(text[:most]) / count(text)))
    return found


class Talker:
    """A scripted model that talks, searches, notes, extracts and summarises."""

    def __init__(self):
        self.sent: list[Sent] = []
        self.clock = 0.0
        self.turns = 0

    def __call__(self, request: Any) -> Any:
        """Answer a request and note it."""
        sent = Sent(
            self.clock,
            self._kind(request),
            as_text(request.tools, request.messages),
            naive_text(request),
        )
        self.sent.append(sent)
        last = request.messages[-1]
        if request.purpose == "summary":
            return self._summary(request)
        if request.purpose == "pre_compaction":
            if last["role"] == "tool":
                return call("noop")
            return call("add_journal_entry", content=f"{NAMES[self.turns % 10]} owes a favour.")
        if last["role"] == "tool":
            return REPLY.format(name=NAMES[self.turns % 10])
        self.turns += 1
        if self.turns % 5 == 0:
            return call("search_memory", query=f"{NAMES[self.turns % 10]} crowns hidden")
        if self.turns % 6 == 0:
            text = f"{NAMES[self.turns % 10]} promised barrels by the new moon, {self.turns}."
            return call("add_journal_entry", content=text)
        return REPLY.format(name=NAMES[self.turns % 10])

    def _kind(self, request: Any) -> str:
        """Return the purpose of a request; summaries of earlier summaries are told apart."""
        told = any(HEARD.search(str(m.get("content"))) for m in request.messages)
        return "merge" if request.purpose == "summary" and not told else str(request.purpose)

    def _summary(self, request: Any) -> str:
        """Return what was said, shortened as a good model might."""
        whole = "\n".join(str(m.get("content")) for m in request.messages[1:])
        told = list(dict.fromkeys(HEARD.findall(whole))) or ["They talked of the toll."]
        return " ".join(f"{said.split(', please')[0]}" for said in told)[:1500]


def tick(script: Any) -> None:
    """Run a tick, and what follows it in the background."""
    pump_until(lambda: script.runtime.lock.running is None, 60)
    wait_for(script.at_tick(), 60)
    pump_until(lambda: script.runtime.summaries.running is None, 60)


def talk(make: Any, model: ScriptedModel) -> tuple[Any, list[Sent]]:
    """Hold a talk with a new assistant; return its script and the requests it made."""
    from evennia import create_object

    talker = Talker()
    model.default = talker
    script, body = make("Aria")
    script.state.configure(CONTEXT)
    players = [
        create_object("evennia.objects.objects.DefaultCharacter", key=who, location=body.location)
        for who in ("Mira", "Tobin")
    ]
    type(players[0]).has_account = property(lambda self: self.key in ("Mira", "Tobin"))
    clock = [script.now()]
    script.now = lambda: clock[0]
    for line in range(LINES_SAID):
        clock[0] += SECONDS
        talker.clock = clock[0]
        said = LINES[line % len(LINES)].format(
            who=f"{NAMES[line % 10]} {PLACES[line % 6].split()[-1]}son",
            place=PLACES[(line * 7 // 3) % 6],
            n=17 + 3 * line,
        )
        players[line % 2].at_say(f"Aria, {said}")
        tick(script)
        if line % (LINES_SAID // SLEEPS + 1) == LINES_SAID // SLEEPS:
            script.fall_asleep()
            for _ in range(3):
                clock[0] += SECONDS
                talker.clock = clock[0]
                tick(script)
    return script, talker.sent


def figures(sent: Sequence[Sent], field: str, count: Any) -> dict[str, Any]:
    """Return mean, median and least share by purpose."""
    by_purpose: dict[str, list[float]] = {}
    for each, share in shares(sent, field, count):
        by_purpose.setdefault(each.purpose, []).append(share)
    return {
        purpose: {
            "requests": len(found),
            "mean": round(mean(found), 3),
            "median": round(median(found), 3),
            "least": round(min(found), 3),
        }
        for purpose, found in by_purpose.items()
    }


def main() -> None:
    """Print the figures."""
    model = ScriptedModel()
    with world(model) as make:
        script, sent = talk(make, model)
        show(
            {
                "lines": LINES_SAID,
                **CONTEXT,
                "compactions": dict(Counter(r.trigger for r in script.history.compactions())),
                "requests": figures(sent, "text", script.count),
                "naive": {"awake": figures(sent, "naive", script.count)["awake"]},
            }
        )


if __name__ == "__main__":
    main()
