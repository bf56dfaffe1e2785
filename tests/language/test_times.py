"""Time as people say it."""

import unittest
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.times import read_time, spoken_time, spoken_units

USUAL = {"sec": 1, "min": 60, "hr": 3600, "hour": 3600, "day": 86400, "month": 2419200}
TIDES = {"drop": 1, "tide": 500, "moon": 5000, "year": 50_000}


class TestSpokenTime(unittest.TestCase):
    def test_words(self):
        """The hour to a quarter, the time of the day, the date."""
        for clock, words in (
            ((0, 3), "about midnight"),
            ((0, 15), "about a quarter past midnight"),
            ((3, 20), "about a quarter past three at night"),
            ((9, 32), "about half past nine in the morning"),
            ((12, 14), "about a quarter past noon"),
            ((14, 51), "about a quarter to three in the afternoon"),
            ((21, 12), "about a quarter past nine in the evening"),
            ((22, 5), "about ten at night"),
            ((23, 55), "about midnight"),
        ):
            with self.subTest(clock):
                said = spoken_time(datetime(2026, 11, 22, *clock))
                self.assertEqual(said, f"{words}, Sunday 22 November 2026")

    @given(st.datetimes())
    def test_read_back(self, at):
        """The clock and the day are read as they were written."""
        clock, day = read_time(spoken_time(at))
        self.assertEqual(f"{clock}, {day}", spoken_time(at))
        self.assertTrue(day.endswith(f" {at.year}"))

    def test_words_of_a_game(self):
        """What has no comma is both the clock and the day."""
        self.assertEqual(read_time("dusk. "), ("dusk", "dusk"))
        self.assertEqual(read_time(""), ("", ""))

    def test_usual_hours(self):
        """With usual hours and days the clock is told in words, the rest by number."""
        at = 4 * 2419200 + 2 * 86400 + 21 * 3600 + 12 * 60
        told = "about a quarter past nine in the evening, day 3, month 5"
        self.assertEqual(spoken_units(at, USUAL), told)

    def test_other_hours(self):
        """Otherwise every unit but the smallest is told by its number, the shortest first."""
        self.assertEqual(
            spoken_units(1203 * 50_000 + 7 * 5000 + 999.5, TIDES), "tide 1, moon 7, year 1203"
        )
