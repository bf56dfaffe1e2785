"""The start/stop module that `kill_game.py` puts into the started game.

At each start it logs what the assistant stores, and waits until everything is loaded and the timer
has ticked. Then it checks everything and writes the result to ``look.json``. From then on it
follows ``plan.json`` whenever that file appears. All files are in the folder ``kill`` of the game.
"""

import json
import os
import random
from collections import Counter
from pathlib import Path

from django.conf import settings
from twisted.internet.defer import inlineCallbacks
from twisted.internet.task import LoopingCall

from tests.e2e.kill_look import kept_lists, look, until
from tests.e2e.kill_steps import Killer, Log

FOLDER = Path(settings.GAME_DIR) / "kill"
POLL_S = 0.03
LOADED_S, TICKED_S = 60.0, 20.0
TICKS = 2  # of the timer, after everything is loaded
# A thing whose description is a large tool output. Its text is longer than what is shown of it.
CHRONICLE = " ".join(f"In year {year} the river rose {year % 7} ells." for year in range(900, 1200))
# What an action sets just below the current usage, so that it fires.
TRIGGERS = ("compact_sleep_threshold", "compact_emergency_threshold")


def at_server_start():
    """Start logging, and check as soon as possible."""
    killer = Killer(Log(FOLDER / "log.jsonl"))
    killer.arm()
    told = _look_and_tell(killer)
    told.addErrback(lambda failure: _tell({"failed": failure.getTraceback()}))
    LoopingCall(_take_plan, killer).start(POLL_S, now=False)


def journal(count):
    """Write entries to the assistant's journal, for the game's command `py`."""
    body = _assistant().obj
    number = random.randrange(10**6)
    for each in range(count):
        body.journal.add(f"Entry {each} of {number}: Bob owes Alice {each} crowns.")
    return f"{count} entries are written."


def shelve():
    """Put a thing with a long description next to the assistant, for the command `py`."""
    from evennia import create_object

    room = _assistant().obj.location
    thing = create_object("evennia.DefaultObject", key="chronicle", location=room, home=room)
    thing.db.desc = CHRONICLE
    return "The chronicle is here."


def lower(option):
    """Set a trigger of the assistant just below what its history takes, for the command `py`.

    What waits to be heard does not count: a whisper may be no part of the largest view.
    """

    script = _assistant()
    usage = script.limits().room.usage(script.history.widest_tokens())
    script.attributes.add(option, min(1.0, round(usage * 0.99, 3)))
    return f"The trigger `{option}` is low."


def restore():
    """Reset its triggers to their defaults; a kill may have left them low."""
    for option in TRIGGERS:
        _assistant().attributes.remove(option)
    return "The triggers are as ever."


def _assistant():
    from evennia_ai.assistant_script import all_assistants

    return next(script for script in all_assistants() if script.obj.key == "Aria")


def _take_plan(killer):
    path = FOLDER / "plan.json"
    if path.exists():
        plan = json.loads(path.read_text())
        path.unlink()
        killer.plan = plan


@inlineCallbacks
def _look_and_tell(killer):
    from evennia_ai import services

    loaded = yield until(services.ready, LOADED_S)
    script = _assistant()
    restore()
    begun = _ticks(script)
    ticked = yield until(lambda: _ticks(script) >= begun + TICKS, TICKED_S)
    found = yield look(script, killer.log)
    found["timer_stopped"] |= int(not (loaded and ticked))
    _tell({**found, "lines": _lines(script)})


def _ticks(script):
    """Return how often the timer has fired since the start."""
    return int(script.runtime.counts["ticks"] + script.runtime.counts["late"])


def _lines(script):
    """Count how often each heard line is stored: in history, archive or queue."""
    messages = [m for messages in kept_lists(script) for m in messages if m.role == "user"]
    known = {message.id for message in messages}
    waiting = [event for event in script.runtime.pending() if event.id not in known]
    return Counter(item.content for item in (*messages, *waiting))


def _tell(found):
    """Write the results in one piece."""
    draft = FOLDER / "look.draft"
    draft.write_text(json.dumps({**found, "pid": os.getpid()}))
    draft.rename(FOLDER / "look.json")
