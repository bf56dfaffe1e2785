"""The time in the prompt: of the game's calendar, or of the server's time zone."""

from datetime import datetime
from unittest.mock import patch

from django.test import override_settings
from django.utils.timezone import get_default_timezone

from evennia_ai.game import world as game
from evennia_ai.llm_interaction.prompt import build_llm_messages
from tests.base import AssistantTest

NOW = 1_795_382_040.0  # 2026-11-22 21:14 UTC
LONG_AGO = datetime(1203, 5, 6, 12, 2)


class TestGameTime(AssistantTest):
    def setUp(self):
        super().setUp()
        self.script.now = lambda: NOW

    def said(self):
        """The note of what time it is."""
        tail = str(build_llm_messages(self.script, self.aria)[-1]["content"])
        return next(line for line in tail.splitlines() if line.startswith("(Now: "))

    def in_game(self, at):
        """Let it be this game time, in seconds."""
        self.enterContext(patch.object(game, "gametime", lambda absolute: at))

    def test_the_servers_time_zone(self):
        """Without a calendar of the game it is the time where the server says it is."""
        evening = "(Now: about a quarter past nine in the evening, Sunday)"
        self.assertEqual(self.said(), evening)
        with override_settings(TIME_ZONE="Asia/Tokyo"):
            morning = "(Now: about a quarter past six in the morning, Monday)"
            self.assertEqual(self.said(), morning)

    def test_an_epoch_or_a_factor(self):
        """With an epoch of its own, or another factor, it is the game's time."""
        self.in_game(LONG_AGO.replace(tzinfo=get_default_timezone()).timestamp())
        told = "(Now: about noon, Tuesday 6 May 1203)"
        self.assertNotEqual(self.said(), told)
        for own in ({"TIME_GAME_EPOCH": 0}, {"TIME_FACTOR": 1}):
            with override_settings(**own):
                self.assertEqual(self.said(), told)

    @override_settings(TIME_UNITS={"sec": 1, "tide": 500, "moon": 5000, "year": 50_000})
    def test_units_of_the_game(self):
        """With units of its own they are named."""
        self.in_game(1203 * 50_000 + 7 * 5000 + 999)
        self.assertEqual(self.said(), "(Now: tide 1, moon 7, year 1203)")
