"""A started game whose mind is a process of its own: reloaded, killed, stopped."""

import os
import re
import signal
import unittest
from dataclasses import replace
from pathlib import Path

import pytest

from evennia_ai import processes
from tests.e2e.game import Game
from tests.loopback import LoopbackServer, text
from tests.thoroughness import SHARE

pytestmark = pytest.mark.e2e

KEY = "sk-secret-of-this-game"
RELOADS = 3 if SHARE == 1 else 1
# Longer than a Server needs to come back.
SLOW_S = 12.0


class SlowModel(LoopbackServer):
    """Answers each request after `delay_s`, with its number."""

    def __init__(self):
        super().__init__(self.numbered)
        self.delay_s = 0.2

    def numbered(self, body):
        """The reply to a request."""
        return replace(text(f"Reply number {len(self.requests)} it is."), delay_s=self.delay_s)


class TestMind(unittest.TestCase):
    """One story, as an owner would live it."""

    def mind(self):
        """The id of the one process of this game's mind."""
        folder = str((self.game.folder / "server" / "mind").resolve()).encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"evennia_ai.mind" in arguments and folder in arguments:
                found.append(int(process.name))
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def ask_slowly(self, line):
        """Say something; returns once the model thinks about it."""
        self.model.delay_s, before = SLOW_S, len(self.model.requests)
        self.player.send(line)
        self.assertTrue(
            processes.wait_for(lambda: len(self.model.requests) > before, 60), "no request"
        )
        self.model.delay_s = 0.2
        return before

    def answer(self):
        """The number of the reply that comes."""
        shown = self.player.read_until(r"Aria says[^\n]*Reply number \d+", 90)
        return int(re.findall(r"Reply number (\d+)", shown)[-1])

    def test_a_game_with_its_mind_beside_it(self):
        """It answers, over reloads and a kill; it ends with the game."""
        with SlowModel() as self.model:
            env = {
                "EVENNIA_AI_LLM_MODEL": "openai/loopback",
                "EVENNIA_AI_LLM_API_BASE": self.model.url,
                "EVENNIA_AI_LLM_API_KEY": KEY,
            }
            with Game(env=env) as self.game:
                self.player = self.game.admin()
                self.player.send("say Aria, good evening.")
                self.answer()
                self.replies_outlive_reloads()
                self.killed()
                self.ended()

    def replies_outlive_reloads(self):
        """What was asked before a reload is answered after it by the same call."""
        mind = self.mind()
        for number in range(RELOADS):
            before = self.ask_slowly(f"say Aria, what of reload {number}?")
            self.game.reload()
            with self.subTest(reload=number):
                self.assertEqual(self.answer(), before + 1)
                self.assertEqual(len(self.model.requests), before + 1)
                self.assertEqual(self.mind(), mind)

    def killed(self):
        """A question asked in the moment of its death is answered all the same."""
        self.ask_slowly("say Aria, and when the mind dies?")
        os.kill(self.mind(), signal.SIGKILL)
        self.answer()
        self.player.ask("aistatus Aria", r"Mind: process \d+[^\n]*restarted 1 times", 30)

    def ended(self):
        """It ends with the game."""
        self.assertNotIn(KEY, self.game.log("mind.log") + self.game.log())
        mind = self.mind()
        self.assertNotIn(KEY.encode(), Path(f"/proc/{mind}/cmdline").read_bytes())
        self.game.stop()
        self.assertTrue(processes.wait_for(lambda: self.mind() is None, 30))
