"""A player is forgotten in a real game that is killed meanwhile; then every file is searched."""

import re
import time
import unittest

import pytest

from tests.e2e.game import Game

pytestmark = pytest.mark.e2e

# Unlike any word of a game; each line of the player has one of its own.
SECRET = "Zorblax"
SETTINGS = """
_modules = AT_SERVER_STARTSTOP_MODULE
_modules = [_modules] if isinstance(_modules, str) else list(_modules)
AT_SERVER_STARTSTOP_MODULE = [*_modules, "server.conf.killer"]
CREATION_THROTTLE_LIMIT = None
LOGIN_THROTTLE_LIMIT = None
"""
# Kills the Server before the step that a file names, once.
KILLER = """
import os, signal
from pathlib import Path
from django.conf import settings
from evennia_ai.privacy.requests import ForgettingJob
from evennia_ai.assistant_script import AssistantScript

def _die(self, name):
    plan = Path(settings.GAME_DIR) / "kill_at"
    if plan.exists() and plan.read_text().strip() == name:
        plan.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def at_server_start():
    ForgettingJob.at_step = _die
    AssistantScript.at_commit_step = _die
"""
LINES = 8


class TestForgotten(unittest.TestCase):
    """Alice talks, whispers, is summarised twice and dreamt of, changes her name, and goes."""

    def test_no_file_holds_her_words(self):
        """The Server dies in the middle of it; the next one finishes. Bob's talk is as it was."""
        with Game(settings=SETTINGS, files={"server/conf/killer.py": KILLER}) as game:
            self.game, admin = game, game.admin(60)
            alice, bob = (game.player(name, timeout_s=60) for name in ("Alice", "Bob"))
            admin.ask("aiconfig Aria compact_preserve_window = 4", "compact_preserve_window")
            for generation in range(2):
                self.talk(alice, bob, generation)
                admin.ask("compact Aria", r"Aria compacted [1-9]", 60)
                if not generation:
                    admin.ask("name Alice = Alicia", "Alicia", 20)
            self.talk(alice, bob, 2)
            self.dream(admin)
            admin.ask("ai/wake Aria", "wakes up|awake already")
            admin.ask("aihistory/export Aria", r"ai_exports", 30)
            alice.ask("aiforget/export", "Written to", 30)
            self.assertGreater(len(self.files_with(SECRET)), 3)
            bobs = self.told_by_bob()
            self.kill_before("forget profiles", lambda: confirm(alice))
            self.kill_before("forget database", game.spawn_server)
            self.kill_before("remake", game.spawn_server)  # in a lull behind it
            game.start_server()
            alice.send("ic")  # after a Server's death Evennia may leave her out of character
            alice.drain(2)
            shown = self.until(alice, "aiforget", "Forgotten: ")
            self.assertIn("Proven by", shown + alice.drain(1))
            game.admin(60).ask("compact/verify Aria", "proven", 30)
            self.assertEqual(self.told_by_bob(), bobs)
            game.stop()
            self.assertEqual(self.files_with(SECRET), [])

    def talk(self, alice, bob, generation):
        """Both tell things, and are answered."""
        for n in range(LINES):
            word = f"{SECRET}{generation}{n}"
            alice.send(f"say Aria, remember that my boat is called {word}.")
            alice.ask(f"whisper Aria = My secret is {word}w.", "You whisper", 30)
            bob.ask(f"say The miller owes me {generation}{n} sacks.", "sacks", 30)
        alice.ask("say Aria, what is my boat called?", r"Aria says|Aria whispers", 60)
        bob.ask("say Aria, what is Alice's boat called?", r"Aria says", 60)

    def kill_before(self, step, begin):
        """Begin something, and wait until the Server has died before a step of it."""
        plan = self.game.folder / "kill_at"
        plan.write_text(step)
        begin()
        end = time.monotonic() + 120
        while plan.exists():
            self.assertLess(time.monotonic(), end, f"never at `{step}`\n{self.game.logs()}")
            time.sleep(0.1)
        self.game.wait_for_death()

    def dream(self, admin):
        """She sleeps until Mem0's files hold what Alice said."""
        for _ in range(20):
            admin.ask("ai/sleep Aria", "falls asleep|asleep already")
            time.sleep(3)
            if any("mem0" in path for path in self.files_with(SECRET)):
                return
        self.fail(f"She did not dream.\n{self.game.logs()}")

    def until(self, player, line, pattern, timeout_s=90):
        """Type a line again and again until its answer has something; returns the answer."""
        end = time.monotonic() + timeout_s
        while True:
            player.send(line)
            shown = player.drain(1.5)
            if re.search(pattern, shown):
                return shown
            self.assertLess(time.monotonic(), end, f"no `{pattern}`: {shown}\n{self.game.logs()}")

    def told_by_bob(self):
        """Ids and texts of Bob's lines in the database."""
        return self.game.python(
            "from evennia_ai.assistant_script import all_assistants\n"
            "for script in all_assistants():\n"
            "    history = script.history\n"
            "    parts = [m for s in history.segments() for m in s.messages]\n"
            "    for m in [*parts, *history.messages()]:\n"
            "        if m.speaker_name == 'Bob': print(m.id, m.content)\n"
        )

    def files_with(self, word):
        """The files of the game in whose bytes a word stands, in any case."""
        wanted = word.lower().encode()
        files = (path for path in self.game.folder.rglob("*") if path.is_file())
        return [str(path) for path in files if wanted in path.read_bytes().lower()]


def confirm(player):
    """A player asks to be forgotten, and confirms it."""
    player.ask("aiforget me", "To confirm")
    player.send("aiforget me = yes")
