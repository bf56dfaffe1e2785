"""A day's plan: what holds when, and how it is followed."""

import unittest
from datetime import datetime
from unittest import mock

from evennia import create_object

from evennia_ai.errors import ConfigError, ToolError
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.options import check_option
from evennia_ai.routine import BARRED, LOST, SLEEP, THERE, WALKS, Routine, Stop, read_routine
from tests.base import AssistantTest
from tests.fake import FakeGame
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

PLAN = "06:00 Kitchen: kneads dough.; 20:00 Taproom; 23:00 sleep"
EXIT, ROOM = "evennia.objects.objects.DefaultExit", "evennia.objects.objects.DefaultRoom"


class TestPlan(unittest.TestCase):
    """The text of a plan."""

    def test_read(self):
        """Times, places and doings, in order; the last entry holds until the first one."""
        routine = read_routine(PLAN)
        self.assertTrue(routine.is_game)
        self.assertFalse(read_routine(f"real {PLAN}").is_game)
        self.assertEqual(routine.at(19, 59), Stop(360, "Kitchen", "kneads dough."))
        self.assertEqual(routine.at(20, 0).label, "20:00 Taproom")
        self.assertEqual(routine.at(3, 0), Stop(1380, SLEEP))
        self.assertEqual(read_routine("GAME 9:05 home"), Routine((Stop(545, "home"),)))
        self.assertEqual(check_option("routine", f" {PLAN} ; "), PLAN)
        self.assertIsNone(check_option("routine", None))

    def test_wrong(self):
        """A text that is none is refused."""
        many = "; ".join(f"{n % 24:02}:{n // 24:02} x" for n in range(25))
        wrong = ["6 Kitchen", "25:00 Kitchen", "06:61 Kitchen", "06:00", ";", "game", many]
        wrong += ["06:00 A; 06:00 B", f"06:00 {'x' * 81}", f"06:00 x: {'y' * 201}", "", "game ;"]
        for text in wrong:
            with self.subTest(text=text), self.assertRaises(ValueError):
                read_routine(text)
        with self.assertRaises(ConfigError):
            check_option("routine", "at six")


class TestFollowed(MemoryWorldTest):
    """In memory, by a clock that the tests set."""

    def setUp(self):
        super().setUp()
        self.world.configure(routine=PLAN, sleep_after_idle_s=None)
        self.world.later(1000)
        self.at(6)

    def at(self, hour):
        self.script.game.clock = lambda game, now: datetime(2026, 1, 1, hour if game else 0)

    def tick(self, *steps):
        self.script.game.steps = steps
        return wait_for(self.script.tick())

    def mode(self):
        return self.script.state.mode

    def talk(self):
        alice = Speaker("Alice", FakeGame.people["Alice"])
        line = Message("user", "Hello.", id=new_id("m"), speaker=alice, channel="say")
        self.script.runtime.hear(line, self.script.now())
        self.world.later(5)
        self.assertEqual(self.tick(), "turn")

    def test_a_day(self):
        """One exit a tick; the pose on arrival, once; sleep, and waking for the next entry."""
        done = [self.tick(step) for step in (WALKS, WALKS, THERE, WALKS)]
        self.assertEqual(done, ["walks", "walks", "routine", "idle"])
        self.assertEqual(self.script.game.said, [("public", "kneads dough.")])
        self.world.restart()
        self.at(23)
        self.world.later(400)
        self.assertEqual(self.tick(), "fell asleep")
        self.assertIn(self.tick(), ("dreamt", "asleep"))
        self.assertEqual(self.mode(), "sleep")
        self.at(6)
        self.tick(THERE)
        self.assertEqual(self.mode(), "awake")
        self.assertEqual([r.purpose for r in self.world.model.requests if "a" in r.purpose], [])

    def test_never_out_of_a_talk(self):
        """It waits for the end of a talk."""
        self.tick(THERE)
        self.at(20)
        self.talk()
        self.assertEqual(self.tick(WALKS), "idle")
        self.world.later(61)
        self.assertEqual(self.tick(WALKS), "walks")

    def test_barred(self):
        """One alert for each entry, also after a restart; it goes on when the way is open."""
        self.assertEqual([self.tick(BARRED) for _ in range(3)], ["idle"] * 3)
        self.world.restart()
        self.at(6)
        self.world.later(61)
        self.tick(LOST)
        self.assertEqual(self.script.state.routine_alert, "06:00 Kitchen")
        self.assertEqual(self.tick(THERE), "routine")
        self.at(20)
        self.assertEqual(self.tick(THERE), "routine")  # where nothing is to be done

    def test_sleeps_on(self):
        """What it cannot reach wakes it once a day, so that it can dream."""
        self.assertEqual(self.tick(LOST), "idle")
        self.script.fall_asleep()
        self.assertIn(self.tick(LOST), ("dreamt", "asleep"))
        self.assertEqual((self.tick(THERE), self.mode()), ("asleep", "sleep"))
        self.at(23)
        self.tick()
        self.at(6)
        self.assertEqual((self.tick(THERE), self.mode()), ("routine", "awake"))

    def test_what_fails(self):
        """A pose that the game refuses, or a fault, keeps nobody from an answer."""
        self.script.game.emote = mock.Mock(side_effect=ToolError("not here"))
        self.assertEqual(self.tick(THERE), "routine")
        self.at(20)
        self.script.game.step_towards = None
        self.assertEqual(self.tick(), "idle")
        self.assertEqual(self.script.errors[-1][0], "following the routine")


class TestInGame(AssistantTest):
    """Rooms, exits and locks of a game."""

    def setUp(self):
        super().setUp()
        self.hall, self.taproom = (create_object(ROOM, key=key) for key in ("Long Hall", "Taproom"))
        create_object(EXIT, key="hall", location=self.room1, destination=self.hall)
        create_object(EXIT, key="back", location=self.hall, destination=self.room1)
        self.door = create_object(EXIT, key="door", location=self.hall, destination=self.taproom)
        self.script.game.clock = lambda game, now: datetime(2026, 1, 1, 20)
        self.addCleanup(lambda: vars(self.script.game).pop("clock", None))
        self.configure(routine="20:00 taproom: wipes the bar.")
        self.script.runtime.last_spoke_at = 0.0

    def ticks(self, *wanted):
        """What ticks do, and where they lead."""
        self.assertEqual([self.tick() for _ in wanted], list(wanted))
        return self.aria.location

    def test_walks(self):
        """Exit by exit, in ticks, to a room of that name, with its article or without."""
        self.taproom.key = "The Taproom"
        self.assertIs(self.ticks("walks"), self.hall)
        self.assertIs(self.ticks("walks", "routine", "idle"), self.taproom)
        self.assertEqual(self.model.requests, [])

    def test_no_way(self):
        """Scene 12: before a locked door, or where no way leads, she stays; one alert."""
        self.door.locks.add("traverse:false()")
        self.assertIs(self.ticks("walks", "idle", "idle"), self.hall)
        self.assertIn("the way is barred", self.script.runtime.trouble.text)
        self.assertEqual(self.script.runtime.counts["troubles"], 1)
        self.door.locks.add("traverse:all()")
        self.assertIs(self.ticks("walks"), self.taproom)
        self.configure(routine="20:00 The Moon")
        self.assertIs(self.ticks("idle", "idle"), self.taproom)
        self.assertIn("no way leads there", self.script.runtime.trouble.text)
        self.assertEqual(self.script.runtime.counts["troubles"], 2)
