"""Times as people say and type them, in several languages."""

import unittest
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.times import due, spoken_time, spoken_units

USUAL = {"sec": 1, "min": 60, "hr": 3600, "hour": 3600, "day": 86400, "month": 2419200}
TIDES = {"drop": 1, "tide": 500, "moon": 5000, "year": 50_000}
NOW = datetime(2026, 11, 26, 14, 0, tzinfo=UTC)
TIMES = {
    "11-26 16:00": "in 2h|in 2 hours|2 h|in 2 Stunden|через 2 часа|2時間後|2小时后|2시간 후"
    "|بعد ٢ ساعات|2 घंटे|อีก 2 ชั่วโมง|120 min|en 2 horas|dans 2 heures|tra 2 ore|1h60m"
    "|za 2 godziny|2 saat sonra",
    "11-26 21:00": "21:00|at 21:00|9pm|9 p.m.|21 Uhr|21h00|21時|２１：００|21.00"
    "|this evening at 21:00|heute Abend um 21 Uhr|сегодня вечером в 21:00|this evening at 9:00"
    "|tonight at 9:00|heute Abend um 9 Uhr|stasera 9:00|esta noche a las 9:00|今晩9時|今晚9点",
    "11-27 09:00": "9:00|9 am|tomorrow|tomorrow 9:00|tomorrow at 9|morgen um 9 Uhr|завтра 9:00"
    "|明日9時|明天 9点|내일 9시|yarın 9:00|غدا ٩:٠٠|พรุ่งนี้ 9:00|mañana 9:00|demain 9:00"
    "|domani 9:00|jutro 9:00",
    "11-28 09:00": "the day after tomorrow|day after tomorrow 9:00|übermorgen um 9 Uhr|après-demain"
    "|apres demain à 9h00|pasado mañana|depois de amanhã|dopodomani|pojutrze 9:00|послезавтра"
    "|明後日9時|后天9点|모레 9시|내일모레 9시|بعد غد|परसों|มะรืนนี้|öbür gün 9:00",
    "11-27 09:30": "9時30分|9:30",
    "11-27 00:00": "12am|0:00",
    "12-01 09:00": "2026-12-01 09:00|2026-12-01|2026/12/1",
    "11-29 14:00": "in 3 days|3d|3 天后|za 3 dni|3 gün sonra",
    "11-26 14:30": "in 0.5 hours|0,5 Stunden|30分後|in 30 minutes",
}
NONE = """soon||when pigs fly|25:00|13pm|0am|2026-13-01|9|in 5 months|in 99999 days
9999-12-31 9:00 x9|tomorrow evening or so maybe|in 2 hours and 5|tomorrow 30:00
meet me at 9:00 by the old mill|9:99"""


class TestDue(unittest.TestCase):
    """What a text means, on a Thursday at two in the afternoon."""

    def test_times(self):
        """Spans, clock times, days and dates."""
        for expected, texts in TIMES.items():
            for text in texts.split("|"):
                with self.subTest(text=text):
                    self.assertEqual(f"{due(text, NOW) or NOW:%m-%d %H:%M}", expected)

    def test_no_time(self):
        """What is none is None."""
        for text in NONE.replace("\n", "|").split("|"):
            with self.subTest(text=text):
                self.assertIsNone(due(text, NOW))

    def test_the_zone(self):
        """It is the time on the clock of the zone, also where that is put back in the night."""
        berlin = datetime(2026, 10, 24, 20, 0, tzinfo=ZoneInfo("Europe/Berlin"))
        then = due("tomorrow 9:00", berlin)
        self.assertEqual((then.hour, then.timestamp() - berlin.timestamp()), (9, 14 * 3600))

    @given(st.text(max_size=40) | st.from_regex(r"[0-9:. ahmpin-]{1,20}", fullmatch=True))
    def test_any_text(self, text):
        """Any text is a time or none; a time is never in the past unless a date says so."""
        then = due(text, NOW)
        self.assertTrue(then is None or "-" in text or "." in text or "/" in text or then >= NOW)
        if then is not None:
            self.assertLess(then - NOW, timedelta(days=366 * 8000))


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
                at = datetime(2026, 11, 22, *clock)
                self.assertEqual(spoken_time(at, with_date=False), f"{words}, Sunday")
                dated = f"{words}, Sunday 22 November 2026"
                self.assertEqual(spoken_time(at, with_date=True), dated)

    def test_calendars(self):
        """With usual hours the clock is told in words; every other unit is told by its number."""
        at = 4 * 2419200 + 2 * 86400 + 21 * 3600 + 12 * 60
        told = "about a quarter past nine in the evening, day 3, month 5"
        self.assertEqual(spoken_units(at, USUAL), told)
        at = 1203 * 50_000 + 7 * 5000 + 999.5
        self.assertEqual(spoken_units(at, TIDES), "tide 1, moon 7, year 1203")
