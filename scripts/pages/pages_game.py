"""The start/stop module that `pages.py` puts into the started game: it fills and measures it.

`begin` fills the game with assistants, messages and compactions, in slices, through the package's
own code; the state is written to ``pages/filled.json``. `measure` and `measured` take the lateness
and the processor time of the reactor.
"""

import json
import random
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from twisted.internet.defer import Deferred, inlineCallbacks

from benchmarks.stalls import Heartbeat, line
from evennia_ai.background import pause
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, Speaker

FOLDER = Path(settings.GAME_DIR) / "pages"
CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"
# Messages that are appended before everything else on the reactor has its turn.
AT_ONCE = 20
PEOPLE = (Speaker("Mira", "o9001.mira"), Speaker("Tam", "o9002.tam"), Speaker("Bo", "o9003.bo"))
# One line in so many is whispered.
WHISPERED = 12
# No compaction begins by itself, and nobody falls asleep.
CONFIG = {"max_context_tokens": 120_000, "sleep_after_idle_s": None}

_heart: list[Heartbeat] = []


@dataclass(frozen=True)
class Size:
    """How much a game holds: assistants, and messages and compactions of each."""

    assistants: int
    messages: int
    compactions: int


def at_server_start() -> None:
    """Make the folder of answers."""
    FOLDER.mkdir(exist_ok=True)


def begin(assistants: int, messages: int, compactions: int) -> str:
    """Fill the game, for the command `py`; ``filled.json`` appears when it is done."""
    done = _fill(Size(assistants, messages, compactions))
    done.addErrback(lambda failure: _write("filled", {"error": failure.getTraceback()}))
    return "The filling begins."


@inlineCallbacks
def _fill(size: Size) -> Generator[Deferred[Any], Any, None]:
    from evennia import create_object

    from evennia_ai.assistant_script import all_assistants
    from evennia_ai.sleep.compaction.compact import Compaction
    from evennia_ai.sleep.compaction.due import MANUAL
    from evennia_ai.sleep.compaction.report import Done

    rng, counts = random.Random(17), {"messages": 0, "compactions": 0, "journal": 0}
    for number in range(len(all_assistants()), size.assistants):
        room = create_object("evennia.objects.objects.DefaultRoom", key=f"Room {number}")
        create_object(CHARACTER, key=f"Aria{number}", location=room)
        yield pause()
    scripts = all_assistants()
    for script in scripts:
        script.state.configure(CONFIG)
        for part in range(size.compactions + 1):
            for _ in range(size.messages // (size.compactions + 1) // AT_ONCE):
                script.history.append([_message(script, rng) for _ in range(AT_ONCE)])
                counts["messages"] += AT_ONCE
                yield pause()
            if part < size.compactions:
                outcome = yield Compaction(script, script.obj, MANUAL, extracts=True).run()
                counts["compactions"] += isinstance(outcome, Done)
        while script.history.recorded[0] < size.messages:
            script.history.append([_message(script, rng)])
            counts["messages"] += 1
        for _ in range(10):
            script.obj.journal.add(line(rng), importance=6)
            counts["journal"] += 1
        script.history.checkpoint()
        yield pause()
    _write("filled", {"assistants": len(scripts), **counts})


def _message(script: Any, rng: random.Random) -> Message:
    who = rng.choice(PEOPLE)
    heard = rng.random() < 0.5
    own = Speaker(script.obj.key, script.obj.stable_id)
    whispered = rng.randrange(WHISPERED) == 0
    return Message(
        "user" if heard else "assistant",
        line(rng),
        speaker=who if heard else own,
        audience=private([who.id]) if whispered else PUBLIC,
        channel="whisper" if whispered else "say",
    )


def seed() -> str:
    """Add what the complaints of ``pages_complaints.json`` are about, for the command `py`."""
    from evennia.utils.search import search_account

    from evennia_ai import services
    from evennia_ai.assistant_script import all_assistants
    from evennia_ai.game.identity import stable_id
    from evennia_ai.llm_interaction.values import ModelReply
    from evennia_ai.rag_memory.entities import new_profile, observe
    from evennia_ai.rag_memory.ledger import PROPOSED

    scripts = {script.obj.key: script for script in all_assistants()}
    first, now, mallory = scripts["Aria"], scripts["Aria"].now(), PEOPLE[2]
    body = first.obj
    body.journal.add("Bob owes the harbour master ninety crowns.", importance=6)
    body.journal.add("Alice and Bob had a quarrel about a goat.", importance=6)
    for text in ("The ferry sails at nine.", "The moon is a cheese."):
        first.ledger.add(text, mallory, state=PROPOSED, kind="fact")
    profile = new_profile("o9009.mallory", "Mallory", now)
    body.entities.put({profile.id: observe(profile, "Mallory is the mayor.", now, "m1")})
    secret = "The cellar key lies under the stone."
    alice = Speaker("Alice", "o9010.alice")
    own = Speaker(body.key, body.stable_id)
    first.history.append(
        [
            Message("user", secret, speaker=alice, audience=private([alice.id]), channel="whisper"),
            Message("assistant", f"Bob, listen. {secret}", speaker=own, channel="say"),
        ]
    )
    account = stable_id(search_account("Mallory")[0])
    dear = ModelReply(content="", model="openai/gpt-4o", prompt_tokens=700_000, cost=4.12)
    services.figures().note_spend(first.scope, "awake", account, dear, now - 6 * 3600)
    scripts["Aria1"].db.enabled = False
    capped = scripts["Aria2"]
    capped.state.configure({"spend_caps": {"tokens_day": 0}})
    capped.audit("call", purpose="awake", model="openai/gpt-4o", tokens=9, seconds=41.3)
    scripts["Aria3"].trouble("no model answers")
    return "The complaints have their reasons."


def measure(trace_ms: float = 0.0) -> str:
    """Start the reactor's heartbeat, for the command `py`."""
    from twisted.internet import reactor

    _heart[:] = [Heartbeat(reactor, trace_ms)]
    _heart[0].start()
    return "The heart beats."


def measured() -> str:
    """Write what the heartbeat saw since the last call to ``measured.json``, for `py`."""
    heart = _heart[0]
    stacks = [{"times": times, "stack": stack} for stack, times in heart.stacks.most_common(12)]
    _write("measured", {**heart.take(), "stacks": stacks})
    heart.stacks.clear()
    return "The figures are written."


def _write(name: str, found: dict[str, Any]) -> None:
    draft = FOLDER / f"{name}.draft"
    draft.write_text(json.dumps(found))
    draft.rename(FOLDER / f"{name}.json")
