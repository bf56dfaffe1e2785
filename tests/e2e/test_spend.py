"""A spend limit in a real game: who is told."""

import json
import unittest

import pytest

from tests.e2e.game import Game
from tests.loopback import LoopbackServer, text

pytestmark = pytest.mark.e2e


class TestSpend(unittest.TestCase):
    """Alice asks until a cap is reached."""

    def test_a_cap_is_visible(self):
        """Staff get an alert, and who asks sees that the question is held up."""
        usage = {"prompt_tokens": 900, "completion_tokens": 100}
        said = iter(range(1, 100))
        server = LoopbackServer(lambda body: text(f"It is number {next(said)}.", usage=usage))
        self.addCleanup(server.start().stop)
        env = {
            "EVENNIA_AI_LLM_MODEL": "openai/any",
            "EVENNIA_AI_LLM_API_BASE": server.url,
            "EVENNIA_AI_SPEND_CAPS": json.dumps(
                {"game": {"tokens_month": 1_000_000}, "player": {"calls_minute": 100_000}}
            ),
        }
        with Game(env=env) as game:
            admin = game.admin(60)
            admin.ask("aiconfig Aria spend_caps.tokens_day = 1500", "is now 1500")
            alice = game.player("Alice", timeout_s=60)
            alice.ask("say Aria, what is my boat called?", "number 1", 30)
            alice.ask("say Aria, and my other boat?", "number 2", 30)
            admin.read_until("spend limit of 1,500 tokens a day is reached", 30)
            alice.ask("say Aria, and my cat?", "has talked enough", 30)
