"""A real game, killed in the middle of compactions: nothing lost, nothing doubled, she goes on."""

import json
import os
import time
import unittest

import pytest

from evennia_ai import game_processes
from tests.e2e.game import Game

pytestmark = pytest.mark.e2e

SETTINGS = """
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "server.conf.killer"]
"""
# Kills the Server before the step that is named in a file, once.
KILLER = """
import os
import signal
from pathlib import Path

FILE = Path(__file__).with_name("kill_at")


def at_server_start():
    from evennia_ai.assistant_script import AssistantScript

    def at_commit_step(self, name):
        if FILE.exists() and FILE.read_text() == name:
            FILE.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    AssistantScript.at_commit_step = at_commit_step
"""
# Counts each message's content in the live history and in the archive that was not restored.
COUNT = """
import json
from collections import Counter
from evennia_ai.core.messages import is_summary
from evennia_ai.handlers.verify import verify_history
from evennia_ai.startstop import assistants
script = next(s for s in assistants() if s.obj.key == "Aria")
history = script.history
found = [m for m in history.messages() if not is_summary(m)]
for segment in history.segments():
    found += segment["messages"] if segment["id"] not in history.restored_segments() else []
print(json.dumps({
    "times": Counter(m["content"] for m in found),
    "doubled": [i for i, n in Counter(m["id"] for m in found).items() if n > 1],
    "violations": [str(v) for v in verify_history(script)],
    "compactions": len(history.compactions()),
}))
"""
STEPS = ("history", "record", "done")


class TestKill(unittest.TestCase):
    """One game, killed several times."""

    def told(self, player, number):
        """Say lines and wait until she has answered the last; returns them."""
        lines = [f"Barrel {number}{n} is marked {number * 100 + n}." for n in range(6)]
        for line in lines[:-1]:
            player.send(f"say {line}")
        player.ask(f"say Aria, hello! {lines[-1]}", r"Aria \w+", 60)
        player.drain(3)
        return lines

    def wait_until_killed(self, game, before):
        """Until the Server's process is gone."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if game_processes.pids(game.folder).get("server") != before:
                return
            try:
                os.kill(before, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        raise AssertionError("the Server was not killed")

    def look(self, game, lines):
        """Every line is there once, and the proof is clean."""
        found = json.loads(game.python(COUNT).splitlines()[-1])
        self.assertEqual(found["violations"], [])
        self.assertEqual(found["doubled"], [])
        for line in lines:
            times = sum(n for text, n in found["times"].items() if text.endswith(line))
            self.assertEqual(times, 1, line)
        return found

    def test_killed_at_each_step_of_a_commit(self):
        """Before three steps of a commit and at a moment of its own."""
        lines = []
        with Game(settings=SETTINGS, files={"server/conf/killer.py": KILLER}) as game:
            player = game.admin()
            player.ask("aiconfig Aria compact_preserve_window = 2", r"(?i)compact_preserve_window")
            for number, step in enumerate((*STEPS, None)):
                lines += self.told(player, number + 1)
                if step:
                    (game.folder / "server/conf/kill_at").write_text(step)
                before = game_processes.pids(game.folder)["server"]
                player.send("compact Aria")
                if step:
                    self.wait_until_killed(game, before)
                player.close()
                game.kill_hard()
                game.start()
                with self.subTest(step=step):
                    self.look(game, lines)
                player = game.admin()
                player.ask("compact/verify Aria", r"proven", 30)
                player.ask("say Aria, are you there?", r"Aria \w+", 60)
                player.drain(1)
            player.ask("compact Aria", r"(?i)compacted [1-9]|tokens", 60)
            player.close()
            self.assertGreaterEqual(self.look(game, lines)["compactions"], 1)
