"""Spend caps in a real game whose Server is killed: what is told, kept and answered."""

import time
import unittest

import pytest

from tests.e2e.game import Game
from tests.e2e.telnet import Timeout
from tests.loopback import LoopbackServer, text

pytestmark = pytest.mark.e2e


class TestSpend(unittest.TestCase):
    """Alice asks until a cap is reached; the Server dies; an admin lifts the cap."""

    def test_a_question_waits_for_its_cap(self):
        """The question is held up visibly, outlives a kill, and is answered once it may be."""
        usage = {"prompt_tokens": 900, "completion_tokens": 100}
        said = iter(range(1, 100))
        server = LoopbackServer(lambda body: text(f"It is number {next(said)}.", usage=usage))
        self.addCleanup(server.start().stop)
        env = {
            "EVENNIA_AI_LLM_MODEL": "openai/any",
            "EVENNIA_AI_LLM_API_BASE": server.url,
            "EVENNIA_AI_SPEND_CAPS": '{"game": {"tokens_month": 1000000}}',
        }
        with Game(env=env) as game:
            admin = game.admin(60)
            admin.ask("aiconfig Aria spend_max_tokens_day = 1500", "is now 1500")
            alice = game.player("Alice", timeout_s=60)
            alice.ask("say Aria, what is my boat called?", "number 1", 30)
            alice.ask("say Aria, and my other boat?", "number 2", 30)
            admin.read_until("spend cap of 1,500 tokens a day is reached", 30)
            alice.ask("say Aria, and my cat?", "will answer later", 30)
            asked = len(server.bodies)
            game.kill_server()
            game.start_server()
            self.until(admin, "ai/usage", r"2,000")
            self.assertEqual(len(server.bodies), asked)
            admin.ask("aiconfig Aria spend_max_tokens_day = none", "is now None", 30)
            alice.read_until("number 3", 60)
            self.assertIn("my cat", str(server.bodies[-1]["messages"]))

    def until(self, player, line, pattern, most_s=90.0):
        """Type a line until the answer comes; just after a restart the player has no commands."""
        end = time.monotonic() + most_s
        while True:
            try:
                return player.ask(line, pattern, 5)
            except Timeout:
                if time.monotonic() > end:
                    raise
