"""A game on the small language model that runs beside it: talk, kill, reload, stop.

Needs `pip install 'evennia-ai[local]'` and `evennia-ai model pull smollm2`.
"""

import os
import signal
import time
import unittest
from functools import partial
from pathlib import Path

import pytest

from evennia_ai.cli.model import keep_model
from evennia_ai.llm_interaction.local_models.files import SMOLLM2, has_engine, installed
from evennia_ai.llm_interaction.local_models.process import state_file
from evennia_ai.llm_interaction.local_models.supervisor import LocalModels
from evennia_ai.processes import is_alive, wait_for
from tests.e2e.game import Game

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

# A line is answered by the model, or after twice this time by the offline model. All that is the
# machine's, not the game's, may take long: other games run beside this one.
TIMEOUT_S = 15
ANSWER_S = 2 * TIMEOUT_S + 150
STARTS_S = 180
# How long after the game's end the model's process may live.
ENDS_S = 60
SPOKEN = r'Aria says, "[^\n]+'


class TestLocalModel(unittest.TestCase):
    """Told as one story: a started game costs more than any of its parts."""

    def setUp(self):
        if not (has_engine() and SMOLLM2 in installed(Path("none"))):
            print("left out: the extra `local` or the model smollm2 is not installed", flush=True)
            self.skipTest("the extra `local` or the model smollm2 is not installed")

    def test_two_players_talk_while_the_model_comes_and_goes(self):
        """Each line is answered, whatever happens to the process; it ends with the game."""
        game = Game(start=False)
        self.enterContext(game)
        keep_model(game.folder, SMOLLM2)
        game.start()
        models = LocalModels(game.folder)
        running = partial(models.running, SMOLLM2)
        mira, bram = game.player("Mira"), game.player("Bram")
        self.assertTrue(wait_for(running, STARTS_S), "the model was not started")
        first = running()
        with game.admin() as owner:
            owner.ask(f"aiconfig Aria llm_timeout_s = {TIMEOUT_S}", "llm_timeout_s is now")

        self.say(mira, "Aria, my boat is called Heron.")
        self.say(bram, "Hello, Aria! What do you sell?")
        worked = wait_for(lambda: "processing task" in game.log("model.log"), STARTS_S)
        self.assertTrue(worked, "the model was never asked")

        os.kill(first.pid, signal.SIGKILL)
        self.say(mira, "Aria, do you like music?")
        self.say(bram, "Aria, who are you?")
        self.assertTrue(wait_for(running, STARTS_S), "the model did not come back")
        second = running()
        self.assertNotEqual(second.pid, first.pid)

        game.reload(timeout_s=STARTS_S)
        self.say(mira, "Aria, are you still there?")
        self.assertEqual(running().pid, second.pid)
        self.assertNotIn("Traceback", game.log("server.log"))
        self.assertNotIn(second.key, game.log("model.log"))

        game.stop()
        marker = str(state_file(models.folder, SMOLLM2))
        self.assertTrue(wait_for(lambda: not is_alive(second.pid, marker), ENDS_S))

    def say(self, player, line):
        """Say a line and wait for Aria's answer to it."""
        began = time.monotonic()
        player.ask(f"say {line}", SPOKEN, timeout_s=ANSWER_S)
        print(f"{time.monotonic() - began:.1f} s: {line}", flush=True)
        player.drain(1)
